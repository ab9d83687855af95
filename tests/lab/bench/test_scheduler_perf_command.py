"""`bench scheduler-perf` as a command: which workloads are run, what is kept, shown and written, without running any."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from placewright.cli.main import main
from placewright_lab.bench.schedulerperf.contests import ContestPlan, Say
from placewright_lab.bench.schedulerperf.operations import LeftOutWorkload, PerfWorkload
from placewright_lab.bench.schedulerperf.perfreport import BEGIN, END
from placewright_lab.bench.schedulerperf.verdicts import Contest, PerfTurn
from placewright_lab.bench.wavecomparison import Spent
from placewright_lab.commands import schedulerperf
from placewright_lab.controlplane.assets import VARIABLE

CONFIGURATION = """\
- name: Large
  workloadTemplate:
  - {opcode: createNodes, countParam: $nodes}
  - {opcode: createPods, countParam: $pods, collectMetrics: true}
  workloads:
  - {name: 5000Nodes, params: {nodes: 5000, pods: 9}, labels: [performance]}
  - {name: 500Nodes, params: {nodes: 500, pods: 9}}
- name: Strange
  workloadTemplate:
  - {opcode: dance}
  workloads:
  - {name: 5Nodes}
"""


class Measured:
    """Stands for a measurement."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.plans: list[ContestPlan] = []
        self.ended = ""
        monkeypatch.setattr(schedulerperf, "contest", self.contest)

    def contest(self, found: PerfWorkload | LeftOutWorkload, plan: ContestPlan, say: Say) -> Contest:
        self.asked.append(found.name)
        self.plans.append(plan)
        labels = ("placewright", f"kube-scheduler 1.{plan.programs.minor}")
        made = Contest(found.name, labels=labels, made=plan.made)
        if isinstance(found, LeftOutWorkload):
            return replace(made, left_out=found.why)
        say(found.name, labels[0])(1, 2)
        spent = Spent(1, 1, 1, 0)
        turns = [PerfTurn(label, 100, seconds, spent, spent, 10**7) for label, seconds in zip(labels, (0.5, 1.0), strict=True)]
        return replace(made, nodes=found.nodes, pods=found.pods, measured=9, turns=[replace(turns[0], ended=self.ended), turns[1]])


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    return Measured(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a configuration, and assets that only print their version."""
    for name in ("kube-apiserver", "etcd", "kube-scheduler"):
        (tmp_path / name).write_text("#!/bin/sh\necho Kubernetes v1.31.2\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    config = tmp_path / "config"
    config.mkdir()
    (config / "performance-config.yaml").write_text(CONFIGURATION)
    return config


def bench(folder: Path, *arguments: object) -> int:
    return main(["bench", "scheduler-perf", str(folder), *(str(each) for each in arguments)])


def test_small_clusters_come_first_and_each_workload_is_a_line_on_stderr(
    folder: Path, measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(folder) == 0
    assert measured.asked == ["Strange/5Nodes", "Large/500Nodes", "Large/5000Nodes"]
    said = capsys.readouterr()
    assert said.err.splitlines() == [
        "Strange/5Nodes: left out: operation 0: Invalid value 'dance' - at `$.opcode`",
        "Large/500Nodes: 200 / 100 pods/s: 2.00",
        "Large/5000Nodes: 200 / 100 pods/s: 2.00",
    ]
    assert "Large/5000Nodes" in said.out
    assert "Strange/5Nodes was left out: operation 0: Invalid value 'dance'" in said.out
    assert measured.plans[0].programs.minor == 31
    assert measured.plans[0].limit == 600


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (["--workloads", "500Nodes"], ["Large/500Nodes"]),
        (["--workloads", "^Large"], ["Large/500Nodes", "Large/5000Nodes"]),
        (["--nodes", "500"], ["Strange/5Nodes", "Large/500Nodes"]),
        (["--labels", "performance"], ["Large/5000Nodes"]),
        (["--labels=-performance"], ["Large/500Nodes"]),
    ],
)
def test_workloads_are_chosen_by_name_size_and_label(folder: Path, measured: Measured, options: list[str], asked: list[str]) -> None:
    assert bench(folder, *options) == 0
    assert measured.asked == asked


def test_what_was_saved_is_not_measured_again(folder: Path, measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept.jsonl"
    assert bench(folder, "--workloads", "/500Nodes", "--save", kept) == 0
    assert bench(folder, "--save", kept) == 0
    assert measured.asked == ["Large/500Nodes", "Strange/5Nodes", "Large/5000Nodes"]
    capsys.readouterr()
    assert bench(folder, "--save", kept, "--saved", "-o", "json") == 0
    assert len(measured.asked) == 3
    rows = json.loads(capsys.readouterr().out)
    assert {row["workload"]: row["verdict"] for row in rows} == {
        "Large/500Nodes": "2.00", "Large/5000Nodes": "2.00", "Strange/5Nodes": "left out",
    }  # fmt: skip


def test_the_figures_of_a_page_are_exchanged(folder: Path, measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Before\n{BEGIN}\nold\n{END}\nafter\n")
    assert bench(folder, "--page", page, "-o", "markdown") == 0
    text = page.read_text()
    assert capsys.readouterr().out in text
    assert "old" not in text
    assert text.startswith("# Before\n")
    assert text.endswith("after\n")


@pytest.mark.usefixtures("measured")
def test_a_page_without_a_place_for_figures_is_refused_before_anything_is_measured(
    folder: Path, measured: Measured, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Nothing\n")
    assert bench(folder, "--page", page) == 2
    assert measured.asked == []


def test_a_turn_that_did_not_end_is_told_and_ends_with_1(folder: Path, measured: Measured, capsys: pytest.CaptureFixture[str]) -> None:
    measured.ended = "not at its end after 600 s"
    assert bench(folder, "--workloads", "/500Nodes") == 1
    said = capsys.readouterr()
    assert said.err == "Large/500Nodes: not at its end after 600 s / 100 pods/s: did not end\n"
    assert "placewright did not end: not at its end after 600 s" in said.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--workloads", "("], "allowed a regular expression"),
        (["--workloads", "nothing"], "no workload of"),
        (["--limit", "0"], "allowed a whole number from 1 to"),
        (["--turns", "0"], "allowed a whole number from 1 to"),
        (["--assets", "/no/such/folder"], "--assets: found '/no/such/folder'; allowed a folder"),
    ],
)
@pytest.mark.usefixtures("measured")
def test_a_wrong_option_of_it_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str) -> None:
    assert bench(folder, *options) == 2
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("measured")
def test_a_file_that_nobody_saved_is_refused(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "kept.jsonl"
    kept.write_text("{}\n")
    assert bench(folder, "--save", kept) == 2
    assert "was not written by bench scheduler-perf --save" in capsys.readouterr().err


@pytest.mark.usefixtures("measured")
def test_a_folder_without_a_configuration_is_one_line_also_on_a_machine_without_a_control_plane(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert bench(tmp_path / "empty") == 2
    assert "FOLDER: found" in capsys.readouterr().err
