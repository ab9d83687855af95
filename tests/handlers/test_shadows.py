"""Shadows beside a scheduler at work, over real HTTP: what their status says, that nobody else notices them, and how one becomes live."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.shadow import shadow as shadow_module

from .stage import FAST, Stage, new_stage, operator

PACK = {"NodeResourcesFit": 50}
MOST = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}}
BINPACK: dict[str, Any] = {"weights": PACK, "pluginConfig": [MOST]}


@pytest.fixture(autouse=True)
def _told_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shadow_module, "REPORT_SECONDS", 0.05)


def with_shadow(stage: Stage, name: str = "packed", **spec: Any) -> Stage:
    return stage.profile(name, mode="Shadow", shadows="default", shadow={"budgetPercent": 50}, **spec)


def told(stage: Stage, name: str = "packed") -> dict[str, Any]:
    status: dict[str, Any] = stage.show_profile(name).get("status") or {}
    return dict(status.get("shadow") or {})


def reason(stage: Stage, name: str = "packed") -> tuple[str, str]:
    condition = stage.profile_condition("Ready", name)
    return condition.get("status", ""), condition.get("reason", "")


async def until_ready(stage: Stage, name: str = "packed") -> None:
    await stage.until(lambda: reason(stage, name) == ("True", "Active"), f"{name} is active")


# --- what is told -------------------------------------------------------------------------------------------------------------------


async def test_a_shadow_decides_each_pod_and_its_status_compares(stage: Stage) -> None:
    """Three nodes alike: the default profile spreads, the shadow packs one node full. It has no say in where pods go."""
    with_shadow(stage, **BINPACK)
    async with operator(stage) as running:
        await until_ready(stage)
        names = stage.pods(9, cpu="300m")
        await stage.until(lambda: stage.placed(*names) and told(stage).get("decided") == 9)
        await stage.until(lambda: told(stage).get("backlog") == 0)
        status = told(stage)
        assert running.agrees_with(stage)
    assert {stage.node_of(name) for name in names} == {"node-0", "node-1", "node-2"}
    assert status["emptyNodes"] == {"live": 0, "shadow": 2}
    assert (status["pods"], status["sampledPercent"], status["errors"]) == (9, 100.0, 0)
    assert status["same"] + status["other"] == 9
    assert status["agreementPercent"] == round(100 * status["same"] / 9, 1)
    assert status["regret"]["meanPoints"] > 0, "by its own totals the other nodes are worse"
    cpu = next(use for use in status["resources"] if use["name"] == "cpu")
    assert cpu["live"] == {"meanPercent": 22.5, "deviationPercent": 0.0}
    assert cpu["shadow"] == {"meanPercent": 22.5, "deviationPercent": 31.82}, "0, 0 and 2.7 of 4 CPUs"


async def test_pods_whose_labels_change_as_they_are_bound_stay_where_the_shadow_put_them() -> None:
    """In a cluster with zones every Binding changes the pod: the API server adds its node's zone to its labels."""
    async with new_stage() as stage:
        stage.profile()
        for number in range(3):
            stage.node(f"node-{number}", zone=f"zone-{number}")
        with_shadow(stage, **BINPACK)
        with_shadow(stage, "twin")
        async with operator(stage) as running:
            await until_ready(stage)
            await until_ready(stage, "twin")
            names = stage.pods(9, cpu="300m")
            await stage.until(lambda: stage.placed(*names) and told(stage).get("decided") == told(stage, "twin").get("decided") == 9)
            await stage.until(lambda: told(stage).get("backlog") == told(stage, "twin").get("backlog") == 0)
            assert running.agrees_with(stage)
        packed, twin = told(stage), told(stage, "twin")
        zones = {name: stage.show(name)["metadata"]["labels"]["topology.kubernetes.io/zone"] for name in names}
        assert zones == {name: stage.node_of(name).replace("node", "zone") for name in names}
    assert len(set(zones.values())) == 3
    assert packed["emptyNodes"] == {"live": 0, "shadow": 2}, "its world is not the live one"
    assert packed["same"] < 9
    cpu = next(use for use in packed["resources"] if use["name"] == "cpu")
    assert (cpu["live"]["deviationPercent"], cpu["shadow"]["deviationPercent"]) == (0.0, 31.82)
    assert (twin["agreementPercent"], twin["same"], twin["emptyNodes"]) == (100.0, 9, {"live": 0, "shadow": 0})


async def test_a_shadow_with_the_same_settings_agrees_always_and_regrets_nothing(stage: Stage) -> None:
    with_shadow(stage, "twin")
    async with operator(stage):
        await until_ready(stage, "twin")
        names = stage.pods(12)
        await stage.until(lambda: stage.placed(*names) and told(stage, "twin").get("decided") == 12)
    status = told(stage, "twin")
    assert (status["agreementPercent"], status["same"]) == (100.0, 12)
    assert (status["regret"]["maxPoints"], status["liveRegret"]["maxPoints"], status["notFeasible"]) == (0.0, 0.0, 0)


async def test_what_leaves_the_cluster_leaves_the_shadows_world(stage: Stage) -> None:
    with_shadow(stage, **BINPACK)
    async with operator(stage):
        await until_ready(stage)
        names = stage.pods(6)
        await stage.until(lambda: stage.placed(*names) and told(stage).get("decided") == 6)
        for name in names:
            stage.delete_pod(name)
        await stage.until(lambda: told(stage).get("emptyNodes") == {"live": 3, "shadow": 3})
    assert told(stage)["emptyNodes"] == {"live": 3, "shadow": 3}


# --- nobody else notices ------------------------------------------------------------------------------------------------------------


async def placements(**shadows: dict[str, Any]) -> dict[str, str]:
    """Where the pods of one and the same story go, under one and the same seed."""
    async with new_stage() as stage:
        stage.profile(paused=True).nodes(7)
        for name, spec in shadows.items():
            with_shadow(stage, name, **spec)
        async with operator(stage, FAST) as running:
            await stage.until(lambda: reason(stage, "default") == ("True", "Paused"))  # pods come one by one, and not by a list
            for name in shadows:
                await until_ready(stage, name)
            names = [f"pod-{number}" for number in range(60)]
            for number, name in enumerate(names):
                stage.pod(name, cpu=f"{100 + 50 * (number % 7)}m")
            await stage.until(lambda: running.engine.deciding.queue.sizes().active == 60)
            stage.edit_profile(paused=False)
            await stage.until(lambda: stage.placed(*names))
            for name in shadows:
                await stage.until(lambda name=name: told(stage, name).get("decided") == 60)  # type: ignore[misc]
        return {name: stage.node_of(name) for name in names}


async def test_the_same_pods_go_to_the_same_nodes_whether_or_not_shadows_decide_beside() -> None:
    alone = await placements()
    beside = await placements(packed=BINPACK, twin={})
    assert alone == beside
    assert len(set(alone.values())) == 7


# --- how it stands ------------------------------------------------------------------------------------------------------------------


async def test_a_shadow_stands_with_the_profile_that_it_shadows(stage: Stage) -> None:
    with_shadow(stage, **BINPACK)
    async with operator(stage):
        await until_ready(stage)
        stage.delete_profile("default")
        await stage.until(lambda: reason(stage) == ("False", "NothingToShadow"))
        stalled = stage.profile_condition("Stalled", "packed")
        stage.profile()
        await until_ready(stage)
        names = stage.pods(3)
        await stage.until(lambda: stage.placed(*names) and told(stage).get("decided") == 3)
    assert 'spec.shadows: found "default", which names no profile' in stalled["message"]
    assert told(stage)["decided"] == 3


async def test_a_shadow_of_a_shadow_and_one_of_itself_are_refused(stage: Stage) -> None:
    with_shadow(stage)
    stage.profile("second", mode="Shadow", shadows="packed")
    stage.profile("self", mode="Shadow", shadows="self")
    async with operator(stage):
        await stage.until(lambda: reason(stage, "second")[0] and reason(stage, "self")[0])
    assert reason(stage, "second") == ("False", "NothingToShadow")
    assert "which is a shadow itself" in stage.profile_condition("Ready", "second")["message"]
    assert reason(stage, "self") == ("False", "InvalidProfile")


async def test_a_new_generation_of_the_shadow_begins_anew_and_a_bad_one_leaves_the_last_good_one_at_work(stage: Stage) -> None:
    with_shadow(stage)
    async with operator(stage):
        await until_ready(stage)
        names = stage.pods(4)
        await stage.until(lambda: stage.placed(*names) and told(stage).get("decided") == 4)
        stage.edit_profile("packed", **BINPACK)
        await stage.until(lambda: stage.show_profile("packed")["status"]["activeGeneration"] == 2 and told(stage).get("decided") == 0)
        stage.edit_profile("packed", weights={"Nonsense": 1})
        await stage.until(lambda: reason(stage) == ("False", "InvalidProfile"))
        names = stage.pods(4)
        await stage.until(lambda: stage.placed(*names) and told(stage).get("decided") == 4)
    assert told(stage)["decided"] == 4
    assert stage.show_profile("packed")["status"]["activeGeneration"] == 2


async def test_a_paused_shadow_decides_nothing(stage: Stage) -> None:
    with_shadow(stage, paused=True)
    async with operator(stage) as running:
        await stage.until(lambda: reason(stage) == ("True", "Paused"))
        names = stage.pods(3)
        await stage.until(lambda: stage.placed(*names))
        assert len(running.engine.deciding.shadows) == 0
    assert told(stage) == {}
