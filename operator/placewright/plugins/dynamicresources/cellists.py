"""Functions of CEL expressions on lists that Kubernetes has and the library lacks: order, sums, extremes, places, and sets.

Entries are plain values. As in CEL, true is not 1, and a text never equals a number; what cannot be compared is "no such overload".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final


def equal(one: Any, other: Any) -> bool:
    """As `==` in expressions."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    raise TypeError("no such overload")


def _kind(value: Any) -> type[Any]:
    if value is None or isinstance(value, (list, dict)):
        raise TypeError("no such overload")
    return type(value)


def _alike(value: Any) -> list[Any]:
    """A list whose entries can be put in order: all are of one kind."""
    values = _list(value)
    if len({_kind(each) for each in values}) > 1:
        raise TypeError("no such overload")
    return values


def _is_sorted(value: Any) -> bool:
    return all(one <= other for one, other in pairwise(_alike(value)))


def _sum(value: Any) -> Any:
    values = _alike(value)
    if any(isinstance(each, (bool, str, bytes)) for each in values):
        raise TypeError("no such overload")
    return sum(values[1:], values[0]) if values else 0


def _extreme(choose: Callable[[list[Any]], Any], name: str) -> Callable[[Any], Any]:
    def ask(value: Any) -> Any:
        values = _alike(value)
        if not values:
            raise ValueError(f"{name} called on empty list")
        return choose(values)

    return ask


def place(values: list[Any], value: Any) -> int:
    """Where it stands first, -1 for nowhere."""
    return next((i for i, each in enumerate(values) if equal(each, value)), -1)


def last_place(values: list[Any], value: Any) -> int:
    """Where it stands last, -1 for nowhere."""
    return next((i for i in range(len(values) - 1, -1, -1) if equal(values[i], value)), -1)


def _contains(one: Any, other: Any) -> bool:
    values = _list(one)
    return all(place(values, each) >= 0 for each in _list(other))


#: By the name that expressions use; those of `sets` have one that only we write.
LIST_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "isSorted": _is_sorted,
        "sum": _sum,
        "min": _extreme(min, "min"),
        "max": _extreme(max, "max"),
        "__sets_contains": _contains,
        "__sets_equivalent": lambda one, other: _contains(one, other) and _contains(other, one),
        "__sets_intersects": lambda one, other: any(place(_list(one), each) >= 0 for each in _list(other)),
    }
)
