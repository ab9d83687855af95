"""The arithmetic of `bench against`: what a wave comes to, medians, ratios, and whose turn it is."""

from __future__ import annotations

import dataclasses

import pytest

from placewright_lab.bench.wavecomparison import Spent, Wave, WaveComparison, WaveOutcome, order_of_waves

SPENT = Spent(scheduler=0.3, api_server=0.6, etcd=0.15, bench=0.03)
OUTCOME = WaveOutcome(
    sent={"a": 10.0, "b": 10.5, "c": 11.0},
    bound={"a": 11.0, "b": 12.5, "c": 14.0},
    settled=16.0,
    events=2,
    cpu=SPENT,
    peak_bytes=50_000_000,
)


def wave(scheduler: str, per_second: float, p50: float | None = 0.5) -> Wave:
    return Wave(scheduler, 100, 100, per_second, per_second / 2, p50, p50, SPENT, 50_000_000)


def test_turns_change_so_that_what_drifts_hits_both() -> None:
    assert order_of_waves("A", "B", 1) == ["A", "B"]
    assert order_of_waves("A", "B", 2) == ["A", "B", "B", "A"]
    assert order_of_waves("A", "B", 3) == ["A", "B", "B", "A", "A", "B"]


def test_a_burst_lasts_from_the_first_creation_to_the_last_binding_and_to_the_last_event() -> None:
    measured = OUTCOME.wave("ours", backlog=False)
    assert (measured.per_second, measured.settled_per_second) == (3 / 4, 3 / 6)
    assert (measured.p50, measured.p99) == (2.0, pytest.approx(2.98))
    assert (measured.scheduler, measured.pods, measured.events, measured.cpu) == ("ours", 3, 2, SPENT)


def test_a_backlog_lasts_from_the_first_binding_which_is_not_counted() -> None:
    measured = OUTCOME.wave("ours", backlog=True)
    assert (measured.per_second, measured.settled_per_second) == (2 / 3, 2 / 5)
    assert (measured.p50, measured.p99) == (None, None)


def test_an_event_written_before_the_last_binding_does_not_shorten_the_wave() -> None:
    measured = dataclasses.replace(OUTCOME, settled=12.0).wave("ours", backlog=False)
    assert measured.settled_per_second == measured.per_second


def test_a_rate_over_no_time_is_none() -> None:
    assert dataclasses.replace(OUTCOME, sent={"a": 11.0}, bound={"a": 11.0}, settled=11.0).wave("ours", backlog=False).per_second == 0


def test_the_median_wave_of_each_counts_and_the_ratio_is_ours_by_theirs() -> None:
    waves = [wave("A", 100), wave("B", 50), wave("B", 70), wave("A", 300), wave("A", 110), wave("B", 40)]
    compared = WaveComparison(1000, 100, waves, ("A", "B"))
    assert (compared.figures("A")["per_second"], compared.figures("B")["per_second"]) == (110, 50)
    assert compared.ratios()["per_second"] == 2.2
    assert compared.figures("A")["scheduler_cpu_ms"] == pytest.approx(3.0)
    assert compared.figures("A")["peak_mb"] == 50


def test_a_table_has_a_row_a_figure_and_says_where_there_is_none() -> None:
    compared = WaveComparison(1000, 100, [wave("A", 1234.4, None), wave("B", 617.2, None)], ("A", "B"))
    rows = {row.pop(""): row for row in compared.rows()}
    assert rows["pods/s, until the last binding"] == {"A": "1,234", "B": "617", "ratio": "2.00"}
    assert rows["creation to binding, p99 ms"] == {"A": "-", "B": "-", "ratio": "-"}
    assert rows["CPU ms/pod, etcd"] == {"A": "1.50", "B": "1.50", "ratio": "1.00"}


def test_a_title_says_how_pods_came_and_of_how_many_waves_the_median_is() -> None:
    waves = [wave("A", 1), wave("B", 2), wave("B", 2), wave("A", 1)]
    assert WaveComparison(1000, 100, waves, ("A", "B")).title() == "1,000 nodes, 100 pods, burst, median of 2 waves each"


def test_nothing_is_divided_by_nothing() -> None:
    compared = WaveComparison(1000, 100, [wave("A", 5), wave("B", 0)], ("A", "B"))
    assert compared.ratios()["per_second"] is None


def test_json_has_every_wave_in_the_order_in_which_they_ran() -> None:
    compared = WaveComparison(1000, 100, [wave("A", 1), wave("B", 2)], ("A", "B"))
    data = compared.to_json()
    assert [(one["scheduler"], one["per_second"]) for one in data["waves"]] == [("A", 1), ("B", 2)]
    assert data["schedulers"]["B"]["per_second"] == 2
    assert data["ratio"]["per_second"] == 0.5


def test_what_was_spent_before_is_left_out() -> None:
    assert Spent(3.0, 4.0, 5.0, 6.0) - Spent(1.0, 1.0, 2.0, 2.0) == Spent(2.0, 3.0, 3.0, 4.0)
