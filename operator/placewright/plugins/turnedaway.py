"""Pods that kubelets turned away, counted by owner and node, in a bounded number of entries.

The entries are facts of the cluster. All profiles, their next generations and their shadows read the same entries, and each applies its own
arguments. Tenants decide how many there are. So an entry is dropped an hour after its last pod. If there are too many, of a namespace or in
all, the oldest are dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, NamedTuple

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.podstart import is_ready
from placewright.api.turnedaway import FailedPod, Owner, owner_of
from placewright.cluster.cluster import Cluster
from placewright.framework.sources import ObjectFollower, ObjectSource

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
        self._by_node: dict[NodeName, set[Owner]] = {}

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
        self._by_node.setdefault(node, set()).add(owner)
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
        own = self._by_namespace[owner.namespace]
        del own[key]
        if not own:
            del self._by_namespace[owner.namespace]
        owners = self._by_node[node]
        owners.remove(owner)
        if not owners:
            del self._by_node[node]
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
