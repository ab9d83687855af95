"""The operator's event loop: a connection that the server resets while TLS begins closes nobody else's descriptor."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
import socket
import ssl
import struct
from collections.abc import Callable

import aiohttp
import pytest
from aiohttp import web

from kubesandbox.auth.credentials import make_credentials
from placewright.kube.eventloop import loop_factory
from programs import on_linux, optional_module

pytestmark = on_linux

Factory = Callable[[], asyncio.AbstractEventLoop] | None


def reset(connection: socket.socket) -> None:
    """End a connection as the kernel ends those of a process that was killed with bytes unread."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


async def connect_and_be_reset(keep: list[socket.socket]) -> int:
    """Give the loop a socket that the server has just reset; return its number, and keep the object as the traceback of an error does."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.socket()
        ours.setblocking(False)
        await loop.sock_connect(ours, listener.getsockname())
        reset(listener.accept()[0])
    poll = select.poll()
    poll.register(ours)
    assert poll.poll(5000), "the reset has arrived"
    number = ours.fileno()
    keep.append(ours)
    with pytest.raises(OSError, match="reset"):
        await loop.create_connection(asyncio.Protocol, sock=ours, ssl=ssl.create_default_context(), server_hostname="localhost")
    return number


async def others_survive() -> bool:
    """Whether the connection that gets the number next is there after the first one's object is collected."""
    kept: list[socket.socket] = []
    number = await connect_and_be_reset(kept)
    with socket.socket() as next_one:
        assert next_one.fileno() == number, "the number is free again"
        kept.clear()
        await asyncio.sleep(0)  # the loop lets go of the transport
        gc.collect()
        try:
            os.fstat(number)
        except OSError:
            next_one.detach()
            return False
        return True


def run(factory: Factory) -> bool:
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(others_survive())


def test_the_loop_of_the_operator_closes_no_descriptor_twice() -> None:
    assert run(loop_factory())


def test_uvloop_is_the_loop_where_it_is_installed() -> None:
    uvloop = optional_module("uvloop")
    factory = loop_factory()
    assert factory is not None
    with contextlib.closing(factory()) as loop:
        assert isinstance(loop, uvloop.Loop)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_uvloop_still_has_the_defect() -> None:
    """Fails when uvloop has mended it: then `MendedLoop` is not needed any more."""
    assert not run(optional_module("uvloop").new_event_loop)


def test_a_request_over_a_socket_that_the_loop_took_over_is_answered_and_its_connection_is_kept() -> None:
    credentials = make_credentials()

    async def two_requests() -> None:
        tls = ssl.create_default_context(cadata=credentials.ca.decode())
        asked = []

        async def answer(request: web.BaseRequest) -> web.Response:
            asked.append(request.transport.get_extra_info("peername"))
            return web.Response(text="here")

        server = await asyncio.get_running_loop().create_server(web.Server(answer), "127.0.0.1", 0, ssl=credentials.server_context())
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as session:
            for _ in range(2):
                async with session.get(url) as got:
                    assert await got.text() == "here"
        server.close()
        assert len(set(asked)) == 1

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(two_requests())
