"""NodeVolumeLimits: a node takes only so many volumes of each CSI driver. Implements PreFilter, Filter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from placewright.api.objects import Volume
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.apart import FilterAsJudge, Judge, JudgesApart
from placewright.framework.events import Action, EventInterest, EventResource, interest
from placewright.framework.interface import (
    BoolColumn,
    CycleState,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    Rejection,
    Rows,
)
from placewright.framework.status import SKIP, Status, error, unresolvable, unschedulable
from placewright.plugins.csimigration import is_migratable
from placewright.plugins.nodevolumelimits import hints
from placewright.plugins.nodevolumelimits.apart import CountingJudge
from placewright.plugins.nodevolumelimits.attachable import (
    Attachable,
    ClaimNotFoundError,
    CsiResolver,
    UnusableVolumeError,
)
from placewright.plugins.nodevolumelimits.attached import AttachedVolumes, CsiLimits

NAME: Final = "NodeVolumeLimits"
REASON: Final = "node(s) exceed max volume count"

_FULL: Final = unschedulable(REASON)
_NOTHING_TO_CHECK: Final = PreFilterResult(SKIP)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What must be attached for the pod, or why that cannot be known: then no node will do."""

    volumes: frozenset[Attachable]
    problem: Status | None = None


class NodeVolumeLimits(PreFilterPlugin, JudgesApart):
    """Rejects nodes where the pod's volumes would exceed a limit that the node's CSINode states.

    Which volumes count: those of the node's pods, each once, and those that VolumeAttachments show besides. A volume of the pod that a pod
    on the node uses already comes for free.
    """

    name = NAME
    reads = Reads.CLUSTER

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._attached: AttachedVolumes | None = None

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Find out what the pod wants attached; skip pods without claims or disks that a CSI driver serves."""
        if not any(_may_be_attached(volume) for volume in pod.volumes):
            return _NOTHING_TO_CHECK
        try:
            wanted = _Wanted(CsiResolver(cluster.objects.storage).of_new_pod(pod))
        except ClaimNotFoundError as missing:
            wanted = _Wanted(frozenset(), unresolvable(str(missing)))
        except UnusableVolumeError as problem:
            return PreFilterResult(error(str(problem)))
        if wanted.volumes:
            self._counted(cluster).catch_up()
        state.write(NAME, wanted)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """True where there is room for the volumes that are not there yet."""
        wanted = state.read(NAME, _Wanted)
        if wanted.problem is not None:
            return np.zeros(len(rows), np.bool_)
        return self._counted(cluster).room(wanted.volumes, rows, free_riders=True)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """One reason for all nodes: a claim that is missing, or too many volumes."""
        return [Rejection(state.read(NAME, _Wanted).problem or _FULL, rows)]

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> Judge:
        """A row's volumes are those of its own pods."""
        wanted = state.read(NAME, _Wanted)
        if wanted.problem is not None:
            return FilterAsJudge(self, state, pod, cluster)
        return CountingJudge(self._counted(cluster), wanted.volumes, _FULL, free_riders=True)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """What the pod wants, and the volumes on the nodes as they were counted last."""
        return (state.data.get(NAME), self._counted(cluster).version)

    def _counted(self, cluster: Cluster) -> AttachedVolumes:
        if self._attached is None:
            self._attached = AttachedVolumes(cluster, CsiLimits(cluster))
        return self._attached

    def events(self) -> Sequence[EventInterest]:
        """Limits that grow, volumes that leave a node, and a claim that the pod waits for."""
        return (
            interest(EventResource.CSI_NODE, Action.ADD),
            interest(EventResource.CSI_NODE, Action.UPDATE, hints.after_csi_node_change),
            interest(EventResource.POD, Action.DELETE, hints.after_pod_deletion),
            interest(EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD, hints.after_claim_added),
            interest(EventResource.VOLUME_ATTACHMENT, Action.DELETE, hints.after_detachment),
        )


def _may_be_attached(volume: Volume) -> bool:
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None or is_migratable(volume)
