"""YAML from anybody: bounded, plain, and refused with its place, which PyYAML's own parser tells."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from placewright.api.yamldocs import NotPlainError, documents, only_document


def load(text: str) -> object:
    return only_document(text, worded=True)


def bomb(levels: int, width: int = 9) -> str:
    """A list of a list of a list, each of them aliased several times in the next."""
    lines = [f"a0: &a0 [{', '.join('x' * width)}]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * width)}]" for i in range(1, levels)]
    return "\n".join(lines)


def merge_bomb(levels: int, width: int = 9) -> str:
    lines = ["a0: &a0 {x: 1, y: 2}"]
    lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * width)}]}}" for i in range(1, levels)]
    return "\n".join(lines)


def test_plain_documents_mean_what_they_mean_to_everybody() -> None:
    text = "a: &a {b: 1, c: [x, 2.5, null, true, 0x10]}\nd: *a\ne: {<<: *a, b: 3}\nf: 2026-01-01\n"
    plain = {"b": 1, "c": ["x", 2.5, None, True, 16]}
    assert load(text) == {"a": plain, "d": plain, "e": {"b": 3, "c": plain["c"]}, "f": "2026-01-01"}


REFUSED = {
    "nesting": ("[" * 1000, "nesting deeper than 100", 1, 101),
    "nested mappings": ("{a: " * 200, "nesting deeper than 100", 1, 401),
    "aliases that multiply": (bomb(20), "aliases for more than 100000 values", 6, 10),
    "merges that multiply": (merge_bomb(20), "aliases for more than 100000 values", 6, 20),
    "a list in itself": ("&a [*a]", "an alias to something that it is part of", 1, 5),
    "a mapping in itself": ("a: &a\n  b: *a\n", "an alias to something that it is part of", 2, 6),
    "half a surrogate": ('a: "\\ud800"', "text with half a surrogate", 1, 4),
    "half a surrogate in a key": ('"\\udfff": 1', "text with half a surrogate", 1, 1),
    "no number": ("- !!int ''", "something that is no int", 1, 3),
    "no float": ("- !!float x", "something that is no float", 1, 3),
    "no truth": ("- !!bool perhaps", "something that is no bool", 1, 3),
    "no mapping": ("- !!map 3", "a tag", 1, 3),
    "a set": ("- !!set {a}", "a tag", 1, 3),
    "bytes": ("- !!binary aGE=", "a tag", 1, 3),
    "a Python object": ("!!python/object/apply:os.system [ls]", "a tag", 1, 1),
    "a mapping as a key": ("a: 1\n? {b: c}\n: d", "a mapping or a list as a key", 2, 3),
    "a second document": ("a: 1\n---\nb: 2", "2 documents", 0, 0),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_plain_is_refused_with_its_place(case: str) -> None:
    text, said, line, column = REFUSED[case]
    with pytest.raises(NotPlainError) as refusal:
        load(text)
    assert refusal.value.problem == said
    mark = refusal.value.problem_mark
    assert (line, column) == ((mark.line + 1, mark.column + 1) if mark else (0, 0))


@pytest.mark.parametrize("text", [bomb(20), merge_bomb(20), "[" * 1_000_000], ids=["aliases", "merges", "nesting"])
def test_a_bomb_takes_no_memory(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(yaml.MarkedYAMLError):
            load(text)
        assert tracemalloc.get_traced_memory()[1] < 2**20 + 10 * len(text)
    finally:
        tracemalloc.stop()


# --- how far the bounds reach -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("levels", "read"), [(99, True), (100, False)])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ("{a: ", "}")], ids=["lists", "mappings"])
def test_a_value_may_lie_ninety_nine_levels_deep(opened: str, closed: str, levels: int, *, read: bool) -> None:
    """The value itself is the hundredth."""
    text = opened * levels + "x" + closed * levels
    if read:
        assert load(text)
    else:
        with pytest.raises(yaml.MarkedYAMLError, match="nesting deeper than 100"):
            load(text)


def test_levels_are_counted_down_again_so_that_many_short_branches_are_no_deep_one() -> None:
    assert load("[" + ", ".join(["[[x]]"] * 500) + "]") == [[["x"]]] * 500
    assert load("- " * 99 + "x")
    with pytest.raises(yaml.MarkedYAMLError, match="nesting deeper than 100"):
        load("- " * 100 + "x")


@pytest.mark.parametrize(("times", "read"), [(999, True), (1000, False)])
def test_aliases_may_stand_for_a_hundred_thousand_values_in_all(times: int, *, read: bool) -> None:
    """Each for the hundred that it names and for the list around them."""
    hundred = f"[{', '.join('x' * 99)}]"
    text = f"s: &s y\na: &a {hundred}\nb: [{', '.join(['*a'] * times)}]\nc: [{', '.join(['*s'] * 100)}]"
    if read:
        assert len(load(text)["b"]) == times  # type: ignore[index]
    else:
        with pytest.raises(yaml.MarkedYAMLError, match="aliases for more than 100000 values"):
            load(text)


@pytest.mark.parametrize("text", ["1" * 401, "0." + "1" * 399, "0x" + "f" * 5000, "1" + ":59" * 1000], ids=len)
def test_digits_without_end_are_text_and_cost_no_time(text: str) -> None:
    assert load(text) == text


def test_a_fraction_may_have_four_hundred_characters() -> None:
    assert load("0." + "1" * 398) == 1 / 9


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1:30", "1:30"), ("0b11", 3), ("0o17", 15), ("017", 15), ("1_000", 1000), ("1.5e3", 1500.0), ("1.5e+3", 1500.0), (".5", 0.5),
        ("yes", True), ("Off", False), ("~", None), ("", None), ("null", None), ("NULL", None), ("nULL", "nULL"),
        ("2026-01-01T00:00:00Z",) * 2, ("=", "="), ("a: =", {"a": "="}), ('"\\ud83d\\ude00"', "😀"), ('{"\\ud83d\\ude00": 1}', {"😀": 1}),
        ("!!str 5", "5"), ("!!int '0x1f'", 31), ("!!float '2'", 2.0), ("!!timestamp 2026-01-01", "2026-01-01"), ('"\\u00e9"', "é"),
        ("a: 1\na: 2", {"a": 2}),
    ],
)  # fmt: skip
def test_scalars_are_yaml_1_1_as_kubernetes_reads_it_and_dates_stay_text(text: str, value: object) -> None:
    found = load(text)
    assert (found, type(found)) == (value, type(value))


def test_merged_mappings_give_way_to_what_stands_beside_them_and_to_the_first_of_several() -> None:
    text = "x: &x {a: 1, b: 1}\ny: &y {b: 2, c: 2}\nz: {<<: [*x, *y], c: 3}\n"
    assert load(text)["z"] == {"a": 1, "b": 1, "c": 3}  # type: ignore[index]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b c", "é", "<<x"]), inner, max_size=3),
    max_leaves=6,
)


@given(JSON_VALUES)
def test_every_json_document_is_a_yaml_document_of_the_same_value(value: Any) -> None:
    assert load(json.dumps(value)) == value
    assert load(json.dumps(value, ensure_ascii=False)) == value


def test_several_documents_are_bounded_each_and_counted_together() -> None:
    assert [document.value for document in documents("a: 1\n---\n- 2\n---\n")] == [{"a": 1}, [2]]
    with pytest.raises(yaml.MarkedYAMLError, match="nesting deeper than 100"):
        list(documents("a: 1\n---\n" + "[" * 101))


@pytest.mark.parametrize("text", ["a: b: c", "[1", "{a: 1", "*nobody", "&a &b x", "%TAG", "@x", "a: |x", "\t- x", '"\\q"', "? [a]\n: b\n"])
def test_what_is_no_yaml_is_one_kind_of_error(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        load(text)


@pytest.mark.parametrize(
    "tag", ["omap [a: 1]", "pairs [a: 1]", "set {a}", "binary aGE=", "python/tuple [a]", "python/name:os.system x", "x y"]
)
def test_tags_that_make_what_json_has_not_have_no_constructor(tag: str) -> None:
    with pytest.raises(NotPlainError, match="a tag"):
        load(f"- !!{tag}")
