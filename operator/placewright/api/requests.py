"""What a pod asks for: requests summed as kube-scheduler sums them (component-helpers `resource.PodRequests`).

CPU is in milli-CPU, everything else in whole units (bytes, counts), rounded up once after summing exactly.

A running pod may be resized in place. Until the node has done it, the pod counts for the most of what is wished (its spec), what the node
has set aside, and what it runs with (its status); a wish that the node can never fulfil does not count. `spec_in_effect` says so as a spec.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from placewright.api.objects import (
    Container,
    ContainerStatus,
    PodSpec,
    PodStatus,
    RawQuantity,
    ResourceList,
    ResourceRequirements,
)
from placewright.api.quantity import ceil_milli, ceil_units, nano

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

#: Scoring counts a container without a request as if it asked for this much (100m, 200 MiB), so that such pods spread too.
DEFAULT_MILLI_CPU: Final = 100
DEFAULT_MEMORY: Final = 200 * 1024 * 1024
_SCORING_DEFAULTS: Final[Mapping[str, int]] = {CPU: nano(f"{DEFAULT_MILLI_CPU}m"), MEMORY: nano(str(DEFAULT_MEMORY))}

_RESIZE_PENDING: Final = "PodResizePending"
_INFEASIBLE: Final = "Infeasible"
_NO_RESOURCES: Final[ResourceList] = {}

Nanos = dict[str, int]


def is_extended_resource(name: str) -> bool:
    """True for names in a vendor's domain: `nvidia.com/gpu`, not `cpu` or `kubernetes.io/...`."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_scalar_resource(name: str) -> bool:
    """True for every counted resource beyond CPU, memory and ephemeral storage."""
    return (
        is_extended_resource(name)
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
    )


def is_native_or_scalar(name: str) -> bool:
    """True for resources that a node has as a column; other names are ignored, as upstream does."""
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def canonical(resources: Mapping[str, RawQuantity]) -> dict[str, int]:
    """A resource list in column units (milli-CPU, bytes, counts); raise `QuantityError` on a bad quantity."""
    return {name: in_column_units(name, nano(quantity)) for name, quantity in resources.items()}


def in_column_units(name: str, nanos: int) -> int:
    """Milli-CPU for CPU, whole units for all else."""
    return ceil_milli(nanos) if name == CPU else ceil_units(nanos)


def pod_requests(spec: PodSpec) -> dict[str, int]:
    """The pod's effective request per resource, in column units; resources nobody counts are left out."""
    total = _total(spec, {}, _pod_level(spec))
    return {name: in_column_units(name, value) for name, value in total.items() if is_native_or_scalar(name)}


def scoring_requests(spec: PodSpec) -> tuple[int, int]:
    """(milli-CPU, bytes of memory) with the defaults for containers that ask for nothing: kube-scheduler's `NonZeroRequested`.

    Where something is said of the pod as a whole, a default is for what then nobody says anything of.
    """
    at_pod_level, defaults = _pod_level(spec), _SCORING_DEFAULTS
    if at_pod_level:
        said = _total(spec, {}, at_pod_level)
        defaults = {name: value for name, value in defaults.items() if name not in said}
    total = _total(spec, defaults, at_pod_level)
    return ceil_milli(total.get(CPU, 0)), ceil_units(total.get(MEMORY, 0))


def scoring_requests_of_containers(spec: PodSpec) -> dict[str, int]:
    """The same for every resource, in column units, as if nothing were said of the pod as a whole."""
    return {name: in_column_units(name, value) for name, value in _total(spec, _SCORING_DEFAULTS, {}).items()}


def spec_in_effect(spec: PodSpec, status: PodStatus) -> PodSpec:
    """The spec as the node that runs the pod has to reckon with it; the same object where the status says nothing else.

    Ordinary init containers cannot be resized, so their status does not matter. Raises `QuantityError`.
    """
    if not reports_resources(status):
        return spec
    reports = {report.name: report for reports in (status.container_statuses, status.init_container_statuses) for report in reports or ()}
    wishes_count = not _is_infeasible(status)
    containers = tuple([_container_in_effect(one, reports.get(one.name), wishes_count) for one in spec.containers or ()])
    init = tuple([_init_container_in_effect(one, reports.get(one.name), wishes_count) for one in spec.init_containers or ()])
    resources = _pod_level_in_effect(spec.resources, status, wishes_count)
    if containers == (spec.containers or ()) and init == (spec.init_containers or ()) and resources is spec.resources:
        return spec
    return msgspec.structs.replace(spec, containers=containers, init_containers=init, resources=resources)


def reports_resources(status: PodStatus) -> bool:
    """Whether a kubelet said anything from which the spec in effect could follow."""
    return status.container_statuses is not None or status.init_container_statuses is not None or status.resources is not None


def _is_infeasible(status: PodStatus) -> bool:
    """True when the node has said that it can never be what the spec now wishes; the first such condition decides."""
    reasons = (condition.reason for condition in status.conditions or () if condition.type == _RESIZE_PENDING)
    return next(reasons, "") == _INFEASIBLE


def _container_in_effect(container: Container, report: ContainerStatus | None, wishes_count: bool) -> Container:
    if report is None or report.resources is None:
        return container
    wished = container.resources.requests or _NO_RESOURCES
    runs_with = report.resources.requests or _NO_RESOURCES
    allocated = report.allocated_resources or _NO_RESOURCES
    if wished == runs_with and (wished == allocated or not allocated):
        return container
    requests = _most(*((wished,) if wishes_count else ()), runs_with, allocated)
    return msgspec.structs.replace(container, resources=ResourceRequirements(requests=requests))


def _init_container_in_effect(container: Container, report: ContainerStatus | None, wishes_count: bool) -> Container:
    return _container_in_effect(container, report, wishes_count) if container.restart_policy == "Always" else container


def _pod_level_in_effect(resources: ResourceRequirements | None, status: PodStatus, wishes_count: bool) -> ResourceRequirements | None:
    if resources is None or status.resources is None:
        return resources
    wished = resources.requests or _NO_RESOURCES
    known = (status.resources.requests or _NO_RESOURCES, status.allocated_resources or _NO_RESOURCES)
    most = _most(*((wished,) if wishes_count else ()), *known)
    return ResourceRequirements(requests={name: most.get(name, 0) for name in wished})


def _most(*lists: ResourceList) -> ResourceList:
    """Of each resource the most that any list has."""
    most: ResourceList = {}
    for resources in lists:
        for name, quantity in resources.items():
            if name not in most or nano(quantity) > nano(most[name]):
                most[name] = quantity
    return most


def _total(spec: PodSpec, defaults: Mapping[str, int], at_pod_level: Mapping[str, int]) -> Nanos:
    total: Nanos = {}
    for container in spec.containers or ():
        _add(total, _container(container, defaults))
    need: Nanos = {}
    sidecars: Nanos = {}
    for container in spec.init_containers or ():
        request = _container(container, defaults)
        own = request
        if container.restart_policy == "Always":
            _add(total, request)
            _add(sidecars, request)
            own = {}
        # Of names that this container does not ask for, the sidecars so far need what they needed when the last of them was looked at.
        for name in request:
            need[name] = max(need.get(name, 0), own.get(name, 0) + sidecars.get(name, 0))
    for name, value in need.items():
        total[name] = max(total.get(name, 0), value)
    total.update(at_pod_level)
    _add(total, {name: nano(quantity) for name, quantity in (spec.overhead or {}).items()})
    return total


def _pod_level(spec: PodSpec) -> Nanos:
    requests = (spec.resources.requests if spec.resources else None) or {}
    return {
        name: nano(quantity)
        for name, quantity in requests.items()
        if name in (CPU, MEMORY) or name.startswith("hugepages-")
    }


def _container(container: Container, defaults: Mapping[str, int]) -> Nanos:
    request = {name: nano(quantity) for name, quantity in (container.resources.requests or {}).items()}
    for name, value in defaults.items():
        request.setdefault(name, value)
    return request


def _add(total: Nanos, more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value
