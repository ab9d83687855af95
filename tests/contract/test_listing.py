"""Lists: pages of one consistent state, and selectors on labels and fields."""

from __future__ import annotations

import pytest

from contract.client import Object
from contract.cluster import Cluster
from contract.objects import a_node, a_pod, binding, config_map, lease
from programs import not_on_this_server

GROUP = "coordination.k8s.io"


def names(found: Object) -> list[str]:
    return [item["metadata"]["name"] for item in found["items"]]


async def selected(cluster: Cluster, plural: str, **query: str) -> list[str]:
    return sorted(names((await cluster.client.get(cluster.path(plural), **query)).expect(200)))


async def test_pages_join_to_the_state_at_the_first_page(cluster: Cluster) -> None:
    for number in range(5):
        await cluster.create("leases", lease(f"lease-{number}"), group=GROUP)
    path = cluster.path("leases", group=GROUP)
    first = (await cluster.client.get(path, limit=2)).expect(200)
    assert names(first) == ["lease-0", "lease-1"]
    assert first["metadata"]["remainingItemCount"] == 3
    await cluster.create("leases", lease("lease-00"), group=GROUP)
    await cluster.create("leases", lease("lease-9"), group=GROUP)
    (await cluster.client.delete(f"{path}/lease-4")).expect(200)
    second = (await cluster.client.get(path, **{"limit": 2, "continue": first["metadata"]["continue"]})).expect(200)
    third = (await cluster.client.get(path, **{"limit": 2, "continue": second["metadata"]["continue"]})).expect(200)
    assert names(second) + names(third) == ["lease-2", "lease-3", "lease-4"]
    again = (await cluster.client.get(path, **{"limit": 2, "continue": first["metadata"]["continue"]})).expect(200)
    assert names(again) == names(second)
    assert not third["metadata"].get("continue")
    assert third["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_a_limit_as_large_as_the_list_gives_one_page(cluster: Cluster) -> None:
    for number in range(2):
        await cluster.create("leases", lease(f"lease-{number}"), group=GROUP)
    found = (await cluster.client.get(cluster.path("leases", group=GROUP), limit=2)).expect(200)
    assert not found["metadata"].get("continue")
    assert len(found["items"]) == 2


@pytest.mark.parametrize("token", ["x", "1.x", "1.2.3", "no-token", "e30=", "????", "bnVsbA==", "é"])
async def test_a_broken_continue_token_is_refused(cluster: Cluster, token: str) -> None:
    answer = await cluster.client.get(cluster.path("configmaps"), **{"limit": 2, "continue": token})
    assert answer.refused(400, "BadRequest")


async def test_a_list_continued_after_compaction_gets_410(cluster: Cluster) -> None:
    if cluster.compact is None:
        not_on_this_server("it cannot be told to compact its history")
    for number in range(3):
        await cluster.create("leases", lease(f"lease-{number}"), group=GROUP)
    path = cluster.path("leases", group=GROUP)
    first = (await cluster.client.get(path, limit=1)).expect(200)
    await cluster.create("leases", lease("more"), group=GROUP)
    cluster.compact()
    answer = await cluster.client.get(path, **{"limit": 1, "continue": first["metadata"]["continue"]})
    assert answer.refused(410, "Expired")
    exact = {"resourceVersion": first["metadata"]["resourceVersion"], "resourceVersionMatch": "Exact"}
    assert (await cluster.client.get(path, **exact)).refused(410, "Expired")


async def test_a_list_as_old_as_allowed_may_be_newer(cluster: Cluster) -> None:
    made = await cluster.create("configmaps", config_map("one"))
    for query in ({"resourceVersion": 0}, {"resourceVersion": made["metadata"]["resourceVersion"]}):
        found = (await cluster.client.get(cluster.path("configmaps"), **query)).expect(200)
        assert int(found["metadata"]["resourceVersion"]) >= int(query["resourceVersion"])
    assert "one" in names(found)


async def test_a_version_that_is_still_to_come_is_a_timeout(cluster: Cluster) -> None:
    far = int((await cluster.client.get(cluster.path("pods"))).expect(200)["metadata"]["resourceVersion"]) + 10**6
    answer = await cluster.client.get(cluster.path("pods"), resourceVersion=far)
    assert answer.refused(504, "Timeout").startswith("Timeout: Too large resource version")
    [cause] = answer.body["details"]["causes"]
    assert cause["reason"] == "ResourceVersionTooLarge"


@pytest.mark.parametrize(
    "query",
    [
        {"resourceVersionMatch": "Exact"},
        {"resourceVersionMatch": "Exact", "resourceVersion": 0},
        {"resourceVersionMatch": "Somehow", "resourceVersion": 1},
    ],
)
async def test_a_version_match_that_makes_no_sense_is_refused(cluster: Cluster, query: dict[str, object]) -> None:
    answer = await cluster.client.get(cluster.path("pods"), **query)
    assert "resourceVersionMatch" in answer.refused(422, "Invalid")


@pytest.mark.parametrize("query", [{"limit": "many"}, {"timeoutSeconds": "x"}])
async def test_a_number_that_is_none_is_refused(cluster: Cluster, query: dict[str, str]) -> None:
    assert (await cluster.client.get(cluster.path("pods"), **query)).refused(400, "BadRequest")


async def test_a_list_names_its_kind_and_its_items_do_not(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("one"))
    found = (await cluster.client.get(cluster.path("configmaps"))).expect(200)
    assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMapList")
    assert all("kind" not in item and "apiVersion" not in item for item in found["items"])
    assert (await cluster.client.get(cluster.path("secrets"))).expect(200)["items"] == []


async def test_items_come_in_the_order_of_their_names(cluster: Cluster) -> None:
    for name in ("b", "c", "a"):
        await cluster.create("leases", lease(name), group=GROUP)
    found = (await cluster.client.get(cluster.path("leases", group=GROUP))).expect(200)
    assert names(found) == ["a", "b", "c"]


SELECTED = {
    "app=web": "web-1 web-2",
    "app==web,tier=front": "web-1",
    "app = web , tier=front": "web-1",
    "app!=web": "db plain",
    "missing!=db": "db plain web-1 web-2",
    "app in (web, db)": "db web-1 web-2",
    "app in (db)": "db",
    "missing in (web)": "",
    "app notin (web)": "db plain",
    "app notin (web,db)": "plain",
    "tier": "web-1",
    "missing": "",
    "!app": "plain",
    "!missing": "db plain web-1 web-2",
    "app,!tier": "db web-2",
    "size>4": "web-1",
    "size<5": "web-2",
    "app>1": "",
    "app in (web),tier in (front,back),!missing": "web-1",
    "example.test/app=": "",
    "flag=": "plain",
}


async def test_label_selectors(cluster: Cluster) -> None:
    labels = {
        "web-1": {"app": "web", "tier": "front", "size": "5"},
        "web-2": {"app": "web", "size": "4"},
        "db": {"app": "db"},
        "plain": {"flag": ""},
    }
    for name, its in labels.items():
        await cluster.create("leases", lease(name, labels=its), group=GROUP)
    path = cluster.path("leases", group=GROUP)
    found = {each: names((await cluster.client.get(path, labelSelector=each)).expect(200)) for each in SELECTED}
    assert {each: " ".join(sorted(those)) for each, those in found.items()} == SELECTED


@pytest.mark.parametrize("selector", ["app in web", "=web", "app=(", "a b", "-app=web", "a=b=c", "app in (a", "=", ",", "app=web;rm", "()"])
async def test_a_label_selector_that_makes_no_sense_is_refused(cluster: Cluster, selector: str) -> None:
    assert (await cluster.client.get(cluster.path("configmaps"), labelSelector=selector)).refused(400, "BadRequest")


async def test_pods_are_selected_by_node_scheduler_phase_and_name(cluster: Cluster) -> None:
    for name in ("free", "bound"):
        await cluster.create("pods", a_pod(name))
    await cluster.create("pods", a_pod("theirs", schedulerName="contract-other"))
    (await cluster.client.post(cluster.path("pods", "bound", "binding"), binding("bound", "some-node"))).expect(201)
    assert await selected(cluster, "pods", fieldSelector="spec.nodeName=") == ["free", "theirs"]
    assert await selected(cluster, "pods", fieldSelector="spec.nodeName=some-node") == ["bound"]
    assert await selected(cluster, "pods", fieldSelector="spec.nodeName!=") == ["bound"]
    both = "spec.nodeName=,spec.schedulerName=contract-other"
    assert await selected(cluster, "pods", fieldSelector=both) == ["theirs"]
    assert await selected(cluster, "pods", fieldSelector="spec.nodeName==") == ["free", "theirs"]
    if cluster.minor >= 28:
        assert await selected(cluster, "pods", fieldSelector="spec.nodeName=,spec.hostNetwork=false") == ["free", "theirs"]
    assert await selected(cluster, "pods", fieldSelector="metadata.name=free") == ["free"]
    assert await selected(cluster, "pods", fieldSelector="metadata.name=free,spec.nodeName=some-node") == []
    unfinished = "status.phase!=Succeeded,status.phase!=Failed"
    assert await selected(cluster, "pods", fieldSelector=unfinished) == ["bound", "free", "theirs"]
    assert await selected(cluster, "pods", fieldSelector="status.phase=Running") == []
    assert await selected(cluster, "pods", fieldSelector=f"metadata.namespace={cluster.namespace}") != []


@pytest.mark.parametrize("selector", ["spec.containers=x", "metadata.labels=x", "nonsense", "spec.nodeName>3"])
async def test_a_field_selector_on_a_field_that_is_not_indexed_is_refused(cluster: Cluster, selector: str) -> None:
    message = (await cluster.client.get(cluster.path("pods"), fieldSelector=selector)).refused(400, "BadRequest")
    assert ("not supported" in message) == ("=" in selector), message


async def test_fields_that_are_no_text_are_selected_by_what_they_look_like(cluster: Cluster) -> None:
    name = cluster.unique("closed")
    (await cluster.client.post("/api/v1/nodes", a_node(name, unschedulable=True))).expect(201)
    try:
        for value, found in (("true", [name]), ("false", [])):
            query = {"fieldSelector": f"metadata.name={name},spec.unschedulable={value}"}
            assert names((await cluster.client.get("/api/v1/nodes", **query)).expect(200)) == found
    finally:
        await cluster.client.delete(f"/api/v1/nodes/{name}")


async def test_a_comma_can_be_escaped_in_a_field_selector(cluster: Cluster) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "it"}, "type": "a,b"}
    await cluster.create("secrets", body)
    assert await selected(cluster, "secrets", fieldSelector=r"type=a\,b") == ["it"]


async def test_a_namespaced_type_is_listed_across_namespaces(cluster: Cluster) -> None:
    name = cluster.unique("everywhere")
    await cluster.create("configmaps", config_map(name))
    found = (await cluster.client.get("/api/v1/configmaps", fieldSelector=f"metadata.name={name}")).expect(200)
    assert [item["metadata"]["namespace"] for item in found["items"]] == [cluster.namespace]


async def test_only_metadata_is_sent_to_whoever_asks_for_only_that(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("one", {"a": "1"}))
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    found = (await cluster.client.get(cluster.path("configmaps"), accept=accept)).expect(200)
    assert found["kind"] == "PartialObjectMetadataList"
    one = next(item for item in found["items"] if item["metadata"]["name"] == "one")
    assert "data" not in one
