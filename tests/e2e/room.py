"""Plain arithmetic about room, independent of the scheduler's: is a node too full, would this pod have fitted?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from placewright.api.quantity import ceil_milli, nano

Object = dict[str, Any]


def cpu_of(pod: Object) -> int:
    """What its containers request, milli-CPU."""
    return sum(milli(each.get("resources", {}).get("requests", {}).get("cpu", "0")) for each in pod["spec"]["containers"])


def milli(text: str) -> int:
    """An amount of CPU in thousandths."""
    return ceil_milli(nano(text))


def holds_room(pod: Object) -> bool:
    """Whether it stands on a node and has not ended."""
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in ("Succeeded", "Failed")


class Room:
    """How full each node is."""

    def __init__(self, nodes: Iterable[Object], pods: Iterable[Object]) -> None:
        self._nodes = {each["metadata"]["name"]: each for each in nodes}
        self._cpu: dict[str, int] = defaultdict(int)
        self._pods: dict[str, int] = defaultdict(int)
        for each in filter(holds_room, pods):
            self._cpu[each["spec"]["nodeName"]] += cpu_of(each)
            self._pods[each["spec"]["nodeName"]] += 1

    def overfilled(self) -> list[str]:
        """Nodes with more on them than they allocate."""
        return [name for name in self._nodes if min(self._left(name)) < 0]

    def would_hold(self, pod: Object) -> list[str]:
        """Nodes on which this pod would fit: by room, by node selector, and by taints, of which these pods tolerate none."""
        return [name for name, node in self._nodes.items() if self._has_room(name, pod) and _accepts(node, pod)]

    def _has_room(self, name: str, pod: Object) -> bool:
        cpu, pods = self._left(name)
        return cpu >= cpu_of(pod) and pods >= 1

    def _left(self, name: str) -> tuple[int, int]:
        allocatable = self._nodes[name]["status"]["allocatable"]
        return milli(allocatable["cpu"]) - self._cpu[name], int(allocatable["pods"]) - self._pods[name]


def _accepts(node: Object, pod: Object) -> bool:
    labels = node["metadata"].get("labels") or {}
    wanted = pod["spec"].get("nodeSelector") or {}
    return wanted.items() <= labels.items() and not node["spec"].get("taints") and not node["spec"].get("unschedulable")
