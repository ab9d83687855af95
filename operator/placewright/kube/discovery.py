"""Finds out which groups and versions this API server serves: Kubernetes 1.20 to 1.36 and later differ.

Discovery runs at the start and again every few minutes, because API servers are upgraded under a running scheduler. Of the served versions
the first that we can read is chosen. A missing collection is no error: the plugin that reads it sees none of it.

`REFLECTED` is the table of the kinds that placement reads beside nodes and pods: collection, readable versions, and the plugin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from placewright.api.decode import DecodeError
from placewright.api.devices import GROUP as DEVICES_GROUP
from placewright.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from placewright.api.objects import KubeObject
from placewright.api.podgroups import (
    COSCHEDULING_GROUP,
    NATIVE_GROUP,
    VOLCANO_GROUP,
    CompositePodGroup,
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
from placewright.kube.client import ApiClient
from placewright.kube.errors import FORBIDDEN, NOT_FOUND, ApiError, RetryBackoff, Sleep, with_retries
from placewright.kube.optionalterms import OptionalTerms
from placewright.kube.reflector import Source

#: Number of times that a group that answers with an error is asked before it counts as silent.
ATTEMPTS: Final = 4


class _GroupVersion(msgspec.Struct, rename="camel"):
    version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    name: str = ""
    versions: list[_GroupVersion] | None = None


class _GroupList(msgspec.Struct, rename="camel"):
    groups: list[_Group] | None = None


class _Resource(msgspec.Struct, rename="camel"):
    name: str = ""


class _ResourceList(msgspec.Struct, rename="camel"):
    resources: list[_Resource] | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """A collection that a plugin reads.

    Attributes:
        group, resource: such as `policy`, `poddisruptionbudgets`.
        versions: that can be read, best first.
        reader: the plugin that sees none of it if the server lacks it.
    """

    group: str
    resource: str
    versions: tuple[str, ...]
    reader: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


@dataclass(frozen=True, slots=True)
class Collection:
    """A served collection: its path over all namespaces, and the API version of that path."""

    path: str
    version: str


@dataclass(frozen=True, slots=True)
class ServedResources:
    """The collections that the server serves.

    Attributes:
        served: (group, resource) to the versions that have it.
        silent: `group/version` of groups that are listed and only answer with errors; their collections are unknown.
    """

    served: dict[tuple[str, str], list[str]]
    silent: tuple[str, ...] = ()

    def find(self, wanted: Wanted) -> Collection | None:
        """Find a wanted collection in the first of its versions that is served.

        Args:
            wanted: the collection and the versions that can be read.

        Returns:
            The collection; None when none of the versions is served.
        """
        found = self.served.get((wanted.group, wanted.resource), ())
        for version in wanted.versions:
            if version in found:
                return Collection(collection_path(wanted.group, version, wanted.resource), version)
        return None


def collection_path(group: str, version: str, resource: str) -> str:
    """Build the path of a collection over all namespaces.

    Args:
        group: empty for the core group.
        version: such as `v1`.
        resource: such as `pods`.

    Returns:
        Such as `/api/v1/pods` or `/apis/policy/v1/poddisruptionbudgets`.
    """
    return f"{_root(group, version)}/{resource}"


def _root(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


async def discover(
    client: ApiClient,
    groups: Iterable[str],
    *,
    backoff: RetryBackoff = RetryBackoff(initial=0.2, maximum=2.0),  # noqa: B008 - frozen
    sleep: Sleep = asyncio.sleep,
) -> ServedResources:
    """Ask which collections are served in these groups and in the core group.

    A group that answers only with errors or with nonsense, as one whose APIService is down, is `silent`; it does not fail the discovery.

    Args:
        client: the API server's client.
        groups: API groups to ask for.
        backoff: waits between the attempts for one group.
        sleep: waits so many seconds.

    Raises:
        ApiError: the server refused the list of groups, or the core group.
        Unreachable: the server did not answer (see `retry.until_answered`).
        DecodeError: its list of groups has another shape.
    """
    wanted = set(groups)
    listed = await client.get_as("/apis", _GroupList)
    asked = [(group.name, one.version) for group in listed.groups or () if group.name in wanted for one in group.versions or ()]
    core = await _resources(client, "", "v1")
    answers = await asyncio.gather(*(_resources_or_none(client, group, version, backoff, sleep) for group, version in asked))
    served: dict[tuple[str, str], list[str]] = {}
    for (group, version), names in zip([("", "v1"), *asked], [core, *answers], strict=True):
        for name in names or ():
            served.setdefault((group, name), []).append(version)
    silent = tuple(f"{group}/{version}" for (group, version), names in zip(asked, answers, strict=True) if names is None)
    return ServedResources(served, silent)


async def _resources_or_none(client: ApiClient, group: str, version: str, backoff: RetryBackoff, sleep: Sleep) -> list[str] | None:
    try:
        return await with_retries(lambda: _resources(client, group, version), ATTEMPTS, backoff, sleep)
    except (ApiError, DecodeError):
        return None


async def _resources(client: ApiClient, group: str, version: str) -> list[str]:
    try:
        found = await client.get_as(_root(group, version), _ResourceList)
    except ApiError as error:
        # A group that was removed meanwhile, or that we may not read, is not served to us.
        if group and error.status in (NOT_FOUND, FORBIDDEN):
            return []
        raise
    return [resource.name for resource in found.resources or () if "/" not in resource.name]


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
    Reflected(
        Wanted(NATIVE_GROUP, "compositepodgroups", ("v1beta1", "v1alpha3"), "GangScheduling"), CompositePodGroup, one_of_several=True
    ),
    Reflected(Wanted(NATIVE_GROUP, "workloads", ("v1alpha1",), "GangScheduling"), Workload, one_of_several=True),
    Reflected(Wanted(VOLCANO_GROUP, "podgroups", ("v1beta1",), "GangScheduling"), VolcanoPodGroup, one_of_several=True),
)


def groups_of(rows: Iterable[Reflected]) -> frozenset[str]:
    """Collect the API groups that the API server is to be asked about."""
    return frozenset(row.wanted.group for row in rows)
