"""Which rules an object of the resource.k8s.io group, or a PodGroup, is held against when it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from kubesandbox.devices.claimrules import ADMIN_LABEL, check_claim_spec
from kubesandbox.devices.classrules import check_class, check_taint_rule
from kubesandbox.devices.fields import Faults
from kubesandbox.devices.fields import invalid as invalid_field
from kubesandbox.devices.grouprules import check_group
from kubesandbox.devices.slicerules import check_slice
from kubesandbox.devices.statusrules import MAX_CONDITIONS, check_claim_status, check_conditions, drop_departed
from kubesandbox.resources import ResourceType
from kubesandbox.status import Object, bad_request, invalid
from placewright.api.quantity import QuantityError, nano

_QUANTITIES = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
#: Where amounts stand: the fields that lead to one, `*` for every entry of a list or a map.
_AMOUNTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "ResourceClaim": (
            "spec.devices.requests.*.exactly.capacity.requests.*",
            "spec.devices.requests.*.firstAvailable.*.capacity.requests.*",
            "status.allocation.devices.results.*.consumedCapacity.*",
        ),
        "ResourceClaimTemplate": (
            "spec.spec.devices.requests.*.exactly.capacity.requests.*",
            "spec.spec.devices.requests.*.firstAvailable.*.capacity.requests.*",
        ),
        "ResourceSlice": (
            "spec.devices.*.capacity.*.value",
            "spec.devices.*.capacity.*.requestPolicy.default",
            "spec.devices.*.capacity.*.requestPolicy.validValues.*",
            *(f"spec.devices.*.capacity.*.requestPolicy.validRange.{limit}" for limit in ("min", "max", "step")),
            "spec.devices.*.consumesCounters.*.counters.*.value",
            "spec.sharedCounters.*.counters.*.value",
        ),
    }
)


def check_spec(resource: ResourceType, new: Object, old: Object | None, namespace: Object | None) -> None:
    """Raises ApiError 400 or 422 for what is wrong with a new object, or with a change of one that is there.

    `namespace` is the Namespace of the object, None for cluster-scoped ones.
    """
    _check_amounts(resource, new)
    faults = list(_spec_faults(resource.kind, new, old, admin=_is_admins(namespace)))
    if faults:
        raise invalid(resource, new["metadata"]["name"], faults)


def check_status(resource: ResourceType, new: Object, old: Object, namespace: Object | None) -> None:
    """Raises ApiError 400 or 422 for what is wrong with a status that is written; drops from it what goes with it."""
    _check_amounts(resource, new)
    if resource.kind == "ResourceClaim":
        drop_departed(new, old)
        faults = list(check_claim_status(new, old, admin=_is_admins(namespace)))
    else:
        limit = MAX_CONDITIONS if resource.kind == "DeviceTaintRule" else 10**9
        faults = list(check_conditions("status.conditions", (new.get("status") or {}).get("conditions"), limit))
    if faults:
        raise invalid(resource, new["metadata"]["name"], faults)


def _spec_faults(kind: str, new: Object, old: Object | None, *, admin: bool) -> Faults:
    spec, former = new.get("spec") or {}, None if old is None else old.get("spec") or {}
    if kind in ("ResourceClaim", "ResourceClaimTemplate"):
        if former is not None:
            yield from [invalid_field("spec", spec, "field is immutable")] if spec != former else []
        elif kind == "ResourceClaim":
            yield from check_claim_spec("spec", spec, admin=admin)
        else:
            yield from check_claim_spec("spec.spec", spec.get("spec") or {}, admin=admin)
    elif kind == "ResourceSlice":
        yield from check_slice(spec, former)
    elif kind == "DeviceClass":
        yield from check_class(spec, former)
    elif kind == "DeviceTaintRule":
        yield from check_taint_rule(spec, former)
    elif kind == "PodGroup":
        yield from check_group(spec, former)


def _is_admins(namespace: Object | None) -> bool:
    return namespace is not None and (namespace["metadata"].get("labels") or {}).get(ADMIN_LABEL) == "true"


def _check_amounts(resource: ResourceType, new: Object) -> None:
    for path in _AMOUNTS.get(resource.kind, ()):
        for value in _found(new, path.split(".")):
            try:
                nano(value)
            except QuantityError:
                what = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
                raise bad_request(f"{what}: {_QUANTITIES}") from None


def _found(value: Any, path: list[str]) -> Iterator[Any]:
    if value is None:
        return
    if not path:
        yield value
    elif path[0] == "*":
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from _found(each, path[1:])
    elif isinstance(value, dict):
        yield from _found(value.get(path[0]), path[1:])
