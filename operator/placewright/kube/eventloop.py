"""The event loop of the operator: uvloop's with one defect mended, or asyncio's if uvloop is not installed.

aiohttp connects a socket by itself and gives it to the loop as `create_connection(sock=…)`. If the server resets the connection while TLS
begins, uvloop (0.23) closes the descriptor too early. The socket object still has its number, and closes that number a second time when it
is collected. By then another connection may have the number: it is dead and never ends. Each later connection with that number fails with
"File descriptor 15 is used by transport …". A restart of the API server resets dozens of connections at once. Kopf's retries keep such
objects alive for seconds.

The mend stands in the loop, because Kopf opens its sessions itself: every client of the process connects by the loop.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

try:
    import uvloop
except ImportError:
    _fast: Callable[[], asyncio.AbstractEventLoop] | None = None
else:

    class MendedLoop(uvloop.Loop):
        """Connects as uvloop does. A socket object that it takes over gives up its descriptor, also if the connection fails."""

        async def create_connection(
            self, protocol_factory: Any, host: Any = None, port: Any = None, *, sock: socket.socket | None = None, **options: Any
        ) -> Any:
            """Connect; the arguments are those of asyncio."""
            try:
                return await super().create_connection(protocol_factory, host, port, sock=sock, **options)
            finally:
                if sock is not None:
                    # The transport closes the descriptor, or has closed it.
                    sock.detach()

    _fast = MendedLoop


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Choose the event loop of the process.

    Returns:
        For `asyncio.Runner`: the mended loop of uvloop; None for asyncio's own if uvloop is not installed.
    """
    return _fast
