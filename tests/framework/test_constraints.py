"""What a field of a plugin's arguments may hold: held to values, and to the JSON Schema that says the same."""

from __future__ import annotations

from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec import Meta

from placewright.framework.constraints import ALLOWED, holds, not_empty, nothing, one_of, within, without

CASES: list[tuple[Meta, list[Any], list[Any], str]] = [
    (within(0, 100), [0, 1, 100], [-1, 101], "0 to 100"),
    (within(1), [1, 10**9], [0, -5], "1 or more"),
    (within(0), [0], [-1], "0 or more"),
    (one_of("Least", "Most"), ["Least", "Most"], ["", "least", "LeastMost"], "Least or Most"),
    (one_of("Only"), ["Only"], ["Onl"], "Only"),
    (not_empty("a label's key"), ["a", " "], [""], "a label's key"),
    (without("/ ", "a name without slash and blank"), ["", "a.b", "x-y"], ["/", "a/b", " a", "a "], "a name without slash and blank"),
    (without("]^-\\", "a name without brackets"), ["a", "["], ["]", "a^", "-", "\\"], "a name without brackets"),
    (
        Meta(extra_json_schema={"maxLength": 3}, extra={ALLOWED: "at most 3 characters"}),
        ["", "abc", "äöü"],
        ["abcd"],
        "at most 3 characters",
    ),
    (nothing("it has no place here"), [], [0, "", False, []], "it has no place here"),
]
RIGHT = [(meta, value) for meta, right, _, _ in CASES for value in right]
WRONG = [(meta, value) for meta, _, wrong, _ in CASES for value in wrong]


def facets(meta: Meta) -> dict[str, Any]:
    assert meta.extra_json_schema is not None
    return meta.extra_json_schema


@pytest.mark.parametrize(("meta", "value"), RIGHT)
def test_what_is_allowed_holds_and_the_schema_agrees(meta: Meta, value: Any) -> None:
    assert holds(value, facets(meta))
    assert Draft202012Validator(facets(meta)).is_valid(value)


@pytest.mark.parametrize(("meta", "value"), WRONG)
def test_what_is_not_allowed_does_not_and_the_schema_agrees(meta: Meta, value: Any) -> None:
    assert not holds(value, facets(meta))
    assert not Draft202012Validator(facets(meta)).is_valid(value)


@pytest.mark.parametrize(("meta", "allowed"), [(meta, allowed) for meta, _, _, allowed in CASES])
def test_a_sentence_says_what_is_allowed_and_the_schema_is_one(meta: Meta, allowed: str) -> None:
    assert meta.extra == {ALLOWED: allowed}
    Draft202012Validator.check_schema(facets(meta))


@pytest.mark.parametrize("meta", [meta for meta, _, _, _ in CASES])
def test_a_field_that_is_not_there_keeps_any(meta: Meta) -> None:
    assert holds(None, facets(meta))


@pytest.mark.parametrize(
    ("meta", "description"),
    [(not_empty("a key"), "a key"), (without("/", "no slash"), "no slash"), (nothing("no"), "no"), (within(1), None), (one_of("a"), None)],
)
def test_where_the_keywords_do_not_speak_for_themselves_the_schema_has_the_sentence(meta: Meta, description: str | None) -> None:
    assert facets(meta).get("description") == description


def test_without_facets_anything_goes() -> None:
    assert holds(object(), {})


def test_what_is_no_number_keeps_no_bound() -> None:
    """NaN is neither less nor more than anything."""
    assert not holds(float("nan"), facets(within(0, 100)))
    assert not holds(float("nan"), facets(within(0)))
