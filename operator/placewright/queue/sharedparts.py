"""The objects that all profile queues share, and one of them: the note of pods whose place in the queue may have changed.

Pods are noted for one reader, and only while it reads: a reader that shows all waiting pods looks at these, and not at all pods again.
Nothing is noted without a reader, because every decision passes here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from placewright.queue.hints import Timed
from placewright.queue.room import GroupGate, RoomSizes


class ChangedPods:
    """The uids of pods that came, moved, or went since they were last taken.

    Example:
        changed.begin()
        ...                     # pods come and go
        uids = changed.take(100)
        changed.end()

    Attributes:
        uids: noted and not taken yet, in order of their first change; None without a reader.
    """

    __slots__ = ("uids",)

    def __init__(self) -> None:
        self.uids: dict[str, None] | None = None

    def begin(self, first: Iterable[str] = ()) -> None:
        """Note changes from now on.

        Args:
            first: uids that are taken before all others: the pods that the reader does not know yet.

        Raises:
            RuntimeError: there is a reader already, which would miss what another one takes.
        """
        if self.uids is not None:
            raise RuntimeError("the changed pods of a queue have one reader")
        self.uids = dict.fromkeys(first)

    def end(self) -> None:
        """Note no more changes; harmless without a reader."""
        self.uids = None

    def note(self, uid: str) -> None:
        """Note a pod, while there is a reader."""
        if self.uids is not None:
            self.uids[uid] = None

    def take(self, most: int) -> list[str]:
        """Take noted pods off, the ones that changed first.

        Args:
            most: pods at most.

        Returns:
            Their uids; none without a reader.
        """
        noted = self.uids
        if not noted:
            return []
        taken = [uid for uid, _ in zip(noted, range(most), strict=False)]
        for uid in taken:
            del noted[uid]
        return taken


class Making(NamedTuple):
    """The objects that all profile queues share.

    Attributes:
        sizes: places in each profile's room.
        ready: called when a pod may be handed out that could not be handed out before.
        clock: seconds, monotonic.
        timed: wraps hints to report how long they take; None for no report.
        changed: notes the pods that come, move, or go.
        gate: closed while a group is being decided.
    """

    sizes: RoomSizes
    ready: Callable[[], None]
    clock: Callable[[], float]
    timed: Timed | None
    changed: ChangedPods
    gate: GroupGate
