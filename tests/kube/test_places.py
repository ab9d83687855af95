"""Places for requests under way: the important first, nobody's slow answers before others, and none held by who waits to ask again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from aiohttp import web
from fake_api import FakeApi, answer, refuse
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright import testing as kit
from placewright.api.errors import BindError
from placewright.api.fairshares import FairShares
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.kube.errors import RetryBackoff
from placewright.kube.writers.binder import ALL_PLACES, CONCURRENCY, HttpBinder
from placewright.kube.writers.evictor import HttpEvictor
from placewright.kube.writers.places import OUT_OF_ORDER, RequestOwner, RequestPlaces

HERE = NodeName("node-1")
DONE = answer({}, 201)


def a_pod(name: str, *, namespace: str = "shop", profile: str = "default") -> PodInfo:
    return kit.pod(name).namespace(namespace).scheduler(profile).build()


def of(namespace: str, profile: str = "default", importance: int = 0) -> RequestOwner:
    return RequestOwner(namespace, profile, importance)


async def test_of_those_who_wait_for_a_place_the_important_go_first_and_sometimes_the_one_who_waited_longest() -> None:
    places, went = RequestPlaces(1), []

    async def hold(name: int, importance: int) -> None:
        async with places.one(of("shop", importance=importance)):
            went.append(name)
            await asyncio.sleep(0)

    await asyncio.gather(hold(-1, 0), *(hold(number, number) for number in range(20)))
    assert went[0] == -1
    assert went[1:OUT_OF_ORDER] == list(range(19, 19 - OUT_OF_ORDER + 1, -1))
    assert went[OUT_OF_ORDER] == 0, "the one who waited longest"
    assert sorted(went) == list(range(-1, 20))


@pytest.mark.parametrize("seed", range(20))
async def test_never_more_than_there_are_places_and_none_is_lost_when_somebody_gives_up(seed: int) -> None:
    random, places, inside, most = Random(seed), RequestPlaces(3), 0, 0

    async def hold(namespace: str) -> None:
        nonlocal inside, most
        async with places.one(of(namespace, importance=random.randrange(3))):
            inside += 1
            most = max(most, inside)
            try:
                for _ in range(random.randrange(4)):
                    await asyncio.sleep(0)
            finally:
                inside -= 1

    tasks = [asyncio.create_task(hold(random.choice("abc"))) for _ in range(60)]
    for _ in range(30):
        await asyncio.sleep(0)
        random.choice(tasks).cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (inside, most) == (0, 3)
    async with asyncio.timeout(5), places.one(of("a")), places.one(of("b")), places.one(of("c")):
        assert inside == 0, "all three places can be had again"


_STEP = st.tuples(st.sampled_from("abcde"), st.sampled_from("pq"), st.integers(0, 2), st.booleans())


@given(st.integers(1, 12), st.lists(_STEP, max_size=80))
@settings(max_examples=150)
def test_after_every_step_nobody_waits_who_might_have_a_place(count: int, steps: list[tuple[str, str, int, bool]]) -> None:
    async def run() -> None:
        places = RequestPlaces(count)
        profiles = FairShares[str](count, 6)
        namespaces = {profile: FairShares[str](profiles.most, 2) for profile in "pq"}
        inside: list[RequestOwner] = []
        waiting: list[tuple[RequestOwner, asyncio.Task[None]]] = []

        async def enter(whose: RequestOwner) -> None:
            await places.take(whose)
            inside.append(whose)
            namespaces[whose.profile].take(whose.namespace)
            profiles.take(whose.profile)

        for namespace, profile, importance, leaves in steps:
            if leaves and inside:
                whose = inside.pop(0)
                namespaces[whose.profile].give_back(whose.namespace)
                profiles.give_back(whose.profile)
                places.give_back(whose)
            else:
                whose = of(namespace, profile, importance)
                waiting.append((whose, asyncio.ensure_future(enter(whose))))
            for _ in range(3):
                await asyncio.sleep(0)
            waiting = [each for each in waiting if not each[1].done()]
            assert len(inside) <= count
            assert not any(namespaces[one.profile].may_take(one.namespace) and profiles.may_take(one.profile) for one, _ in waiting)
        for _, task in waiting:
            task.cancel()
        await asyncio.gather(*(task for _, task in waiting), return_exceptions=True)

    asyncio.run(run())


# --- Bindings ----------------------------------------------------------------------------------------------------------------------------


class Webhooks:
    """An API server on which each namespace's Bindings are answered as its admission webhook lets them be.

    Attributes:
        under_way: Bindings now, by namespace.
        bound: by namespace.
    """

    def __init__(self, api: FakeApi) -> None:
        self.hung = asyncio.Event()
        self.under_way: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.bound: Counter[str] = Counter()
        self._api = api

    def hangs(self, pods: list[PodInfo]) -> None:
        """Nothing is answered before `hung` is set."""
        for each in pods:
            self._api.on(f"POST {path(each)}/binding", self._hang)

    def works(self, pods: list[PodInfo]) -> None:
        for each in pods:
            self._api.on(f"POST {path(each)}/binding", self._done)

    async def _hang(self, request: web.Request) -> web.StreamResponse:
        namespace = request.path.split("/")[4]
        self.under_way[namespace] += 1
        self.most[namespace] = max(self.most[namespace], self.under_way[namespace])
        try:
            await self.hung.wait()
        finally:
            self.under_way[namespace] -= 1
        return await self._done(request)

    async def _done(self, request: web.Request) -> web.StreamResponse:
        self.bound[request.path.split("/")[4]] += 1
        return web.json_response({}, status=201)


def path(each: PodInfo) -> str:
    return f"/api/v1/namespaces/{each.namespace}/pods/{each.name}"


def crowd(namespace: str, count: int) -> list[PodInfo]:
    return [a_pod(f"p{number}", namespace=namespace) for number in range(count)]


@asynccontextmanager
async def binding(binder: HttpBinder, pods: list[PodInfo]) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Their Bindings, under way; cancelled in the end."""
    tasks = [asyncio.create_task(binder.bind(each, HERE, {})) for each in pods]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_webhook_that_hangs_for_one_namespace_leaves_places_to_the_others() -> None:
    async with FakeApi() as api, api.client() as client:
        webhooks, stuck, healthy = Webhooks(api), crowd("stuck", 300), crowd("healthy", 200)
        webhooks.hangs(stuck)
        webhooks.works(healthy)
        binder = HttpBinder(client, lambda: True)
        async with binding(binder, stuck):
            async with asyncio.timeout(5):
                while webhooks.under_way["stuck"] < CONCURRENCY:  # noqa: ASYNC110 - what a server counts
                    await asyncio.sleep(0)
                await asyncio.gather(*(binder.bind(each, HERE, {}) for each in healthy))
            assert webhooks.bound == {"healthy": 200}
            assert webhooks.most["stuck"] == CONCURRENCY
            webhooks.hung.set()


async def test_with_many_stuck_namespaces_one_more_still_gets_its_bindings_through() -> None:
    async with FakeApi() as api, api.client() as client:
        webhooks, healthy = Webhooks(api), crowd("healthy", 50)
        stuck = [each for number in range(15) for each in crowd(f"stuck-{number}", 20)]
        webhooks.hangs(stuck)
        webhooks.works(healthy)
        binder = HttpBinder(client, lambda: True)
        async with binding(binder, stuck):
            async with asyncio.timeout(5):
                await asyncio.gather(*(binder.bind(each, HERE, {}) for each in healthy))
            assert webhooks.bound == {"healthy": 50}
            assert sum(webhooks.most.values()) < ALL_PLACES
            webhooks.hung.set()


async def test_a_profile_that_is_stuck_in_every_namespace_leaves_places_to_the_others() -> None:
    async with FakeApi() as api, api.client() as client:
        webhooks = Webhooks(api)
        stuck = [a_pod(f"p{number}", namespace=f"n-{number % 50}", profile="stuck") for number in range(400)]
        healthy = [a_pod(f"h{number}", namespace=f"n-{number % 50}") for number in range(100)]
        webhooks.hangs(stuck)
        webhooks.works(healthy)
        binder = HttpBinder(client, lambda: True)
        async with binding(binder, stuck):
            async with asyncio.timeout(5):
                await asyncio.gather(*(binder.bind(each, HERE, {}) for each in healthy))
            assert webhooks.bound.total() == 100
            webhooks.hung.set()


class Waits:
    """Sleeps that last until a test ends them, and who stands aside meanwhile."""

    def __init__(self) -> None:
        self.asked: list[float] = []
        self.aside: set[str] = set()
        self.over = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self.over.wait()

    def standing(self, each: PodInfo) -> Any:
        return _Aside(self.aside, each.uid)


class _Aside:
    def __init__(self, aside: set[str], uid: str) -> None:
        self._aside, self._uid = aside, uid

    def __enter__(self) -> None:
        self._aside.add(self._uid)

    def __exit__(self, *_: object) -> None:
        self._aside.discard(self._uid)


async def test_who_waits_for_retry_after_holds_no_place_and_stands_aside_while_others_are_bound() -> None:
    """More Bindings than there are places are told to come back in five minutes; others, of the same namespace too, go on."""
    waits = Waits()
    async with FakeApi() as api, api.client() as client:
        told = crowd("shop", 2 * ALL_PLACES)
        for each in told:
            api.on(f"POST {path(each)}/binding", refuse(429, "TooManyRequests", **{"Retry-After": "300"}), DONE)
        backoff = RetryBackoff(0.1, 0.1, uniform=lambda: 0.0)
        binder = HttpBinder(client, lambda: True, aside=waits.standing, backoff=backoff, sleep=waits.sleep)
        async with binding(binder, told) as under_way:
            async with asyncio.timeout(5):
                while len(waits.asked) < len(told):  # noqa: ASYNC110 - what a fake sleep notes
                    await asyncio.sleep(0)
                assert waits.asked == [300.0] * len(told)
                assert waits.aside == {each.uid for each in told}
                for other in (a_pod("late", namespace="shop"), a_pod("late", namespace="other")):
                    api.on(f"POST {path(other)}/binding", DONE)
                    await binder.bind(other, HERE, {})
                waits.over.set()
                await asyncio.gather(*under_way)
    assert waits.aside == set()
    assert binder.counts.bound == len(told) + 2


async def test_who_has_to_ask_what_became_of_a_binding_holds_no_place_between_two_questions() -> None:
    waits = Waits()
    async with FakeApi() as api, api.client() as client:
        lost = crowd("shop", 2 * ALL_PLACES)
        for each in lost:
            api.on(f"POST {path(each)}/binding", refuse(500))
            api.on(f"GET {path(each)}", refuse(500))
        binder = HttpBinder(client, lambda: True, aside=waits.standing, sleep=waits.sleep)
        async with binding(binder, lost):
            async with asyncio.timeout(5):
                while len(waits.asked) < len(lost):  # noqa: ASYNC110 - what a fake sleep notes
                    await asyncio.sleep(0)
                late = a_pod("late", namespace="shop")
                api.on(f"POST {path(late)}/binding", DONE)
                await binder.bind(late, HERE, {})
    assert binder.counts.bound == 1


# --- the end of a term --------------------------------------------------------------------------------------------------------------


async def test_without_the_lead_a_pod_is_looked_at_once() -> None:
    """An API server that hangs would otherwise be asked twenty times, for ten minutes, before the next term could begin."""
    leads = True
    async with FakeApi() as api, api.client() as client:
        api.on(f"POST {path(a_pod('web'))}/binding", refuse(500))
        api.on(f"GET {path(a_pod('web'))}", refuse(500))

        async def sleep(_seconds: float) -> None:
            nonlocal leads
            leads = False

        with pytest.raises(BindError, match="could not be read") as caught:
            await HttpBinder(client, lambda: leads, sleep=sleep).bind(a_pod("web"), HERE, {})
        assert caught.value.unknown
        assert len(api.asked("GET")) == 1


# --- evictions --------------------------------------------------------------------------------------------------------------


async def test_victims_whose_namespace_answers_slowly_leave_places_to_other_victims() -> None:
    opened, under_way = asyncio.Event(), 0

    async def hang(_: web.Request) -> web.StreamResponse:
        nonlocal under_way
        under_way += 1
        await opened.wait()
        return web.json_response({})

    async with FakeApi() as api, api.client() as client:
        stuck, other = crowd("stuck", 100), a_pod("victim", namespace="healthy")
        for each in stuck:
            api.on(f"PATCH {path(each)}/status", hang)
        api.on(f"PATCH {path(other)}/status", answer({}))
        api.on(f"DELETE {path(other)}", answer({}))
        evictor = HttpEvictor(client, lambda: True)
        tasks = [asyncio.create_task(evictor.evict(each, a_pod("preemptor"), HERE)) for each in stuck]
        async with asyncio.timeout(5):
            while not under_way:  # noqa: ASYNC110 - what a server counts
                await asyncio.sleep(0)
            await evictor.evict(other, a_pod("preemptor"), HERE)
        assert under_way < HttpEvictor.PLACES
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        opened.set()
