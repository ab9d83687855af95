"""Reduces an object to the fields that placement reads: the others do not leave the cluster.

Decoding into the structs of `api` already drops environments, commands, probes, and all other fields that they do not declare. Here fields
are cut that `api` declares for other readers. These are messages, most annotations, the fields of watches, and the configuration of
devices. Volumes, ports and reports of a pod are cut if placement does not depend on them. A snapshot or recording keeps the rest, and only
a change in it is a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar, cast
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec.structs import replace

from placewright.api.annotations import DOMAIN_LIMITS
from placewright.api.avoidedpods import ANNOTATION as AVOIDED_PODS
from placewright.api.avoidedpods import Controller, avoided_by
from placewright.api.devices import DeviceClass, DeviceCondition, DeviceStatus, ResourceClaim
from placewright.api.extenders import ExtenderSpec
from placewright.api.objects import (
    AzureFileSource,
    Condition,
    Container,
    ContainerStatus,
    Node,
    ObjectMeta,
    Pod,
    Volume,
    VsphereSource,
)
from placewright.api.podgroups import (
    TOPOLOGY_KEY,
    TOPOLOGY_MODE,
    VOLCANO_GROUP_ANNOTATION,
    CompositePodGroup,
    CoschedulingPodGroup,
    CoschedulingStatus,
    NativePodGroup,
    NativeStatus,
)
from placewright.api.pods import FINISHED_PHASES
from placewright.api.podstart import MIRROR
from placewright.api.profile import ProfileStatus, SchedulingProfile
from placewright.api.storage import BETA_CLASS, BIND_COMPLETED, MIGRATED_PLUGINS, SELECTED_NODE
from placewright.framework.registry import installed_sources
from placewright.offline import kinds
from placewright.offline.world import struct_of

S = TypeVar("S", bound=msgspec.Struct)

#: The only annotations that a plugin of ours looks at.
READ_ANNOTATIONS: Final = frozenset(
    {
        BETA_CLASS, BIND_COMPLETED, MIGRATED_PLUGINS, SELECTED_NODE, AVOIDED_PODS, TOPOLOGY_KEY, TOPOLOGY_MODE, VOLCANO_GROUP_ANNOTATION,
        DOMAIN_LIMITS, MIRROR,
    }
)  # fmt: skip
#: The condition that tells when a pod was bound.
_BOUND: Final = "PodScheduled"
#: The conditions of pods that are looked at: who has to leave for another, whether a resize can ever be, and who has started.
READ_CONDITIONS: Final = frozenset({"DisruptionTarget", "PodResizePending", "Ready", _BOUND})


def pruned(item: S) -> S:
    """Return the object with the fields that placement reads; pruning twice changes nothing."""
    cut = _CUTTERS.get(type(item))
    kept: Any = item if cut is None else cut(item)
    return cast(S, replace(kept, metadata=_metadata(kept.metadata)))


_KINDS: Final[Mapping[type[Any], kinds.Kind]] = {
    struct: kind for kind in kinds.KINDS if (struct := struct_of(kind.api_version, kind.kind)) is not None
}


def kind_of(item: msgspec.Struct) -> str:
    """Return the kind of a struct."""
    return _kind(item).kind


def _kind(item: msgspec.Struct) -> kinds.Kind:
    """Return the kind of objects of this struct; raises `KeyError` for a struct that is not read."""
    known = _KINDS.get(type(item))
    for source in () if known else installed_sources():
        if source.kind is type(item):
            known = kinds.find_kind(f"{source.group}/{source.versions[0]}", source.name)
    if known is None:
        raise KeyError(type(item).__name__)
    return known


def manifest_line(item: msgspec.Struct) -> bytes:
    """Write an object as JSON on one line, with its kind and the API version of its shape."""
    kind = _kind(item)
    head = msgspec.json.encode({"apiVersion": kind.api_version, "kind": kind.kind})
    body = msgspec.json.encode(item)
    return head[:-1] + b"," + body[1:] if body != b"{}" else head


def _metadata(meta: ObjectMeta) -> ObjectMeta:
    annotations = {key: value for key, value in (meta.annotations or {}).items() if key in READ_ANNOTATIONS}
    return replace(meta, resource_version="", generation=0, annotations=annotations or None)


def _pod(pod: Pod) -> Pod:
    spec, status = pod.spec, pod.status
    spec = replace(
        spec,
        containers=_all(_container, spec.containers),
        init_containers=_all(_container, spec.init_containers),
        volumes=_none_if_empty(_volume(volume) for volume in spec.volumes or () if volume != Volume(name=volume.name)),
    )
    status = replace(
        status,
        phase=status.phase if status.phase in FINISHED_PHASES else "",
        conditions=_none_if_empty(_condition(each) for each in status.conditions or () if each.type in READ_CONDITIONS),
        container_statuses=_reports(status.container_statuses),
        init_container_statuses=_reports(status.init_container_statuses),
    )
    return replace(pod, spec=spec, status=status)


def _container(container: Container) -> Container:
    return replace(container, ports=_none_if_empty(port for port in container.ports or () if port.host_port))


def _volume(volume: Volume) -> Volume:
    """Reduce shares of Azure and disks of vSphere to their kind; a share names a Secret."""
    if volume.azure_file is not None:
        volume = replace(volume, azure_file=AzureFileSource())
    return replace(volume, vsphere_volume=VsphereSource()) if volume.vsphere_volume is not None else volume


def _condition(condition: Condition) -> Condition:
    since = condition.last_transition_time if condition.type == _BOUND else None
    return Condition(type=condition.type, status=condition.status, reason=condition.reason, last_transition_time=since)


def _reports(reports: Iterable[ContainerStatus] | None) -> tuple[ContainerStatus, ...] | None:
    return _none_if_empty(report for report in reports or () if report.resources is not None or report.allocated_resources is not None)


def _node(node: Node) -> Node:
    """Keep only the owners of the pods that the node prefers to avoid, not the reasons, which are free text."""
    meta = node.metadata
    if AVOIDED_PODS in (meta.annotations or {}):
        meta = replace(meta, annotations={**(meta.annotations or {}), AVOIDED_PODS: avoided_text(avoided_by(node))})
    return replace(node, metadata=meta, status=replace(node.status, conditions=None))


def avoided_text(avoided: Iterable[Controller]) -> str:
    """Write the annotation that names these controllers."""
    owners = [{"podSignature": {"podController": {"kind": kind, "uid": uid}}} for kind, uid in sorted(avoided)]
    return msgspec.json.encode({"preferAvoidPods": owners}).decode()


def _profile(profile: SchedulingProfile) -> SchedulingProfile:
    extenders = profile.spec.extenders
    spec = replace(profile.spec, extenders=[_extender(each) for each in extenders]) if extenders else profile.spec
    return replace(profile, spec=spec, status=ProfileStatus())


def _extender(extender: ExtenderSpec) -> ExtenderSpec:
    """Without keys, and without a password in the URL; simulations call no extender, so neither is missed."""
    try:
        parts = urlsplit(extender.url_prefix)
        prefix = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        prefix = ""
    return replace(extender, url_prefix=prefix, tls_config=None)


def _declared(group: CoschedulingPodGroup) -> CoschedulingPodGroup:
    return replace(group, spec=replace(group.spec, min_resources=None), status=CoschedulingStatus())


def _claim(claim: ResourceClaim) -> ResourceClaim:
    """Without the configuration of devices: only their drivers read it, and it may hold secrets."""
    devices, status = replace(claim.spec.devices, config=None), claim.status
    allocation = status.allocation
    if allocation is not None:
        allocation = replace(allocation, devices=replace(allocation.devices, config=None))
    reports = _none_if_empty(_report(report) for report in status.devices or () if report.conditions)
    status = replace(status, allocation=allocation, devices=reports)
    return replace(claim, spec=replace(claim.spec, devices=devices), status=status)


def _report(report: DeviceStatus) -> DeviceStatus:
    return replace(report, conditions=tuple([DeviceCondition(type=each.type, status=each.status) for each in report.conditions or ()]))


_CUTTERS: Final[Mapping[type[Any], Callable[[Any], Any]]] = {
    Pod: _pod,
    Node: _node,
    SchedulingProfile: _profile,
    DeviceClass: lambda item: replace(item, spec=replace(item.spec, config=None)),
    ResourceClaim: _claim,
    CoschedulingPodGroup: _declared,
    NativePodGroup: lambda group: replace(group, status=NativeStatus()),
    CompositePodGroup: lambda group: replace(group, status=NativeStatus()),
}


def _all(cut: Callable[[S], S], items: Iterable[S] | None) -> tuple[S, ...] | None:
    return None if items is None else tuple([cut(item) for item in items])


def _none_if_empty(items: Iterable[S]) -> tuple[S, ...] | None:
    return tuple(items) or None
