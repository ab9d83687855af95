"""Rules for the tolerations of a pod. Gt and Lt are taken, as by an API server with TaintTolerationComparisonOperators switched on."""

from __future__ import annotations

from kubesandbox.devices.fields import Faults, invalid, label_key, label_value, unsupported
from kubesandbox.status import Object
from placewright.api.tolerations import integer

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_COMPARISONS = ("Gt", "Lt")


def check_tolerations(spec: Object) -> Faults:
    """What is wrong with `spec.tolerations` of a pod."""
    for at, toleration in enumerate(spec.get("tolerations") or ()):
        yield from _check(f"spec.tolerations[{at}]", toleration)


def _check(path: str, toleration: Object) -> Faults:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    value, effect = toleration.get("value") or "", toleration.get("effect") or ""
    if key:
        yield from label_key(f"{path}.key", key)
    elif operator != "Exists":
        what = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(f"{path}.operator", operator, what)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    yield from _check_value(path, operator, value)
    if effect and effect not in _EFFECTS:
        yield unsupported(f"{path}.effect", effect, _EFFECTS)


def _check_value(path: str, operator: str, value: str) -> Faults:
    if operator in _COMPARISONS:
        if integer(value) is None:
            yield invalid(f"{path}.value", value, "must be a valid decimal integer in canonical form")
    elif operator == "Exists":
        if value:
            yield invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("", "Equal"):
        yield from label_value(f"{path}.operator", value)
    else:
        yield unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
