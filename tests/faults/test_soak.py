"""Several replicas under churn. `make soak` lets it go on for ten minutes at 200 pods a second; here it is seconds, at a walk."""

from __future__ import annotations

import json

import pytest

from .churn import Churn, Memory, slope
from .stage import Stage, now

REPLICAS = 2
#: Memory grows while caches fill; its slope is taken from then on, seconds.
SETTLED_AFTER = 120.0
SAMPLE_SECONDS = 10.0


async def test_soak_with_churn(stage: Stage, request: pytest.FixtureRequest) -> None:
    seconds: float = request.config.getoption("soak_seconds", 4.0)
    rate: float = request.config.getoption("soak_rate", 40.0)
    await stage.replicas_at_work(REPLICAS, probe=False)
    stage.every_event_is_due = False
    churn, memory = Churn(stage, rate), Memory(stage)
    began = now()
    async with memory.sampled(min(SAMPLE_SECONDS, seconds / 4)), churn.going_on():
        await stage.until(lambda: now() > began + seconds, "the soak is over", seconds * 2)
    took = now() - began
    await stage.until_settled()
    grows = {name: round(slope(samples, min(SETTLED_AFTER, seconds / 5)), 2) for name, samples in memory.samples.items()}
    sizes = {name: [round(size) for _, size in samples] for name, samples in memory.samples.items()}
    figures = {
        "seconds": round(took), "pods": churn.created, "pods a second": round(churn.created / took, 1), "changes": churn.changes,
        "MiB": sizes, "MiB a minute": grows, "came late by, s": round(churn.behind, 2),
    }  # fmt: skip
    (stage.folder / "soak.json").write_text(json.dumps(figures))
    print(json.dumps(figures))  # noqa: T201 - the figures are what `make soak` is for
    assert stage.history.bound > 0.9 * churn.created
    assert all(each.alive for each in stage.replicas)


def test_the_slope_of_what_grows_steadily_is_its_growth() -> None:
    assert slope([(0.0, 500.0), (60.0, 10.0), (120.0, 12.0), (180.0, 14.0)], 60.0) == pytest.approx(2.0)
    assert slope([(0.0, 1.0)], 0.0) == 0.0
