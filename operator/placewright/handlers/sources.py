"""What is reflected on this API server: a table of what placement reads, in which versions it can be read, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from placewright.api.devices import GROUP as DEVICES_GROUP
from placewright.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from placewright.api.objects import Node, Pod
from placewright.api.podgroups import (
    COSCHEDULING_GROUP,
    NATIVE_GROUP,
    VOLCANO_GROUP,
    CoschedulingPodGroup,
    NativePodGroup,
    VolcanoPodGroup,
    Workload,
)
from placewright.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from placewright.api.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from placewright.cluster.objects import ClusterObject
from placewright.handlers.sinks import AssignedPodSink, ClusterObjectSink, NodeSink
from placewright.kube.discovery import Collection, ServedResources, Wanted
from placewright.kube.reflector import Sink, Source
from placewright.kube.serverversion import ServerVersion
from placewright.scheduler.intake import Intake

ASSIGNED_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


@dataclass(frozen=True, slots=True)
class Reflected:
    """One row.

    Attributes:
        wanted: the collection.
        kind: the struct that its objects are decoded into.
        upgrades: for older versions, what makes their objects mean what the best's do.
        one_of_several: another row says the same in another way. Few servers have all such, and a server may well have none.
    """

    wanted: Wanted
    kind: type[ClusterObject]
    upgrades: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    one_of_several: bool = False

    def source(self, found: Collection) -> Source[Any]:
        """What the reflector of this row reads where it was found."""
        return Source(found.path, self.kind, upgrade=self.upgrades.get(found.version))


def upgraded_budget(budget: PodDisruptionBudget) -> PodDisruptionBudget:
    """A budget of policy/v1beta1 as one of v1: there an empty selector selects no pod, in v1 every pod, and none at all no pod in both."""
    selector = budget.spec.selector
    if selector is None or selector.match_labels or selector.match_expressions:
        return budget
    return msgspec.structs.replace(budget, spec=msgspec.structs.replace(budget.spec, selector=None))


#: v1beta1, which is all that 1.32 has, spells requests and devices in another way.
_DEVICES: Final = ("v1", "v1beta2")

#: Beside nodes and pods, which every server has. A kind that a plugin begins to read is one more line.
REFLECTED: Final = (
    Reflected(Wanted("", "namespaces", ("v1",), "InterPodAffinity"), Namespace),
    Reflected(Wanted("", "services", ("v1",), "PodTopologySpread"), Service),
    Reflected(Wanted("", "replicationcontrollers", ("v1",), "PodTopologySpread"), ReplicationController),
    Reflected(Wanted("apps", "replicasets", ("v1",), "PodTopologySpread"), ReplicaSet),
    Reflected(Wanted("apps", "statefulsets", ("v1",), "PodTopologySpread"), StatefulSet),
    Reflected(
        Wanted("policy", "poddisruptionbudgets", ("v1", "v1beta1"), "DefaultPreemption"),
        PodDisruptionBudget,
        {"v1beta1": upgraded_budget},
    ),
    Reflected(Wanted("", "persistentvolumes", ("v1",), "VolumeBinding"), PersistentVolume),
    Reflected(Wanted("", "persistentvolumeclaims", ("v1",), "VolumeBinding"), PersistentVolumeClaim),
    Reflected(Wanted("storage.k8s.io", "storageclasses", ("v1",), "VolumeBinding"), StorageClass),
    Reflected(Wanted("storage.k8s.io", "csinodes", ("v1",), "NodeVolumeLimits"), CSINode),
    Reflected(Wanted("storage.k8s.io", "csidrivers", ("v1",), "VolumeBinding"), CSIDriver),
    Reflected(Wanted("storage.k8s.io", "volumeattachments", ("v1",), "NodeVolumeLimits"), VolumeAttachment),
    Reflected(Wanted("storage.k8s.io", "csistoragecapacities", ("v1", "v1beta1"), "VolumeBinding"), CSIStorageCapacity),
    Reflected(Wanted(DEVICES_GROUP, "resourceclaims", _DEVICES, "DynamicResources"), ResourceClaim, one_of_several=True),
    Reflected(Wanted(DEVICES_GROUP, "resourceslices", _DEVICES, "DynamicResources"), ResourceSlice, one_of_several=True),
    Reflected(Wanted(DEVICES_GROUP, "deviceclasses", _DEVICES, "DynamicResources"), DeviceClass, one_of_several=True),
    Reflected(
        Wanted(DEVICES_GROUP, "devicetaintrules", ("v1", "v1beta2", "v1alpha3"), "DynamicResources"), DeviceTaintRule, one_of_several=True
    ),
    Reflected(Wanted(COSCHEDULING_GROUP, "podgroups", ("v1alpha1",), "GangScheduling"), CoschedulingPodGroup, one_of_several=True),
    Reflected(
        Wanted(NATIVE_GROUP, "podgroups", ("v1beta1", "v1alpha3", "v1alpha2"), "GangScheduling"), NativePodGroup, one_of_several=True
    ),
    Reflected(Wanted(NATIVE_GROUP, "workloads", ("v1alpha1",), "GangScheduling"), Workload, one_of_several=True),
    Reflected(Wanted(VOLCANO_GROUP, "podgroups", ("v1beta1",), "GangScheduling"), VolcanoPodGroup, one_of_several=True),
)
GROUPS: Final = frozenset(row.wanted.group for row in REFLECTED)


def sources_and_sinks(
    served: ServedResources, intake: Intake, pods_listed: Callable[[], None]
) -> Iterator[tuple[Source[Any], Sink[Any]]]:
    """What to reflect on this API server; what it does not serve is left out."""
    yield Source("/api/v1/nodes", Node), NodeSink(intake)
    yield Source("/api/v1/pods", Pod, field_selector=ASSIGNED_PODS), AssignedPodSink(intake, pods_listed)
    for row in REFLECTED:
        found = served.find(row.wanted)
        if found is not None:
            yield row.source(found), ClusterObjectSink(intake)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """How an API server falls short of what the scheduler could use; `str` is one line. `version` None: it did not tell."""

    version: ServerVersion | None
    served: ServedResources

    @property
    def lacking(self) -> tuple[Wanted, ...]:
        """What is served in no version that can be read, but for what most servers do without."""
        return tuple(row.wanted for row in REFLECTED if not row.one_of_several and self.served.find(row.wanted) is None)

    def __str__(self) -> str:
        return "; ".join([f"API server: {self.version or 'of unknown version'}", *(self._parts() or ["lacks nothing"])])

    def _parts(self) -> list[str]:
        return [*self._collections(), *self._pods()]

    def _collections(self) -> Iterator[str]:
        for wanted in self.lacking:
            yield f"no {wanted} in {' or '.join(wanted.versions)}: {wanted.reader} sees none"
        yield from self._none_of_several()
        if self.served.silent:
            yield f"no answer about {', '.join(self.served.silent)}, asked again later"
        for row in REFLECTED:
            found = self.served.find(row.wanted)
            if found is not None and found.version != row.wanted.versions[0] and not row.one_of_several:
                yield f"{row.wanted} in {found.version}"

    def _none_of_several(self) -> Iterator[str]:
        """Once for each reader that has none of what it could do with any one of."""
        by_reader: dict[str, list[Wanted]] = {}
        for row in REFLECTED:
            if row.one_of_several:
                by_reader.setdefault(row.wanted.reader, []).append(row.wanted)
        for reader, several in by_reader.items():
            if all(self.served.find(wanted) is None for wanted in several):
                yield f"none of {', '.join(map(str, several))}: {reader} sees none"

    def _pods(self) -> Iterator[str]:
        if self.version is None:
            return
        if self.version.unknown_fields:
            yield f"drops from pods {', '.join(self.version.unknown_fields)}"
        if self.version.ignores_uids:
            yield "may bind a pod created anew in its predecessor's place (1.23), which is then put right"
