from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from extender_server import Certificate, certificate, serving
from fake_api import FakeApi, answer
from raw_server import CREATED, Peer, RawServer, answering, silent

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import ApiClient
from placewright.kube.connectionpool import ConnectionPool, reaches
from placewright.kube.errors import Unreachable

PATH = "/api/v1/namespaces/shop/events"


async def written(client: ApiClient) -> None:
    await client.write("POST", PATH, b"{}")


def trusting(server: Certificate) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(server.certificate))


async def test_a_slow_server_gets_as_many_connections_as_there_are_requests() -> None:
    wanted, arrived, go = 20, 0, asyncio.Event()

    async def slow(peer: Peer) -> None:
        nonlocal arrived
        await peer.request()
        arrived += 1
        if arrived == wanted:
            go.set()
        await go.wait()
        await peer.say(CREATED)
        await peer.reader.read()

    async with RawServer(slow) as server, server.client() as client:
        async with asyncio.timeout(5):
            await asyncio.gather(*(written(client) for _ in range(wanted)))
    assert len(server.peers) == wanted


async def test_who_waits_takes_a_connection_that_becomes_free_before_another_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async with RawServer(answering(CREATED)) as server, server.client() as client:
        pool = client._pool
        assert pool is not None
        held = await pool.take()
        never = asyncio.Event()
        with monkeypatch.context() as patch:
            patch.setattr(pool, "_opened", never.wait)
            waiting = asyncio.create_task(pool.take())
            await asyncio.sleep(0)
            pool.give_back(held)
            assert await waiting is held
    assert len(server.peers) == 1


async def test_who_gives_up_waiting_gives_the_connection_back() -> None:
    async with RawServer(answering(CREATED)) as server, server.client() as client:
        pool = client._pool
        assert pool is not None
        held = await pool.take()
        waiting = asyncio.create_task(pool.take())
        await asyncio.sleep(0)
        pool.give_back(held)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await pool.take() is held


async def test_connections_that_nobody_needs_are_closed_after_a_while() -> None:
    now = 0.0
    async with RawServer(answering(CREATED)) as server:
        pool = ConnectionPool(server.access(), lambda: now)
        first, second = await pool.take(), await pool.take()
        pool.give_back(second)
        now = 9.0
        pool.give_back(first)
        now = 12.0
        pool._close_old()
        assert (first.usable, second.usable) == (True, False)
        assert await pool.take() is first
        await pool.close()


async def test_what_is_under_way_ends_when_the_client_is_closed() -> None:
    async with RawServer(silent) as server:
        client = server.client()
        writing = asyncio.create_task(written(client))
        async with asyncio.timeout(5):
            await server.asked.wait()
            await client.close()
            with pytest.raises(Unreachable):
                await writing


async def test_a_server_that_is_away_is_unreachable_and_tried_again_by_aiohttp() -> None:
    async with RawServer(answering(CREATED)) as server:
        access = server.access()
    async with ApiClient(access) as client:
        for _ in range(2):
            with pytest.raises(Unreachable, match=r"Cannot connect to host [\d.]+:\d+: Connection refused$"):
                await written(client)
        assert client.away.away_since is not None


PROBLEMS = [
    OSError("no route"), TimeoutError(), RuntimeError("File descriptor 50 is used by transport <x>"), UnicodeError("label too long"),
    asyncio.CancelledError(),
]  # fmt: skip


@pytest.mark.parametrize("problem", PROBLEMS, ids=[type(problem).__name__ for problem in PROBLEMS])
async def test_where_no_connection_can_be_opened_here_the_request_takes_the_long_way(
    monkeypatch: pytest.MonkeyPatch, problem: BaseException
) -> None:
    async def refuse() -> None:
        raise problem

    async with FakeApi() as api, api.client() as client:
        api.on(f"POST {PATH}", answer({}, 201))
        monkeypatch.setattr(client._pool, "_opened", refuse)
        await asyncio.gather(*(written(client) for _ in range(6)))
    assert len(api.requests) == 6


async def test_a_closed_pool_has_no_connections() -> None:
    async with RawServer(answering(CREATED)) as server:
        pool = ConnectionPool(server.access(), lambda: 0.0)
        held = await pool.take()
        await pool.close()
        assert await pool.take() is None
        assert not held.usable


# --- TLS and what stands in between ------------------------------------------------------------------------------------------------


async def test_the_servers_certificate_is_checked_by_the_name_that_is_expected(tmp_path: Path) -> None:
    shown = certificate(tmp_path, "server", "api.example")
    async with RawServer(answering(CREATED), tls=serving(shown)) as server:
        async with ApiClient(server.access(trusting(shown), tls_server_name="api.example")) as client:
            await written(client)
        async with ApiClient(server.access(trusting(shown))) as client:
            with pytest.raises(Unreachable, match="certificate"):
                await written(client)
    assert len(server.requests) == 1


async def test_a_server_whose_certificate_nobody_vouches_for_hears_nothing(tmp_path: Path) -> None:
    shown, other = certificate(tmp_path, "server", "127.0.0.1"), certificate(tmp_path, "other", "127.0.0.1")
    async with RawServer(answering(CREATED), tls=serving(shown)) as server, ApiClient(server.access(trusting(other))) as client:
        with pytest.raises(Unreachable):
            await written(client)
    assert server.requests == []


async def test_a_client_certificate_is_shown(tmp_path: Path) -> None:
    shown, ours = certificate(tmp_path, "server", "127.0.0.1"), certificate(tmp_path, "client", serving=False)
    tls = trusting(shown)
    tls.load_cert_chain(ours.certificate, ours.key)
    async with RawServer(answering(CREATED), tls=serving(shown, clients=ours)) as server, ApiClient(server.access(tls)) as client:
        await written(client)
    assert len(server.requests) == 1


async def test_connections_that_were_opened_with_old_certificates_are_not_used_again(tmp_path: Path) -> None:
    shown = certificate(tmp_path, "server", "127.0.0.1")
    async with RawServer(answering(CREATED), tls=serving(shown)) as server:
        access = server.access(trusting(shown))
        async with ApiClient(access) as client:
            await written(client)
            access.tls = trusting(shown)
            await written(client)
            await written(client)
    assert [len(peer.requests) for peer in server.peers] == [1, 2]


async def test_writes_go_through_a_proxy_where_there_is_one() -> None:
    async with FakeApi() as proxy, ApiClient(ClusterAccess("http://api.invalid:80", proxy=proxy.url)) as client:
        proxy.on(f"POST {PATH}", answer({}, 201))
        await written(client)
    assert proxy.requests[0].headers["Host"] == "api.invalid"


TLS = ssl.create_default_context()
REACHED = [
    (ClusterAccess("https://10.0.0.1:6443", tls=TLS), True),
    (ClusterAccess("https://[fd00::1]:6443/k8s/clusters/c-1", tls=TLS), True),
    (ClusterAccess("http://localhost:8080"), True),
    (ClusterAccess("https://10.0.0.1:6443", tls=TLS, proxy="http://proxy:3128"), False),
    (ClusterAccess("https://me:secret@10.0.0.1:6443", tls=TLS), False),
    (ClusterAccess("https://10.0.0.1:6443"), False),
    (ClusterAccess("unix:///run/api.sock"), False),
]


@pytest.mark.parametrize(("access", "plainly"), REACHED, ids=[access.server for access, _ in REACHED])
def test_only_servers_that_are_reached_plainly_get_connections_of_our_own(access: ClusterAccess, plainly: bool) -> None:
    assert reaches(access) is plainly
