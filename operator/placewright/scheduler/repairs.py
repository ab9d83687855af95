"""Counts the facts about the cluster that this process had wrong and mended, for metrics and the log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields


@dataclass(slots=True)
class Repairs:
    """Differences found and mended since the start.

    Attributes:
        missed: unscheduled pods that the queue did not know.
        vanished: pods in the queue that the API server no longer lists as unscheduled.
        outdated: pods in the queue that had changed.
        unbound: Bindings of unknown outcome that turned out not to exist.
        forgotten: pods that held room on a node although they are gone.
        replaced: pods that held room on a node although a younger pod had their name. Mostly their Binding reached the younger
            pod, on an API server that does not compare uids.
        nodes_missed: nodes that the columns did not know.
        nodes_vanished: nodes in the columns that do not exist.
        nodes_stale: nodes that had changed.
        pods_missed: pods on nodes that the columns did not count.
        pods_vanished: pods counted on a node that do not stand there.
        pods_stale: pods on nodes that had changed.
    """

    missed: int = 0
    vanished: int = 0
    outdated: int = 0
    unbound: int = 0
    forgotten: int = 0
    replaced: int = 0
    nodes_missed: int = 0
    nodes_vanished: int = 0
    nodes_stale: int = 0
    pods_missed: int = 0
    pods_vanished: int = 0
    pods_stale: int = 0

    @property
    def total(self) -> int:
        """The number of all repairs."""
        return sum(count for _, count in self.counts())

    def counts(self) -> Iterator[tuple[str, int]]:
        """Iterate over (kind, number), in the order above."""
        return ((one.name, getattr(self, one.name)) for one in fields(self))

    def since(self, before: Repairs) -> Repairs:
        """Return the repairs that were made after `before` was copied."""
        return Repairs(*(now - then for (_, now), (_, then) in zip(self.counts(), before.counts(), strict=True)))
