"""Kubernetes' quantities and versions as values of CEL expressions, and the functions on them.

The library knows plain values only. So a quantity is a map with its nano-units as text, and a version is a map with its parts. Equal values
are equal maps. Where a real API server's type check would refuse a comparison with another type, this comparison is false.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

NANO: Final = 10**9
_QUANTITY: Final = "\0quantity"
_VERSION: Final = "\0version"
_LONGEST_TEXT: Final = 10 * 1024
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
    r"(?:-((?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?",
    re.ASCII,
)
_LARGEST_PART: Final = 2**64
_MOST_DIGITS: Final = len(str(_LARGEST_PART))
_INT64: Final = 2**63
_LARGEST_QUANTITY: Final = (_INT64 - 1) * NANO
#: Sorts a release after its pre-releases.
_RELEASE: Final = ((2, 0, ""),)


def quantity_value(nanos: int) -> Any:
    """Build a quantity for expressions.

    Args:
        nanos: nano-units; cut to the largest quantity of Kubernetes.
    """
    return {_QUANTITY: str(max(-_LARGEST_QUANTITY, min(nanos, _LARGEST_QUANTITY)))}


def quantity_functions(nanos_of: Callable[[str], int]) -> dict[str, Callable[..., Any]]:
    """Build the functions that read quantities.

    Args:
        nanos_of: parses a text into nano-units; raises `ValueError`.

    Returns:
        The functions, by the name that expressions use.
    """

    def quantity(text: Any) -> Any:
        if not isinstance(text, str):
            raise TypeError("no such overload")
        return quantity_value(nanos_of(text))

    return {"quantity": quantity, "isQuantity": _is(quantity)}


def is_amount(value: dict[Any, Any]) -> bool:
    """Recognise a quantity or a version.

    Returns:
        True when the map stands for one.
    """
    return not value.keys().isdisjoint((_QUANTITY, _VERSION))


def version_value(text: str) -> Any:
    """Build a version for expressions. Build metadata does not distinguish versions.

    Raises:
        ValueError: the text is no semantic version.
    """
    match = _SEMVER.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
    if match is None or any(map(_is_too_large, (*match.groups()[:3], *(match[4] or "").split(".")))):
        raise ValueError(f"{text[:40]!r} is not a semantic version")
    return {_VERSION: [*match.groups()[:3], match[4] or ""]}


def _is_too_large(part: str) -> bool:
    return part.isdecimal() and (len(part) > _MOST_DIGITS or int(part) >= _LARGEST_PART)


def _normalized(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    rest = parts[2:] or ["0"] * (len(parts) < 3)
    core = [*parts[:2], *(["0"] if len(parts) == 1 else []), *rest]
    return ".".join(re.sub(r"^0+(?=\d)", "", part) for part in core)


def _semver(text: str, normalize: Any = None) -> Any:
    return version_value(_normalized(text) if normalize else text)


def _is(make: Callable[..., Any]) -> Callable[..., bool]:
    def ask(text: str, *more: Any) -> bool:
        if not isinstance(text, str):
            raise TypeError("no such overload")
        try:
            make(text, *more)
        except ValueError:
            return False
        return True

    return ask


def _nanos(value: Any) -> int:
    if isinstance(value, dict) and _QUANTITY in value:
        return int(value[_QUANTITY])
    raise TypeError("no such overload")


def _parts(value: Any) -> list[str]:
    if isinstance(value, dict) and _VERSION in value:
        parts: list[str] = value[_VERSION]
        return parts
    raise TypeError("no such overload")


def _order(value: Any) -> tuple[int, int, int, tuple[tuple[int, int, str], ...]]:
    """Sort key of a version by semver.org: numbers before words, fewer parts before more, releases last."""
    major, minor, patch, before = _parts(value)
    named = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in before.split(".")) if before else _RELEASE
    return int(major), int(minor), int(patch), named


def _compare(one: Any, other: Any) -> int:
    if isinstance(one, dict) and _QUANTITY in one:
        amount, than = _nanos(one), _nanos(other)
        return (amount > than) - (amount < than)
    version, base = _order(one), _order(other)
    return (version > base) - (version < base)


def _sum(one: Any, other: Any, sign: int) -> Any:
    added = other * NANO if isinstance(other, int) and not isinstance(other, bool) else _nanos(other)
    return {_QUANTITY: str(_nanos(one) + sign * added)}


def _is_integer(value: Any) -> bool:
    amount = _nanos(value)
    return amount % NANO == 0 and -_INT64 <= amount // NANO < _INT64


def _as_integer(value: Any) -> int:
    if not _is_integer(value):
        raise ValueError("cannot convert value to integer")
    return _nanos(value) // NANO


#: Functions by the name that expressions use.
VALUE_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = MappingProxyType(
    {
        "sign": lambda value: (_nanos(value) > 0) - (_nanos(value) < 0),
        "add": lambda one, other: _sum(one, other, 1),
        "sub": lambda one, other: _sum(one, other, -1),
        "isInteger": _is_integer,
        "asInteger": _as_integer,
        "asApproximateFloat": lambda value: _nanos(value) / NANO,
        "semver": _semver,
        "isSemver": _is(_semver),
        "major": lambda value: int(_parts(value)[0]),
        "minor": lambda value: int(_parts(value)[1]),
        "patch": lambda value: int(_parts(value)[2]),
        "compareTo": _compare,
        "isLessThan": lambda one, other: _compare(one, other) < 0,
        "isGreaterThan": lambda one, other: _compare(one, other) > 0,
    }
)
