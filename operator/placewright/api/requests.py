"""Sums a pod's requests as kube-scheduler does (component-helpers `resource.PodRequests`).

CPU is in milli-CPU, all other resources in whole units (bytes, counts). Amounts are summed exactly and rounded up once, at the end.

A running pod may be resized in place. Until its node has done that, the pod counts with the largest of three amounts: its spec, the amount
that the node has allocated, and the amount that it runs with (its status). A spec that the node has called infeasible does not count.
`spec_in_effect` computes the spec with these amounts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from placewright.api.objects import (
    Container,
    ContainerResources,
    ContainerStatus,
    NodeAllocatableClaimStatus,
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

#: Request that scoring assumes for a container without one (100m, 200 MiB), so that such pods spread, too.
DEFAULT_MILLI_CPU: Final = 100
DEFAULT_MEMORY: Final = 200 * 1024 * 1024
_SCORING_DEFAULTS: Final[Mapping[str, int]] = {CPU: nano(f"{DEFAULT_MILLI_CPU}m"), MEMORY: nano(str(DEFAULT_MEMORY))}

#: Type of the condition of a pod whose resize in place has not begun.
RESIZE_PENDING: Final = "PodResizePending"
_INFEASIBLE: Final = "Infeasible"
_NO_RESOURCES: Final[ResourceList] = {}

Nanos = dict[str, int]
_NOTHING: Final[Nanos] = {}


def is_extended_resource(name: str) -> bool:
    """Recognise a resource in a vendor's domain.

    Returns:
        True for a vendor's; False for `cpu` and for `kubernetes.io/...`.
    """
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def is_scalar_resource(name: str) -> bool:
    """Recognise a counted resource other than CPU, memory and ephemeral storage.

    Returns:
        True for hugepages, volumes of in-tree plugins, and everything in a domain.
    """
    return is_extended_resource(name) or name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name


def is_native_or_scalar(name: str) -> bool:
    """Recognise a resource that has a column. Other names are ignored, as in kube-scheduler.

    Returns:
        True when it has a column.
    """
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def canonical(resources: Mapping[str, RawQuantity]) -> dict[str, int]:
    """Convert a resource list to column units.

    Returns:
        Name to amount (milli-CPU, bytes, counts), rounded up.

    Raises:
        QuantityError: a quantity does not parse.
    """
    return {name: in_column_units(name, nano(quantity)) for name, quantity in resources.items()}


def in_column_units(name: str, nanos: int) -> int:
    """Convert an amount to the unit of its column.

    Returns:
        Milli-CPU for CPU, whole units for all other resources, rounded up.
    """
    return ceil_milli(nanos) if name == CPU else ceil_units(nanos)


def taken_with_claims(statuses: Sequence[NodeAllocatableClaimStatus]) -> Nanos:
    """Sum the resources of the node that a pod takes with its claims to devices.

    Returns:
        Name to amount in nano-units.

    Raises:
        QuantityError: a quantity does not parse.
    """
    total: Nanos = {}
    for status in statuses:
        _add(total, {name: nano(quantity) for name, quantity in (status.resources or {}).items()})
        _add(total, {each.name: nano(each.quantity) for each in status.mapping or ()})
        users = len(status.containers or ())
        for each in status.overhead or ():
            _add(total, {each.name: nano(each.per_pod or "0") + users * nano(each.per_container or "0")})
    return total


def pod_requests(spec: PodSpec, taken: Mapping[str, int] = _NOTHING) -> dict[str, int]:
    """Sum a pod's requests over its containers, init containers, sidecars and overhead.

    Args:
        spec: the pod's.
        taken: nano-units of the node's resources that the pod takes with its claims (see `taken_with_claims`).

    Returns:
        Name to amount in column units; resources without a column are left out.

    Raises:
        QuantityError: a quantity does not parse.
    """
    total = _total(spec, {}, _pod_level(spec), taken)
    return {name: in_column_units(name, value) for name, value in total.items() if is_native_or_scalar(name)}


def beyond_pod_level(spec: PodSpec, taken: Mapping[str, int]) -> list[str]:
    """Name the resources for which the request of the pod as a whole does not cover its containers and claims.

    Returns:
        Names in the order of the pod's requests.

    Raises:
        QuantityError: a quantity does not parse.
    """
    at_pod_level = _pod_level(spec)
    parts, whole = _total(spec, {}, {}, taken), _total(spec, {}, at_pod_level, taken)
    return [name for name in at_pod_level if parts.get(name, 0) > whole[name]]


def scoring_requests(spec: PodSpec, taken: Mapping[str, int] = _NOTHING) -> tuple[int, int]:
    """Sum a pod's requests for scoring, with defaults for containers without a request: kube-scheduler's `NonZeroRequested`.

    If the pod as a whole requests a resource, no default for that resource is added. The sums are milli-CPU and bytes of memory.

    Raises:
        QuantityError: a quantity does not parse.
    """
    at_pod_level, defaults = _pod_level(spec), _SCORING_DEFAULTS
    if at_pod_level:
        said = _total(spec, {}, at_pod_level, taken)
        defaults = {name: value for name, value in defaults.items() if name not in said}
    total = _total(spec, defaults, at_pod_level, taken)
    return ceil_milli(total.get(CPU, 0)), ceil_units(total.get(MEMORY, 0))


def scoring_requests_of_containers(spec: PodSpec) -> dict[str, int]:
    """Sum the requests of a pod's containers for scoring, for every resource, ignoring requests of the pod as a whole.

    Returns:
        Name to amount in column units.

    Raises:
        QuantityError: a quantity does not parse.
    """
    return {name: in_column_units(name, value) for name, value in _total(spec, _SCORING_DEFAULTS, {}).items()}


def spec_in_effect(spec: PodSpec, status: PodStatus) -> PodSpec:
    """Compute the spec that the pod's node has to make room for while the pod is being resized.

    Ordinary init containers cannot be resized, so their status does not matter.

    Returns:
        The spec with the amounts in effect; the same object where they do not differ.

    Raises:
        QuantityError: a quantity does not parse.
    """
    if not reports_resources(status):
        return spec
    reports = {report.name: report for reports in (status.container_statuses, status.init_container_statuses) for report in reports or ()}
    wishes_count = not _is_infeasible(status)
    containers = tuple([_container_in_effect(one, reports.get(one.name), wishes_count) for one in spec.containers or ()])
    sidecars = {one.name: reports.get(one.name) for one in spec.init_containers or () if one.restart_policy == "Always"}
    init = tuple([_container_in_effect(one, sidecars.get(one.name), wishes_count) for one in spec.init_containers or ()])
    resources = _pod_level_in_effect(spec.resources, status, wishes_count)
    if containers == (spec.containers or ()) and init == (spec.init_containers or ()) and resources is spec.resources:
        return spec
    return msgspec.structs.replace(spec, containers=containers, init_containers=init, resources=resources)


def reports_resources(status: PodStatus) -> bool:
    """Return whether a kubelet has reported resources that may differ from the spec.

    Returns:
        True when the spec in effect may differ.
    """
    return status.container_statuses is not None or status.init_container_statuses is not None or status.resources is not None


def _is_infeasible(status: PodStatus) -> bool:
    """Return whether the node has called the wanted resize infeasible. The first condition of that type decides."""
    reasons = (condition.reason for condition in status.conditions or () if condition.type == RESIZE_PENDING)
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
    return msgspec.structs.replace(container, resources=ContainerResources(requests=requests))


def _pod_level_in_effect(resources: ResourceRequirements | None, status: PodStatus, wishes_count: bool) -> ResourceRequirements | None:
    if resources is None or status.resources is None:
        return resources
    wished = resources.requests or _NO_RESOURCES
    known = (status.resources.requests or _NO_RESOURCES, status.allocated_resources or _NO_RESOURCES)
    most = _most(*((wished,) if wishes_count else ()), *known)
    return ResourceRequirements(requests={name: most.get(name, 0) for name in wished})


def _most(*lists: ResourceList) -> ResourceList:
    """Return the largest quantity of each resource in any of the lists."""
    most: ResourceList = {}
    for resources in lists:
        for name, quantity in resources.items():
            if name not in most or nano(quantity) > nano(most[name]):
                most[name] = quantity
    return most


def _total(spec: PodSpec, defaults: Mapping[str, int], at_pod_level: Mapping[str, int], taken: Mapping[str, int] = _NOTHING) -> Nanos:
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
        # Only names that this container requests: of others, the sidecars need the same as at the last container that requested them.
        for name in request:
            need[name] = max(need.get(name, 0), own.get(name, 0) + sidecars.get(name, 0))
    for name, value in need.items():
        total[name] = max(total.get(name, 0), value)
    _add(total, taken)
    total.update(at_pod_level)
    _add(total, {name: nano(quantity) for name, quantity in (spec.overhead or {}).items()})
    return total


def _pod_level(spec: PodSpec) -> Nanos:
    requests = (spec.resources.requests if spec.resources else None) or {}
    return {name: nano(quantity) for name, quantity in requests.items() if name in (CPU, MEMORY) or name.startswith("hugepages-")}


def _container(container: Container, defaults: Mapping[str, int]) -> Nanos:
    request = {name: nano(quantity) for name, quantity in (container.resources.requests or {}).items()}
    for name, value in defaults.items():
        request.setdefault(name, value)
    return request


def _add(total: Nanos, more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value
