"""What is said of two schedulers' turns: throughput as upstream samples it, ratios and why there are none, tables and the page."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from placewright.api.bad_input import InputError
from placewright_lab.bench.schedulerperf.perfreport import BEGIN, END, chosen, exchanged, markdown, notes, rows
from placewright_lab.bench.schedulerperf.throughput import Throughput, throughput
from placewright_lab.bench.schedulerperf.verdicts import Contest, PerfTurn, read_contests, write_contest
from placewright_lab.bench.wavecomparison import Spent

LABELS = ("ours", "kube-scheduler 1.36")


def turn(label: str, seconds: float, cpu: float = 2.0, **changes: object) -> PerfTurn:
    """Return a turn of 100 pods in so many seconds. The scheduler used `cpu` seconds in them, and 1 s more until the last event."""
    made = PerfTurn(label, 100, seconds, Spent(cpu, 4, 2, 0), Spent(cpu + 1, 5, 3, 0), 50_000_000)
    return replace(made, **changes)  # type: ignore[arg-type]


def contest(mine: PerfTurn, theirs: PerfTurn, name: str = "Case/5Nodes") -> Contest:
    return Contest(name, 5, 150, 100, {}, 2, LABELS, [mine, theirs], made={"machine": "a small one"})


# --- throughput, worked out by hand ---


def test_the_first_look_that_sees_a_binding_only_begins() -> None:
    # Looks at 1, 2, 3 s see 2, 5 and 9 pods: samples of 3 and 4 pods a second.
    bound = [0.5, 0.9, 1.1, 1.2, 1.9, 2.1, 2.2, 2.3, 3.0]
    assert throughput(0.0, bound) == Throughput(3.5, 3.0, 4.0, 4.0, 4.0)


def test_a_second_without_bindings_is_spread_into_the_next() -> None:
    # Looks at 1 to 4 s see 1, 1, 1 and 7: six pods in three seconds are three samples of 2.
    assert throughput(0.0, [0.5, 3.1, 3.2, 3.3, 3.4, 3.5, 3.6]) == Throughput(2.0, 2.0, 2.0, 2.0, 2.0)


def test_nothing_is_sampled_before_the_first_binding() -> None:
    # Nothing is seen before the look at 6 s, which begins; the one at 7 s sees one more.
    assert throughput(100.0, [105.5, 106.5]) == Throughput(1.0, 1.0, 1.0, 1.0, 1.0)


def test_what_is_over_within_a_second_has_no_sample() -> None:
    assert throughput(0.0, [0.1, 0.2, 0.9]) is None
    assert throughput(0.0, []) is None


def test_percentiles_are_samples_as_upstream_picks_them() -> None:
    # 21 looks that see 1, 2, 4, 7, ...: samples of 1 to 20 pods a second.
    bound = [0.5] + [second + 0.5 for second in range(1, 21) for _ in range(second)]
    assert throughput(0.0, bound) == Throughput(10.5, 10.0, 18.0, 19.0, 20.0)


# --- verdicts ---


def test_a_ratio_is_of_pods_a_second_where_kube_scheduler_used_half_of_its_cores_time() -> None:
    # 100 pods in 10 s on two cores: 20 s of CPU time, of which it used 10.
    found = contest(turn(LABELS[0], 4.0), turn(LABELS[1], 10.0, cpu=10.0))
    assert found.own_share() == 0.5
    assert found.ratio() == 2.5
    assert found.verdict() == "2.50"


def test_what_other_work_took_could_not_have_been_used() -> None:
    # 20 s of CPU time, of which others took 8: half of what was left are 6 s.
    theirs = turn(LABELS[1], 10.0, cpu=6.0, elsewhere=8.0)
    assert contest(turn(LABELS[0], 4.0), theirs).own_share() == 0.5
    assert contest(turn(LABELS[0], 4.0), replace(theirs, elsewhere=20.0)).own_share() == 0.0


def test_a_scheduler_that_waited_for_the_api_server_has_no_ratio() -> None:
    found = contest(turn(LABELS[0], 4.0), turn(LABELS[1], 10.0, cpu=9.9))
    assert (found.ratio(), found.verdict()) == (None, "API-bound")


@pytest.mark.parametrize("broken", LABELS)
def test_a_turn_that_did_not_end_has_no_ratio_and_says_why(broken: str) -> None:
    mine, theirs = (turn(label, 1.0, 2.0, ended="too slow" if label == broken else "") for label in LABELS)
    found = contest(mine, theirs)
    assert (found.ratio(), found.verdict()) == (None, "did not end")
    assert f"Case/5Nodes: {broken} did not end: too slow" in list(notes([found]))


def test_of_several_turns_the_median_counts() -> None:
    theirs = [turn(LABELS[1], seconds, cpu=100.0) for seconds in (30.0, 10.0, 20.0)]
    found = replace(contest(turn(LABELS[0], 10.0), theirs[0]), turns=[turn(LABELS[0], 10.0), *theirs])
    assert found.ratio() == 2.0


def test_pods_that_only_one_of_them_left_unbound_are_told() -> None:
    mine = turn(LABELS[0], 1.0, bound={"a": 10}, pending={"b": 0})
    assert contest(mine, turn(LABELS[1], 1.0, bound={"a": 10})).difference() == ""
    other = contest(mine, turn(LABELS[1], 1.0, bound={"a": 9}, pending={"a": 1}))
    assert other.difference() == "bound at the end: 10 in a; kube-scheduler 1.36: 9 in a"
    assert any("the two left different pods behind" in note for note in notes([other]))


def test_the_median_is_over_workloads_with_a_ratio() -> None:
    found = [contest(turn(LABELS[0], 1.0), turn(LABELS[1], seconds, cpu=cpu)) for seconds, cpu in ((2.0, 9.0), (4.0, 9.0), (9.0, 0.1))]
    assert next(notes(found)) == "3 of 3 workloads were run; 2 have a ratio, the median is 3.00."
    assert next(notes(found[2:])) == "1 of 1 workloads were run; 0 have a ratio."


def test_rows_behind_kube_scheduler_are_named() -> None:
    slow = contest(turn(LABELS[0], 4.0), turn(LABELS[1], 2.0, cpu=9.0), "Slow/x")
    said = "1 of 2 workloads were run; 1 have a ratio, the median is 0.50; behind kube-scheduler: Slow/x (0.50)."
    assert next(notes([slow], ["Other/y"])) == said
    assert list(notes([slow], ["Other/y"]))[-1] == "not run: Other/y"


def test_other_work_on_the_machine_is_told() -> None:
    # 4 of 8 s and 5 of 20 s of CPU time.
    found = contest(turn(LABELS[0], 4.0, elsewhere=4.0), turn(LABELS[1], 10.0, elsewhere=5.0))
    assert list(notes([found]))[2].startswith("Other work on the machine took 38% of its cores' time meanwhile, at the median")
    assert len(list(notes([contest(turn(LABELS[0], 4.0), turn(LABELS[1], 10.0))]))) == 2


def test_cpu_is_compared_in_every_row() -> None:
    # Until the last event 3 s and 6 s of CPU for 100 pods, then 3 s and 2 s.
    found = [contest(turn(LABELS[0], 1.0), turn(LABELS[1], 9.0, cpu=cpu), name) for cpu, name in ((5.0, "A/x"), (1.0, "B/x"))]
    said = "CPU a pod: Placewright's is less in 1 of 2 rows; kube-scheduler's by Placewright's is 1.33 at the median."
    assert list(notes(found))[1] == said


# --- tables, the page and what is kept ---


def test_a_row_has_both_sides_also_where_there_is_no_ratio() -> None:
    (row,) = rows([contest(turn(LABELS[0], 4.0), turn(LABELS[1], 10.0))])
    assert row == {
        "workload": "Case/5Nodes",
        "nodes": "5",
        "pods, measured": "150, 100",
        "pods/s": "25 / 10",
        "ratio": "API-bound",
        "CPU ms/pod": "30.00 / 30.00",
        "API server and etcd": "80.00 / 80.00",
        "peak MB": "50 / 50",
        "share of cores": "25% / 10%",
        "beside": "1.36",
    }


def test_markdown_names_the_machine_and_what_was_left_out() -> None:
    sampled = Throughput(10, 11, 12, 13, 14)
    run = contest(turn(LABELS[0], 4.0, sampled=sampled), turn(LABELS[1], 10.0))
    text = markdown([run, Contest("Other/x", labels=LABELS, left_out="no such gate")])
    assert "- machine: a small one" in text
    assert "| Case/5Nodes | 5 |" in text
    assert "| Case/5Nodes | ours | 10 | 11 | 12 | 13 | 14 |" in text
    assert "- Other/x was left out: no such gate" in text
    assert "- 1 of 2 workloads were run; 0 have a ratio." in text


def test_only_the_figures_of_a_page_are_exchanged() -> None:
    page = f"# Title\n\n{BEGIN}\nold\n{END}\n\nprose\n"
    assert exchanged(page, "new\n") == f"# Title\n\n{BEGIN}\n\nnew\n\n{END}\n\nprose\n"
    assert exchanged(exchanged(page, "new\n"), "new\n") == exchanged(page, "new\n")
    for broken in ("# Title\n", f"{BEGIN}\n", f"{END}\n"):
        with pytest.raises(InputError, match="--page: the page has no lines"):
            exchanged(broken, "new")


def test_what_is_kept_reads_back_and_the_last_word_counts() -> None:
    first = contest(turn(LABELS[0], 4.0), turn(LABELS[1], 10.0))
    second = replace(first, nodes=7)
    other = replace(first, labels=("ours", "kube-scheduler 1.20"))
    assert read_contests([write_contest(first), b"\n", write_contest(other), write_contest(second)]) == [second, other]
    with pytest.raises(msgspec.MsgspecError):
        read_contests([b"{}"])


def test_a_workload_that_one_version_cannot_run_is_shown_with_the_one_that_can() -> None:
    run = contest(turn(LABELS[0], 4.0), turn(LABELS[1], 10.0))
    left = Contest(run.workload, labels=("ours", "kube-scheduler 1.20"), left_out="unrecognized feature gate")
    assert chosen([run, left]) == chosen([left, run]) == [run]
