"""Which resource types the sandbox serves: the built-in ones, and those that custom resource definitions add at run time.

A type says how it is named in paths, discovery and kubectl; it says nothing about the content of objects. One
`ResourceRegistry` belongs to one server; routing, discovery and storage all read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from kubesandbox.edits.shapes import Object

GroupResource = tuple[str, str]
"""Storage key of a type: (group, plural). All versions of a type share one storage."""

ALL_VERBS: tuple[str, ...] = (
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
)
CREATE_ONLY: tuple[str, ...] = ("create",)
_ONE_BY_ONE: tuple[str, ...] = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
_WITHOUT_GENERATION = frozenset(
    {
        *("Namespace", "Node", "Service", "Endpoints", "ConfigMap", "Secret", "ServiceAccount", "Event", "LimitRange"),
        *("ResourceQuota", "PersistentVolume", "PersistentVolumeClaim", "ControllerRevision", "Lease", "StorageClass"),
        *("CSINode", "CSIStorageCapacity", "VolumeAttachment", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
        *("ResourceClaim", "ResourceClaimTemplate"),
    }
)
"""Built-in kinds of which nobody counts what changed."""


@dataclass(frozen=True, slots=True, eq=False)
class ResourceType:
    """One type in one version, as discovery shows it.

    `group` is empty for the core group; `plural` is the path segment (`pods`); `subresources` are bare names
    (`status`, `binding`). `storage` names another type whose objects this one shows (events), else None; `custom` types
    come from a definition and are kept in the apiVersion `stored_version`. Two types are equal only if they are one.
    """

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[str, ...] = ()
    storage: GroupResource | None = None
    custom: bool = False
    list_kind: str = ""
    stored_version: str = ""

    @property
    def api_version(self) -> str:
        """`v1` for the core group, else `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> GroupResource:
        """Where the objects of this type are stored."""
        return self.storage or (self.group, self.plural)

    @property
    def qualified(self) -> str:
        """`pods`, `deployments.apps`: how messages name the type."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def collection_kind(self) -> str:
        """Kind of a list of these objects (`PodList`)."""
        return self.list_kind or f"{self.kind}List"

    @property
    def counts_generations(self) -> bool:
        """Whether `metadata.generation` counts the changes of what is desired; some built-in types have none."""
        return self.custom or self.kind not in _WITHOUT_GENERATION

    @property
    def dies_gracefully(self) -> bool:
        """Whether deletion is a state that an object is in, if only for an instant."""
        return self.kind == "Pod" and not self.custom

    @property
    def has_status(self) -> bool:
        """Whether status is written through its own subresource only."""
        return "status" in self.subresources


class ResourceRegistry:
    """The types that one server serves, in the order in which discovery lists them.

    `generation` grows with each change, so that whoever caches documents knows when to build them again.
    """

    def __init__(self, types: Iterable[ResourceType] | None = None) -> None:
        self._types: dict[tuple[str, str, str], ResourceType] = {}
        self.generation = 0
        for resource in builtin_types() if types is None else types:
            self.add(resource)

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(self._types.values())

    def add(self, resource: ResourceType) -> None:
        """Serves `resource` from now on; one of the same group, version and plural is replaced."""
        self._types[resource.group, resource.version, resource.plural] = resource
        self.generation += 1

    def remove(self, group: str, version: str, plural: str) -> None:
        """Stops serving a type; silent when it was not served."""
        if self._types.pop((group, version, plural), None) is not None:
            self.generation += 1

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        """The type behind a path, or None."""
        return self._types.get((group, version, plural))

    def served(self, key: GroupResource) -> ResourceType:
        """The first version of a type that every server serves."""
        found = self.find(key[0], "v1", key[1])
        assert found is not None, f"{key[1]} is served"
        return found

    def by_kind(self, api_version: str, kind: str) -> ResourceType | None:
        """The type whose objects carry this apiVersion and kind, or None."""
        return next((t for t in self if t.kind == kind and t.api_version == api_version), None)

    def stored_as(self, key: GroupResource) -> list[ResourceType]:
        """All served versions (and views) of one storage."""
        return [t for t in self if t.key == key]

    def groups(self) -> dict[str, list[str]]:
        """Group to its versions, preferred first, in the order of first appearance; the core group is the empty one."""
        found: dict[str, list[str]] = {}
        for resource in self:
            versions = found.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        return found

    def in_group_version(self, group: str, version: str) -> list[ResourceType]:
        """The types of one group and version; empty when there is none."""
        return [t for t in self if t.group == group and t.version == version]


def builtin_types() -> list[ResourceType]:
    """The types served without any custom resource definition."""
    return [
        *_core_types(),
        *_workload_types(),
        *_storage_types(),
        *_access_types(),
        *_device_types(),
        _cluster("admissionregistration.k8s.io", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
        _namespaced("policy", "poddisruptionbudgets", "PodDisruptionBudget", "pdb", status=True),
        _cluster("scheduling.k8s.io", "priorityclasses", "PriorityClass", "pc", singular="priorityclass"),
        replace(_namespaced("scheduling.k8s.io", "podgroups", "PodGroup", status=True), version="v1alpha2"),
        _namespaced("coordination.k8s.io", "leases", "Lease"),
        ResourceType(
            "events.k8s.io", "v1", "events", "event", "Event", True, short_names=("ev",), storage=("", "events")
        ),
        ResourceType(
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            "customresourcedefinition",
            "CustomResourceDefinition",
            False,
            short_names=("crd", "crds"),
            categories=("api-extensions",),
            subresources=("status",),
        ),
    ]


def _namespaced(
    group: str,
    plural: str,
    kind: str,
    *short: str,
    status: bool = False,
    singular: str = "",
    everything: bool = False,
    subresources: tuple[str, ...] = (),
) -> ResourceType:
    return ResourceType(
        group,
        "v1",
        plural,
        singular or kind.lower(),
        kind,
        True,
        short_names=short,
        categories=("all",) if everything else (),
        subresources=(("status",) if status else ()) + subresources,
    )


def _cluster(group: str, plural: str, kind: str, *short: str, status: bool = False, singular: str = "") -> ResourceType:
    return ResourceType(
        group,
        "v1",
        plural,
        singular or kind.lower(),
        kind,
        False,
        short_names=short,
        subresources=("status",) if status else (),
    )


def _core_types() -> list[ResourceType]:
    return [
        replace(_cluster("", "namespaces", "Namespace", "ns", status=True), verbs=_ONE_BY_ONE),
        _cluster("", "nodes", "Node", "no", status=True),
        _namespaced("", "pods", "Pod", "po", status=True, everything=True, subresources=("binding", "eviction", "log")),
        _namespaced("", "services", "Service", "svc", status=True, everything=True),
        ResourceType("", "v1", "endpoints", "endpoints", "Endpoints", True, short_names=("ep",)),
        _namespaced("", "configmaps", "ConfigMap", "cm"),
        _namespaced("", "secrets", "Secret"),
        _namespaced("", "serviceaccounts", "ServiceAccount", "sa", subresources=("token",)),
        _namespaced("", "events", "Event", "ev"),
        _cluster("", "persistentvolumes", "PersistentVolume", "pv", status=True),
        _namespaced("", "persistentvolumeclaims", "PersistentVolumeClaim", "pvc", status=True),
        _namespaced("", "replicationcontrollers", "ReplicationController", "rc", status=True, everything=True),
        _namespaced("", "limitranges", "LimitRange", "limits"),
        _namespaced("", "resourcequotas", "ResourceQuota", "quota", status=True),
        ResourceType("", "v1", "bindings", "binding", "Binding", True, verbs=CREATE_ONLY),
    ]


def _workload_types() -> list[ResourceType]:
    return [
        _namespaced("apps", "deployments", "Deployment", "deploy", status=True, everything=True),
        _namespaced("apps", "replicasets", "ReplicaSet", "rs", status=True, everything=True),
        _namespaced("apps", "statefulsets", "StatefulSet", "sts", status=True, everything=True),
        _namespaced("apps", "daemonsets", "DaemonSet", "ds", status=True, everything=True),
        _namespaced("apps", "controllerrevisions", "ControllerRevision"),
        _namespaced("batch", "jobs", "Job", status=True, everything=True),
        _namespaced("batch", "cronjobs", "CronJob", "cj", status=True, everything=True),
    ]


def _storage_types() -> list[ResourceType]:
    group = "storage.k8s.io"
    return [
        _cluster(group, "storageclasses", "StorageClass", "sc"),
        _cluster(group, "csinodes", "CSINode"),
        _cluster(group, "csidrivers", "CSIDriver"),
        _namespaced(group, "csistoragecapacities", "CSIStorageCapacity"),
        _cluster(group, "volumeattachments", "VolumeAttachment", status=True),
    ]


def _device_types() -> list[ResourceType]:
    group = "resource.k8s.io"
    return [
        _namespaced(group, "resourceclaims", "ResourceClaim", status=True),
        _namespaced(group, "resourceclaimtemplates", "ResourceClaimTemplate"),
        _cluster(group, "deviceclasses", "DeviceClass"),
        _cluster(group, "resourceslices", "ResourceSlice"),
        replace(_cluster(group, "devicetaintrules", "DeviceTaintRule", status=True), version="v1beta2"),
    ]


def _access_types() -> list[ResourceType]:
    rbac, authorization = "rbac.authorization.k8s.io", "authorization.k8s.io"
    return [
        _cluster(rbac, "clusterroles", "ClusterRole"),
        _cluster(rbac, "clusterrolebindings", "ClusterRoleBinding"),
        _namespaced(rbac, "roles", "Role"),
        _namespaced(rbac, "rolebindings", "RoleBinding"),
        _review(authorization, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        _review(authorization, "subjectaccessreviews", "SubjectAccessReview"),
        _review("authentication.k8s.io", "tokenreviews", "TokenReview"),
    ]


def _review(group: str, plural: str, kind: str) -> ResourceType:
    return ResourceType(group, "v1", plural, kind.lower(), kind, False, verbs=CREATE_ONLY)


# --- one stored object, shown in each version and group that serves it ---------------------------------------------------------
# Custom resources convert as with strategy `None`: only apiVersion changes. Events are stored as core events.

_EVENTS: Final[GroupResource] = ("", "events")
_CORE_TO_EVENTS: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENTS_TO_CORE: Final = {shown: stored for stored, shown in _CORE_TO_EVENTS.items()}


def to_stored(resource: ResourceType, sent: Object) -> Object:
    """`sent`, an object of `resource`, in the version in which its type is stored."""
    if resource.key == _EVENTS and resource.group:
        return {**_renamed(sent, _EVENTS_TO_CORE), "apiVersion": "v1"}
    if resource.custom and sent["apiVersion"] != resource.stored_version:
        return {**sent, "apiVersion": resource.stored_version}
    return sent


def presented(resource: ResourceType, stored: Object) -> Object:
    """`stored` as `resource` shows it; the same dict when nothing differs."""
    if stored.get("apiVersion") == resource.api_version:
        return stored
    if resource.key == _EVENTS and resource.group:
        return {**_renamed(stored, _CORE_TO_EVENTS), "apiVersion": resource.api_version}
    return {**stored, "apiVersion": resource.api_version}


def _renamed(content: Object, names: dict[str, str]) -> Object:
    return {names.get(key, key): value for key, value in content.items()}
