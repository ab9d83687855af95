"""One line of the feed, and the same packed for readers that take gzip.

A reader's lines are one gzip stream. Each line is packed by itself into whole blocks that refer to nothing before them (RFC 1951, 3.2; by
zlib's sync flush), so that the packed line, too, is made once for all readers, whenever they joined. The stream has no trailer, as it has
no end.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

import msgspec

#: Stands before the first packed line: deflate, without a name, a time or a system (RFC 1952, 2.3).
PACKED_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
#: The fastest: lines are names and numbers that repeat, which it packs to a fifth as well as others do.
_LEVEL: Final = 1


class FeedLine:
    """A line.

    Attributes:
        plain: bytes of the line, with the line end.
    """

    __slots__ = ("_packed", "plain")

    def __init__(self, plain: bytes) -> None:
        """Pack nothing yet."""
        self.plain = plain
        self._packed: bytes | None = None

    @classmethod
    def of(cls, message: dict[str, Any]) -> FeedLine:
        """Encode a message."""
        return cls(msgspec.json.encode(message) + b"\n")

    @property
    def packed(self) -> bytes:
        """The line as a piece of a gzip stream; made when the first reader wants it."""
        if self._packed is None:
            packing = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
            self._packed = packing.compress(self.plain) + packing.flush(zlib.Z_SYNC_FLUSH)
        return self._packed

    def as_read(self, *, packed: bool) -> bytes:
        """Return the bytes for a reader."""
        return self.packed if packed else self.plain


#: Nothing, said so that both sides notice a broken connection.
EMPTY_LINE: Final = FeedLine(b"\n")
