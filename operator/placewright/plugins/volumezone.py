"""VolumeZone: a node must be in the zone and region of the pod's volumes, if these have labels. Implements PreFilter, Filter.

Volumes with node affinity are checked by VolumeBinding. This plugin checks the older labels of cloud providers' volumes. A label's value
may name several zones: `a__b`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from placewright.api.pods import PodInfo
from placewright.api.storage import WAIT_FOR_FIRST_CONSUMER, PersistentVolume, PersistentVolumeClaim, StorageClass
from placewright.cluster.cluster import Cluster
from placewright.cluster.storage import StorageObjects, claim_class
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.filters import NOTHING_TO_CHECK, ConstantReasonFilter
from placewright.framework.interface import BoolColumn, CycleState, PreFilterPlugin, PreFilterResult, Reads, Rows
from placewright.framework.rowwise import PlainRowVerdict, RowVerdict, RowwiseFilter
from placewright.framework.status import unresolvable
from placewright.plugins.shared import podclaims

NAME: Final = "VolumeZone"

#: The labels, each with the label that a node may have instead: stable names replaced beta names.
TOPOLOGY_LABELS: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
_SEPARATOR: Final = "__"


class Topology(NamedTuple):
    """A label of a volume, and the values that a node's label may have."""

    key: str
    values: frozenset[str]


class _Refused(Exception):
    """A claim has no volume; the message is for users."""


class VolumeZone(ConstantReasonFilter, RowwiseFilter, PreFilterPlugin):
    """Rejects nodes outside the zones of the pod's bound volumes; nodes without any such label pass."""

    name = NAME
    reads = Reads.CLUSTER
    rejection = unresolvable("node(s) had no available volume zone")

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Collect the labels of the pod's volumes; skip if there are none. A missing claim or volume rejects the pod."""
        if not pod.volumes:
            return NOTHING_TO_CHECK
        try:
            topologies = tuple(_topologies(pod, cluster.objects.storage))
        except _Refused as problem:
            return PreFilterResult(unresolvable(str(problem)))
        if not topologies:
            return NOTHING_TO_CHECK
        state.write(NAME, topologies)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows where all labels match, and rows without any of them."""
        inside = np.ones(len(rows), np.bool_)
        for topology in state.read(NAME, tuple):
            inside &= _lies_in(topology, cluster, rows)
        anywhere = np.ones(len(rows), np.bool_)
        for key in TOPOLOGY_LABELS:
            anywhere &= cluster.label(key).where(rows, _is_missing)
        return inside | anywhere

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict:
        """Judge rows without regard to other pods."""
        return PlainRowVerdict(self, state, pod, cluster)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """Return the labels, and the version of the nodes."""
        return (state.data.get(NAME), cluster.node_journal.position)

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare nodes, claims and volumes that come or change, and classes whose claims may wait."""
        changed = Action.ADD | Action.UPDATE
        return (
            event_with_hint(EventResource.STORAGE_CLASS, Action.ADD, _class_appears),
            event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            event_with_hint(EventResource.PERSISTENT_VOLUME_CLAIM, changed, podclaims.after_named_claim_change),
            event_with_hint(EventResource.PERSISTENT_VOLUME, changed, _volume_changes),
        )


def topologies_of(volume: PersistentVolume) -> tuple[Topology, ...]:
    """Return the topology labels of a volume. A value with an empty part is ignored."""
    labels = volume.metadata.labels or {}
    found = []
    for key in TOPOLOGY_LABELS:
        values = frozenset(part.strip() for part in labels.get(key, "").split(_SEPARATOR))
        if "" not in values:
            found.append(Topology(key, values))
    return tuple(found)


def _topologies(pod: PodInfo, storage: StorageObjects) -> Iterator[Topology]:
    for name in podclaims.named_claims(pod):
        if not name:
            raise _Refused("PersistentVolumeClaim had no name")
        claim = storage.claims.get(name, pod.namespace)
        if claim is None:
            raise _Refused(podclaims.not_found(name))
        volume = _volume_of(claim, storage)
        if volume is not None:
            yield from topologies_of(volume)


def _volume_of(claim: PersistentVolumeClaim, storage: StorageObjects) -> PersistentVolume | None:
    """Return the claim's volume; None while its class waits for the first consumer."""
    name = claim.spec.volume_name
    if name:
        volume = storage.volumes.get(name)
        if volume is None:
            raise _Refused(f'persistentvolume "{name}" not found')
        return volume
    class_name = claim_class(claim)
    if not class_name:
        raise _Refused("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = storage.classes.get(class_name)
    if storage_class is None:
        raise _Refused(f'storageclass.storage.k8s.io "{class_name}" not found')
    if storage_class.volume_binding_mode is None:
        raise _Refused(f'VolumeBindingMode not set for StorageClass "{class_name}"')
    if storage_class.volume_binding_mode != WAIT_FOR_FIRST_CONSUMER:
        raise _Refused("PersistentVolume had no name")
    return None


def _lies_in(topology: Topology, cluster: Cluster, rows: Rows) -> BoolColumn:
    def wanted(value: str | None) -> bool:
        return value in topology.values

    own, other = cluster.label(topology.key), TOPOLOGY_LABELS[topology.key]
    inside = own.where(rows, wanted)
    if other != topology.key:
        inside |= own.where(rows, _is_missing) & cluster.label(other).where(rows, wanted)
    return inside


def _is_missing(value: str | None) -> bool:
    return value is None


def _class_appears(_pod: PodInfo, _old: StorageClass | None, new: StorageClass | None) -> QueueingHint:
    return QueueingHint.when(isinstance(new, StorageClass) and new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER)


def _volume_changes(_pod: PodInfo, old: PersistentVolume | None, new: PersistentVolume | None) -> QueueingHint:
    before = topologies_of(old) if isinstance(old, PersistentVolume) else None
    return QueueingHint.when(isinstance(new, PersistentVolume) and topologies_of(new) != before)
