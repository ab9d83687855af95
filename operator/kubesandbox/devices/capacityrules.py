"""Rules for the capacity of devices that several claims share: what may be asked of it. Source: as for `claimrules`."""

from __future__ import annotations

from typing import Any

from kubesandbox.devices.fields import Faults, distinct, forbidden, invalid, required, too_many
from kubesandbox.status import Object
from placewright.api.quantity import nano

MAX_VALUES = 10
_LARGEST = 2**63 - 1
_UNIT = 10**9
"""`nano` counts in billionths."""


def check_capacity(path: str, capacity: Object, *, shared: bool) -> Faults:
    """One capacity of a device; only what is shared may have a policy."""
    policy = capacity.get("requestPolicy")
    if policy is None:
        return
    path = f"{path}.requestPolicy"
    if not shared:
        yield forbidden(path, "allowMultipleAllocations must be true")
    elif policy.get("validValues") and policy.get("validRange") is not None:
        yield forbidden(path, 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time')
    elif policy.get("validValues") or policy.get("validRange") is not None:
        field = "validValues" if policy.get("validValues") else "validRange"
        if policy.get("default") is None:
            yield required(f"{path}.default", f"required when {field} is defined")
        else:
            check = _check_values if field == "validValues" else _check_range
            yield from check(f"{path}.{field}", policy[field], policy["default"], capacity.get("value") or 0)


def _check_values(path: str, values: list[Any], default: Any, most: Any) -> Faults:
    for at in range(1, len(values)):
        if nano(values[at - 1]) > nano(values[at]):
            yield invalid(f"{path}[{at}]", str(values[at]), "values must be sorted in ascending order")
    if len(values) > MAX_VALUES:
        yield too_many(path, len(values), MAX_VALUES)
        return
    for at, value in enumerate(values):
        if nano(value) > nano(most):
            yield invalid(f"{path}[{at}]", str(value), f"option is larger than capacity value: {most}")
    yield from distinct(path, values, nano)
    if nano(default) not in map(nano, values):
        yield invalid(path, str(default), "default value is not valid according to the requestPolicy")


def _check_range(path: str, allowed: Object, default: Any, most: Any) -> Faults:
    least, limit, step = (allowed.get(field) for field in ("min", "max", "step"))
    if least is None:
        yield required(f"{path}.min", "required when validRange is defined")
        return
    if nano(least) > nano(most):
        yield invalid(f"{path}.min", str(least), f"min is larger than capacity value: {most}")
    if nano(default) < nano(least):
        yield invalid(f"{path}.default", str(default), f"default is less than min: {least}")
    if limit is not None:
        yield from _check_limit(path, least, limit, default, most)
    if step is not None:
        yield from _check_step(path, [least, step, default, *([] if limit is None else [limit])], most)


def _check_limit(path: str, least: Any, limit: Any, default: Any, most: Any) -> Faults:
    if nano(least) > nano(limit):
        yield invalid(f"{path}.max", str(least), f"min is larger than max: {limit}")
    if nano(limit) > nano(most):
        yield invalid(f"{path}.max", str(limit), f"max is larger than capacity value: {most}")
    if nano(default) > nano(limit):
        yield invalid(f"{path}.default", str(default), f"default is more than max: {limit}")


def _check_step(path: str, amounts: list[Any], most: Any) -> Faults:
    least, step, *others = amounts
    path = f"{path}.step"
    if nano(step) <= 0:
        yield invalid(path, str(step), "must be greater than zero")
        return
    if nano(least) + nano(step) > nano(most):
        yield invalid(path, str(step), f"one step {least}+{step} is larger than capacity value: {most}")
    if any(not 0 <= nano(each) <= _LARGEST * _UNIT for each in amounts):
        yield invalid(path, str(step), f"must not be larger than {_LARGEST}")
        return
    for each in others:
        if (nano(each) - nano(least)) % nano(step):
            yield invalid(path, str(each), f"value is not a multiple of a given step ({step}) from ({least})")
