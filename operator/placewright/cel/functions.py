"""Functions of CEL expressions that the library lacks: on texts, lists and sets, and on Kubernetes' quantities and versions.

Entries of lists are plain values. As in CEL, true is not 1, and a text never equals a number. Values that cannot be compared are
"no such overload".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from placewright.cel.values import VALUE_FUNCTIONS, is_amount

# --- texts -------------------------------------------------------------------------------------------------------------------


def _size(value: Any) -> int:
    if isinstance(value, (str, bytes, list)) or (isinstance(value, dict) and not is_amount(value)):
        return len(value)
    raise TypeError("no such overload")


def _ascii_upper(text: str) -> str:
    return _utf8(text).upper().decode("utf-8", "surrogatepass")


def _ascii_lower(text: str) -> str:
    return _utf8(text).lower().decode("utf-8", "surrogatepass")


def _utf8(text: str) -> bytes:
    """Encode a text, because the case of bytes changes for ASCII letters only. A translation table takes many times as long."""
    return _text(text).encode("utf-8", "surrogatepass")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError("no such overload")


def _within(text: str, position: int) -> int:
    if 0 <= position <= len(_text(text)):
        return position
    raise ValueError(f"index out of range: {position}")


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(_text(text)) if end is None else _within(text, end)
    if start > last:
        raise ValueError(f"invalid substring range. start: {start}, end: {last}")
    return text[_within(text, start) : last]


def _includes(holder: Any, value: Any) -> bool:
    """Return whether a list contains the value, or the value itself equals it. A text never equals a number, and true is not 1."""
    return _place(holder if isinstance(holder, list) else [holder], value) >= 0


def _index_of(holder: Any, part: Any, start: int = 0) -> int:
    if isinstance(holder, list):
        return _place(holder, part)
    return _text(holder).find(_text(part), _within(holder, start))


def _last_index_of(holder: Any, part: Any) -> int:
    return _last_place(holder, part) if isinstance(holder, list) else _text(holder).rfind(_text(part))


def _split(text: str, between: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if between:
        return _text(text).split(between, limit - 1 if limit > 0 else -1)
    letters = list(_text(text))
    return letters if limit < 0 or limit >= len(letters) else [*letters[: limit - 1], "".join(letters[limit - 1 :])]


# --- lists and sets ---------------------------------------------------------------------------------------------------------------


def _equal(one: Any, other: Any) -> bool:
    """Compare as `==` does in expressions."""
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
    """Return the list, if its entries can be ordered because all are of one kind."""
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


def _place(values: list[Any], value: Any) -> int:
    """Index of the first entry that equals the value; -1 for none."""
    return next((i for i, each in enumerate(values) if _equal(each, value)), -1)


def _last_place(values: list[Any], value: Any) -> int:
    """Index of the last entry that equals the value; -1 for none."""
    return next((i for i in range(len(values) - 1, -1, -1) if _equal(values[i], value)), -1)


def _contains(one: Any, other: Any) -> bool:
    values = _list(one)
    return all(_place(values, each) >= 0 for each in _list(other))


#: Functions by the name that expressions use; only `respelled` writes the names of functions of `sets`.
FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "__size": _size,
        "includes": _includes,
        "lowerAscii": _ascii_lower,
        "upperAscii": _ascii_upper,
        "trim": lambda text: _text(text).strip(),
        "charAt": lambda text, position: text[_within(text, position) :][:1],
        "indexOf": _index_of,
        "lastIndexOf": _last_index_of,
        "replace": lambda text, old, new, limit=-1: _text(text).replace(_text(old), _text(new), limit),
        "substring": _substring,
        "split": _split,
        "join": lambda parts, between="": between.join(parts),
        "isSorted": _is_sorted,
        "sum": _sum,
        "min": _extreme(min, "min"),
        "max": _extreme(max, "max"),
        "__sets_contains": _contains,
        "__sets_equivalent": lambda one, other: _contains(one, other) and _contains(other, one),
        "__sets_intersects": lambda one, other: any(_place(_list(one), each) >= 0 for each in _list(other)),
        **VALUE_FUNCTIONS,
    }
)
