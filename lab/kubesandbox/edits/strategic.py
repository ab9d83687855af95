"""Strategic merge patch: a merge patch that merges lists of built-in types by key and obeys directives.

Directives: `$patch` (merge, replace, delete), `$retainKeys`, `$deleteFromPrimitiveList/FIELD`, `$setElementOrder/FIELD`.
"""

from __future__ import annotations

import copy
from typing import Any

from kubesandbox.edits.shapes import Shape
from kubesandbox.resources import Object
from kubesandbox.status import bad_request, unspecific

_PATCH, _RETAIN = "$patch", "$retainKeys"
_DELETE_VALUES, _ORDER = "$deleteFromPrimitiveList/", "$setElementOrder/"


def strategic_merge(current: Object, patch: Object, shape: Shape) -> Object:
    """Return a patched copy of `current`, which shares the parts that the patch does not touch. Raises ApiError 400 and 500."""
    directive = patch.get(_PATCH, "merge")
    if directive == "delete":
        return {}
    if directive == "replace":
        replaced: Object = _without_directives({key: value for key, value in patch.items() if key != _PATCH})
        return replaced
    if directive != "merge":
        raise unspecific(f"Unknown {_PATCH} value {directive!r}: delete, replace or merge are allowed")
    result = _retained(current, patch)
    for name, value in patch.items():
        if not name.startswith("$"):
            _merge_field(result, name, value, shape.child(name))
        elif name.startswith(_DELETE_VALUES):
            field = name.removeprefix(_DELETE_VALUES)
            if isinstance(result.get(field), list) and isinstance(value, list):
                result[field] = [kept for kept in result[field] if kept not in value]
    for name, value in patch.items():
        if name.startswith(_ORDER):
            _reorder(result, name.removeprefix(_ORDER), value, current, shape)
    return result


def _retained(current: Object, patch: Object) -> Object:
    if _RETAIN not in patch:
        return dict(current)
    kept = patch[_RETAIN]
    named = [key for key, value in patch.items() if not key.startswith("$") and value is not None]
    if not isinstance(kept, list) or any(key not in kept for key in named):
        raise bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in current.items() if key in kept}


def _merge_field(result: Object, name: str, value: Any, shape: Shape) -> None:
    found = result.get(name)
    if value is None:
        result.pop(name, None)
    elif isinstance(value, dict):
        merged = strategic_merge(found if isinstance(found, dict) else {}, value, shape)
        if value.get(_PATCH) == "delete":
            result.pop(name, None)
        else:
            result[name] = merged
    elif isinstance(value, list):
        result[name] = _merge_list(found if isinstance(found, list) else [], value, shape, name)
    else:
        result[name] = value


def _merge_list(found: list[Any], patch: list[Any], shape: Shape, name: str) -> list[Any]:
    if any(isinstance(item, dict) and item.get(_PATCH) == "replace" for item in patch):
        return [_without_directives(item) for item in patch if not (isinstance(item, dict) and _PATCH in item)]
    if shape.merge_key:
        return _merge_keyed(found, patch, shape, name)
    if shape.merge_set:
        return _in_order(found + [item for item in patch if item not in found], patch, found, "")
    return [_without_directives(item) for item in patch]


def _merge_keyed(found: list[Any], patch: list[Any], shape: Shape, name: str) -> list[Any]:
    result, key = list(found), shape.merge_key
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise unspecific(f"{name}: {item!r} does not contain declared merge key: {key}")
        at = next((i for i, other in enumerate(result) if _identity(other, key) == item[key]), None)
        if item.get(_PATCH) == "delete":
            result = [other for other in result if _identity(other, key) != item[key]]
        elif at is None:
            result.append(_without_directives(item))
        else:
            existing = result[at] if isinstance(result[at], dict) else {}
            result[at] = strategic_merge(existing, item, shape.element)
    return _in_order(result, [item for item in patch if _PATCH not in item], found, key)


def _reorder(result: Object, name: str, order: Any, current: Object, shape: Shape) -> None:
    """Sort the elements of a list that `order` names into that order."""
    if not isinstance(order, list):
        raise unspecific(f"{_ORDER}{name}: a list is expected, found {type(order).__name__}")
    if isinstance(result.get(name), list):
        before = current.get(name)
        result[name] = _in_order(result[name], order, before if isinstance(before, list) else [], shape.child(name).merge_key)


def _in_order(items: list[Any], order: list[Any], before: list[Any], key: str) -> list[Any]:
    """Order `items`: elements that `order` names in that order, the others in their present order.

    An unnamed element precedes a named one only if it did so in the list before: new elements come first.
    """
    wanted, former = [_identity(each, key) for each in order], [_identity(each, key) for each in before]
    named = sorted((item for item in items if _identity(item, key) in wanted), key=lambda item: wanted.index(_identity(item, key)))
    others = [item for item in items if _identity(item, key) not in wanted]
    result: list[Any] = []
    while named and others:
        other, first = _identity(others[0], key), _identity(named[0], key)
        is_before = other in former and first in former and former.index(other) < former.index(first)
        result.append((others if is_before else named).pop(0))
    return result + named + others


def _identity(element: Any, key: str) -> Any:
    """Return the key of a list's element, or the element itself if it is no object."""
    return element.get(key) if isinstance(element, dict) else element


def _without_directives(value: Any) -> Any:
    """Return the stored form of `value`, without nulls and directives at any depth."""
    if isinstance(value, dict):
        return {k: _without_directives(v) for k, v in value.items() if v is not None and not k.startswith("$")}
    if isinstance(value, list):
        kept = [v for v in value if not (isinstance(v, dict) and v.get(_PATCH) == "delete")]
        return [_without_directives(v) for v in kept]
    return copy.deepcopy(value)
