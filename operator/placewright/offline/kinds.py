"""The kinds of manifest that are read, the API version under which they are created today, and their order.

The order is the one in which a cluster accepts them: what others name comes first, owners come before what they own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from placewright.api.podgroups import KIND as POD_GROUP
from placewright.framework.registry import installed_sources

#: An object as JSON, as people write it and API servers show it.
Manifest = dict[str, Any]


def group_in(api_version: str) -> str:
    """Return the API group of an apiVersion; empty for the core group."""
    return api_version.rpartition("/")[0]


class Kind(NamedTuple):
    """One kind: its current apiVersion, the plural of its path, whether it lives in a namespace."""

    kind: str
    api_version: str
    plural: str
    namespaced: bool = True

    @property
    def group(self) -> str:
        """The API group; empty for the core group."""
        return group_in(self.api_version)

    def path(self, namespace: str = "") -> str:
        """Return the path of the collection on the API server."""
        base = f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"
        return f"{base}/namespaces/{namespace}/{self.plural}" if self.namespaced and namespace else f"{base}/{self.plural}"


_RBAC: Final = "rbac.authorization.k8s.io/v1"
_DEVICES: Final = "resource.k8s.io/v1"

#: Kinds in create order. Workloads stand before ReplicaSets and Jobs, which they own, and these before Pods.
KINDS: Final = (
    Kind("Namespace", "v1", "namespaces", namespaced=False),
    Kind("CustomResourceDefinition", "apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False),
    Kind("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", namespaced=False),
    Kind("StorageClass", "storage.k8s.io/v1", "storageclasses", namespaced=False),
    Kind("CSIDriver", "storage.k8s.io/v1", "csidrivers", namespaced=False),
    Kind("SchedulingProfile", "placewright.dev/v1alpha1", "schedulingprofiles", namespaced=False),
    Kind("Node", "v1", "nodes", namespaced=False),
    Kind("CSINode", "storage.k8s.io/v1", "csinodes", namespaced=False),
    Kind("DeviceClass", _DEVICES, "deviceclasses", namespaced=False),
    Kind("ResourceSlice", _DEVICES, "resourceslices", namespaced=False),
    Kind("DeviceTaintRule", "resource.k8s.io/v1beta2", "devicetaintrules", namespaced=False),
    Kind("PersistentVolume", "v1", "persistentvolumes", namespaced=False),
    Kind("ClusterRole", _RBAC, "clusterroles", namespaced=False),
    Kind("ClusterRoleBinding", _RBAC, "clusterrolebindings", namespaced=False),
    Kind("ServiceAccount", "v1", "serviceaccounts"),
    Kind("Role", _RBAC, "roles"),
    Kind("RoleBinding", _RBAC, "rolebindings"),
    Kind("LimitRange", "v1", "limitranges"),
    Kind("ResourceQuota", "v1", "resourcequotas"),
    Kind("ConfigMap", "v1", "configmaps"),
    Kind("Secret", "v1", "secrets"),
    Kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims"),
    Kind("VolumeAttachment", "storage.k8s.io/v1", "volumeattachments", namespaced=False),
    Kind("CSIStorageCapacity", "storage.k8s.io/v1", "csistoragecapacities"),
    Kind("ResourceClaimTemplate", _DEVICES, "resourceclaimtemplates"),
    Kind("ResourceClaim", _DEVICES, "resourceclaims"),
    Kind("Service", "v1", "services"),
    Kind("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets"),
    Kind("PodGroup", "scheduling.x-k8s.io/v1alpha1", "podgroups"),
    Kind("PodGroup", "scheduling.k8s.io/v1alpha2", "podgroups"),
    Kind("CompositePodGroup", "scheduling.k8s.io/v1alpha3", "compositepodgroups"),
    Kind("Workload", "scheduling.k8s.io/v1alpha1", "workloads"),
    Kind("PodGroup", "scheduling.volcano.sh/v1beta1", "podgroups"),
    Kind("CronJob", "batch/v1", "cronjobs"),
    Kind("Deployment", "apps/v1", "deployments"),
    Kind("DaemonSet", "apps/v1", "daemonsets"),
    Kind("StatefulSet", "apps/v1", "statefulsets"),
    Kind("ReplicationController", "v1", "replicationcontrollers"),
    Kind("ReplicaSet", "apps/v1", "replicasets"),
    Kind("Job", "batch/v1", "jobs"),
    Kind("Pod", "v1", "pods"),
)

#: Groups under which workloads used to live; their shapes are read as apps/v1.
_FORMER_GROUPS: Final = {"extensions": "apps"}
VOLCANO_JOB: Final = "batch.volcano.sh"


def find_kind(api_version: str, kind: str) -> Kind | None:
    """Return the kind behind an apiVersion.

    Args:
        api_version: also an older version of the group.
        kind: also of an object that an installed plugin declares.

    Returns:
        None for a kind that is not read.
    """
    group = group_in(api_version)
    group = _FORMER_GROUPS.get(group, group)
    return next((k for k in KINDS if k.kind == kind and k.group == group), None) or _declared(api_version, kind)


def _declared(api_version: str, kind: str) -> Kind | None:
    """Find the kind, if an installed plugin declares it as its source."""
    for source in installed_sources():
        if source.reads(api_version, kind):
            return Kind(source.name, f"{source.group}/{source.versions[0]}", source.resource, source.namespaced)
    return None


def kind_and_group(manifest: Mapping[str, Any]) -> str:
    """Return the kind, such as `Pod`, with its group if there are several of that name, such as `PodGroup.scheduling.k8s.io`."""
    group = group_in(str(manifest.get("apiVersion") or ""))
    return f"{manifest['kind']}.{group}" if manifest["kind"] == POD_GROUP else str(manifest["kind"])


def create_rank(manifest: dict[str, object]) -> int:
    """Return the position of a manifest in the create order."""
    return next((i for i, k in enumerate(KINDS) if k.kind == manifest.get("kind")), len(KINDS))


def kind_of(manifest: dict[str, object]) -> Kind:
    """Return the kind of a manifest that was read.

    Raises:
        KeyError: the manifest is of no kind that is read.
    """
    found = find_kind(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    if found is None:
        raise KeyError(f"{manifest.get('apiVersion')} {manifest.get('kind')}")
    return found
