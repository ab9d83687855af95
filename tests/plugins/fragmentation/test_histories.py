"""Random histories in virtual time: no device has more on it than there is of it, and kept columns are what fresh ones would be."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.handle import ProfileHandle
from placewright.plugins.catalog import in_tree
from plugins.fragmentation.history import SHARES, TYPICAL, History, gpu_pod
from randomcases import cases

STEPS = 250


@pytest.mark.parametrize("seed", range(cases(12)))
def test_no_device_is_over_committed_and_no_share_is_split_whatever_happens(seed: int) -> None:
    async def run() -> History:
        history = History(seed, preset="gpu-fragmentation")
        for _ in range(STEPS):
            await history.step()
            assert history.api.overcommitted() == []
        await history.end()
        return history

    history = asyncio.run(run())
    assert len(history.api.bound) > 3
    assert history.rolled_back > 3
    assert history.restarts > 0 or seed == 1, "there are restarts in all histories but one"


@pytest.mark.parametrize("seed", range(cases(6)))
def test_kept_columns_are_what_fresh_ones_would_be(seed: int) -> None:
    spec = {"preset": "gpu-fragmentation", "pluginConfig": [{"name": "DeviceFragmentation", "args": {"typicalPods": TYPICAL}}]}

    async def run() -> int:
        history, compared = History(seed, **spec), 0
        for step in range(STEPS):
            await history.step()
            if step % 5 == 0:
                compared += agree(history)
        await history.end()
        return compared

    assert asyncio.run(run()) > 100


def agree(history: History) -> int:
    """Whether new pods are judged alike by the running evaluator and by one that has kept nothing; how many rows fit.

    The fresh one is asked about them in the opposite order, so that what one pod leaves behind for the next would show.
    """
    kept, asked = history.world.evaluator, [gpu_pod("asked", units, 2).build() for units in (0, 2000, *SHARES)]
    fresh = ProfileHandle(history.world.cluster, history.world.binder).evaluator(kept.runtime.profile, in_tree())
    found = [judged(kept, each) for each in asked]
    expected = [judged(fresh, each) for each in reversed(asked)][::-1]
    assert np.array_equal(found, expected)
    return int((np.array(expected) >= 0).sum())


def judged(evaluator: Evaluator, asked: object) -> np.ndarray:
    evaluation = evaluator.evaluate(asked)  # type: ignore[arg-type]
    return evaluator.score(evaluation) if evaluation.count else np.where(evaluation.feasible, 0, -1)
