"""The cheap feed and the cheap watch: against the sandbox, and against servers that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kubesandbox.server import Sandbox, SandboxOptions
from placewright.kube.auth.login import ClusterAccess, load_config
from placewright.kube.client import ApiClient
from placewright_lab.bench.boundwatch import BoundWatch, WatchBroken
from placewright_lab.bench.madeup import plain_pods
from placewright_lab.bench.measuredcluster import FeedBroken, QuickFeed, posts, request

PODS = "/api/v1/namespaces/default/pods"
#: Seconds after which a test that hears nothing fails.
DEADLINE = 20.0


@pytest.fixture
async def client() -> AsyncIterator[ApiClient]:
    async with Sandbox(SandboxOptions(nodes=1)) as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as made:
        yield made


@asynccontextmanager
async def server(*answers: bytes) -> AsyncIterator[ClusterAccess]:
    """A server that answers requests on a connection with these, one after the other, and then hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for answer in answers:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(line for line in head.splitlines() if line.startswith(b"Content-Length"))
                await reader.readexactly(int(length.split()[1]))
                for piece in (answer[:20], answer[20:-1], answer[-1:]):
                    writer.write(piece)
                    for _ in range(10):  # turns of the loop in which the client hears this piece alone
                        await asyncio.sleep(0)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield ClusterAccess(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")


async def test_every_pod_is_created_and_has_the_time_at_which_it_was_sent(client: ApiClient) -> None:
    async with QuickFeed(client.access, connections=3) as feed:
        sent = await feed.create(posts(client.access, PODS, plain_pods(10)))
        more = [{**pod, "metadata": {"name": f"second-{number}"}} for number, pod in enumerate(plain_pods(2))]
        again = await feed.create(posts(client.access, PODS, more))
    assert list(sent) == [pod["metadata"]["name"] for pod in plain_pods(10)]
    assert sorted(sent.values()) == list(sent.values())
    assert set(again) == {"second-0", "second-1"}
    listed = await client.get(PODS)
    assert listed.count(b'"uid"') >= 12


async def test_fewer_pods_than_connections_are_created_too(client: ApiClient) -> None:
    async with QuickFeed(client.access, connections=4) as feed:
        assert len(await feed.create(posts(client.access, PODS, plain_pods(1)))) == 1
        assert await feed.create([]) == {}


async def test_a_refusal_ends_the_feed_with_what_the_server_said(client: ApiClient) -> None:
    twice = posts(client.access, PODS, plain_pods(1)) * 2
    async with QuickFeed(client.access, connections=1) as feed:
        with pytest.raises(FeedBroken, match="already exists"):
            await feed.create(twice)


async def test_at_a_rate_no_pod_is_sent_before_its_time(client: ApiClient) -> None:
    async with QuickFeed(client.access, connections=2) as feed:
        sent = sorted((await feed.create(posts(client.access, PODS, plain_pods(4)), rate=50.0)).values())
    # Timers of the loop have milliseconds.
    assert all(at - sent[0] >= number / 50 - 0.005 for number, at in enumerate(sent))


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    ],
)
async def test_an_answer_ends_with_its_length_or_with_its_last_chunk(answer: bytes) -> None:
    async with server(answer, answer) as access, QuickFeed(access, connections=1) as feed:
        assert len(await feed.create(posts(access, PODS, plain_pods(2)))) == 2


async def test_a_server_that_hangs_up_ends_the_feed() -> None:
    answer = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
    async with server(answer) as access, QuickFeed(access, connections=1) as feed:
        with pytest.raises(FeedBroken, match="hung up"):
            await feed.create(posts(access, PODS, plain_pods(3)))
        with pytest.raises(FeedBroken, match="hung up"):
            await feed.create(posts(access, PODS, plain_pods(3)))


async def test_connections_that_were_closed_between_two_batches_are_opened_again() -> None:
    answer = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
    async with server(answer) as access, QuickFeed(access, connections=1) as feed:
        for number in range(3):
            assert len(await feed.create(posts(access, PODS, plain_pods(1)))) == 1
            async with asyncio.timeout(DEADLINE):
                while number < 2 and feed._connections[0].open:  # noqa: ASYNC110 - the socket tells, and nobody else
                    await asyncio.sleep(0)


async def bind(client: ApiClient, name: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
    await client.post(f"{PODS}/{name}/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target})


async def heard(watch: BoundWatch, count: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while watch.seen() < count:  # noqa: ASYNC110 - the watch has no event to wait for
            await asyncio.sleep(0.01)


async def test_only_pods_with_a_node_are_heard_of(client: ApiClient) -> None:
    async with QuickFeed(client.access, connections=1) as feed, BoundWatch(client.access, PODS, "") as watch:
        await feed.create(posts(client.access, PODS, plain_pods(3)))
        for pod in plain_pods(2):
            await bind(client, pod["metadata"]["name"])
        await heard(watch, 2)
        assert set(watch.times) == {"plain-000000", "plain-000001"}


async def test_a_pod_that_is_bound_twice_spoils_the_measurement() -> None:
    added = b'{"type":"ADDED","object":{"metadata":{"name":"web"}}}\n'
    async with watched(added + added) as watch:
        with pytest.raises(WatchBroken, match="web was bound twice"):
            await heard(watch, 2)


async def test_an_error_in_the_watch_is_told() -> None:
    async with watched(b'{"type":"ERROR","object":{"code":410,"message":"too old"}}\n') as watch:
        with pytest.raises(WatchBroken, match="too old"):
            await heard(watch, 1)


async def test_a_watch_that_ends_is_told() -> None:
    async with watched(b"") as watch:
        with pytest.raises(WatchBroken, match="ended the watch"):
            await heard(watch, 1)


async def test_a_watch_that_the_server_closes_goes_on_after_the_last_event() -> None:
    first = b'{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"7"}}}\n'
    second = b'{"type":"DELETED","object":{"metadata":{"name":"a","namespace":"n","resourceVersion":"9"}}}\n'
    third = b'{"type":"ADDED","object":{"metadata":{"name":"b","namespace":"n","resourceVersion":"9"}}}\n'
    asked: list[bytes] = []
    async with watched(first, second + third, asked=asked, path="/api/v1/pods") as watch:
        await heard(watch, 2)
        assert set(watch.times) == {"n/a", "n/b"}
        assert watch.gone == {"n/a"}
        assert watch.placed == {"n": 1}
    assert [b"resourceVersion=1&" in asked[0], b"resourceVersion=7&" in asked[1]] == [True, True]


async def test_what_must_be_there_before_a_pod_is_created_first(client: ApiClient) -> None:
    (pod,) = posts(client.access, PODS, plain_pods(1))
    claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {"volumeName": "v"}}
    bound = {**claim, "status": {"phase": "Bound"}}
    before = request(client.access, "POST", claims, claim), request(client.access, "PUT", f"{claims}/c/status", bound)
    async with QuickFeed(client.access, connections=1) as feed:
        assert list(await feed.create([pod._replace(before=before)])) == [pod.name]
    assert b'"phase":"Bound"' in (await client.get(f"{claims}/c")).replace(b" ", b"")
    assert pod.name.encode() in await client.get(PODS)


@asynccontextmanager
async def watched(body: bytes, *more: bytes, asked: list[bytes] | None = None, path: str = PODS) -> AsyncIterator[BoundWatch]:
    """A watch that is told this, and then ends, as does each that is told more; what is asked for after those goes on in silence."""
    bodies = [body, *more]

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        (asked if asked is not None else []).append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + (bodies.pop(0) if bodies else b""))
        if more and len(asked or ()) > 1 + len(more):
            await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
        access = ClusterAccess(f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}")
        async with BoundWatch(access, path, "1") as watch:
            yield watch
