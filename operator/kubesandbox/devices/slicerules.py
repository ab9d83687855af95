"""Rules for what drivers publish: slices, their pools, devices and counters. Source: as for `claimrules`."""

from __future__ import annotations

import re
from functools import partial

from kubesandbox.devices.capacityrules import check_capacity
from kubesandbox.devices.claimrules import check_taint
from kubesandbox.devices.fields import (
    Fault,
    Faults,
    driver_name,
    each_of,
    invalid,
    label_name,
    pool_name,
    qualified_name,
    required,
    set_of,
    subdomain,
    too_long,
    too_many,
)
from kubesandbox.devices.nodeselectors import check_node_selector
from kubesandbox.devices.statusrules import check_binding_conditions
from kubesandbox.status import Object

MAX_DEVICES = 128
MAX_SPECIAL_DEVICES = 64
"""In a slice with taints, counters or lists."""
MAX_PROPERTIES = 32
MAX_COUNTER_SETS = 8
MAX_COUNTERS = 32
MAX_CONSUMED_SETS = 2
MAX_TAINTS = 16
LONGEST_TEXT = 64
_SEMANTIC_VERSION = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?",
    re.ASCII,
)
_SCALARS = ("bool", "int", "string", "version")
_LISTS = ("bools", "ints", "strings", "versions")
_PLACES = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection")
_DEVICE_PLACES = _PLACES[:3]


def check_slice(spec: Object, old: Object | None) -> Faults:
    """What is wrong with `spec` of a slice; `old` is what it was, None for a new one."""
    yield from driver_name("spec.driver", spec.get("driver"))
    pool = spec.get("pool") or {}
    yield from _check_pool("spec.pool", pool)
    if old is not None:
        before, now = ({**each, "pool": (each.get("pool") or {}).get("name")} for each in (old, spec))
        for field, path in (("pool", "spec.pool.name"), ("driver", "spec.driver"), ("nodeName", "spec.nodeName")):
            if before.get(field) != now.get(field):
                yield invalid(path, now.get(field), "field is immutable")
    yield from _check_place("spec", spec)
    devices, counters = spec.get("devices"), spec.get("sharedCounters")
    if devices is not None and counters is not None:
        yield invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed")
    limit = MAX_SPECIAL_DEVICES if any(map(_is_special, devices or ())) else MAX_DEVICES
    former = {each.get("name"): each for each in (old or {}).get("devices") or ()}
    device = partial(_check_device, former, bool(spec.get("perDeviceNodeSelection")))
    yield from set_of("spec.devices", devices, limit, device, _name)
    yield from set_of("spec.sharedCounters", counters, MAX_COUNTER_SETS, _check_counter_set, _name)


def _name(item: Object) -> str:
    return str(item.get("name") or "")


def _is_special(device: Object) -> bool:
    lists = (field in (attribute or {}) for attribute in (device.get("attributes") or {}).values() for field in _LISTS)
    return bool(device.get("taints") or device.get("consumesCounters")) or any(lists)


def _check_pool(path: str, pool: Object) -> Faults:
    yield from pool_name(f"{path}.name", pool.get("name"))
    if (pool.get("resourceSliceCount") or 0) <= 0:
        yield invalid(f"{path}.resourceSliceCount", pool.get("resourceSliceCount") or 0, "must be greater than zero")
    if (pool.get("generation") or 0) < 0:
        yield invalid(f"{path}.generation", pool["generation"], "must be greater than or equal to zero")


def _check_place(path: str, spec: Object) -> Faults:
    """From where the devices can be reached is said in one way."""
    yield from _check_node(path, spec, "must be either unset or set to a non-empty string")
    selector = spec.get("nodeSelector")
    terms = None if selector is None else selector.get("nodeSelectorTerms") or []
    if terms is not None and len(terms) != 1:
        yield invalid(f"{path}.nodeSelector.nodeSelectorTerms", terms, "must have exactly one node selector term")
    if spec.get("perDeviceNodeSelection") is False:
        yield invalid(f"{path}.perDeviceNodeSelection", False, "must be either unset or set to true")
    fields = [field for field in _PLACES if spec.get(field)]
    wanted = f"exactly one of {', '.join(f'`{field}`' for field in _PLACES)} is required"
    if not fields:
        yield required(path, wanted)
    elif len(fields) > 1:
        yield invalid(path, _braced(fields), f"{wanted}, but multiple fields are set")


def _check_node(path: str, place: Object, empty: str) -> Faults:
    """What a slice and a device may say alike."""
    node, selector = place.get("nodeName"), place.get("nodeSelector")
    if node is not None:
        yield from subdomain(f"{path}.nodeName", node) if node else [invalid(f"{path}.nodeName", "", empty)]
    if selector is not None:
        yield from check_node_selector(f"{path}.nodeSelector", selector)
    if place.get("allNodes") is False:
        yield invalid(f"{path}.allNodes", False, "must be either unset or set to true")


def _braced(fields: list[str]) -> str:
    return f"{{{', '.join(f'`{field}`' for field in fields)}}}"


def _check_device(former: dict[str, Object], each_place: bool, path: str, device: Object) -> Faults:
    yield from label_name(f"{path}.name", device.get("name"))
    old = former.get(device.get("name", "")) or {}
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    if len(attributes) + len(capacity) > MAX_PROPERTIES:
        why = f"the total number of attributes and capacities must not exceed {MAX_PROPERTIES}"
        yield invalid(path, len(attributes) + len(capacity), why)
    for name, attribute in attributes.items():
        yield from qualified_name(f"{path}.attributes", name)
        yield from _check_attribute(f"{path}.attributes[{name}]", attribute)
    if not old or old.get("capacity") != device.get("capacity"):
        for name, amount in capacity.items():
            yield from qualified_name(f"{path}.capacity", name)
            yield from check_capacity(f"{path}.capacity[{name}]", amount, shared=bool(device.get("allowMultipleAllocations")))
    if not old or old.get("taints") != device.get("taints"):
        yield from each_of(f"{path}.taints", device.get("taints"), MAX_TAINTS, check_taint)
    consumed = device.get("consumesCounters")
    yield from set_of(f"{path}.consumesCounters", consumed, MAX_CONSUMED_SETS, _check_consumption, lambda each: str(each.get("counterSet")))
    yield from _check_device_place(path, device) if each_place else _refuse_device_place(path, device)
    yield from check_binding_conditions(path, device)


def _check_attribute(path: str, attribute: Object | None) -> Faults:
    found = attribute or {}
    for field in ("string", "version"):
        values = [(f"{path}.{field}", found[field])] if found.get(field) is not None else []
        values += [(f"{path}.{field}s[{at}]", value) for at, value in enumerate(found.get(f"{field}s") or ())]
        for place, value in values:
            yield from _check_text(place, value, is_version=field == "version")
    for field in _LISTS:
        if found.get(field) == []:
            yield invalid(f"{path}.{field}", [], "must not be empty if specified")
    given = [field for field in (*_SCALARS, *_LISTS) if found.get(field) is not None]
    if len(given) != 1:
        yield invalid(path, found if given else "", "exactly one value must be specified")


def _check_text(path: str, value: str, *, is_version: bool) -> Faults:
    if is_version and not _SEMANTIC_VERSION.fullmatch(value):
        yield invalid(path, value, "must be a string compatible with semver.org spec 2.0.0")
    if len(value.encode()) > LONGEST_TEXT:
        yield too_long(path, LONGEST_TEXT)


def _check_device_place(path: str, device: Object) -> Faults:
    yield from _check_node(path, device, "must not be empty")
    fields = [field for field in _DEVICE_PLACES if device.get(field)]
    wanted = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true"
    if not fields:
        yield required(path, f"{wanted} in the ResourceSlice spec")
    elif len(fields) > 1:
        yield invalid(path, _braced(fields), f"{wanted} in the ResourceSlice spec")


def _refuse_device_place(path: str, device: Object) -> list[Fault]:
    if all(device.get(field) is None for field in _DEVICE_PLACES):
        return []
    fields = "`nodeName`, `nodeSelector` and `allNodes`"
    return [invalid(path, None, f"{fields} can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec")]


def _check_consumption(path: str, consumption: Object) -> Faults:
    yield from _check_counters(path, "counterSet", consumption)


def _check_counter_set(path: str, counters: Object) -> Faults:
    yield from _check_counters(path, "name", counters)


def _check_counters(path: str, field: str, holder: Object) -> Faults:
    name, counters = holder.get(field), holder.get("counters") or {}
    yield from label_name(f"{path}.{field}", name) if name else [required(f"{path}.{field}")]
    if not counters:
        yield required(f"{path}.counters")
    elif len(counters) > MAX_COUNTERS:
        yield too_many(f"{path}.counters", len(counters), MAX_COUNTERS)
    else:
        for each in counters:
            yield from label_name(f"{path}.counters", each)
