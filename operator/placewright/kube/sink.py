"""The receiver of the changes that a reflector tells, and the counts that the reflector keeps for metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

Told_contra = TypeVar("Told_contra", contravariant=True)


class Sink(Protocol[Told_contra]):
    """The receiver of a collection's changes, such as the cluster's columns. Called in the event loop; must not block."""

    def changed(self, old: Told_contra | None, new: Told_contra, /) -> None:
        """Take an object that appeared or changed. Not called for a version that was told already.

        Args:
            old: the object as last told; None for a new one.
            new: the object now.
        """

    def deleted(self, old: Told_contra, /) -> None:
        """Take an object that is gone, or that no longer matches the selectors."""

    def synced(self) -> None:
        """Note a complete list: every object that exists, and every deletion, was told. Called after each list.

        Also called after objects of an optional source were told as deleted because they had become too old.
        """


@dataclass(slots=True)
class ReflectorCounts:
    """Counts of one reflector since its start.

    Attributes:
        lists: complete lists.
        watches: watches begun.
        events: watch events, bookmarks included.
        bad_object: objects that could not be decoded, or that exceeded the limit of bytes of an optional source.
        malformed: answers that were no list or no event; each leads to a new list.
        expired: times that the server had forgotten the version to go on from.
        failed: requests that failed, and malformed answers.
        sink_error: errors that the sink raised.
    """

    lists: int = 0
    watches: int = 0
    events: int = 0
    bad_object: int = 0
    malformed: int = 0
    expired: int = 0
    failed: int = 0
    sink_error: int = 0
