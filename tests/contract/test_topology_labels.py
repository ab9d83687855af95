"""Zone and region: which labels of its node a pod has once it has a node, and what else a Binding leaves on the pod."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contract.client import DEADLINE, JSON_PATCH, MERGE, Object
from contract.cluster import Cluster
from contract.objects import a_node, a_pod, binding

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
SINCE = 35
"""The first minor version in which the server gives pods these labels."""


@asynccontextmanager
async def node_with(cluster: Cluster, **labels: str) -> AsyncIterator[str]:
    """A node with these labels (`zone`, `region` or others) that the server's admission has heard of."""
    name = cluster.unique("labelled")
    keys = {"zone": ZONE, "region": REGION}
    made = a_node(name)
    made["metadata"]["labels"] = {keys.get(key, key): value for key, value in labels.items()} | {ZONE: labels.get("zone", "none")}
    (await cluster.client.post("/api/v1/nodes", made)).expect(201)
    try:
        if cluster.minor >= SINCE:
            await _until_known(cluster, name)
        if "zone" not in labels:
            await _without_zone(cluster, name)
        yield name
    finally:
        await cluster.client.delete(f"/api/v1/nodes/{name}")


async def _until_known(cluster: Cluster, name: str, zone: bool = True) -> None:
    """Real servers look nodes up in a cache of theirs: pods are created on the node until they are given what it has."""
    async with asyncio.timeout(DEADLINE):
        while (ZONE in (await created_on(cluster, name))) is not zone:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def created_on(cluster: Cluster, name: str, labels: dict[str, str] | None = None) -> dict[str, str]:
    """The labels of a pod that was created on the node."""
    body = a_pod("", labels, nodeName=name)
    body["metadata"] |= {"name": None, "generateName": "placed-"}
    made = await cluster.create("pods", body)
    found: dict[str, str] = made["metadata"].get("labels") or {}
    return found


async def _without_zone(cluster: Cluster, name: str) -> None:
    (await cluster.client.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {ZONE: None}}}, MERGE)).expect(200)
    if cluster.minor >= SINCE:
        await _until_known(cluster, name, zone=False)


async def bound(cluster: Cluster, body: Object, labels: dict[str, str] | None = None, at: str = "pods/p/binding") -> Object:
    """The pod `p` after it was created with these labels and this Binding was posted."""
    await cluster.create("pods", a_pod("p", labels))
    (await cluster.client.post(cluster.path(at), body)).expect(201)
    return await cluster.read("pods", "p")


def on(cluster: Cluster, since: dict[str, str], before: dict[str, str]) -> dict[str, str]:
    """The labels that are right for the version of the server."""
    return since if cluster.minor >= SINCE else before


async def test_a_bound_pod_has_the_zone_and_the_region_of_its_node(cluster: Cluster) -> None:
    async with node_with(cluster, zone="a", region="north", disk="ssd") as name:
        found = await bound(cluster, binding("p", name), {"app": "web"})
    assert found["metadata"]["labels"] == on(cluster, {"app": "web", ZONE: "a", REGION: "north"}, {"app": "web"})


async def test_the_labels_of_the_node_go_before_the_pods_own(cluster: Cluster) -> None:
    async with node_with(cluster, zone="a", region="north") as name:
        found = await bound(cluster, binding("p", name), {ZONE: "mine", "app": "web"})
    after = on(cluster, {ZONE: "a", REGION: "north", "app": "web"}, {ZONE: "mine", "app": "web"})
    assert found["metadata"]["labels"] == after


async def test_what_the_node_does_not_say_stays_as_it_was(cluster: Cluster) -> None:
    async with node_with(cluster, region="north") as name:
        found = await bound(cluster, binding("p", name), {ZONE: "mine"})
    assert found["metadata"]["labels"] == on(cluster, {ZONE: "mine", REGION: "north"}, {ZONE: "mine"})


async def test_a_node_that_is_not_there_gives_no_labels(cluster: Cluster) -> None:
    found = await bound(cluster, binding("p", cluster.unique("nowhere")), {ZONE: "mine"})
    assert found["metadata"]["labels"] == {ZONE: "mine"}


async def test_the_labels_of_a_binding_become_the_pods_and_the_nodes_go_before_them(cluster: Cluster) -> None:
    given = {"decision": "42", "app": "bound", REGION: "elsewhere"}
    async with node_with(cluster, zone="a", region="north") as name:
        found = await bound(cluster, binding("p", name, labels=given), {"app": "web", "kept": "yes"})
    since = {"kept": "yes", "app": "bound", "decision": "42", ZONE: "a", REGION: "north"}
    assert found["metadata"]["labels"] == on(cluster, since, {"app": "web", "kept": "yes"})


async def test_a_target_that_does_not_say_that_it_is_a_node_gives_no_labels(cluster: Cluster) -> None:
    async with node_with(cluster, zone="a", region="north") as name:
        found = await bound(cluster, {**binding("p", name, labels={"own": "yes"}), "target": {"name": name}})
    assert found["spec"]["nodeName"] == name
    assert (found["metadata"].get("labels") or {}) == on(cluster, {"own": "yes"}, {})


async def test_a_binding_posted_to_the_namespace_brings_its_own_labels_only(cluster: Cluster) -> None:
    async with node_with(cluster, zone="a", region="north") as name:
        found = await bound(cluster, binding("p", name, labels={"own": "yes"}), at="bindings")
    assert found["spec"]["nodeName"] == name
    assert (found["metadata"].get("labels") or {}) == on(cluster, {"own": "yes"}, {})


async def test_labels_of_a_binding_that_are_no_text_are_refused(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    body = binding("p", "some-node", labels={"a": 1})
    assert (await cluster.client.post(cluster.path("pods", "p", "binding"), body)).refused(400, "BadRequest")
    assert "nodeName" not in (await cluster.read("pods", "p"))["spec"]


async def test_a_pod_that_is_created_on_a_node_gets_its_labels_too(cluster: Cluster) -> None:
    async with node_with(cluster, zone="a", region="north") as name:
        found = await created_on(cluster, name, {ZONE: "mine", "app": "web"})
    assert found == on(cluster, {ZONE: "a", REGION: "north", "app": "web"}, {ZONE: "mine", "app": "web"})


async def test_a_bound_pod_keeps_its_labels_when_its_nodes_change(cluster: Cluster) -> None:
    async with node_with(cluster, zone="a") as name:
        before = (await bound(cluster, binding("p", name)))["metadata"].get("labels")
        await _without_zone(cluster, name)
        change = {"metadata": {"annotations": {"seen": "yes"}}}
        found = (await cluster.client.patch(cluster.path("pods", "p"), change, MERGE)).expect(200)
    assert found["metadata"].get("labels") == before


async def test_a_dry_run_gives_no_labels(cluster: Cluster) -> None:
    async with node_with(cluster, zone="a", region="north") as name:
        await cluster.create("pods", a_pod("p", {"app": "web"}))
        (await cluster.client.post(cluster.path("pods", "p", "binding"), binding("p", name), dryRun="All")).expect(201)
        assert (await cluster.read("pods", "p"))["metadata"]["labels"] == {"app": "web"}


async def test_a_binding_ends_the_nomination(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    nominated = {"status": {"nominatedNodeName": "some-node"}}
    (await cluster.client.patch(cluster.path("pods", "p", "status"), nominated, MERGE)).expect(200)
    (await cluster.client.post(cluster.path("pods", "p", "binding"), binding("p", "some-node"))).expect(201)
    status = (await cluster.read("pods", "p"))["status"]
    assert status.get("nominatedNodeName") == (None if cluster.minor >= SINCE else "some-node")


async def test_the_condition_of_a_bound_pod_takes_the_place_of_the_one_before(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    tried = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
    conditions = [{"type": "example.com/Before", "status": "True"}, tried, {"type": "example.com/After", "status": "True"}]
    (await cluster.client.patch(cluster.path("pods", "p", "status"), {"status": {"conditions": conditions}}, MERGE)).expect(200)
    (await cluster.client.post(cluster.path("pods", "p", "binding"), binding("p", "some-node"))).expect(201)
    found = (await cluster.read("pods", "p"))["status"]["conditions"]
    assert [each["type"] for each in found] == ["example.com/Before", "PodScheduled", "example.com/After"]
    assert found[1].keys() == {"type", "status", "lastProbeTime", "lastTransitionTime"}
    assert (found[1]["status"], found[1]["lastTransitionTime"] is not None) == ("True", True)


async def test_generations_of_a_pod_count_changes_of_its_spec_and_its_deletion_and_not_its_binding(cluster: Cluster) -> None:
    made = await cluster.create("pods", a_pod("p"))
    path = cluster.path("pods", "p")
    (await cluster.client.post(f"{path}/binding", binding("p", "some-node"))).expect(201)
    after_binding = await cluster.read("pods", "p")
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "registry.invalid/app:2"}]
    after_change = (await cluster.client.patch(path, image, JSON_PATCH)).expect(200)
    after_label = (await cluster.client.patch(path, {"metadata": {"labels": {"a": "b"}}}, MERGE)).expect(200)
    deleted = (await cluster.client.delete(path)).expect(200)
    found = [each["metadata"].get("generation") for each in (made, after_binding, after_change, after_label, deleted)]
    if cluster.minor >= 34:
        assert found == [1, 1, 2, 2, 3]
    elif cluster.minor == 20:
        assert found == [None] * 5
