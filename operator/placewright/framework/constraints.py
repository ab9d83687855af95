"""What a field of a plugin's arguments may hold, beyond its type.

A constraint stands in the field's annotation, `weight: Annotated[int, within(0, 100)] = 1`, and nowhere else: the reader of profiles
checks it, and the JSON Schema of the arguments prints it. Rules that look at two fields are a matter of the arguments' `validate`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Meta

#: Key of `Meta.extra` under which the sentence about what is allowed stands.
ALLOWED = "allowed"


def within(least: int, most: int | None = None) -> Meta:
    """A number from `least` to `most`, both included; without `most`, any that is not less."""
    bounds = {"minimum": least} | ({} if most is None else {"maximum": most})
    return _meta(bounds, f"{least} or more" if most is None else f"{least} to {most}")


def one_of(*values: str) -> Meta:
    """One of these words."""
    return _meta({"enum": list(values)}, " or ".join(values))


def not_empty(allowed: str) -> Meta:
    """Any text but none; `allowed` says what it should be."""
    return _meta({"minLength": 1, "description": allowed}, allowed)


def without(text: str, allowed: str) -> Meta:
    """Any text in which none of these characters occurs."""
    return _meta({"pattern": f"^[^{re.escape(text)}]*$", "description": allowed}, allowed)


def nothing(allowed: str) -> Meta:
    """A field of a shared type that has no place here; `allowed` says why."""
    return _meta({"type": "null", "description": allowed}, allowed)


def holds(value: Any, facets: Mapping[str, Any]) -> bool:
    """Whether a value, of the type that the field has, keeps the constraint; a field that is not there (None) keeps any."""
    if value is None:
        return True
    return (
        facets.get("type") != "null"
        and not ("minimum" in facets and value < facets["minimum"])
        and not ("maximum" in facets and value > facets["maximum"])
        and not ("enum" in facets and value not in facets["enum"])
        and not ("minLength" in facets and len(value) < facets["minLength"])
        and not ("pattern" in facets and re.search(facets["pattern"], value) is None)
    )


def _meta(facets: dict[str, Any], allowed: str) -> Meta:
    return Meta(extra_json_schema=facets, extra={ALLOWED: allowed})
