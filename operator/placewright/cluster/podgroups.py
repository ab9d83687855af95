"""Groups of pods that are placed all or none: their declarations, and their members on nodes."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, Final

from placewright.api.boundedcache import forgets_unasked
from placewright.api.bytecount import estimate_bytes
from placewright.api.counts import add_count, take_out
from placewright.api.podgroups import (
    FORM_OF,
    Form,
    GroupObject,
    GroupRef,
    PodGroup,
    pod_group_of,
)
from placewright.api.pods import PodInfo
from placewright.cluster.storage import Table

#: The kinds kept here.
GROUP_KINDS: Final = tuple(FORM_OF)
_RUNNING: Final = "Running"
_NO_MEMBERS: Final[dict[str, None]] = {}


class GroupObjects:
    """The objects that declare groups, a table for each kind.

    Attributes:
        tables: tables by kind.
        by_form: the same tables, by the form of the declaration.
    """

    def __init__(self) -> None:
        self.tables: Final[Mapping[type[Any], Table[Any]]] = MappingProxyType({kind: Table() for kind in FORM_OF})
        self.by_form: Final[Mapping[Form, Table[Any]]] = MappingProxyType({FORM_OF[kind]: table for kind, table in self.tables.items()})


class PodGroups:
    """The groups of one cluster. `Cluster` reports members that come to a node or leave it; all others read."""

    def __init__(self, objects: GroupObjects) -> None:
        """Start without members."""
        self._objects = objects
        #: Uids of members on nodes; groups without any are not here.
        self._placed: dict[GroupRef, dict[str, None]] = {}
        self._running: dict[GroupRef, int] = {}
        self._stirred: set[GroupRef] = set()
        self._moves = 0
        #: The version of the table of native groups, and the lowest priority among them then.
        self._lowest: tuple[int, int | None] | None = None
        #: The group that was read from an object, valid while that object is the one in the table.
        self._read: dict[GroupRef, tuple[GroupObject, PodGroup | None]] = {}
        forgets_unasked(self)

    def forget_unasked(self) -> None:
        """Forget all groups that were read; a group that is asked for is read from its object again."""
        self._read.clear()

    @property
    def nbytes(self) -> int:
        """Bytes of the groups that were read."""
        return estimate_bytes([(ref, group) for ref, (_, group) in self._read.items()])

    @property
    def version(self) -> int:
        """Grows whenever a declaration changes, or a member comes to a node or leaves it."""
        return self._moves + sum(table.version for table in self._objects.tables.values())

    def get(self, ref: GroupRef) -> PodGroup | None:
        """Read a group as it is declared now.

        Returns:
            The group; None when no object declares it.
        """
        item = self.object_of(ref)
        if item is None:
            self._read.pop(ref, None)
            return None
        known = self._read.get(ref)
        # Decoded objects never change, so identity is enough to tell whether this one was read.
        if known is None or known[0] is not item:
            known = self._read[ref] = item, pod_group_of(item, ref)
        return known[1]

    def lowest_priority(self) -> int | None:
        """Return the lowest priority that a group has of its own; None while no group has one."""
        table = self._objects.by_form[Form.NATIVE]
        # Each search for victims asks first, so the minimum is kept until the table changes.
        if self._lowest is None or self._lowest[0] != table.version:
            own = [item.spec.priority for item in table.values() if item.spec.priority is not None]
            self._lowest = table.version, min(own, default=None)
        return self._lowest[1]

    def object_of(self, ref: GroupRef) -> GroupObject | None:
        """Find the object that declares a group.

        Returns:
            The object; None when there is none.
        """
        item: GroupObject | None = self._objects.by_form[ref.form].get(ref.object_name, ref.namespace)
        return item

    def placed(self, ref: GroupRef) -> AbstractSet[str]:
        """Return the members on nodes.

        Returns:
            Uids of members that stand on a node or are assumed there; a view, not to be kept over changes.
        """
        return self._placed.get(ref, _NO_MEMBERS).keys()

    @property
    def placed_groups(self) -> int:
        """Number of groups with members that stand on a node or are assumed there."""
        return len(self._placed)

    def running(self, ref: GroupRef) -> int:
        """Count the placed members that run.

        Returns:
            At most the number of placed members.
        """
        return self._running.get(ref, 0)

    def take_stirred(self) -> set[GroupRef]:
        """Return the groups in which a member began or ceased to run since the last call. The writer of group status asks."""
        taken, self._stirred = self._stirred, set()
        return taken

    def enter(self, pod: PodInfo) -> None:
        """Note that a pod came to a node."""
        if pod.pod_group is not None:
            self._placed.setdefault(pod.pod_group, {})[pod.uid] = None
            self._count_running(pod, 1)
            self._moves += 1

    def leave(self, pod: PodInfo) -> None:
        """Note that a pod left its node."""
        if pod.pod_group is None:
            return
        take_out(self._placed, pod.pod_group, pod.uid)
        self._count_running(pod, -1)
        self._moves += 1

    def replace(self, old: PodInfo, new: PodInfo) -> None:
        """Note that a pod on a node changed; its group may have changed, too."""
        if old.pod_group != new.pod_group:
            self.leave(old)
            self.enter(new)
            return
        self._count_running(old, -1)
        self._count_running(new, 1)

    def _count_running(self, pod: PodInfo, sign: int) -> None:
        if pod.pod_group is None or pod.pod.status.phase != _RUNNING:
            return
        add_count(self._running, pod.pod_group, sign)
        self._stirred.add(pod.pod_group)
