"""CEL expressions respelt for the library that evaluates them, which lacks some of what Kubernetes and its selectors have.

- `device.attributes["domain"]` of a domain that the device does not have is an empty map: a function of ours says so.
- `cel.bind(name, value, expression)` becomes a loop over one value.
- `size` counts characters, not bytes: a function of ours does.
- `sets.contains` and its like are functions of ours, too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from placewright.plugins.dynamicresources.celbounds import LOOPS
from placewright.plugins.dynamicresources.celtokens import (
    ExpressionError,
    Group,
    Token,
    at,
    is_group,
    is_sign,
    name_of,
    spelt,
)

#: Functions that stand for what the library lacks; names in selectors may not begin like this.
OWN: Final = "__"
DOMAIN_OF: Final = {"attributes": "__attributes", "capacity": "__capacity"}
SIZE: Final = "__size"
DEVICE: Final = "device"
_SETS: Final = ("contains", "equivalent", "intersects")
_FIELDS: Final = ("driver", "attributes", "capacity", "allowMultipleAllocations")


def respell(expression: Group) -> str:
    """Source text for the library. Raises `ExpressionError` for names and uses of `device` that are not supported."""
    return spelt(_items(expression.items))


def bound_names(expression: Group) -> set[str]:
    """Names that loops and `cel.bind` give to values. Raises `ExpressionError` when one hides `device`."""
    names: set[str] = set()
    for i, item in enumerate(expression.items):
        if not isinstance(item, Group):
            continue
        names |= bound_names(item)
        called = name_of(at(expression.items, i - 1))
        first = item.arguments[0]
        if item.opening == "(" and (called in LOOPS or called == "bind") and len(item.arguments) > 1 and len(first) == 1:
            names.add(name_of(first[0]))
    if DEVICE in names:
        raise ExpressionError("the name device cannot be given to something else")
    return names - {""}


def _items(items: Sequence[Token | Group]) -> list[Token | Group]:
    respelt: list[Token | Group] = []
    i = 0
    while i < len(items):
        item = items[i]
        selected = is_sign(at(items, i - 1), ".")
        name = name_of(item)
        if name.startswith(OWN):
            raise ExpressionError(f"undeclared name {name}")
        if name == DEVICE and not selected:
            added, taken = _device(items, i)
        elif name == "cel" and not selected:
            added, taken = _bind(items, i)
        elif name == "sets" and not selected:
            added, taken = _sets(items, i)
        elif name == "size" and is_group(at(items, i + 1), "("):
            added, taken = [Token("name", SIZE)], 1
        else:
            added, taken = [Group(item.opening, _items(item.items)) if isinstance(item, Group) else item], 1
        respelt += added
        i += taken
    return respelt


def _device(items: Sequence[Token | Group], i: int) -> tuple[list[Token | Group], int]:
    """`device.field`, and a domain of it where one is named."""
    field = name_of(at(items, i + 2)) if is_sign(at(items, i + 1), ".") else ""
    if field not in _FIELDS:
        raise ExpressionError(f"device can only be used as {', '.join(f'device.{name}' for name in _FIELDS)}")
    plain = list(items[i : i + 3])
    function = DOMAIN_OF.get(field)
    if function is None:
        return plain, 3
    index, name, call = at(items, i + 3), name_of(at(items, i + 4)), at(items, i + 5)
    if isinstance(index, Group) and index.opening == "[":
        return [Token("name", function), Group("(", _items(index.items))], 4
    if is_sign(index, ".") and name and not is_group(call, "("):
        return [Token("name", function), Group("(", [Token("text", json.dumps(name))])], 5
    if is_sign(index, ".") or name_of(at(items, i - 1)) == "in":
        return plain, 3
    raise ExpressionError(f'device.{field} can only be used with a domain, as in device.{field}["example.com"]')


def _sets(items: Sequence[Token | Group], i: int) -> tuple[list[Token | Group], int]:
    asked = name_of(at(items, i + 2)) if is_sign(at(items, i + 1), ".") and is_group(at(items, i + 3), "(") else ""
    if asked not in _SETS:
        raise ExpressionError(f"of sets, only {', '.join(f'sets.{name}' for name in _SETS)} are supported")
    return [Token("name", f"__sets_{asked}")], 3


def _bind(items: Sequence[Token | Group], i: int) -> tuple[list[Token | Group], int]:
    call = at(items, i + 3)
    if name_of(at(items, i + 2)) != "bind" or not isinstance(call, Group) or len(call.arguments) != 3:
        raise ExpressionError("of cel, only cel.bind(name, value, expression) is supported")
    name, value, expression = call.arguments
    if len(name) != 1 or not name_of(name[0]):
        raise ExpressionError("cel.bind needs a plain name as its first argument")
    comma, first = Token("sign", ","), Group("[", [Token("number", "0")])
    loop = Group("(", [name[0], comma, *_items(expression)])
    return [Group("[", _items(value)), Token("sign", "."), Token("name", "map"), loop, first], 4
