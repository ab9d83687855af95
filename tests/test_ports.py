"""Two runs of the suite at once do not take each other's ports."""

from __future__ import annotations

import asyncio
import errno
import socket

import pytest

from ports import reserved_port


async def test_who_names_a_reserved_port_can_listen_there_at_once() -> None:
    port = reserved_port()
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", port)
    async with server:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b""
        writer.close()


def test_nobody_listens_on_a_reserved_port() -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", reserved_port()))


def test_a_reserved_port_is_not_free() -> None:
    """The kernel gives whoever asks for any port one that is free."""
    port = reserved_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use") as refused:
        other.bind(("127.0.0.1", port))
    assert refused.value.errno == errno.EADDRINUSE
