"""Events: what a scheduler writes about its decisions, in the new API, and what is refused there."""

from __future__ import annotations

import pytest

from contract.client import MERGE, Object
from contract.cluster import Cluster

NEW = "events.k8s.io"
TIME = "2026-01-01T00:00:00.123456Z"


def event(cluster: Cluster, name: str = "it", **more: object) -> Object:
    """As kube-scheduler writes it."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": cluster.namespace},
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": cluster.namespace, "name": "p", "uid": "u"},
        "eventTime": TIME,
        "reportingController": "contract",
        "reportingInstance": "contract-1",
        "action": "Scheduling",
        "type": "Warning",
        "reason": "FailedScheduling",
        "note": "0/1 nodes are available",
        **more,
    }


def old_event(cluster: Cluster, name: str, **more: object) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": cluster.namespace, "name": "p"},
        "type": "Normal",
        "reason": "Scheduled",
        "message": "all is well",
        "source": {"component": "contract"},
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "count": 1,
        **more,
    }


async def test_an_event_shows_in_both_apis_under_the_names_of_each(cluster: Cluster) -> None:
    made = await cluster.create("events", event(cluster), group=NEW)
    assert (made["eventTime"], made["note"]) == (TIME, "0/1 nodes are available")
    core = await cluster.read("events", "it")
    assert core["involvedObject"] == made["regarding"]
    assert (core["message"], core["reportingComponent"]) == (made["note"], "contract")
    await cluster.create("events", old_event(cluster, "older"))
    new = await cluster.read("events", "older", group=NEW)
    assert (new["note"], new["deprecatedCount"], new["deprecatedSource"]) == (
        "all is well",
        1,
        {"component": "contract"},
    )


async def test_a_repetition_is_patched_into_the_series(cluster: Cluster) -> None:
    await cluster.create("events", event(cluster), group=NEW)
    for count in (2, 3):
        series = {"count": count, "lastObservedTime": f"2026-01-01T00:00:0{count}.000000Z"}
        path = cluster.path("events", "it", group=NEW)
        found = (await cluster.client.patch(path, {"series": series}, MERGE)).expect(200)
        assert found["series"] == series
    assert (await cluster.read("events", "it"))["series"]["count"] == 3


async def test_a_repetition_of_an_event_that_is_gone_is_not_found(cluster: Cluster) -> None:
    answer = await cluster.client.patch(cluster.path("events", "gone", group=NEW), {"series": None}, MERGE)
    assert answer.refused(404, "NotFound") == 'events.events.k8s.io "gone" not found'


@pytest.mark.parametrize("field", ["eventTime", "reportingController", "reportingInstance", "action", "reason", "type"])
async def test_an_event_of_the_new_api_that_says_too_little_is_refused(cluster: Cluster, field: str) -> None:
    body = event(cluster)
    del body[field]
    message = (await cluster.client.post(cluster.path("events", group=NEW), body)).refused(422, "Invalid")
    assert f"{field}: " in message


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("note", "x" * 1025),
        ("note", "é" * 513),
        ("reason", "x" * 129),
        ("action", "x" * 129),
        ("reportingInstance", "x" * 129),
        ("type", "Odd"),
        ("deprecatedCount", 2),
        ("series", {"count": 1, "lastObservedTime": TIME}),
        ("series", {"count": 2}),
    ],
)
async def test_an_event_of_the_new_api_that_says_too_much_is_refused(cluster: Cluster, field: str, value: object) -> None:
    body = event(cluster, **{field: value})
    assert (await cluster.client.post(cluster.path("events", group=NEW), body)).refused(422, "Invalid")


async def test_the_longest_note_is_counted_in_bytes(cluster: Cluster) -> None:
    made = await cluster.create("events", event(cluster, note="é" * 512), group=NEW)
    assert made["note"] == "é" * 512


async def test_the_time_of_an_event_has_microseconds(cluster: Cluster) -> None:
    body = event(cluster, eventTime="2026-01-01T00:00:00Z")
    assert (await cluster.client.post(cluster.path("events", group=NEW), body)).refused(400, "BadRequest")


async def test_an_event_about_an_object_of_no_namespace_lives_in_the_default_one(cluster: Cluster) -> None:
    """As events about profiles do: without `eventTime`, which would have sent them to kube-system in 1.20."""
    about = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "name": "it"}
    here = old_event(cluster, "it", involvedObject=about)
    message = (await cluster.client.post(cluster.path("events"), here)).refused(422, "Invalid")
    assert "involvedObject.namespace: Invalid value" in message
    there = old_event(cluster, cluster.unique("it"), involvedObject=about)
    path = "/api/v1/namespaces/default/events"
    (await cluster.client.post(path, there)).expect(201)
    (await cluster.client.delete(f"{path}/{there['metadata']['name']}")).expect(200)
    timed = {
        **there,
        "eventTime": TIME,
        "reportingComponent": "contract",
        "reportingInstance": "c-1",
        "action": "Reload",
    }
    answer = await cluster.client.post(path, timed)
    if cluster.minor == 20:
        assert "involvedObject.namespace" in answer.refused(422, "Invalid")
    else:
        answer.expect(201)
        (await cluster.client.delete(f"{path}/{there['metadata']['name']}")).expect(200)


async def test_events_are_selected_by_their_object_and_reason(cluster: Cluster) -> None:
    await cluster.create("events", event(cluster), group=NEW)
    await cluster.create("events", old_event(cluster, "older"))

    async def selected(selector: str, group: str = "") -> list[str]:
        found = (await cluster.client.get(cluster.path("events", group=group), fieldSelector=selector)).expect(200)
        return sorted(item["metadata"]["name"] for item in found["items"])

    assert await selected("involvedObject.kind=Pod,involvedObject.name=p") == ["it", "older"]
    assert await selected("involvedObject.uid=u") == ["it"]
    assert await selected("reason=FailedScheduling,type=Warning", NEW) == ["it"]
    assert await selected("involvedObject.name=p,source=contract") == ["it", "older"]
    assert await selected("regarding.name=p,reportingController=contract", NEW) == ["it"]
