"""A recording of a cluster at work is replayed: the same pods come, go, and find room under the profile that was there or another one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handlers.stage import Stage, new_stage, operator
from placewright.cli.main import main
from placewright_lab.simulation.scenario import Act

from .test_record_command import recording


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with new_stage() as made:
        yield made.profile().nodes(3)


async def recorded(stage: Stage, path: Path) -> dict[str, str]:
    """Record an operator that places pods while one leaves and one waits for another scheduler. Return the nodes by name."""
    async with operator(stage), recording(stage, path) as at_work:
        stayed, left, too_large = stage.pods(8), stage.pods(1), stage.pods(1, cpu="64")
        stage.pod("foreign", scheduler="somebody-else")
        await stage.until(lambda: stage.placed(*stayed, *left) and stage.condition(*too_large), "pods are bound, or told why not")
        found = {f"default/{name}": stage.node_of(name) for name in (*stayed, *left, *too_large)}
        stage.delete_pod(*left)
        await stage.until(lambda: at_work.told(Act.DELETED) > 0, "the recorder has seen it go")
        await at_work.end()
    return found


async def simulated(capsys: pytest.CaptureFixture[str], *options: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert await asyncio.to_thread(main, ["simulate", *options, "-o", "json"]) == 0
    return list(json.loads(capsys.readouterr().out)["profiles"])


async def test_a_recording_is_replayed_with_the_profile_that_was_there(
    stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "day.gz"
    bound = await recorded(stage, path)
    (one,) = await simulated(capsys, "--record", str(path))
    assert one["profile"] == "default"
    assert {fate["pod"] for fate in one["fates"] if fate["node"]} == {name for name, node in bound.items() if node}
    assert {fate["pod"] for fate in one["fates"]} == bound.keys(), "a pod of another scheduler is none of ours"
    assert one["pending"] == 1


async def test_a_recording_under_another_scheduler_s_name_stands_as_it_was(
    stage: Stage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, other = tmp_path / "day.gz", tmp_path / "other.yaml"
    await recorded(stage, path)
    other.write_text(
        json.dumps({"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "other"},
                    "spec": {"schedulerName": "somebody-else"}})
    )  # fmt: skip
    (one,) = await simulated(capsys, "--record", str(path), "--profile", str(other))
    assert {fate["pod"]: bool(fate["node"]) for fate in one["fates"]} == {"default/foreign": True}
