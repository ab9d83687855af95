"""A server that answers requests with whatever bytes a test wants, and closes connections whenever it likes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, Self

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import ApiClient

CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"


class Peer:
    """One connection as the server sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: asyncio.Event) -> None:
        self._asked = asked
        self.reader = reader
        self.writer = writer
        self.requests: list[bytes] = []

    async def request(self) -> bytes:
        """Read one request, head and body; raises `IncompleteReadError` where the client has hung up."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
        self.requests.append(head + await self.reader.readexactly(length))
        self._asked.set()
        return self.requests[-1]

    async def say(self, *pieces: bytes) -> None:
        """Each piece in a packet of its own, as far as that can be had."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            for _ in range(3):
                await asyncio.sleep(0)

    def reset(self) -> None:
        self.writer.transport.abort()


Conversation = Callable[[Peer], Awaitable[None]]


class RawServer:
    """Runs one conversation a connection, the last of them for all that follow; a conversation that ends hangs up."""

    def __init__(self, *conversations: Conversation, tls: ssl.SSLContext | None = None) -> None:
        self.peers: list[Peer] = []
        self.asked, self.hung_up = asyncio.Event(), asyncio.Event()
        self._conversations = list(conversations)
        self._tls = tls
        self._serving: list[asyncio.Future[None]] = []
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    @property
    def requests(self) -> list[bytes]:
        """Of all connections."""
        return [request for peer in self.peers for request in peer.requests]

    def access(self, tls: ssl.SSLContext | None = None, **more: Any) -> ClusterAccess:
        scheme = "http" if self._tls is None else "https"
        return ClusterAccess(f"{scheme}://127.0.0.1:{self.port}", tls=True if tls is None else tls, **more)

    def client(self, **options: Any) -> ApiClient:
        return ApiClient(self.access(), **options)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = self._conversations.pop(0) if len(self._conversations) > 1 else self._conversations[0]
        self.peers.append(peer := Peer(reader, writer, self.asked))
        task = asyncio.ensure_future(conversation(peer))
        self._serving.append(task)
        await asyncio.wait([task])
        writer.close()
        self.hung_up.set()


def answering(*answers: bytes) -> Conversation:
    """The answers, one a request, the last of them for ever."""

    async def conversation(peer: Peer) -> None:
        left = list(answers)
        while await peer.request():
            await peer.say(left.pop(0) if len(left) > 1 else left[0])

    return conversation


def once(*pieces: bytes) -> Conversation:
    """One answer, piece by piece, and the end of the connection."""

    async def conversation(peer: Peer) -> None:
        await peer.request()
        await peer.say(*pieces)

    return conversation


async def reset(peer: Peer) -> None:
    """Break the connection when a request has come."""
    await peer.request()
    peer.reset()


async def silent(peer: Peer) -> None:
    """Never answer."""
    await peer.request()
    await peer.reader.read()
