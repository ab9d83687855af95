"""Constraints on the fields of a plugin's arguments, beyond their types.

A constraint stands in the field's annotation, `weight: Annotated[int, within(0, 100)] = 1`, and nowhere else. The reader of profiles
checks it, and the JSON Schema of the arguments prints it. The arguments' `validate` checks rules that look at two fields.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Meta

from placewright.api.fieldmeanings import ALLOWED

__all__ = ["ALLOWED", "Problem", "holds", "not_empty", "nothing", "one_of", "within", "without"]

#: Path inside args, value found, and values allowed, of a wrong argument.
Problem = tuple[str, str, str]

#: Whether a value keeps what a keyword of JSON Schema demands. A value that is no number (NaN) keeps no bound.
_KEPT: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "type": lambda _value, kind: kind != "null",
    "minimum": operator.ge,
    "maximum": operator.le,
    "enum": lambda value, members: value in members,
    "minLength": lambda value, least: len(value) >= least,
    "maxLength": lambda value, most: len(value) <= most,
    "pattern": lambda value, pattern: re.search(pattern, value) is not None,
}


def within(least: int, most: int | None = None) -> Meta:
    """Allow the whole numbers from `least` to `most`, both included.

    Args:
        least: the lowest that is allowed.
        most: the highest that is allowed; None: any that is not less than `least`.

    Returns:
        A constraint for the field's annotation.

    Example:
        weight: Annotated[int, within(0, 100)] = 1
    """
    bounds = {"minimum": least} | ({} if most is None else {"maximum": most})
    return _meta(bounds, f"{least} or more" if most is None else f"{least} to {most}")


def one_of(*values: str) -> Meta:
    """Allow some words.

    Args:
        values: the words, in the order in which messages list them.

    Returns:
        A constraint for the field's annotation.

    Example:
        mode: Annotated[str, one_of("Packed", "Spread")] = "Packed"
    """
    return _meta({"enum": list(values)}, " or ".join(values))


def not_empty(allowed: str) -> Meta:
    """Allow any text but the empty one.

    Args:
        allowed: the meaning of the text, for messages and the schema, such as "a resource's name".

    Returns:
        A constraint for the field's annotation.
    """
    return _meta({"minLength": 1, "description": allowed}, allowed)


def without(text: str, allowed: str) -> Meta:
    """Allow any text in which some characters do not occur.

    Args:
        text: the characters that are refused.
        allowed: the meaning of the text, for messages and the schema.

    Returns:
        A constraint for the field's annotation.
    """
    return _meta({"pattern": f"^[^{re.escape(text)}]*$", "description": allowed}, allowed)


def nothing(allowed: str) -> Meta:
    """Refuse a field that a shared type has and that makes no sense here.

    Args:
        allowed: why, for messages and the schema.

    Returns:
        A constraint for the field's annotation.
    """
    return _meta({"type": "null", "description": allowed}, allowed)


def holds(value: Any, facets: Mapping[str, Any]) -> bool:
    """Judge one value.

    Args:
        value: a value of the field's type; None if the field is absent, which every constraint allows.
        facets: the constraint's part of a JSON Schema (`Meta.extra_json_schema`).

    Returns:
        True if the value keeps the constraint.
    """
    return value is None or all(_KEPT[word](value, limit) for word, limit in facets.items() if word in _KEPT)


def _meta(facets: dict[str, Any], allowed: str) -> Meta:
    return Meta(extra_json_schema=facets, extra={ALLOWED: allowed})
