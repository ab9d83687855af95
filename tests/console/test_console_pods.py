"""The pages of groups and claims and the verdicts about nodes, of a running operator: as its `explain` tells them, from its own queue."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from handlers.stage import KEEPING, WITH_GROUPS, Stage, new_stage
from placewright.api.objects import NodeName
from placewright.explain.records import Records
from placewright.explain.words import standing
from placewright.queue.queued import Suspicion
from placewright.serving.explainpages import explanation
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright.serving.schedulerview import SchedulerView
from placewright_console.live.livesource import QueuedPods
from placewright_console.pages.companypages import CompanyPages
from serving.consolecast import COME_IN, READ, Cast
from serving.desk import Desk, desk
from serving.test_explaining_groups import GPU, Devices

ALL = ALL_NAMESPACES


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """Two nodes of four CPUs, and a server that knows PodGroups."""
    async with new_stage(WITH_GROUPS) as made:
        yield made.profile().nodes(2)


def pages(asked: Desk) -> CompanyPages:
    return CompanyPages(asked.engine.deciding.cluster, QueuedPods(SchedulerView(asked.engine, Records(time.monotonic))), time.monotonic)


def lines(asked: Desk, name: str) -> list[str]:
    found = explanation(asked.engine.deciding, Records(time.monotonic), "default", name)
    assert found is not None
    return [line.partition("; since")[0] for line in standing(found) if line.startswith(("group ", "  "))]


async def test_a_group_that_waits_is_told_as_explain_tells_it_with_its_failures_and_kept_nodes(stage: Stage) -> None:
    stage.pod_group("train", 2)
    stage.edit_profile(pluginConfig=KEEPING)
    full = stage.pods(2, cpu="3500m", restart="Never")
    async with desk(stage) as asked:
        await asked.until_ready()
        await stage.until(lambda: stage.placed(*full))
        stage.members("train", "t-0", "t-1", cpu="3")
        await stage.until(lambda: len(asked.engine.deciding.scheduler.pod_groups.reservations) == 1)
        page = pages(asked).group("default", "train", ALL)
        assert page is not None
        assert [line.partition("; since")[0] for line in page["lines"]] == lines(asked, "t-1")
        assert page["facts"]["kept"] == {"node-0": 1, "node-1": 1}
        assert page["facts"]["failures"] >= 1
        assert sum(many for _, many in page["states"]) == 2
        names = [[name, on] for name, _, on, _ in page["members"]]
        assert names in ([["t-0", ""], ["t-1", ""]], [["t-1", ""], ["t-0", ""]])
        assert all(abs(time.time() - since) < 60 for *_, since in page["members"])
        assert pages(asked).group("default", "train", Rights.of(["other"])) is None


async def test_members_on_nodes_are_told_with_their_nodes(stage: Stage) -> None:
    stage.pod_group("train", 2)
    stage.members("train", "t-0", "t-1")
    async with desk(stage) as asked:
        await asked.until_ready()
        await stage.until(lambda: asked.engine.deciding.scheduler.counts.bound == 2 and len(asked.engine.deciding.queue) == 0)
        page = pages(asked).group("default", "train", ALL)
        assert page is not None
        assert {(name, bool(on)) for name, _, on, _ in page["members"]} == {("t-0", True), ("t-1", True)}
        assert await pages(asked).verdicts("default", "t-0", ALL) is None, "it waits no more"


async def test_a_claim_that_waits_says_why_and_each_node_has_its_verdict(stage: Stage) -> None:
    made = Devices(stage)
    made.on("node-0", 1)
    made.claim("too-many", 4)
    made.pod("waits", "too-many")
    async with desk(stage) as asked:
        await asked.until_ready()
        await stage.until(lambda: stage.condition("waits"))
        page, answer = pages(asked).claim("default", "too-many", ALL), await pages(asked).verdicts("default", "waits", ALL)
        assert page is not None and answer is not None
        assert [name for name, *_ in page["waiting"]] == ["waits"]
        assert (page["why"]["free"]["deviceClass"], page["why"]["free"]["wanted"]) == (GPU, 4)
        assert [(step["plugin"], step["rejected"]) for step in page["why"]["funnel"]] == [("DynamicResources", 2)]
        found: Any = json.loads(answer)
        assert found["verdicts"] == [["", "", 0], ["DynamicResources", "cannot allocate all claims", 2]]


async def test_a_suspect_is_not_evaluated_and_a_pod_of_no_profile_says_so(stage: Stage) -> None:
    stage.pods(1, cpu="100")
    async with desk(stage) as asked:
        await asked.until_ready()
        await stage.until(lambda: asked.engine.deciding.queue.sizes().unschedulable == 1)
        (queued,) = (queued for _, queued in asked.engine.deciding.queue.pods())
        queued.suspicion = Suspicion(1, time.monotonic())
        found: Any = json.loads(await pages(asked).verdicts("default", queued.pod.name, ALL) or b"{}")
        assert "ended" in found["told"] and found["verdicts"] == []
        queued.suspicion = None
        asked.engine.deciding.cluster.assume(queued.pod, NodeName("node-0"))
        assert await pages(asked).verdicts("default", queued.pod.name, Rights()) is None, "it has a node, as far as the scheduler goes"
        asked.engine.deciding.cluster.forget(queued.pod, NodeName("node-0"))
        asked.engine.deciding.live._active = {}
        found = json.loads(await pages(asked).verdicts("default", queued.pod.name, ALL) or b"{}")
        assert found["told"].startswith("no profile takes pods of schedulerName")


async def test_over_https_each_reader_gets_the_groups_and_claims_of_the_namespaces_that_may_be_seen(stage: Stage) -> None:
    stage.pod_group("train", 3)
    cast = Cast(stage)
    cast.namespace("bank")
    cast.pod("ledger-of-the-bank", "bank", cpu="3")
    made = Devices(stage)
    made.on("node-0", 1)
    made.claim("too-many", 4)
    made.pod("waits", "too-many")
    async with desk(stage, console=True) as asked:
        await asked.until_ready()
        await stage.until(lambda: asked.engine.deciding.scheduler.counts.bound == 1)
        stage.members("train", "t-0", "t-1", "t-2", cpu="3")
        await stage.until(lambda: stage.condition("t-2") and stage.condition("waits"))
        ann, bob, eve = cast.person("ann", COME_IN, READ), cast.person("bob", COME_IN, here=READ), cast.person("eve", COME_IN)
        paths = ["group?group=default/train", "claim?claim=default/too-many", "verdicts?pod=default/t-0"]
        for path in paths:
            all_of_it, some, nothing = [await asked.get(f"/console/api/{path}", token) for token in (ann, bob, eve)]
            assert (all_of_it.status, some.status, nothing.status) == (200, 200, 404), path
            assert "ledger" not in some.text and "bank" not in some.text
            assert "train" not in nothing.text and "too-many" not in nothing.text
            if path == paths[0]:
                assert "bank/ledger-of-the-bank" in all_of_it.text, "it holds what the group is short of"
                assert json.loads(some.text)["facts"]["shortages"][0]["others"] == 1
        assert (await asked.get("/console/api/group?group=bank/train", bob)).status == 404
