"""The resource types that the sandbox serves: the built-in ones, and types that custom resource definitions add at run time.

A type has the names for paths, discovery and kubectl, but not the content of objects. Each server has one `ResourceRegistry` for routing,
discovery and storage.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

#: A decoded Kubernetes object.
Object = dict[str, Any]
#: Storage key of a type: (group, plural). All versions of a type share one storage.
GroupResource = tuple[str, str]

NAMESPACES: Final[GroupResource] = ("", "namespaces")
NODES: Final[GroupResource] = ("", "nodes")
PODS: Final[GroupResource] = ("", "pods")
EVENTS: Final[GroupResource] = ("", "events")
SERVICE_ACCOUNTS: Final[GroupResource] = ("", "serviceaccounts")
VOLUME_CLAIMS: Final[GroupResource] = ("", "persistentvolumeclaims")
STORAGE_CLASSES: Final[GroupResource] = ("storage.k8s.io", "storageclasses")
PRIORITY_CLASSES: Final[GroupResource] = ("scheduling.k8s.io", "priorityclasses")
BUDGETS: Final[GroupResource] = ("policy", "poddisruptionbudgets")
RESOURCE_CLAIMS: Final[GroupResource] = ("resource.k8s.io", "resourceclaims")
DEFINITIONS: Final[GroupResource] = ("apiextensions.k8s.io", "customresourcedefinitions")

ALL_VERBS: Final[tuple[str, ...]] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CREATE_ONLY: Final[tuple[str, ...]] = ("create",)
_ONE_BY_ONE: Final[tuple[str, ...]] = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
#: Built-in kinds without a generation.
_WITHOUT_GENERATION: Final = frozenset(
    {
        *("Namespace", "Node", "Service", "Endpoints", "ConfigMap", "Secret", "ServiceAccount", "Event", "LimitRange"),
        *("ResourceQuota", "PersistentVolume", "PersistentVolumeClaim", "ControllerRevision", "Lease", "StorageClass"),
        *("CSINode", "CSIStorageCapacity", "VolumeAttachment", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
        *("ResourceClaim", "ResourceClaimTemplate"),
    }
)


_ONLY_CREATED: Final = frozenset({"Binding", "SelfSubjectAccessReview", "SubjectAccessReview", "TokenReview"})
#: A type in each line: apiVersion, plural, kind, scope, short names, subresources, and its category.
_BUILTIN: Final = """\
v1 namespaces Namespace cluster ns status
v1 nodes Node cluster no status
v1 pods Pod namespace po status,binding,eviction,log all
v1 services Service namespace svc status all
v1 endpoints Endpoints namespace ep -
v1 configmaps ConfigMap namespace cm -
v1 secrets Secret namespace - -
v1 serviceaccounts ServiceAccount namespace sa token
v1 events Event namespace ev -
v1 persistentvolumes PersistentVolume cluster pv status
v1 persistentvolumeclaims PersistentVolumeClaim namespace pvc status
v1 replicationcontrollers ReplicationController namespace rc status all
v1 limitranges LimitRange namespace limits -
v1 resourcequotas ResourceQuota namespace quota status
v1 bindings Binding namespace - -
apps/v1 deployments Deployment namespace deploy status all
apps/v1 replicasets ReplicaSet namespace rs status all
apps/v1 statefulsets StatefulSet namespace sts status all
apps/v1 daemonsets DaemonSet namespace ds status all
apps/v1 controllerrevisions ControllerRevision namespace - -
batch/v1 jobs Job namespace - status all
batch/v1 cronjobs CronJob namespace cj status all
storage.k8s.io/v1 storageclasses StorageClass cluster sc -
storage.k8s.io/v1 csinodes CSINode cluster - -
storage.k8s.io/v1 csidrivers CSIDriver cluster - -
storage.k8s.io/v1 csistoragecapacities CSIStorageCapacity namespace - -
storage.k8s.io/v1 volumeattachments VolumeAttachment cluster - status
rbac.authorization.k8s.io/v1 clusterroles ClusterRole cluster - -
rbac.authorization.k8s.io/v1 clusterrolebindings ClusterRoleBinding cluster - -
rbac.authorization.k8s.io/v1 roles Role namespace - -
rbac.authorization.k8s.io/v1 rolebindings RoleBinding namespace - -
authorization.k8s.io/v1 selfsubjectaccessreviews SelfSubjectAccessReview cluster - -
authorization.k8s.io/v1 subjectaccessreviews SubjectAccessReview cluster - -
authentication.k8s.io/v1 tokenreviews TokenReview cluster - -
resource.k8s.io/v1 resourceclaims ResourceClaim namespace - status
resource.k8s.io/v1 resourceclaimtemplates ResourceClaimTemplate namespace - -
resource.k8s.io/v1 deviceclasses DeviceClass cluster - -
resource.k8s.io/v1 resourceslices ResourceSlice cluster - -
resource.k8s.io/v1beta2 devicetaintrules DeviceTaintRule cluster - status
admissionregistration.k8s.io/v1 mutatingwebhookconfigurations MutatingWebhookConfiguration cluster - -
admissionregistration.k8s.io/v1 validatingwebhookconfigurations ValidatingWebhookConfiguration cluster - -
policy/v1 poddisruptionbudgets PodDisruptionBudget namespace pdb status
scheduling.k8s.io/v1 priorityclasses PriorityClass cluster pc -
scheduling.k8s.io/v1alpha2 podgroups PodGroup namespace - status
scheduling.k8s.io/v1alpha3 compositepodgroups CompositePodGroup namespace - status
coordination.k8s.io/v1 leases Lease namespace - -
events.k8s.io/v1 events Event namespace ev -
apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition cluster crd,crds status api-extensions
"""


@dataclass(frozen=True, slots=True, eq=False)
class ResourceType:
    """One type in one version, in the form for discovery. Each type is equal only to itself.

    Attributes:
        group: API group; empty for the core group.
        plural: segment of the path (`pods`).
        subresources: bare names (`status`, `binding`).
        storage: another type whose objects this one shows (events), or None.
        custom: True for a type from a definition.
        stored_version: apiVersion of the stored objects of a custom type.
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
        """`v1` for the core group, or else `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> GroupResource:
        """Key of the collection that stores the objects of this type."""
        return self.storage or (self.group, self.plural)

    @property
    def qualified(self) -> str:
        """Name of the type in messages: `pods`, `deployments.apps`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def collection_kind(self) -> str:
        """Kind of a list of these objects (`PodList`)."""
        return self.list_kind or f"{self.kind}List"

    @property
    def counts_generations(self) -> bool:
        """True if `metadata.generation` counts the changes of the desired state. Some built-in types have no generation."""
        return self.custom or self.kind not in _WITHOUT_GENERATION

    @property
    def dies_gracefully(self) -> bool:
        """True if an object stays for a time after its deletion has begun, if only for an instant."""
        return self.kind == "Pod" and not self.custom

    @property
    def has_status(self) -> bool:
        """True if status is written only through its own subresource."""
        return "status" in self.subresources


class ResourceRegistry:
    """The types that one server serves, in the order of discovery.

    `generation` grows with each change, so that caches of documents are built again.
    """

    def __init__(self, types: Iterable[ResourceType] | None = None) -> None:
        self._types: dict[tuple[str, str, str], ResourceType] = {}
        self.generation = 0
        for resource in builtin_types() if types is None else types:
            self.add(resource)

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(self._types.values())

    def add(self, resource: ResourceType) -> None:
        """Serve `resource` from now on, in place of one with the same group, version and plural."""
        self._types[resource.group, resource.version, resource.plural] = resource
        self.generation += 1

    def remove(self, group: str, version: str, plural: str) -> None:
        """Stop serving a type, if it was served."""
        if self._types.pop((group, version, plural), None) is not None:
            self.generation += 1

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        """Return the type behind a path, or None."""
        return self._types.get((group, version, plural))

    def served(self, key: GroupResource) -> ResourceType:
        """Return the first version of a type that every server serves."""
        found = self.find(key[0], "v1", key[1])
        assert found is not None, f"{key[1]} is served"
        return found

    def by_kind(self, api_version: str, kind: str) -> ResourceType | None:
        """Return the type whose objects carry this apiVersion and kind, or None."""
        return next((t for t in self if t.kind == kind and t.api_version == api_version), None)

    def stored_as(self, key: GroupResource) -> list[ResourceType]:
        """Return all served versions (and views) of one storage."""
        return [t for t in self if t.key == key]

    def groups(self) -> dict[str, list[str]]:
        """Return the versions of each group, the preferred one first, in the order of appearance. The core group is empty."""
        found: dict[str, list[str]] = {}
        for resource in self:
            versions = found.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        return found

    def in_group_version(self, group: str, version: str) -> list[ResourceType]:
        """Return the types of one group and version, if any."""
        return [t for t in self if t.group == group and t.version == version]


def builtin_types() -> list[ResourceType]:
    """Return the types served without any custom resource definition."""
    return [_type(*line.split()) for line in _BUILTIN.splitlines()]


def _type(api_version: str, plural: str, kind: str, scope: str, short: str, subresources: str, category: str = "") -> ResourceType:
    group, _, version = api_version.rpartition("/")
    return ResourceType(
        group,
        version,
        plural,
        kind.lower(),
        kind,
        scope == "namespace",
        short_names=_listed(short),
        categories=(category,) if category else (),
        verbs=CREATE_ONLY if kind in _ONLY_CREATED else _ONE_BY_ONE if kind == "Namespace" else ALL_VERBS,
        subresources=_listed(subresources),
        storage=EVENTS if (group, plural) == ("events.k8s.io", "events") else None,
    )


def _listed(text: str) -> tuple[str, ...]:
    return () if text == "-" else tuple(text.split(","))


# --- one stored object, shown in each version and group that serves it ---------------------------------------------------------

# Custom resources convert with strategy `None`, which changes only apiVersion. Events are stored as core events.

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
    """Return `sent`, an object of `resource`, in the version in which its type is stored."""
    if resource.key == EVENTS and resource.group:
        return {**_renamed(sent, _EVENTS_TO_CORE), "apiVersion": "v1"}
    if resource.custom and sent["apiVersion"] != resource.stored_version:
        return {**sent, "apiVersion": resource.stored_version}
    return sent


def presented(resource: ResourceType, stored: Object) -> Object:
    """Return `stored` in the form of `resource`. If nothing differs, return the same dict."""
    if stored.get("apiVersion") == resource.api_version:
        return stored
    if resource.key == EVENTS and resource.group:
        return {**_renamed(stored, _CORE_TO_EVENTS), "apiVersion": resource.api_version}
    return {**stored, "apiVersion": resource.api_version}


def _renamed(content: Object, names: dict[str, str]) -> Object:
    return {names.get(key, key): value for key, value in content.items()}
