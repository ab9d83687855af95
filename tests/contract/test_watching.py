"""Watches: nothing is missed, nothing comes twice, and a watcher that comes too late is told."""

from __future__ import annotations

import pytest

from contract.client import MERGE, STRATEGIC, Object
from contract.cluster import Cluster
from contract.objects import a_pod, binding, config_map
from programs import not_on_this_server


def version_of(found: Object) -> str:
    return str(found["metadata"]["resourceVersion"])


async def list_version(cluster: Cluster, plural: str = "configmaps") -> str:
    return version_of((await cluster.client.get(cluster.path(plural))).expect(200))


async def test_a_watch_from_a_list_sees_every_later_change_in_order(cluster: Cluster) -> None:
    path, start = cluster.path("configmaps"), await list_version(cluster)
    async with cluster.client.watch(path, resourceVersion=start) as watch:
        await cluster.create("configmaps", config_map("one"))
        (await cluster.client.patch(f"{path}/one", {"data": {"a": "1"}}, MERGE)).expect(200)
        (await cluster.client.delete(f"{path}/one")).expect(200)
        events = [await watch.next() for _ in range(3)]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(version_of(event["object"])) for event in events]
    assert versions == sorted(set(versions))
    assert versions[0] > int(start)
    assert events[1]["object"]["data"] == {"a": "1"}
    assert events[0]["object"]["kind"] == "ConfigMap"


async def test_a_watch_resumed_from_an_event_sees_only_what_came_after_it(cluster: Cluster) -> None:
    path = cluster.path("configmaps")
    first = await cluster.create("configmaps", config_map("first"))
    await cluster.create("configmaps", config_map("second"))
    (await cluster.client.delete(f"{path}/first")).expect(200)
    async with cluster.client.watch(path, resourceVersion=version_of(first)) as watch:
        assert await watch.names(2) == [("ADDED", "second"), ("DELETED", "first")]


async def test_a_watch_without_a_version_begins_with_what_is_there(cluster: Cluster) -> None:
    await cluster.create("leases", _lease("here"), group="coordination.k8s.io")
    async with cluster.client.watch(cluster.path("leases", group="coordination.k8s.io")) as watch:
        assert await watch.names(1) == [("ADDED", "here")]
        await cluster.create("leases", _lease("there"), group="coordination.k8s.io")
        assert await watch.names(1) == [("ADDED", "there")]


def _lease(name: str) -> Object:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": {}}


async def test_an_object_that_leaves_the_selection_is_deleted_for_the_watcher(cluster: Cluster) -> None:
    path, start = cluster.path("pods"), await list_version(cluster, "pods")
    async with cluster.client.watch(path, resourceVersion=start, fieldSelector="spec.nodeName=") as watch:
        await cluster.create("pods", a_pod("p"))
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "p"},
            "target": {"kind": "Node", "name": "n"},
        }
        (await cluster.client.post(f"{path}/p/binding", body)).expect(201)
        assert (await watch.next())["type"] == "ADDED"
        left = await watch.until("DELETED")
    assert "nodeName" not in left["object"]["spec"]
    # The event shows the object as it was when it still belonged, at the version of the change that took it out.
    assert left["object"]["metadata"]["name"] == "p"
    assert version_of(left["object"]) == version_of(await cluster.read("pods", "p"))


async def test_a_pod_that_is_bound_leaves_one_watch_and_enters_the_other(cluster: Cluster) -> None:
    """The two selections that share all unfinished pods between them."""
    unfinished = "status.phase!=Succeeded,status.phase!=Failed"
    path, start = cluster.path("pods"), await list_version(cluster, "pods")
    async with (
        cluster.client.watch(path, resourceVersion=start, fieldSelector=f"spec.nodeName=,{unfinished}") as free,
        cluster.client.watch(path, resourceVersion=start, fieldSelector=f"spec.nodeName!=,{unfinished}") as placed,
    ):
        await cluster.create("pods", a_pod("p"))
        (await cluster.client.post(f"{path}/p/binding", binding("p", "n"))).expect(201)
        for phase in ("Running", "Succeeded"):
            (await cluster.client.patch(f"{path}/p/status", {"status": {"phase": phase}}, STRATEGIC)).expect(200)
        assert await free.names(2) == [("ADDED", "p"), ("DELETED", "p")]
        entered, changed, left = [await placed.next() for _ in range(3)]
    assert [each["type"] for each in (entered, changed, left)] == ["ADDED", "MODIFIED", "DELETED"]
    assert entered["object"]["spec"]["nodeName"] == "n"
    assert left["object"]["status"]["phase"] == "Running"


@pytest.mark.parametrize(("bound", "steps"), [(False, []), (True, [30])])
async def test_a_pod_is_seen_dying_before_it_is_gone(cluster: Cluster, bound: bool, steps: list[int]) -> None:
    """Also where no time lies between the two: the mark is a change of its own."""
    path = cluster.path("pods")
    made = await cluster.create("pods", a_pod("p"))
    if bound:
        (await cluster.client.post(f"{path}/p/binding", binding("p", "n"))).expect(201)
        made = await cluster.read("pods", "p")
    async with cluster.client.watch(path, resourceVersion=version_of(made)) as watch:
        for _ in steps:
            (await cluster.client.delete(f"{path}/p")).expect(200)
        gone = (await cluster.client.delete(f"{path}/p", {"gracePeriodSeconds": 0})).expect(200)
        events = [await watch.next() for _ in range(len(steps) + 2)]
    assert [each["type"] for each in events] == ["MODIFIED"] * (len(steps) + 1) + ["DELETED"]
    graces = [each["object"]["metadata"]["deletionGracePeriodSeconds"] for each in events]
    assert graces == [*steps, 0, 0]
    assert all(each["object"]["metadata"]["deletionTimestamp"] for each in events)
    assert gone["metadata"]["deletionGracePeriodSeconds"] == 0


@pytest.mark.parametrize("query", [{}, {"resourceVersion": 0}])
async def test_a_watch_from_nowhere_selects_what_it_begins_with(cluster: Cluster, query: dict[str, int]) -> None:
    for name in ("one", "two"):
        await cluster.create("pods", a_pod(name))
    path = cluster.path("pods")
    async with cluster.client.watch(path, fieldSelector="metadata.name=two", **query) as watch:
        assert await watch.names(1) == [("ADDED", "two")]
        (await cluster.client.patch(f"{path}/two", {"metadata": {"labels": {"a": "b"}}}, MERGE)).expect(200)
        assert await watch.names(1) == [("MODIFIED", "two")]


async def test_the_path_of_one_object_is_not_watched(cluster: Cluster) -> None:
    await cluster.create("configmaps", config_map("one"))
    found = (await cluster.client.get(cluster.path("configmaps", "one"), watch=True)).expect(200)
    assert found["metadata"]["name"] == "one"


@pytest.mark.parametrize("query", [{"fieldSelector": "spec.containers=x"}, {"labelSelector": "a b"}, {"timeoutSeconds": "x"}])
async def test_a_watch_that_makes_no_sense_is_refused(cluster: Cluster, query: dict[str, str]) -> None:
    assert (await cluster.client.get(cluster.path("pods"), watch=True, **query)).refused(400, "BadRequest")


async def test_an_object_that_enters_the_selection_is_added_for_the_watcher(cluster: Cluster) -> None:
    path, start = cluster.path("configmaps"), await list_version(cluster)
    async with cluster.client.watch(path, resourceVersion=start, labelSelector="app=web") as watch:
        await cluster.create("configmaps", config_map("other"))
        await cluster.create("configmaps", config_map("web"))
        (await cluster.client.patch(f"{path}/web", {"metadata": {"labels": {"app": "web"}}}, MERGE)).expect(200)
        assert await watch.names(1) == [("ADDED", "web")]


async def test_a_watch_hears_of_its_namespace_only(cluster: Cluster) -> None:
    path, start = cluster.path("configmaps"), await list_version(cluster)
    async with cluster.client.watch(path, resourceVersion=start) as watch:
        name = cluster.unique("elsewhere")
        (await cluster.client.post("/api/v1/namespaces/default/configmaps", config_map(name))).expect(201)
        (await cluster.client.delete(f"/api/v1/namespaces/default/configmaps/{name}")).expect(200)
        await cluster.create("configmaps", config_map("here"))
        assert await watch.names(1) == [("ADDED", "here")]


async def test_a_watch_of_one_name_hears_of_that_name_only(cluster: Cluster) -> None:
    path, start = cluster.path("configmaps"), await list_version(cluster)
    async with cluster.client.watch(path, resourceVersion=start, fieldSelector="metadata.name=two") as watch:
        await cluster.create("configmaps", config_map("one"))
        await cluster.create("configmaps", config_map("two"))
        assert await watch.names(1) == [("ADDED", "two")]


async def test_bookmarks_carry_a_version_to_resume_from(cluster: Cluster) -> None:
    path, start = cluster.path("configmaps"), await list_version(cluster)
    # A real server sends one two seconds before the timeout, or each minute.
    async with cluster.client.watch(path, resourceVersion=start, allowWatchBookmarks=True, timeoutSeconds=5) as watch:
        await cluster.create("configmaps", config_map("one"))
        added = await watch.next()
        cluster.provoke_bookmarks()
        bookmark = await watch.until("BOOKMARK")
    assert int(version_of(bookmark["object"])) >= int(version_of(added["object"]))
    assert bookmark["object"]["kind"] == "ConfigMap"
    assert not bookmark["object"]["metadata"].get("name")
    await cluster.create("configmaps", config_map("two"))
    async with cluster.client.watch(path, resourceVersion=version_of(bookmark["object"])) as watch:
        assert await watch.names(1) == [("ADDED", "two")]


async def test_a_watch_ends_at_its_timeout_without_an_error(cluster: Cluster) -> None:
    path, start = cluster.path("configmaps"), await list_version(cluster)
    async with cluster.client.watch(path, resourceVersion=start, timeoutSeconds=1) as watch:
        assert await watch.next_or_end() is None


async def test_a_watch_list_begins_with_the_present_state_and_says_when_it_is_complete(cluster: Cluster) -> None:
    cluster.needs(34, "sendInitialEvents by default")
    await cluster.create("leases", _lease("here"), group="coordination.k8s.io")
    options = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": True}
    async with cluster.client.watch(cluster.path("leases", group="coordination.k8s.io"), **options) as watch:
        if not cluster.tells_progress:
            refused = (await watch.next())["object"]
            assert (refused["code"], refused["reason"]) == (500, "InternalError")
            assert "RequestWatchProgress" in refused["message"]
            return
        assert await watch.names(1) == [("ADDED", "here")]
        complete = await watch.until("BOOKMARK")
    assert complete["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_a_watch_list_may_begin_without_the_present_state(cluster: Cluster) -> None:
    cluster.needs(34, "sendInitialEvents by default")
    await cluster.create("configmaps", config_map("before"))
    start = await list_version(cluster)
    options = {"sendInitialEvents": False, "resourceVersionMatch": "NotOlderThan", "resourceVersion": start}
    async with cluster.client.watch(cluster.path("configmaps"), **options) as watch:
        await cluster.create("configmaps", config_map("after"))
        assert await watch.names(1) == [("ADDED", "after")]


async def test_a_watch_list_without_a_version_match_is_refused(cluster: Cluster) -> None:
    cluster.needs(34, "sendInitialEvents by default")
    answer = await cluster.client.get(cluster.path("configmaps"), watch=True, sendInitialEvents=True)
    assert "resourceVersionMatch" in answer.refused(422, "Invalid")


async def test_a_watch_from_a_compacted_version_gets_410(cluster: Cluster) -> None:
    if cluster.compact is None:
        not_on_this_server("it cannot be told to compact its history")
    old = await list_version(cluster)
    await cluster.create("configmaps", config_map("one"))
    await cluster.create("configmaps", config_map("two"))
    cluster.compact()
    async with cluster.client.watch(cluster.path("configmaps"), resourceVersion=old) as watch:
        assert watch.status == 200  # the first event says it, not the answer
        event = await watch.next()
        assert event["type"] == "ERROR"
        assert (event["object"]["kind"], event["object"]["status"]) == ("Status", "Failure")
        assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
        assert event["object"]["message"].startswith("too old resource version: ")
        assert await watch.next_or_end() is None
    fresh = (await cluster.client.get(cluster.path("configmaps"))).expect(200)
    async with cluster.client.watch(cluster.path("configmaps"), resourceVersion=version_of(fresh)) as watch:
        await cluster.create("configmaps", config_map("three"))
        assert await watch.names(1) == [("ADDED", "three")]


async def test_a_watch_from_a_version_that_is_no_number_is_refused(cluster: Cluster) -> None:
    why = 'resourceVersion: Invalid value: "yesterday": strconv.ParseUint: parsing "yesterday": invalid syntax'
    answer = await cluster.client.get(cluster.path("configmaps"), watch=True, resourceVersion="yesterday")
    assert answer.refused(500) == why
    assert "reason" not in answer.body
    listed = await cluster.client.get(cluster.path("configmaps"), resourceVersion="yesterday")
    await cluster.create("configmaps", config_map("one"))
    one = await cluster.client.get(cluster.path("configmaps", "one"), resourceVersion="yesterday")
    assert one.refused(500) == why
    if cluster.minor == 20:
        assert listed.refused(500) == why
    else:
        assert listed.refused(400, "BadRequest") == f"invalid resource version: {why}"


async def test_a_deleted_object_is_shown_at_the_version_of_its_deletion(cluster: Cluster) -> None:
    path = cluster.path("configmaps")
    made = await cluster.create("configmaps", config_map("one", {"a": "1"}))
    async with cluster.client.watch(path, resourceVersion=version_of(made)) as watch:
        (await cluster.client.delete(f"{path}/one")).expect(200)
        gone = await watch.next()
    assert gone["type"] == "DELETED"
    assert gone["object"]["data"] == {"a": "1"}
    assert int(version_of(gone["object"])) > int(version_of(made))
