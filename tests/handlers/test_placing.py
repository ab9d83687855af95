"""What users see: pods placed or told why not, and profiles that take effect at once."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from .stage import FAST, Stage, operator


async def test_pods_are_placed_with_event_and_decision(stage: Stage) -> None:
    stage.pod("web")
    async with operator(stage):
        await stage.until(lambda: stage.placed("web"))
        await stage.until(lambda: stage.events("web"))
    decision = stage.decision("web")
    assert decision is not None
    assert (decision.profile, decision.generation) == ("default", 1)
    assert decision.score == sum(decision.plugins.values())
    assert stage.events("web") == [("Scheduled", f"Successfully assigned default/web to {stage.node_of('web')}")]
    assert stage.condition("web")["status"] == "True"


async def test_a_replica_that_elects_nobody_places_pods_by_itself(stage: Stage) -> None:
    async with operator(stage, replace(FAST, leader_elect=False)):
        stage.pod("web")
        await stage.until(lambda: stage.placed("web"))
    assert stage.peers_when_bound == [set()]


async def test_a_pod_that_fits_nowhere_says_why_and_is_placed_when_a_node_comes(stage: Stage) -> None:
    stage.pod("big", cpu="8")
    async with operator(stage):
        await stage.until(lambda: stage.condition("big"))
        await stage.until(lambda: stage.events("big"))
        condition = stage.condition("big")
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        assert condition["message"].startswith("0/3 nodes are available: 3 Insufficient cpu.")
        assert stage.events("big")[0] == ("FailedScheduling", condition["message"])
        stage.node("large", cpu="16")
        await stage.until(lambda: stage.node_of("big") == "large")


async def test_a_pod_is_placed_when_the_taint_that_kept_it_away_goes(stage: Stage) -> None:
    stage.node("large", cpu="16", taint="maintenance").pod("big", cpu="8")
    async with operator(stage):
        await stage.until(lambda: stage.condition("big").get("reason") == "Unschedulable")
        assert "1 node(s) had untolerated taint" in stage.condition("big")["message"]
        stage.untaint("large")
        await stage.until(lambda: stage.node_of("big") == "large")


async def test_pods_of_other_schedulers_are_left_alone(stage: Stage) -> None:
    stage.pod("theirs", scheduler="another").pod("ours")
    async with operator(stage):
        await stage.until(lambda: stage.placed("ours"))
    assert stage.node_of("theirs") == ""
    assert stage.events("theirs") == []


# --- profiles --------------------------------------------------------------------------------------------------------------------


async def test_changed_weights_decide_the_next_pods(stage: Stage) -> None:
    first, second = stage.pods(2)
    async with operator(stage):
        await stage.until(lambda: stage.placed(first, second))
        generation = stage.edit_profile(weights={"NodeResourcesFit": 7})
        await stage.until(lambda: stage.show_profile().get("status", {}).get("activeGeneration") == generation)
        (third,) = stage.pods(1)
        await stage.until(lambda: stage.placed(third))
    before, after = stage.decision(first), stage.decision(third)
    assert before is not None
    assert after is not None
    assert (before.generation, after.generation) == (1, generation)
    assert after.plugins["NodeResourcesFit"] % 7 == 0
    assert after.plugins["NodeResourcesFit"] > 100


async def test_a_profile_in_effect_says_so(stage: Stage) -> None:
    async with operator(stage):
        await stage.until(lambda: stage.profile_condition("Ready").get("status") == "True")
        await stage.until(lambda: stage.events("default"))
    assert stage.profile_condition("Stalled").get("status") != "True"
    assert stage.events("default")[0][0] == "ProfileActive"


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"weights": {"NodeResourceFit": 5}}, "NodeResourceFit"),
        ({"plugins": {"filter": {"enabled": [{"name": "Nope"}]}}}, "Nope"),
    ],
)
async def test_a_bad_edit_leaves_the_last_good_generation_in_effect_and_says_so(
    stage: Stage, edit: dict[str, object], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with operator(stage):
        await stage.until(lambda: stage.profile_condition("Ready").get("status") == "True")
        generation = stage.edit_profile(**edit)
        await stage.until(lambda: stage.profile_condition("Stalled").get("status") == "True")
        status = stage.show_profile()["status"]
        assert (status["observedGeneration"], status["activeGeneration"]) == (generation, 1)
        assert stage.profile_condition("Ready")["status"] == "False"
        assert said in stage.profile_condition("Stalled")["message"]
        await stage.until(lambda: any(reason == "ProfileRejected" and said in note for reason, note in stage.events("default")))
        assert f"profile default: generation {generation} is refused" in caplog.text
        (name,) = stage.pods(1)
        await stage.until(lambda: stage.placed(name))
        decision = stage.decision(name)
        assert decision is not None
        assert decision.generation == 1
        good = stage.edit_profile(weights={}, plugins={})
        await stage.until(lambda: stage.show_profile()["status"].get("activeGeneration") == good)
        assert stage.profile_condition("Ready")["status"] == "True"


async def test_pods_of_a_deleted_profile_wait_until_it_is_made_again(stage: Stage) -> None:
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.deciding.queue is not None and stage.profile_condition("Ready"))
        stage.delete_profile()
        await stage.until(lambda: running.engine.deciding.live.by_scheduler_name("placewright") is None)
        (name,) = stage.pods(1)
        await stage.until(lambda: len(running.engine.deciding.queue) == 1)
        assert running.engine.deciding.queue.sizes().unschedulable == 1
        stage.profile(weights={"ImageLocality": 9})
        await stage.until(lambda: stage.placed(name))
        await stage.until(lambda: stage.profile_condition("Ready").get("status") == "True")


async def test_an_unreadable_profile_is_refused_and_can_be_deleted(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """A server that checks the schema would not let it pass; the definition may be older than the operator."""
    async with operator(stage) as running:
        await stage.until(lambda: stage.profile_condition("Ready").get("status") == "True")
        profiles = running.engine.deciding.profiles
        stage.write_profile_unchecked(weights="heavy")
        await stage.until(lambda: "profile default: generation 2 is refused: SchedulingProfile: Expected" in caplog.text)
        names = stage.pods(1)
        await stage.until(lambda: stage.placed(*names))
        stage.delete_profile()
        await stage.until(lambda: not profiles._seen)
        assert running.engine.deciding.live.by_scheduler_name("placewright") is None
