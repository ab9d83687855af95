"""`placewright bench` on sizes that take no time; no test asserts a time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from placewright.cli.main import main
from placewright.offline.kinds import Manifest
from placewright_lab.bench import decisions, end_to_end
from placewright_lab.bench.decisions import ATTEMPTS, VARIETIES, WORKLOADS, Measurement, openb_mix
from placewright_lab.bench.deployments import (
    ALL_DIFFERENT,
    DEPLOYMENT_WORKLOADS,
    KINDS,
    RUNNING_PER_NODE,
    deployments_workload,
)
from placewright_lab.bench.end_to_end import EndToEnd
from placewright_lab.bench.wavecomparison import cpu_seconds, machine_seconds, peak_bytes, percentiles, resident_bytes

WARM_UP = 3


@pytest.fixture(scope="module", autouse=True)
def own_heap_frozen() -> Iterator[None]:
    """Freeze the heap once, because each run collects garbage, and thousands of tests have loaded much."""
    with decisions.nothing_old_collected:
        yield


NESTED = """
import gc
from placewright_lab.bench.decisions import nothing_old_collected as nothing_old
with nothing_old:
    with nothing_old: pass
    inside = gc.get_freeze_count()
print(inside > 0, gc.get_freeze_count())
"""


def test_what_is_old_is_collected_again_when_the_outermost_measurement_is_over() -> None:
    done = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True, check=True)
    assert done.stdout == "True 0\n"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the warm-up."""
    monkeypatch.setattr(decisions, "WARM_UP", WARM_UP)


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["bench", *arguments]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


@pytest.mark.usefixtures("short")
def test_decisions_are_measured_for_every_workload_and_size(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(output(capsys, "decisions", "--workloads", ",".join(WORKLOADS), "--nodes", "2,3", "--pods", "5", "-o", "json"))
    assert [(row["workload"], row["nodes"], row["pods"]) for row in data] == [(w, n, 5) for w in WORKLOADS for n in (2, 3)]
    for row in data:
        assert row["running"] == len(WORKLOADS[row["workload"]].running(row["nodes"]))
        assert len(row["seconds"]) == decisions.RUNS
        assert row["placed"] + row["pending"] == 5
        assert row["per_second"] > 0


@pytest.mark.usefixtures("short")
def test_pods_come_from_as_many_deployments_as_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    names = ",".join((*DEPLOYMENT_WORKLOADS, ALL_DIFFERENT))
    words = ("decisions", "--workloads", names, "--deployments", "2,7", "--nodes", "4", "--pods", "5", "--percentage", "50", "-o", "json")
    data = json.loads(output(capsys, *words))
    asked_for = [(name, count) for name in DEPLOYMENT_WORKLOADS for count in (2, 7)]
    assert [(row["workload"], row["deployments"]) for row in data] == [*asked_for, (ALL_DIFFERENT, None)]
    assert all(row["running"] == RUNNING_PER_NODE * 4 for row in data)


def apps(pods: list[Manifest]) -> set[str]:
    return {pod["metadata"]["labels"]["app"] for pod in pods}


@pytest.mark.parametrize("kind", KINDS)
def test_a_workload_of_deployments_is_the_same_for_the_same_seed(kind: str) -> None:
    once, again, other = (deployments_workload(20, kind, seed) for seed in (1, 1, 2))
    assert once.cluster(9) == again.cluster(9) != other.cluster(9)
    assert once.pods(30) == again.pods(30) != other.pods(30)
    assert len(apps(once.pods(1000))) == 20
    assert apps(once.cluster(200)[200:]) == apps(once.pods(1000))


def test_no_two_pods_that_are_all_different_agree_in_requests_or_label() -> None:
    workload = deployments_workload(None, "plain")
    pods = [*workload.pods(400), *workload.cluster(100)[100:]]
    requests = {json.dumps(pod["spec"]["containers"][0]["resources"]) for pod in pods}
    assert len(apps(pods)) == len(requests) == len(pods) == 1000


@pytest.mark.usefixtures("short")
def test_the_table_has_a_line_a_measurement(capsys: pytest.CaptureFixture[str]) -> None:
    out = output(capsys, "decisions", "--nodes", "2", "--pods", "5")
    assert all(workload in out for workload in (*WORKLOADS, *DEPLOYMENT_WORKLOADS, ALL_DIFFERENT, *VARIETIES))
    assert "decisions/s" in out
    assert "≥ 1,500" in out
    assert "≤ 50" in out


@pytest.mark.usefixtures("short")
def test_only_the_workloads_that_were_asked_for_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    out = output(capsys, "decisions", "--workloads", "hard-spread", "--nodes", "2", "--pods", "5")
    assert "hard-spread" in out
    assert "plain" not in out
    assert "attempt" not in out


def test_every_attempt_to_preempt_finds_victims(capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(output(capsys, "decisions", "--workloads", ",".join(VARIETIES), "--nodes", "6", "-o", "json"))
    assert [row["workload"] for row in data] == list(VARIETIES)
    for row in data:
        assert (row["running"], len(row["milliseconds"])) == (24, ATTEMPTS)
        assert row["victims"] >= ATTEMPTS


def test_a_cluster_that_has_room_is_none_to_measure_preemption_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "PER_NODE", 2)
    with pytest.raises(RuntimeError, match="urgent-000 needed no preemption"):
        decisions.measure_attempts("preemption", 2)


def test_the_median_run_counts() -> None:
    measured = Measurement("w", None, 1, 0, 100, 100, 0, None, (9.0, 0.5, 1.0))
    assert measured.per_second == 100.0


def test_a_workload_is_the_same_every_time_and_varied() -> None:
    assert openb_mix(50) == openb_mix(50)
    assert len({json.dumps(pod["spec"]["containers"]) for pod in openb_mix(500)}) > 50


def test_pods_are_bound_through_a_sandbox_and_an_operator_in_other_processes(capsys: pytest.CaptureFixture[str]) -> None:
    (data,) = json.loads(output(capsys, "end-to-end", "--nodes", "2", "--pods", "3", "--assigned", "1", "-o", "json"))
    assert (data["nodes"], data["assigned"], data["pods"], data["bound"]) == (2, 1, 3, 3)
    assert 0 <= data["p50"] <= data["p99"]


@pytest.mark.parametrize("output_format", ["json", "table"])
def test_what_was_measured_end_to_end_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output_format: str
) -> None:
    measured = EndToEnd(2, 1, 3, 3, 1234.5, 0.010, 0.020, 0.3, 0.6, 50_000_000)
    asked: list[tuple[int, ...]] = []

    async def measure(*sizes: int) -> EndToEnd:
        asked.append(sizes)
        return measured

    monkeypatch.setattr(end_to_end, "measure_end_to_end", measure)
    out = output(capsys, "end-to-end", "--nodes", "2", "--pods", "3", "--assigned", "1", "-o", output_format)
    assert asked == [(2, 3, 1)]
    if output_format == "json":
        assert [row["per_second"] for row in json.loads(out)] == [1234.5]
    else:
        assert "1,23" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["decisions", "--nodes", "0"], "found '0'; allowed a whole number from 1 to"),
        (["decisions", "--nodes", "1,,2"], "found ''; allowed a whole number"),
        (["decisions", "--nodes", "\u0663"], "allowed a whole number"),
        (["decisions", "--pods", "9" * 50], "allowed a whole number"),
        (["decisions", "--workloads", "plain,fast"], "found 'fast'; allowed some of plain, openb-mix"),
        (["end-to-end", "--assigned", "-1"], "--assigned"),
        ([], "required: BENCHMARK"),
    ],
)
def test_wrong_sizes_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[Any], said: str) -> None:
    assert main(["bench", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_what_a_process_uses_is_read_and_one_that_is_gone_uses_nothing() -> None:
    assert cpu_seconds(os.getpid()) > 0 or not Path("/proc/self/stat").exists()
    assert resident_bytes(os.getpid()) > 1_000_000 or not Path("/proc/self/statm").exists()
    assert peak_bytes(os.getpid()) > 1_000_000 or not Path("/proc/self/status").exists()
    assert (cpu_seconds(2**30), resident_bytes(2**30), peak_bytes(2**30)) == (0.0, 0, 0)


def test_the_machine_has_used_at_least_what_we_have() -> None:
    mine = cpu_seconds(os.getpid())
    assert machine_seconds() >= mine or not Path("/proc/stat").exists()


def test_the_99th_percentile_lies_within_what_was_seen() -> None:
    p50, p99 = percentiles([float(second) for second in range(101)])
    assert (p50, p99) == (50.0, 99.0)
    assert percentiles([1.0, 3.0]) == (2.0, pytest.approx(2.98))
    assert (percentiles([4.0]), percentiles([])) == ((4.0, 4.0), (0.0, 0.0))
