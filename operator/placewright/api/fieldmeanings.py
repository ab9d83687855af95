"""Describes a field of our own resource, and its bounds, in the field's annotation and nowhere else.

From the annotations of `api.profile` come the definition (`profiles/schema.py`), the JSON Schema for editors, and docs/reference.md.
`kubectl explain` and the API server read the definition. `profiles/check.py` refuses numbers that are not `between` their bounds.

    percentage_of_nodes_to_score: Annotated[int | None, between(0, 100), means("The share of the nodes to examine, in percent.")] = None
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Meta

from placewright.api.bad_input import in_json

#: Keys of `Meta.extra`: the words for what the operator allows, and whether the schema wants the field although our decoder can do without.
ALLOWED: Final = "allowed"
REQUIRED: Final = "required"
#: A list that is replaced as a whole.
ATOMIC: Final[Mapping[str, Any]] = {"x-kubernetes-list-type": "atomic"}


def means(description: str, *, required: bool = False, **facets: Any) -> Meta:
    """Describe a field for its readers, with the facets of its schema that the API server holds.

    Args:
        description: the text that `kubectl explain` prints.
        required: the schema demands the field, though our decoder can do without; for keys of lists.
        facets: keywords of JSON Schema, and of Kubernetes (`x-kubernetes-list-type`).
    """
    return Meta(description=description, extra_json_schema=facets or None, extra={REQUIRED: True} if required else None)


def between(least: float, most: float, note: str = "") -> Meta:
    """Bound a number from `least` to `most`, both included; the operator checks it as well as the API server.

    Args:
        least: the smallest number allowed.
        most: the largest.
        note: stands in parentheses after the bounds in the message that refuses a number.
    """
    allowed = f"{in_json(least)} to {in_json(most)}"
    return Meta(extra_json_schema={"minimum": least, "maximum": most}, extra={ALLOWED: f"{allowed} ({note})" if note else allowed})


def counts(description: str) -> Meta:
    """Describe a number of things: 0 or more."""
    return means(description, minimum=0, format="int64")


def keyed_by(field: str) -> Mapping[str, Any]:
    """Return the facets of a list whose items this field tells apart."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [field]}
