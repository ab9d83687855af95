"""Chooses the rules for an object of the resource.k8s.io group, or a PodGroup; the rules for all kinds but claims are here.

As in `claimrules`, these are the rules for the mistakes of people who write a slice, a class or a group by hand. Source:
`pkg/apis/resource/validation` and, for groups, the declared validation of scheduling.k8s.io/v1alpha2.
"""

from __future__ import annotations

import re
from typing import Final

from kubesandbox.devices.claimrules import (
    ADMIN_LABEL,
    check_claim_spec,
    check_claim_status,
    check_conditions,
    check_opaque,
    check_selector_field,
    drop_departed,
)
from kubesandbox.devices.fields import (
    Faults,
    each_of,
    label_key,
    label_name,
    required,
    subdomain,
    too_many,
    unsupported,
)
from kubesandbox.devices.fields import invalid as invalid_field
from kubesandbox.resources import ResourceType
from kubesandbox.status import Object, invalid

#: A resource with a domain that is not Kubernetes' own, and no quota's.
_EXTENDED: Final = re.compile(
    r"(?!(.*\.)?kubernetes\.io/|requests\.)[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)
_PLACES: Final = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_ATTRIBUTES: Final = tuple(f"{kind}{plural}" for kind in ("bool", "int", "string", "version") for plural in ("", "s"))
_TAINT_EFFECTS: Final = ("NoExecute", "NoSchedule", "None")


def check_spec(resource: ResourceType, new: Object, old: Object | None, namespace: Object | None) -> None:
    """Raise ApiError 400 or 422 for the faults of a new object, or of a change.

    `namespace` is the Namespace of the object, None for cluster-scoped ones.
    """
    admin = namespace is not None and (namespace["metadata"].get("labels") or {}).get(ADMIN_LABEL) == "true"
    spec, former = new.get("spec") or {}, None if old is None else old.get("spec") or {}
    if faults := list(_spec_faults(resource.kind, spec, former, admin=admin)):
        raise invalid(resource, new["metadata"]["name"], faults)


def check_status(resource: ResourceType, new: Object, old: Object) -> None:
    """Raise ApiError 400 or 422 for the faults of a status that is written, and drop the fields that depend on dropped ones."""
    if resource.kind == "ResourceClaim":
        drop_departed(new, old)
        faults = list(check_claim_status(new, old))
    else:
        faults = list(check_conditions("status.conditions", (new.get("status") or {}).get("conditions")))
    if faults:
        raise invalid(resource, new["metadata"]["name"], faults)


def _spec_faults(kind: str, spec: Object, former: Object | None, *, admin: bool) -> Faults:
    if kind in ("ResourceClaim", "ResourceClaimTemplate"):
        if former is not None:
            yield from [invalid_field("spec", spec, "field is immutable")] if spec != former else []
        elif kind == "ResourceClaim":
            yield from check_claim_spec("spec", spec, admin=admin)
        else:
            yield from check_claim_spec("spec.spec", spec.get("spec") or {}, admin=admin)
    elif kind == "ResourceSlice":
        yield from _check_slice(spec, former)
    elif kind == "DeviceClass":
        yield from _check_class(spec)
    elif kind == "DeviceTaintRule":
        yield from _check_taint("spec.taint", spec.get("taint") or {})
    elif kind == "PodGroup":
        yield from _check_group(spec, former)


def _check_slice(spec: Object, old: Object | None) -> Faults:
    pool = spec.get("pool") or {}
    yield from subdomain("spec.driver", spec.get("driver"))
    if not pool.get("name"):
        yield required("spec.pool.name")
    if (pool.get("resourceSliceCount") or 0) <= 0:
        yield invalid_field("spec.pool.resourceSliceCount", pool.get("resourceSliceCount") or 0, "must be greater than zero")
    if old is not None:
        before, now = ({**each, "pool.name": (each.get("pool") or {}).get("name")} for each in (old, spec))
        for field in ("pool.name", "driver", "nodeName"):
            if before.get(field) != now.get(field):
                yield invalid_field(f"spec.{field}", now.get(field), "field is immutable")
    yield from _check_place(spec)
    yield from each_of("spec.devices", spec.get("devices"), _check_device, lambda each: str(each.get("name") or ""))


def _check_place(spec: Object) -> Faults:
    """Require exactly one of the fields that name the nodes with access to the devices."""
    fields = [f"`{field}`" for field in _PLACES if spec.get(field)]
    wanted = f"exactly one of {', '.join(f'`{field}`' for field in _PLACES)} is required"
    if not fields:
        yield required("spec", wanted)
    elif len(fields) > 1:
        yield invalid_field("spec", f"{{{', '.join(fields)}}}", f"{wanted}, but multiple fields are set")


def _check_device(path: str, device: Object) -> Faults:
    yield from label_name(f"{path}.name", device.get("name"))
    for name, attribute in (device.get("attributes") or {}).items():
        given = [field for field in _ATTRIBUTES if (attribute or {}).get(field) is not None]
        if len(given) != 1:
            yield invalid_field(f"{path}.attributes[{name}]", attribute if given else "", "exactly one value must be specified")
    yield from each_of(f"{path}.taints", device.get("taints"), _check_taint)


def _check_taint(path: str, taint: Object) -> Faults:
    yield from label_key(f"{path}.key", taint.get("key"))
    effect = taint.get("effect") or ""
    if not effect:
        yield required(f"{path}.effect")
    elif effect not in _TAINT_EFFECTS:
        yield unsupported(f"{path}.effect", effect, _TAINT_EFFECTS)


def _check_class(spec: Object) -> Faults:
    yield from each_of("spec.selectors", spec.get("selectors"), check_selector_field)
    yield from each_of("spec.config", spec.get("config"), check_opaque)
    name = spec.get("extendedResourceName")
    if name is not None and not _EXTENDED.fullmatch(name):
        yield invalid_field("spec.extendedResourceName", name, "must be a valid extended resource name")


def _check_group(spec: Object, old: Object | None) -> Faults:
    if old is not None:
        for field in ("podGroupTemplateRef", "schedulingPolicy", "schedulingConstraints"):
            if old.get(field) != spec.get(field):
                yield invalid_field(f"spec.{field}", spec.get(field), "field is immutable")
        return
    yield from _check_policy("spec.schedulingPolicy", spec.get("schedulingPolicy") or {})
    if spec.get("schedulingConstraints") is not None:
        path = "spec.schedulingConstraints.topology"
        topologies = spec["schedulingConstraints"].get("topology") or []
        if len(topologies) > 1:
            yield too_many(path, len(topologies), 1)
        for at, each in enumerate(topologies):
            key = each.get("topologyKey")
            yield from label_key(f"{path}[{at}].topologyKey", key) if key else [required(f"{path}[{at}].topologyKey")]


def _check_policy(path: str, policy: Object) -> Faults:
    fields = [field for field in ("basic", "gang") if policy.get(field) is not None]
    if not fields:
        yield invalid_field(path, "", "must specify one of: `basic`, `gang`")
    elif len(fields) > 1:
        yield invalid_field(path, "{`basic`, `gang`}", "exactly one of `basic`, `gang` is required, but multiple fields are set")
    elif fields == ["gang"]:
        count = policy["gang"].get("minCount") or 0
        if not count:
            yield required(f"{path}.gang.minCount")
        elif count < 0:
            yield invalid_field(f"{path}.gang.minCount", count, "must be greater than or equal to 1")
