"""`placewright bench against` for real: a small cluster, both schedulers, every pod bound once and told in an event."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from placewright.cli.main import main
from placewright_lab.controlplane.assets import VARIABLE, from_environment
from programs import not_on_this_server, on_linux

FIGURES = ("scheduler", "api_server", "etcd", "bench")

pytestmark = [
    on_linux,
    pytest.mark.timeout(300),
]


@pytest.fixture
def scheduler() -> Path:
    """The kube-scheduler among the assets."""
    assets = from_environment(os.environ)
    program = assets.kube_scheduler if assets else None
    if program is None:
        not_on_this_server(f"{VARIABLE} has no kube-scheduler")
    return program


@pytest.mark.parametrize("mode", [[], ["--backlog"]])
def test_both_schedulers_bind_every_pod_and_are_measured(scheduler: Path, capsys: pytest.CaptureFixture[str], mode: list[str]) -> None:
    arguments = ["--kube-scheduler", str(scheduler), "--nodes", "20", "--pods", "60", "--waves", "1", "-o", "json", *mode]
    assert main(["bench", "against", *arguments]) == 0
    (compared,) = json.loads(capsys.readouterr().out)
    assert (compared["nodes"], compared["pods"]) == (20, 60)
    mine, theirs = compared["waves"]
    assert mine["scheduler"] == "placewright"
    assert theirs["scheduler"].startswith("kube-scheduler 1.")
    for wave in (mine, theirs):
        assert (wave["pods"], wave["events"]) == (60, 60)
        assert wave["per_second"] >= wave["settled_per_second"] > 0
        assert set(wave["cpu"]) == set(FIGURES)
        assert wave["peak_bytes"] > 20_000_000


def test_a_program_that_is_no_scheduler_is_told_with_its_last_words(
    scheduler: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = tmp_path / "scheduler"
    fake.write_text(f'#!/bin/sh\n[ "$1" = --version ] && exec {scheduler} --version\necho I refuse to schedule >&2\nexit 3\n')
    fake.chmod(0o755)
    assert main(["bench", "against", "--kube-scheduler", str(fake), "--nodes", "20", "--pods", "20", "--waves", "1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "ended by itself: I refuse to schedule" in line
