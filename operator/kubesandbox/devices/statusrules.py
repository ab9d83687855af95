"""Rules for the status of claims: who uses them, what they got, what drivers say of it. Source: as for `claimrules`."""

from __future__ import annotations

import re
from collections.abc import Hashable
from functools import partial

from kubesandbox.devices.claimrules import (
    ADMIN_REFUSED,
    MAX_CONFIGURATIONS,
    RequestNames,
    check_configuration,
    check_parameters,
    check_reference,
    check_toleration,
    request_names,
)
from kubesandbox.devices.fields import (
    Fault,
    Faults,
    distinct,
    driver_name,
    each_of,
    forbidden,
    invalid,
    label_key,
    label_name,
    pool_name,
    required,
    set_of,
    too_many,
    unsupported,
)
from kubesandbox.devices.nodeselectors import check_node_selector
from kubesandbox.devices.podclaims import MAX_CONSUMERS, allocation
from kubesandbox.status import Object

MAX_RESULTS = 32
MAX_CONDITIONS = 8
MAX_BINDING_CONDITIONS = 4
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_DEVICE = ("driver", "pool", "device", "shareID")


def check_claim_status(new: Object, old: Object, *, admin: bool) -> Faults:
    """What is wrong with a claim's new status, the claim as it was being `old`."""
    status, former = new.get("status") or {}, old.get("status") or {}
    got, had = allocation(new), allocation(old)
    if got is not None and had is None and not admin:
        yield from _check_admin(got)
    held = status.get("reservedFor") or []
    yield from set_of("status.reservedFor", held, MAX_CONSUMERS, _check_consumer, lambda each: str(each.get("uid", "")))
    yield from _check_devices(status, got)
    if held and got is None:
        yield forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif "deletionTimestamp" in old["metadata"] and any(each not in (former.get("reservedFor") or ()) for each in held):
        why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield forbidden("status.reservedFor", why)
    if got is not None and had is not None:
        if got != had:
            yield invalid("status.allocation", got, "field is immutable")
    elif got is not None:
        yield from _check_allocation("status.allocation", got, request_names(new.get("spec") or {}))


def drop_departed(new: Object, old: Object) -> None:
    """What drivers say of devices goes with them, as in the real server."""
    status = new.get("status") or {}
    gone = {device_key(each)[:3] for each in _results(old)} - {device_key(each)[:3] for each in _results(new)}
    if gone and status.get("devices"):
        status["devices"] = [each for each in status["devices"] if device_key(each)[:3] not in gone]
        if not status["devices"]:
            del status["devices"]


def device_key(device: Object) -> tuple[str, ...]:
    """Driver, pool, name and share of an allocated device."""
    return tuple(str(device.get(part) or "") for part in _DEVICE)


def _results(claim: Object) -> list[Object]:
    return list(((allocation(claim) or {}).get("devices") or {}).get("results") or ())


def _check_admin(got: Object) -> Faults:
    for at, result in enumerate((got.get("devices") or {}).get("results") or ()):
        if result.get("adminAccess"):
            yield forbidden(f"status.allocation.devices.results[{at}].adminAccess", ADMIN_REFUSED)
            return


def _check_consumer(path: str, reference: Object) -> Faults:
    for part in ("resource", "name", "uid"):
        if not reference.get(part):
            yield required(f"{path}.{part}")


def _check_devices(status: Object, got: Object | None) -> Faults:
    allocated = {device_key(each) for each in ((got or {}).get("devices") or {}).get("results") or ()}
    devices = status.get("devices")
    for at, device in enumerate(devices or ()):
        path = f"status.devices[{at}]"
        yield from _check_device_name(path, device)
        if device_key(device) not in allocated:
            yield invalid(path, "/".join(filter(None, device_key(device))), "must be an allocated device in the claim")
        yield from check_conditions(f"{path}.conditions", device.get("conditions"), MAX_CONDITIONS)
        if device.get("data") is not None:
            yield from check_parameters(f"{path}.data", device["data"])
    yield from distinct("status.devices", devices, device_key)


def _check_device_name(path: str, device: Object) -> Faults:
    yield from driver_name(f"{path}.driver", device.get("driver"))
    yield from pool_name(f"{path}.pool", device.get("pool"))
    yield from label_name(f"{path}.device", device.get("device"))
    share = device.get("shareID")
    if share is not None and not _UUID.fullmatch(share):
        yield invalid(f"{path}.shareID", share, f"error validating uid: invalid UUID length: {len(share)}")


def check_conditions(path: str, conditions: list[Object] | None, limit: int) -> Faults:
    """Conditions as every kind has them, one of a type."""
    if len(conditions or ()) > limit:
        yield too_many(path, len(conditions or ()), limit)
    for at, condition in enumerate(conditions or ()):
        yield from _check_condition(f"{path}[{at}]", condition)
    yield from distinct(path, conditions, lambda each: str(each.get("type", "")))


def _check_condition(path: str, condition: Object) -> Faults:
    if condition.get("type"):
        yield from label_key(f"{path}.type", condition["type"])
    else:
        yield required(f"{path}.type")
    if condition.get("status") not in ("True", "False", "Unknown"):
        yield unsupported(f"{path}.status", condition.get("status") or "", ("False", "True", "Unknown"))
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime")
    reason = condition.get("reason") or ""
    if not reason:
        yield required(f"{path}.reason")
    elif not _REASON.fullmatch(reason):
        wanted = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters"
        yield invalid(f"{path}.reason", reason, f"{wanted} or '_,:', and must end with an alphanumeric character or '_'")


def _check_allocation(path: str, got: Object, names: RequestNames) -> Faults:
    devices = got.get("devices") or {}
    yield from each_of(f"{path}.devices.results", devices.get("results"), MAX_RESULTS, partial(_check_result, names))
    source = partial(_check_source, names)
    yield from each_of(f"{path}.devices.config", devices.get("config"), 2 * MAX_CONFIGURATIONS, source)
    if got.get("nodeSelector") is not None:
        yield from check_node_selector(f"{path}.nodeSelector", got["nodeSelector"])


def _check_result(names: RequestNames, path: str, result: Object) -> Faults:
    yield from check_reference(names, f"{path}.request", result.get("request"))
    yield from _check_device_name(path, result)
    yield from check_binding_conditions(path, result)
    for at, toleration in enumerate(result.get("tolerations") or ()):
        yield from check_toleration(f"{path}.tolerations[{at}]", toleration)


def _check_source(names: RequestNames, path: str, configuration: Object) -> Faults:
    source = configuration.get("source") or ""
    if not source:
        yield required(f"{path}.source")
    elif source not in ("FromClaim", "FromClass"):
        yield unsupported(f"{path}.source", source, ("FromClaim", "FromClass"))
    yield from check_configuration(names, path, configuration)


def check_binding_conditions(path: str, device: Object) -> Faults:
    """Conditions to wait for before a pod is bound, and those that say that it is in vain: both or none, and none twice."""
    fields = ("bindingConditions", "bindingFailureConditions")
    good, bad = ([*(device.get(field) or ())] for field in fields)
    for field, conditions in zip(fields, (good, bad), strict=True):
        yield from each_of(f"{path}.{field}", conditions, MAX_BINDING_CONDITIONS, label_key)
        yield from distinct(f"{path}.{field}", conditions, _itself)
    for at, condition in enumerate(bad):
        if condition in good:
            yield invalid(f"{path}.{fields[1]}[{at}]", condition, f"{fields[1]} must not overlap with {fields[0]}")
    yield from _both(path, fields, good, bad)


def _both(path: str, fields: tuple[str, str], good: list[str], bad: list[str]) -> list[Fault]:
    if bool(good) == bool(bad):
        return []
    absent, present = fields if bad else fields[::-1]
    return [invalid(f"{path}.{absent}", None, f"{absent} are required to use {present}")]


def _itself(value: str) -> Hashable:
    return value
