"""What only the active replica may write: not sent, and not under way any more, once it is not allowed."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from fake_api import FakeApi, answer
from pods import a_pod, pod_json
from raw_server import CREATED, Peer, RawServer, silent

from placewright.api.errors import BindError, EvictError
from placewright.api.extenders import ExtenderError
from placewright.api.objects import NodeName
from placewright.kube.client import ApiClient
from placewright.kube.errors import RetryBackoff, Unreachable
from placewright.kube.guarded import GuardedBody
from placewright.kube.writers.binder import HttpBinder
from placewright.kube.writers.evictor import HttpEvictor
from programs import on_linux

PATH = "/api/v1/namespaces/shop/pods/web/binding"
HERE = NodeName("node-1")
#: Seconds; far longer than anything here takes, but not for ever.
DEADLINE = 10.0


class Lead:
    """Whether this replica is the active one."""

    def __init__(self) -> None:
        self.held = True

    def __call__(self) -> bool:
        return self.held


@pytest.fixture
def lead() -> Lead:
    return Lead()


async def written(client: ApiClient, body: GuardedBody) -> None:
    await client.write("POST", PATH, body)


async def replaced(client: ApiClient, body: GuardedBody) -> None:
    await client.put(PATH, body)


@pytest.mark.parametrize("send", [written, replaced], ids=["past aiohttp", "by aiohttp"])
async def test_a_request_under_way_is_aborted_when_it_is_not_allowed_any_more(send: Callable[..., Any], lead: Lead) -> None:
    async with RawServer(silent) as server, server.client() as client:
        body = GuardedBody({}, lead)
        sending = asyncio.create_task(send(client, body))
        async with asyncio.timeout(DEADLINE):
            await server.asked.wait()
            client.guarded.abort_unwanted()
            await asyncio.sleep(0)
            assert not sending.done(), "it is allowed"
            lead.held = False
            client.guarded.abort_unwanted()
            client.guarded.abort_unwanted()
            with pytest.raises(Unreachable, match="not allowed any more"):
                await sending
            await server.hung_up.wait()
        assert not body.withheld, "it was sent, and nobody knows what became of it"
        assert client.away.away_since is None, "nothing is wrong with the server"


@pytest.mark.parametrize("send", [written, replaced], ids=["past aiohttp", "by aiohttp"])
async def test_where_nobody_says_so_it_ends_by_itself_soon_after_it_ceased_to_be_allowed(send: Callable[..., Any], lead: Lead) -> None:
    async with RawServer(silent) as server, server.client(outlive=0.05) as client:
        sending = asyncio.create_task(send(client, GuardedBody({}, lead)))
        async with asyncio.timeout(DEADLINE):
            await server.asked.wait()
            lead.held = False
            with pytest.raises(Unreachable):
                await sending


@pytest.mark.parametrize("send", [written, replaced], ids=["past aiohttp", "by aiohttp"])
async def test_for_as_long_as_it_is_allowed_a_slow_answer_is_waited_for(send: Callable[..., Any]) -> None:
    asked = 0
    enough = asyncio.Event()

    def allowed() -> bool:
        nonlocal asked
        asked += 1
        if asked == 5:
            enough.set()
        return True

    async def slow(peer: Peer) -> None:
        await peer.request()
        await enough.wait()
        await peer.say(CREATED)
        await peer.reader.read()

    async with RawServer(slow) as server, server.client(outlive=0.02) as client:
        async with asyncio.timeout(DEADLINE):
            await send(client, GuardedBody({}, allowed))


async def test_what_nobody_guards_is_not_aborted() -> None:
    go = asyncio.Event()

    async def slow(peer: Peer) -> None:
        await peer.request()
        await go.wait()
        await peer.say(CREATED)

    async with RawServer(slow) as server, server.client() as client:
        sending = asyncio.create_task(client.write("POST", PATH, b"{}"))
        async with asyncio.timeout(DEADLINE):
            await server.asked.wait()
            client.guarded.abort_unwanted()
            go.set()
            await sending


async def test_of_an_aborted_request_the_system_delivers_nothing_more(lead: Lead) -> None:
    """Closed in the ordinary way, a connection's bytes are delivered after it was closed: for minutes, where the network is away."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        async with ApiClient(RawServerAt(listening).access()) as client:
            sending = asyncio.create_task(written(client, GuardedBody(b"x" * 2**16, lead)))
            async with asyncio.timeout(DEADLINE):
                accepted, _ = await loop.sock_accept(listening)
                with accepted:
                    accepted.setblocking(False)
                    assert await loop.sock_recv(accepted, 1)
                    lead.held = False
                    client.guarded.abort_unwanted()
                    with pytest.raises(Unreachable):
                        await sending
                    with pytest.raises(ConnectionResetError):
                        await all_of(accepted)


async def all_of(connection: socket.socket) -> None:
    """Read until the other side says that there is no more."""
    while await asyncio.get_running_loop().sock_recv(connection, 2**20):
        pass


class RawServerAt(RawServer):
    """The address of a socket that a test reads by itself."""

    def __init__(self, listening: socket.socket) -> None:
        super().__init__(silent)
        self.port = listening.getsockname()[1]


@on_linux
@pytest.mark.parametrize(("options", "milliseconds"), [({"outlive": 4.0}, 4000), ({}, 0)])
async def test_the_system_tries_to_deliver_for_no_longer_than_a_request_may_outlive_the_lead(
    options: dict[str, float], milliseconds: int
) -> None:
    async with RawServer(silent) as server, server.client(**options) as client:
        assert client._pool is not None
        kept = await client._pool.take()
        assert kept._transport is not None
        asking = asyncio.create_task(client.get(PATH))
        await asyncio.wait_for(server.asked.wait(), DEADLINE)
        connector: Any = client._session.connector
        (by_aiohttp,) = (each.transport for each in connector._acquired)
        for transport in (kept._transport, by_aiohttp):
            found = transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)
            assert found == milliseconds
        asking.cancel()


# --- who writes --------------------------------------------------------------------------------------------------------------------


class Desk:
    """A server that holds a request back, and who writes to it."""

    def __init__(self, api: FakeApi, client: ApiClient, lead: Lead) -> None:
        self.api, self.client, self.lead = api, client, lead
        self.timing: Any = {"backoff": RetryBackoff(0.001, 0.001)}

    async def lose_the_lead_when_asked(self, method: str, path: str) -> None:
        await self.api.until_asked(method, path)
        self.lead.held = False
        self.client.guarded.abort_unwanted()

    def holds_back(self, request: str) -> None:
        async def never(request: Any) -> Any:
            await self.api.open.wait()
            return await answer({})(request)

        self.api.on(request, never)


@pytest.fixture
async def desk(lead: Lead) -> AsyncIterator[Desk]:
    async with FakeApi() as api, api.client() as client:
        yield Desk(api, client, lead)


@pytest.mark.parametrize("node", ["node-1", ""])
async def test_a_binding_under_way_when_the_lead_is_lost_is_aborted_and_then_asked_for(desk: Desk, node: str) -> None:
    desk.holds_back(f"POST {PATH}")
    desk.api.on("GET /api/v1/namespaces/shop/pods/web", answer(pod_json(node=node)))
    binder = HttpBinder(desk.client, desk.lead, **desk.timing)
    binding = asyncio.create_task(binder.bind(a_pod(), HERE, {}))
    await desk.lose_the_lead_when_asked("POST", "/binding")
    if node:
        await asyncio.wait_for(binding, DEADLINE)
    else:
        with pytest.raises(BindError, match="not the active one"):
            await asyncio.wait_for(binding, DEADLINE)
    assert len(desk.api.asked("POST")) == 1 and binder.counts.lost_answer == 1


@pytest.mark.parametrize("node", ["node-1", ""])
async def test_an_extender_that_binds_is_not_waited_for_when_the_lead_is_lost(desk: Desk, node: str) -> None:
    desk.api.on("GET /api/v1/namespaces/shop/pods/web", answer(pod_json(node=node)))
    binder = HttpBinder(desk.client, desk.lead, **desk.timing)
    asked = asyncio.Event()

    async def slow() -> None:
        asked.set()
        await asyncio.Event().wait()
        raise ExtenderError("never")

    binding = asyncio.create_task(binder.bind_by(a_pod(), HERE, slow))
    await asked.wait()
    desk.lead.held = False
    desk.client.guarded.abort_unwanted()
    if node:
        await asyncio.wait_for(binding, DEADLINE)
    else:
        with pytest.raises(BindError, match="by an extender"):
            await asyncio.wait_for(binding, DEADLINE)


async def test_a_victim_is_not_marked_by_who_is_not_the_active_replica_any_more(desk: Desk) -> None:
    desk.holds_back("PATCH /api/v1/namespaces/shop/pods/web/status")
    evictor = HttpEvictor(desk.client, desk.lead, **desk.timing)
    evicting = asyncio.create_task(evictor.evict(a_pod(), a_pod("important"), HERE))
    await desk.lose_the_lead_when_asked("PATCH", "/status")
    with pytest.raises(EvictError, match="not the active one"):
        await asyncio.wait_for(evicting, DEADLINE)
    assert [request.method for request in desk.api.requests] == ["PATCH"]


async def test_a_lead_that_is_lost_while_a_connection_is_made_marks_nobody(desk: Desk) -> None:
    answers = iter((True, False, False))
    evictor = HttpEvictor(desk.client, lambda: next(answers), **desk.timing)
    with pytest.raises(EvictError, match="not the active one"):
        await evictor.evict(a_pod(), a_pod("important"), HERE)
    assert desk.api.requests == []
