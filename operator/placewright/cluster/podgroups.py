"""Groups of pods that are placed all or none: what is declared, and which members stand on nodes."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, Final

from placewright.api.podgroups import (
    CoschedulingPodGroup,
    Form,
    GroupObject,
    GroupRef,
    NativePodGroup,
    PodGroup,
    VolcanoPodGroup,
    Workload,
    pod_group_of,
)
from placewright.api.pods import PodInfo
from placewright.cluster.storage import Table

#: The kinds kept here.
GROUP_KINDS: Final = (CoschedulingPodGroup, NativePodGroup, Workload, VolcanoPodGroup)
_RUNNING: Final = "Running"
_NOBODY: Final[AbstractSet[str]] = frozenset()


class GroupObjects:
    """What declares groups, a table a kind.

    Attributes:
        by_form: the same tables, by the form that they are of.
    """

    def __init__(self) -> None:
        coscheduling: Table[CoschedulingPodGroup] = Table()
        native: Table[NativePodGroup] = Table()
        workloads: Table[Workload] = Table()
        volcano: Table[VolcanoPodGroup] = Table()
        self.tables: Final[Mapping[type[Any], Table[Any]]] = MappingProxyType(
            {CoschedulingPodGroup: coscheduling, NativePodGroup: native, Workload: workloads, VolcanoPodGroup: volcano}
        )
        self.by_form: Final[Mapping[Form, Table[Any]]] = MappingProxyType(
            {Form.COSCHEDULING: coscheduling, Form.NATIVE: native, Form.WORKLOAD: workloads, Form.VOLCANO: volcano}
        )


class PodGroups:
    """The groups of one cluster. `Cluster` says who stands on a node; everybody else reads."""

    def __init__(self, objects: GroupObjects) -> None:
        """`objects`: what declares them."""
        self._objects = objects
        #: Uids of members on nodes; groups without any are not here.
        self._placed: dict[GroupRef, set[str]] = {}
        self._running: dict[GroupRef, int] = {}
        self._stirred: set[GroupRef] = set()
        self._moves = 0
        #: The version of the native groups, and the lowest priority among them.
        self._lowest: tuple[int, int | None] | None = None
        #: What was read from an object, as long as that is the one known.
        self._read: dict[GroupRef, tuple[GroupObject, PodGroup | None]] = {}

    @property
    def version(self) -> int:
        """Grows whenever a group is declared otherwise, or a member comes to a node or leaves it."""
        return self._moves + sum(table.version for table in self._objects.tables.values())

    def get(self, ref: GroupRef) -> PodGroup | None:
        """The group as it is declared now; None where nobody declares it."""
        item: GroupObject | None = self._objects.by_form[ref.form].get(ref.object_name, ref.namespace)
        if item is None:
            self._read.pop(ref, None)
            return None
        known = self._read.get(ref)
        if known is None or known[0] is not item:
            known = self._read[ref] = item, pod_group_of(item, ref)
        return known[1]

    def lowest_priority(self) -> int | None:
        """The lowest priority that a group has of its own; None while none has one."""
        table = self._objects.by_form[Form.NATIVE]
        if self._lowest is None or self._lowest[0] != table.version:
            own = [item.spec.priority for item in table.values() if item.spec.priority is not None]
            self._lowest = table.version, min(own, default=None)
        return self._lowest[1]

    def object_of(self, ref: GroupRef) -> GroupObject | None:
        """What declares the group, whole; None where nothing does."""
        item: GroupObject | None = self._objects.by_form[ref.form].get(ref.object_name, ref.namespace)
        return item

    def placed(self, ref: GroupRef) -> AbstractSet[str]:
        """Uids of the members that stand on a node, or are assumed there; a view, not to be kept over changes."""
        return self._placed.get(ref, _NOBODY)

    @property
    def placed_groups(self) -> int:
        """How many groups have members that stand on a node, or are assumed there."""
        return len(self._placed)

    def running(self, ref: GroupRef) -> int:
        """How many of them run."""
        return self._running.get(ref, 0)

    def take_stirred(self) -> set[GroupRef]:
        """The groups in which a member began or ceased to run since this was last asked; for who tells of it."""
        taken, self._stirred = self._stirred, set()
        return taken

    def enter(self, pod: PodInfo) -> None:
        """A pod came to a node."""
        if pod.pod_group is not None:
            self._placed.setdefault(pod.pod_group, set()).add(pod.uid)
            self._count_running(pod, 1)
            self._moves += 1

    def leave(self, pod: PodInfo) -> None:
        """A pod left its node."""
        if pod.pod_group is None:
            return
        members = self._placed[pod.pod_group]
        members.remove(pod.uid)
        if not members:
            del self._placed[pod.pod_group]
        self._count_running(pod, -1)
        self._moves += 1

    def replace(self, old: PodInfo, new: PodInfo) -> None:
        """A pod on a node changed, perhaps its group with it."""
        if old.pod_group != new.pod_group:
            self.leave(old)
            self.enter(new)
            return
        self._count_running(old, -1)
        self._count_running(new, 1)

    def _count_running(self, pod: PodInfo, sign: int) -> None:
        if pod.pod_group is None or pod.pod.status.phase != _RUNNING:
            return
        count = self._running.get(pod.pod_group, 0) + sign
        if count:
            self._running[pod.pod_group] = count
        else:
            self._running.pop(pod.pod_group, None)
        self._stirred.add(pod.pod_group)
