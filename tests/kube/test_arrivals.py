"""News of pods that fail, from a real watch of the sandbox and from scripted answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from fake_api import FakeApi, a_node, answer, event, listing, refuse, stream
from recording import RecordingSink

from kubesandbox.server import Sandbox, SandboxOptions
from placewright.api.objects import Node
from placewright.api.turnedaway import FailedPod
from placewright.kube.arrivals import Arrivals
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import RetryBackoff
from placewright.kube.reflector import Source
from placewright.plugins.noderejections import FAILED_PODS

NODES = "/api/v1/nodes"


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with FakeApi() as made:
        yield made


class Following:
    """Arrivals of nodes at a fake server."""

    def __init__(self, client: ApiClient) -> None:
        self.sink = RecordingSink()
        self.arrivals = Arrivals(client, Source(NODES, Node), self.sink, backoff=RetryBackoff(initial=0.001, maximum=0.002))


async def test_objects_that_are_there_are_not_told_and_one_at_most_is_asked_for(api: FakeApi) -> None:
    silent = asyncio.Event()
    api.on(f"GET {NODES}", answer(listing(a_node("old"), version="7", following="more")))
    api.on(f"WATCH {NODES}", stream(event("ADDED", a_node("new", "8")), silent))
    async with api.client() as client:
        following = Following(client)
        task = asyncio.create_task(following.arrivals.run())
        await following.sink.until_heard("added", "new")
        task.cancel()
        silent.set()
    assert following.sink.heard == [("added", "new")]
    assert [request.query["limit"] for request in api.asked("GET")] == ["1"]
    assert api.asked("WATCH")[0].query["resourceVersion"] == "7"
    assert following.arrivals.store == {}


async def test_changes_and_departures_are_passed_over_and_a_broken_watch_goes_on_after_them(api: FakeApi) -> None:
    silent = asyncio.Event()
    api.on(f"GET {NODES}", answer(listing(version="7")))
    steps = (event("ADDED", a_node("a", "8")), event("MODIFIED", a_node("a", "9")), event("DELETED", a_node("a", "10")))
    api.on(f"WATCH {NODES}", stream(*steps), stream(event("ADDED", a_node("b", "11")), silent))
    async with api.client() as client:
        following = Following(client)
        task = asyncio.create_task(following.arrivals.run())
        await following.sink.until_heard("added", "b")
        task.cancel()
        silent.set()
    assert following.sink.heard == [("added", "a"), ("added", "b")]
    assert [request.query["resourceVersion"] for request in api.asked("WATCH")] == ["7", "10"]


async def test_a_server_that_has_forgotten_is_asked_again_where_it_stands(api: FakeApi) -> None:
    silent = asyncio.Event()
    api.on(f"GET {NODES}", answer(listing(version="7")), answer(listing(a_node("missed"), version="20")))
    api.on(f"WATCH {NODES}", refuse(410, "Expired"), stream(event("ADDED", a_node("a", "21")), silent))
    async with api.client() as client:
        following = Following(client)
        task = asyncio.create_task(following.arrivals.run())
        await following.sink.until_heard("added", "a")
        task.cancel()
        silent.set()
    assert following.sink.heard == [("added", "a")]


async def test_a_pod_that_fails_is_told_once_however_often_it_changes_afterwards() -> None:
    async with Sandbox(SandboxOptions(seed=1)) as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
        pods = sandbox.resource("", "v1", "pods")

        def pod(name: str) -> None:
            spec = {"nodeName": "a", "containers": [{"name": "main", "image": "example.test/main"}]}
            sandbox.writes.create(pods, "default", {"metadata": {"name": name}, "spec": spec})

        def change(name: str, **status: str) -> None:
            sandbox.writes.modify(pods, "default", name, lambda found: found["status"].update(status))

        pod("before")
        change("before", phase="Failed", reason="OutOfcpu")
        sink = RecordingSink()
        failed = Arrivals(client, Source(FAILED_PODS.path, FailedPod, field_selector=FAILED_PODS.field_selector), sink)
        task = asyncio.create_task(failed.run())
        await failed.has_synced.wait()
        for name in ("one", "two"):
            pod(name)
            change(name, phase="Failed", reason="OutOfcpu")
            change(name, message="seen")
        await sink.until_heard("added", "two")
        task.cancel()
    assert sink.heard == [("added", "one"), ("added", "two")]
