"""`/debug/explain` and `/debug/records`: what they say of a pod is what happened to it, and what it would take."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from handlers.stage import Stage
from placewright.api.decisionmarks import DecisionMark, marked
from placewright.api.givenup import GIVEN_UP
from placewright.explain.explanation import Queued
from placewright.explain.records import Records
from placewright.explain.words import queue_line
from placewright.http.routes import Audience, Question, RequestRefused
from placewright.profiles.profilestate import ProfileStanding, Reason
from placewright.serving import explainpages
from placewright.serving.explainpages import _held, explain_endpoint, records_endpoint

from .desk import Desk, desk


async def read(asked: Desk, path: str, status: int = 200) -> Any:
    """As the sandbox's administrator, who may read everything."""
    reply = await asked.get(path, asked.engine.access.authorization.removeprefix("Bearer "))
    assert reply.status == status, reply.text
    return json.loads(reply.text) if status == 200 else reply.text


async def test_a_placed_pod_is_explained_by_its_attempt(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.pod("web")
        await stage.until(lambda: stage.bindings)
        found = await read(asked, "/debug/explain?pod=default/web")
        (_, node) = stage.bindings[0]
        await stage.until(lambda: asked.engine.deciding.scheduler.counts.bound)
        found = await read(asked, "/debug/explain?pod=default/web")
        (tried,) = found["tried"]
        assert (found["node"], tried["node"], tried["result"]) == (node, node, "scheduled")
        assert (tried["feasible"], tried["nodes"], tried["attempt"], tried["profile"]) == (2, 2, 1, "default")
        assert tried["best"][0]["node"] == node
        assert tried["best"][0]["total"] == tried["score"] == sum(tried["plugins"].values())
        assert {"Filter", "Score", "Bind"} <= tried["steps"].keys()
        assert "queue" not in found
        assert "now" not in found


async def test_a_pending_pod_is_explained_by_its_queue_its_attempts_and_the_columns_as_they_are(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.pod("large", cpu="4500m")
        await stage.until(lambda: stage.condition("large"))
        found = await read(asked, "/debug/explain?pod=default/large")
        assert (found["queue"]["place"], found["queue"]["rejectedBy"]) == ("unschedulable", ["NodeResourcesFit"])
        assert (found["now"]["nodes"], sum(each["nodes"] for each in found["now"]["refusals"])) == (2, 2)
        assert found["now"]["misses"][0]["changes"][0]["resources"] == {"cpu": 500}
        assert found["tried"][0]["refusals"] == found["now"]["refusals"]
        stage.node("roomy", cpu="16", taint="kept")
        await stage.until(lambda: asked.engine.deciding.cluster.node_count == 3)
        found = await read(asked, "/debug/explain?pod=default/large")
        assert (found["now"]["nodes"], sum(each["nodes"] for each in found["now"]["refusals"])) == (3, 3)
        opening = [miss for miss in found["now"]["misses"] if miss["node"] == "roomy"]
        assert [change["text"] for change in opening[0]["changes"]] == ["a toleration for taint kept=:NoSchedule"]


async def test_a_pod_whose_like_ended_a_process_is_not_evaluated_to_be_explained(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fatal(*_: object) -> None:
        raise AssertionError("this ended the process")

    async with desk(stage) as asked:
        await asked.until_ready()
        queue = asked.engine.deciding.queue
        stage.pod("poison", cpu="4500m")
        await stage.until(lambda: stage.condition("poison"))
        monkeypatch.setattr(explainpages, "evaluated", fatal)
        queued = queue.get(stage.show("poison")["metadata"]["uid"])
        assert queued is not None
        queue.suspects.marks.adopt([(DecisionMark(marked(queued.pod, heavy=False), 2), time.monotonic())])
        found = await read(asked, "/debug/explain?pod=default/poison")
    ended = "deciding this pod, or one like it, ended the scheduler's process 2 times: it is tried again when no other pod"
    assert found["queue"]["suspect"].startswith(ended)
    assert found["now"]["gated"].startswith(ended)
    assert ended in queue_line(Queued("backoff", 1.0, suspect=found["queue"]["suspect"]), "placewright")


async def test_a_pod_that_is_given_up_is_explained_as_such(stage: Stage) -> None:
    stage.edit_profile(giveUpAfterSeconds=1)
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.pod("large", cpu="64")
        await stage.until(lambda: stage.condition("large", GIVEN_UP))
        found = await read(asked, "/debug/explain?pod=default/large")
        listed = await read(asked, "/debug/queue")
    assert found["queue"]["givenUpSeconds"] < 60
    said = queue_line(Queued("unschedulable", 1.0, given_up_seconds=300.0), "placewright")
    assert "given up 5 min ago, tried again only after an event that may help" in said
    assert listed["pods"][0]["secondsSinceGivenUp"] < 60


async def test_a_pod_that_may_not_preempt_yet_is_explained_with_the_rule_and_the_time(stage: Stage) -> None:
    stage.edit_profile(preemption={"waitSeconds": 600})
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.pod("large", cpu="64")
        await stage.until(lambda: stage.condition("large"))
        found = await read(asked, "/debug/explain?pod=default/large")
    assert 590 < found["queue"]["retrySeconds"] <= 600
    assert "preemption: not eligible due to spec.preemption.waitSeconds=600." in found["tried"][0]["message"]
    assert "tried again in 5 min at the latest" in queue_line(Queued("unschedulable", 1.0, retry_seconds=300.0), "placewright")


async def test_looking_changes_nothing(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.pod("large", cpu="64")
        await stage.until(lambda: stage.condition("large"))
        cluster, queue, counts = asked.engine.deciding.cluster, asked.engine.deciding.queue, asked.engine.deciding.scheduler.counts
        before = (cluster.node_journal.position, cluster.pod_journal.position, queue.sizes(), replace(counts))
        for _ in range(3):
            await read(asked, "/debug/explain?pod=default/large")
        after = (cluster.node_journal.position, cluster.pod_journal.position, queue.sizes(), replace(counts))
        assert before == after


async def test_a_pod_of_a_paused_profile_says_so(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.edit_profile(paused=True)
        await stage.until(lambda: asked.engine.deciding.profiles.standings()["default"].active_generation == 2)
        stage.pod("web")
        await stage.until(lambda: len(asked.engine.deciding.queue))
        found = await read(asked, "/debug/explain?pod=default/web")
        assert (found["queue"]["profile"], found["queue"]["place"]) == ("paused", "active")
        assert found["now"]["feasible"] == 2


async def test_a_pod_that_is_gone_is_remembered_and_its_namesake_is_another(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.pod("web", cpu="64")
        await stage.until(lambda: stage.condition("web"))
        uid = stage.show("web")["metadata"]["uid"]
        stage.delete_pod("web")
        await stage.until(lambda: not len(asked.engine.deciding.queue))
        assert (await read(asked, "/debug/explain?pod=default/web"))["uid"] == uid
        stage.pod("web", cpu="65")
        await stage.until(lambda: stage.condition("web"))
        assert (await read(asked, "/debug/explain?pod=default/web"))["uid"] != uid
        assert (await read(asked, f"/debug/explain?pod=default/web&uid={uid}"))["tried"][0]["uid"] == uid


async def test_an_unknown_pod_is_one_line(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        assert await read(asked, "/debug/explain?pod=default/none", 404) == "pod: nothing is known of default/none\n"


async def test_records_are_listed_with_the_latest_first(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        for name in stage.pods(3):
            await stage.until(lambda name=name: stage.show(name)["spec"].get("nodeName"))  # type: ignore[misc]
        stage.pod("large", cpu="64")
        await stage.until(lambda: stage.condition("large"))
        await stage.until(lambda: asked.engine.deciding.scheduler.counts.bound == 3)
        shown = await read(asked, "/debug/records?limit=2")
        assert shown["shown"] == 2
        everything = (await read(asked, "/debug/records"))["records"]
        assert everything[:2] == shown["records"]
        assert sorted(each["result"] for each in everything) == ["scheduled"] * 3 + ["unschedulable"]
        assert [each["at"] for each in everything] == sorted((each["at"] for each in everything), reverse=True)


async def test_nothing_that_a_pod_keeps_to_itself_is_told(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        container = {"name": "c", "image": "i", "env": [{"name": "PASSWORD", "value": "hunter2"}], "resources": {"requests": {"cpu": "64"}}}
        metadata = {"name": "large", "annotations": {"note": "hunter3"}, "labels": {"app": "hunter4"}}
        spec = {"schedulerName": "placewright", "containers": [container]}
        stage.sandbox.writes.create(stage.sandbox.resource("", "v1", "pods"), "default", {"metadata": metadata, "spec": spec})
        await stage.until(lambda: stage.condition("large"))
        text = json.dumps(await read(asked, "/debug/explain?pod=default/large")) + json.dumps(await read(asked, "/debug/records"))
        assert "large" in text
        assert "hunter" not in text


async def test_who_brings_no_token_is_told_nothing(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        for path in ("/debug/explain?pod=default/web", "/debug/records"):
            assert (await asked.get(path)).status in (401, 403)


def test_they_answer_on_loopback_alone(stage_free_records: Records) -> None:
    audiences = [explain_endpoint(None, stage_free_records).audience, records_endpoint(stage_free_records).audience]  # type: ignore[arg-type]
    assert audiences == [Audience.LOOPBACK, Audience.LOOPBACK]


@pytest.fixture
def stage_free_records() -> Records:
    return Records(lambda: 0.0)


@pytest.mark.parametrize("pod", ["", "web", "a/b/c", "/web", "default/", "x" * 400 + "/y"])
async def test_a_pod_that_is_no_pod_is_one_line(pod: str, stage_free_records: Records) -> None:
    endpoint = explain_endpoint(None, stage_free_records)  # type: ignore[arg-type]
    with pytest.raises(RequestRefused) as refused:
        await endpoint.answer(Question("/debug/explain", {"pod": (pod,)}))
    assert (refused.value.status, str(refused.value).count("\n")) == (400, 0)
    assert len(str(refused.value)) < 150


@pytest.mark.parametrize("limit", ["0", "-1", "2001", "ten", "", "1e3", "²", "9" * 400])
async def test_a_limit_that_is_none_is_one_line(limit: str, stage_free_records: Records) -> None:
    with pytest.raises(RequestRefused, match="allowed a whole number from 1 to 2000"):
        await records_endpoint(stage_free_records).answer(Question("/debug/records", {"limit": (limit,)}))


def test_a_profile_that_is_held_is_the_answer_to_why_nobody_takes_the_pod() -> None:
    standing = ProfileStanding("p", "batch", 2, None, Reason.PLUGIN_HANGING, 'Filter plugin "Sleepy" did not return')
    engine: Any = SimpleNamespace(started=True, profiles=SimpleNamespace(standings=lambda: {"p": standing}))
    assert _held(engine, "batch") == 'profile p is held: Filter plugin "Sleepy" did not return'
    assert _held(engine, "other") == ""
    queued = Queued("unschedulable", 3.0, profile="missing", held=_held(engine, "batch"))
    assert "no profile takes pods of schedulerName 'batch': profile p is held: Filter plugin" in queue_line(queued, "batch")
