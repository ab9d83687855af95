"""The operator's time line: what it reads of an engine, and what gets a mark."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from handlers.stage import DEADLINE, new_stage
from observability.metricsdesk import watched
from placewright.explain.records import Records
from placewright.observability.metrics.attempts import AttemptSeries
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright.serving.schedulerview import SchedulerView
from placewright_console.live.enginetimeline import SAMPLE_SECONDS, EngineTimeline, seen_shadows
from placewright_console.pages.marks import AWAY, BEGUN, GENERATION, LEADER, STILL
from placewright_console.pages.shadowrows import shadow_rows
from placewright_console.pages.timeline import GENERATIONS, OTHERS

NOON = 1_795_521_600.0


class Staged:
    """A time line of an engine that is no more than what the time line reads."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.attempts = AttemptSeries()
        self.view: Any = SimpleNamespace(
            attempts=self.attempts,
            live=SimpleNamespace(active={}),
            leads=True,
            away_since=None,
            queue=SimpleNamespace(profile_queues=lambda: [self.queue("default", (1, 2, 3, 4)), self.queue("tenants-own", (0, 0, 7, 0))]),
        )
        self.profile(1)
        self.timeline = EngineTimeline(self.view, lambda: self.now, lambda: NOON + self.now)

    @staticmethod
    def queue(name: str, sizes: tuple[int, ...]) -> Any:
        return SimpleNamespace(name=name, sizes=lambda: sizes)

    def profile(self, generation: int) -> None:
        self.view.live.active = {"default": SimpleNamespace(profile=SimpleNamespace(name="main", generation=generation))}

    def looks(self, times: int = 1, every: float = 1.0) -> None:
        for _ in range(times):
            self.now += every
            self.timeline.look()

    def marks(self, *kinds: str) -> list[dict[str, Any]]:
        return [row for row in self.timeline.marks().values() if row["kind"] in kinds]


def test_pods_wait_by_profile_and_foreign_names_are_not_told() -> None:
    staged = Staged()
    staged.looks(6)
    (row,) = [row for key, row in staged.timeline.time().items() if key != GENERATIONS]
    assert row[1] == SAMPLE_SECONDS
    assert row[2][2] == [1.0, 2.0, 10.0, 4.0]
    assert {(each[0], each[1]): each[4] for each in row[3]} == {("default", 1): [1, 2, 3, 4], (OTHERS, 0): [0, 0, 7, 0]}


def test_a_generation_that_changes_is_marked_and_its_counts_are_kept_apart() -> None:
    staged = Staged()
    staged.looks(3)
    staged.attempts.tally.placed("default", 1, np.array([0.001]), np.array([0.1]))  # type: ignore[union-attr]
    staged.profile(2)
    staged.looks()
    staged.attempts.tally.placed("default", 2, np.array([0.001]), np.array([0.1]))  # type: ignore[union-attr]
    staged.looks(6)
    (mark,) = staged.marks(GENERATION)
    assert (mark["at"], mark["label"]) == (NOON + 1004, "main 2")
    told = staged.timeline.time()[GENERATIONS]
    assert [(each[1], each[5]) for each in told if each[0]] == [(1, 1), (2, 1)]


def test_profiles_that_are_there_at_the_start_are_not_marked_and_later_ones_are() -> None:
    staged = Staged()
    staged.view.live.active = {}
    staged.timeline = EngineTimeline(staged.view, lambda: staged.now, lambda: NOON + staged.now)
    staged.looks(2)
    staged.profile(3)
    staged.looks(2)
    assert staged.marks(GENERATION) == []
    staged.view.live.active = {}
    staged.looks(2)
    staged.profile(3)
    staged.looks(2)
    assert [mark["label"] for mark in staged.marks(GENERATION)] == ["main ended", "main 3"]


async def test_an_error_leaves_a_gap_and_is_logged_once(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    staged = Staged()
    looks = []

    def look() -> None:
        looks.append(1)
        raise RuntimeError("broken")

    monkeypatch.setattr(staged.timeline, "look", look)
    monkeypatch.setattr("placewright_console.live.enginetimeline.LOOK_SECONDS", 0.0)
    task = asyncio.create_task(staged.timeline.run())
    async with asyncio.timeout(DEADLINE):
        while len(looks) < 5:  # noqa: ASYNC110
            await asyncio.sleep(0)
    task.cancel()
    assert [each.message for each in caplog.records] == ["the console's time line has gaps from here on"]


def test_an_api_server_that_is_away_is_marked_from_its_first_failure_until_it_is_back() -> None:
    staged = Staged()
    staged.looks(2)
    staged.view.away_since = time.monotonic() - 0.5
    staged.looks()
    (mark,) = staged.marks(AWAY)
    assert mark["open"]
    assert mark["at"] == pytest.approx(NOON + 1002.5, abs=0.3)
    staged.looks(4)
    staged.view.away_since = None
    staged.looks()
    (mark,) = staged.marks(AWAY)
    assert "open" not in mark
    assert mark["until"] == NOON + 1008
    assert mark["text"].startswith("the API server was away for ")


def test_the_lead_and_a_standstill_are_marked() -> None:
    staged = Staged()
    staged.looks()
    staged.view.leads = False
    staged.looks(2)
    staged.view.leads = True
    staged.looks()
    assert [mark["label"] for mark in staged.marks(LEADER)] == ["stands by", "leads"]
    staged.looks(every=30)
    (mark,) = staged.marks(STILL)
    assert (mark["at"], mark["until"]) == (NOON + 1004, NOON + 1034)
    assert len(staged.marks(BEGUN)) == 1


async def test_an_operator_at_work_is_counted_whole() -> None:
    async with new_stage() as stage, watched(stage.profile().nodes(2)) as running:
        clock = SimpleNamespace(now=0.0)
        series: Any = running.metrics._series
        timeline = EngineTimeline(
            SchedulerView(running.engine, Records(time.time), series.attempts), lambda: clock.now, lambda: NOON + clock.now
        )
        names = stage.pods(5)
        await stage.until(lambda: stage.placed(*names))
        async with asyncio.timeout(DEADLINE):
            # The last attempt ends a moment after its pod is bound, and tells nobody.
            while running.seen().total("scheduler_schedule_attempts_total", result="scheduled") < 5:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        clock.now = 6.0
        timeline.look()
        (row,) = [row for key, row in timeline.time().items() if key != GENERATIONS]
        assert row[2][1] == 5
        assert row[2][3] > 0
        assert row[2][5] >= row[2][3]
        assert seen_shadows(SchedulerView(running.engine, Records(time.time))) == []


async def test_a_shadow_at_work_is_told_with_examples_within_the_rights() -> None:
    async with new_stage() as stage, watched(stage.profile().nodes(3)) as running:
        stage.profile("packed", mode="Shadow", shadows="default", preset="bin-packing", shadow={"budgetPercent": 50}, schedulerName=None)
        await stage.until(lambda: "packed" in running.engine.deciding.shadows.by_name)
        names = stage.pods(6, cpu="300m")
        await stage.until(lambda: stage.placed(*names))
        async with asyncio.timeout(DEADLINE):
            while running.engine.deciding.shadows.by_name["packed"].figures.decided < 6:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        row = shadow_rows(seen_shadows(SchedulerView(running.engine, Records(time.time))), ALL_NAMESPACES)["packed"]
        assert row["beside"] == "default"
        assert row["examples"]
        assert {each[1] for each in row["examples"]} <= set(names)
        hidden = shadow_rows(seen_shadows(SchedulerView(running.engine, Records(time.time))), Rights.of([]))["packed"]
        assert (hidden["examples"], hidden["hidden"]) == ([], len(row["examples"]))
