"""`placewright profiles promote`: a shadow's settings become those of the live profile, and what `list` and `show` say of shadows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import yaml

from handlers.stage import new_stage, operator
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.profiles import PROFILES_PATH
from placewright.shadow import shadow as shadow_module

from .profile_desk import Desk

MOST = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}}}
PACKED: dict[str, Any] = {"weights": {"NodeResourcesFit": 50}, "pluginConfig": [MOST]}


@pytest.fixture
async def desk(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    """Three nodes, a live profile, its shadow, and nobody at work."""
    monkeypatch.setattr(shadow_module, "REPORT_SECONDS", 0.05)
    async with new_stage() as stage:
        stage.nodes(3).profile(weights={"ImageLocality": 3}, backoff={"initialSeconds": 2}, preemption={"policy": "Never"})
        stage.profile("packed", mode="Shadow", shadows="default", shadow={"budgetPercent": 50}, **PACKED)
        made = Desk(stage, capsys)
        made.namespace()
        yield made


async def decided(desk: Desk, count: int) -> None:
    await desk.stage.until(
        lambda: (desk.stage.show_profile("packed").get("status") or {}).get("shadow", {}).get("decided") == count, "they are decided"
    )


async def test_after_promoting_the_next_pods_are_placed_by_the_shadows_settings_and_the_shadow_rests(desk: Desk) -> None:
    stage = desk.stage
    async with operator(stage):
        await desk.until_judged("packed", 1)
        before = stage.pods(3, cpu="300m")
        await stage.until(lambda: stage.placed(*before))
        await decided(desk, 3)
        ran = await desk("promote", "packed", "--force-conflicts")
        after = stage.pods(6, cpu="300m")
        await stage.until(lambda: stage.placed(*after))
        await desk.until_judged("packed", 2)
    assert ran.code == 0, ran.err
    assert {stage.node_of(name) for name in before} == {"node-0", "node-1", "node-2"}, "by the settings of before they spread"
    assert len({stage.node_of(name) for name in after}) == 1, "by the shadow's they are packed"
    decision = stage.decision(after[0])
    assert decision is not None
    assert (decision.profile, decision.generation) == ("default", 2)
    spec = stage.show_profile()["spec"]
    assert (spec["weights"], spec["pluginConfig"]) == (PACKED["weights"], PACKED["pluginConfig"])
    assert spec["preemption"]["policy"] == "Never", "a shadow tries no rules of preemption, and takes none away"
    assert (spec["backoff"]["initialSeconds"], spec["schedulerName"], spec["mode"]) == (2, "placewright", "Live")
    assert "shadow packed: since" in ran.out
    assert "profile default: weights.NodeResourcesFit: 1 → 50" in ran.out
    assert "profile packed: paused: false → true" in ran.out
    assert stage.profile_condition("Ready", "packed")["reason"] == "Paused"


async def test_promote_for_git_prints_both_profiles_and_writes_nothing(desk: Desk) -> None:
    ran = await desk("promote", "packed", "-o", "yaml")
    live, shadow = yaml.safe_load_all(ran.out)
    assert (ran.code, ran.err) == (0, "")
    assert (live["metadata"]["name"], live["spec"]["weights"]) == ("default", PACKED["weights"])
    assert (shadow["metadata"]["name"], shadow["spec"]["paused"], shadow["spec"]["mode"]) == ("packed", True, "Shadow")
    assert desk.stage.show_profile()["metadata"]["generation"] == 1
    listed = json.loads((await desk("promote", "packed", "-o", "json")).out)
    assert listed["items"] == [live, shadow]


@pytest.mark.parametrize("dry_run", ["client", "server"])
async def test_a_dry_run_of_promote_says_what_would_change_and_writes_nothing(desk: Desk, dry_run: str) -> None:
    ran = await desk("promote", "packed", f"--dry-run={dry_run}", "--force-conflicts")
    assert ran.code == 0
    assert "profile default: weights.ImageLocality: 3 → 1" in ran.out
    assert ran.out.count(f"nothing was written: dry run by the {dry_run}") == 2
    assert [desk.stage.show_profile(name)["metadata"]["generation"] for name in ("default", "packed")] == [1, 1]


async def test_a_shadow_that_kubectl_applied_is_paused_without_being_asked_twice(desk: Desk) -> None:
    async with ApiClient(load_config(str(desk.stage.sandbox.kubeconfig))) as client:
        await client.patch(f"{PROFILES_PATH}/default", {"spec": {"weights": None}}, {"fieldManager": "kubectl"})
        await client.patch(f"{PROFILES_PATH}/packed", {"spec": {"paused": None}}, {"fieldManager": "kubectl"})
    ran = await desk("promote", "packed", "--wait", "0")
    assert ran.code == 0, ran.err
    assert "conflict" not in ran.err
    assert desk.stage.show_profile("packed")["spec"]["paused"] is True


async def test_what_a_controller_holds_is_left_alone_unless_forced_and_then_the_shadow_goes_on(desk: Desk) -> None:
    async with ApiClient(load_config(str(desk.stage.sandbox.kubeconfig))) as client:
        await client.patch(f"{PROFILES_PATH}/default", {"spec": {"weights": {"ImageLocality": 8}}}, {"fieldManager": "argocd-controller"})
    ran = await desk("promote", "packed", "--wait", "0")
    assert ran.code == 2
    assert "--force-conflicts" in ran.err
    assert not desk.stage.show_profile("packed")["spec"].get("paused")


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("default", "profile default: spec.mode: found 'Live'; allowed Shadow: other profiles are live already"),
        ("nobody", "there is no profile 'nobody'"),
        ("orphan", "there is no profile 'gone'"),
    ],
)
async def test_what_cannot_be_promoted_is_refused_in_one_line(desk: Desk, name: str, line: str) -> None:
    desk.stage.profile("orphan", mode="Shadow", shadows="gone")
    ran = await desk("promote", name)
    assert (ran.code, ran.out) == (2, "")
    assert line in ran.err
    assert ran.err.count("\n") == 1


async def test_list_and_show_say_of_a_shadow_what_it_found(desk: Desk) -> None:
    stage = desk.stage
    async with operator(stage):
        await desk.until_judged("packed", 1)
        names = stage.pods(3)
        await stage.until(lambda: stage.placed(*names))
        await decided(desk, 3)
    listed, wide, shown = await desk("list"), await desk("list", "-o", "wide"), await desk("show", "packed")
    assert "packed   shadow of default" in listed.out
    assert "% of 3 pods" in wide.out
    assert "profile packed, generation 1: shadow of default for at most 50 % of the time, preset default" in shown.out
    assert "empty nodes: 2, live 0" in shown.out
