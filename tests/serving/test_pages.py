"""`/configz`, `/debug/queue`, `/debug/cache`: what they say agrees with what is stored, and what is secret is not in them."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from handlers.stage import FAST, HELD, Stage
from kubesandbox.faults import Rule
from placewright.api.decode import convert
from placewright.api.objects import Node
from placewright.cluster.cluster import Cluster
from placewright.engine.engine import build_engine
from placewright.http.certificates import self_signed
from placewright.http.routes import Question, RequestRefused
from placewright.kube.auth.login import load_config
from placewright.profiles.effective import HIDDEN
from placewright.serving import configz
from placewright.serving.debug import cache_endpoint

from .desk import Desk, desk

SECRET = "c2VjcmV0LWluLWEtcHJvZmlsZQ=="


async def read(asked: Desk, path: str) -> Any:
    """As the sandbox's administrator, who may read everything."""
    reply = await asked.get(path, asked.engine.access.authorization.removeprefix("Bearer "))
    assert reply.status == 200, reply.text
    return json.loads(reply.text)


# --- configz -----------------------------------------------------------------------------------------------------------------------


async def test_settings_have_kube_scheduler_s_names(stage: Stage) -> None:
    async with desk(stage, replace(FAST, qps=50.0, burst=100)) as asked:
        await asked.until_ready()
        config = (await read(asked, "/configz"))["componentconfig"]
        assert config["clientConnection"] == {"qps": 50.0, "burst": 100}
        assert config["leaderElection"]["leaderElect"] is True
        assert (config["leaderElection"]["leaseDuration"], config["leaderElection"]["resourceLock"]) == ("2s", "leases")
        assert (config["leaderElection"]["renewDeadline"], config["leaderElection"]["retryPeriod"]) == ("1.33333s", "0.266667s")
        leases = stage.sandbox.resource("coordination.k8s.io", "v1", "leases")
        (lease,) = stage.sandbox.store.listed(leases.key)
        assert (config["leaderElection"]["resourceNamespace"], config["leaderElection"]["resourceName"]) == (lease.namespace, lease.name)
        assert (config["bindAddress"], config["securePort"]) == ("127.0.0.1", 0)


async def test_no_limit_is_a_rate_below_zero_and_no_replicas_no_election(stage: Stage) -> None:
    async with desk(stage, replace(FAST, leader_elect=False)) as asked:
        config = (await read(asked, "/configz"))["componentconfig"]
        assert config["clientConnection"]["qps"] == -1.0
        assert config["leaderElection"] == {"leaderElect": False}


async def test_a_profile_is_shown_as_it_takes_effect(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.edit_profile(weights={"NodeResourcesFit": 7})
        await stage.until(lambda: asked.engine.deciding.profiles.standings()["default"].active_generation == 2)
        (shown,) = (await read(asked, "/configz"))["profiles"]
        assert (shown["name"], shown["schedulerName"], shown["generation"], shown["activeGeneration"]) == ("default", "placewright", 2, 2)
        assert shown["reason"] == "Active"
        (fit,) = (plugin for plugin in shown["effective"]["plugins"] if plugin["name"] == "NodeResourcesFit")
        assert fit["weight"]["value"] == 7


async def test_a_refused_profile_is_shown_with_what_stays_in_effect(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.edit_profile(plugins={"filter": {"enabled": [{"name": "Nothing"}]}})
        await stage.until(lambda: asked.engine.deciding.profiles.standings()["default"].observed_generation == 2)
        (shown,) = (await read(asked, "/configz"))["profiles"]
        assert (shown["generation"], shown["activeGeneration"], shown["reason"]) == (2, 1, "InvalidProfile")
        assert "Nothing" in shown["message"]
        assert shown["effective"]["generation"] == 1


async def test_keys_in_a_profile_are_hidden(stage: Stage) -> None:
    certificate, key = self_signed(["extender"], dt.datetime.now(dt.UTC))
    pair = {"certData": base64.b64encode(certificate).decode(), "keyData": base64.b64encode(key).decode()}
    async with desk(stage) as asked:
        await asked.until_ready()
        extender = {"urlPrefix": "https://extender:1", "filterVerb": "filter", "enableHTTPS": True, "tlsConfig": pair, "ignorable": True}
        stage.edit_profile(extenders=[extender])
        await stage.until(lambda: asked.engine.deciding.profiles.standings()["default"].active_generation == 2)
        (shown,) = (await read(asked, "/configz"))["profiles"]
        assert shown["effective"]["extenders"][0]["tlsConfig"]["keyData"] == HIDDEN
        assert pair["keyData"] not in json.dumps(shown)


async def test_before_the_api_server_has_answered_there_are_settings_and_no_profiles(stage: Stage) -> None:
    engine = build_engine(load_config(str(stage.sandbox.kubeconfig)), FAST)
    try:
        assert configz.profiles(engine.deciding.profiles) == []
        assert configz.component_config(engine)["identity"] == engine.leading.replica.identity
    finally:
        await engine.stop()


# --- the queue ---------------------------------------------------------------------------------------------------------------------


async def test_every_waiting_pod_is_shown_in_its_place(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.pod("large", cpu="64")
        await stage.until(lambda: stage.condition("large"))
        shown = await read(asked, "/debug/queue")
        (pod,) = shown["pods"]
        assert (pod["namespace"], pod["name"], pod["uid"]) == ("default", "large", stage.show("large")["metadata"]["uid"])
        assert (pod["rejectedBy"], pod["attempts"] >= 1) == (["NodeResourcesFit"], True)
        assert (shown["total"], shown["shown"]) == (1, 1)
        assert sum(shown["sizes"].values()) == 1
        assert shown["sizes"][pod["place"].replace("-", "_")] == 1


async def test_the_limit_bounds_what_is_shown_and_not_what_is_counted(stage: Stage) -> None:
    names = [f"large-{number}" for number in range(7)]
    async with desk(stage) as asked:
        await asked.until_ready()
        for name in names:
            stage.pod(name, cpu="64")
        await stage.until(lambda: len(asked.engine.deciding.queue) == len(names))
        shown = await read(asked, "/debug/queue?limit=3")
        assert (shown["total"], shown["shown"], len(shown["pods"])) == (7, 3, 3)
        assert len((await read(asked, "/debug/queue?limit=100000"))["pods"]) == 7


@pytest.mark.parametrize("limit", ["0", "-1", "100001", "ten", "", "1e3", "²", "9" * 400])
async def test_a_limit_that_is_none_is_one_line(limit: str) -> None:
    with pytest.raises(RequestRefused, match="allowed a whole number from 1 to 100000") as refused:
        await cache_endpoint(cluster_of(0)).answer(Question("/debug/cache", {"limit": (limit,)}))
    assert refused.value.status == 400
    assert len(str(refused.value)) < 200


# --- the cache ---------------------------------------------------------------------------------------------------------------------


async def test_nodes_are_shown_with_what_is_asked_of_them(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.pod("web", cpu="1500m")
        await stage.until(lambda: stage.placed("web") and asked.engine.deciding.cluster.assumed_count == 0)
        shown = await read(asked, "/debug/cache")
        node = stage.show("web")["spec"]["nodeName"]
        by_name = {each["name"]: each for each in shown["nodes"]}
        assert (by_name[node]["pods"], by_name[node]["requested"]["cpu"]) == (1, 1500)
        assert by_name[node]["allocatable"]["cpu"] == 4000
        assert sum(each["pods"] for each in shown["nodes"]) == 1
        assert shown["counts"] == {"nodes": 2, "pods": 1, "assumed": 0}
        assert shown["assumedPods"] == []


async def test_a_pod_whose_binding_is_under_way_is_shown_as_assumed(stage: Stage) -> None:
    slow = stage.sandbox.faults.add(Rule(method="POST", path="/binding", latency=HELD, times=1))
    async with desk(stage) as asked:
        await asked.until_ready()
        stage.pod("web")
        await stage.until(lambda: slow.met == 1)
        (assumed,) = (await read(asked, "/debug/cache"))["assumedPods"]
        assert (assumed["namespace"], assumed["name"]) == ("default", "web")
        (queued,) = (await read(asked, "/debug/queue"))["pods"]
        assert (queued["name"], queued["place"]) == ("web", "in-flight")
        stage.sandbox.faults.release()


async def test_the_loop_turns_while_a_large_page_is_written() -> None:
    answer = await cache_endpoint(cluster_of(5000)).answer(Question("/debug/cache", {"limit": ("5000",)}))
    assert isinstance(answer.body, AsyncIterator)
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    started = time.monotonic()
    pieces = [piece async for piece in answer.body]
    turning.cancel()
    assert turns >= 50, f"{time.monotonic() - started:.3f} s"
    assert len(json.loads(b"".join(pieces))["nodes"]) == 5000


def cluster_of(nodes: int) -> Cluster:
    cluster = Cluster()
    for number in range(nodes):
        status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
        cluster.set_node(convert({"metadata": {"name": f"node-{number}", "uid": str(number)}, "spec": {}, "status": status}, Node))
    return cluster


# --- what nobody is shown ----------------------------------------------------------------------------------------------------------


async def test_no_page_shows_what_a_pod_keeps_to_itself(stage: Stage) -> None:
    async with desk(stage) as asked:
        await asked.until_ready()
        pods = stage.sandbox.resource("", "v1", "pods")
        container = {"name": "main", "image": "x", "env": [{"name": "KEY", "value": SECRET}], "resources": {"requests": {"cpu": "64"}}}
        metadata = {"name": "keeper", "annotations": {"note": SECRET}, "labels": {"mark": "secret-label"}}
        spec = {"schedulerName": "placewright", "containers": [container]}
        stage.sandbox.writes.create(pods, "default", {"metadata": metadata, "spec": spec})
        await stage.until(lambda: stage.condition("keeper"))
        token = asked.engine.access.authorization.removeprefix("Bearer ")
        for path in ("/debug/queue", "/debug/cache", "/configz"):
            text = json.dumps(await read(asked, path))
            assert SECRET not in text, path
            assert "secret-label" not in text, path
            assert token not in text, path
