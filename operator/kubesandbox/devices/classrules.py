"""Rules for DeviceClasses and DeviceTaintRules. Source: as for `claimrules`."""

from __future__ import annotations

import re

from kubesandbox.devices.claimrules import (
    MAX_CONFIGURATIONS,
    MAX_SELECTORS,
    check_opaque,
    check_selector_field,
    check_taint,
)
from kubesandbox.devices.fields import Faults, driver_name, each_of, invalid, label_name, pool_name
from kubesandbox.status import Object

_EXTENDED = re.compile(r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_NATIVE = re.compile(r"(.*\.)?kubernetes\.io/")


def check_class(spec: Object, old: Object | None) -> Faults:
    """What is wrong with `spec` of a class; what has not changed is not looked at again."""
    if old is None or old.get("selectors") != spec.get("selectors"):
        yield from each_of("spec.selectors", spec.get("selectors"), MAX_SELECTORS, check_selector_field)
    if old is None or old.get("config") != spec.get("config"):
        yield from each_of("spec.config", spec.get("config"), MAX_CONFIGURATIONS, check_opaque)
    name = spec.get("extendedResourceName")
    if name is not None and not is_extended_resource(name):
        yield invalid("spec.extendedResourceName", name, "must be a valid extended resource name")


def is_extended_resource(name: str) -> bool:
    """A resource with a domain that is not Kubernetes' own, and no quota's."""
    return bool(_EXTENDED.fullmatch(name)) and not _NATIVE.match(name) and not name.startswith("requests.")


def check_taint_rule(spec: Object, old: Object | None) -> Faults:
    """What is wrong with `spec` of a taint rule."""
    selector = spec.get("deviceSelector") or {}
    for field, check in (("driver", driver_name), ("pool", pool_name), ("device", label_name)):
        if selector.get(field) is not None:
            yield from check(f"spec.deviceSelector.{field}", selector[field])
    yield from check_taint("spec.taint", spec.get("taint") or {}, (old or {}).get("taint"))
