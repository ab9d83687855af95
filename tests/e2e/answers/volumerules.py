"""What changed for volumes between 1.20 and 1.36: each rule as it was and as it is, by plain loops, as a plugin that can stand in for ours.

With the old rules in the place of our plugins, our verdict has to be 1.20's; with the new ones, it has to be ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from e2e.answers.comparing import counted, judged
from e2e.answers.recording import Decision
from e2e.answers.volumes import BETA, BETA_REGION, GA, MOST_DISKS, REGION
from placewright.api.objects import Node, Volume
from placewright.api.pods import PodInfo
from placewright.api.storage import CSINode, PersistentVolume, PersistentVolumeSpec
from placewright.cluster.cluster import Cluster
from placewright.cluster.storage import StorageObjects
from placewright.framework.interface import CycleState, PreFilterPlugin, PreFilterResult
from placewright.framework.scalar import ScalarFilter
from placewright.framework.status import SUCCESS, Status, unresolvable, unschedulable
from placewright_lab.simulation.evaluation import Verdict

_FULL: Final = unschedulable("node(s) exceed max volume count")
_ELSEWHERE: Final = unresolvable("node(s) had no available volume zone")
_ZONES: Final = {GA: BETA, BETA: GA, REGION: BETA_REGION, BETA_REGION: REGION}
#: The same plugins in the order in which 1.20 asks them.
ORDER: Final = (
    "SchedulingGates", "PrioritySort", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
    "VolumeRestrictions", "EBSLimits", "GCEPDLimits", "NodeVolumeLimits", "AzureDiskLimits", "VolumeBinding", "VolumeZone",
    "PodTopologySpread", "InterPodAffinity", "CinderLimits", "DefaultBinder",
)  # fmt: skip
#: Those that are off by default here.
LEGACY: Final = ("EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits")


# --- NodeVolumeLimits ------------------------------------------------------------------------------------------------------------


class LimitsBefore(ScalarFilter):
    """1.20: volumes of CSI drivers alone, and alone behind claims."""

    name = "LimitsBefore"
    in_tree_too = False

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        """Count, per driver, what is there and what would come."""
        storage = self.handle.cluster.objects.storage
        csi_node = storage.csi_nodes.get(node.metadata.name)
        limits = _limits(csi_node)
        there = {volume for other in pods for volume in self._volumes(other, storage)}
        new = Counter(driver for driver, _ in set(self._volumes(pod, storage)) - there)
        have = Counter(driver for driver, _ in there)
        full = any(driver in limits and have[driver] + count > limits[driver] for driver, count in new.items())
        return _FULL if full else SUCCESS

    def _volumes(self, pod: PodInfo, storage: StorageObjects) -> Iterator[tuple[str, str]]:
        for volume in pod.pod.spec.volumes or ():
            found = self._behind(pod, volume, storage)
            if found is not None:
                yield found

    def _behind(self, pod: PodInfo, volume: Volume, storage: StorageObjects) -> tuple[str, str] | None:
        if volume.persistent_volume_claim is None:
            return _driver_of(volume, "UNSPECIFIED") if self.in_tree_too else None
        claim = storage.claims.get(volume.persistent_volume_claim.claim_name, pod.namespace)
        if claim is None:
            return None
        made = storage.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if made is not None and made.spec.csi is not None:
            return made.spec.csi.driver, made.spec.csi.volume_handle
        if made is not None:
            return _driver_of(made.spec, _place(made)) if self.in_tree_too else None
        storage_class = storage.classes.get(claim.spec.storage_class_name or "")
        provisioner = storage_class.provisioner if storage_class is not None else ""
        if provisioner == "kubernetes.io/aws-ebs":
            provisioner = "ebs.csi.aws.com" if self.in_tree_too else ""
        return (provisioner, f"to be made for {claim.metadata.name}") if provisioner else None


class LimitsAfter(LimitsBefore):
    """1.36: disks of in-tree plugins are the CSI drivers', those that pods name themselves too."""

    name = "LimitsAfter"
    in_tree_too = True


def _limits(csi_node: CSINode | None) -> dict[str, int]:
    drivers = (csi_node.spec.drivers or ()) if csi_node is not None else ()
    return {each.name: each.allocatable.count for each in drivers if each.allocatable and each.allocatable.count is not None}


def _place(volume: PersistentVolume) -> str | None:
    """The zone in a GCE disk's handle; the region of several; None where they have none in common."""
    labels = volume.metadata.labels or {}
    zones = (labels.get(BETA) or labels.get(GA) or "UNSPECIFIED").split("__")
    regions = {zone.rpartition("-")[0] for zone in zones}
    if len(zones) > 1:
        return regions.pop() if len(regions) == 1 and all(zone.count("-") == 2 for zone in zones) else None
    return zones[0]


def _driver_of(source: Volume | PersistentVolumeSpec, place: str | None) -> tuple[str, str] | None:
    if source.aws_elastic_block_store is not None:
        return "ebs.csi.aws.com", source.aws_elastic_block_store.volume_id
    if source.gce_persistent_disk is not None:
        return None if place is None else ("pd.csi.storage.gke.io", f"{place}/{source.gce_persistent_disk.pd_name}")
    if source.azure_disk is not None:
        return "disk.csi.azure.com", source.azure_disk.disk_uri
    return None


# --- VolumeZone ------------------------------------------------------------------------------------------------------------------


class ZoneBefore(ScalarFilter):
    """1.20: a node has the volume's label, by that very name, or no zone label at all."""

    name = "ZoneBefore"
    by_either_name = False

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        """Hold the node against every label of every volume."""
        labels = {key: value for key, value in (node.metadata.labels or {}).items() if key in _ZONES}
        for volume in _volumes_of(pod, self.handle.cluster):
            for key, value in (volume.metadata.labels or {}).items():
                values = {part.strip() for part in value.split("__")}
                if labels and key in _ZONES and "" not in values and self._has(labels, key) not in values:
                    return _ELSEWHERE
        return SUCCESS

    def _has(self, labels: dict[str, str], key: str) -> str | None:
        return labels.get(key)


class ZoneAfter(ZoneBefore, PreFilterPlugin):
    """1.36: a beta label stands for the stable one; a claim whose volume is gone rejects the pod before any node is looked at."""

    name = "ZoneAfter"

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Look for all volumes."""
        storage = cluster.objects.storage
        for volume in pod.pod.spec.volumes or ():
            named = volume.persistent_volume_claim
            claim = storage.claims.get(named.claim_name, pod.namespace) if named is not None else None
            if claim is not None and claim.spec.volume_name and storage.volumes.get(claim.spec.volume_name) is None:
                return PreFilterResult(unresolvable(f'persistentvolume "{claim.spec.volume_name}" not found'))
        return PreFilterResult()

    def _has(self, labels: dict[str, str], key: str) -> str | None:
        return labels.get(key, labels.get(_ZONES[key]) if key in (BETA, BETA_REGION) else None)


def _volumes_of(pod: PodInfo, cluster: Cluster) -> Iterator[PersistentVolume]:
    storage = cluster.objects.storage
    for volume in pod.pod.spec.volumes or ():
        named = volume.persistent_volume_claim
        claim = storage.claims.get(named.claim_name, pod.namespace) if named is not None else None
        found = storage.volumes.get(claim.spec.volume_name) if claim is not None and claim.spec.volume_name else None
        if found is not None:
            yield found


# --- the table -------------------------------------------------------------------------------------------------------------------


class VolumeChange(NamedTuple):
    """Why a verdict of one plugin may differ, and the rule as it was and as it is."""

    name: str
    plugin: str
    before: type[ScalarFilter]
    after: type[ScalarFilter]


CHANGES: Final = (
    VolumeChange(
        "since migration is always on, disks of in-tree plugins count for their CSI drivers; 1.20 leaves them to the four limits",
        "NodeVolumeLimits", LimitsBefore, LimitsAfter,
    ),
    VolumeChange(
        "later versions take a stable zone label for a beta one, and look for a claim's volume before they look at nodes",
        "VolumeZone", ZoneBefore, ZoneAfter,
    ),
)  # fmt: skip

#: Reasons that 1.20 words differently.
WORDS_OF_1_20: Final = {
    "node(s) didn't match PersistentVolume's node affinity": "node(s) had volume node affinity conflict",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)": "pvc(s) bound to non-existent pv(s)",
}


@dataclass(frozen=True)
class VolumeScene:
    """A decision, and our verdicts on it."""

    decision: Decision

    @cached_property
    def ours(self) -> Verdict:
        """What our own plugins say."""
        return self._evaluate(lambda name: name)

    @cached_property
    def with_old_rules(self) -> Verdict:
        """What they say with every change undone."""
        old = {change.plugin: change.before.name for change in CHANGES}
        return self._evaluate(lambda name: old.get(name, name))

    def with_new_rule(self, change: VolumeChange) -> Verdict:
        """What they say with one of them replaced by the plain rule of today."""
        return self._evaluate(lambda name: change.after.name if name == change.plugin else name)

    def with_old_rule(self, change: VolumeChange) -> Verdict:
        """What they say with one change undone."""
        return self._evaluate(lambda name: change.before.name if name == change.plugin else name)

    def _evaluate(self, stands_for: Callable[[str], str]) -> Verdict:
        enabled = [{"name": stands_for(name)} for name in ORDER]
        plugins = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
        arguments = [{"name": name, "args": {"maxVolumes": MOST_DISKS}} for name in LEGACY]
        rules = [rule for change in CHANGES for rule in (change.before, change.after)]
        return judged(self.decision.objects, self.decision.pod, {"plugins": plugins, "pluginConfig": arguments}, rules)


def fitting(verdict: Verdict) -> frozenset[str]:
    """The nodes that can hold the pod."""
    assert not verdict.error, verdict.error
    return frozenset(each.node for each in verdict.nodes if each.fits)


def message_of_1_20(verdict: Verdict) -> str:
    """A verdict by which the pod fits nowhere, as 1.20 would have put it."""
    return counted(len(verdict.nodes), (WORDS_OF_1_20.get(reason, reason) for each in verdict.nodes for reason in each.reasons))
