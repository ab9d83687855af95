"""What was believed of the cluster, turned out wrong, and was put right: counted, so that somebody can see how often it happens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Repairs:
    """Differences found and mended since the start.

    Attributes:
        missed: unscheduled pods that the queue did not know.
        vanished: pods in the queue that the API server does not list as unscheduled any more.
        unbound: Bindings of unknown outcome that turned out not to exist.
        forgotten: pods that held room on a node although they are gone.
        replaced: pods that held room on a node although a watch showed that a younger pod has their name. Most of them come of a Binding
            that reached the younger pod, on an API server that does not compare uids.
    """

    missed: int = 0
    vanished: int = 0
    unbound: int = 0
    forgotten: int = 0
    replaced: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.missed + self.vanished + self.unbound + self.forgotten + self.replaced
