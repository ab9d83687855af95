from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from fake_api import FakeApi, answer, hang_up, refuse
from pods import a_pod, pod_json

from placewright.api.errors import BindError
from placewright.api.extenders import ExtenderError
from placewright.api.objects import NodeName
from placewright.kube.errors import RetryBackoff
from placewright.kube.writers.binder import HttpBinder

BINDING = "POST /api/v1/namespaces/shop/pods/web/binding"
POD = "GET /api/v1/namespaces/shop/pods/web"
HERE = NodeName("node-1")
DONE = answer({"kind": "Status", "status": "Success", "code": 201}, 201)


class Bench:
    """A fake server, and a binder whose waits take no time and are remembered."""

    def __init__(self, api: FakeApi, client: Any) -> None:
        self.api = api
        self.client = client
        self.allowed = True
        self.waited: list[float] = []

    def binder(self, **options: Any) -> HttpBinder:
        backoff = RetryBackoff(0.1, 10.0, uniform=lambda: 1.0)
        return HttpBinder(self.client, lambda: self.allowed, backoff=backoff, sleep=self._sleep, **options)

    async def _sleep(self, seconds: float) -> None:
        self.waited.append(seconds)

    @property
    def posts(self) -> int:
        return len(self.api.asked("POST"))


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with FakeApi() as api, api.client() as client:
        yield Bench(api, client)


async def test_a_binding_carries_uid_node_and_annotations(bench: Bench) -> None:
    bench.api.on(BINDING, DONE)
    await bench.binder().bind(a_pod("web", uid="u-1"), HERE, {"placewright.dev/decision": "{}"})
    (sent,) = bench.api.asked("POST")
    assert sent.body == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1", "annotations": {"placewright.dev/decision": "{}"}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
    }


async def test_a_lead_that_is_lost_while_a_connection_is_made_binds_nothing(bench: Bench) -> None:
    bench.api.on(BINDING, DONE)
    answers = iter((True, False))
    binder = HttpBinder(bench.client, lambda: next(answers), sleep=bench._sleep)
    with pytest.raises(BindError, match="not the active one") as caught:
        await binder.bind(a_pod(), HERE, {})
    assert not caught.value.unknown and not caught.value.conflict
    assert bench.api.requests == [] and binder.counts.lost_answer == 0
    assert bench.client.away.away_since is None, "nothing is wrong with the server"


async def test_a_conflict_is_said_and_not_repeated(bench: Bench) -> None:
    bench.api.on(BINDING, refuse(409, "Conflict"))
    bench.api.on(POD, answer(pod_json(node="node-2")))
    with pytest.raises(BindError, match=r"409 Conflict.*another node") as caught:
        await bench.binder().bind(a_pod(), HERE, {})
    assert caught.value.conflict and not caught.value.unknown
    assert bench.posts == 1 and bench.waited == []


async def test_a_conflict_that_hides_our_own_success_is_found_out(bench: Bench) -> None:
    """The API server calls any failed write of a Binding a conflict; an etcd that answered late has bound the pod all the same."""
    bench.api.on(BINDING, refuse(409, "Conflict"))
    bench.api.on(POD, answer(pod_json(node="node-1")))
    binder = bench.binder()
    await binder.bind(a_pod(), HERE, {})
    assert bench.posts == 1 and binder.counts.bound == 1 and binder.counts.conflict == 0


async def test_a_conflict_with_the_pod_unbound_is_said(bench: Bench) -> None:
    bench.api.on(BINDING, refuse(409, "Conflict"))
    bench.api.on(POD, answer(pod_json()))
    with pytest.raises(BindError, match="409 Conflict") as caught:
        await bench.binder().bind(a_pod(), HERE, {})
    assert caught.value.conflict and bench.posts == 1


async def test_a_pod_that_is_gone_counts_as_a_conflict(bench: Bench) -> None:
    bench.api.on(BINDING, refuse(404, "NotFound"))
    with pytest.raises(BindError) as caught:
        await bench.binder().bind(a_pod(), HERE, {})
    assert caught.value.conflict


@pytest.mark.parametrize("status", [400, 403, 422])
async def test_a_refusal_is_said_and_not_repeated(bench: Bench, status: int) -> None:
    bench.api.on(BINDING, refuse(status, "Refused"))
    with pytest.raises(BindError, match=str(status)) as caught:
        await bench.binder().bind(a_pod(), HERE, {})
    assert not caught.value.conflict and bench.posts == 1


async def test_too_many_requests_are_repeated_after_what_the_server_asked_for(bench: Bench) -> None:
    bench.api.on(BINDING, refuse(429, "TooManyRequests", **{"Retry-After": "3"}), DONE)
    await bench.binder().bind(a_pod(), HERE, {})
    assert bench.posts == 2 and bench.waited == [3.1]


async def test_a_server_error_looks_at_the_pod_and_repeats_when_it_is_not_bound(bench: Bench) -> None:
    bench.api.on(BINDING, refuse(500, "InternalError"), DONE)
    bench.api.on(POD, answer(pod_json()))
    await bench.binder().bind(a_pod(), HERE, {})
    assert bench.posts == 2 and len(bench.api.asked("GET")) == 1


async def test_repeats_end_after_a_bounded_number(bench: Bench) -> None:
    bench.api.on(BINDING, refuse(503, "ServiceUnavailable"))
    bench.api.on(POD, answer(pod_json()))
    with pytest.raises(BindError, match="given up after 3 attempts") as caught:
        await bench.binder(attempts=3).bind(a_pod(), HERE, {})
    assert not caught.value.conflict and bench.posts == 3


async def test_an_answer_lost_after_the_bind_was_applied_is_found_out_and_not_repeated(bench: Bench) -> None:
    bench.api.on(BINDING, hang_up())
    bench.api.on(POD, answer(pod_json(node="node-1")))
    binder = bench.binder()
    await binder.bind(a_pod(), HERE, {})
    assert bench.posts == 1 and binder.counts.bound == 1 and binder.counts.lost_answer == 1


async def test_a_lost_answer_and_a_pod_on_another_node_is_a_conflict(bench: Bench) -> None:
    bench.api.on(BINDING, hang_up())
    bench.api.on(POD, answer(pod_json(node="node-2")))
    with pytest.raises(BindError, match="another node") as caught:
        await bench.binder().bind(a_pod(), HERE, {})
    assert caught.value.conflict and bench.posts == 1


@pytest.mark.parametrize("found", [answer(pod_json(uid="somebody-else", node="node-1")), refuse(404, "NotFound")])
async def test_a_lost_answer_and_a_pod_that_is_gone_or_replaced_is_a_conflict(bench: Bench, found: Any) -> None:
    bench.api.on(BINDING, hang_up())
    bench.api.on(POD, found)
    with pytest.raises(BindError) as caught:
        await bench.binder().bind(a_pod(), HERE, {})
    assert caught.value.conflict and bench.posts == 1


async def test_a_lost_answer_that_was_not_applied_is_repeated(bench: Bench) -> None:
    bench.api.on(BINDING, hang_up(), DONE)
    bench.api.on(POD, answer(pod_json()))
    await bench.binder().bind(a_pod(), HERE, {})
    assert bench.posts == 2


async def test_a_bind_that_arrives_late_makes_the_repeat_a_conflict_which_is_our_own_success(bench: Bench) -> None:
    bench.api.on(BINDING, hang_up(), refuse(409, "Conflict"))
    bench.api.on(POD, answer(pod_json()), answer(pod_json(node="node-1")))
    await bench.binder().bind(a_pod(), HERE, {})
    assert bench.posts == 2


async def test_a_conflict_after_a_lost_answer_with_the_pod_unbound_is_a_conflict(bench: Bench) -> None:
    bench.api.on(BINDING, hang_up(), refuse(409, "Conflict"))
    bench.api.on(POD, answer(pod_json()))
    with pytest.raises(BindError) as caught:
        await bench.binder().bind(a_pod(), HERE, {})
    assert caught.value.conflict and bench.posts == 2


async def test_the_pod_is_looked_at_until_the_server_is_back(bench: Bench) -> None:
    bench.api.on(BINDING, hang_up())
    bench.api.on(POD, refuse(500), refuse(503), hang_up(), answer(pod_json(node="node-1")))
    await bench.binder().bind(a_pod(), HERE, {})
    assert bench.posts == 1


async def test_when_nobody_can_tell_the_outcome_is_unknown(bench: Bench) -> None:
    bench.api.on(BINDING, hang_up())
    bench.api.on(POD, refuse(503))
    with pytest.raises(BindError, match="could not be read") as caught:
        await bench.binder(looks=3).bind(a_pod(), HERE, {})
    assert caught.value.unknown and not caught.value.conflict and bench.posts == 1


async def test_a_standby_sends_nothing(bench: Bench) -> None:
    bench.allowed = False
    with pytest.raises(BindError, match="not the active one"):
        await bench.binder().bind(a_pod(), HERE, {})
    assert bench.api.requests == []


async def test_leadership_lost_between_two_attempts_stops_the_second(bench: Bench) -> None:
    def lose() -> None:
        bench.allowed = False

    bench.api.on(BINDING, hang_up(lose))
    bench.api.on(POD, answer(pod_json()))
    with pytest.raises(BindError, match="not the active one"):
        await bench.binder().bind(a_pod(), HERE, {})
    assert bench.posts == 1


async def test_no_more_binds_are_under_way_than_allowed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    under_way: list[int] = []
    now = 0

    async def slow(_: web.Request) -> web.StreamResponse:
        nonlocal now
        now += 1
        under_way.append(now)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        now -= 1
        return web.json_response({}, status=201)

    names = [f"web-{n}" for n in range(30)]
    for name in names:
        bench.api.on(f"POST /api/v1/namespaces/shop/pods/{name}/binding", slow)
    monkeypatch.setattr(HttpBinder, "PLACES", 4)
    binder = bench.binder()
    await asyncio.gather(*(binder.bind(a_pod(name), HERE, {}) for name in names))
    assert binder.counts.bound == 30 and max(under_way) <= 4


async def test_a_slow_server_is_given_up_on_and_the_pod_looked_at(bench: Bench) -> None:
    never = bench.api.open

    async def stuck(_: web.Request) -> web.StreamResponse:
        await never.wait()
        return web.json_response({})

    bench.api.on(BINDING, stuck)
    bench.api.on(POD, answer(pod_json(node="node-1")))
    async with bench.api.client(timeout=0.2) as impatient:
        await HttpBinder(impatient, lambda: True).bind(a_pod(), HERE, {})
    assert bench.posts == 1


# --- bound by somebody else ---------------------------------------------------------------------------------------------------------


async def bound() -> None:
    """An extender that binds."""


async def refused() -> None:
    raise ExtenderError("failed bind with extender at URL http://extender/bind, code 500")


async def test_what_an_extender_bound_is_not_bound_again(bench: Bench) -> None:
    binder = bench.binder()
    await binder.bind_by(a_pod(), HERE, bound)
    assert bench.posts == 0 and binder.counts.bound == 1


async def test_an_extender_that_answers_an_error_may_have_bound_the_pod_all_the_same(bench: Bench) -> None:
    bench.api.on(POD, answer(pod_json(node="node-1")))
    await bench.binder().bind_by(a_pod(), HERE, refused)
    assert bench.posts == 0


async def test_an_extender_that_did_not_bind_is_not_asked_twice_and_its_words_are_told(bench: Bench) -> None:
    bench.api.on(POD, answer(pod_json()))
    with pytest.raises(BindError, match="URL http://extender/bind, code 500") as caught:
        await bench.binder().bind_by(a_pod(), HERE, refused)
    assert not caught.value.conflict and not caught.value.unknown and bench.posts == 0


async def test_an_extender_that_bound_the_pod_elsewhere_is_a_conflict(bench: Bench) -> None:
    bench.api.on(POD, answer(pod_json(node="node-2")))
    with pytest.raises(BindError, match="another node") as caught:
        await bench.binder().bind_by(a_pod(), HERE, refused)
    assert caught.value.conflict


async def test_who_does_not_lead_has_nobody_bind_for_it_either(bench: Bench) -> None:
    bench.allowed = False
    with pytest.raises(BindError, match="not the active one"):
        await bench.binder().bind_by(a_pod(), HERE, bound)
