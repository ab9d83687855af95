"""Makes a cluster from manifests instead of an API server, for `evaluate`, `explain` and the golden cases.

`tried_lacks` finds the shortage of a group on such a cluster, by placing its members one after the other.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from placewright.api.bad_input import bad_field
from placewright.api.counts import take_out
from placewright.api.decode import DecodeError, convert, decode
from placewright.api.devices import ResourceClaim
from placewright.api.objects import Node, Pod
from placewright.api.podgroups import KIND as POD_GROUP
from placewright.api.podgroups import POD_GROUPS, GroupRef
from placewright.api.pods import PodInfo
from placewright.api.podstart import bound_at
from placewright.api.profile import KIND, SchedulingProfile
from placewright.api.quantity import QuantityError
from placewright.api.requests import canonical
from placewright.api.storage import PersistentVolume, StorageClass, VolumePhase
from placewright.cluster.cluster import Cluster
from placewright.cluster.devices import DEVICE_KINDS
from placewright.cluster.objects import KINDS, ClusterObject
from placewright.framework.ports import PodGroupMembers
from placewright.framework.registry import Registry, installed_sources
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import Guarding
from placewright.framework.runtime.handle import NoPodGroupMembers, ProfileHandle
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.queue.nominator import Nominator
from placewright.scheduler.cycle import FitError, SchedulingCycle
from placewright.scheduler.podgroups.shortage import lacking

#: The structs of all kinds that placement reads, and of profiles, by kind; `struct_of` tells kinds of one name apart.
STRUCTS: Final[Mapping[str, type[Any]]] = {kind.__name__: kind for kind in (Node, Pod, *KINDS) if kind not in POD_GROUPS.values()} | {
    KIND: SchedulingProfile
}
#: The names of all kinds that placement reads, and of profiles.
KNOWN: Final = frozenset({*STRUCTS, POD_GROUP})


@dataclass(slots=True)
class OfflineCluster:
    """A cluster made from manifests.

    Attributes:
        cluster: nodes, pods on them, and all other objects.
        pending: pods without a node, by `namespace/name`.
    """

    cluster: Cluster = field(default_factory=Cluster)
    pending: dict[str, PodInfo] = field(default_factory=dict)

    def add(self, manifest: Mapping[str, Any], where: str) -> None:
        """Add an object. A kind that placement does not read is passed over.

        Args:
            manifest: manifest of the object.
            where: names the file in errors.

        Raises:
            InputError: the object is not valid; the message names it and the field.
        """
        item = read_object(manifest, where)
        if isinstance(item, Node):
            self.cluster.set_node(item)
        elif isinstance(item, PodInfo):
            if item.node_name and not item.finished:
                self.cluster.set_pod(item)
            elif not item.finished:
                self.pending[item.key] = item
        elif item is not None:
            self.cluster.objects.put(item)


def read_object(manifest: Mapping[str, Any], where: str) -> Node | PodInfo | ClusterObject | None:
    """Read an object as an API server would serve it.

    Args:
        manifest: manifest of the object.
        where: names the file in errors.

    Returns:
        None for a kind that placement does not read, and for an object that its plugin's source does not select.

    Raises:
        InputError: the object is not valid; the message names it and the field.
    """
    if not isinstance(manifest, Mapping):
        raise bad_field(where, manifest, "objects, each a mapping with kind and metadata")
    kind = manifest.get("kind")
    try:
        struct = struct_of(manifest.get("apiVersion"), kind)
        if any(source.kind is struct and not source.selects(manifest) for source in installed_sources()):
            return None
        if struct is not None and struct is not SchedulingProfile:
            # By way of JSON, because structs of devices keep parts of it undecoded.
            return as_served(decode(msgspec.json.encode(manifest), struct) if struct in DEVICE_KINDS else convert(manifest, struct))
    except (DecodeError, QuantityError) as problem:
        raise bad_field(f"{where}: {kind} {_name(manifest)}", str(problem), f"a valid {kind}") from None
    return None


def as_served(item: Any, like: PodInfo | None = None) -> Node | PodInfo | ClusterObject:
    """Set what an API server would set, and derive what columns take from a pod.

    Args:
        item: a struct of a kind that placement reads, decoded from a manifest.
        like: another pod that may ask for the same; if it does, its derived values are shared.

    Returns:
        The object for the cluster.

    Raises:
        QuantityError: a quantity does not parse.
    """
    if isinstance(item, Node):
        canonical(item.status.allocatable or {})
        return item
    return PodInfo(_identified(item), like) if isinstance(item, Pod) else _admitted(item)


def struct_of(api_version: object, kind: object) -> type[Any] | None:
    """Find the struct of a kind, in any version of its group.

    Returns:
        None for a kind that neither placement nor an installed plugin reads.
    """
    if kind == POD_GROUP:
        return POD_GROUPS.get(str(api_version).rpartition("/")[0])
    return STRUCTS.get(str(kind)) or next((source.kind for source in installed_sources() if source.reads(api_version, kind)), None)


def _identified(pod: Pod) -> Pod:
    """Give a pod a uid and a namespace, which a manifest may lack: the columns tell pods apart by the uid."""
    meta = pod.metadata
    if meta.uid and meta.namespace:
        return pod
    namespace = meta.namespace or "default"
    return replace(pod, metadata=replace(meta, namespace=namespace, uid=meta.uid or f"{namespace}/{meta.name}"))


def _admitted(item: ClusterObject) -> ClusterObject:
    """Set the fields of a volume, claim or class that an API server and its controllers would set."""
    if isinstance(item, PersistentVolume) and not item.status.phase:
        return replace(item, status=VolumePhase(phase="Available" if item.spec.claim_ref is None else "Bound"))
    if isinstance(item, ResourceClaim) and not item.metadata.uid:
        namespace = item.metadata.namespace or "default"
        return replace(item, metadata=replace(item.metadata, namespace=namespace, uid=f"{namespace}/{item.metadata.name}"))
    if isinstance(item, StorageClass) and item.volume_binding_mode is None:
        return replace(item, volume_binding_mode="Immediate")
    return item


class LatestBinding:
    """The clock of an offline cluster: it stands at the latest Binding that its pods tell of, so that equal files give equal answers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._found: float | None = None

    def __call__(self) -> float:
        """Return seconds since 1970, found at the first call; 0 if no pod tells."""
        if self._found is None:
            self._found = max((bound_at(each.pod) or 0.0 for each in self._cluster.placements()), default=0.0)
        return self._found


def world_from(manifests: Iterable[Mapping[str, Any]], where: str) -> OfflineCluster:
    """Make a cluster from manifests.

    Args:
        manifests: manifests in any order.
        where: names the file in errors.
    """
    world = OfflineCluster()
    for manifest in manifests:
        world.add(manifest, where)
    return world


def offline_evaluator(
    profile: ResolvedProfile,
    registry: Registry,
    cluster: Cluster,
    members: PodGroupMembers = NoPodGroupMembers(),  # noqa: B008 - it has no state
    guarding: Guarding | None = None,
    now: Callable[[], float] | None = None,
) -> Evaluator:
    """Build a profile's plugins around an offline cluster.

    Args:
        profile: resolved.
        registry: registry of plugins.
        cluster: only the caller changes it.
        members: the members of groups without a node.
        guarding: guard of out-of-tree plugins.
        now: seconds since 1970, for a cluster that lives on; None for the latest Binding that its pods tell of.

    Returns:
        An evaluator whose plugins write nothing.
    """
    handle = ProfileHandle(cluster, members=members, guarding=guarding, now=now or LatestBinding(cluster))
    return handle.evaluator(profile, registry)


def offline_cycle(cluster: Cluster, seed: int = 0) -> SchedulingCycle:
    """Make the scheduler's own cycle for a cluster without nominated pods."""
    return SchedulingCycle(cluster, Nominator(), random.Random(seed))


def _name(manifest: Mapping[str, Any]) -> str:
    meta = manifest.get("metadata")
    return str(meta.get("name", "?")) if isinstance(meta, Mapping) else "?"


#: Most members that are tried of a larger group, to bound the time of the trial.
_MOST_MEMBERS: Final = 512


class Members:
    """The pods without a node, by group. Implements the framework's `GangMembers`."""

    def __init__(self) -> None:
        self._pods: dict[GroupRef, dict[str, PodInfo]] = {}

    def add(self, pod: PodInfo) -> None:
        """Add a pod without a node."""
        if pod.pod_group is not None:
            self._pods.setdefault(pod.pod_group, {})[pod.uid] = pod

    def remove(self, pod: PodInfo) -> None:
        """Remove a pod that got a node or is gone; harmless for a pod that was not added."""
        if pod.pod_group is not None and pod.uid in self._pods.get(pod.pod_group, ()):
            take_out(self._pods, pod.pod_group, pod.uid)

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Return the pods of a group."""
        return tuple(self._pods.get(ref, {}).values())

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """Count the members of a group that may be tried, by schedulerName.

        Args:
            ref: the group.
            beside: a pod that counts as a member, too, if it names the group.
        """
        members = (*self.members(ref), beside) if beside.pod_group == ref else self.members(ref)
        ready = {pod.uid: pod.scheduler_name for pod in members if pod.may_be_tried}
        return Counter(ready.values())


def tried_lacks(evaluator: Evaluator, cluster: Cluster, ref: GroupRef, members: Collection[PodInfo]) -> str:
    """Find the shortage of a group by placing its members.

    The members stay placed, so the cluster cannot be used for another question afterwards.

    Returns:
        The shortage in words. It is empty if enough members fit, or must fit one domain. It is empty, too, if members are decided one by
        one, or with other groups of a tree.
    """
    pod_group = cluster.pod_groups.get(ref)
    if pod_group is None or pod_group.basic or pod_group.parent or cluster.pod_groups.placed(ref):
        return ""
    if pod_group.topology_key and pod_group.topology_required:
        return ""
    cycle, failures = offline_cycle(cluster), list[FitError]()
    ordered = sorted(members, key=lambda pod: (-pod.priority, pod.created))[:_MOST_MEMBERS]
    for pod in ordered:
        try:
            _take(cycle, evaluator, cluster, pod)
        except FitError as failure:
            failures.append(failure)
    placed = len(ordered) - len(failures)
    return "" if placed >= pod_group.min_member else lacking(pod_group.min_member, placed, pod_group.min_member - len(ordered), failures)


def _take(cycle: SchedulingCycle, evaluator: Evaluator, cluster: Cluster, pod: PodInfo) -> None:
    evaluation = cycle.evaluate(evaluator, pod)
    if evaluation.count == 0:
        raise cycle.refusal(evaluator, evaluation)
    result = cycle.chosen(evaluator, evaluation)
    cluster.assume(pod, result.node)
    status = evaluator.runtime.run_reserve(result.state, pod, result.node)
    if not status.ok:
        cluster.forget(pod, result.node)
        raise FitError(status.message)
    cluster.take_with_claims(pod.uid, result.state.taken_with_claims)
