"""VolumeRestrictions: volumes that only one pod may use. Implements PreFilter, Filter.

Disks that a pod names itself (GCE, EBS, iSCSI, Ceph) exclude each other on one node. A claim with the access mode ReadWriteOncePod is for
one pod in the whole cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from placewright.api.pods import PodInfo
from placewright.api.storage import READ_WRITE_ONCE_POD
from placewright.cluster.cluster import Cluster
from placewright.cluster.volumes import Disk, disks_of
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, event_with_hint
from placewright.framework.filters import NOTHING_TO_CHECK
from placewright.framework.interface import (
    BoolColumn,
    CycleState,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    Rejection,
    Rows,
)
from placewright.framework.rowwise import RowVerdict, RowwiseFilter
from placewright.framework.status import unresolvable, unschedulable
from placewright.plugins.shared import podclaims
from placewright.plugins.shared.hints import was_in_the_way

NAME: Final = "VolumeRestrictions"

_DISK: Final = unschedulable("node(s) had no available disk")
REASON_ONE_POD: Final = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
_ONE_POD: Final = unschedulable(REASON_ONE_POD)


@dataclass(frozen=True, slots=True)
class _InUse:
    """The pod's disks and claims that other pods use.

    Attributes:
        disks: rows where a disk of the pod is in use.
        claims: exclusive claims of the pod that a pod on any node uses.
        kept: exclusive claims that are kept for a nominated pod; evicting victims does not free them.
    """

    disks: frozenset[int]
    claims: frozenset[str]
    kept: frozenset[str] = frozenset()


class _RowwiseUse(RowVerdict):
    """The disks and claims in use with one row changed."""

    def __init__(self, pod: PodInfo, in_use: _InUse, cluster: Cluster) -> None:
        exclusive = in_use.claims
        self._kept = bool(in_use.kept)
        self._cluster = cluster
        self._namespace = pod.namespace
        self._disks = _disks(pod)
        self._exclusive = exclusive
        self._users = {row: self._users_on(row) for row in cluster.rows().tolist()} if exclusive else {}
        self._total = sum(self._users.values(), Counter())

    def passes(self, rows: Rows) -> BoolColumn:
        """Allow rows where the pod's disks are free, if no pod anywhere uses its exclusive claims."""
        return ~self._taken(rows) & ~np.fromiter(map(self._claimed, rows.tolist()), np.bool_, len(rows))

    def explain(self, rows: Rows) -> list[Rejection]:
        """Reject rows by disks first, then by claims."""
        return _by_reason(rows, self._taken(rows))

    def _taken(self, rows: Rows) -> BoolColumn:
        return np.isin(rows, list(self._cluster.volumes.taken(self._disks)))

    def _claimed(self, row: int) -> bool:
        if self._kept or not self._exclusive:
            return self._kept
        before, now = self._users[row], self._users_on(row)
        return any(self._total[claim] - before[claim] + now[claim] > 0 for claim in self._exclusive)

    def _users_on(self, row: int) -> Counter[str]:
        pods = (pod for pod in self._cluster.volumes.pods(row) if pod.namespace == self._namespace)
        return Counter(claim for pod in pods for claim in podclaims.named_claims(pod) if claim in self._exclusive)


class VolumeRestrictions(PreFilterPlugin, RowwiseFilter):
    """Rejects nodes where a disk is in use, and all nodes while the pod's exclusive claim is in use."""

    name = NAME
    reads = Reads.CLUSTER

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Find disks and claims in use; skip pods that need none of them. A missing claim rejects the pod."""
        if not pod.volumes:
            return NOTHING_TO_CHECK
        exclusive: list[str] = []
        for name in podclaims.named_claims(pod):
            claim = cluster.objects.storage.claims.get(name, pod.namespace)
            if claim is None:
                return PreFilterResult(unresolvable(podclaims.not_found(name)))
            if READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()):
                exclusive.append(name)
        in_use = {name for name in exclusive if cluster.volumes.claimed(pod.namespace, name) > 0}
        kept = self._kept_for_nominated(pod) & set(exclusive) if exclusive else frozenset()
        in_use |= kept
        disks = _disks(pod)
        if not disks and not in_use:
            return NOTHING_TO_CHECK
        state.write(NAME, _InUse(cluster.volumes.taken(disks), frozenset(in_use), kept))
        return PreFilterResult()

    def _kept_for_nominated(self, pod: PodInfo) -> frozenset[str]:
        """Return claims of the pod's namespace that nominated pods of at least its priority will use.

        kube-scheduler keeps only the node for them. There the order of the queue decides whether a lower pod takes the claim first.
        """
        others = (other for other, _ in self.handle.nominated_before(pod) if other.namespace == pod.namespace)
        return frozenset(name for other in others for name in podclaims.named_claims(other))

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows where the pod's disks are free; none if its claims are in use."""
        found = state.read(NAME, _InUse)
        if found.claims:
            return np.zeros(len(rows), np.bool_)
        return ~np.isin(rows, list(found.disks)) if found.disks else np.ones(len(rows), np.bool_)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Reject rows by disks first, then by claims."""
        return _by_reason(rows, np.isin(rows, list(state.read(NAME, _InUse).disks)))

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict:
        """Judge one changed row at a time."""
        return _RowwiseUse(pod, state.read(NAME, _InUse), cluster)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """Return the disks and claims in use; None for pods that Filter skips."""
        return (state.data.get(NAME), cluster.size)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare pods that give up a volume, new nodes, and claims that the pod waits for."""
        return (
            event_with_hint(EventResource.POD, Action.DELETE, was_in_the_way(PodInfo, _used_a_volume)),
            event_with_hint(EventResource.NODE, Action.ADD),
            event_with_hint(EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD, podclaims.after_named_claim_change),
        )


def _by_reason(rows: Rows, taken: BoolColumn) -> list[Rejection]:
    return [Rejection(status, which) for status, which in ((_DISK, rows[taken]), (_ONE_POD, rows[~taken])) if len(which)]


def _disks(pod: PodInfo) -> list[Disk]:
    return [disk for volume in pod.volumes for disk in disks_of(volume)]


def _used_a_volume(pod: PodInfo, old: PodInfo) -> bool:
    """Return whether a pod used one of the pod's disks, or in its namespace one of its claims.

    kube-scheduler ignores pods of other namespaces, although a disk that they use is in use for all.
    """
    if old.namespace == pod.namespace and not set(podclaims.named_claims(pod)).isdisjoint(podclaims.named_claims(old)):
        return True
    return any(exclude_each_other(mine, theirs) for mine in _disks(pod) for theirs in _disks(old))


def exclude_each_other(one: Disk, other: Disk) -> bool:
    """Return whether two pods cannot have these disks on the same node."""
    return one.identity == other.identity and not (one.read_only and other.read_only)
