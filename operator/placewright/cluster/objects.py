"""Objects that are neither nodes nor pods, as the API server shows them, for the plugins that read them.

`PodGroups` has the groups of pods that are placed all or none: their declarations, and their members on nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar, cast

from placewright.api.boundedcache import forgets_unasked
from placewright.api.bytecount import estimate_bytes
from placewright.api.counts import add_count, take_out
from placewright.api.objectbounds import bounded
from placewright.api.podgroups import (
    FORM_OF,
    CompositePodGroup,
    Disruption,
    Form,
    GroupObject,
    GroupRef,
    NativePodGroup,
    PodGroup,
    parent_of,
    pod_group_of,
)
from placewright.api.pods import PodInfo
from placewright.api.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from placewright.cluster.devices import DEVICE_KINDS, DeviceObject, DeviceObjects
from placewright.cluster.journal import Log
from placewright.cluster.storage import STORAGE_KINDS, Named, StorageObject, StorageObjects, Table, key_of

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
        with_parent = (NativePodGroup, CompositePodGroup)
        tables = {kind: Table[Any](_parent_key) if kind in with_parent else Table() for kind in FORM_OF}
        self.tables: Final[Mapping[type[Any], Table[Any]]] = MappingProxyType(tables)
        self.by_form: Final[Mapping[Form, Table[Any]]] = MappingProxyType({FORM_OF[kind]: table for kind, table in self.tables.items()})


def _parent_key(item: NativePodGroup | CompositePodGroup) -> str:
    return "" if (parent := parent_of(item)) is None else f"{parent.namespace}/{parent.name}"


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
        #: Notes of readers about trees, as of these versions of the tables.
        self._notes: dict[Any, Any] = {}
        self._noted_at: tuple[int, ...] = ()
        #: The version of the table of native groups, and the lowest priority among them then.
        self._lowest: tuple[int, int | None] | None = None
        #: The group that was read from an object, valid while that object is the one in the table.
        self._read: dict[GroupRef, tuple[GroupObject, PodGroup | None]] = {}
        forgets_unasked(self)

    def forget_unasked(self) -> None:
        """Forget all groups that were read; a group that is asked for is read from its object again."""
        self._read.clear()
        self._notes.clear()

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

    def children(self, ref: GroupRef) -> list[PodGroup]:
        """Return the child groups of a composite group, the oldest first, as upstream tries them; none for another group."""
        if ref.form is not Form.COMPOSITE:
            return []
        tables = [self._objects.by_form[form] for form in (Form.NATIVE, Form.COMPOSITE)]
        items = [item for table in tables for item in table.where(f"{ref.namespace}/{ref.name}")]
        refs = [GroupRef(FORM_OF[type(item)], ref.namespace, item.metadata.name) for item in items]
        return sorted((child for each in refs if (child := self.get(each)) is not None), key=lambda child: (child.created, child.ref))

    def lineage(self, ref: GroupRef) -> list[PodGroup]:
        """Return a group and the composite groups above it, from the leaf towards the root.

        The list ends at a group whose parent does not exist, and before a group that is in it already.
        """
        found: dict[GroupRef, PodGroup] = {}
        group = self.get(ref)
        if group is not None and group.parent is None:
            return [group]  # nearly all groups; asked for each member
        while group is not None and group.ref not in found:
            found[group.ref] = group
            group = None if group.parent is None else self.get(group.parent)
        return list(found.values())

    def evicted_with(self, ref: GroupRef) -> GroupRef:
        """Return the highest group above a group that is evicted as a whole; the group itself if there is none."""
        above = reversed(self.lineage(ref)[1:])
        return next((group.ref for group in above if group.disruption is Disruption.POD_GROUP), ref)

    def leaves(self, ref: GroupRef) -> Sequence[GroupRef]:
        """Return the groups at or below a group that have pods as members."""
        notes = self.notes_on_trees()
        if ref not in notes:
            found, seen, ahead = [], {ref}, [ref]
            while ahead:
                each = ahead.pop()
                if each.form is not Form.COMPOSITE:
                    found.append(each)
                below = [child.ref for child in self.children(each) if child.ref not in seen]  # composite groups may be a cycle
                seen.update(below)
                ahead += below
            notes[ref] = found
        return cast(Sequence[GroupRef], notes[ref])

    def notes_on_trees(self) -> dict[Any, Any]:
        """Return what readers note about trees. Every member of a tree asks, so the notes last until the next change of a group."""
        versions = tuple(self._objects.by_form[form].version for form in (Form.NATIVE, Form.COMPOSITE))
        if versions != self._noted_at:
            self._noted_at, self._notes = versions, {}
        return self._notes

    def placed(self, ref: GroupRef) -> AbstractSet[str]:
        """Return the members on nodes. The members of a composite group are the members of all groups below it.

        Returns:
            Uids of members that stand on a node or are assumed there; a view, not to be kept over changes.
        """
        if ref.form is Form.COMPOSITE:
            return {uid for leaf in self.leaves(ref) for uid in self.placed(leaf)}
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


#: The kinds kept here; the reflectors watch these.
_OwnObject = Namespace | Service | ReplicationController | ReplicaSet | StatefulSet | PodDisruptionBudget
#: `Named` stands for the kinds that plugins declare.
ClusterObject = _OwnObject | StorageObject | DeviceObject | GroupObject | Named
N = TypeVar("N", bound=Named)
_OWN_KINDS: Final = (Namespace, Service, ReplicationController, ReplicaSet, StatefulSet, PodDisruptionBudget)
KINDS: Final = (*_OWN_KINDS, *STORAGE_KINDS, *DEVICE_KINDS, *GROUP_KINDS)
_NO_LABELS: Final[Mapping[str, str]] = {}


#: Changes that are remembered for readers; only a list of everything brings more at once.
_CHANGES: Final = 4096


class ObjectChange(NamedTuple):
    """An object of this kind and key appeared, changed or went."""

    kind: type[ClusterObject]
    key: str


class ClusterObjects:
    """Namespaces, Services, workloads and disruption budgets by `namespace/name` (namespaces by name), and tables of the other kinds.

    Attributes:
        version: grows with every change of a kind that has no table; a fingerprint for columns that read these kinds.
        changes: the objects of these kinds that appeared, changed or went, in order.
        namespaces: objects by name.
        services: objects by `namespace/name`.
        replication_controllers: objects by `namespace/name`.
        replica_sets: objects by `namespace/name`.
        stateful_sets: objects by `namespace/name`.
        disruption_budgets: objects by `namespace/name`.
        storage: volumes and their objects, with versions of their own.
        devices: devices and claims to them, with versions of their own.
        pod_groups: objects that declare groups of pods; read through `Cluster.pod_groups`.

    Objects that plugins declare are in tables of their own: see `of`.
    """

    def __init__(self) -> None:
        self.version = 0
        self.changes: Log[ObjectChange] = Log(_CHANGES)
        self.namespaces: dict[str, Namespace] = {}
        self.services: dict[str, Service] = {}
        self.replication_controllers: dict[str, ReplicationController] = {}
        self.replica_sets: dict[str, ReplicaSet] = {}
        self.stateful_sets: dict[str, StatefulSet] = {}
        self.disruption_budgets: dict[str, PodDisruptionBudget] = {}
        self.storage = StorageObjects()
        self.devices = DeviceObjects()
        self.pod_groups = GroupObjects()
        self._tables: dict[type[Any], Table[Any]] = {**self.storage.tables, **self.devices.tables, **self.pod_groups.tables}
        workloads = (self.services, self.replication_controllers, self.replica_sets, self.stateful_sets, self.disruption_budgets)
        self._by_kind: dict[type[ClusterObject], dict[str, Any]] = dict(zip(_OWN_KINDS, (self.namespaces, *workloads), strict=True))

    def put(self, item: ClusterObject) -> ClusterObject | None:
        """Add or replace an object, without those of its fields that are beyond their bound.

        Returns:
            The object as it was before; None for a new object.
        """
        item = bounded(item)
        table = self._table(type(item))
        if table is not None:
            known: ClusterObject | None = table.put(item)
            return known
        kept, key = self._by_kind[type(item)], key_of(item.metadata)
        old: ClusterObject | None = kept.get(key)
        kept[key] = item
        self._note(type(item), key)
        return old

    def remove(self, item: ClusterObject) -> ClusterObject | None:
        """Remove an object.

        Args:
            item: an object of a kind in `KINDS`; only its kind and name count.

        Returns:
            The object as it was before; None when it was unknown.
        """
        self.storage.selectors.forget(type(item), item.metadata)
        table = self._table(type(item))
        if table is not None:
            known: ClusterObject | None = table.remove(item)
            return known
        key = key_of(item.metadata)
        old: ClusterObject | None = self._by_kind[type(item)].pop(key, None)
        if old is not None:
            self._note(type(item), key)
        return old

    def of(self, kind: type[N]) -> Table[N]:
        """Return the objects of a kind that a plugin declares as its source; an empty table if none was read.

        The table's `version` grows with every change: a fingerprint for columns that read it.

        Raises:
            TypeError: the kind is an attribute of this class.
        """
        table = self._table(kind)
        if table is None:
            raise TypeError(f"{kind.__name__} has no table of its own: see the attributes of ClusterObjects")
        return table

    def _table(self, kind: type[Any]) -> Table[Any] | None:
        """Return the table of a kind, and make it if there is none; None for kinds that share one version."""
        table = self._tables.get(kind)
        if table is None and kind not in self._by_kind:
            table = self._tables[kind] = Table()
        return table

    def _note(self, kind: type[ClusterObject], key: str) -> None:
        self.version += 1
        self.changes.append(ObjectChange(kind, key))

    def of_kind(self, kind: type[ClusterObject]) -> Mapping[str, Any]:
        """Return the objects of a kind that has no table."""
        return self._by_kind[kind]

    def shown(self) -> Iterator[ClusterObject]:
        """Iterate over all objects as the API server showed them, without what is assumed about some of them."""
        for table in self._tables.values():
            yield from table.all_shown()
        for kept in self._by_kind.values():
            yield from kept.values()

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """Return the labels of a namespace.

        Returns:
            The labels; empty when the namespace is unknown.
        """
        namespace = self.namespaces.get(name)
        return (namespace.metadata.labels if namespace else None) or _NO_LABELS
