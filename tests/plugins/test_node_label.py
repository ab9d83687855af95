"""NodeLabel case by case; `make e2e` compares it with kube-scheduler 1.20 itself."""

from __future__ import annotations

from typing import Any

import pytest

from framework.makers import Scene, names
from placewright.framework.events import QueueingHint
from placewright.framework.status import Code
from placewright.profiles.arguments import read_args
from placewright.profiles.problem import ProfileError
from placewright.testing import node, pod
from placewright_legacy_plugins import NodeLabel

NODES = (
    node("both", labels={"disk": "ssd", "retiring": "soon"}).build(),
    node("disk", labels={"disk": ""}).build(),
    node("retiring", labels={"retiring": ""}).build(),
    node("plain").build(),
)
PROFILE = {"plugins": {"multiPoint": {"enabled": [{"name": "NodeLabel"}]}}}


def scene(**args: Any) -> Scene:
    return Scene(extra=(NodeLabel,), spec=PROFILE | {"pluginConfig": [{"name": "NodeLabel", "args": args}]}).with_nodes(*NODES)


def scores(**args: Any) -> dict[str, int]:
    under = scene(**args)
    evaluator = under.evaluator()
    evaluation = evaluator.evaluate(pod("new").build())
    evaluator.score(evaluation)
    return {name: parts["NodeLabel"].normalised for name, parts in under.parts(evaluator, evaluation).items()}


@pytest.mark.parametrize(
    ("args", "fitting"),
    [
        ({}, {"both", "disk", "retiring", "plain"}),
        ({"presentLabels": ["disk"]}, {"both", "disk"}),
        ({"absentLabels": ["retiring"]}, {"disk", "plain"}),
        ({"presentLabels": ["disk"], "absentLabels": ["retiring"]}, {"disk"}),
        ({"presentLabels": ["disk", "retiring"]}, {"both"}),
        ({"presentLabels": ["unheard-of"]}, set()),
    ],
)
def test_a_node_needs_every_label_that_must_be_there_and_none_that_must_not(args: Any, fitting: set[str]) -> None:
    under = scene(**args)
    assert names(under.cluster, under.evaluator().evaluate(pod("new").build()).feasible) == fitting


def test_the_others_are_rejected_for_good_and_in_the_words_of_kube_scheduler() -> None:
    under = scene(presentLabels=["disk"], absentLabels=["retiring"])
    evaluator = under.evaluator()
    [rejection] = evaluator.diagnose(evaluator.evaluate(pod("new").build())).rejections
    assert rejection.status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert rejection.status.plugin == "NodeLabel"
    assert rejection.status.message == "node(s) didn't have the requested labels"
    assert names(under.cluster, rejection.rows) == {"both", "retiring", "plain"}


def test_a_node_scores_by_the_share_of_preferences_that_it_meets_cut_to_a_whole_number() -> None:
    found = scores(presentLabelsPreference=["disk", "unheard-of"], absentLabelsPreference=["retiring"])
    assert found == {"both": 33, "disk": 66, "retiring": 0, "plain": 33}


def test_without_preferences_nobody_scores() -> None:
    assert set(scores(presentLabels=["disk"]).values()) == {0}


def test_a_label_that_comes_or_goes_is_seen_by_the_columns_that_were_kept() -> None:
    under = scene(presentLabels=["disk"])
    evaluator = under.evaluator()
    assert names(under.cluster, evaluator.evaluate(pod("new").build()).feasible) == {"both", "disk"}
    under.with_nodes(node("plain", labels={"disk": "hdd"}), node("disk"))
    assert names(under.cluster, evaluator.evaluate(pod("new").build()).feasible) == {"both", "plain"}


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        (None, NODES[1], QueueingHint.QUEUE),
        (None, NODES[3], QueueingHint.SKIP),
        (NODES[0], NODES[1], QueueingHint.QUEUE),
        (NODES[3], NODES[0], QueueingHint.SKIP),
        (NODES[1], node("disk", labels={"disk": "nvme"}).build(), QueueingHint.SKIP),
    ],
    ids=["a node that suits came", "one that does not came", "its only flaw went", "another flaw came", "it suited before"],
)
def test_only_a_node_that_suits_now_and_did_not_before_is_worth_another_try(old: Any, new: Any, hint: QueueingHint) -> None:
    args = read_args(NodeLabel, {"presentLabels": ["disk"], "absentLabels": ["retiring"]})
    [interest] = NodeLabel(args, scene().handle()).events()
    assert interest.hint(pod("waiting").build(), old, new) is hint


def test_with_preferences_only_it_waits_for_nothing() -> None:
    args = read_args(NodeLabel, {"presentLabelsPreference": ["disk"]})
    assert NodeLabel(args, scene().handle()).events() == ()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (
            {"presentLabels": ["a", "b"], "absentLabels": ["c", "b"]},
            'presentLabels[1]: found "b"; allowed a label that is not in absentLabels, where this is [1]',
        ),
        (
            {"presentLabelsPreference": ["a"], "absentLabelsPreference": ["a"]},
            'presentLabelsPreference[0]: found "a"; allowed a label that is not in absentLabelsPreference, where this is [0]',
        ),
        ({"absentLabels": [""]}, 'absentLabels[0]: found ""; allowed the key of a node label'),
        ({"labels": ["a"]}, "labels: found an unknown field"),
    ],
)
def test_arguments_that_contradict_themselves_are_refused_by_their_path(args: Any, told: str) -> None:
    with pytest.raises(ProfileError) as refused:
        read_args(NodeLabel, args)
    assert told in str(refused.value)


def test_a_label_may_be_required_and_its_absence_preferred_as_in_kube_scheduler() -> None:
    assert read_args(NodeLabel, {"presentLabels": ["a"], "absentLabelsPreference": ["a"]})
