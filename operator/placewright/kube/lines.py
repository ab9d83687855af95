"""A byte stream cut into lines, whatever the sizes of chunks and lines."""

from __future__ import annotations

from typing import Final

#: Longer lines are refused; etcd holds no object above 1.5 MiB by default, and the largest anyone configures are a few times that.
LONGEST_LINE: Final = 64 * 2**20


class LineTooLong(ValueError):
    """A line exceeded the limit: the stream is not a watch, or hostile."""


class LineSplitter:
    """Collects chunks and gives back complete lines; linear in the bytes seen, however many chunks one line takes."""

    __slots__ = ("_length", "_limit", "_partial")

    def __init__(self, limit: int = LONGEST_LINE) -> None:
        self._partial: list[bytes] = []
        self._length = 0
        self._limit = limit

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their newlines; blank ones are left out. Raises `LineTooLong`."""
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if self._partial:
            self._partial.append(lines[0])
            lines[0] = b"".join(self._partial)
            self._partial.clear()
            self._length = 0
        self._keep(rest)
        return [line for line in lines if line]

    @property
    def pending(self) -> int:
        """Bytes of a line that has begun and not ended."""
        return self._length

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._partial.append(piece)
            self._length += len(piece)
            if self._length > self._limit:
                raise LineTooLong(f"a line of more than {self._limit} bytes")
