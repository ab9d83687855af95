"""Readers of the console's feed, as a process of their own: what they do costs the measured operator nothing.

On standard input each line is a number of readers, and how many of them are slow: `100 10`. Slow readers take what the kernel has room for,
and then nothing more. Each line is answered by one with the number of bytes that were read so far and the number of streams that ended.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
from typing import Final

#: Bytes that the kernel holds for a slow reader, about.
_SMALL_BUFFER: Final = 4096
_PIECE: Final = 2**18


class Readers:
    """Opens and closes streams of one server."""

    def __init__(self, port: int) -> None:
        """Open nothing yet.

        Args:
            port: of HTTPS on loopback.
        """
        self._port = port
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        self._tasks: list[tuple[asyncio.Task[None], bool]] = []
        self.read = 0
        self.ended = 0

    async def become(self, readers: int, slow: int) -> None:
        """Have so many streams. Some of them are slow.

        Args:
            readers: all of them.
            slow: that read nothing after the beginning.
        """
        for task, _ in self._tasks:
            task.cancel()
        await asyncio.gather(*(task for task, _ in self._tasks), return_exceptions=True)
        self._tasks = [(asyncio.create_task(self._one(slow=place < slow)), place < slow) for place in range(readers)]

    async def _one(self, *, slow: bool) -> None:
        raw = socket.create_connection(("127.0.0.1", self._port))
        if slow:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL_BUFFER)
        raw.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=raw, ssl=self._tls, server_hostname="localhost", limit=_PIECE)
        try:
            writer.write(b"GET /feed HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if slow:
                await reader.readexactly(1)
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                await asyncio.Event().wait()
            while piece := await reader.read(_PIECE):
                self.read += len(piece)
            self.ended += 1
        finally:
            writer.transport.abort()


async def _serve(port: int) -> None:
    readers, loop = Readers(port), asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        many, slow = map(int, line.split())
        if many >= 0:
            await readers.become(many, slow)
        sys.stdout.write(f"{readers.read} {readers.ended}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
