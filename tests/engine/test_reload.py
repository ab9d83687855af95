"""Profiles change, go and come back under a scheduler at work, over real HTTP: each promise of `docs/reload.md` is a sentence here."""

from __future__ import annotations

import asyncio

from benchmarks.audit import Audit, distinct_weights
from handlers.stage import HELD, Stage, new_stage, operator
from kubesandbox.faults import Rule
from placewright.engine import profilekeeper

MULTI_POINT_WITHOUT_TAINTS = {"multiPoint": {"disabled": [{"name": "TaintToleration"}]}}


def active_generation(stage: Stage, name: str = "default") -> int:
    return int(stage.show_profile(name).get("status", {}).get("activeGeneration", 0))


async def until_active(stage: Stage, generation: int, name: str = "default") -> None:
    await stage.until(lambda: active_generation(stage, name) == generation, f"generation {generation} of {name} is active")


# --- a change takes effect ----------------------------------------------------------------------------------------------------------


async def test_every_decision_after_the_swap_is_of_the_new_generation_and_none_is_of_two(stage: Stage) -> None:
    """Weights of different generations have no product in common, so each plugin's part of a score betrays whose weight it has."""
    audit = Audit({1: {}})
    created_under: dict[str, int] = {}
    async with operator(stage):
        await until_active(stage, 1)
        for number in range(6):
            generation = stage.edit_profile(weights=distinct_weights(number))
            audit.weights[generation] = distinct_weights(number)
            created_under |= dict.fromkeys(stage.pods(10), generation - 1)  # the swap may come before or after them
            await until_active(stage, generation)
            created_under |= dict.fromkeys(stage.pods(10), generation)
        await stage.until(lambda: stage.placed(*created_under))
    for name, least in created_under.items():
        decision = stage.decision(name)
        assert decision is not None
        assert decision.generation >= least
        audit.look_at(name, decision)
    assert audit.torn == []
    assert audit.proved > 0, "some decisions had scores other than 0 to tell by"
    assert stage.bound_twice() == []


async def test_pods_in_the_queue_keep_their_place_when_the_profile_changes() -> None:
    """There is room for the first three alone, so it shows who was tried first."""
    async with new_stage() as stage:
        stage.node("small", cpu="1500m").profile(paused=True)
        async with operator(stage) as running:
            await until_active(stage, 1)
            names = stage.pods(8, cpu="500m")
            await stage.until(lambda: running.engine.deciding.queue.sizes().active == 8)
            await until_active(stage, stage.edit_profile(weights={"NodeResourcesFit": 9}))
            assert running.engine.deciding.queue.sizes().active == 8
            stage.edit_profile(paused=False)
            queue = running.engine.deciding.queue
            await stage.until(lambda: queue.sizes().unschedulable + queue.sizes().backoff == 5)
        assert [name for name in names if stage.placed(name)] == names[:3]


async def test_a_pod_that_only_a_plugin_now_disabled_rejected_is_tried_again() -> None:
    async with new_stage() as stage:
        stage.node("tainted", taint="maintenance").profile().pod("web").pod("big", cpu="8")
        async with operator(stage) as running:
            await stage.until(lambda: stage.condition("web").get("reason") == stage.condition("big").get("reason") == "Unschedulable")
            big = running.engine.deciding.queue.get(stage.show("big")["metadata"]["uid"])
            assert big is not None
            generation = stage.edit_profile(plugins=MULTI_POINT_WITHOUT_TAINTS)
            await stage.until(lambda: stage.node_of("web") == "tainted")
            await stage.until(lambda: "Insufficient cpu" in stage.condition("big")["message"])
        decision = stage.decision("web")
        assert decision is not None
        assert decision.generation == generation


async def test_a_pod_that_nothing_speaks_for_is_left_alone_by_a_change_of_weights(stage: Stage) -> None:
    stage.pod("big", cpu="8")
    async with operator(stage) as running:
        await stage.until(lambda: stage.condition("big").get("reason") == "Unschedulable")
        queued = running.engine.deciding.queue.get(stage.show("big")["metadata"]["uid"])
        assert queued is not None
        await until_active(stage, stage.edit_profile(weights={"NodeResourcesFit": 3}))
        (web,) = stage.pods(1)
        await stage.until(lambda: stage.placed(web))
        assert queued.attempts == 1


async def test_the_backoff_of_pods_that_wait_already_is_recomputed() -> None:
    """After an error a pod waits for all of its backoff."""
    async with new_stage() as stage:
        stage.nodes(1).profile(backoff={"initialSeconds": 600, "maxSeconds": 600})
        stage.sandbox.faults.add(Rule(method="POST", path="/binding", code=403, times=1))
        stage.pod("web")
        async with operator(stage) as running:
            await stage.until(lambda: running.engine.deciding.queue.sizes().backoff == 1)
            generation = stage.edit_profile(backoff={"initialSeconds": 0.5, "maxSeconds": 1})
            await stage.until(lambda: stage.placed("web"))
        decision = stage.decision("web")
        assert decision is not None and decision.generation == generation


async def test_a_binding_under_way_ends_under_the_generation_that_decided_it(stage: Stage) -> None:
    slow = stage.sandbox.faults.add(Rule(method="POST", path="/binding", latency=HELD, times=1))
    stage.pod("web")
    async with operator(stage):
        await stage.until(lambda: slow.met == 1)
        generation = stage.edit_profile(weights={"NodeResourcesFit": 9})
        await until_active(stage, generation)
        assert not stage.placed("web")
        stage.sandbox.faults.release()
        await stage.until(lambda: stage.placed("web"))
    decision = stage.decision("web")
    assert decision is not None
    assert decision.generation == 1


# --- profiles go and come ------------------------------------------------------------------------------------------------------------


async def test_a_new_profile_picks_up_pods_that_wait_for_it_already(stage: Stage) -> None:
    names = stage.pods(5, scheduler="batch")
    async with operator(stage) as running:
        await until_active(stage, 1)
        await stage.until(lambda: len(running.engine.deciding.queue) == 5)
        assert not any(map(stage.node_of, names))
        stage.profile("batch", schedulerName="batch")
        await stage.until(lambda: stage.placed(*names))
        assert {decision.profile for name in names if (decision := stage.decision(name))} == {"batch"}


async def test_the_profile_of_the_default_scheduler_can_be_deleted_and_comes_back() -> None:
    async with new_stage() as stage:
        stage.nodes(2).profile(schedulerName="default-scheduler")
        async with operator(stage) as running:
            first = stage.pods(2, scheduler="default-scheduler")
            await stage.until(lambda: stage.placed(*first))
            stage.delete_profile()
            await stage.until(lambda: running.engine.deciding.live.by_scheduler_name("default-scheduler") is None)
            second = stage.pods(3, scheduler="default-scheduler")
            await stage.until(lambda: running.engine.deciding.queue.sizes("default-scheduler").unschedulable == 3)
            assert not any(map(stage.node_of, second))
            stage.profile(schedulerName="default-scheduler")
            await stage.until(lambda: stage.placed(*second))
    assert stage.bound_twice() == []


async def test_deleting_one_profile_leaves_the_pods_of_others_alone(stage: Stage) -> None:
    stage.profile("batch", schedulerName="batch")
    async with operator(stage) as running:
        await until_active(stage, 1, "batch")
        stage.delete_profile("batch")
        await stage.until(lambda: running.engine.deciding.live.by_scheduler_name("batch") is None)
        waiting = stage.pods(2, scheduler="batch")
        await stage.until(lambda: running.engine.deciding.queue.sizes("batch").unschedulable == 2)
        placed = stage.pods(2)
        await stage.until(lambda: stage.placed(*placed))
        assert not any(map(stage.node_of, waiting))


async def test_a_binding_under_way_ends_although_its_profile_is_deleted(stage: Stage) -> None:
    slow = stage.sandbox.faults.add(Rule(method="POST", path="/binding", latency=HELD, times=1))
    stage.pod("web")
    async with operator(stage) as running:
        await stage.until(lambda: slow.met == 1)
        stage.delete_profile()
        await stage.until(lambda: running.engine.deciding.live.by_scheduler_name("placewright") is None)
        stage.sandbox.faults.release()
        await stage.until(lambda: stage.placed("web"))
    assert stage.bound_twice() == []


# --- the status ----------------------------------------------------------------------------------------------------------------------


async def test_the_status_is_applied_by_a_manager_of_our_own_and_owns_nothing_of_the_spec(stage: Stage) -> None:
    async with operator(stage):
        await until_active(stage, 1)
    ours = [entry for entry in stage.show_profile()["metadata"]["managedFields"] if entry["manager"] == "placewright"]
    assert [(entry["operation"], entry["subresource"], list(entry["fieldsV1"])) for entry in ours] == [("Apply", "status", ["f:status"])]


async def test_conditions_of_others_stay_and_ours_go_when_they_hold_no_longer(stage: Stage) -> None:
    theirs = {"type": "Audited", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    async with operator(stage):
        await until_active(stage, 1)
        stage.edit_status(lambda status: status["conditions"].append(theirs))
        stage.edit_profile(weights={"Nope": 1})
        await stage.until(lambda: stage.profile_condition("Stalled"))
        await until_active(stage, stage.edit_profile(weights={}))
        await stage.until(lambda: not stage.profile_condition("Stalled"))
    assert stage.profile_condition("Audited") == theirs
    assert stage.profile_condition("Ready")["status"] == "True"


async def test_a_status_that_somebody_overwrote_is_put_right(stage: Stage) -> None:
    async with operator(stage):
        await until_active(stage, 1)
        stage.edit_status(lambda status: status.update(activeGeneration=99))
        assert active_generation(stage) == 99
        await until_active(stage, 1)


async def test_nothing_is_written_while_nothing_changes(stage: Stage) -> None:
    async with operator(stage):
        await until_active(stage, 1)
        quiet = stage.sandbox.faults.add(Rule(method="PATCH", path="/schedulingprofiles/"))
        await asyncio.sleep(10 * profilekeeper._BEAT_SECONDS)  # nothing is what is waited for
        assert quiet.met == 0


async def test_a_replica_that_takes_over_goes_on_with_the_status_and_announces_nothing_anew(stage: Stage) -> None:
    async with operator(stage) as first:
        await stage.until(lambda: stage.events("default"))
        async with operator(stage) as second:
            await stage.until(lambda: len(stage.peers()) == 2)
            await first.end()
            await stage.until(lambda: second.engine.leading.leadership.active)
            generation = stage.edit_profile(weights={"NodeResourcesFit": 2})
            await until_active(stage, generation)
            await stage.until(lambda: len(stage.events("default")) > 1)
    expected = [("ProfileActive", f"generation {number} places the pods of schedulerName 'placewright'") for number in (1, generation)]
    assert sorted(stage.events("default")) == expected


async def test_pods_that_wait_are_counted_in_the_status(stage: Stage) -> None:
    stage.pod("big", cpu="8")
    async with operator(stage):
        await stage.until(lambda: stage.show_profile().get("status", {}).get("pending", {}).get("unschedulable") == 1)
        assert stage.show_profile()["status"]["pending"]["total"] == 1
        stage.delete_pod("big")
        await stage.until(lambda: stage.show_profile()["status"]["pending"]["total"] == 0)


async def test_a_weight_that_drowns_the_others_is_hinted_at_until_it_is_lowered(stage: Stage) -> None:
    async with operator(stage):
        await until_active(stage, stage.edit_profile(weights={"NodeResourcesFit": 5000}))
        advice = stage.profile_condition("Advice")
        assert (advice["status"], advice["reason"]) == ("True", "WeightDrownsOthers")
        assert "set weights.NodeResourcesFit to" in advice["message"]
        assert stage.profile_condition("Ready")["status"] == "True"
        await until_active(stage, stage.edit_profile(weights={"NodeResourcesFit": 2}))
        await stage.until(lambda: not stage.profile_condition("Advice"))


async def test_a_weight_on_a_plugin_that_has_nothing_to_score_is_hinted_at_once_enough_was_decided(stage: Stage) -> None:
    async with operator(stage) as running:
        await until_active(stage, stage.edit_profile(weights={"ImageLocality": 4}))
        active = running.engine.deciding.live.by_scheduler_name("placewright")
        assert active is not None
        impact = active.evaluator.impact
        impact._every = impact._left = 1
        names = stage.pods(100, cpu="10m")
        await stage.until(lambda: stage.placed(*names))
        await stage.until(lambda: stage.profile_condition("Advice"))
    assert stage.profile_condition("Advice")["reason"] == "PluginHasNothingToScore"
    assert stage.profile_condition("Advice")["message"].startswith("ImageLocality (weight 4) had nothing to score")


async def test_a_status_that_comes_too_late_and_lands_on_a_namesake_is_put_right(stage: Stage) -> None:
    """No API server looks at a uid when a status is applied."""
    async with operator(stage):
        await until_active(stage, 1)
        slow = stage.sandbox.faults.add(Rule(method="PATCH", path="/schedulingprofiles/", latency=HELD, times=1))
        stage.edit_profile(weights={"NodeResourcesFit": 5000})
        await stage.until(lambda: slow.met == 1)
        stage.delete_profile()
        stage.profile()
        stage.sandbox.faults.release()
        await stage.until(lambda: stage.profile_condition("Advice") or active_generation(stage) == 2, "the late one lands")
        await until_active(stage, 1)
        await stage.until(lambda: not stage.profile_condition("Advice"))
    assert stage.profile_condition("Ready")["observedGeneration"] == 1
