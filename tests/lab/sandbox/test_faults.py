"""Faults: each does what it says, to whom it says, as often as it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import aiohttp
import pytest

from kubesandbox.faults import Faults, Rule
from kubesandbox.server import Sandbox
from kubesandbox.status import ApiError
from kubesandbox.storage.store import Store, Watches
from lab.sandbox.claims import claim_spec
from lab.sandbox.http import Client, client_of
from lab.sandbox.makers import config_map

MAPS = "/api/v1/namespaces/default/configmaps"


def some_faults(seed: int = 0, refuse: Callable[[float], None] = lambda _: None) -> Faults:
    store = Store()
    return Faults(store, Watches(store), refuse, seed)


async def met(faults: Faults, method: str = "GET", path: str = MAPS, query: dict[str, str] | None = None) -> int:
    """Return the code of a request's refusal, or 0 if it succeeds."""
    try:
        await faults.meet(method, path, query or {})
    except ApiError as refused:
        return refused.code
    return 0


async def test_a_rule_goes_after_as_many_requests_as_it_was_set_for() -> None:
    faults = some_faults()
    faults.add(Rule(code=503, times=2))
    assert [await met(faults) for _ in range(3)] == [503, 503, 0]
    assert not faults.armed


async def test_a_rule_without_end_stays_until_cleared() -> None:
    faults = some_faults()
    faults.add(Rule(code=429, retry_after=1))
    assert [await met(faults) for _ in range(5)] == [429] * 5
    faults.clear()
    assert await met(faults) == 0


async def test_who_waits_for_a_slow_answer_is_let_go_and_who_comes_later_waits() -> None:
    faults = some_faults()
    faults.add(Rule(code=503, latency=3600.0))
    waiting = [asyncio.create_task(met(faults)) for _ in range(2)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    faults.release()
    assert await asyncio.gather(*waiting) == [503, 503]
    later = asyncio.create_task(met(faults))
    _, waits = await asyncio.wait([later], timeout=0.05)
    assert waits
    later.cancel()


async def test_a_rule_meets_only_its_method_path_and_kind_of_request() -> None:
    faults = some_faults()
    faults.add(Rule(method="POST", path="/pods/", code=409))
    assert await met(faults, "POST", "/api/v1/namespaces/x/pods/a/binding") == 409
    assert await met(faults, "POST", MAPS) == 0
    assert await met(faults, "GET", "/api/v1/namespaces/x/pods/a") == 0
    faults.clear()
    faults.add(Rule(watch=True, code=500))
    assert await met(faults, query={"watch": "true"}) == 500
    assert await met(faults) == 0


async def test_a_share_is_met_about_as_often_and_the_same_way_for_one_seed() -> None:
    outcomes = []
    for _ in range(2):
        faults = some_faults(seed=7)
        faults.add(Rule(code=500, share=0.25))
        outcomes.append([await met(faults) for _ in range(400)])
    assert outcomes[0] == outcomes[1]
    assert 60 < outcomes[0].count(500) < 140


@pytest.mark.parametrize("rule", [Rule(share=2), Rule(share=-1), Rule(latency=-1), Rule(times=-1), Rule(code=200)])
def test_a_rule_that_makes_no_sense_is_refused(rule: Rule) -> None:
    faults = some_faults()
    with pytest.raises(ValueError, match="must be"):
        faults.add(rule)
    assert not faults.armed


def test_another_process_may_have_connections_refused() -> None:
    refused: list[float] = []
    some_faults(refuse=refused.append).command("POST", "/sandbox/refuse-connections", b'{"seconds":0.5}')
    assert refused == [0.5]


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("POST", "/sandbox/refuse-connections", b'{"seconds":"long"}', 400),
        ("GET", "/sandbox/refuse-connections", b"", 405),
        ("POST", "/sandbox/nonsense", b"{}", 404),
    ],
)
def test_a_command_that_cannot_be_read_is_refused(method: str, path: str, body: bytes, code: int) -> None:
    with pytest.raises(ApiError) as caught:
        some_faults().command(method, path, body)
    assert caught.value.code == code


async def test_over_http_a_refused_write_is_not_done_and_says_when_to_come_again() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        sandbox.faults.add(Rule(method="POST", code=429, retry_after=3, times=1))
        async with client.session.post(client.server + MAPS, json=config_map("a")) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, "3")
            assert (await answer.json())["details"]["retryAfterSeconds"] == 3
        await client.expect(404, "GET", f"{MAPS}/a")
        await client.expect(201, "POST", MAPS, config_map("a"))


async def test_over_http_a_lost_answer_leaves_the_write_done() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        sandbox.faults.add(Rule(method="POST", lose_answer=True, times=1))
        with pytest.raises(aiohttp.ClientError):
            await client.ask("POST", MAPS, config_map("a"))
        await client.expect(200, "GET", f"{MAPS}/a")


async def test_over_http_a_watch_whose_answer_is_lost_is_forgotten() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        sandbox.faults.add(Rule(watch=True, lose_answer=True, times=2))  # the client tries twice by itself
        with pytest.raises(aiohttp.ClientError):
            await client.session.get(f"{client.server}{MAPS}?watch=1")
        assert len(sandbox.watches) == 0


async def watching(client: Client, query: str = "") -> aiohttp.ClientResponse:
    return await client.session.get(f"{client.server}{MAPS}?watch=1{query}")


async def test_over_http_dropped_watches_break_off_and_new_ones_work() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        stream = await watching(client)
        assert sandbox.faults.drop_watches() == 1
        with pytest.raises(aiohttp.ClientError):
            await stream.content.readline()
        await client.expect(201, "POST", MAPS, config_map("a"))
        async with await watching(client) as again:
            assert b'"ADDED"' in await again.content.readline()


async def test_over_http_a_compaction_ends_resumed_watches_with_410() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        created = await client.expect(201, "POST", MAPS, config_map("a"))
        await client.expect(201, "POST", MAPS, config_map("b"))
        sandbox.faults.compact()
        version = created["metadata"]["resourceVersion"]
        async with await watching(client, f"&resourceVersion={version}") as stream:
            line = await stream.content.readline()
            assert b'"ERROR"' in line
            assert b'"code":410' in line
            assert await stream.content.readline() == b""


async def test_over_http_refused_connections_come_back_on_the_same_address() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        await client.expect(200, "GET", MAPS)
        sandbox.faults.refuse_connections(0.2)
        with pytest.raises(aiohttp.ClientError):
            await client.ask("GET", MAPS)
        async with asyncio.timeout(10):
            while True:
                try:
                    await client.expect(200, "GET", MAPS)
                    break
                except aiohttp.ClientError:
                    await asyncio.sleep(0)


async def test_over_http_latency_delays_the_answer_and_nothing_else() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        sandbox.faults.add(Rule(path="/configmaps", latency=3600.0))
        slow = asyncio.create_task(client.ask("GET", MAPS))
        await client.expect(200, "GET", "/api/v1/nodes")
        assert not slow.done()
        slow.cancel()


async def test_faults_need_the_token() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig, token="wrong") as client:
        assert (await client.expect(401, "POST", "/sandbox/refuse-connections"))["reason"] == "Unauthorized"


async def test_writes_of_claims_meet_faults_like_any_other() -> None:
    claims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
    merge = {"Content-Type": "application/merge-patch+json"}
    allocation = {"status": {"allocation": {"devices": {}}}}
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        await client.expect(201, "POST", claims, {"metadata": {"name": "it"}, "spec": claim_spec()})
        sandbox.faults.add(Rule(method="PATCH", path="resourceclaims/it/status", code=409, times=1))
        refused = await client.expect(409, "PATCH", f"{claims}/it/status", allocation, headers=merge)
        assert refused["reason"] == "Conflict"
        sandbox.faults.add(Rule(method="PATCH", path="resourceclaims", lose_answer=True, times=1))
        with pytest.raises(aiohttp.ClientError):
            await client.ask("PATCH", f"{claims}/it/status", allocation, headers=merge)
        found = await client.expect(200, "GET", f"{claims}/it")
        assert found["status"] == allocation["status"], "it was done, only nobody heard of it"
