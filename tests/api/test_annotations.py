"""Annotations that Placewright writes on pods are read back unchanged; a value that it did not write is read as None."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.api.annotations import DECISION, DEVICES, Decision, read_decision, read_devices, write_devices

GPU = "example.com/gpu-milli"


def test_the_names_are_part_of_the_api() -> None:
    assert (DECISION, DEVICES) == ("placewright.dev/decision", "placewright.dev/devices")


def test_a_decision_is_written_in_the_words_of_the_api_without_what_is_as_always() -> None:
    """It rides on every Binding: a hundred thousand times what need not be said."""
    full = Decision(profile="batch", generation=3, score=250, runner_up=0, plugins={"NodeResourcesFit": 100})
    said = {"profile": "batch", "generation": 3, "score": 250, "runnerUp": 0, "plugins": {"NodeResourcesFit": 100}}
    assert decoded({DECISION: json.dumps(said)}) == full
    assert decoded({DECISION: '{"profile": "batch"}'}) == Decision(profile="batch", generation=0, score=0, runner_up=None, plugins={})


def decoded(annotations: dict[str, str]) -> Decision:
    found = read_decision(annotations)
    assert found is not None
    return found


def test_a_decision_of_a_later_version_is_read_for_what_is_known_of_it() -> None:
    assert decoded({DECISION: '{"profile": "p", "score": 1, "why": {"not": "known"}}'}).score == 1


NO_DECISIONS = {
    "nothing": "",
    "no JSON": "batch",
    "half": '{"profile": "p"',
    "more than one": '{"profile": "p"} {}',
    "a list": "[]",
    "null": "null",
    "no profile": '{"score": 1}',
    "a profile that is no text": '{"profile": 7}',
    "a score in words": '{"profile": "p", "score": "high"}',
    "part of a score": '{"profile": "p", "score": 1.5}',
    "plugins in a list": '{"profile": "p", "plugins": ["a"]}',
    "nesting": '{"profile": "p", "plugins": ' + "[" * 100_000,
    "half a surrogate": '{"profile": "\ud800"}',
    "a score beyond all bounds": '{"profile": "p", "score": ' + "9" * 5000 + "}",
}


@pytest.mark.parametrize("case", NO_DECISIONS)
def test_what_is_no_decision_is_none(case: str) -> None:
    """Anybody may write annotations, and reading them is part of every restart."""
    assert read_decision({DECISION: NO_DECISIONS[case]}) is None


@pytest.mark.parametrize("annotations", [None, {}, {"placewright.dev/other": "{}"}])
def test_a_pod_without_a_decision_has_none(annotations: dict[str, str] | None) -> None:
    assert read_decision(annotations) is None
    assert read_devices(annotations, GPU) is None


def test_the_devices_of_a_pod_are_written_by_resource() -> None:
    assert json.loads(write_devices(GPU, (3, 0))) == {GPU: [3, 0]}
    assert write_devices(GPU, []) == f'{{"{GPU}":[]}}'


@given(st.dictionaries(st.text(max_size=8), st.lists(st.integers(0, 2**62), max_size=4), max_size=3), st.text(max_size=8))
def test_the_devices_of_one_resource_are_read_whatever_else_is_written(written: dict[str, list[int]], other: str) -> None:
    annotations = {DEVICES: json.dumps(written)}
    for resource, devices in written.items():
        assert read_devices(annotations, resource) == tuple(devices)
        assert read_devices({DEVICES: write_devices(resource, devices)}, resource) == tuple(devices)
    assert read_devices(annotations, other) == (tuple(written[other]) if other in written else None)


@pytest.mark.parametrize(
    "text", ["", "[]", "null", f'{{"{GPU}": 3}}', f'{{"{GPU}": ["3"]}}', f'{{"{GPU}": [1.5]}}', f'{{"{GPU}": [', "\udfff", "[" * 100_000]
)  # fmt: skip
def test_what_are_no_devices_is_none(text: str) -> None:
    assert read_devices({DEVICES: text}, GPU) is None


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=2), max_leaves=4
)


@given(st.dictionaries(st.sampled_from(["profile", "generation", "score", "runnerUp", "plugins"]), ANY_JSON))
def test_any_object_is_a_decision_of_the_right_types_or_none(said: dict[str, Any]) -> None:
    found = read_decision({DECISION: json.dumps(said)})
    whole = {name for name in ("generation", "score") if name in said and type(said[name]) is not int}
    if found is None:
        assert type(said.get("profile")) is not str or whole or "runnerUp" in said or "plugins" in said
    else:
        assert (found.profile, found.score) == (said["profile"], said.get("score", 0))
        assert not whole
