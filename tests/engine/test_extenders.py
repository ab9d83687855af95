"""Extenders over HTTP, asked by the running operator: what they say counts, and a dead one costs only its own profile's pods."""

from __future__ import annotations

import asyncio
from typing import Any

from handlers.stage import Stage, new_stage, operator
from kube.extender_server import ExtenderServer
from kube.fake_api import silent
from kubesandbox.faults import Rule
from placewright.api.profile import default_profile
from placewright.cluster.cluster import Cluster
from placewright.engine.extenders import Extenders
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.handle import NoBinder, NoVolumeWriter, ProfileHandle
from placewright.framework.runtime.rowchecks import NoNominations
from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import ApiClient
from placewright.plugins.catalog import in_tree
from placewright.profiles.live import Active, Swap
from placewright.profiles.resolve import resolve
from placewright.testing import FakeExtender


def profile_with(stage: Stage, server: ExtenderServer, **fields: Any) -> Stage:
    return stage.profile(extenders=[{"urlPrefix": server.url, **fields}])


def active_generation(stage: Stage) -> int:
    return int((stage.show_profile().get("status") or {}).get("activeGeneration", 0))


def bind_directly(stage: Stage, pod: str, node: str) -> None:
    pods = stage.sandbox.resource("", "v1", "pods")
    stage.sandbox.writes.modify(pods, "default", pod, lambda found: found["spec"].update(nodeName=node))


def keep(*nodes: str) -> Any:
    """Answers filter: only these nodes will do."""

    def answer(question: Any) -> Any:
        offered = question["NodeNames"] or [item["metadata"]["name"] for item in question["Nodes"]["items"]]
        if question["NodeNames"] is None:
            items = [item for item in question["Nodes"]["items"] if item["metadata"]["name"] in nodes]
            kept = {"Nodes": {"metadata": {}, "items": items}, "NodeNames": None}
        else:
            kept = {"Nodes": None, "NodeNames": [name for name in offered if name in nodes]}
        return {**kept, "FailedNodes": {name: "not this one" for name in offered if name not in nodes}, "Error": ""}

    return answer


async def test_pods_go_where_the_extender_lets_them() -> None:
    async with ExtenderServer() as server, new_stage() as stage:
        server.on("filter", keep("node-2"))
        profile_with(stage.nodes(4), server, filterVerb="filter")
        async with operator(stage):
            names = stage.pods(5)
            await stage.until(lambda: stage.placed(*names))
        assert {stage.node_of(name) for name in names} == {"node-2"}


async def test_it_sees_pods_and_nodes_whole_as_the_api_server_has_them() -> None:
    async with ExtenderServer() as server, new_stage() as stage:
        server.on("filter", keep("node-0"))
        profile_with(stage.node("node-0"), server, filterVerb="filter")
        async with operator(stage):
            stage.pod("web")
            stored = stage.show("web")
            await stage.until(lambda: stage.placed("web"))
        question = server.asked("POST", "/filter")[0].body
        assert question["Pod"]["metadata"]["uid"] == stored["metadata"]["uid"]
        assert question["Pod"]["spec"] == stored["spec"]
        assert [node["metadata"]["name"] for node in question["Nodes"]["items"]] == ["node-0"]
        assert question["Nodes"]["items"][0]["status"]["allocatable"]["cpu"] == "4"


async def test_a_silent_extender_does_not_hold_up_the_next_term() -> None:
    async with ExtenderServer() as server, new_stage() as stage:
        server.on("filter", silent(server.open))
        profile_with(stage.nodes(2), server, filterVerb="filter", nodeCacheCapable=True, httpTimeout="600s")
        stage.profile("other", schedulerName="other")
        async with operator(stage) as running:
            stage.pod("waits")
            await server.until_asked("POST", "/filter")
            stage.sandbox.faults.add(Rule(method="PUT", path="/leases/", code=500))
            await stage.until(lambda: not running.engine.leading.leadership.active)
            stage.sandbox.faults.clear()
            names = stage.pods(3, scheduler="other")
            await stage.until(lambda: stage.placed(*names))
            await server.until_asked("POST", "/filter", times=2)  # the pod that waits is tried again, too


async def test_while_one_profiles_extender_is_silent_pods_of_others_are_placed() -> None:
    async with ExtenderServer() as server, new_stage() as stage:
        server.on("filter", silent(server.open))
        profile_with(stage.nodes(2), server, filterVerb="filter", nodeCacheCapable=True, httpTimeout="60s")
        stage.profile("other", schedulerName="other")
        async with operator(stage):
            stage.pod("waits")
            await server.until_asked("POST", "/filter")
            names = stage.pods(20, scheduler="other")
            await stage.until(lambda: stage.placed(*names))
            assert not stage.placed("waits")
            server.on("filter", keep("node-1"))
            server.open.set()
            await stage.until(lambda: stage.placed("waits"))


async def test_a_dead_extender_is_said_and_the_pod_is_placed_once_the_profile_does_without_it() -> None:
    async with ExtenderServer() as server, new_stage() as stage:
        profile_with(stage.nodes(2), server, filterVerb="filter", nodeCacheCapable=True)
        await server.die()
        async with operator(stage):
            stage.pod("web")
            await stage.until(lambda: any(server.url in note for reason, note in stage.events("web") if reason == "FailedScheduling"))
            generation = stage.edit_profile(extenders=[])
            await stage.until(lambda: stage.placed("web"))
        decision = stage.decision("web")
        assert decision is not None and decision.generation == generation


async def test_an_edit_of_the_profile_sends_the_next_pod_to_the_new_extender() -> None:
    async with ExtenderServer() as old, ExtenderServer() as new, new_stage() as stage:
        old.on("filter", keep("node-0"))
        new.on("filter", keep("node-1"))
        profile_with(stage.nodes(2), old, filterVerb="filter", nodeCacheCapable=True)
        async with operator(stage):
            stage.pod("first")
            await stage.until(lambda: stage.placed("first"))
            generation = stage.edit_profile(extenders=[{"urlPrefix": new.url, "filterVerb": "filter", "nodeCacheCapable": True}])
            await stage.until(lambda: active_generation(stage) == generation)
            stage.pod("second")
            await stage.until(lambda: stage.placed("second"))
        assert (stage.node_of("first"), stage.node_of("second")) == ("node-0", "node-1")


async def test_an_extender_may_bind_the_pod_itself() -> None:
    async with ExtenderServer() as server, new_stage() as stage:

        def bind(question: Any) -> Any:
            bind_directly(stage, question["PodName"], question["Node"])
            return {"Error": ""}

        server.on("bind", bind)
        profile_with(stage.nodes(2), server, bindVerb="bind")
        async with operator(stage):
            stage.pod("web")
            await stage.until(lambda: ("Scheduled", f"Successfully assigned default/web to {stage.node_of('web')}") in stage.events("web"))
        (asked,) = server.asked("POST", "/bind")
        assert asked.body == {
            "PodName": "web", "PodNamespace": "default", "PodUID": stage.show("web")["metadata"]["uid"], "Node": stage.node_of("web"),
        }  # fmt: skip


async def test_an_extender_whose_ca_cannot_be_read_leaves_the_last_good_generation_in_effect() -> None:
    async with new_stage() as stage:
        stage.nodes(1).profile()
        async with operator(stage):
            await stage.until(lambda: active_generation(stage) == 1)
            stage.edit_profile(
                extenders=[
                    {
                        "urlPrefix": "https://extender.example",
                        "filterVerb": "filter",
                        "enableHTTPS": True,
                        "tlsConfig": {"caFile": "/no/such/file"},
                    }
                ]
            )
            await stage.until(lambda: stage.profile_condition("Ready").get("status") == "False")
            stage.pod("web")
            await stage.until(lambda: stage.placed("web"))
        assert active_generation(stage) == 1
        assert "spec.extenders[0].tlsConfig.caFile: found" in stage.profile_condition("Ready")["message"]


# --- open and closed ------------------------------------------------------------------------------------------------------------------


def generation(one: FakeExtender) -> Active[Evaluator]:
    profile = resolve(default_profile(), in_tree())
    handle = ProfileHandle(Cluster(), NoBinder(), NoNominations(), (), NoVolumeWriter())
    return Active(profile, handle.evaluator(profile, in_tree(), [one]))


async def turns() -> None:
    """Let all that is ready run."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_extenders_of_a_profile_are_closed_some_time_after_it_was_replaced() -> None:
    async with ApiClient(ClusterAccess("http://127.0.0.1:1")) as client:
        extenders, old, new = Extenders(client, lambda: 0, grace=0), FakeExtender("http://old"), FakeExtender("http://new")
        before, after = generation(old), generation(new)
        extenders.swapped(Swap("default", None, before))
        assert old.is_open
        extenders.swapped(Swap("default", before, after))
        assert old.is_open and new.is_open, "what it began may go on"
        await turns()
        assert not old.is_open and new.is_open
        await extenders.close()
        assert not new.is_open


async def test_the_extenders_of_a_profile_that_is_back_in_effect_stay_open() -> None:
    async with ApiClient(ClusterAccess("http://127.0.0.1:1")) as client:
        extenders, its = Extenders(client, lambda: 0, grace=0), FakeExtender()
        profile = generation(its)
        extenders.swapped(Swap("default", None, profile))
        extenders.swapped(Swap("default", profile, None))
        extenders.swapped(Swap("default", None, profile))
        await turns()
        assert its.is_open
        await extenders.close()
