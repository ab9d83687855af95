"""Rules for what claims and templates ask for. Source: `pkg/apis/resource/validation` of Kubernetes 1.36."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from functools import partial

from kubesandbox.celexpressions import check_selector
from kubesandbox.devices.fields import (
    Faults,
    driver_name,
    each_of,
    forbidden,
    fully_qualified_name,
    invalid,
    label_key,
    label_name,
    label_value,
    required,
    set_of,
    subdomain,
    too_long,
    unsupported,
)
from kubesandbox.status import Object
from placewright.cel.syntax import ExpressionError

MAX_REQUESTS = 32
MAX_ALTERNATIVES = 8
MAX_CONSTRAINTS = 32
MAX_CONFIGURATIONS = 32
MAX_SELECTORS = 32
LONGEST_EXPRESSION = 10 * 1024
LONGEST_PARAMETERS = 10 * 1024
ADMIN_LABEL = "resource.kubernetes.io/admin-access"
ADMIN_REFUSED = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
_TAINT_EFFECTS = ("NoExecute", "NoSchedule", "None")
_REFERENCE = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"

RequestNames = Mapping[str, Collection[str]]
"""The requests of a claim, each with its alternatives."""


def request_names(spec: Object) -> RequestNames:
    """The names by which the rest of a claim may refer to its requests."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    return {each.get("name", ""): {sub.get("name", "") for sub in each.get("firstAvailable") or ()} for each in requests}


def check_claim_spec(path: str, spec: Object, *, admin: bool) -> Faults:
    """What is wrong with `spec` of a claim; `admin`: its namespace may use devices that are in use."""
    devices, names = spec.get("devices") or {}, request_names(spec)
    path = f"{path}.devices"
    if not admin:
        yield from _check_admin(path, devices)
    yield from set_of(f"{path}.requests", devices.get("requests"), MAX_REQUESTS, _check_request, _name)
    constraint = partial(_check_constraint, names)
    yield from each_of(f"{path}.constraints", devices.get("constraints"), MAX_CONSTRAINTS, constraint)
    configuration = partial(check_configuration, names)
    yield from each_of(f"{path}.config", devices.get("config"), MAX_CONFIGURATIONS, configuration)


def _name(item: Object) -> str:
    return str(item.get("name", ""))


def _check_admin(path: str, devices: Object) -> Faults:
    for at, request in enumerate(devices.get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            yield forbidden(f"{path}.requests[{at}].adminAccess", ADMIN_REFUSED)
            return


def _check_request(path: str, request: Object) -> Faults:
    yield from label_name(f"{path}.name", request.get("name"))
    exactly, first = request.get("exactly"), request.get("firstAvailable")
    wanted = "exactly one of `exactly` or `firstAvailable` is required"
    if exactly is None and not first:
        yield required(path, wanted)
    elif exactly is not None and first:
        yield invalid(path, None, f"{wanted}, but multiple fields are set")
    elif exactly is not None:
        yield from _check_devices(f"{path}.exactly", exactly)
    else:
        yield from set_of(f"{path}.firstAvailable", first, MAX_ALTERNATIVES, _check_alternative, _name)


def _check_alternative(path: str, request: Object) -> Faults:
    yield from label_name(f"{path}.name", request.get("name"))
    yield from _check_devices(path, request)


def _check_devices(path: str, request: Object) -> Faults:
    name = request.get("deviceClassName")
    yield from subdomain(f"{path}.deviceClassName", name) if name else [required(f"{path}.deviceClassName")]
    yield from each_of(f"{path}.selectors", request.get("selectors"), MAX_SELECTORS, check_selector_field)
    yield from _check_count(path, request.get("allocationMode") or "", request.get("count") or 0)
    for at, toleration in enumerate(request.get("tolerations") or ()):
        yield from check_toleration(f"{path}.tolerations[{at}]", toleration)


def _check_count(path: str, mode: str, count: int) -> Faults:
    if mode == "All":
        if count:
            yield invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'")
    elif mode == "ExactCount":
        if count <= 0:
            yield invalid(f"{path}.count", count, "must be greater than zero")
    else:
        yield unsupported(f"{path}.allocationMode", mode, ("All", "ExactCount"))


def check_selector_field(path: str, selector: Object) -> Faults:
    """One selector: an expression that compiles."""
    if selector.get("cel") is None:
        yield required(f"{path}.cel")
        return
    path, expression = f"{path}.cel.expression", selector["cel"].get("expression") or ""
    if len(expression.encode()) > LONGEST_EXPRESSION:
        yield too_long(path, LONGEST_EXPRESSION)
        return
    try:
        check_selector(expression)
    except ExpressionError as error:
        yield invalid(path, expression, f"compilation failed: {error}")


def check_toleration(path: str, toleration: Object) -> Faults:
    """A toleration of a device's taints."""
    key, operator = toleration.get("key"), toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        yield from label_key(f"{path}.key", key)
    if operator == "Exists":
        if value:
            yield invalid(f"{path}.value", value, "must be empty for operator `Exists`")
    elif operator == "Equal":
        yield from label_value(f"{path}.value", value)
    elif operator:
        yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    else:
        yield required(f"{path}.operator")
    if effect and effect not in _TAINT_EFFECTS:
        yield unsupported(f"{path}.effect", effect, _TAINT_EFFECTS)


def check_taint(path: str, taint: Object, old: Object | None = None) -> Faults:
    """A taint of devices; an effect that is there already is not looked at again."""
    yield from label_key(f"{path}.key", taint.get("key"))
    if taint.get("value"):
        yield from label_value(f"{path}.value", taint["value"])
    effect = taint.get("effect") or ""
    if old is not None and (old.get("effect") or "") == effect:
        return
    if not effect:
        yield required(f"{path}.effect")
    elif effect not in _TAINT_EFFECTS:
        yield unsupported(f"{path}.effect", effect, _TAINT_EFFECTS)


def _check_constraint(names: RequestNames, path: str, constraint: Object) -> Faults:
    yield from check_references(names, f"{path}.requests", constraint.get("requests"))
    for field in ("matchAttribute", "distinctAttribute"):
        if constraint.get(field) is not None:
            yield from fully_qualified_name(f"{path}.{field}", constraint[field])
            return
    yield required(path, 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set')


def check_references(names: RequestNames, path: str, requests: list[str] | None) -> Faults:
    """Names of requests, each one of the claim's."""
    yield from set_of(path, requests, MAX_REQUESTS, partial(check_reference, names), str)


def check_reference(names: RequestNames, path: str, name: str | None) -> Faults:
    """`request`, or `request/alternative`."""
    name = name or ""
    request, slash, alternative = name.partition("/")
    if "/" in alternative:
        yield invalid(path, name, _REFERENCE)
        return
    for part in (request, alternative) if slash else (request,):
        yield from label_name(path, part)
    if request not in names or (slash and alternative not in names[request]):
        yield invalid(path, name, _REFERENCE)


def check_configuration(names: RequestNames, path: str, configuration: Object) -> Faults:
    """One entry of `config` of a claim."""
    yield from check_references(names, f"{path}.requests", configuration.get("requests"))
    yield from check_opaque(path, configuration)


def check_opaque(path: str, configuration: Object) -> Faults:
    """What a driver is told, of which only the outside is looked at."""
    opaque = configuration.get("opaque")
    if opaque is None:
        yield required(f"{path}.opaque")
        return
    yield from driver_name(f"{path}.opaque.driver", opaque.get("driver"))
    yield from check_parameters(f"{path}.opaque.parameters", opaque.get("parameters"))


def check_parameters(path: str, parameters: object) -> Faults:
    """A JSON object of anything, of limited size."""
    if parameters is None:
        yield required(path)
    elif len(json.dumps(parameters, separators=(",", ":"))) > LONGEST_PARAMETERS:
        yield too_long(path, LONGEST_PARAMETERS)
    elif not isinstance(parameters, dict):
        yield invalid(path, "<value omitted>", "must be a valid JSON object")
