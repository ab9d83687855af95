"""Whole demos: they end by themselves, say what happened, and leave nothing running."""

from __future__ import annotations

import asyncio
import io
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from placewright_lab.bench.madeup import mixed_nodes, plain_pods
from placewright_lab.commands.demo import Demo, cluster_options, interruptible
from placewright_lab.demo.operatorprocess import operator_command
from placewright_lab.demo.run import DemoFailed, Limits
from placewright_lab.demo.scenario import DemoScenario, make_scenario
from placewright_lab.readers.inputs import Inputs


def failing_operator(kubeconfig: Path) -> list[str]:
    return [sys.executable, "-c", "raise SystemExit('this operator cannot start')"]


def demo_of(
    pods: int, *, giants: int = 0, keep: bool = False, terminal: bool = False, jobs: bool = False, job_seconds: float = 15.0
) -> tuple[Demo, io.StringIO]:
    manifests = plain_pods(pods)
    for pod in manifests[:giants]:
        pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "5000"
    scenario = make_scenario(Inputs(nodes=mixed_nodes(3), pods=manifests))
    output = io.StringIO()
    console = Console(file=output, width=120, force_terminal=terminal)
    limits = Limits(run_seconds=30, quiet_seconds=0.3, job_seconds=job_seconds)
    return Demo(scenario, console, limits, keep=keep, with_jobs=jobs, command=operator_command), output


@pytest.mark.parametrize("terminal", [False, True])
async def test_a_demo_places_its_pods_changes_the_profile_half_way_and_ends(terminal: bool) -> None:
    demo, output = demo_of(40, terminal=terminal)
    assert await demo.run() == 0
    text = output.getvalue()
    assert "40 pods on 3 nodes: 40 placed" in text
    assert "after 20 placements: kubectl patch schedprof default" in text
    assert "generation 2 decides" in text
    before, after = (int(re.findall(rf"default gen\. {generation} │ +(\d+) │", text)[-1]) for generation in (1, 2))
    assert before >= 20, "the change is sent when so many are placed, and is in effect a moment later"
    assert before + after == 40
    assert after > 10


async def test_pods_without_a_place_are_reported_with_their_reason_and_that_is_a_success() -> None:
    demo, output = demo_of(10, giants=3)
    assert await demo.run() == 0
    assert "3 unschedulable" in output.getvalue()
    assert "     3  Insufficient cpu\n        such as: 0/3 nodes are available: 3 Insufficient cpu." in output.getvalue()


async def test_an_operator_that_cannot_start_ends_the_demo_with_its_last_words() -> None:
    demo, _ = demo_of(1)
    demo.command = failing_operator
    with pytest.raises(DemoFailed, match="the operator ended with code 1: this operator cannot start"):
        await demo.run()


@pytest.fixture(scope="module")
def with_the_real_operator() -> str:
    """What one whole demo says that ended well: of its 60 pods one is too large and three have claims, and jobs come afterwards."""
    pods = plain_pods(60)
    pods[0]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "5000"
    scenario = make_scenario(Inputs(nodes=mixed_nodes(3), pods=pods, others=[with_claim(pod) for pod in pods[-3:]]))
    output, limits = io.StringIO(), Limits(run_seconds=30, quiet_seconds=0.3)
    demo = Demo(scenario, Console(file=output, width=120), limits, with_jobs=True, command=operator_command)
    assert asyncio.run(demo.run()) == 0, output.getvalue()
    return output.getvalue()


def test_the_real_operator_places_the_pods_and_takes_up_the_change(with_the_real_operator: str) -> None:
    assert "60 pods on 3 nodes: 59 placed, 1 unschedulable" in with_the_real_operator
    assert re.search(
        r"generation 2 decides; after the change was sent: stored after \d+ ms, seen by a watch after \d+ ms, in effect after \d+ ms; "
        r"the first pod under it was created after \d+ ms and bound after \d+ ms",
        with_the_real_operator,
    )
    assert "     1  Insufficient cpu\n" in with_the_real_operator
    assert "default gen. 1" in with_the_real_operator
    assert "default gen. 2" in with_the_real_operator


def test_jobs_with_devices_are_placed_all_or_none(with_the_real_operator: str) -> None:
    assert "train, 6 pods: all placed" in with_the_real_operator
    found = 'evaluate, 4 pods for the 2 devices that are left: none placed. pod group "evaluate" is unschedulable'
    assert found in with_the_real_operator
    assert "train is deleted: all 4 pods of evaluate placed" in with_the_real_operator


def test_pods_with_claims_get_volumes_or_more_than_the_one_that_is_too_large_would_wait(with_the_real_operator: str) -> None:
    assert "59 placed" in with_the_real_operator


async def test_a_job_that_is_not_placed_as_it_should_be_is_a_failure() -> None:
    demo, output = demo_of(2, jobs=True, job_seconds=0.0)
    assert await demo.run() == 1
    assert "was not placed as it should be within 0 s" in output.getvalue()


class Seen(io.StringIO):
    """Output that tells when a certain text is written."""

    def __init__(self, wanted: str) -> None:
        super().__init__()
        self._wanted = wanted
        self.written = asyncio.Event()

    def write(self, text: str) -> int:
        count = super().write(text)
        if self._wanted in self.getvalue():
            self.written.set()
        return count


async def test_with_keep_everything_stays_up_until_an_interrupt_and_then_ends_in_order() -> None:
    demo, _ = demo_of(4, keep=True)
    output = Seen("tail -f")
    demo.console = Console(file=output, width=200)
    running = asyncio.ensure_future(interruptible(demo))
    async with asyncio.timeout(30):
        await output.written.wait()
        kubeconfig = next(line for line in output.getvalue().splitlines() if "KUBECONFIG=" in line).partition("=")[2]
        assert os.access(kubeconfig, os.R_OK)
        os.kill(os.getpid(), 2)
        assert await running == 0
    assert not os.access(kubeconfig, os.F_OK)


async def test_an_interrupt_during_the_run_ends_it_with_130() -> None:
    demo, _ = demo_of(2)
    output = Seen("starting an embedded cluster")
    demo.console = Console(file=output)
    running = asyncio.ensure_future(interruptible(demo))
    async with asyncio.timeout(30):
        await output.written.wait()
        os.kill(os.getpid(), 15)
        assert await running == 130


def with_claim(pod: dict[str, Any]) -> dict[str, Any]:
    """Give the pod a volume. Return its claim, which names no class."""
    name = pod["metadata"]["name"]
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": name, "namespace": pod["metadata"].get("namespace", "default")}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": asked}


def with_claims(*classes: dict[str, Any]) -> DemoScenario:
    """Return three pods with a claim each, without a class of their own."""
    pods = plain_pods(3)
    return make_scenario(Inputs(nodes=mixed_nodes(3), pods=pods, others=[*classes, *(with_claim(pod) for pod in pods)]))


def test_the_cluster_brings_no_class_along_where_the_files_do() -> None:
    storage_class = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "standard"}, "provisioner": "p"}
    assert cluster_options(with_claims()) == ["--volumes", "--default-class", "standard"]
    assert cluster_options(with_claims(storage_class)) == ["--volumes"]
