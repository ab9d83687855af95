"""The pods whose place in the queue may have changed, noted for one reader, and only while it reads.

A reader that shows all waiting pods looks at these, and not at all pods again. Nothing is noted without a reader, because every decision
passes here.
"""

from __future__ import annotations

from collections.abc import Iterable


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
