"""How a collection is read that the scheduler can do without, because only a plugin of another package wants it: see `Source.optional`."""

from __future__ import annotations

from dataclasses import dataclass

from placewright.api.bytecount import bytes_of


@dataclass(frozen=True, slots=True)
class OptionalTerms:
    """How such a collection is read. Nothing waits for its first list once a request for it has failed.

    Attributes:
        reader: the plugin that does without where it cannot be read.
        poll_seconds: how long after one list the next begins; None: it is watched.
        stale_after_seconds: after so long without an answer all objects are told as deleted; None: never.
        most_bytes: what the decoded objects may take together; those beyond are left out.
    """

    reader: str
    poll_seconds: float | None = None
    stale_after_seconds: float | None = None
    most_bytes: int = 64 * 2**20


class ObjectBytes:
    """Counts what the objects of one collection take, by key.

    Attributes:
        total: bytes of all of them.
        overflowed: whether an object has been refused yet.
    """

    def __init__(self) -> None:
        self.total = 0
        self.overflowed = False
        self._sizes: dict[str, int] = {}

    def admits(self, key: str, item: object, most: int) -> bool:
        """Count an object in its latest form; False, and not counted, where all together would take more than `most` bytes."""
        self.drop(key)
        size = bytes_of((key, item), most)
        if self.total + size > most:
            return False
        self._sizes[key] = size
        self.total += size
        return True

    def drop(self, key: str) -> None:
        """An object is not kept any more; fine for one that was not."""
        self.total -= self._sizes.pop(key, 0)
