"""Clients that want a port for themselves: each opens a connection, does as it likes, and opens the next when it is hung up on."""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

LOOPBACK: Final = "127.0.0.1"

#: What is done with an open connection, until it is lost.
Habit = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class Intruder:
    """One client. `opened` is set once it has had a connection; `connections` counts them."""

    port: int
    habit: Habit
    tls: ssl.SSLContext | None
    source: str = LOOPBACK
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection(LOOPBACK, self.port, ssl=self.tls, local_addr=(self.source, 0))
                self.connections += 1
                self.opened.set()
                try:
                    await self.habit(reader, writer)
                finally:
                    writer.transport.abort()
            await asyncio.sleep(0.01)  # as an attack would: at once, but not without end on this machine


async def nothing(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Say no more, and read what comes."""
    await reader.read()


def says(words: bytes, then: Habit = nothing) -> Habit:
    """Say this, with another number for each `%d`, and then do that."""

    async def habit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words.replace(b"%d", b"%d" % random.getrandbits(64)))
        await then(reader, writer)

    return habit


async def away(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Have no interest in the answer."""
    await writer.drain()


async def half_closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """End what is said."""
    if writer.can_write_eof():
        writer.write_eof()
    await reader.read()


async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A byte at a time, never done."""
    for byte in b"GET /livez HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 1000:
        writer.write(bytes([byte]))
        await writer.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                if not await reader.read(1):
                    return


async def endless_head(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Headers without end, as fast as they are taken."""
    writer.write(b"GET /livez HTTP/1.1\r\n")
    while not reader.at_eof() and not writer.is_closing():
        writer.write(b"X: " + b"y" * 1000 + b"\r\n")
        await writer.drain()
        await asyncio.sleep(0)


async def never_reading(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Asks for much, and reads nothing of it."""
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport that reads
    writer.write(b"GET /much HTTP/1.1\r\nHost: x\r\n\r\n")
    await asyncio.Event().wait()


_TOKEN: Final = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %d\r\n\r\n"
#: By name: the habit, and whether it has TLS.
HABITS: Final[dict[str, tuple[Habit, bool]]] = {
    "silent within TLS": (nothing, True),
    "silent before TLS": (nothing, False),
    "a byte at a time": (dripping, True),
    "headers without end": (endless_head, True),
    "a body that never comes": (says(b"POST /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"), True),
    "requests one upon the other": (says(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n" * 1000), True),
    "a made-up token": (says(_TOKEN), True),
    "a made-up token and away": (says(_TOKEN, away), True),
    "half a request and no more to say": (says(b"GET /livez HTTP/1.1\r\n", half_closed), False),
    "answers that nobody reads": (never_reading, True),
    "half a handshake": (says(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), False),
    "rubbish": (says(random.Random(0).randbytes(5000)), False),
}


@asynccontextmanager
async def intruders(port: int, names: list[str], tls: ssl.SSLContext, source: str = LOOPBACK) -> AsyncIterator[list[Intruder]]:
    """An intruder for each of these habits, at work for as long as the context is open, and each of them with a connection already."""
    found = [HABITS[name] for name in names]
    crowd = [Intruder(port, habit, tls if secure else None, source) for habit, secure in found]
    running = [asyncio.create_task(each.run()) for each in crowd]
    try:
        await asyncio.gather(*(each.opened.wait() for each in crowd))
        yield crowd
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
