"""EBSLimits, GCEPDLimits, AzureDiskLimits, CinderLimits. Each implements PreFilter, Filter.

For clusters whose disks the in-tree plugins attach, of Kubernetes 1.13 to 1.26 or so; off by default, since later ones have CSI drivers,
whose volumes NodeVolumeLimits counts. A disk that two pods use counts once. Source: kube-scheduler `nodevolumelimits/non_csi.go`.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.apart import FilterAsJudge, Judge, JudgesApart
from placewright.framework.events import Action, EventInterest, EventResource, Hint, interest
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
from placewright.plugins import podclaims
from placewright.plugins.csimigration import migrated_plugins
from placewright.plugins.legacyvolumelimits.args import LegacyVolumeLimitsArgs
from placewright.plugins.legacyvolumelimits.counting import DiskLimits, DiskResolver
from placewright.plugins.legacyvolumelimits.disks import AZURE_DISK, CINDER, EBS, GCE_PD, DiskKind
from placewright.plugins.nodevolumelimits.apart import CountingJudge
from placewright.plugins.nodevolumelimits.attachable import Attachable, ClaimNotFoundError, UnusableVolumeError
from placewright.plugins.nodevolumelimits.attached import AttachedVolumes

REASON: Final = "node(s) exceed max volume count"

_FULL: Final = unschedulable(REASON)
_NOTHING_TO_CHECK: Final = PreFilterResult(SKIP)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The pod's disks, or why they cannot be known: then no node will do."""

    disks: frozenset[Attachable]
    problem: Status | None = None


class DiskCountLimit(PreFilterPlugin, JudgesApart):
    """Rejects nodes where the pod's disks of one kind would be too many; and, as upstream, where there are too many already."""

    Args = LegacyVolumeLimitsArgs
    reads = Reads.CLUSTER
    kind: ClassVar[DiskKind]

    def __init__(self, args: LegacyVolumeLimitsArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._attached: AttachedVolumes | None = None

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Find the pod's disks of this kind; skip pods without any."""
        if not pod.volumes:
            return _NOTHING_TO_CHECK
        try:
            wanted = _Wanted(DiskResolver(self.kind, cluster.objects.storage).of_new_pod(pod))
        except ClaimNotFoundError as missing:
            wanted = _Wanted(frozenset(), unresolvable(str(missing)))
        except UnusableVolumeError as problem:
            return PreFilterResult(error(str(problem)))
        if not wanted.disks and wanted.problem is None:
            return _NOTHING_TO_CHECK
        self._counted(cluster).catch_up()
        state.write(self.name, wanted)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """True where there is room for the disks that are not there yet."""
        wanted = state.read(self.name, _Wanted)
        if wanted.problem is not None:
            return np.zeros(len(rows), np.bool_)
        return self._counted(cluster).room(wanted.disks, rows, free_riders=False)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """One reason for all nodes: a claim that is missing, or too many disks."""
        return [Rejection(state.read(self.name, _Wanted).problem or _FULL, rows)]

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> Judge:
        """A row's disks are those of its own pods."""
        wanted = state.read(self.name, _Wanted)
        if wanted.problem is not None:
            return FilterAsJudge(self, state, pod, cluster)
        return CountingJudge(self._counted(cluster), wanted.disks, _FULL, free_riders=False)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """What the pod wants, and the disks on the nodes as they were counted last."""
        return (state.data.get(self.name), self._counted(cluster).version)

    def _counted(self, cluster: Cluster) -> AttachedVolumes:
        if self._attached is None:
            self._attached = AttachedVolumes(cluster, DiskLimits(self.kind, self.args.max_volumes, cluster))
        return self._attached

    def events(self) -> Sequence[EventInterest]:
        """Nodes that come or take more, disks that leave one, a claim that the pod waits for, and a CSI driver that takes over."""
        node = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL
        return (
            interest(EventResource.NODE, node),
            interest(EventResource.POD, Action.DELETE, self._after_pod_deletion),
            interest(EventResource.PERSISTENT_VOLUME_CLAIM, Action.ADD, _after_claim_added),
            interest(EventResource.CSI_NODE, Action.ADD | Action.UPDATE, self._after_csi_node_change),
        )

    def _after_pod_deletion(self, _pod: PodInfo, old: Any, _new: Any) -> Hint:
        """A pod left a node, and with it disks of this kind, or claims that may stand for some."""
        if not isinstance(old, PodInfo) or not old.node_name:
            return Hint.SKIP
        had = any(podclaims.claim_name(old, volume) is not None or self.kind.name_of(volume) is not None for volume in old.volumes)
        return Hint.QUEUE if had else Hint.SKIP

    def _after_csi_node_change(self, _pod: PodInfo, old: Any, new: Any) -> Hint:
        """A CSI driver took over on a node, which then has no limit here any more."""
        took_over = self.kind.provisioner in migrated_plugins(new) and self.kind.provisioner not in migrated_plugins(old)
        return Hint.QUEUE if took_over else Hint.SKIP


def _after_claim_added(pod: PodInfo, _old: Any, new: Any) -> Hint:
    """A claim behind one of the pod's volumes is there now."""
    return Hint.QUEUE if podclaims.names(pod, new, ephemeral=True) else Hint.SKIP


class EBSLimits(DiskCountLimit):
    """Volumes of Amazon EBS: 39 a node, 25 on Nitro."""

    name = "EBSLimits"
    kind = EBS


class GCEPDLimits(DiskCountLimit):
    """Disks of Google Compute Engine: 16 a node."""

    name = "GCEPDLimits"
    kind = GCE_PD


class AzureDiskLimits(DiskCountLimit):
    """Disks of Azure: 16 a node."""

    name = "AzureDiskLimits"
    kind = AZURE_DISK


class CinderLimits(DiskCountLimit):
    """Volumes of OpenStack Cinder: 256 a node."""

    name = "CinderLimits"
    kind = CINDER
