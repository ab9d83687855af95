"""Which rejections a change puts in question: checked with pairs of specs."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.profiles.effective import reconsidered
from placewright.profiles.resolve import resolve
from profiles.makers import CATALOGUE, a_profile, plugin

BEFORE: dict[str, Any] = {"plugins": {"multiPoint": {"enabled": [{"name": "Tetris"}]}}}
MAKES_ROOM = plugin("MakesRoom", "postFilter")


def resolved(spec: dict[str, Any]) -> ResolvedProfile:
    return resolve(a_profile(BEFORE | spec), CATALOGUE | {"MakesRoom": MAKES_ROOM})


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({}, set()),
        ({"weights": {"Tetris": 50, "ImageLocality": 0}}, set()),
        ({"weights": {"TaintToleration": 0}}, set()),  # it filters on
        ({"backoff": {"maxSeconds": 60}, "percentageOfNodesToScore": 50, "paused": True}, set()),
        ({"plugins": {}}, {"Tetris"}),
        ({"plugins": {"multiPoint": {"enabled": [{"name": "Tetris"}], "disabled": [{"name": "NodeName"}]}}}, {"NodeName"}),
        (
            {"plugins": {**BEFORE["plugins"], "filter": {"disabled": [{"name": "NodeAffinity"}]}}},
            {"NodeAffinity"},
        ),
        ({"pluginConfig": [{"name": "NodeResourcesFit", "args": {"topWeight": 7}}]}, {"NodeResourcesFit"}),
        ({"plugins": {"multiPoint": {"enabled": [{"name": "Tetris"}, {"name": "MakesRoom"}]}}}, None),
        ({"extenders": [{"urlPrefix": "http://x", "filterVerb": "f"}]}, None),
        ({"preemption": {"policy": "Never"}}, None),
        ({"compatibility": "1.36"}, set()),
        ({"compatibility": "1.37"}, None),
        ({"preemption": {"policy": "LowerPriority"}}, set()),
    ],
)
def test_a_change_puts_in_question_what_it_switches_off_or_argues_otherwise(after: dict[str, Any], expected: set[str] | None) -> None:
    assert reconsidered(resolved({}), resolved(after)) == expected


def test_a_plugin_that_comes_on_top_turns_no_rejection_around() -> None:
    assert reconsidered(resolved({"plugins": {}}), resolved({})) == set()


def test_other_arguments_for_making_room_give_every_pod_another_try() -> None:
    with_room = {"plugins": {"multiPoint": {"enabled": [{"name": "MakesRoom"}]}}}
    assert reconsidered(resolved(with_room), resolved(with_room)) == set()
    assert reconsidered(resolved(with_room), resolved({"plugins": {}})) is None
