from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from fake_api import FakeApi, Step, answer, hang_up, refuse
from hypothesis import given
from hypothesis import strategies as st
from pods import a_pod

from placewright.kube.client import ApiClient
from placewright.kube.errors import RetryBackoff
from placewright.kube.writers.events import HttpEventRecorder, cut_note

EVENTS = "/apis/events.k8s.io/v1/namespaces/shop/events"
CREATED = answer({}, 201)
NOON = datetime(2030, 1, 2, 12, 0, 0, 5, UTC)


class Desk:
    """A fake server that takes events, and recorders with a clock of their own."""

    def __init__(self, api: FakeApi, client: ApiClient) -> None:
        self.api = api
        self.client = client
        self.clock = 1000.0
        self.waits: list[float] = []

    def recorder(self, *, may_warn: Callable[[], bool] = lambda: True, attempts: int = 12, **limits: Any) -> HttpEventRecorder:
        return HttpEventRecorder(
            self.client,
            may_warn,
            instance="replica-1",
            **limits,
            attempts=attempts,
            backoff=RetryBackoff(0.1, 0.1),
            clock=lambda: self.clock,
            utc_now=lambda: NOON,
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    def patches_succeed(self, name: str, *steps: Step) -> None:
        self.api.on(f"PATCH {EVENTS}/{name}", *steps or (answer({}),))

    @property
    def posted(self) -> list[Any]:
        return [one.body for one in self.api.asked("POST")]


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with FakeApi() as api, api.client() as client:
        api.on(f"POST {EVENTS}", CREATED)
        yield Desk(api, client)


def fail(recorder: HttpEventRecorder, name: str = "web", note: str = "0/3 nodes are available") -> None:
    recorder.record(a_pod(name), "Warning", "FailedScheduling", "Scheduling", note)


async def test_an_event_has_the_shape_of_events_k8s_io(desk: Desk) -> None:
    recorder = desk.recorder()
    recorder.start()
    recorder.record(a_pod("web", uid="u-1", version="7"), "Normal", "Scheduled", "Binding", "Successfully assigned shop/web to node-1")
    await recorder.close()
    (body,) = desk.posted
    name = body["metadata"].pop("name")
    assert name.startswith("web.") and int(name.removeprefix("web."), 16)
    assert body == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"namespace": "shop"},
        "eventTime": "2030-01-02T12:00:00.000005Z",
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": "Successfully assigned shop/web to node-1",
        "reportingController": "placewright",
        "reportingInstance": "replica-1",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web", "uid": "u-1", "resourceVersion": "7"},
    }


@given(st.text(max_size=3000))
def test_a_note_is_cut_at_1024_bytes_of_whole_characters(note: str) -> None:
    cut = cut_note(note)
    assert len(cut.encode("utf-8", "replace")) <= 1024
    assert cut == note or (cut.endswith(" ...") and note.startswith(cut.removesuffix(" ...")))


def test_a_note_of_exactly_1024_bytes_is_left_alone() -> None:
    assert cut_note("é" * 512) == "é" * 512
    assert cut_note("é" * 513) == "é" * 510 + " ..."
    assert cut_note("a" + "é" * 513) == "a" + "é" * 509 + " ..."


async def test_a_pods_longest_name_still_gives_a_name_the_server_takes(desk: Desk) -> None:
    recorder = desk.recorder()
    recorder.start()
    fail(recorder, "a" * 230 + "-." * 10 + "b" * 3)
    await recorder.close()
    name = desk.posted[0]["metadata"]["name"]
    assert len(name) <= 253 and "-." not in name[-20:] and ".." not in name


async def test_the_same_note_again_becomes_a_series_of_the_first_event(desk: Desk) -> None:
    recorder = desk.recorder()
    recorder.start()
    fail(recorder)
    await desk.api.until_asked("POST")
    await recorder.idle.wait()
    name = desk.posted[0]["metadata"]["name"]
    desk.patches_succeed(name)
    for _ in range(3):
        fail(recorder)
    await recorder.close()
    assert len(desk.posted) == 1
    assert [one.body["series"]["count"] for one in desk.api.asked("PATCH")] == [4]
    assert recorder.counts.repeated == 3


async def test_a_series_is_updated_no_more_often_than_its_interval(desk: Desk) -> None:
    recorder = desk.recorder(series_interval=30.0, window=360.0)
    recorder.start()
    fail(recorder)
    await recorder.idle.wait()
    desk.patches_succeed(desk.posted[0]["metadata"]["name"])
    for _ in range(10):
        desk.clock += 10
        fail(recorder)
        await recorder.idle.wait()
    await recorder.close()
    assert [one.body["series"]["count"] for one in desk.api.asked("PATCH")] == [2, 5, 8, 11]


async def test_the_same_note_after_the_window_is_a_new_event(desk: Desk) -> None:
    recorder = desk.recorder(window=60.0)
    recorder.start()
    fail(recorder)
    await recorder.idle.wait()
    desk.clock += 61
    fail(recorder)
    await recorder.close()
    assert len(desk.posted) == 2 and desk.api.asked("PATCH") == []


async def test_another_pod_note_or_uid_is_another_event(desk: Desk) -> None:
    recorder = desk.recorder()
    recorder.start()
    fail(recorder)
    fail(recorder, "other")
    fail(recorder, note="0/4 nodes are available")
    recorder.record(a_pod("web", uid="reborn"), "Warning", "FailedScheduling", "Scheduling", "0/3 nodes are available")
    await recorder.close()
    assert len({body["metadata"]["name"] for body in desk.posted}) == 4


async def test_a_series_whose_event_the_server_forgot_begins_anew(desk: Desk) -> None:
    recorder = desk.recorder()
    recorder.start()
    fail(recorder)
    await recorder.idle.wait()
    fail(recorder)
    await recorder.close()
    assert [body.get("series", {}).get("count") for body in desk.posted] == [None, 2]


async def test_under_overload_the_oldest_go_and_are_counted(desk: Desk) -> None:
    recorder = desk.recorder(most_waiting=10)
    for number in range(25):
        fail(recorder, f"web-{number}")
    assert recorder.counts.dropped == 15
    recorder.start()
    await recorder.close()
    assert sorted(body["regarding"]["name"] for body in desk.posted) == sorted(f"web-{n}" for n in range(15, 25))
    assert recorder.counts.recorded == 25 and recorder.counts.written == 10


async def test_a_dropped_event_can_be_recorded_again(desk: Desk) -> None:
    recorder = desk.recorder(most_waiting=1)
    fail(recorder, "first")
    fail(recorder, "second")
    fail(recorder, "first")
    recorder.start()
    await recorder.close()
    assert [body["regarding"]["name"] for body in desk.posted] == ["first"]


async def test_a_busy_server_is_tried_again_and_then_given_up_on() -> None:
    async with FakeApi() as api, api.client() as client:
        desk = Desk(api, client)
        api.on(f"POST {EVENTS}", refuse(503), hang_up(), CREATED, refuse(500))
        recorder = desk.recorder(attempts=3, workers=1)
        recorder.start()
        fail(recorder, "one")
        fail(recorder, "two")
        await recorder.close()
    assert recorder.counts.written == 1 and recorder.counts.failed == 1
    assert len(api.asked("POST")) == 6


async def test_an_event_outlasts_a_server_that_restarts() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on(f"POST {EVENTS}", *([hang_up()] * 8), refuse(503), CREATED)
        recorder = Desk(api, client).recorder()
        recorder.start()
        fail(recorder)
        await recorder.close()
    assert recorder.counts.written == 1 and recorder.counts.failed == 0


async def test_an_event_whose_answer_got_lost_counts_as_written() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on(f"POST {EVENTS}", hang_up(), refuse(409, "AlreadyExists"))
        recorder = Desk(api, client).recorder()
        recorder.start()
        fail(recorder)
        await recorder.close()
    assert recorder.counts.written == 1 and recorder.counts.failed == 0


async def test_refusals_are_said_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeApi() as api, api.client() as client:
        api.on(f"POST {EVENTS}", refuse(403, "Forbidden"))
        recorder = Desk(api, client).recorder()
        recorder.start()
        for number in range(5):
            fail(recorder, f"web-{number}")
        await recorder.close()
    assert recorder.counts.failed == 5
    assert sum("not written" in line for line in caplog.messages) == 1


async def test_closing_waits_no_longer_than_its_deadline_and_counts_what_it_leaves() -> None:
    async with FakeApi() as api, api.client() as client:

        async def stuck(_: web.Request) -> web.StreamResponse:
            await api.open.wait()
            return web.json_response({})

        api.on(f"POST {EVENTS}", stuck)
        recorder = Desk(api, client).recorder(workers=2)
        recorder.start()
        for number in range(6):
            fail(recorder, f"web-{number}")
        await api.until_asked("POST", times=2)
        await asyncio.wait_for(recorder.close(deadline=0.0), 5)
        assert recorder.counts.written == 0 and recorder.counts.dropped == 6


# --- when another replica leads --------------------------------------------------------------------------------------------------


async def test_warnings_that_wait_go_with_the_term_and_what_was_done_is_told(desk: Desk) -> None:
    recorder = desk.recorder()
    recorder.record(a_pod(), "Warning", "FailedScheduling", "Scheduling", "no room")
    recorder.record(a_pod("other"), "Normal", "Scheduled", "Binding", "assigned")
    recorder.end_term()
    recorder.start()
    await recorder.close()
    assert [body["reason"] for body in desk.posted] == ["Scheduled"] and recorder.counts.dropped == 1


async def test_a_warning_of_the_next_term_is_an_event_of_its_own(desk: Desk) -> None:
    recorder = desk.recorder()
    recorder.record(a_pod(), "Warning", "FailedScheduling", "Scheduling", "no room")
    recorder.end_term()
    recorder.record(a_pod(), "Warning", "FailedScheduling", "Scheduling", "no room")
    recorder.start()
    await recorder.close()
    assert len(desk.posted) == 1 and recorder.counts.repeated == 0


async def test_who_is_not_the_active_replica_warns_of_nothing(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    recorder = desk.recorder(may_warn=lambda: False)
    recorder.start()
    recorder.record(a_pod(), "Warning", "FailedScheduling", "Scheduling", "no room")
    recorder.record(a_pod("other"), "Normal", "Scheduled", "Binding", "assigned")
    await recorder.close()
    assert [body["reason"] for body in desk.posted] == ["Scheduled"]
    assert (recorder.counts.dropped, recorder.counts.failed) == (1, 0) and caplog.messages == []
