"""YAML text to values: what kubectl understands, and what hostile text gets."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from inputs.manifests import MANIFESTS, Manifests
from placewright.api.bad_input import InputError
from placewright.api.yamldocs import read_documents


def values(text: str) -> list[Any]:
    return [document.value for document in read_documents(text, "f.yaml")]


def test_documents_are_counted_and_empty_ones_are_left_out() -> None:
    documents = list(read_documents("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n", "f"))
    assert [(d.number, d.line, d.value) for d in documents] == [(2, 2, {"a": 1}), (4, 6, {"b": 2})]


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("~", None), ("", None), ("yes", True), ("Off", False), ("y", "y"), ("'yes'", "yes"), ("!!str yes", "yes"),
        ("12", 12), ("-0x1F", -31), ("0644", 420), ("0o17", 15), ("0b11", 3), ("1_000", 1000), ("+7", 7),
        ("1.5", 1.5), ("-.5e3", -500.0), ("1e3", 1000.0), ("!!int '5'", 5),
        ("12:30:45", "12:30:45"), ("2020-01-01", "2020-01-01"), ("1.2.3", "1.2.3"), ("100m", "100m"), ("-", None),
        ("7" * 500, "7" * 500),
    ],
)  # fmt: skip
def test_plain_scalars_mean_what_they_mean_to_kubectl(scalar: str, value: object) -> None:
    found = values(f"a: {scalar}")[0]["a"] if scalar != "-" else None
    assert found == value
    assert type(found) is type(value)


def test_keys_are_text_whatever_they_look_like() -> None:
    assert values("1: a\ntrue: b\n") == [{"1": "a", "true": "b"}]


def test_aliases_and_merge_keys_work_and_the_mapping_itself_wins() -> None:
    text = "base: &b {x: 1, y: 2}\nmore: {<<: *b, y: 3}\nlist: {<<: [*b, {z: 4}]}\n'<<': text"
    assert values(text)[0] == {
        "base": {"x": 1, "y": 2},
        "more": {"x": 1, "y": 3},
        "list": {"x": 1, "y": 2, "z": 4},
        "<<": "text",
    }


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 200_000, "f.yaml: line 1: found 'nesting deeper than 100'"),
        ("- " * 20_000, "f.yaml: line 1: found 'nesting deeper than 100'"),
        (bomb(9), "f.yaml: line 5: found 'aliases for more than 100000 values'"),
        ("a: &a [*a]", "f.yaml: line 1: found 'an alias to something that it is part of'; allowed an alias of an anchor (&a)"),
        ("a: *nobody", "f.yaml: line 1: found 'the alias *nobody'; allowed an alias of an anchor (&nobody) that is"),
        ("a: 1\nb: 2\na: 3", "f.yaml: line 3: found 'the key \"a\" a second time'; allowed each key once"),
        ("a: !!python/object/apply:os.system [x]", "f.yaml: line 1: found 'tag:yaml.org,2002:python/object/apply:os"),
        ("a: !!binary aGk=", "f.yaml: line 1: found 'tag:yaml.org,2002:binary'"),
        ("? {a: b}\n: c", "f.yaml: line 1: found 'a mapping or a list as a key'"),
        ("a: .inf", "f.yaml: line 1: found '.inf'; allowed a number that is finite"),
        ("a: 1e999", "f.yaml: line 1: found '1e999'; allowed a number that is finite"),
        ("a: 99999999999999999999", "f.yaml: line 1: found '99999999999999999999'; allowed a number that fits in 64"),
        ("<<: 5", "f.yaml: line 1: found 5; allowed a mapping"),
        ("a: [", "f.yaml: line 2, column 1: not YAML: "),
        ("\x00", "f.yaml: not YAML: "),
    ],
)
def test_what_is_wrong_or_hostile_is_one_line_that_names_the_place(text: str, message: str) -> None:
    with pytest.raises(InputError) as refused:
        values(text)
    assert str(refused.value).startswith(message)
    assert len(str(refused.value)) < 250
    assert str(refused.value).isprintable()


@given(st.text(alphabet=" \n\t-:[]{}&*?!'\"<>|#%,~a1.eE_x0", max_size=60))
def test_any_text_gives_values_or_one_clear_line(text: str) -> None:
    said = ""
    try:
        values(text)
    except InputError as error:
        said = str(error)
    assert "\n" not in said


#: PyYAML takes `1e3` for a text and writes it without quotes; kubectl reads a number there, and so do we.
NUMBER_WITHOUT_POINT = re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]+")
texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), max_codepoint=0xD7FF))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False)
    | texts.filter(lambda text: NUMBER_WITHOUT_POINT.fullmatch(text) is None),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc<=~1", max_size=5), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(json_values)
def test_what_yaml_writes_is_read_back(value: Any) -> None:
    read = values(yaml.safe_dump({"v": value}))
    assert read == [{"v": value}]


@pytest.mark.parametrize(("text", "number"), [("0E0", 0.0), ("1e3", 1000.0), ("-2E+2", -200.0)])
def test_a_number_with_an_exponent_needs_no_point(text: str, number: float) -> None:
    assert values(f"v: {text}") == [{"v": number}]
    assert values(f"v: '{text}'") == [{"v": text}]


@pytest.mark.parametrize("folder", MANIFESTS)
def test_published_manifests_are_read_as_the_yaml_library_reads_them(folder: Callable[[], Manifests]) -> None:
    texts = folder().files
    assert {path: values(text) for path, text in texts.items()} == {
        path: [value for value in yaml.safe_load_all(text) if value is not None] for path, text in texts.items()
    }
