"""Dry runs: preemption removes and adds pods to see whether a pod would fit, before any pod is evicted.

The columns themselves are changed and changed back. kube-scheduler clones the node instead; a clone of columns would cost all
rows for a trial of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from placewright.api.pods import PodInfo

#: Pods, each with the row that it is put on or taken from.
Moves = Sequence[tuple[int, PodInfo]]
#: Pods by uid, each with its net change: added (1) or removed (-1).
Net = dict[str, tuple[PodInfo, int]]
_NOTHING: Final[Net] = {}


class DryRunCluster:
    """The pods that one dry run adds and removes. Made by `Cluster.dry_run`."""

    def __init__(self, count: Callable[[Moves, int], None]) -> None:
        """Start without changes.

        Args:
            count: counts pods onto their rows (1) or off them (-1).
        """
        self._count = count
        self._net: dict[int, Net] = {}

    def add(self, pods: Moves) -> None:
        """Count pods onto their rows.

        Args:
            pods: each with its row; a pod may be on another row in truth.
        """
        self._count_in(pods, 1)

    def remove(self, pods: Moves) -> None:
        """Count pods off their rows."""
        self._count_in(pods, -1)

    def undo(self) -> None:
        """Restore every row. Undoing the net change is one step for each pod, however many steps the dry run took."""
        # Removed pods return before added ones go, so that no count is ever below zero in between.
        for sign in (1, -1):
            pods = [(row, pod) for row, net in self._net.items() for pod, more in net.values() for _ in range(-sign * more)]
            self._count(pods, sign)
        self._net.clear()

    @property
    def rows(self) -> Iterable[int]:
        """Rows that pods were added to or removed from."""
        return self._net.keys()

    def net(self, row: int | None) -> Mapping[str, tuple[PodInfo, int]]:
        """Return the net change of a row.

        Returns:
            Pods with their net changes, by uid.
        """
        return _NOTHING if row is None else self._net.get(row, _NOTHING)

    def _count_in(self, pods: Moves, sign: int) -> None:
        self._count(pods, sign)
        net_by_row = self._net
        for row, pod in pods:
            net = net_by_row.get(row)
            if net is None:
                net = net_by_row[row] = {}
            known = net.pop(pod.uid, None)
            more = sign if known is None else known[1] + sign
            if more:
                net[pod.uid] = (pod, more)


def net_of(dry_runs: Iterable[DryRunCluster], row: int | None) -> Net:
    """Add up the net changes of nested dry runs on one row.

    Returns:
        Pods with their net changes, by uid.
    """
    total: Net = {}
    for dry_run in dry_runs:
        for uid, (pod, more) in dry_run.net(row).items():
            total[uid] = (pod, total.get(uid, (pod, 0))[1] + more)
    return total
