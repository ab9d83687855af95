"""What a pod asks for: requests summed as kube-scheduler sums them (component-helpers `resource.PodRequests`).

CPU is in milli-CPU, everything else in whole units (bytes, counts), rounded up once after summing exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from placewright.api.objects import Container, PodSpec, RawQuantity
from placewright.api.quantity import ceil_milli, ceil_units, nano

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"

#: Scoring counts a container without a request as if it asked for this much (100m, 200 MiB), so that such pods spread too.
DEFAULT_MILLI_CPU: Final = 100
DEFAULT_MEMORY: Final = 200 * 1024 * 1024
_SCORING_DEFAULTS: Final[Mapping[str, int]] = {CPU: nano(f"{DEFAULT_MILLI_CPU}m"), MEMORY: nano(str(DEFAULT_MEMORY))}

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
    """(milli-CPU, bytes of memory) with the defaults for containers that ask for nothing: kube-scheduler's `NonZeroRequested`."""
    total = _total(spec, _SCORING_DEFAULTS, _pod_level(spec))
    return ceil_milli(total.get(CPU, 0)), ceil_units(total.get(MEMORY, 0))


def scoring_requests_of_containers(spec: PodSpec) -> dict[str, int]:
    """The same for every resource, in column units, as if nothing were said of the pod as a whole."""
    return {name: in_column_units(name, value) for name, value in _total(spec, _SCORING_DEFAULTS, {}).items()}


def _total(spec: PodSpec, defaults: Mapping[str, int], at_pod_level: Mapping[str, int]) -> Nanos:
    defaults = {name: value for name, value in defaults.items() if name not in at_pod_level}
    total: Nanos = {}
    for container in spec.containers or ():
        _add(total, _container(container, defaults))
    need: Nanos = {}
    sidecars: Nanos = {}
    for container in spec.init_containers or ():
        request = _container(container, defaults)
        if container.restart_policy == "Always":
            _add(total, request)
            _add(sidecars, request)
            request = sidecars
        else:
            request = dict(request)
            _add(request, sidecars)
        for name, value in request.items():
            need[name] = max(need.get(name, 0), value)
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
