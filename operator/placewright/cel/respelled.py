"""Respells CEL expressions for the library that evaluates them, which lacks some of Kubernetes' CEL.

- `cel.bind(name, value, expression)` becomes a loop over one value.
- `size` becomes a function of ours, because the library counts bytes, not characters.
- `sets.contains` and the other functions of `sets` become functions of ours.
- A caller may respell names of its own (`Respelling`), such as `device`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from placewright.cel.cost import LOOPS
from placewright.cel.syntax import Brackets, ExpressionError, Item, Token, at, is_brackets, is_sign, name_of, spelt

#: Begins the names of our own functions; a name in an expression may not begin so.
OWN: Final = "__"
_SETS: Final = ("contains", "equivalent", "intersects")

#: Respells all items in brackets.
Respell: TypeAlias = Callable[[Sequence[Item]], list[Item]]
#: Respells the items that begin with a name at a position. Returns the new items, and how many items they replace.
Respelling: TypeAlias = Callable[[Sequence[Item], int, Respell], tuple[list[Item], int]]


def respelt(expression: Brackets, own: Mapping[str, Respelling]) -> str:
    """Respell an expression for the library, with the caller's own respellings by name.

    Raises:
        ExpressionError: a name, or a use of a name, is not supported.
    """
    respellings = {"cel": _bind, "sets": _sets, **own}

    def respell(items: Sequence[Item]) -> list[Item]:
        done: list[Item] = []
        i = 0
        while i < len(items):
            name = name_of(items[i])
            respelling = respellings.get(name) if name and not is_sign(at(items, i - 1), ".") else None
            added, taken = (respelling or _plain)(items, i, respell)
            done += added
            i += taken
        return done

    return spelt(respell(expression.items))


def bound_names(expression: Brackets) -> set[str]:
    """Collect the names that loops and `cel.bind` give to values."""
    names: set[str] = set()
    for i, item in enumerate(expression.items):
        if not isinstance(item, Brackets):
            continue
        names |= bound_names(item)
        called = name_of(at(expression.items, i - 1))
        first = item.arguments[0]
        if item.opening == "(" and (called in LOOPS or called == "bind") and len(item.arguments) > 1 and len(first) == 1:
            names.add(name_of(first[0]))
    return names - {""}


def _plain(items: Sequence[Item], i: int, respell: Respell) -> tuple[list[Item], int]:
    item, name = items[i], name_of(items[i])
    called = is_brackets(at(items, i + 1), "(")
    if name.startswith(OWN) and (called or not is_sign(at(items, i - 1), ".")):
        raise ExpressionError(f"undeclared name {name}")
    if name == "size" and called:
        return [Token("name", "__size")], 1
    return [Brackets(item.opening, respell(item.items)) if isinstance(item, Brackets) else item], 1


def _sets(items: Sequence[Item], i: int, respell: Respell) -> tuple[list[Item], int]:
    asked = name_of(at(items, i + 2)) if is_sign(at(items, i + 1), ".") and is_brackets(at(items, i + 3), "(") else ""
    if asked not in _SETS:
        raise ExpressionError(f"of sets, only {', '.join(f'sets.{name}' for name in _SETS)} are supported")
    return [Token("name", f"__sets_{asked}"), *respell(items[i + 3 : i + 4])], 4


def _bind(items: Sequence[Item], i: int, respell: Respell) -> tuple[list[Item], int]:
    call = at(items, i + 3)
    if name_of(at(items, i + 2)) != "bind" or not isinstance(call, Brackets) or len(call.arguments) != 3:
        raise ExpressionError("of cel, only cel.bind(name, value, expression) is supported")
    name, value, expression = call.arguments
    if len(name) != 1 or not name_of(name[0]):
        raise ExpressionError("cel.bind needs a plain name as its first argument")
    comma, first = Token("sign", ","), Brackets("[", [Token("number", "0")])
    loop = Brackets("(", [name[0], comma, *respell(expression)])
    return [Brackets("[", respell(value)), Token("sign", "."), Token("name", "map"), loop, first], 4
