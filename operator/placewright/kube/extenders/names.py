"""The addresses of an extender's host, looked up by threads of the extender's own.

Looking up a name blocks a thread until the name servers answer, half a minute where they do not. The event loop has few threads for that,
and they read new credentials and find the API server, too. An extender, or whoever it redirects to, must not hold all of them.
"""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from aiohttp.abc import AbstractResolver, ResolveResult

#: Look-ups of one extender at once; its own host's are one, further ones come of redirects.
_THREADS: Final = 2
_AS_NUMBERS: Final = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


class ExtenderNames(AbstractResolver):
    """Looks names up for one extender.

    To be closed; a look-up that hangs then ends by itself.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="extender's names")

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        """All addresses of the host; raises `OSError` where it has none."""
        look_up = partial(socket.getaddrinfo, host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG)
        found = await asyncio.get_running_loop().run_in_executor(self._threads, look_up)
        return [
            ResolveResult(hostname=host, host=str(address[0]), port=port, family=kind, proto=protocol, flags=_AS_NUMBERS)
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        """Look nothing up any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)
