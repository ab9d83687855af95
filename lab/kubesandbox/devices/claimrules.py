"""Rules for claims: their requests and templates, their status, and the pods that name them.

The rules find the mistakes of people who write claims by hand. Schedulers and drivers rely on some of them. Other fields stay unchecked.
The rules come from `pkg/apis/resource/validation` of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Final

from kubesandbox.definitions.celexpressions import check_selector
from kubesandbox.devices.podclaims import MAX_CONSUMERS, allocation, device_key, results
from kubesandbox.fields import (
    Faults,
    duplicate,
    each_of,
    forbidden,
    invalid,
    label_name,
    required,
    subdomain,
    too_many,
    unsupported,
)
from kubesandbox.status import Object
from placewright.cel.syntax import ExpressionError

ADMIN_LABEL: Final = "resource.kubernetes.io/admin-access"
_ADMIN_REFUSED: Final = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
_REFERENCE: Final = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
_SOURCES: Final = ("resourceClaimName", "resourceClaimTemplateName")

#: The requests of a claim, each with its alternatives.
_RequestNames = Mapping[str, Collection[str]]


# --- requests of a claim -----------------------------------------------------------------------------------------------------


def check_claim_spec(path: str, spec: Object, *, admin: bool) -> Faults:
    """Return the faults of a claim's `spec`. `admin` is True if its namespace may use devices that are in use."""
    devices, names = spec.get("devices") or {}, _request_names(spec)
    path = f"{path}.devices"
    yield from each_of(f"{path}.requests", devices.get("requests"), partial(_check_request, admin), _name)
    for at, constraint in enumerate(devices.get("constraints") or ()):
        yield from each_of(f"{path}.constraints[{at}].requests", constraint.get("requests"), partial(_check_reference, names))


def _request_names(spec: Object) -> _RequestNames:
    requests = (spec.get("devices") or {}).get("requests") or ()
    return {_name(each): {_name(sub) for sub in each.get("firstAvailable") or ()} for each in requests}


def _name(item: Object) -> str:
    return str(item.get("name") or "")


def _check_request(admin: bool, path: str, request: Object) -> Faults:
    yield from label_name(f"{path}.name", request.get("name"))
    exactly, first = request.get("exactly"), request.get("firstAvailable")
    wanted = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not first:
        yield required(path, wanted)
    elif exactly is not None and first:
        yield invalid(path, None, f"{wanted}, but multiple fields are set")
    elif exactly is not None:
        if exactly.get("adminAccess") and not admin:
            yield forbidden(f"{path}.adminAccess", _ADMIN_REFUSED)
        yield from _check_devices(f"{path}.exactly", exactly)
    else:
        yield from each_of(f"{path}.firstAvailable", first, _check_alternative, _name)


def _check_alternative(path: str, request: Object) -> Faults:
    yield from label_name(f"{path}.name", request.get("name"))
    yield from _check_devices(path, request)


def _check_devices(path: str, request: Object) -> Faults:
    yield from subdomain(f"{path}.deviceClassName", request.get("deviceClassName"))
    yield from each_of(f"{path}.selectors", request.get("selectors"), check_selector_field)
    mode, count = request.get("allocationMode") or "", request.get("count") or 0
    if mode not in ("All", "ExactCount"):
        yield unsupported(f"{path}.allocationMode", mode, ("All", "ExactCount"))
    elif mode == "All" and count:
        yield invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount" and count <= 0:
        yield invalid(f"{path}.count", count, "must be greater than zero")


def check_selector_field(path: str, selector: Object) -> Faults:
    """Check that the expression of one selector compiles."""
    if selector.get("cel") is None:
        yield required(f"{path}.cel")
        return
    expression = selector["cel"].get("expression") or ""
    try:
        check_selector(expression)
    except ExpressionError as error:
        yield invalid(f"{path}.cel.expression", expression, f"compilation failed: {error}")


def _check_reference(names: _RequestNames, path: str, name: str | None) -> Faults:
    """Check `request`, or `request/alternative`."""
    request, slash, alternative = (name or "").partition("/")
    if request not in names or (slash and alternative not in names[request]):
        yield invalid(path, name or "", _REFERENCE)


# --- the status of a claim ---------------------------------------------------------------------------------------------------


def check_claim_status(new: Object, old: Object) -> Faults:
    """Return the faults of a claim's new status. `old` is the claim before."""
    status, former = new.get("status") or {}, old.get("status") or {}
    got, had = allocation(new), allocation(old)
    held = status.get("reservedFor") or []
    if len(held) > MAX_CONSUMERS:
        yield too_many("status.reservedFor", len(held), MAX_CONSUMERS)
    allocated = {device_key(each) for each in results(new)}
    for at, device in enumerate(status.get("devices") or ()):
        if device_key(device) not in allocated:
            what = "must be an allocated device in the claim"
            yield invalid(f"status.devices[{at}]", "/".join(filter(None, device_key(device))), what)
    if held and got is None:
        yield forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    elif "deletionTimestamp" in old["metadata"] and any(each not in (former.get("reservedFor") or ()) for each in held):
        why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        yield forbidden("status.reservedFor", why)
    if got is not None and had is not None and got != had:
        yield invalid("status.allocation", got, "field is immutable")
    elif had is None:
        check = partial(_check_result, _request_names(new.get("spec") or {}))
        yield from each_of("status.allocation.devices.results", results(new), check)


def drop_departed(new: Object, old: Object) -> None:
    """Remove the drivers' reports on devices that the claim no longer has, like the real server."""
    status = new.get("status") or {}
    gone = {device_key(each)[:3] for each in results(old)} - {device_key(each)[:3] for each in results(new)}
    if gone and status.get("devices"):
        status["devices"] = [each for each in status["devices"] if device_key(each)[:3] not in gone]
        if not status["devices"]:
            del status["devices"]


def _check_result(names: _RequestNames, path: str, result: Object) -> Faults:
    yield from _check_reference(names, f"{path}.request", result.get("request"))


# --- the pods that name claims -----------------------------------------------------------------------------------------------


def check_pod_claims(spec: Object) -> Faults:
    """Return the faults of `spec.resourceClaims` of a pod, and of the references to its entries."""
    claims = spec.get("resourceClaims") or ()
    yield from each_of("spec.resourceClaims", claims, _check_pod_claim, _name)
    names = {_name(each) for each in claims} - {""}
    for kind in ("initContainers", "containers"):
        for at, container in enumerate(spec.get(kind) or ()):
            uses = ((container or {}).get("resources") or {}).get("claims") or ()
            yield from _check_uses(f"spec.{kind}[{at}].resources.claims", uses, names)


def _check_pod_claim(path: str, claim: Object) -> Faults:
    yield from label_name(f"{path}.name", claim.get("name"))
    given = [field for field in _SOURCES if claim.get(field) is not None]
    listed = ", ".join(f"`{field}`" for field in _SOURCES)
    if not given:
        yield invalid(path, claim, f"must specify one of: {listed}")
    elif len(given) > 1:
        yield invalid(path, claim, f"at most one of {listed.replace(',', ' or', 1)} may be specified")
    for field in given:
        yield from subdomain(f"{path}.{field}", claim[field])


def _check_uses(path: str, uses: Collection[Object], names: Collection[str]) -> Faults:
    seen: set[tuple[str, str]] = set()
    known = f": {', '.join(sorted(names))}" if names else " which is empty"
    for at, use in enumerate(uses):
        name, request = _name(use), str(use.get("request") or "")
        if request:
            yield from label_name(f"{path}[{at}].request", request)
        if not name:
            yield required(f"{path}[{at}]")
        elif name not in names:
            yield f"{path}[{at}]", f'Not found: "{name}": must be one of the names in pod.spec.resourceClaims{known}'
        elif (name, "") in seen or (name, request) in seen or (not request and any(other == name for other, _ in seen)):
            yield duplicate(f"{path}[{at}]", f"{name}/{request}" if request and (name, "") not in seen else name)
        seen.add((name, request))
