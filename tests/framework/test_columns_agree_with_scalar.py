"""The columns, mended row by row through whatever happens, say what a plain evaluation node by node says."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from framework.scalar_model import Model, Part, Profile, Said
from framework.worlds import EVENTS, Body, Dice, TwinWorld, pod_object, profile_object
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster import noderows
from placewright.framework.runtime.evaluation import Evaluation, Evaluator
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.runtime.keptshapes import SHAPE_BYTES
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.status import Status
from placewright.plugins.catalog import in_tree
from placewright.plugins.noderesources import balanced, fit
from placewright.plugins.noderesources.strategies import FEW_ROWS
from randomcases import cases

REGISTRY = in_tree()
#: More than enough events for kept columns to go wrong in; a failing history is cut short by shrinking `LENGTHS`.
SEEDS, LENGTHS = st.integers(0, 2**32), st.integers(10, 80)
RANDOM_HISTORY = settings(max_examples=cases(120), suppress_health_check=list(HealthCheck))


def evaluator_of(profile: ResolvedProfile, world: TwinWorld) -> Evaluator:
    return ProfileHandle(world.cluster, nominations=world.nominator).evaluator(profile, REGISTRY)


def verdicts(evaluator: Evaluator, evaluation: Evaluation, world: TwinWorld) -> dict[str, Said | None]:
    """By node, as the columns have it; a node that no rejection names fits."""
    diagnosis = evaluator.diagnose(evaluation)
    names = world.cluster.names
    found: dict[str, Said | None] = {str(names[row]): None for row in world.cluster.rows()}
    if diagnosis.absent is not None:
        found = dict.fromkeys(found, said(diagnosis.absent))
    for status, rows in diagnosis.rejections:
        for row in rows:
            assert found[str(names[row])] is None, "a row was rejected twice"
            found[str(names[row])] = said(status)
    assert {name for name, verdict in found.items() if verdict is None} == {names[row] for row in np.flatnonzero(evaluation.feasible)}
    assert evaluation.count == int(evaluation.feasible.sum())
    return found


def parts(evaluator: Evaluator, evaluation: Evaluation, world: TwinWorld) -> dict[str, dict[str, Part]]:
    """By node, by plugin; holds the totals to the parts."""
    totals = evaluator.score(evaluation)
    rows = np.flatnonzero(evaluation.feasible)
    found = evaluator.breakdown(evaluation, rows)
    columns, nothing = evaluator.parts(evaluation), np.zeros(len(rows), np.int64)
    for plugin, scores in found.items():
        assert columns.get(plugin, nothing).tolist() == [score.product for score in scores]
    result = {}
    for i, row in enumerate(rows):
        result[str(world.cluster.names[row])] = {plugin: Part(*scores[i]) for plugin, scores in found.items()}
        assert totals[row] == sum(scores[i].product for scores in found.values())
    assert (totals[~evaluation.feasible] == -1).all()
    return result


def answer(evaluator: Evaluator, world: TwinWorld, pod: PodInfo) -> tuple[Any, Any]:
    evaluation = evaluator.evaluate(pod)
    said = verdicts(evaluator, evaluation, world)
    return said, parts(evaluator, evaluation, world) if evaluation.count else {}


def answer_of(model_of: Profile, world: TwinWorld, pod: Body) -> tuple[Any, Any]:
    model = Model(model_of, world.nodes, world.pods.values(), {node: [nominee] for node, nominee in world.nominated.items()})
    said = model.verdicts(pod)
    return said, model.scores(pod, said)


def said_of_rows(evaluator: Evaluator, world: TwinWorld, asked: PodInfo, one: str) -> tuple[Said | None, dict[str, Said | None]]:
    """What preemption would hear: of one row alone, and of all rows together as far as that can be told."""
    names = world.cluster.names
    row = world.cluster.row(NodeName(one))
    assert row is not None
    status = evaluator.checker.check_row(asked, row)
    checks = evaluator.checker.trials(asked).check(world.cluster.rows())
    together: dict[str, Said | None] = {str(names[row]): None for row in np.setdiff1d(world.cluster.rows(), checks.unsettled)}
    for rejection, rows in checks.rejections:
        together |= {str(names[row]): said(rejection) for row in rows}
    return said(status), together


def said(status: Status) -> Said | None:
    return None if status.ok else Said(status.code.value, status.plugin, tuple(sorted(status.reasons)))


def live(profile: ResolvedProfile, model_of: Profile | None, dice: Dice, length: int) -> int:
    """Let things happen; after each, one long-lived evaluator must agree about a pod with the model, or else with a fresh evaluator.

    Returns how many pods they agreed about.
    """
    with patch.object(noderows, "_FIRST_CAPACITY", 2):  # so that the columns also grow
        world = TwinWorld()
    for _ in range(3):
        world.node_appears_or_changes(dice)
    evaluator, agreed = evaluator_of(profile, world), 0
    evaluator.kept.budget.limit = dice.choice((1, 3 * SHAPE_BYTES, 1 << 30))  # so that shapes also go, and parts with them
    for _ in range(length):
        for event in dice.choices([*EVENTS], [*EVENTS.values()], k=dice.choice((0, 1, 1, 2, 9))):
            event(world, dice)
        described = world.pending(dice)
        pod = pod_object(described)
        found = answer(evaluator, world, pod)
        if model_of is not None:
            assert found == answer_of(model_of, world, described)
        if world.nodes:
            one = dice.choice(sorted(world.nodes))
            alone, together = said_of_rows(evaluator, world, pod, one)
            assert alone == found[0][one]
            assert together.items() <= found[0].items()
        agreed += 1
        if model_of is None or agreed == length:
            assert found == answer(evaluator_of(profile, world), world, pod)
    return agreed


@RANDOM_HISTORY
@given(SEEDS, LENGTHS)
def test_columns_kept_through_any_history_say_what_a_plain_evaluation_says(seed: int, length: int) -> None:
    dice = Dice(seed)
    profile = dice.profile()
    few = dice.choice((0, FEW_ROWS))  # so that the arithmetic of many rows is also held to the model
    with patch.object(fit, "FEW_ROWS", few), patch.object(balanced, "FEW_ROWS", few):
        assert live(profile_object(profile), profile, dice, length) == length


@settings(RANDOM_HISTORY, max_examples=cases(25))
@given(SEEDS, LENGTHS)
def test_with_spread_and_affinity_too_a_long_lived_evaluator_says_what_a_fresh_one_says(seed: int, length: int) -> None:
    dice = Dice(seed)
    assert live(profile_object(dice.profile(), pairwise=True), None, dice, length) == length
