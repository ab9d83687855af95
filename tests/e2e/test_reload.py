"""Profiles change, go and come back under a scheduler at work, on a real API server and with the rights that are shipped."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from benchmarks.audit import Audit, distinct_weights

from .installation import PROFILES, apply, the_shipped
from .stage import Stage

DEFAULT = f"{PROFILES}/default"
THEIRS = {"type": "Audited", "status": "True", "reason": "Fine", "message": "it is", "lastTransitionTime": "2026-01-01T00:00:00Z"}


async def shown(stage: Stage) -> dict[str, Any]:
    """The profile as it is, managedFields included."""
    return dict(json.loads(await stage.client.get(DEFAULT)))


async def until_stalled(stage: Stage, generation: int) -> None:
    def stalled() -> bool:
        condition = stage.views.profiles["default"].condition("Stalled")
        return condition.get("observedGeneration") == generation

    await stage.views.until(stalled, lambda: f"generation {generation} is refused: {stage.views.profiles['default'].status}")


async def test_every_decision_after_the_swap_is_of_the_new_generation_and_none_is_of_two(stage: Stage) -> None:
    await stage.nodes(5)
    audit = Audit({1: {}})
    created_under: dict[str, int] = {}
    async with stage.active_operator():
        for number in range(8):
            weights = distinct_weights(number)
            generation = await stage.edit_profile(weights=weights)
            audit.weights[generation] = weights
            created_under |= dict.fromkeys(await stage.pods(15, cpu="10m"), generation - 1)  # the swap may come before or after them
            await stage.until_active(generation)
            created_under |= dict.fromkeys(await stage.pods(15, cpu="10m"), generation)
        await stage.until_placed(list(created_under))
    for key, least in created_under.items():
        assert stage.decision(key).generation >= least
        audit.look_at(key, stage.decision(key))
    assert audit.torn == []
    assert audit.proved > 0


async def test_pods_of_a_deleted_profile_wait_and_are_placed_when_it_comes_back(stage: Stage) -> None:
    await stage.nodes(2)
    async with stage.active_operator() as process:
        await stage.delete(DEFAULT)
        said = "profile default was deleted: pods of schedulerName 'placewright' wait"
        await stage.views.until(lambda: said in process.log.read_text(), lambda: said)
        keys = await stage.pods(5)
        await asyncio.sleep(1.0)  # that nothing happens takes time to see
        assert not any(map(stage.node_of, keys))
        await apply(stage.client, the_shipped("SchedulingProfile"))
        await stage.until_placed(keys)
        await stage.until_active(1)


async def test_a_pod_that_only_a_plugin_now_disabled_rejected_is_tried_again(stage: Stage) -> None:
    tainted = await stage.node("tainted", taint="maintenance")
    async with stage.active_operator():
        (key,) = await stage.pods(1)
        await stage.until_rejected(key)
        generation = await stage.edit_profile(plugins={"multiPoint": {"disabled": [{"name": "TaintToleration"}]}})
        await stage.until_placed([key])
    assert stage.node_of(key) == tainted
    assert stage.decision(key).generation == generation


async def test_the_status_is_applied_and_leaves_conditions_of_others_alone(stage: Stage) -> None:
    async with stage.active_operator():
        # Another manager's opinion, by server-side apply as well.
        body = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "default"}}
        options = {"fieldManager": "auditor"}
        await stage.client.patch(f"{DEFAULT}/status", body | {"status": {"conditions": [THEIRS]}}, options, "application/apply-patch+yaml")
        await until_stalled(stage, await stage.edit_profile(weights={"NoSuchPlugin": 1}))
        good = await stage.edit_profile(weights=None)
        await stage.until_active(good)
    profile = await shown(stage)
    assert {each["type"] for each in profile["status"]["conditions"]} == {"Ready", "Audited"}
    assert THEIRS in profile["status"]["conditions"]
    ours = [each for each in profile["metadata"]["managedFields"] if each["manager"] == "placewright"]
    assert [(each["operation"], list(each["fieldsV1"])) for each in ours] == [("Apply", ["f:status"])]


async def test_a_weight_that_drowns_the_others_is_hinted_at_until_it_is_lowered(stage: Stage) -> None:
    def advice() -> dict[str, Any]:
        return stage.views.profiles["default"].condition("Advice")

    async with stage.active_operator():
        await stage.edit_profile(weights={"NodeResourcesFit": 5000})
        await stage.views.until(advice, lambda: "there is advice")
        assert advice()["reason"] == "WeightDrownsOthers"
        await stage.until_active(await stage.edit_profile(weights={"NodeResourcesFit": 2}))
        await stage.views.until(lambda: not advice(), lambda: f"the advice goes: {advice()}")
