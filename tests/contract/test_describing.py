"""What a server says of itself (discovery, OpenAPI) and how it prints objects (Table)."""

from __future__ import annotations

import json

from contract.client import Object
from contract.cluster import Cluster
from contract.objects import a_pod, binding, config_map

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def cells(table: Object, number: int = 0) -> dict[str, object]:
    """Column name to cell of one row."""
    names = [column["name"] for column in table["columnDefinitions"]]
    return dict(zip(names, table["rows"][number]["cells"], strict=True))


async def test_a_table_of_pods_has_the_columns_that_users_know(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    (await cluster.client.post(cluster.path("pods", "p", "binding"), binding("p", "some-node"))).expect(201)
    table = (await cluster.client.get(cluster.path("pods"), accept=TABLE)).expect(200)
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["metadata"]["resourceVersion"]
    row = cells(table)
    assert list(row)[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert (row["Name"], row["Ready"], row["Status"], row["Node"]) == ("p", "0/1", "Pending", "some-node")
    wide = {column["name"] for column in table["columnDefinitions"] if column["priority"] > 0}
    assert wide == {"IP", "Node", "Nominated Node", "Readiness Gates"}


async def test_the_rows_of_a_table_carry_metadata_by_default_and_the_object_if_asked(cluster: Cluster) -> None:
    await cluster.create("pods", a_pod("p"))
    path = cluster.path("pods")
    row = (await cluster.client.get(path, accept=TABLE)).expect(200)["rows"][0]["object"]
    assert (row["kind"], row["metadata"]["name"]) == ("PartialObjectMetadata", "p")
    assert "spec" not in row
    whole = (await cluster.client.get(path, accept=TABLE, includeObject="Object")).expect(200)["rows"][0]["object"]
    assert whole["spec"]["containers"]
    nothing = (await cluster.client.get(path, accept=TABLE, includeObject="None")).expect(200)["rows"][0]
    assert not nothing.get("object")


async def test_one_object_is_a_table_of_one_row(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("one", {"a": "1", "b": "2"}))
    row = cells((await cluster.client.get(cluster.path("configmaps", "one"), accept=TABLE)).expect(200))
    assert (row["Name"], row["Data"]) == ("one", 2)


async def test_a_watch_can_print_tables(cluster: Cluster) -> None:
    path = cluster.path("configmaps")
    version = (await cluster.client.get(path)).expect(200)["metadata"]["resourceVersion"]
    async with cluster.client.watch(path, accept=TABLE, resourceVersion=version) as watch:
        for name in ("one", "two"):
            await cluster.create("configmaps", config_map(name))
        first, second = await watch.next(), await watch.next()
    assert [each["type"] for each in (first, second)] == ["ADDED", "ADDED"]
    assert first["object"]["kind"] == "Table"
    assert first["object"]["rows"][0]["cells"][0] == "one"
    assert [bool(each["object"]["columnDefinitions"]) for each in (first, second)] == [True, False], "the columns are said once"


async def test_a_gated_and_a_dying_pod_say_so(cluster: Cluster) -> None:
    cluster.needs(27, "scheduling gates by default")
    await cluster.create("pods", a_pod("p", schedulingGates=[{"name": "example.com/wait"}]))
    path = cluster.path("pods", "p")
    assert cells((await cluster.client.get(path, accept=TABLE)).body)["Status"] == "SchedulingGated"
    await cluster.client.patch(path, {"metadata": {"finalizers": ["example.com/a"]}}, "application/merge-patch+json")
    await cluster.client.delete(path)
    assert cells((await cluster.client.get(path, accept=TABLE)).body)["Status"] == "Terminating"
    await cluster.client.patch(path, {"metadata": {"finalizers": None}}, "application/merge-patch+json")


async def test_discovery_leads_from_the_root_to_the_types(cluster: Cluster) -> None:
    assert "v1" in (await cluster.client.get("/api")).expect(200)["versions"]
    groups = {each["name"]: each for each in (await cluster.client.get("/apis")).expect(200)["groups"]}
    assert {"apps", "policy", "coordination.k8s.io", "apiextensions.k8s.io", "scheduling.k8s.io"} <= groups.keys()
    place = groups["apps"]["preferredVersion"]["groupVersion"]
    types = (await cluster.client.get(f"/apis/{place}")).expect(200)
    assert types["groupVersion"] == place
    deployments = next(each for each in types["resources"] if each["name"] == "deployments")
    assert deployments["namespaced"] is True
    assert {"create", "delete", "get", "list", "patch", "update", "watch"} <= set(deployments["verbs"])
    assert deployments["shortNames"] == ["deploy"]


async def test_discovery_says_in_which_version_a_group_is_served(cluster: Cluster) -> None:
    """What older servers lack, a scheduler must do without, or find under another version."""
    groups = {each["name"]: each for each in (await cluster.client.get("/apis")).expect(200)["groups"]}
    served = {name: {each["version"] for each in group["versions"]} for name, group in groups.items()}
    assert "v1" in served["events.k8s.io"]
    assert "v1" in served["coordination.k8s.io"]
    assert ("v1" in served["policy"]) == (cluster.minor >= 21)
    assert "v1" in served["policy"] or "v1beta1" in served["policy"]
    storage = (await cluster.client.get("/apis/storage.k8s.io/v1")).expect(200)["resources"]
    assert ("csistoragecapacities" in {each["name"] for each in storage}) == (cluster.minor >= 24)


async def test_discovery_says_what_cannot_be_done(cluster: Cluster) -> None:
    types = {each["name"]: each for each in (await cluster.client.get("/api/v1")).expect(200)["resources"]}
    assert "deletecollection" not in types["namespaces"]["verbs"]
    assert types["bindings"]["verbs"] == ["create"]
    assert (await cluster.client.get(cluster.path("bindings"))).refused(405, "MethodNotAllowed")
    assert (await cluster.client.delete("/api/v1/namespaces", labelSelector="no=where")).refused(405, "MethodNotAllowed")


async def test_a_format_that_is_not_spoken_is_not_acceptable(cluster: Cluster) -> None:
    assert (await cluster.client.get(cluster.path("pods"), accept="application/xml")).refused(406, "NotAcceptable")
    (await cluster.client.get(cluster.path("pods"), accept="application/xml,application/json")).expect(200)
    (await cluster.client.get(cluster.path("pods"), accept="*/*")).expect(200)


async def test_discovery_names_subresources(cluster: Cluster) -> None:
    types = {each["name"]: each for each in (await cluster.client.get("/api/v1")).expect(200)["resources"]}
    assert types["pods/binding"]["kind"] == "Binding"
    assert types["pods/binding"]["verbs"] == ["create"]
    assert types["pods/eviction"]["kind"] == "Eviction"
    assert "patch" in types["pods/status"]["verbs"]
    assert types["nodes"]["namespaced"] is False


async def test_discovery_comes_aggregated_when_asked_for(cluster: Cluster) -> None:
    cluster.needs(30, "aggregated discovery v2")
    answer = await cluster.client.get("/apis", accept=AGGREGATED)
    assert "as=APIGroupDiscoveryList" in answer.content_type
    found = answer.expect(200)
    assert found["kind"] == "APIGroupDiscoveryList"
    apps = next(item for item in found["items"] if item["metadata"]["name"] == "apps")
    resources = {each["resource"]: each for each in apps["versions"][0]["resources"]}
    assert resources["deployments"]["responseKind"]["kind"] == "Deployment"
    assert resources["deployments"]["scope"] == "Namespaced"
    core = (await cluster.client.get("/api", accept=AGGREGATED)).expect(200)
    pods = next(each for each in core["items"][0]["versions"][0]["resources"] if each["resource"] == "pods")
    assert "binding" in {each["subresource"] for each in pods["subresources"]}


async def test_a_group_that_is_not_served_is_not_found(cluster: Cluster) -> None:
    for path in ("/apis/no.such.group", "/apis/no.such.group/v1", "/apis/apps/v9", "/api/v9"):
        assert (await cluster.client.get(path)).status == 404


async def test_the_version_is_numbers(cluster: Cluster) -> None:
    version = (await cluster.client.get("/version")).expect(200)
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor'].rstrip('+')}")


async def document(cluster: Cluster, path: str) -> Object:
    """JSON, also where the server calls it text: 1.20 does so of v2, and 1.36 of the index of v3."""
    found: object = (await cluster.client.get(path)).expect(200)
    decoded: Object = json.loads(found) if isinstance(found, str) else found  # type: ignore[assignment]
    return decoded


async def test_openapi_is_served(cluster: Cluster) -> None:
    assert (await document(cluster, "/openapi/v2"))["swagger"] == "2.0"
    cluster.needs(27, "OpenAPI v3")
    index = (await document(cluster, "/openapi/v3"))["paths"]
    core = await document(cluster, index["api/v1"]["serverRelativeURL"].partition("?")[0])
    assert core["openapi"].startswith("3.")
    patch = core["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}
