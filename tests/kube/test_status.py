from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from fake_api import FakeApi, answer, hang_up, refuse
from msgspec.structs import replace
from pods import a_pod, pod_json

from kubesandbox.server import Sandbox
from placewright.api.decode import convert, decode
from placewright.api.errors import EvictError
from placewright.api.givenup import GIVEN_UP, given_up_condition, placed_condition
from placewright.api.objects import NodeName, Pod
from placewright.api.pods import PodInfo, held_bytes
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import RetryBackoff
from placewright.kube.profiles import apply_status
from placewright.kube.writers.binder import HttpBinder
from placewright.kube.writers.evictor import HttpEvictor
from placewright.kube.writers.podstatus import HttpStatusWriter

STATUS = "PATCH /api/v1/namespaces/shop/pods/web/status"
POD = "GET /api/v1/namespaces/shop/pods/web"
DELETE = "DELETE /api/v1/namespaces/shop/pods/web"
OK = answer({})
NOON = datetime(2030, 1, 2, 12, 0, 0, tzinfo=UTC)
SAID = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available",
    "lastTransitionTime": "2029-05-05T05:05:05Z",
}


class Office:
    """A fake server, and writers whose waits take no time."""

    def __init__(self, api: FakeApi, client: ApiClient) -> None:
        self.api = api
        self.client = client
        self.quick = RetryBackoff(0.1, 0.1)
        self.active = True

    def writer(self, **options: Any) -> HttpStatusWriter:
        return HttpStatusWriter(self.client, backoff=self.quick, utc_now=lambda: NOON, sleep=self._sleep, **options)

    def evictor(self) -> HttpEvictor:
        return HttpEvictor(self.client, lambda: self.active, backoff=self.quick, utc_now=lambda: NOON, sleep=self._sleep)

    async def _sleep(self, _: float) -> None:
        return

    @property
    def patches(self) -> list[Any]:
        return [one.body for one in self.api.asked("PATCH")]


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    async with FakeApi() as api, api.client() as client:
        yield Office(api, client)


def unschedulable(writer: HttpStatusWriter, info: Any, nominated: str | None = None, message: str = "0/3 nodes are available") -> None:
    writer.pod_unscheduled(info, "Unschedulable", message, None if nominated is None else NodeName(nominated))


async def test_the_condition_is_written_as_a_strategic_merge_with_the_pods_uid(office: Office) -> None:
    office.api.on(STATUS, OK)
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod("web", uid="u-1", generation=4), "node-7")
    await writer.close()
    (request,) = office.api.asked("PATCH")
    assert request.headers["Content-Type"] == "application/strategic-merge-patch+json"
    condition = SAID | {"lastTransitionTime": "2030-01-02T12:00:00Z", "observedGeneration": 4}
    assert request.body["metadata"] == {"uid": "u-1", "resourceVersion": "1"}
    assert request.body["status"] == {"conditions": [condition], "nominatedNodeName": "node-7"}


async def test_nothing_is_written_when_the_pod_says_it_already(office: Office) -> None:
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod(conditions=[SAID], nominatedNodeName="node-7"), "node-7")
    unschedulable(writer, a_pod("other", conditions=[SAID]))
    await writer.close()
    assert office.patches == [] and writer.counts.unchanged == 2


async def test_nothing_is_written_twice_while_our_copy_of_the_pod_is_old(office: Office) -> None:
    office.api.on(STATUS, OK)
    writer = office.writer()
    writer.start()
    stale = a_pod()
    unschedulable(writer, stale, "node-7")
    await writer.idle.wait()
    unschedulable(writer, stale, "node-7")
    unschedulable(writer, stale)
    await writer.close()
    assert len(office.patches) == 1


async def test_somebody_elses_change_to_the_condition_is_seen_by_the_pods_new_version(office: Office) -> None:
    office.api.on(STATUS, OK)
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod(version="1"))
    await writer.idle.wait()
    unschedulable(writer, a_pod(version="2", conditions=[SAID | {"message": "somebody wrote this"}]))
    await writer.close()
    assert len(office.patches) == 2


async def test_the_transition_time_is_kept_when_only_the_message_changes_and_new_when_the_status_flips(office: Office) -> None:
    office.api.on(STATUS, OK)
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod(conditions=[SAID | {"message": "old"}]))
    await writer.idle.wait()
    unschedulable(writer, a_pod(uid="second", conditions=[SAID | {"status": "True"}]))
    await writer.close()
    times = [body["status"]["conditions"][0]["lastTransitionTime"] for body in office.patches]
    assert times == ["2029-05-05T05:05:05Z", "2030-01-02T12:00:00Z"]


async def test_a_nomination_is_left_cleared_or_set(office: Office) -> None:
    office.api.on(STATUS, OK)
    writer = office.writer()
    for nominated in (None, "", "node-8"):
        writer.start()
        unschedulable(writer, a_pod(uid=f"u-{nominated}", conditions=[SAID], nominatedNodeName="node-7"), nominated)
        await writer.close()
    assert [body["status"] for body in office.patches] == [{"nominatedNodeName": None}, {"nominatedNodeName": "node-8"}]


async def test_a_nomination_is_cleared_alone_or_with_what_is_to_be_said_anyway(office: Office) -> None:
    office.api.on(STATUS, OK)
    writer = office.writer()
    alone, beside = a_pod(uid="u-1", conditions=[SAID], nominatedNodeName="node-7"), a_pod("other", uid="u-2", nominatedNodeName="node-7")
    writer.pod_nominated(alone, NodeName(""))
    unschedulable(writer, beside, "node-8", "no room")
    writer.pod_nominated(beside, NodeName(""))
    writer.start()
    await writer.close()
    first, second = (body["status"] for body in office.patches)
    assert first == {"nominatedNodeName": None}
    assert second["nominatedNodeName"] is None and second["conditions"][0]["message"] == "no room"


async def test_a_nomination_of_a_pod_without_a_condition_ends_with_its_failure(office: Office) -> None:
    """The decision has seen the pod without a nomination. Its failure comes before the watch shows the one that was written."""
    office.api.on(STATUS, answer({"metadata": {"resourceVersion": "8"}, "status": {"nominatedNodeName": "node-7"}}))
    writer, info = office.writer(), a_pod(uid="u-1")
    writer.start()
    writer.pod_nominated(info, NodeName("node-7"))
    await writer.settled(5.0)
    unschedulable(writer, info, "")
    await writer.close()
    assert [body["status"].get("nominatedNodeName", "-") for body in office.patches] == ["node-7", None]


async def test_only_the_latest_verdict_about_a_pod_is_written_and_keeps_a_nomination_that_waits(office: Office) -> None:
    office.api.on(STATUS, OK)
    writer = office.writer()
    unschedulable(writer, a_pod(), "node-7", "first")
    unschedulable(writer, a_pod(), None, "second")
    unschedulable(writer, a_pod(), None, "third")
    writer.start()
    await writer.close()
    (body,) = office.patches
    assert body["status"]["conditions"][0]["message"] == "third" and body["status"]["nominatedNodeName"] == "node-7"
    assert writer.counts.overtaken == 2


async def test_of_pods_that_wait_to_be_told_no_more_is_kept_than_what_is_to_be_written(office: Office) -> None:
    writer = office.writer()
    meta = {"annotations": {"a": "x" * 200_000}, "labels": {f"label-{number}": "x" for number in range(1000)}}
    large = convert(pod_json() | {"metadata": pod_json()["metadata"] | meta}, Pod)
    for number in range(1500):
        info = PodInfo(replace(large, metadata=replace(large.metadata, name=f"web-{number}", uid=str(number))))
        unschedulable(writer, info, message="0/3 nodes are available: " + "x" * 50_000)
    assert len(writer.waiting) == 1500
    assert held_bytes(large) > 1_000_000
    verdicts = list(writer.waiting.values())
    assert max(held_bytes(verdict.pod) for verdict in verdicts) < 4096
    assert sum(len(verdict.message) for verdict in verdicts) < 500 * 32_768 + 1000 * 2048 + 1


async def test_two_writes_about_one_pod_do_not_overtake_each_other(office: Office) -> None:
    under_way = 0

    async def slow(_: web.Request) -> web.StreamResponse:
        nonlocal under_way
        under_way += 1
        assert under_way == 1
        await office.api.open.wait()
        under_way -= 1
        return web.json_response({})

    office.api.on(STATUS, slow)
    writer = office.writer(workers=3)
    writer.start()
    unschedulable(writer, a_pod(), message="one")
    await office.api.until_asked("PATCH")
    unschedulable(writer, a_pod(), message="two")
    office.api.open.set()
    await writer.close()
    assert [body["status"]["conditions"][0]["message"] for body in office.patches] == ["one", "two"]


@pytest.mark.parametrize("status", [404, 409])
async def test_a_pod_that_is_gone_or_replaced_is_dropped_without_a_word(
    office: Office, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    office.api.on(STATUS, refuse(status))
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod())
    await writer.close()
    assert writer.counts.vanished == 1 and len(office.patches) == 1 and caplog.messages == []


async def test_of_a_pod_that_got_a_node_meanwhile_nothing_is_said(office: Office) -> None:
    office.api.on(STATUS, refuse(409))
    office.api.on(POD, answer(pod_json(node="node-1", version="2")))
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod())
    await writer.close()
    assert writer.counts.vanished == 1 and len(office.patches) == 1


async def test_a_pod_that_changed_and_still_waits_is_told_of_in_its_new_version(office: Office) -> None:
    office.api.on(STATUS, refuse(409), OK)
    office.api.on(POD, answer(pod_json(version="2")))
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod())
    await writer.close()
    assert [body["metadata"]["resourceVersion"] for body in office.patches] == ["1", "2"]
    assert writer.counts.written == 1


async def test_a_pod_that_keeps_changing_is_given_up(office: Office) -> None:
    office.api.on(STATUS, refuse(409))
    office.api.on(POD, answer(pod_json(version="2")))
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod())
    await writer.close()
    assert len(office.patches) == 5 and writer.counts.failed == 1


async def test_what_we_wrote_ourselves_is_no_change_by_somebody(office: Office) -> None:
    office.api.on(STATUS, answer(pod_json(version="7")))
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod(version="1"), message="one")
    await writer.idle.wait()
    unschedulable(writer, a_pod(version="1"), message="two")
    await writer.close()
    assert [body["metadata"]["resourceVersion"] for body in office.patches] == ["1", "7"]


async def test_on_a_server_a_pod_that_was_bound_meanwhile_stays_scheduled() -> None:
    async with Sandbox() as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
        path = "/api/v1/namespaces/default/pods"
        unbound = await client.post(path, {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        await client.post(f"{path}/web/binding", {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "node-1"}})
        writer = HttpStatusWriter(client)
        writer.start()
        writer.pod_unscheduled(PodInfo(decode(unbound, Pod)), "Unschedulable", "no node", None)
        await writer.close()
        found = await client.get_as(f"{path}/web", Pod)
    assert [(one.type, one.status) for one in found.status.conditions or () if one.type == "PodScheduled"] == [("PodScheduled", "True")]


# --- when another replica leads --------------------------------------------------------------------------------------------------

NEWER = SAID | {"message": "what the next leader found"}


@pytest.mark.parametrize(
    "newer",
    [
        {"conditions": [NEWER]},
        {"conditions": [NEWER], "nominatedNodeName": "node-9"},
        {"conditions": [SAID], "nominatedNodeName": "node-9"},
        {"conditions": [SAID | {"reason": "SchedulerError"}]},
        {},
    ],
)
async def test_what_is_late_does_not_overwrite_what_another_replica_has_said_since(office: Office, newer: dict[str, Any]) -> None:
    office.api.on(STATUS, refuse(409))
    office.api.on(POD, answer(pod_json(version="7", **newer)))
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod(version="1", conditions=[SAID]), "node-7", "what the former leader found")
    await writer.close()
    assert len(office.patches) == 1 and (writer.counts.vanished, writer.counts.written) == (1, 0)


@pytest.mark.parametrize("said", [{}, {"conditions": [SAID]}, {"conditions": [SAID], "nominatedNodeName": "node-3"}])
async def test_a_pod_that_changed_in_something_else_is_told_of(office: Office, said: dict[str, Any]) -> None:
    office.api.on(STATUS, refuse(409), OK)
    office.api.on(POD, answer(pod_json(version="7", phase="Pending", **said)))
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod(version="1", **said), "node-7", "news")
    await writer.close()
    assert [body["metadata"]["resourceVersion"] for body in office.patches] == ["1", "7"] and writer.counts.written == 1


async def test_what_we_wrote_last_is_what_we_know_whatever_copy_we_decided_by(office: Office) -> None:
    ours = SAID | {"lastTransitionTime": "2030-01-02T12:00:00Z", "message": "one"}
    office.api.on(STATUS, answer(pod_json(version="5")), refuse(409), OK)
    office.api.on(POD, answer(pod_json(version="6", conditions=[ours], nominatedNodeName="node-7")))
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod(version="1"), "node-7", "one")
    await writer.idle.wait()
    unschedulable(writer, a_pod(version="2"), None, "two")
    await writer.close()
    assert [body["metadata"]["resourceVersion"] for body in office.patches] == ["1", "2", "6"] and writer.counts.written == 2


async def test_a_nomination_that_was_left_is_still_known_and_so_it_can_be_cleared(office: Office) -> None:
    office.api.on(STATUS, answer(pod_json(version="5")))
    writer = office.writer()
    writer.start()
    for nominated, message in (("node-7", "one"), (None, "two"), ("", "three")):
        unschedulable(writer, a_pod(version="1"), nominated, message)
        await writer.idle.wait()
    await writer.close()
    assert [body["status"].get("nominatedNodeName", "left") for body in office.patches] == ["node-7", "left", None]


async def test_a_write_whose_answer_got_lost_counts_as_written(office: Office) -> None:
    applied = SAID | {"lastTransitionTime": "2030-01-02T12:00:00Z", "message": "one"}
    office.api.on(STATUS, hang_up(), refuse(409))
    office.api.on(POD, answer(pod_json(version="2", conditions=[applied], nominatedNodeName="node-7")))
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod(version="1"), "node-7", "one")
    await writer.close()
    assert len(office.patches) == 2 and writer.counts.written == 1


async def test_what_waits_at_the_end_of_a_term_is_not_written(office: Office) -> None:
    office.api.on(STATUS, OK)
    writer = office.writer()
    unschedulable(writer, a_pod())
    unschedulable(writer, a_pod("other"))
    writer.end_term()
    writer.start()
    await writer.close()
    assert office.patches == [] and writer.counts.dropped == 2


async def test_who_is_not_the_active_replica_writes_nothing(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    office.api.on(STATUS, OK)
    writer = HttpStatusWriter(office.client, lambda: office.active)
    writer.start()
    office.active = False
    unschedulable(writer, a_pod())
    await writer.close()
    assert office.patches == [] and writer.counts.dropped == 1 and caplog.messages == []


async def test_a_write_that_waits_to_be_sent_again_is_not_sent_after_the_term(office: Office) -> None:
    def lost() -> None:
        office.active = False

    office.api.on(STATUS, hang_up(lost), OK)
    writer = HttpStatusWriter(office.client, lambda: office.active, backoff=office.quick, sleep=office._sleep)
    writer.start()
    unschedulable(writer, a_pod())
    await writer.close()
    assert len(office.patches) == 1 and writer.counts.dropped == 1


async def test_a_busy_server_is_tried_again(office: Office) -> None:
    office.api.on(STATUS, refuse(429), refuse(500), hang_up(), OK)
    writer = office.writer()
    writer.start()
    unschedulable(writer, a_pod())
    await writer.close()
    assert writer.counts.written == 1


async def test_on_a_server_other_conditions_of_the_pod_stay() -> None:
    async with Sandbox() as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
        path = "/api/v1/namespaces/default/pods"
        await client.post(path, {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        other = {"type": "example.com/Other", "status": "True"}
        raw = await client.patch(f"{path}/web/status", {"status": {"conditions": [other]}})
        writer = HttpStatusWriter(client)
        writer.start()
        writer.pod_unscheduled(PodInfo(decode(raw, Pod)), "Unschedulable", "no node", NodeName("node-1"))
        await writer.close()
        found = await client.get_as(f"{path}/web", Pod)
    assert {one.type: one.status for one in found.status.conditions or ()} == {"example.com/Other": "True", "PodScheduled": "False"}
    assert found.status.nominated_node_name == "node-1"


async def test_on_a_server_a_namesake_is_left_alone_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async with Sandbox() as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
        path = "/api/v1/namespaces/default/pods"
        body = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        gone = await client.post(path, body)
        await client.delete(f"{path}/web")
        await client.post(path, body)
        writer = HttpStatusWriter(client)
        writer.start()
        writer.pod_unscheduled(PodInfo(decode(gone, Pod)), "Unschedulable", "no node", NodeName("node-1"))
        await writer.close()
        await HttpEvictor(client, lambda: True).evict(PodInfo(decode(gone, Pod)), a_pod("important"), NodeName("node-1"))
        found = await client.get_as(f"{path}/web", Pod)
    assert writer.counts.vanished == 1 and writer.counts.failed == 0 and caplog.messages == []
    assert not found.status.conditions and not found.status.nominated_node_name


async def test_a_victim_is_marked_and_then_deleted_by_uid(office: Office) -> None:
    office.api.on(STATUS, OK)
    office.api.on(DELETE, OK)
    await office.evictor().evict(a_pod("web", uid="u-1", generation=2), a_pod("important"), NodeName("node-1"))
    mark, deletion = office.api.requests
    assert mark.body["metadata"] == {"uid": "u-1"}
    assert mark.body["status"]["conditions"] == [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "placewright: preempting to accommodate a higher priority pod",
            "lastTransitionTime": "2030-01-02T12:00:00Z",
            "observedGeneration": 2,
        }
    ]
    assert deletion.method == "DELETE" and deletion.body["preconditions"] == {"uid": "u-1"}


async def test_a_victim_of_a_group_is_told_that_it_was_a_group(office: Office) -> None:
    office.api.on(STATUS, OK)
    office.api.on(DELETE, OK)
    member = convert({"metadata": {"name": "m"}, "spec": {"schedulerName": "s", "schedulingGroup": {"podGroupName": "g"}}}, Pod)
    await office.evictor().evict(a_pod("web", uid="u-1"), PodInfo(member), NodeName("node-1"))
    (condition,) = office.api.requests[0].body["status"]["conditions"]
    assert condition["message"] == "s: preempting to accommodate a higher priority podgroup"


@pytest.mark.parametrize("gone", [404, 409])
async def test_a_victim_that_is_gone_or_replaced_is_fine(office: Office, gone: int) -> None:
    office.api.on(STATUS, refuse(gone))
    office.api.on(DELETE, refuse(gone))
    await office.evictor().evict(a_pod(), a_pod("important"), NodeName("node-1"))
    methods = [request.method for request in office.api.requests]
    assert methods == ["PATCH", "DELETE"], "what is gone is not asked for twice"


async def test_an_eviction_survives_a_busy_server(office: Office) -> None:
    office.api.on(STATUS, refuse(503), OK)
    office.api.on(DELETE, hang_up(), refuse(429), OK)
    await office.evictor().evict(a_pod(), a_pod("important"), NodeName("node-1"))
    assert len(office.api.asked("DELETE")) == 3


async def test_an_eviction_that_fails_is_said(office: Office) -> None:
    office.api.on(STATUS, refuse(403, "Forbidden"))
    with pytest.raises(EvictError, match="shop/web: 403 Forbidden"):
        await office.evictor().evict(a_pod(), a_pod("important"), NodeName("node-1"))
    assert office.api.asked("DELETE") == []


async def test_a_standby_evicts_nobody(office: Office) -> None:
    office.active = False
    with pytest.raises(EvictError, match="not the active one"):
        await office.evictor().evict(a_pod(), a_pod("important"), NodeName("node-1"))
    assert office.api.requests == []


async def test_a_profiles_status_is_applied_under_our_field_manager(office: Office) -> None:
    office.api.on("PATCH /apis/placewright.dev/v1alpha1/schedulingprofiles/batch/status", OK)
    await apply_status(office.client, "batch", {"activeGeneration": 3})
    (request,) = office.api.asked("PATCH")
    assert request.body == {
        "apiVersion": "placewright.dev/v1alpha1",
        "kind": "SchedulingProfile",
        "metadata": {"name": "batch"},
        "status": {"activeGeneration": 3},
    }
    assert request.query == {"fieldManager": "placewright", "force": "true"}
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"


# --- a condition beside PodScheduled ---------------------------------------------------------------------------------------------


OURS = {"type": GIVEN_UP, "status": "True", "reason": "WaitedTooLong", "message": "waited", "lastTransitionTime": "2029-05-05T05:05:05Z"}


async def written(office: Office, *news: Callable[[HttpStatusWriter], None]) -> list[Any]:
    """The bodies of the patches that news make a writer send, which all come before it begins."""
    office.api.on(STATUS, OK)
    writer = office.writer()
    for each in news:
        each(writer)
    writer.start()
    await writer.close()
    return office.patches


async def test_another_condition_goes_into_one_patch_with_a_verdict_that_waits(office: Office) -> None:
    mark = given_up_condition("waited")
    (body,) = await written(
        office,
        lambda writer: unschedulable(writer, a_pod(), message="first"),
        lambda writer: writer.pod_condition(a_pod(), mark),
        lambda writer: unschedulable(writer, a_pod(), message="second"),
    )
    assert [(each["type"], each["message"]) for each in body["status"]["conditions"]] == [("PodScheduled", "second"), (GIVEN_UP, "waited")]


async def test_another_condition_alone_leaves_pod_scheduled_as_it_is(office: Office) -> None:
    (body,) = await written(office, lambda writer: writer.pod_condition(a_pod(conditions=[SAID]), given_up_condition("waited")))
    ((condition),) = body["status"]["conditions"]
    assert condition == OURS | {"lastTransitionTime": "2030-01-02T12:00:00Z"}
    assert body["metadata"]["resourceVersion"] == "1"


async def test_another_condition_that_the_pod_has_is_not_written_and_its_time_stays_with_its_status(office: Office) -> None:
    has = a_pod(conditions=[SAID, OURS])
    assert await written(office, lambda writer: writer.pod_condition(has, given_up_condition("waited"))) == []
    (body,) = await written(office, lambda writer: writer.pod_condition(has, given_up_condition("waited longer")))
    assert body["status"]["conditions"][0]["lastTransitionTime"] == "2029-05-05T05:05:05Z"


async def test_a_pod_that_is_bound_meanwhile_loses_its_verdict_and_the_condition_asks_for_no_version(office: Office) -> None:
    (body,) = await written(
        office,
        lambda writer: unschedulable(writer, a_pod(conditions=[OURS])),
        lambda writer: writer.pod_condition(a_pod(conditions=[OURS]).on(NodeName("node-1")), placed_condition(NodeName("node-1"))),
    )
    assert body["metadata"] == {"uid": "uid-web"}
    assert [(each["type"], each["status"]) for each in body["status"]["conditions"]] == [(GIVEN_UP, "False")]


BINDING = "POST /api/v1/namespaces/shop/pods/web/binding"


@pytest.mark.parametrize("begun", [True, False], ids=["being written", "waiting"])
async def test_a_pod_is_bound_when_its_nomination_was_written_and_not_before(office: Office, begun: bool) -> None:
    arrived, answered = asyncio.Event(), asyncio.Event()

    async def slowly(_: web.Request) -> web.StreamResponse:
        arrived.set()
        await answered.wait()
        return web.json_response({})

    office.api.on(STATUS, slowly)
    office.api.on(BINDING, OK)
    writer, info = office.writer(), a_pod("web", uid="u-1")
    unschedulable(writer, info, "node-7")
    if begun:
        writer.start()
        await arrived.wait()
    binder = HttpBinder(office.client, lambda: True, before=writer.nomination_written)
    binding = asyncio.create_task(binder.bind(info, NodeName("node-7"), {}))
    if not begun:
        writer.start()
    await arrived.wait()
    assert not office.api.asked("POST")
    answered.set()
    await binding
    assert [request.method for request in office.api.requests] == ["PATCH", "POST"]
    await writer.close()


async def test_a_pod_without_a_nomination_under_way_is_bound_at_once(office: Office) -> None:
    office.api.on(BINDING, OK)
    writer, info = office.writer(), a_pod("web", uid="u-1")
    unschedulable(writer, info)  # a verdict alone; its writer is not even started
    unschedulable(writer, a_pod("other", uid="u-2"), "node-7")
    await HttpBinder(office.client, lambda: True, before=writer.nomination_written).bind(info, NodeName("node-7"), {})
    assert [request.method for request in office.api.requests] == ["POST"]


async def test_a_nomination_that_cannot_be_written_holds_a_binding_up_no_longer_than_a_second(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placewright.kube.writers.podstatus._NOMINATION_SECONDS", 0.01)
    office.api.on(BINDING, OK)
    writer, info = office.writer(), a_pod("web", uid="u-1")
    unschedulable(writer, info, "node-7")  # its writer is never started
    await HttpBinder(office.client, lambda: True, before=writer.nomination_written).bind(info, NodeName("node-7"), {})
    assert office.api.asked("POST")
