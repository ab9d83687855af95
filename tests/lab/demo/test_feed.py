"""Putting objects on an API server: order, owners, refusals, bounds. Against the sandbox, in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from kubesandbox.server import Sandbox
from placewright.api.objects import PodKey
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_lab.bench.madeup import plain_pods
from placewright_lab.demo.feed import Feed, pod_key
from placewright_lab.readers.manifests import SourceText, read_manifests

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: shop}
spec: {template: {spec: {containers: [{name: c, image: i}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: urgent, namespace: shop}
spec: {priorityClassName: no-such-class, containers: [{name: c, image: i}]}
"""


@pytest.fixture
async def client() -> AsyncIterator[ApiClient]:
    async with Sandbox() as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as made:
        yield made


class Heard:
    """What a feed tells."""

    def __init__(self) -> None:
        self.created: list[PodKey] = []
        self.refused: dict[PodKey, str] = {}

    def was_refused(self, key: PodKey, message: str) -> None:
        self.refused[key] = message


async def test_owners_come_first_and_their_pods_carry_the_uids_that_the_server_gave(client: ApiClient) -> None:
    reading, feed, heard = read_manifests([SourceText("f", WEB)]), Feed(client), Heard()
    assert await feed.create_objects(reading.objects) == []
    await feed.create_pods(reading.pods, heard.created.append, heard.was_refused)
    owners = {}
    for plural in ("replicasets", "deployments"):
        listed = json.loads(await client.get(f"/apis/apps/v1/namespaces/shop/{plural}"))
        owners.update({o["metadata"]["uid"]: o for o in listed["items"]})
    jobs = json.loads(await client.get("/apis/batch/v1/namespaces/shop/jobs"))["items"]
    owners[jobs[0]["metadata"]["uid"]] = jobs[0]
    pods = json.loads(await client.get("/api/v1/namespaces/shop/pods"))["items"]
    kinds = []
    for pod in pods:
        owner = owners[pod["metadata"]["ownerReferences"][0]["uid"]]
        kinds.append(owner["kind"] if "kind" in owner else owner["metadata"]["name"])
        label = pod["metadata"]["labels"].get("controller-uid")
        assert label in (None, jobs[0]["metadata"]["uid"])
    assert len(kinds) == 3


async def test_a_pod_that_the_server_refuses_is_told_with_its_reason(client: ApiClient) -> None:
    reading, feed, heard = read_manifests([SourceText("f", WEB)]), Feed(client), Heard()
    await feed.create_objects(reading.objects)
    await feed.create_pods(reading.pods, heard.created.append, heard.was_refused)
    assert list(heard.refused) == ["shop/urgent"]
    assert "no-such-class" in heard.refused[PodKey("shop/urgent")]
    assert len(heard.created) == 3


async def test_what_exists_is_taken_as_it_is_but_a_pod_that_exists_is_refused(client: ApiClient) -> None:
    feed, heard = Feed(client), Heard()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
    assert await feed.create_objects([namespace]) == []
    pods = plain_pods(1)
    await feed.create_pods([*pods, *pods], heard.created.append, heard.was_refused)
    assert heard.created == [pod_key(pods[0])]
    assert "already exists" in heard.refused[pod_key(pods[0])]


async def test_objects_of_kinds_that_the_server_lacks_are_said(client: ApiClient) -> None:
    profile = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "p"}}
    refused = await Feed(client).create_objects([profile])
    assert len(refused) == 1
    assert refused[0].startswith("SchedulingProfile/p: ")


async def test_no_more_requests_are_in_flight_than_wanted(client: ApiClient) -> None:
    flying, most = 0, 0
    post = client.post

    async def counted(*args: object) -> bytes:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        try:
            await asyncio.sleep(0)
            return await post(*args)  # type: ignore[arg-type]
        finally:
            flying -= 1

    client.post = counted  # type: ignore[method-assign, assignment]
    heard = Heard()
    await Feed(client, in_flight=3).create_pods(plain_pods(30), heard.created.append, heard.was_refused)
    assert (len(heard.created), most) == (30, 3)
