"""A request's body that is written only while somebody allows it.

Between asking whether a request may be sent and sending it lie waiting for a turn, a connection and its TLS: time enough to lose the
lead, or to stand still for minutes on a machine that hangs. So it is asked again when the bytes are about to be written. Without its
body a request is not complete, and the server does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from aiohttp import BytesPayload
from aiohttp.abc import AbstractStreamWriter


class GuardedBody(BytesPayload):
    """JSON, or bytes as they are, for one request; to be given to `ApiClient` as the body, once.

    Attributes:
        withheld: whether it was not written, as it was not allowed any more.
    """

    def __init__(self, body: Mapping[str, Any] | bytes, allowed: Callable[[], bool]) -> None:
        super().__init__(body if isinstance(body, bytes) else msgspec.json.encode(body))
        self.withheld = False
        self._allowed = allowed

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        """For aiohttp: write it, or break the connection off."""
        if not self._allowed():
            self.withheld = True
            raise ConnectionAbortedError("not allowed any more")
        await super().write_with_length(writer, content_length)
