"""`python -m benchmarks` on sizes that take no time; no test asserts a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields

import pytest

from benchmarks import devices
from benchmarks.__main__ import main
from benchmarks.devices import DeviceMeasurement
from benchmarks.quoteddata import QUOTED
from benchmarks.reload import Reloads
from placewright_lab.bench import decisions
from placewright_lab.bench.end_to_end import EndToEnd

WARM_UP = 3


@pytest.fixture(scope="module", autouse=True)
def own_heap_frozen() -> Iterator[None]:
    """Each run collects garbage first: what thousands of tests have loaded would cost far more than what is measured."""
    with decisions.nothing_old_collected:
        yield


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardly any warm-up."""
    for module in (decisions, devices):
        monkeypatch.setattr(module, "WARM_UP", WARM_UP)


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    return capsys.readouterr().err


def test_groups_are_measured_as_a_whole(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("gangs", "--nodes", "400", "--groups", "5", "--members", "3")
    (data,) = json.loads(output(capsys, *words, "-o", "json"))
    assert (data["nodes"], data["groups"], data["members"], data["placed"]) == (400, 5, 3, 5)
    assert len(data["seconds"]) == decisions.RUNS
    assert data["per_second"] > 0
    assert "groups/s" in output(capsys, *words)


def test_events_are_measured_while_pods_wait(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("moves", "--waiting", "300", "--claims", "30")
    rows = {row["event"]: row for row in json.loads(output(capsys, *words, "-o", "json"))}
    added, none = rows["a node that holds any of them is added"], rows["a node is added that holds none"]
    claims = rows["their claims are added"]
    assert (added["waiting"], added["moved"], added["asked"]) == (300, 300, 300)
    assert (none["moved"], none["asked"]) == (0, 300 * none["events"])
    assert (claims["events"], claims["moved"], claims["asked"]) == (30, 30, 30), "a claim asks the pod that names it"
    assert rows["claims of others are added"]["asked"] == 0
    assert rows["their backoff ends"]["moved"] == 300
    assert "events while pods wait" in output(capsys, *words)


@pytest.mark.usefixtures("short")
def test_claims_to_devices_are_measured_beside_pods_without_any() -> None:
    measured = devices.measure_devices(12, 5)
    assert [row.placed for row in measured] == [row.pods for row in measured] == [5] * 7
    assert [row.devices for row in measured] == [0] + [8] * 6
    assert [row.wanted for row in measured if row.wanted] == [500, 500]
    assert all(len(row.seconds) == decisions.RUNS for row in measured)


@pytest.mark.parametrize("output_format", ["json", "table"])
def test_what_was_measured_of_devices_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output_format: str
) -> None:
    asked: list[tuple[int, int]] = []

    def measure(nodes: int, pods: int) -> list[DeviceMeasurement]:
        asked.append((nodes, pods))
        return [DeviceMeasurement("one device", nodes, 8, pods, pods, 500, (0.5, 0.25, 1.0))]

    monkeypatch.setattr(devices, "measure_devices", measure)
    out = output(capsys, "devices", "--nodes", "300", "--pods", "5000", "-o", output_format)
    assert asked == [(300, 5000)]
    if output_format == "json":
        assert [(row["claims"], row["per_second"]) for row in json.loads(out)] == [("one device", 10_000)]
    else:
        assert "one device" in out and "10,000" in out and "≥ 500" in out


def test_more_nodes_than_the_first_pods_fill_are_needed_to_measure_claims(capsys: pytest.CaptureFixture[str]) -> None:
    assert "allowed a whole number from 300 to" in refused(capsys, "devices", "--nodes", "299")


#: The documents quote each of these benchmarks. Its sizes here take no time.
SMALLER = {
    **dict.fromkeys(("decisions", "pairwise"), "--nodes 2 --pods 5"),
    **dict.fromkeys(("deployments", "sizes"), "--nodes 2 --pods 5 --deployments 2"),
    **dict.fromkeys(("all-different", "percentage"), "--nodes 2 --pods 5"),
    "shares": "--nodes 2 --pods 5",
    "preemption": "--nodes 6",
    "groups": "--nodes 400 --groups 2",
    "large-groups": "--nodes 400 --groups 2 --members 3",
    "devices": "--nodes 300 --pods 5",
    "moves": "--waiting 20 --claims 20",
}


#: Those that start processes, by what they print a row of.
PROCESSES = {"reload": Reloads, "end-to-end": EndToEnd, "memory": EndToEnd}


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", SMALLER)
def test_a_benchmark_prints_what_the_documents_quote(capsys: pytest.CaptureFixture[str], name: str) -> None:
    for command in QUOTED[name].commands:
        data = json.loads(output(capsys, *command.split(), *SMALLER[name].split(), "-o", "json"))
        for row in data:
            assert set(QUOTED[name].columns) <= set(row)


def test_every_benchmark_that_the_documents_quote_is_looked_at() -> None:
    assert {*SMALLER, *PROCESSES, "against"} == set(QUOTED)
    for name, row in PROCESSES.items():
        assert set(QUOTED[name].columns) <= {field.name for field in fields(row)}
    assert set(QUOTED["against"].columns) <= {"nodes", "pods", "mode", "schedulers", "ratio", "waves"}
