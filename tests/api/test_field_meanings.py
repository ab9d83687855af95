"""What an annotation says of a field arrives where schemas and checks look for it."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from msgspec import inspect

from placewright.api.fieldmeanings import ATOMIC, between, counts, keyed_by, means
from placewright.api.objects import KubeObject


class Drawer(KubeObject, frozen=True):
    """A field of each sort."""

    label: Annotated[str, means("What stands on it.", required=True, maxLength=9)] = ""
    percent_full: Annotated[float | None, between(0.5, 100.0, "100: full"), means("How full it is.", format="double")] = None
    spoons: Annotated[int, counts("The spoons.")] = 0
    forks: Annotated[list[str] | None, means("The forks.", maxItems=3, **ATOMIC)] = None
    knives: Annotated[list[str] | None, means("The knives.", **keyed_by("name"))] = None


def told() -> dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    kind = inspect.type_info(Drawer)
    assert isinstance(kind, inspect.StructType)
    found = {field.encode_name: field.type for field in kind.fields}
    return {name: (each.extra_json_schema, each.extra) for name, each in found.items() if isinstance(each, inspect.Metadata)}


def test_meaning_facets_and_bounds_are_found_together() -> None:
    assert told() == {
        "label": ({"description": "What stands on it.", "maxLength": 9}, {"required": True}),
        "percentFull": (
            {"minimum": 0.5, "maximum": 100.0, "description": "How full it is.", "format": "double"}, {"allowed": "0.5 to 100 (100: full)"},
        ),
        "spoons": ({"description": "The spoons.", "minimum": 0, "format": "int64"}, None),
        "forks": ({"description": "The forks.", "maxItems": 3, "x-kubernetes-list-type": "atomic"}, None),
        "knives": (
            {"description": "The knives.", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}, None,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("percent", [-1.0, 1000.0])
def test_decoding_takes_any_number(percent: float) -> None:
    """All that is wrong with a profile is told at once, so a bound is no matter of the decoder, which stops at the first."""
    assert msgspec.convert({"percentFull": percent}, Drawer).percent_full == percent
