"""YAML from anybody: bounded, plain, and refused with its place."""

from __future__ import annotations

import tracemalloc

import pytest
import yaml

from placewright.api.plainyaml import PlainLoader


def load(text: str) -> object:
    return yaml.load(text, Loader=PlainLoader)


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
    "a number to the base of 60": ("a: 1" + ":59" * 1000, "a number of 3001 characters", 1, 4),
    "digits": ("- 0x" + "f" * 5000, "a number of 5002 characters", 1, 3),
    "half a surrogate": ('a: "\\ud800"', "text with half a surrogate", 1, 4),
    "half a surrogate in a key": ('"\\udfff": 1', "text with half a surrogate", 1, 1),
    "no number": ("- !!int ''", "something that is no int", 1, 3),
    "no float": ("- !!float x", "something that is no float", 1, 3),
    "no truth": ("- !!bool perhaps", "something that is no bool", 1, 3),
    "no mapping": ("- !!map 3", "expected a mapping node, but found scalar", 1, 3),
    "a set": ("- !!set {a}", "could not determine a constructor for the tag 'tag:yaml.org,2002:set'", 1, 3),
    "bytes": ("- !!binary aGE=", "could not determine a constructor for the tag 'tag:yaml.org,2002:binary'", 1, 3),
    "a Python object": ("!!python/object/apply:os.system [ls]", "could not determine a constructor", 1, 1),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_plain_is_refused_with_its_place(case: str) -> None:
    text, said, line, column = REFUSED[case]
    with pytest.raises(yaml.MarkedYAMLError) as refusal:
        load(text)
    assert str(refusal.value.problem).startswith(said)
    mark = refusal.value.problem_mark
    assert mark is not None
    assert (mark.line + 1, mark.column + 1) == (line, column)


@pytest.mark.parametrize("text", [bomb(20), merge_bomb(20), "[" * 1_000_000], ids=["aliases", "merges", "nesting"])
def test_a_bomb_takes_no_memory(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(yaml.MarkedYAMLError):
            load(text)
        assert tracemalloc.get_traced_memory()[1] < 2**20 + 10 * len(text)
    finally:
        tracemalloc.stop()


def test_other_loaders_of_the_process_are_left_as_they_are() -> None:
    assert yaml.safe_load("!!set {a}") == {"a"}
