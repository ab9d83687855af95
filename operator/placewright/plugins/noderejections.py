"""NodeRejections: avoids for a while nodes whose kubelet rejected pods of the same owner. Implements Filter.

A kubelet knows more than the scheduler: which CPUs and devices are aligned, which disk is full, which device plugin is broken. If it turns
a pod away, the pod fails and its owner creates another. A scheduler without memory sends that one to the same node at once. This plugin
leaves the node out for pods of this owner. The first time lasts `initialSeconds`, each further time twice as long, but at most
`maxSeconds`. Its record is clean after an hour without another rejection, or when a pod of the owner becomes Ready there.

Pods that kubelets turned away are facts of the cluster, which all profiles share. The owner is the pod's
controller, or the pod itself, by name, if it has none.

They are counted by owner and node, in a bounded number of entries.

The entries are facts of the cluster. All profiles, their next generations and their shadows read the same entries, and each applies its own
arguments. Tenants decide how many there are. So an entry is dropped an hour after its last pod. If there are too many, of a namespace or in
all, the oldest are dropped.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from typing import Annotated, Final, NamedTuple
from weakref import WeakKeyDictionary

import msgspec
import numpy as np

from placewright.api.counts import take_out
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.podstart import is_ready
from placewright.api.turnedaway import FailedPod, Owner, owner_of
from placewright.cluster.cluster import Cluster
from placewright.framework.constraints import Problem, within
from placewright.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    EventKeys,
    EventResource,
    QueueingHint,
    event_with_hint,
)
from placewright.framework.interface import (
    ROUNDING_SECONDS,
    BoolColumn,
    CycleState,
    FilterPlugin,
    Handle,
    Reads,
    Rejection,
    Rows,
)
from placewright.framework.sources import ObjectFollower, ObjectSource
from placewright.framework.status import unresolvable

#: Seconds after the last pod that a node turned away until the node has a clean record with that owner.
QUIET_SECONDS: Final = 3600.0
#: Pods turned away within this many seconds of the first are one round: they were bound before the scheduler could know.
ROUND_SECONDS: Final = 10.0
#: Most entries that are kept; each takes about 600 bytes with the longest names.
MOST_ENTRIES: Final = 16_384
#: Most entries of one namespace, so that a tenant's failing pods displace its own.
MOST_OF_A_NAMESPACE: Final = 2_048


class TurnedAway(NamedTuple):
    """The pods of one owner that one node turned away.

    Attributes:
        pods: number of pods since the record was clean.
        rounds: number of rounds in a row; pods that were turned away within ten seconds are one round.
        began: start of the last round, in seconds since 1970.
        last: time at which the last pod was turned away, in seconds since 1970.
        reason: kubelet's reason for the last pod.
    """

    pods: int
    rounds: int
    began: float
    last: float
    reason: str


class OwnerRecord:
    """The nodes that turned pods of one owner away.

    Attributes:
        nodes: record of each node; only `TurnedAwayPods` writes it.
        version: number that grows with every change, over all records.
    """

    __slots__ = ("__weakref__", "nodes", "version")

    def __init__(self) -> None:
        self.nodes: dict[NodeName, TurnedAway] = {}
        self.version = 0


_Key = tuple[Owner, NodeName]


class TurnedAwayPods(ObjectFollower[FailedPod]):
    """The record of one cluster. Pods that become Ready, and deleted nodes, clean it.

    Attributes:
        owners: records by owner; an owner without nodes has none. Only this class writes it.
    """

    def __init__(self, most: int = MOST_ENTRIES, most_of_a_namespace: int = MOST_OF_A_NAMESPACE) -> None:
        """Start empty, with at most `most` entries, and at most `most_of_a_namespace` of one namespace."""
        self._most = most
        self._most_of_a_namespace = most_of_a_namespace
        self._changes = 0
        self.owners: dict[Owner, OwnerRecord] = {}
        #: All entries, and those of each namespace, both in the order of their last change.
        self._order: OrderedDict[_Key, None] = OrderedDict()
        self._by_namespace: dict[str, OrderedDict[_Key, None]] = {}
        self._by_node: dict[NodeName, dict[Owner, None]] = {}

    def __len__(self) -> int:
        return len(self._order)

    def object_arrives(self, item: FailedPod, now: float) -> None:
        """Count a failed pod that a kubelet turned away."""
        if item.turned_away:
            self.note(owner_of(item.metadata), NodeName(item.spec.node_name), item.status.reason, now)

    def note(self, owner: Owner, node: NodeName, reason: str, now: float) -> None:
        """Count a pod that a node turned away; `now` is in seconds since 1970."""
        self.forget_old(now)
        record = self.owners.setdefault(owner, OwnerRecord())
        before = record.nodes.get(node)
        if before is None:
            after = TurnedAway(1, 1, now, now, reason)
        elif now - before.began < ROUND_SECONDS:
            after = before._replace(pods=before.pods + 1, last=now, reason=reason)
        else:
            after = TurnedAway(before.pods + 1, before.rounds + 1, now, now, reason)
        key = (owner, node)
        self._set(record, node, after)
        self._by_node.setdefault(node, {})[owner] = None
        for order in (self._order, self._by_namespace.setdefault(owner.namespace, OrderedDict())):
            order[key] = None
            order.move_to_end(key)
        self._keep_within_bounds(owner.namespace)

    def forget(self, owner: Owner, node: NodeName) -> bool:
        """Clean a node's record with an owner. Return False if it was clean."""
        if (owner, node) not in self._order:
            return False
        self._drop((owner, node))
        return True

    def pod_changes(self, old: PodInfo, new: PodInfo, row: int | None) -> None:
        """Clean the record of a node where a pod of the owner became Ready."""
        if self._order and is_ready(new) and not is_ready(old):
            self.forget(owner_of(new.pod.metadata), new.node_name)

    def row_ends(self, row: int, node: NodeName) -> None:
        """Drop the entries of a node that was deleted."""
        for owner in tuple(self._by_node.get(node, ())):
            self._drop((owner, node))

    def forget_old(self, now: float) -> None:
        """Drop entries of nodes that turned no pod away for an hour; `now` is in seconds since 1970."""
        while self._order:
            owner, node = oldest = next(iter(self._order))
            if self.owners[owner].nodes[node].last + QUIET_SECONDS > now:
                return
            self._drop(oldest)

    def _keep_within_bounds(self, namespace: str) -> None:
        own = self._by_namespace[namespace]
        while len(own) > self._most_of_a_namespace:
            self._drop(next(iter(own)))
        while len(self._order) > self._most:
            self._drop(next(iter(self._order)))

    def _set(self, record: OwnerRecord, node: NodeName, entry: TurnedAway | None) -> None:
        self._changes += 1
        record.version = self._changes
        if entry is None:
            del record.nodes[node]
        else:
            record.nodes[node] = entry

    def _drop(self, key: _Key) -> None:
        owner, node = key
        del self._order[key]
        take_out(self._by_namespace, owner.namespace, key)
        take_out(self._by_node, node, owner)
        record = self.owners[owner]
        self._set(record, node, None)
        if not record.nodes:
            del self.owners[owner]


def record_of(cluster: Cluster) -> TurnedAwayPods:
    """Return the record of a cluster. A shadow's cluster shares that of the live one."""
    return cluster.extension(TurnedAwayPods, TurnedAwayPods)


#: Failed pods have a watch of their own, because the watch of pods on nodes does not show failures.
FAILED_PODS: Final = ObjectSource(
    FailedPod, "", "pods", ("v1",), namespaced=True, field_selector="spec.nodeName!=,status.phase=Failed", follower=record_of
)


NAME: Final = "NodeRejections"
#: Event that a node is to be tried again for an owner, which is the event's subject.
TIME_PASSED: Final = ClusterEvent(NAME, Action.UPDATE, "NodeRejectionTimePassed")
_NO_NODES: Final[frozenset[NodeName]] = frozenset()
#: Doublings after which any wait has reached its bound.
_MOST_DOUBLINGS: Final = 20
#: Most nodes that the reasons of one pod name. The others share one reason, or messages would grow with the cluster.
_NAMED: Final = 8
_SHORTEST: Final = 10


class NodeRejectionsArgs(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Arguments of NodeRejections: seconds for which a node is left out, the first time and at most."""

    initial_seconds: Annotated[int, within(_SHORTEST, int(QUIET_SECONDS))] = 30
    max_seconds: Annotated[int, within(_SHORTEST, int(QUIET_SECONDS))] = 900

    def validate(self) -> list[Problem]:
        """Refuse a bound below the first wait."""
        if self.max_seconds < self.initial_seconds:
            return [("maxSeconds", str(self.max_seconds), f"initialSeconds ({self.initial_seconds}) or more")]
        return []


class _LeftOut(NamedTuple):
    """The nodes that are left out for an owner, until the first of them may be tried again.

    Attributes:
        version: version of the owner's record.
        until: seconds since 1970; infinite if no node is left out.
    """

    version: int
    until: float
    nodes: frozenset[NodeName]


class NodeRejections(FilterPlugin[NodeRejectionsArgs]):
    """Leaves nodes out for a growing time that turned away pods of the same owner."""

    name = NAME
    reads = Reads.NODE
    sources = (FAILED_PODS,)

    def __init__(self, args: NodeRejectionsArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._record = record_of(handle.cluster)
        self._left_out: WeakKeyDictionary[OwnerRecord, _LeftOut] = WeakKeyDictionary()
        #: The time at which the alarm of an owner rings.
        self._alarms: WeakKeyDictionary[OwnerRecord, float] = WeakKeyDictionary()

    def sign(self, pod: PodInfo) -> Hashable:
        """Return the nodes that are left out now, empty for nearly all pods. Only this reads the time, once for each attempt."""
        if not self._record.owners:
            return ()
        owner = owner_of(pod.pod.metadata)
        record = self._record.owners.get(owner)
        return () if record is None else self._brought_up_to_date(owner, record).nodes

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows whose node turned no pod of the owner away, or may be tried again."""
        out = [row for name in self._nodes_for(pod) if (row := cluster.row(name)) is not None]
        return ~np.isin(rows, out) if out else np.ones(len(rows), np.bool_)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Name each node with its pods, the kubelet's reason and the remaining seconds, if they are few."""
        owner = owner_of(pod.pod.metadata)
        record, now = self._record.owners.get(owner), self.handle.now()
        named = rows[:_NAMED]
        found = [Rejection(unresolvable(self._reason(owner, record, cluster.names[row], now)), rows[at : at + 1])
                 for at, row in enumerate(named.tolist())]  # fmt: skip
        others = rows[_NAMED:]
        return [*found, Rejection(unresolvable(f"node(s) turned away {_pods_of(owner, 2)}"), others)] if len(others) else found

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare new nodes, pods of the owner that become Ready, and the end of a wait."""
        return (
            event_with_hint(EventResource.NODE, Action.ADD),
            event_with_hint(
                EventResource.ASSIGNED_POD, Action.UPDATE, _owner_is_welcome, keys=EventKeys(_owners_of, _owners_that_are_welcome)
            ),
            event_with_hint(NAME, Action.UPDATE, _is_of, keys=EventKeys(_owners_of, _owners_whose_time_passed)),
        )

    def seconds_out(self, entry: TurnedAway) -> float:
        """Return for how many seconds a node is left out after its last round began."""
        return min(self.args.initial_seconds * 2.0 ** min(entry.rounds - 1, _MOST_DOUBLINGS), self.args.max_seconds)

    def _nodes_for(self, pod: PodInfo) -> frozenset[NodeName]:
        """Return the nodes that `sign` last found for the owner, so that columns fit their signature although time has passed."""
        record = self._record.owners.get(owner_of(pod.pod.metadata))
        if record is None:
            return _NO_NODES
        known = self._left_out.get(record)
        return self._found(record).nodes if known is None or known.version != record.version else known.nodes

    def _brought_up_to_date(self, owner: Owner, record: OwnerRecord) -> _LeftOut:
        now = self.handle.now()
        known = self._left_out.get(record)
        if known is None or known.version != record.version or now >= known.until:
            known = self._found(record)
        if known.nodes and now >= self._alarms.get(record, -math.inf):
            self._alarms[record] = known.until
            self.handle.wake_after(known.until - now + ROUNDING_SECONDS, TIME_PASSED, owner)
        return known

    def _found(self, record: OwnerRecord) -> _LeftOut:
        now = self.handle.now()
        ends = {node: entry.began + self.seconds_out(entry) for node, entry in record.nodes.items()}
        out = frozenset(node for node, end in ends.items() if end > now)
        found = self._left_out[record] = _LeftOut(record.version, min((ends[node] for node in out), default=math.inf), out)
        return found

    def _reason(self, owner: Owner, record: OwnerRecord | None, node: NodeName | None, now: float) -> str:
        entry = None if record is None or node is None else record.nodes.get(node)
        if entry is None:
            return f"node(s) turned away {_pods_of(owner, 2)}"
        left = max(math.ceil(entry.began + self.seconds_out(entry) - now), 0)
        return f"{node} turned away {entry.pods} {_pods_of(owner, entry.pods)} ({entry.reason}); tried again in {left} s"


def _pods_of(owner: Owner, number: int) -> str:
    return f"{'pod' if number == 1 else 'pods'} of {owner.name}"


def _owners_of(pod: PodInfo) -> Iterable[Hashable]:
    return (owner_of(pod.pod.metadata),)


def _owners_that_are_welcome(old: PodInfo | None, new: PodInfo | None) -> Iterable[Hashable]:
    """Return the owner of a pod that has become Ready; none for nearly all changes of pods."""
    return _owners_of(new) if old is not None and new is not None and is_ready(new) and not is_ready(old) else ()


def _owner_is_welcome(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
    return QueueingHint.when(owner_of(pod.pod.metadata) in _owners_that_are_welcome(old, new))


def _owners_whose_time_passed(_old: None, owner: Owner | None) -> Iterable[Hashable]:
    return () if owner is None else (owner,)


def _is_of(pod: PodInfo, _old: None, owner: Owner | None) -> QueueingHint:
    return QueueingHint.when(owner == owner_of(pod.pod.metadata))
