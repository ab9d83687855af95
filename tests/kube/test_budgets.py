"""Who goes first when not everything can be sent at once: tokens, places, and what an answer 429 means to whom."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from fake_api import FakeApi, answer, listing, refuse
from hypothesis import given, settings
from hypothesis import strategies as st
from pods import a_pod
from recording import RecordingSink

from placewright.api.decode import convert
from placewright.api.objects import Node, NodeName
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError, RetryBackoff
from placewright.kube.ratelimit import LONGEST_HOLD, PASSED_OVER_AT_MOST, SPREAD, Pacing, TokenBucket, Traffic
from placewright.kube.reflector import Reflector, Source
from placewright.kube.writers.binder import CONCURRENCY, HttpBinder
from placewright.kube.writers.events import HttpEventRecorder
from placewright.kube.writers.evictor import HttpEvictor
from placewright.kube.writers.podstatus import WORKERS, HttpStatusWriter
from placewright.kube.writers.volumes import HttpVolumeWriter

HERE = NodeName("node-1")
PODS = "/api/v1/namespaces/shop/pods"
EVENTS = "/apis/events.k8s.io/v1/namespaces/shop/events"
#: An empty object: whatever was written is decoded from it.
DONE = answer({}, 201)
NO_JITTER = RetryBackoff(0.1, 0.1, uniform=lambda: 0.0)


class Clock:
    """Time passes in `sleep` only."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        for _ in range(5):  # others first
            await asyncio.sleep(0)
        self.now = max(self.now, until)

    def bucket(self, qps: float, burst: int) -> TokenBucket:
        return TokenBucket(qps, burst, self, self.sleep)

    def pacing(self, limit: TokenBucket | None = None) -> Pacing:
        return Pacing(limit, clock=self, sleep=self.sleep, uniform=lambda: 0.0)


# --- tokens ----------------------------------------------------------------------------------------------------------------------------


async def order_of(limit: TokenBucket, asking: list[Traffic]) -> list[Traffic]:
    """In which order those who ask at once, in this order, get their tokens."""
    went: list[Traffic] = []

    async def send(traffic: Traffic) -> None:
        await limit.take(traffic)
        went.append(traffic)

    await asyncio.gather(*(send(traffic) for traffic in asking))
    return went


async def test_a_binding_gets_the_next_token_however_many_others_wait() -> None:
    limit = Clock().bucket(10, 1)
    await limit.take()
    went = await order_of(limit, [*[Traffic.EVENTS] * 10, *[Traffic.STATUS] * 5, Traffic.ORDINARY, Traffic.ROOM, Traffic.BIND])
    assert went[:3] == [Traffic.BIND, Traffic.ROOM, Traffic.ORDINARY]
    assert went[3:] == [*[Traffic.STATUS] * 5, *[Traffic.EVENTS] * 10]


async def test_a_flood_of_bindings_leaves_a_share_to_everybody() -> None:
    limit = Clock().bucket(10, 1)
    await limit.take()
    rest = [Traffic.ROOM, Traffic.ORDINARY, Traffic.STATUS, Traffic.EVENTS]
    went = await order_of(limit, [*[Traffic.BIND] * 500, *(rest * 50)])
    counted = Counter(went[:500])
    assert counted[Traffic.BIND] >= 400
    assert all(counted[traffic] >= 500 // (PASSED_OVER_AT_MOST + len(Traffic)) for traffic in rest), counted


@given(st.lists(st.sampled_from(list(Traffic)), min_size=1, max_size=120))
@settings(max_examples=100)
def test_everybody_gets_one_token_and_equals_go_as_they_came(asking: list[Traffic]) -> None:
    async def numbers() -> list[tuple[Traffic, int]]:
        limit, went = Clock().bucket(5, 2), []

        async def send(number: int, traffic: Traffic) -> None:
            await limit.take(traffic)
            went.append((traffic, number))

        await asyncio.gather(*(send(number, traffic) for number, traffic in enumerate(asking)))
        return went

    went = asyncio.run(numbers())
    assert sorted(number for _, number in went) == list(range(len(asking)))
    for traffic in Traffic:
        mine = [number for one, number in went if one is traffic]
        assert mine == sorted(mine)


# --- what 429 means to others ------------------------------------------------------------------------------------------------------------


async def waited(clock: Clock, pacing: Pacing, traffic: Traffic) -> float:
    began = clock.now
    await pacing.wait(traffic)
    return clock.now - began


@pytest.mark.parametrize("refused", Traffic)
async def test_a_refusal_holds_the_less_important_and_what_can_be_late_itself(refused: Traffic) -> None:
    for traffic in Traffic:
        clock = Clock()
        pacing = clock.pacing()
        pacing.refused(refused, 3.0)
        held = traffic > refused or traffic is refused in (Traffic.STATUS, Traffic.EVENTS)
        assert await waited(clock, pacing, traffic) == (3.0 if held else 0.0), traffic
        assert pacing.held[traffic] == held


async def test_without_retry_after_nobody_else_is_held() -> None:
    clock = Clock()
    pacing = clock.pacing()
    pacing.refused(Traffic.BIND, 0.0)
    assert await waited(clock, pacing, Traffic.EVENTS) == 0.0


async def test_new_refusals_prolong_a_hold_but_not_for_ever() -> None:
    clock = Clock()
    pacing = clock.pacing()

    async def refuse_on() -> None:
        for _ in range(100):
            pacing.refused(Traffic.BIND, 2.0)
            await clock.sleep(1.0)

    busy = asyncio.create_task(refuse_on())
    await asyncio.sleep(0)
    began = clock.now
    await pacing.wait(Traffic.EVENTS)
    assert 10.0 < clock.now - began <= LONGEST_HOLD + 2.0 + SPREAD
    busy.cancel()


async def test_those_who_were_held_do_not_come_back_at_the_same_moment() -> None:
    clock = Clock()
    draws = itertools.cycle([0.0, 0.5, 0.9])
    sleeps: list[float] = []

    async def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        await clock.sleep(seconds)

    pacing = Pacing(clock=clock, sleep=sleep, uniform=lambda: next(draws))
    pacing.refused(Traffic.BIND, 2.0)
    await asyncio.gather(*(pacing.wait(Traffic.STATUS) for _ in range(3)))
    assert sleeps == [2.0, 2.0 + 0.5 * SPREAD, 2.0 + 0.9 * SPREAD]


# --- Retry-After, by everybody who writes or lists ---------------------------------------------------------------------------------


class Busy:
    """Refuses the first request with `Retry-After: 3` and counts who comes before that time has passed; then all is well."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._free_at = 0.0
        self.early = 0
        self.refusals = 0
        self.served = asyncio.Event()

    def at(self, api: FakeApi, request: str, then: Callable[[web.Request], Awaitable[web.StreamResponse]], *, first: bool = True) -> None:
        """`first`: this is the request that is refused; otherwise it is only counted."""

        async def step(asked: web.Request) -> web.StreamResponse:
            if first and not self.refusals:
                self.refusals += 1
                self._free_at = self._clock() + 3.0
                return await refuse(429, "TooManyRequests", **{"Retry-After": "3"})(asked)
            self.early += bool(self.refusals) and self._clock() < self._free_at
            self.served.set()
            return await then(asked)

        api.on(request, step)


VOLUME = convert({"metadata": {"name": "disk"}}, PersistentVolume)
CLAIM = convert({"metadata": {"name": "data", "namespace": "shop"}}, PersistentVolumeClaim)
Act = Callable[[ApiClient, Clock], Awaitable[object]]


async def bind(client: ApiClient, clock: Clock) -> None:
    await HttpBinder(client, lambda: True, backoff=NO_JITTER, sleep=clock.sleep).bind(a_pod(), HERE, {})


async def record(client: ApiClient, clock: Clock) -> None:
    recorder = HttpEventRecorder(client, instance="test", backoff=NO_JITTER, clock=clock, sleep=clock.sleep)
    recorder.start()
    recorder.record(a_pod(), "Normal", "Scheduled", "Binding", "assigned")
    await recorder.close()


async def write_status(client: ApiClient, clock: Clock) -> None:
    writer = HttpStatusWriter(client, backoff=NO_JITTER, sleep=clock.sleep)
    writer.start()
    writer.pod_unscheduled(a_pod(), "Unschedulable", "0/3 nodes are available", None)
    await writer.close()


async def evict(client: ApiClient, clock: Clock) -> None:
    await HttpEvictor(client, lambda: True, backoff=NO_JITTER, sleep=clock.sleep).evict(a_pod(), a_pod("important"), HERE)


async def bind_volume(client: ApiClient, clock: Clock) -> None:
    await HttpVolumeWriter(client, lambda: True, backoff=NO_JITTER, sleep=clock.sleep).bind(VOLUME)


async def select_node(client: ApiClient, clock: Clock) -> None:
    await HttpVolumeWriter(client, lambda: True, backoff=NO_JITTER, sleep=clock.sleep).select_node(CLAIM)


STATUS = f"PATCH {PODS}/web/status"
WRITERS: dict[str, tuple[Act, str, list[str]]] = {
    "a Binding": (bind, f"POST {PODS}/web/binding", []),
    "an event": (record, f"POST {EVENTS}", []),
    "a status": (write_status, STATUS, []),
    "the mark of a victim": (evict, STATUS, [f"DELETE {PODS}/web"]),
    "an eviction": (evict, f"DELETE {PODS}/web", [STATUS]),
    "a volume": (bind_volume, "PATCH /api/v1/persistentvolumes/disk", []),
    "a claim": (select_node, "PATCH /api/v1/namespaces/shop/persistentvolumeclaims/data", []),
}


@pytest.mark.parametrize("what", WRITERS)
async def test_retry_after_is_obeyed_by(what: str) -> None:
    act, refused, before = WRITERS[what]
    clock = Clock()
    busy = Busy(clock)
    async with FakeApi() as api, api.client() as client:
        client.pacing = clock.pacing()
        busy.at(api, refused, DONE)
        for other in before:
            busy.at(api, other, DONE, first=False)
        await act(client, clock)
    assert busy.refusals == 1, "it was refused"
    assert busy.served.is_set(), "it was tried again"
    assert busy.early == 0


@pytest.mark.parametrize("refused", ["GET", "WATCH"])
async def test_retry_after_is_obeyed_by_a_reflectors(refused: str) -> None:
    clock = Clock()
    busy = Busy(clock)
    async with FakeApi() as api, api.client() as client:
        client.pacing = clock.pacing()
        for method, then in (("GET", answer(listing())), ("WATCH", answer({}))):
            if method == refused:
                busy.at(api, f"{method} /api/v1/nodes", then)
            else:
                api.on(f"{method} /api/v1/nodes", then)
        reflector = Reflector(client, Source("/api/v1/nodes", Node), RecordingSink(), backoff=NO_JITTER, sleep=clock.sleep)
        task = asyncio.create_task(reflector.run())
        async with asyncio.timeout(5):
            await busy.served.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert busy.refusals == 1
    assert busy.early == 0


async def test_while_bindings_are_refused_statuses_and_events_stand_aside() -> None:
    clock = Clock()
    busy = Busy(clock)
    async with FakeApi() as api, api.client() as client:
        client.pacing = clock.pacing()
        busy.at(api, f"POST {PODS}/web/binding", DONE)
        busy.at(api, STATUS, DONE, first=False)
        busy.at(api, f"POST {EVENTS}", DONE, first=False)
        first = HttpBinder(client, lambda: True, attempts=1)
        with pytest.raises(Exception, match="429"):
            await first.bind(a_pod(), HERE, {})
        await asyncio.gather(write_status(client, clock), record(client, clock))
        assert len(api.asked("PATCH")) == 1
        assert len(api.asked("POST", "/events")) == 1
    assert busy.early == 0
    assert client.pacing.held[Traffic.STATUS] == client.pacing.held[Traffic.EVENTS] == 1


async def test_while_events_are_refused_bindings_are_sent_at_once() -> None:
    clock = Clock()
    async with FakeApi() as api, api.client() as client:
        client.pacing = clock.pacing()
        client.pacing.refused(Traffic.EVENTS, 60.0)
        api.on(f"POST {PODS}/web/binding", DONE)
        began = clock.now
        await bind(client, clock)
        assert clock.now == began


# --- how many at once, how many wait -----------------------------------------------------------------------------------------------


class Gate:
    """Holds every request until it is opened, and counts how many stood there at once."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()
        self.inside = 0
        self.most = 0
        self._came = asyncio.Condition()

    async def __call__(self, asked: web.Request) -> web.StreamResponse:
        async with self._came:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self._came.notify_all()
        await self.opened.wait()
        self.inside -= 1
        return await DONE(asked)

    async def until(self, count: int) -> None:
        """Wait until so many stand here."""
        async with self._came, asyncio.timeout(10):
            await self._came.wait_for(lambda: self.inside == count)


async def test_a_binding_goes_out_while_statuses_and_events_fill_all_their_places() -> None:
    events, statuses = Gate(), Gate()
    async with FakeApi() as api, api.client() as client:
        api.on(f"POST {EVENTS}", events)
        for number in range(50):
            api.on(f"PATCH {PODS}/p{number}/status", statuses)
        recorder, writer = HttpEventRecorder(client, instance="test"), HttpStatusWriter(client)
        recorder.start()
        writer.start()
        for number in range(50):
            recorder.record(a_pod(f"p{number}"), "Warning", "FailedScheduling", "Scheduling", "no")
            writer.pod_unscheduled(a_pod(f"p{number}"), "Unschedulable", "no", None)
        await events.until(HttpEventRecorder.workers)
        await statuses.until(WORKERS)
        api.on(f"POST {PODS}/web/binding", DONE)
        async with asyncio.timeout(5):
            await HttpBinder(client, lambda: True).bind(a_pod(), HERE, {})
        assert (events.inside, statuses.inside) == (HttpEventRecorder.workers, WORKERS), "they are still there"
        events.opened.set()
        statuses.opened.set()
        await asyncio.gather(recorder.close(), writer.close())
    assert (events.most, statuses.most) == (HttpEventRecorder.workers, WORKERS)
    assert recorder.counts.written == writer.counts.written == 50


async def test_bindings_under_way_are_bounded_and_an_important_pods_goes_next() -> None:
    gate, order = Gate(), []
    count = CONCURRENCY + 40
    async with FakeApi() as api, api.client() as client:
        binder = HttpBinder(client, lambda: True)

        async def bound(name: str, priority: int) -> None:
            info = a_pod(name)
            info.priority = priority
            await binder.bind(info, HERE, {})
            order.append(name)

        for number in range(count):
            api.on(f"POST {PODS}/p{number}/binding", gate)
        api.on(f"POST {PODS}/important/binding", DONE)
        crowd = [asyncio.create_task(bound(f"p{number}", 0)) for number in range(count)]
        await gate.until(CONCURRENCY)
        important = asyncio.create_task(bound("important", 1000))
        await asyncio.sleep(0)
        gate.opened.set()
        await asyncio.gather(*crowd, important)
    assert gate.most == CONCURRENCY
    assert order.index("important") <= CONCURRENCY, "it waited for those that had been sent, and for nobody else"


async def test_of_statuses_that_wait_the_oldest_are_dropped_and_counted_nominations_last() -> None:
    async with FakeApi() as api, api.client() as client:
        api.on(f"PATCH {PODS}/p0/status", DONE)
        writer = HttpStatusWriter(client, most_waiting=5)
        writer.pod_unscheduled(a_pod("p0"), "Unschedulable", "no", NodeName("node-1"))
        for number in range(1, 30):
            api.on(f"PATCH {PODS}/p{number}/status", DONE)
            writer.pod_unscheduled(a_pod(f"p{number}"), "Unschedulable", "no", None)
        assert writer.counts.dropped == 25
        writer.start()
        await writer.close()
        written = {request.path.split("/")[-2] for request in api.asked("PATCH")}
    assert written == {"p0", "p26", "p27", "p28", "p29"}


async def test_a_binding_is_never_dropped_however_many_wait() -> None:
    async with FakeApi() as api, api.client(limit=TokenBucket(100_000, 1)) as client:
        binder = HttpBinder(client, lambda: True)
        names = [f"p{number}" for number in range(6 * CONCURRENCY)]
        for name in names:
            api.on(f"POST {PODS}/{name}/binding", DONE)
        outcomes = await asyncio.gather(*(binder.bind(a_pod(name), HERE, {}) for name in names), return_exceptions=True)
        assert [one for one in outcomes if isinstance(one, (RequestError, Exception))] == []
        assert len(api.asked("POST")) == len(names)


# --- what one namespace's webhook says -------------------------------------------------------------------------------------------------


async def test_a_webhook_that_refuses_with_retry_after_holds_nobody_but_the_pod_that_it_refused() -> None:
    """Its status and its seconds are its own: with them a tenant's webhook would hold statuses, events, volumes and reads of everybody."""
    said = 'admission webhook "bindings.tenant.example" denied the request: come back later'
    body = {"kind": "Status", "code": 429, "reason": "TooManyRequests", "message": said, "details": {"retryAfterSeconds": 300}}
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async with FakeApi() as api, api.client() as client:
        api.on(f"POST {PODS}/web/binding", answer(body, 429, **{"Retry-After": "300"}), DONE)
        await HttpBinder(client, lambda: True, backoff=NO_JITTER, sleep=sleep).bind(a_pod(), HERE, {})
        assert waited == [300.0], "the pod itself waits as it was told"
        async with asyncio.timeout(5):
            for traffic in Traffic:
                await client.pacing.wait(traffic)
        assert not any(client.pacing.held.values())
