"""150 pods with volumes, placed by a real kube-scheduler 1.36 whose gates are on as in 1.37: nodes, messages and scores are ours.

The gates are StorageCapacityScoring and VolumeLimitScaling. The seed is fixed; another one is tried as well when SAME_ANSWERS_SEED names
it.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final, NamedTuple

import pytest

from e2e.answers.comparing import judged, listed
from e2e.answers.recording import Decision, record, seeds
from e2e.answers.volumerecording import LaterVolumeRecorder
from e2e.answers.volumerules import fitting
from e2e.answers.volumes import LATER
from placewright_lab.simulation.evaluation import Verdict

_MISSING: Final = re.compile(r"(\d+) \S+( CSI driver is not installed on the node)")


class Scene(NamedTuple):
    """A decision, and what we say of it."""

    decision: Decision
    ours: Verdict

    def scores(self) -> tuple[dict[str, int], dict[str, int]]:
        """kube-scheduler's of VolumeBinding, and ours; a plugin that was skipped gave no node anything."""
        theirs = self.decision.scores.get("VolumeBinding") or dict.fromkeys(self.decision.feasible, 0)
        ours = {
            each.node: each.scores["VolumeBinding"].product if "VolumeBinding" in each.scores else 0
            for each in self.ours.nodes
            if each.fits
        }
        return theirs, ours


@pytest.fixture(scope="module", params=seeds(), ids="seed {}".format)
def scenes(request: pytest.FixtureRequest) -> list[Scene]:
    spec = {"featureGates": dict.fromkeys(LATER, True)}
    return [Scene(each, judged(each.objects, each.pod, spec)) for each in record(LaterVolumeRecorder, request.param)]


def without_names(message: str) -> str:
    """A message that counts missing drivers without their names: kube-scheduler names any of several."""
    missing = sum(int(number) for number, _ in _MISSING.findall(message))
    return f"{missing} {_MISSING.sub('', message)}"


def test_the_same_nodes_can_hold_the_pod(scenes: list[Scene]) -> None:
    problems = [
        f"{decision.key}: kube-scheduler found {sorted(decision.feasible)}, we {sorted(fitting(ours))}; {decision.message}"
        for decision, ours in scenes
        if decision.node and decision.scores and decision.feasible != fitting(ours)
    ]
    problems += [
        f"{decision.key} is on {decision.node}" for decision, ours in scenes if decision.node and decision.node not in fitting(ours)
    ]
    assert not problems, listed(problems)


def test_a_pod_that_fits_nowhere_is_told_so_in_the_same_words(scenes: list[Scene]) -> None:
    problems = [
        f"{decision.key}: {decision.message!r}, ours {ours.message!r}"
        for decision, ours in scenes
        if without_names(decision.message) != without_names(ours.message)
    ]
    assert not problems, listed(problems)


def test_nodes_score_the_same_by_their_storage(scenes: list[Scene]) -> None:
    scored = [(scene.decision.key, *scene.scores()) for scene in scenes if scene.decision.scores]
    problems = [f"{key}: {theirs}, ours {ours}" for key, theirs, ours in scored if theirs != ours]
    assert not problems, listed(problems)
    assert sum(len(set(ours.values())) > 1 for _, _, ours in scored) >= 5, "hardly any pod was scored by its storage"


def test_the_pods_were_worth_comparing(scenes: list[Scene]) -> None:
    assert len(scenes) == LaterVolumeRecorder.pods
    reasons = Counter(reason for scene in scenes for each in scene.ours.nodes for reason in each.reasons)
    assert sum(count for reason, count in reasons.items() if "CSI driver is not installed" in reason) >= 20, reasons
    assert sum(bool(scene.decision.node) for scene in scenes) >= 0.25 * LaterVolumeRecorder.pods
    assert sum(not scene.decision.node for scene in scenes) >= 10
