"""What becomes of groups is written into their objects: only what is new, only by who leads, and not against their own controller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from fake_api import FakeApi, answer, refuse

from placewright.api.decode import convert
from placewright.api.givenup import GIVEN_UP, given_up_condition
from placewright.api.podgroups import (
    FORM_OF,
    CompositePodGroup,
    CoschedulingPodGroup,
    GroupObject,
    GroupRef,
    NativePodGroup,
    PodGroup,
    pod_group_of,
)
from placewright.kube.client import ApiClient
from placewright.kube.errors import RetryBackoff
from placewright.kube.writers.podgroupstatus import (
    MOST_WAITING,
    PAUSE_SECONDS,
    GroupNews,
    HttpGroupStatusWriter,
)

NOON = datetime(2030, 1, 2, 12, 0, 0, tzinfo=UTC)
PATH = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/shop/podgroups/train/status"
NATIVE = "/apis/scheduling.k8s.io/{}/namespaces/shop/podgroups/train/status"
COMPOSITE = "/apis/scheduling.k8s.io/v1alpha3/namespaces/shop/compositepodgroups/train/status"
OK = answer({})


class Desk:
    """A fake server, a group, and a writer whose waits take no time."""

    def __init__(self, api: FakeApi, client: ApiClient) -> None:
        self.api, self.client = api, client
        self.active = True
        self.version = "v1alpha2"
        self.clock = 0.0
        #: Seconds between two looks at the clock: so many that no test waits for a pause.
        self.tick = 60.0
        self.items: dict[str, GroupObject] = {}
        self.writer = HttpGroupStatusWriter(
            client,
            lambda: self.active,
            shown=lambda ref: self.items.get(ref.name),
            native_version=lambda: self.version,
            composite_version=lambda: "v1alpha3",
            backoff=RetryBackoff(0.1, 0.1),
            clock=self._tick,
            utc_now=lambda: NOON,
            sleep=self._sleep,
        )

    def _tick(self) -> float:
        self.clock += self.tick
        return self.clock

    async def _sleep(self, _: float) -> None:
        return

    def crd(self, status: dict[str, Any] | None = None, name: str = "train", version: str = "7") -> PodGroup:
        """A group of scheduling.x-k8s.io that needs three."""
        meta = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": version}
        return self._add(convert({"metadata": meta, "spec": {"minMember": 3}, "status": status or {}}, CoschedulingPodGroup))

    def native(self, *conditions: dict[str, Any]) -> PodGroup:
        """A group of scheduling.k8s.io that needs three."""
        meta = {"name": "train", "namespace": "shop", "uid": "uid-train", "resourceVersion": "7", "generation": 2}
        spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
        return self._add(convert({"metadata": meta, "spec": spec, "status": {"conditions": conditions}}, NativePodGroup))

    def composite(self, *conditions: dict[str, Any]) -> PodGroup:
        """A group of two groups."""
        meta = {"name": "train", "namespace": "shop", "uid": "uid-train", "resourceVersion": "7", "generation": 2}
        spec = {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}
        return self._add(convert({"metadata": meta, "spec": spec, "status": {"conditions": conditions}}, CompositePodGroup))

    def _add(self, item: GroupObject) -> PodGroup:
        self.items[item.metadata.name] = item
        pod_group = pod_group_of(item, GroupRef(FORM_OF[type(item)], "shop", item.metadata.name))
        assert pod_group is not None
        return pod_group

    async def written(self, *news: GroupNews) -> list[Any]:
        """The statuses that these news make it write."""
        self.writer.start()
        for each in news:
            self.writer.tell(each)
            await self.writer.idle.wait()
        await self.writer.close()
        return [request.body["status"] for request in self.api.asked("PATCH")]


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with FakeApi() as api, api.client() as client:
        made = Desk(api, client)
        api.on(f"PATCH {PATH}", OK)
        for version in ("v1alpha2", "v1alpha3", "v1beta1"):
            api.on(f"PATCH {NATIVE.format(version)}", OK)
        api.on(f"PATCH {COMPOSITE}", OK)
        yield made


def waits(pod_group: PodGroup, message: str = "needs 2 more members placed") -> GroupNews:
    return GroupNews(pod_group, placed=False, message=message)


def placed(pod_group: PodGroup, message: str = "3 members have a node", owners: str = "") -> GroupNews:
    return GroupNews(pod_group, placed=True, message=message, owners=owners)


async def test_a_group_that_waits_is_pending_and_one_that_is_placed_is_scheduling_since_a_time(desk: Desk) -> None:
    pod_group = desk.crd()
    first = await desk.written(waits(pod_group))
    assert first == [{"phase": "Pending"}]
    pod_group = desk.crd({"phase": "Pending"}, version="8")
    _, second = await desk.written(placed(pod_group, owners="shop/job"))
    assert second == {"phase": "Scheduling", "scheduleStartTime": "2030-01-02T12:00:00Z", "occupiedBy": "shop/job"}


async def test_the_patch_is_a_merge_that_names_the_uid(desk: Desk) -> None:
    await desk.written(waits(desk.crd()))
    (request,) = desk.api.asked("PATCH")
    assert request.path == PATH and request.headers["Content-Type"] == "application/merge-patch+json"
    assert request.body["metadata"] == {"uid": "uid-train"}


async def test_it_runs_when_as_many_members_run_as_it_needs(desk: Desk) -> None:
    pod_group = desk.crd({"phase": "Scheduling", "scheduleStartTime": "2029-01-01T00:00:00Z", "occupiedBy": "shop/job"})
    assert await desk.written(GroupNews(pod_group, running=2)) == [{"running": 2}]
    assert (await desk.written(GroupNews(pod_group, running=3)))[1:] == [{"phase": "Running", "running": 3}]


@pytest.mark.parametrize("status", [{"phase": "Finished", "succeeded": 3}, {"phase": "Failed", "failed": 1}])
async def test_a_phase_that_only_a_controller_can_know_is_left_alone(desk: Desk, status: dict[str, Any]) -> None:
    assert await desk.written(waits(desk.crd(status))) == []


async def test_a_running_group_of_which_some_have_ended_stays_running_whatever_waits(desk: Desk) -> None:
    """Its controller counts those that succeeded; we do not see them any more."""
    status = {"phase": "Running", "succeeded": 2, "running": 1, "scheduleStartTime": "2029-01-01T00:00:00Z"}
    assert await desk.written(waits(desk.crd(status))) == []


async def test_what_a_controller_would_write_is_not_written_over(desk: Desk) -> None:
    """scheduler-plugins' controller makes a group Scheduling as soon as enough members exist, and says whose it is."""
    status = {"phase": "Scheduling", "occupiedBy": "shop/theirs", "scheduleStartTime": "2029-01-01T00:00:00Z"}
    assert await desk.written(waits(desk.crd(status))) == []
    assert await desk.written(placed(desk.crd(status), owners="shop/ours")) == []


async def test_the_same_is_not_written_twice_while_the_watch_is_behind(desk: Desk) -> None:
    pod_group = desk.crd()
    assert len(await desk.written(waits(pod_group), waits(pod_group), waits(pod_group))) == 1
    assert desk.writer.counts.unchanged == 2


async def test_only_the_latest_of_what_waits_is_written(desk: Desk) -> None:
    pod_group = desk.crd()
    for number in range(5):
        desk.writer.tell(waits(pod_group, f"try {number}"))
    desk.writer.tell(placed(pod_group))
    desk.writer.tell(GroupNews(pod_group, running=1))
    statuses = await desk.written()
    assert [(each["phase"], each["running"]) for each in statuses] == [("Scheduling", 1)]
    assert desk.writer.counts.overtaken == 6


async def test_a_group_is_written_at_most_once_in_a_pause(desk: Desk) -> None:
    desk.tick = 0.0
    desk.writer.start()
    pod_group = desk.crd()
    desk.writer.tell(waits(pod_group))
    await desk.api.until_asked("PATCH")
    await desk.writer.idle.wait()
    desk.writer.tell(placed(pod_group))
    desk.crd(name="other")
    desk.api.on(f"PATCH {PATH.replace('train', 'other')}", OK)
    desk.writer.tell(waits(desk.crd(name="other")))
    await desk.api.until_asked("PATCH", "other/status")
    assert len(desk.api.asked("PATCH", "train/status")) == 1
    desk.clock += PAUSE_SECONDS
    await desk.api.until_asked("PATCH", "train/status", times=2)
    await desk.writer.close()


async def test_at_the_end_nobody_waits_for_a_pause(desk: Desk) -> None:
    desk.tick = 0.0
    pod_group = desk.crd()
    desk.api.on(f"PATCH {PATH}", OK)
    desk.writer.start()
    desk.writer.tell(waits(pod_group))
    await desk.api.until_asked("PATCH", "train/status")
    desk.writer.tell(placed(pod_group))
    await desk.writer.close()
    assert len(desk.api.asked("PATCH", "train/status")) == 2


async def test_who_lost_the_lead_writes_nothing(desk: Desk) -> None:
    desk.active = False
    assert await desk.written(waits(desk.crd())) == []
    assert (desk.writer.counts.dropped, desk.writer.counts.written) == (1, 0)


async def test_a_group_that_is_gone_or_has_a_namesake_is_not_written(desk: Desk) -> None:
    pod_group = desk.crd()
    del desk.items["train"]
    assert await desk.written(waits(pod_group)) == []
    namesake = convert({"metadata": {"name": "train", "namespace": "shop", "uid": "another"}}, CoschedulingPodGroup)
    desk.items["train"] = namesake
    assert await desk.written(waits(pod_group)) == []
    assert desk.writer.counts.vanished == 2


async def test_a_refusal_is_tried_again_and_a_lasting_one_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeApi() as api, api.client() as client:
        desk = Desk(api, client)
        api.on(f"PATCH {PATH}", refuse(500), OK)
        assert len(await desk.written(waits(desk.crd()))) == 2 and desk.writer.counts.written == 1
        for name in ("other", "third"):
            api.on(f"PATCH {PATH.replace('train', name)}", refuse(403, "Forbidden"))
            await desk.written(waits(desk.crd(name=name)))
        (line,) = [line for line in caplog.messages if "not written" in line]
        assert "shop/other" in line and line.endswith("(further ones are only counted)")
        assert desk.writer.counts.failed == 2


async def test_no_more_news_wait_than_there_is_room_for(desk: Desk) -> None:
    for number in range(MOST_WAITING + 3):
        desk.writer.tell(waits(desk.crd(name=f"g{number}")))
    assert len(desk.writer.waiting) == MOST_WAITING and desk.writer.counts.dropped == 3
    await asyncio.sleep(0)


# --- scheduling.k8s.io ---------------------------------------------------------------------------------------------------------


async def test_the_condition_of_136_says_scheduled_unschedulable_or_whose_error_it_was(desk: Desk) -> None:
    pod_group = desk.native()
    news = [waits(pod_group), GroupNews(pod_group, placed=False, error=True, message="broke"), placed(pod_group)]
    conditions = [each["conditions"][0] for each in await desk.written(*news)]
    assert [(each["type"], each["status"], each["reason"]) for each in conditions] == [
        ("PodGroupScheduled", "False", "Unschedulable"),
        ("PodGroupScheduled", "False", "SchedulerError"),
        ("PodGroupScheduled", "True", "Scheduled"),
    ]
    assert conditions[0]["message"] == "needs 2 more members placed"
    assert conditions[0]["lastTransitionTime"] == "2030-01-02T12:00:00Z" and conditions[0]["observedGeneration"] == 2
    assert {one.headers["Content-Type"] for one in desk.api.asked("PATCH")} == {"application/strategic-merge-patch+json"}


@pytest.mark.parametrize("version", ["v1alpha3", "v1beta1"])
async def test_the_condition_of_137_never_becomes_false_again(desk: Desk, version: str) -> None:
    desk.version = version
    pod_group = desk.native()
    ((first,),) = [each["conditions"] for each in await desk.written(placed(pod_group))]
    assert (first["type"], first["status"]) == ("PodGroupInitiallyScheduled", "True")
    assert len(await desk.written(waits(desk.native(first)))) == 1, "nothing more was written"
    assert desk.api.asked("PATCH", NATIVE.format(version))


async def test_the_transition_time_stays_while_the_status_stays(desk: Desk) -> None:
    since = {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": "2029-05-05T05:05:05Z"}
    pod_group = desk.native(since | {"message": "needs 3 more"})
    ((one,),) = [each["conditions"] for each in await desk.written(waits(pod_group))]
    assert one["lastTransitionTime"] == "2029-05-05T05:05:05Z" and one["message"] == "needs 2 more members placed"


async def test_a_group_of_groups_has_a_condition_of_its_own_which_stays_true(desk: Desk) -> None:
    ((first,),) = [status["conditions"] for status in await desk.written(waits(desk.composite()))]
    assert (first["type"], first["status"], first["reason"]) == ("CompositePodGroupInitiallyScheduled", "False", "Unschedulable")
    (request,) = desk.api.asked("PATCH")
    assert (request.path, request.headers["Content-Type"]) == (COMPOSITE, "application/strategic-merge-patch+json")
    true = first | {"status": "True", "reason": "Scheduled", "message": "4 members have a node"}
    assert len(await desk.written(waits(desk.composite(true)))) == 1, "nothing more was written"


async def test_how_many_members_run_is_nothing_to_a_native_group(desk: Desk) -> None:
    assert await desk.written(GroupNews(desk.native(), running=3)) == []


async def test_a_group_that_is_given_up_has_a_condition_that_ends_when_it_is_placed(desk: Desk) -> None:
    pod_group = desk.native()
    ((first,),) = [each["conditions"] for each in await desk.written(GroupNews(pod_group, given_up=given_up_condition("waited 1h0m0s")))]
    assert (first["type"], first["status"], first["reason"], first["message"]) == (GIVEN_UP, "True", "WaitedTooLong", "waited 1h0m0s")
    assert first["lastTransitionTime"] == "2030-01-02T12:00:00Z"
    statuses = await desk.written(GroupNews(desk.native(first), given_up=given_up_condition("waited 1h0m0s")), placed(desk.native(first)))
    placed_one, given_up = statuses[-1]["conditions"]
    assert len(statuses) == 2, "the same is not written twice"
    assert (placed_one["type"], placed_one["status"]) == ("PodGroupScheduled", "True")
    assert (given_up["type"], given_up["status"], given_up["reason"]) == (GIVEN_UP, "False", "Scheduled")


async def test_news_of_a_group_that_wait_are_written_together(desk: Desk) -> None:
    pod_group = desk.native()
    desk.writer.tell(waits(pod_group))
    desk.writer.tell(GroupNews(pod_group, given_up=given_up_condition("waited")))
    desk.writer.tell(waits(pod_group, "needs 1 more"))
    (status,) = await desk.written()
    said = {each["type"]: each["message"] for each in status["conditions"]}
    assert said == {"PodGroupScheduled": "needs 1 more", GIVEN_UP: "waited"}


async def test_a_group_without_conditions_is_not_written_to(desk: Desk) -> None:
    assert await desk.written(GroupNews(desk.crd({"phase": "Pending"}), given_up=given_up_condition("waited"))) == []
