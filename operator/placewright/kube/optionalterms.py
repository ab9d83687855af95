"""Terms of reading a collection that only a plugin of another package wants: the scheduler can do without it. See `Source.optional`."""

from __future__ import annotations

from dataclasses import dataclass

from placewright.api.bytecount import bytes_of


@dataclass(frozen=True, slots=True)
class OptionalTerms:
    """The way to read such a collection. Nothing waits for its first list once a request for it has failed.

    Attributes:
        reader: the plugin that does without the collection if it cannot be read.
        poll_seconds: seconds from the end of one list to the next; None: the collection is watched.
        stale_after_seconds: after so many seconds without an answer all objects are told as deleted; None: never.
        most_bytes: bytes that the decoded objects may take together; objects beyond are left out.
        label_selector, field_selector: selectors as query parameters of the API; empty for everything.
    """

    reader: str
    poll_seconds: float | None = None
    stale_after_seconds: float | None = None
    most_bytes: int = 64 * 2**20
    label_selector: str = ""
    field_selector: str = ""


class ObjectBytes:
    """Counts the bytes that the objects of one collection take, by key.

    Attributes:
        total: bytes of all objects.
        overflowed: whether an object has been refused yet.
    """

    def __init__(self) -> None:
        self.total = 0
        self.overflowed = False
        self._sizes: dict[str, int] = {}

    def admits(self, key: str, item: object, most: int) -> bool:
        """Count an object in its latest form, unless all objects together would then take more than `most` bytes.

        Args:
            key: the object's key; its earlier form is not counted any more.
            item: the decoded object.
            most: the limit, in bytes.

        Returns:
            False when the object is not counted.
        """
        self.drop(key)
        size = bytes_of((key, item), most)
        if self.total + size > most:
            return False
        self._sizes[key] = size
        self.total += size
        return True

    def drop(self, key: str) -> None:
        """Stop counting an object, if it was counted."""
        self.total -= self._sizes.pop(key, 0)
