"""The choice of rules for an object of the resource.k8s.io group, or a PodGroup. `claimrules` has the rules for claims.

Slices and taint rules come from drivers, and stay unchecked. The rules come from `pkg/apis/resource/validation` and, for groups, from the
declared validation of scheduling.k8s.io/v1alpha2.
"""

from __future__ import annotations

from kubesandbox.devices.claimrules import (
    ADMIN_LABEL,
    check_claim_spec,
    check_claim_status,
    check_selector_field,
    drop_departed,
)
from kubesandbox.fields import Faults, each_of, required
from kubesandbox.fields import invalid as invalid_field
from kubesandbox.resources import ResourceType
from kubesandbox.status import Object, invalid


def check_spec(resource: ResourceType, new: Object, old: Object | None, namespace: Object) -> None:
    """Raise ApiError 400 or 422 for the faults of a new object, or of a change.

    `namespace` is the Namespace of the object, empty for cluster-scoped ones.
    """
    admin = (namespace.get("metadata", {}).get("labels") or {}).get(ADMIN_LABEL) == "true"
    spec, former = new.get("spec") or {}, None if old is None else old.get("spec") or {}
    if faults := list(_spec_faults(resource.kind, spec, former, admin=admin)):
        raise invalid(resource, new["metadata"]["name"], faults)


def check_status(resource: ResourceType, new: Object, old: Object) -> None:
    """Raise ApiError 422 for the faults of a claim's status, and drop the fields that depend on dropped ones."""
    if resource.kind == "ResourceClaim":
        drop_departed(new, old)
        if faults := list(check_claim_status(new, old)):
            raise invalid(resource, new["metadata"]["name"], faults)


def _spec_faults(kind: str, spec: Object, former: Object | None, *, admin: bool) -> Faults:
    if kind in ("ResourceClaim", "ResourceClaimTemplate"):
        if former is not None:
            yield from [invalid_field("spec", spec, "field is immutable")] if spec != former else []
        elif kind == "ResourceClaim":
            yield from check_claim_spec("spec", spec, admin=admin)
        else:
            yield from check_claim_spec("spec.spec", spec.get("spec") or {}, admin=admin)
    elif kind == "DeviceClass":
        yield from each_of("spec.selectors", spec.get("selectors"), check_selector_field)
    elif kind == "PodGroup":
        yield from _check_group(spec, former, "minCount")
    elif kind == "CompositePodGroup":
        yield from _check_group(spec, former, "minGroupCount")


def _check_group(spec: Object, old: Object | None, count: str) -> Faults:
    if old is not None:
        for field in ("podGroupTemplateRef", "schedulingPolicy", "schedulingConstraints"):
            if old.get(field) != spec.get(field):
                yield invalid_field(f"spec.{field}", spec.get(field), "field is immutable")
        return
    yield from _check_policy("spec.schedulingPolicy", spec.get("schedulingPolicy") or {}, count)


def _check_policy(path: str, policy: Object, field: str) -> Faults:
    fields = [each for each in ("basic", "gang") if policy.get(each) is not None]
    if not fields:
        yield invalid_field(path, "", "must specify one of: `basic`, `gang`")
    elif len(fields) > 1:
        yield invalid_field(path, "{`basic`, `gang`}", "exactly one of `basic`, `gang` is required, but multiple fields are set")
    elif fields == ["gang"]:
        count = policy["gang"].get(field) or 0
        if not count:
            yield required(f"{path}.gang.{field}")
        elif count < 0:
            yield invalid_field(f"{path}.gang.{field}", count, "must be greater than or equal to 1")
