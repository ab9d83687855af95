"""Rules for node selectors, in allocations and in slices."""

from __future__ import annotations

from kubesandbox.devices.fields import Faults, forbidden, invalid, label_key, required
from kubesandbox.status import Object

_LISTED = ("In", "NotIn")
_BARE = ("Exists", "DoesNotExist")
_COMPARED = ("Gt", "Lt")


def check_node_selector(path: str, selector: Object) -> Faults:
    """What is wrong with the selector."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        return
    for at, term in enumerate(terms):
        for field, check in (("matchExpressions", _check_expression), ("matchFields", _check_field)):
            for number, each in enumerate(term.get(field) or ()):
                yield from check(f"{path}.nodeSelectorTerms[{at}].{field}[{number}]", each)


def _check_expression(path: str, expression: Object) -> Faults:
    operator, values = expression.get("operator"), expression.get("values") or ()
    if operator in _LISTED and not values:
        yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _BARE and values:
        yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    elif operator in _COMPARED and len(values) != 1:
        yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    elif operator not in (*_LISTED, *_BARE, *_COMPARED):
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from label_key(f"{path}.key", expression.get("key"))


def _check_field(path: str, expression: Object) -> Faults:
    operator, values = expression.get("operator"), expression.get("values") or ()
    if operator not in _LISTED:
        yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    elif len(values) != 1:
        yield required(f"{path}.values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
    if expression.get("key") != "metadata.name":
        yield invalid(f"{path}.key", expression.get("key"), "not a valid field selector key")
