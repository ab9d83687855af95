"""Pods that are taken away from their rows, or put on one, hypothetically: what preemption tries before anybody is evicted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placewright.api.pods import PodInfo

#: Pods, each with the row that it is put on or taken from.
Moves = Sequence[tuple[int, PodInfo]]


class Supposition:
    """What is supposed, and how to forget it again; made by `Cluster.supposing`."""

    def __init__(self, suppose: Callable[[Moves, int], None]) -> None:
        """`suppose` counts pods onto their rows (1) or off them (-1)."""
        self._suppose = suppose
        self._net: dict[tuple[int, str], tuple[PodInfo, int]] = {}

    def add(self, pods: Moves) -> None:
        """As if these pods were there, too."""
        self._note(pods, 1)

    def remove(self, pods: Moves) -> None:
        """As if these pods were not there."""
        self._note(pods, -1)

    def undo(self) -> None:
        """Everything as it was before."""
        for sign in (1, -1):
            self._suppose([(row, pod) for (row, _), (pod, net) in self._net.items() for _ in range(-sign * net)], sign)
        self._net.clear()

    def _note(self, pods: Moves, sign: int) -> None:
        self._suppose(pods, sign)
        net = self._net
        for row, pod in pods:
            known = net.pop((row, pod.uid), None)
            if known is None:
                net[row, pod.uid] = (pod, sign)
            elif known[1] + sign:
                net[row, pod.uid] = (pod, known[1] + sign)
