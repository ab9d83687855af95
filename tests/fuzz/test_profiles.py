"""Profiles and configurations of anybody: what they come to, or what is wrong with them, path by path; in bounded time and memory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st

from fuzz.effort import bounded, fuzz, outcome
from fuzz.mutants import ANY_JSON, Document, mutants, torn
from fuzz.seeds import PROFILE, PROFILES
from placewright.framework.runtime.resolvedprofile import ExtensionPoint, ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.kubescheduler.documents import manifest, to_yaml
from placewright.profiles.kubescheduler.reader import Conversion, convert
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright.profiles.validation import Checked, check_file, check_object

PLUGINS = in_tree()
YAML_PIECES = st.lists(
    st.sampled_from(
        [
            *("&a ", "*a", "<<: ", "? ", "- ", ": ", "\n", "  ", "[", "]", "{", "}", ", ", "| ", "> ", "# ", "---\n", "...\n", '"', "'"),
            *("!!set ", "!!binary ", "!!int ", "!!str ", "!x ", "%YAML 1.2\n"),
            *("\t", "\ufeff", "\u2028", "0x", "1:59", ".nan", "~", "=", "<<"),
            *("kind: SchedulingProfile\n", "apiVersion: placewright.dev/v1alpha1\n", "metadata: {name: p}\n"),
            *("spec: ", "plugins", "weights: "),
        ]
    ),
    max_size=16,
).map("".join)


def resolved(text: str) -> list[ResolvedProfile]:
    return [resolve(profile, PLUGINS) for profile in read_profiles(text, "f.yaml")]


def is_clear(refusal: Exception) -> bool:
    """Lines that a person can use: the file, and what was found and is allowed."""
    lines = str(refusal).splitlines()
    return bool(lines) and all(line.isprintable() and len(line) < 5000 and "found " in line and "; allowed " in line for line in lines)


def complaints(text: str) -> list[str]:
    """What is wrong with how it is taken: every way in comes to profiles or to clear words, and back from a manifest to the same."""
    with bounded(len(text)):
        read = outcome(lambda: resolved(text), ProfileError)
        checked = check_file(text, "f.yaml", PLUGINS)
        converted = outcome(lambda: convert(text, "f.yaml", PLUGINS), ProfileError)
    found = [f"not clear: {each}" for each in (read, converted) if isinstance(each, Exception) and not is_clear(each)]
    lines = [str(finding) for finding in checked.findings]
    found += [f"not clear: {line}" for line in lines if not (line.startswith("f.yaml:") and line.isprintable())]
    if isinstance(read, list):
        found += [f"orders of the queue: {one}" for one in read if len(one.at(ExtensionPoint.QUEUE_SORT)) != 1]
    if isinstance(converted, Conversion):
        again = outcome(lambda: resolved(to_yaml(map(manifest, converted.profiles))), ProfileError)
        if again != [resolve(profile, PLUGINS) for profile in converted.profiles]:
            found.append(f"not the same after conversion: {again}")
    return found


def test_the_seeds_are_valid() -> None:
    assert [one.scheduler_name for one in resolved(json.dumps(PROFILE))] == ["p"]
    assert check_file(json.dumps(PROFILE), "f.yaml", PLUGINS) == Checked((), profiles=1)
    assert isinstance(convert(json.dumps(PROFILES[2]), "f.yaml", PLUGINS), Conversion)


@fuzz(60, document=mutants(PROFILES))
def test_a_changed_profile_comes_into_effect_or_is_refused(document: Document) -> None:
    assert complaints(json.dumps(document)) == []


@fuzz(60, raw=torn(PROFILES))
def test_torn_text_comes_into_effect_or_is_refused(raw: bytes) -> None:
    assert complaints(raw.decode("utf-8", "replace")) == []


@fuzz(200, text=YAML_PIECES)
def test_pieces_of_yaml_come_into_effect_or_are_refused(text: str) -> None:
    assert complaints(text) == []


PLACES = [(), ("spec",), ("metadata",), ("spec", "plugins"), ("spec", "pluginConfig"), ("spec", "extenders")]


@fuzz(100, value=ANY_JSON, at=st.sampled_from(PLACES))
def test_any_json_in_any_place_comes_into_effect_or_is_refused(value: Any, at: tuple[str, ...]) -> None:
    document = json.loads(json.dumps(PROFILE))
    holder = document
    for step in at[:-1]:
        holder = holder[step]
    if at:
        holder[at[-1]] = value
    assert complaints(json.dumps(document if at else value)) == []


@fuzz(100, new=mutants((PROFILE,)), old=st.none() | mutants((PROFILE,)))
def test_the_webhook_has_a_word_for_every_object(new: Document, old: Document | None) -> None:
    """Its server checks no more than that both are objects."""
    problems = check_object(new, old, PLUGINS)
    assert all(str(problem) for problem in problems)


def laughs(levels: int) -> str:
    """A billion laughs, a few lines."""
    first = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    return first + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, levels))


def merges(levels: int) -> str:
    first = "a0: &a0 {x: 1}\n"
    return first + "".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, levels))


def inside(where: str, text: str) -> str:
    """The text as the value of one field."""
    indent = "  " * where.count(":")
    lines = "".join(f"{indent}  {line}\n" for line in text.splitlines())
    return f"apiVersion: placewright.dev/v1alpha1\nkind: SchedulingProfile\n{where}\n{lines}"


BOMBS = {
    **{f"{name} in {where!r}": inside(where, bomb) for name, bomb in (("laughs", laughs(30)), ("merges", merges(30)))
       for where in ("spec:", "metadata:", "x:", "spec:\n  weights:", "spec:\n  extenders:")},
    "few laughs": laughs(4),
    "nesting": "[" * 50_000,
    "nested mappings": "{a: " * 10_000,
    "nesting by indentation": "".join(f"{' ' * i}a:\n" for i in range(400)),
    "nesting by dashes": "- " * 10_000,
    "a document in itself": "kind: List\nitems: &a [{kind: List, items: *a}]\n",
    "a profile in itself": inside("spec: &a", "plugins: *a"),
    "many documents": "---\n" * 1_000,
    "many anchors": "".join(f"- &a{i} x\n" for i in range(600)),
    "one long key": f"{'k' * 10_000}: 1",
    "a long number": f"a: {'9' * 10_000}",
    "a number to the base of 60": f"a: 1{':59' * 4_000}",
    "a long tag": f"a: !<{'t' * 10_000}> b",
    "open quotes": '"' + "x\n" * 2_000,
    "lists of lists in JSON": json.dumps({"kind": "List", "items": [{"kind": "List", "items": [3]}] * 200}),
    "a ConfigMap with a bomb": json.dumps({"kind": "ConfigMap", "data": {"a": laughs(30)}}),
    "ConfigMaps in a ConfigMap": json.dumps({"kind": "ConfigMap", "data": {"a": json.dumps({"kind": "ConfigMap", "data": {"a": "[]"}})}}),
}  # fmt: skip


@pytest.mark.parametrize("case", BOMBS)
def test_a_bomb_does_not_go_off(case: str) -> None:
    text = BOMBS[case]
    with bounded(len(text)):
        read = outcome(lambda: resolved(text), ProfileError)
        checked = check_file(text, "f.yaml", PLUGINS)
        converted = outcome(lambda: convert(text, "f.yaml", PLUGINS), ProfileError)
    assert isinstance(read, ProfileError)
    assert is_clear(read)
    assert isinstance(converted, ProfileError)
    assert is_clear(converted)
    assert checked.findings or checked.others or checked.unreadable
