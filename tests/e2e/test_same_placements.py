"""Native groups, placed in racks by a real kube-scheduler 1.36, or evicting others there: racks, scores and victims are ours.

Its gates are GenericWorkload, GangScheduling, TopologyAwareWorkloadScheduling and WorkloadAwarePreemption. One sequence, or as many as
SAME_ANSWERS_SEQUENCES says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from e2e.answers.comparing import listed
from e2e.answers.placed import COUNT, FEATURES, PREEMPTORS, PlacedGroup, Preemption, run_placements
from placewright_lab.controlplane.assets import VARIABLE, from_environment
from placewright_lab.controlplane.server import ControlPlane, Options
from programs import not_on_this_server

Answers = tuple[list[PlacedGroup], list[Preemption]]
#: The minor version whose alpha API and log lines are read.
VERSION = 36


@pytest.fixture(scope="module", params=range(1, 1 + int(os.environ.get("SAME_ANSWERS_SEQUENCES") or 1)), ids="seed {}".format)
def answers(request: pytest.FixtureRequest) -> Iterator[Answers]:
    assets = from_environment(os.environ)
    if assets is None or assets.kube_scheduler is None or assets.minor != VERSION:
        not_on_this_server(f"{VARIABLE} has no kube-scheduler 1.{VERSION}")
    with ControlPlane(assets, Options(audit=False, features=FEATURES)) as plane:
        yield run_placements(plane, request.param)


def name_of(answer: PlacedGroup | Preemption) -> str:
    return str(answer.came.group["metadata"]["name"])


def test_a_group_is_in_the_rack_that_we_prefer_with_as_many_members(answers: Answers) -> None:
    problems = []
    for each in answers[0]:
        holding = each.holding()
        best = {(rack, seats) for rack, (score, seats) in holding.items() if score == max(total for total, _ in holding.values())}
        found = {(rack, each.placed) for rack in each.racks}
        if len(each.racks) != bool(best) or not found <= best:
            problems.append(f"{name_of(each)}: kube-scheduler chose {found}, our racks are {holding}")
    assert not problems, listed(problems)


def test_the_racks_score_the_same(answers: Answers) -> None:
    compared = [(name_of(each), each.scores, {rack: score for rack, (score, _) in each.holding().items()}) for each in answers[0]]
    problems = [f"{name}: {theirs}, ours {ours}" for name, theirs, ours in compared if theirs and theirs != ours]
    assert not problems, listed(problems)
    assert sum(len(set(theirs.values())) > 1 for _, theirs, _ in compared) >= COUNT / 3, "hardly any group had a choice"


def test_a_group_evicts_no_more_pods_and_none_more_important(answers: Answers) -> None:
    pairs = [(name_of(each), each.priorities(each.evicted), each.priorities(each.ours())) for each in answers[1]]
    problems = [
        f"{name}: kube-scheduler evicted {theirs}, we {ours}"
        for name, theirs, ours in pairs
        if len(ours) > len(theirs) or ours[:1] > theirs[:1] or bool(ours) != bool(theirs)
    ]
    assert not problems, listed(problems)
    assert sum(bool(theirs) for _, theirs, _ in pairs) >= PREEMPTORS / 2, "hardly any group evicted anybody"
