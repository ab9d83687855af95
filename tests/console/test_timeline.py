"""The ring of the last hour, against a model that keeps everything."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright_console.pages.latencies import BOUNDS, counted, no_counts, quantiles
from placewright_console.pages.marks import AWAY, GenerationMarks, Mark, Marks
from placewright_console.pages.timeline import GENERATIONS, MOST_SERIES, OTHERS, PlacementTally, Spans, Timeline, Waiting

SHORT = Spans(fine=6.0, coarse=32.0, fine_for=60.0, kept=300.0)
NOON = 1_795_521_600.0


@dataclass
class Everything:
    """The model: each tick with its counts, never joined and never dropped."""

    ticks: list[tuple[float, float, dict[tuple[str, int], list[float]], dict[tuple[str, int], Waiting]]] = field(default_factory=list)

    def within(self, begin: float, end: float) -> tuple[int, list[float], float]:
        """Bound pods, their durations, and waiting pods times seconds of the ticks within a stretch."""
        ticks = [each for each in self.ticks if begin - 1e-6 <= each[0] and each[1] <= end + 1e-6]
        durations = [one for _, _, bound, _ in ticks for each in bound.values() for one in each]
        held = sum((until - since) * sum(map(sum, waiting.values())) for since, until, _, waiting in ticks)
        return len(durations), durations, held


def stretches(timeline: Timeline) -> list[list[Any]]:
    return sorted(row for key, row in timeline.rows().items() if key != GENERATIONS)


series = st.tuples(st.sampled_from(["default", "packing", OTHERS]), st.integers(1, 2))
steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 1.0, 4.9, 5.0, 5.1, 7.0, 40.0]),
        st.dictionaries(series, st.lists(st.floats(0.0001, 100.0), max_size=3), max_size=3),
        st.dictionaries(series, st.builds(Waiting, st.integers(0, 5), st.just(0), st.integers(0, 3), st.just(0)), max_size=2),
    ),
    max_size=120,
)


@settings(max_examples=60, deadline=None)
@given(steps)
def test_each_stretch_says_what_its_ticks_said_and_none_is_lost(history: list[Any]) -> None:
    timeline, model, tally, now = Timeline(SHORT), Everything(), PlacementTally(), 1000.0
    timeline.tick(now, NOON + now, {}, {})
    carried: dict[tuple[str, int], list[float]] = {}
    for length, bound, waiting in history:
        for (name, generation), durations in bound.items():
            tally.placed(name, generation, np.array([]), np.array(durations))
            carried.setdefault((name, generation), []).extend(durations)
        now += length
        timeline.tick(now, NOON + now, tally.take(), waiting)
        if length:
            model.ticks.append((now - length, now, carried, waiting))
            carried = {}
    assert len(timeline) <= SHORT.most_points
    rows = stretches(timeline)
    for (begin, length, whole, profiles), after in zip_longest(rows, rows[1:]):
        pods, durations, held = model.within(begin - NOON, begin - NOON + length)
        assert whole[1] == pods == sum(each[3] for each in profiles)
        assert sum(whole[2]) == pytest.approx(held / length, abs=0.11)
        assert whole[6] == pytest.approx(quantiles(counted(np.array(durations)), (0.99,))[0], rel=0.01) if durations else whole[6] is None
        assert after is None or begin + length == pytest.approx(after[0], abs=0.02), "neighbours touch"
    if rows:
        oldest = rows[0][0] - NOON
        assert oldest >= now - SHORT.kept - SHORT.coarse - 40
        assert rows[-1][0] + rows[-1][1] - NOON == pytest.approx(now, abs=0.02)
        told = timeline.rows().get(GENERATIONS, [])
        assert sum(each[5] for each in told) == model.within(oldest, now)[0]


def test_old_stretches_are_longer_and_the_ring_does_not_grow() -> None:
    timeline = Timeline()
    for second in range(0, 3 * 3600, 5):
        timeline.tick(second, NOON + second, {}, {("default", 1): Waiting(active=2)})
    rows = stretches(timeline)
    assert 3600 <= rows[-1][0] + rows[-1][1] - rows[0][0] <= 3600 + 64
    assert [row[1] for row in rows[-100:]] == [5.0] * 100
    assert {row[1] for row in rows[:50]} == {30.0}
    assert len(rows) < 260
    assert {tuple(row[2][2]) for row in rows} == {(2.0, 0.0, 0.0, 0.0)}


def test_frequent_ticks_make_no_more_stretches() -> None:
    timeline = Timeline(SHORT)
    for tenth in range(20_000):
        timeline.tick(tenth / 10, NOON + tenth / 10, {}, {})
        assert len(timeline) <= SHORT.most_points


def test_a_stretch_that_was_late_is_long_and_its_rate_is_right() -> None:
    timeline, tally = Timeline(), PlacementTally()
    timeline.tick(0.0, NOON, {}, {})
    tally.placed("default", 1, np.array([]), np.full(100, 0.5))
    timeline.tick(50.0, NOON + 50, tally.take(), {})
    (row,) = stretches(timeline)
    assert row[1] == 50.0
    assert row[2][:2] == [100, 100]
    assert row[2][3] is None
    assert row[2][5] == pytest.approx(0.5, rel=0.41)


@pytest.mark.parametrize("by", [-3600.0, -5.0, 7200.0])
def test_a_clock_that_is_set_moves_all_times_and_no_counts(by: float) -> None:
    timeline, tally = Timeline(), PlacementTally()
    for second in range(0, 100, 5):
        tally.placed("default", 1, np.array([0.001]), np.array([0.1]))
        timeline.tick(second, NOON + second, tally.take(), {})
    before = stretches(timeline)
    timeline.tick(100.0, NOON + 100 + by, {}, {})
    after = stretches(timeline)
    assert [row[0] + by for row in before] == [row[0] for row in after[: len(before)]]
    assert [row[1:] for row in before] == [row[1:] for row in after[: len(before)]]
    assert after[-1][0] == NOON + 95 + by


def test_a_small_drift_of_the_clock_leaves_the_rows_as_they_are() -> None:
    timeline = Timeline()
    timeline.tick(0.0, NOON, {}, {})
    timeline.tick(5.0, NOON + 5, {}, {})
    (first,) = stretches(timeline)
    timeline.tick(10.0, NOON + 11, {}, {})
    assert stretches(timeline)[0] is first


def test_where_the_axis_clock_goes_back_nothing_is_counted_twice_or_lost() -> None:
    timeline, tally = Timeline(), PlacementTally()
    timeline.tick(100.0, NOON, {}, {})
    tally.placed("default", 1, np.array([]), np.array([1.0]))
    timeline.tick(50.0, NOON, tally.take(), {})
    timeline.tick(55.0, NOON + 5, {}, {})
    (row,) = stretches(timeline)
    assert row[:2] == [NOON, 5.0]
    assert row[2][1] == 1


def test_between_two_ticks_the_section_is_one_object() -> None:
    timeline = Timeline()
    for second in (0, 5, 10):
        timeline.tick(second, NOON + second, {}, {("default", 1): Waiting(1)})
    before = timeline.rows()
    assert timeline.rows() is before
    timeline.tick(15, NOON + 15, {}, {})
    after = timeline.rows()
    assert after is not before
    assert len(after) == len(before) + 1
    assert all(after[key] is row for key, row in before.items() if key != GENERATIONS)


def test_many_profiles_are_added_up_beyond_the_first() -> None:
    timeline, tally = Timeline(), PlacementTally()
    timeline.tick(0.0, NOON, {}, {})
    for number in range(50):
        tally.placed(f"p{number:02d}", 1, np.array([]), np.ones(100 - number))
    timeline.tick(5.0, NOON + 5, tally.take(), {})
    (row,) = stretches(timeline)
    names = [each[0] for each in row[3]]
    assert names == [OTHERS, *(f"p{number:02d}" for number in range(MOST_SERIES))]
    assert row[2][1] == sum(each[3] for each in row[3]) == sum(100 - number for number in range(50))


def test_each_generation_has_its_own_sums_until_the_ring_has_dropped_it() -> None:
    timeline, tally = Timeline(SHORT), PlacementTally()
    timeline.tick(0.0, NOON, {}, {})
    for second in range(5, 800, 5):
        tally.placed("default", 1 if second <= 200 else 2, np.array([]), np.array([1.0]))
        tally.failed("default", 1 if second <= 200 else 2)
        timeline.tick(second, NOON + second, tally.take(), {})
        told = timeline.rows()[GENERATIONS]
        assert [each[1] for each in told] == ([1] if second <= 200 else [1, 2] if second < 500 else [2]) or 495 <= second <= 535
    assert told[0][4] == 2 * told[0][5]


def test_quantiles_are_right_within_a_bucket() -> None:
    rng = np.random.default_rng(1)
    durations = rng.lognormal(-5, 1.5, 5000)
    assert quantiles(counted(durations), (0.5, 0.99)) == pytest.approx(np.quantile(durations, (0.5, 0.99)).tolist(), rel=0.2)
    assert quantiles(no_counts(), (0.5,)) == [None]
    assert quantiles(counted(np.array([1e9])), (0.5,)) == [BOUNDS[-1]]
    assert quantiles(counted(np.array([0.0])), (0.5,)) == pytest.approx([BOUNDS[0] / 2])


# --- marks ---------------------------------------------------------------------------------------------------------------------


def test_profiles_that_change_appear_and_end_are_marked() -> None:
    marks = Marks()
    look = GenerationMarks(marks).look
    assert not look(0.0, {"a": ("alpha", 1), "b": ("beta", 1)})
    assert not look(1.0, {"a": ("alpha", 1), "b": ("beta", 1)})
    assert look(2.0, {"a": ("alpha", 2), "c": ("gamma", 7)})
    said = {row["label"]: (row["at"], row["text"]) for row in marks.rows(lambda at: NOON + at).values()}
    assert said == {
        "alpha 2": (NOON + 2, "generation 2 of profile alpha took effect, after generation 1"),
        "beta ended": (NOON + 2, "profile beta is not in effect any more"),
        "gamma 7": (NOON + 2, "profile gamma took effect, generation 7"),
    }


def test_a_mark_that_goes_on_is_closed_and_old_ones_are_dropped() -> None:
    marks = Marks()
    away = marks.add(Mark(5.0, AWAY, "API away", "the API server does not answer", open=True))
    assert marks.rows(lambda at: at)["1"] == {
        "at": 5.0, "kind": AWAY, "label": "API away", "text": "the API server does not answer", "open": True,
    }  # fmt: skip
    away.until, away.open = 9.0, False
    assert marks.rows(lambda at: at)["1"]["until"] == 9.0
    for second in range(500):
        marks.add(Mark(second, AWAY, "", ""))
    assert len(marks.rows(lambda at: at)) == 100
