"""A group of pods on a real API server: the definition is taken as it is, all members run or none, and the object says so."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from placewright.kube.client import ApiClient

from .groups import define_groups, group_of
from .stage import Stage

_LOOK_SECONDS = 0.05
_PATIENCE_SECONDS = 60.0


async def status(client: ApiClient, stage: Stage, name: str) -> dict[str, Any]:
    path = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{stage.namespace}/podgroups/{name}"
    found: dict[str, Any] = json.loads(await client.get(path)).get("status") or {}
    return found


async def until_phase(stage: Stage, name: str, phase: str) -> dict[str, Any]:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while True:
            found = await status(stage.client, stage, name)
            if found.get("phase") == phase:
                return found
            await asyncio.sleep(_LOOK_SECONDS)


async def test_a_group_runs_as_a_whole_and_says_since_when(stage: Stage) -> None:
    await define_groups(stage.client)
    await stage.node("one")
    async with stage.active_operator():
        members = await group_of(stage, "train", 3, cpu="1")
        await stage.until_running(members)
        found = await until_phase(stage, "train", "Running")
    assert found["running"] == 3 and found["scheduleStartTime"].endswith("Z")


async def test_a_group_that_does_not_fit_has_no_member_bound_and_says_what_it_lacks(stage: Stage) -> None:
    await define_groups(stage.client)
    await stage.node("one")
    async with stage.active_operator():
        members = await group_of(stage, "large", 3, cpu="2")
        said = await stage.until_rejected(members[0])
        assert 'pod group "large" is unschedulable: needs 1 more member placed: 1 lacks cpu' in said
        assert (await until_phase(stage, "large", "Pending")).get("running", 0) == 0
        assert stage.bindings_of(members) == []
        await stage.node("two")
        await stage.until_running(members)
