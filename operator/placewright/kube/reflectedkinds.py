"""The table of the kinds that placement reads beside nodes and pods: collection, readable versions, and the plugin that reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from placewright.api.devices import GROUP as DEVICES_GROUP
from placewright.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from placewright.api.objects import KubeObject
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
from placewright.kube.discovery import Collection, Wanted
from placewright.kube.optionalterms import OptionalTerms
from placewright.kube.reflector import Source


@dataclass(frozen=True, slots=True)
class Reflected:
    """One row of the table.

    Attributes:
        wanted: the collection.
        kind: the struct that its objects are decoded into.
        upgrades: functions by older version. Each writes an object of that version in the terms of the best one.
        one_of_several: another row holds the same facts in another form. Few servers have all forms, and a server may have none.
        optional: terms of a plugin of another package; None for the rows of this table.
    """

    wanted: Wanted
    kind: type[KubeObject]
    upgrades: dict[str, Callable[[Any], Any]] = field(default_factory=dict)
    one_of_several: bool = False
    optional: OptionalTerms | None = None

    def source(self, found: Collection) -> Source[Any]:
        """Build the source of this row's reflector.

        Args:
            found: the collection as the server serves it.

        Returns:
            The source, with the upgrade that this version needs.
        """
        terms = self.optional
        labels, fields = (terms.label_selector, terms.field_selector) if terms else ("", "")
        upgrade = self.upgrades.get(found.version)
        return Source(found.path, self.kind, field_selector=fields, label_selector=labels, upgrade=upgrade, optional=terms)


def upgraded_budget(budget: PodDisruptionBudget) -> PodDisruptionBudget:
    """Turn a budget of policy/v1beta1 into one of v1.

    In v1beta1 an empty selector selects no pod; in v1 it selects every pod. A missing selector selects no pod in both.

    Returns:
        The budget; without a selector if its selector is empty.
    """
    selector = budget.spec.selector
    if selector is None or selector.match_labels or selector.match_expressions:
        return budget
    return msgspec.structs.replace(budget, spec=msgspec.structs.replace(budget.spec, selector=None))


#: Not v1beta1, the only version of Kubernetes 1.32: it spells requests and devices in another way.
_DEVICES: Final = ("v1", "v1beta2")

#: The kinds beside nodes and pods. A kind that a plugin begins to read is one more line here.
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


def groups_of(rows: Iterable[Reflected]) -> frozenset[str]:
    """Collect the API groups that the API server is to be asked about."""
    return frozenset(row.wanted.group for row in rows)
