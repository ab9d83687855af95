"""What `/debug/explain` and `placewright explain` say of members of groups and of pods with claims, on a stage that knows both."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from cli.test_explain import at, explain
from handlers.stage import GROUP_LABEL, KEEPING, WITH_GROUPS, Stage, new_stage

from .desk import desk
from .test_explaining import read

GPU = "gpu.example.com"
TRAIN = "PodGroup.scheduling.x-k8s.io default/train"


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """Two nodes of four CPUs, and a server that knows PodGroups."""
    async with new_stage(WITH_GROUPS) as made:
        yield made.profile().nodes(2)


async def test_a_member_that_waits_shows_its_group_and_what_it_lacks(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.pod_group("train", 3)
    stage.members("train", "t-0", "t-1", "t-2", cpu="3")
    async with desk(stage) as asked:
        await asked.until_ready()
        await stage.until(lambda: stage.condition("t-2"))
        group = (await read(asked, "/debug/explain?pod=default/t-1"))["group"]
        assert (group["object"], group["needed"], group.get("placed", 0), group["waiting"]) == (TRAIN, 3, 0, 3)
        assert group["lacks"].startswith("needs 1 more member placed: 1 lacks cpu")
        assert group["failures"] >= 1
        assert group["waitingSeconds"] > 0
        assert "kept" not in group
        ran = await explain(stage, capsys, "t-1", *at(asked))
        assert f"group {TRAIN}: needs 3 at once; 0 placed; 3 wait; since " in ran.out
        assert "  needs 1 more member placed: 1 lacks cpu" in ran.out
        assert "now: 2 of 2 nodes can hold it" in ran.out


async def test_a_member_is_told_what_its_group_lacks_and_who_has_it(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    """Two nodes of four CPUs: a running group has six of them, a pod half a one; three members want two CPUs each."""
    stage.pod_group("old", 2)
    stage.members("old", "o-0", "o-1", cpu="3")
    async with desk(stage) as asked:
        await asked.until_ready()
        await stage.until(lambda: asked.engine.deciding.scheduler.counts.bound == 2)
        stage.pods(1, cpu="500m")
        await stage.until(lambda: asked.engine.deciding.scheduler.counts.bound == 3)
        stage.pod_group("train", 3)
        stage.members("train", "t-0", "t-1", "t-2", cpu="2")
        await stage.until(lambda: stage.condition("t-2"))
        (short,) = (await read(asked, "/debug/explain?pod=default/t-1"))["group"]["shortages"]
        pod = short["holders"][1]["name"]
        assert short == {
            "resource": "cpu", "wanted": "6000m", "free": "1500m", "total": "8000m", "short": "4500m", "fit": 0, "members": 3,
            "holders": [
                {"name": "PodGroup.scheduling.x-k8s.io default/old", "amount": "6000m", "priority": 0, "pods": 2},
                {"name": pod, "amount": "500m", "priority": 0},
            ],
        }  # fmt: skip
        for options in (at(asked), ("--here",)):
            ran = await explain(stage, capsys, "t-1", *options)
            assert "  3 members want 6000m of cpu: 1500m of 8000m are free, 4500m too few\n" in ran.out
            held = "PodGroup.scheduling.x-k8s.io default/old: 6000m (2 pods, priority 0)"
            assert f"    held by {held}, pod {pod}: 500m (priority 0)\n" in ran.out


async def test_a_member_that_fits_by_itself_is_told_that_it_is_its_group_that_does_not(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.pod_group("train", 3)
    stage.members("train", "t-0", "t-1", "t-2", cpu="2500m")
    async with desk(stage) as asked:
        await asked.until_ready()
        await stage.until(lambda: stage.condition("t-2"))
        for options in (at(asked), ("--here",)):
            ran = await explain(stage, capsys, "t-1", *options)
            assert "now: 2 of 2 nodes can hold it by itself; its group does not fit\n" in ran.out
            assert "  3 members want 7500m of cpu: 8000m of 8000m are free, in pieces that hold 2 of the 3\n" in ran.out
            assert "held by" not in ran.out


async def test_a_member_whose_group_is_incomplete_shows_who_is_missing(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.pod_group("train", 3)
    stage.members("train", "t-0", "t-1")
    stage.members("unknown", "u-0")
    async with desk(stage) as asked:
        await asked.until_ready()
        await stage.until(lambda: asked.engine.deciding.queue.sizes().gated == 3)
        found = await read(asked, "/debug/explain?pod=default/t-1")
        assert (found["group"]["missing"], found["group"]["waiting"], found["queue"]["gatedBy"]) == (1, 2, "GangScheduling")
        assert found["group"]["complaint"] == f"{TRAIN}: spec.minMember is 3, but there are 2 pods of it"
        assert "1 more needed" in found["now"]["gated"]
        ran = await explain(stage, capsys, "u-0", *at(asked))
        assert "group PodGroup.scheduling.x-k8s.io default/unknown: not declared; 0 placed; 1 waits" in ran.out
        assert "  PodGroup.scheduling.x-k8s.io default/unknown does not exist (the pod's label" in ran.out
        assert "now: it would not be tried: waiting for pods's pod group" in ran.out


async def test_nodes_that_are_kept_for_a_group_are_named(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    stage.pod_group("train", 2)
    stage.edit_profile(pluginConfig=KEEPING)
    full = stage.pods(2, cpu="3500m", restart="Never")
    async with desk(stage) as asked:
        await asked.until_ready()
        await stage.until(lambda: stage.placed(*full))
        stage.members("train", "t-0", "t-1", cpu="3")
        await stage.until(lambda: len(asked.engine.deciding.scheduler.pod_groups.reservations) == 1)
        kept = (await read(asked, "/debug/explain?pod=default/t-0"))["group"]["kept"]
        assert kept == {"node-0": 1, "node-1": 1}
        assert "  nodes are kept for it: node-" in (await explain(stage, capsys, "t-0", *at(asked))).out
        stage.delete_pod(full[0])
        stage.pod("large", cpu="2")
        await stage.until(lambda: "kept for group" in stage.condition("large").get("message", ""))
        held_off = r"1 node is kept for group default/train until 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"
        assert re.search(held_off, stage.condition("large")["message"])
        assert re.search(held_off, (await explain(stage, capsys, "large", *at(asked))).out)


async def test_a_placed_member_was_decided_with_its_group_and_one_that_came_later_was_not(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.pod_group("train", 3)
    stage.members("train", "t-0", "t-1", "t-2")
    async with desk(stage) as asked:
        await asked.until_ready()
        await stage.until(lambda: asked.engine.deciding.scheduler.counts.bound == 3)
        found = await read(asked, "/debug/explain?pod=default/t-1")
        assert (found["tried"][0]["together"], found["group"]["placed"], found["group"].get("waiting", 0)) == (3, 3, 0)
        assert "  decided in one go with 2 others of it\n" in (await explain(stage, capsys, "t-1", *at(asked))).out
        stage.members("train", "t-3")
        await stage.until(lambda: asked.engine.deciding.scheduler.counts.bound == 4)
        late = await read(asked, "/debug/explain?pod=default/t-3")
        assert (late["group"]["placed"], "together" in late["tried"][0]) == (4, False)
        assert "decided in one go" not in (await explain(stage, capsys, "t-3", *at(asked))).out


# --- claims ----------------------------------------------------------------------------------------------------------------------


class Devices:
    """Devices, claims and pods that want them."""

    def __init__(self, stage: Stage) -> None:
        self._writes, self._stage = stage.sandbox.writes, stage
        self._create("deviceclasses", "", {"metadata": {"name": GPU}, "spec": {}})

    def _create(self, plural: str, namespace: str, content: Any) -> None:
        self._writes.create(self._stage.sandbox.resource("resource.k8s.io", "v1", plural), namespace, content)

    def on(self, node: str, count: int) -> None:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu", "nodeName": node, "pool": pool, "devices": [{"name": f"d{i}"} for i in range(count)]}
        self._create("resourceslices", "", {"metadata": {"name": node}, "spec": spec})

    def claim(self, name: str, count: int = 1) -> None:
        requests = [{"name": "r", "exactly": {"deviceClassName": GPU, "count": count}}]
        self._create("resourceclaims", "default", {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}})

    def pod(self, name: str, claim: str, group: str = "") -> None:
        container = {"name": "main", "image": "example.test/main", "resources": {"claims": [{"name": "gpu"}]}}
        spec = {"schedulerName": "placewright", "containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}]}
        pods = self._stage.sandbox.resource("", "v1", "pods")
        labels = {GROUP_LABEL: group} if group else {}
        self._writes.create(pods, "default", {"metadata": {"name": name, "labels": labels}, "spec": spec})


async def test_a_pod_with_claims_shows_what_they_got_or_which_node_is_nearest(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    made = Devices(stage)
    made.on("node-0", 1)
    made.on("node-1", 3)
    made.claim("two", 2)
    made.claim("too-many", 4)
    made.pod("gets", "two")
    made.pod("waits", "too-many")
    made.pod("astray", "unmade")
    async with desk(stage) as asked:
        await asked.until_ready()
        await stage.until(lambda: stage.placed("gets") and stage.condition("waits") and asked.engine.deciding.scheduler.counts.bound == 1)
        (got,) = (await read(asked, "/debug/explain?pod=default/gets"))["claims"]
        shown = stage.sandbox.writes.current(stage.sandbox.resource("resource.k8s.io", "v1", "resourceclaims"), "default", "two").object
        results = shown["status"]["allocation"]["devices"]["results"]
        assert [{k: each[k] for k in ("request", "driver", "pool", "device")} for each in results] == got["devices"]
        assert (got["claim"], got["entry"], got["users"]) == ("default/two", "gpu", 1)
        ran = await explain(stage, capsys, "gets", *at(asked))
        assert f"claim default/two (gpu): asks for r: 2 of class {GPU}; has gpu/node-1/d0, gpu/node-1/d1; pods that use it: 1" in ran.out
        ran = await explain(stage, capsys, "waits", *at(asked))
        assert f"claim default/too-many (gpu): asks for r: 4 of class {GPU}; has no devices yet" in ran.out
        assert f"devices on nodes: the pod wants 4 of class {GPU}" in ran.out
        assert f"  node-0 needs 3 more devices of class {GPU}" in ran.out
        ran = await explain(stage, capsys, "astray", *at(asked))
        assert 'claim (gpu): could not find ResourceClaim "default/unmade"' in ran.out
        assert 'now: it would not be tried: could not find ResourceClaim "default/unmade"' in ran.out
        found = json.loads((await explain(stage, capsys, "waits", "-o", "json", *at(asked))).out)
        assert sum(each["nodes"] for each in found["now"]["devices"]["groups"]) == 2


# --- without an operator ---------------------------------------------------------------------------------------------------------


async def test_without_an_operator_a_member_is_explained_with_the_members_that_wait_beside_it(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.pod_group("train", 3)
    stage.members("train", "t-0", "t-1", cpu="3")
    early = (await explain(stage, capsys, "t-1", "--here")).out
    assert f"group {TRAIN}: needs 3 at once; 0 placed; 2 wait; 1 is not there yet" in early
    assert "now: it would not be tried: waiting for minCount pods" in early
    stage.members("train", "t-2", cpu="3")
    ran = await explain(stage, capsys, "t-1", "--here")
    assert (ran.code, "0 placed; 3 wait\n" in ran.out) == (0, True)
    assert "  needs 1 more member placed: 1 lacks cpu\n" in ran.out
    assert "now: 2 of 2 nodes can hold it" in ran.out
    stage.node("node-2")
    assert "more member" not in (await explain(stage, capsys, "t-1", "--here")).out


async def test_without_an_operator_members_share_the_devices_that_there_are(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    made = Devices(stage)
    made.on("node-0", 1)
    stage.pod_group("train", 2)
    for name in ("t-0", "t-1"):
        made.claim(name)
        made.pod(name, name, group="train")
    ran = await explain(stage, capsys, "t-0", "--here")
    assert f"claim default/t-0 (gpu): asks for r: 1 of class {GPU}; has no devices yet" in ran.out
    assert "  needs 1 more member placed: 1 finds no node (cannot allocate all claims)\n" in ran.out
    assert "now: 1 of 2 nodes can hold it" in ran.out


async def test_without_an_operator_a_placed_pod_shows_its_devices(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    made = Devices(stage)
    made.on("node-0", 1)
    made.claim("one")
    made.pod("gets", "one")
    async with desk(stage) as asked:
        await asked.until_ready()
        await stage.until(lambda: stage.placed("gets"))
    ran = await explain(stage, capsys, "gets", "--here")
    assert f"claim default/one (gpu): asks for r: 1 of class {GPU}; has gpu/node-0/d0; pods that use it: 1" in ran.out
    assert "its annotation has the decision" in ran.out
