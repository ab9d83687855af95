"""Writes on connections of our own, against servers that keep to the protocol in unusual ways, or do not."""

from __future__ import annotations

import asyncio
import sys
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest
from fake_api import FakeApi, answer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from raw_server import CREATED, Conversation, Peer, RawServer, answering, once, reset, silent

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import MERGE_PATCH, ApiClient
from placewright.kube.errors import ApiError, Unreachable
from placewright.kube.guarded import GuardedBody
from placewright.kube.keptconnection import LONGEST_ANSWER, LONGEST_REFUSAL, KeptConnection

PATH = "/api/v1/namespaces/shop/pods/web/binding"
STATUS = b'{"kind":"Status","reason":"Conflict","message":"pod is bound","code":409}'
CHUNKED = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
IN_CHUNKS = CHUNKED + b'5\r\n{"a":\r\n4;x=y\r\n 1} \r\n0\r\n\r\n'

WHOLE = {
    "a length": CREATED,
    "no body": b"HTTP/1.1 204 No Content\r\n\r\n",
    "a length of nothing": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "chunks": IN_CHUNKS,
    "chunks and trailers": CHUNKED + b"1\r\n{\r\n0\r\nX-After: 1\r\n\r\n",
    "interim answers first": b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + CREATED,
    "other spellings": b"HTTP/1.1 201 \r\ncontent-LENGTH:   2\r\n\r\n{}",
}


async def written(client: ApiClient, body: Any = b"{}") -> None:
    await client.write("POST", PATH, body)


async def test_a_write_says_what_a_request_of_aiohttps_says() -> None:
    async with FakeApi() as api, ApiClient(ClusterAccess(api.url, authorization="Bearer t")) as client:
        api.on(f"POST {PATH}", answer({}))
        api.on(f"PATCH {PATH}", answer({}))
        await client.write("POST", PATH, {"a": 1})
        await client.post(PATH, {"a": 1})
        await client.write("PATCH", PATH, {"a": 2}, MERGE_PATCH)
        await client.patch(PATH, {"a": 2})
    ours, theirs, patched, theirs_patched = ({**one.headers} for one in api.requests)
    for headers in (theirs, theirs_patched):
        del headers["Accept-Encoding"]
    assert (ours, patched) == (theirs, theirs_patched)
    assert [one.body for one in api.requests] == [{"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}]


class Spied:
    """A transport whose `write` is a function of Python, so that a profiler sees it."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        sys.setprofile(None)
        self._transport.write(data)


async def test_nothing_runs_between_the_question_whether_a_request_is_allowed_and_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is stopped in between sends them when it goes on: another replica may have decided since."""
    made, called = KeptConnection.connection_made, list[str]()
    monkeypatch.setattr(KeptConnection, "connection_made", lambda self, transport: made(self, Spied(transport)))  # type: ignore[arg-type]

    def note(frame: FrameType, event: str, _arg: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_name)

    def allowed() -> bool:
        sys.setprofile(note)
        return True

    async with RawServer(answering(CREATED)) as server, server.client() as client:
        await written(client, GuardedBody(b"{}", allowed))
    assert called == ["write"]


@pytest.mark.parametrize("said", WHOLE.values(), ids=WHOLE)
async def test_a_whole_answer_of_any_shape_is_one_and_the_connection_is_kept(said: bytes) -> None:
    async with RawServer(answering(said)) as server, server.client() as client:
        await written(client)
        await written(client)
    assert [len(peer.requests) for peer in server.peers] == [2]


@pytest.mark.parametrize("said", [b"HTTP/1.1 201 Created\r\n\r\n{}", b"HTTP/1.0 201 Created\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n{}"])
async def test_a_body_without_a_length_ends_with_the_connection(said: bytes) -> None:
    async with RawServer(once(said)) as server, server.client() as client:
        await written(client)
        await written(client)
    assert len(server.peers) == 2


@given(said=st.sampled_from([CREATED, IN_CHUNKS, WHOLE["interim answers first"]]), cuts=st.sets(st.integers(1, 120), max_size=8))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_does_not_matter_where_an_answer_is_cut_into_packets(said: bytes, cuts: set[int]) -> None:
    bounds = [0, *sorted(cut for cut in cuts if cut < len(said)), len(said)]
    pieces = [said[start:end] for start, end in pairwise(bounds)]

    async def in_pieces(peer: Peer) -> None:
        while await peer.request():
            await peer.say(*pieces)

    async def both() -> None:
        async with RawServer(in_pieces) as server, server.client() as client:
            await written(client)
            await written(client)
        assert len(server.peers) == 1

    asyncio.run(both())


def refusal(body: bytes, *headers: bytes, status: bytes = b"409 Conflict") -> bytes:
    return b"\r\n".join([b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers, b"", body])


async def test_a_refusal_carries_the_servers_sentence_and_when_to_come_again() -> None:
    async with RawServer(answering(refusal(STATUS, b"Retry-After: 7"))) as server, server.client() as client:
        with pytest.raises(ApiError) as caught:
            await written(client)
        with pytest.raises(ApiError):
            await written(client)
    error = caught.value
    assert (error.status, error.reason, error.message, error.retry_after) == (409, "Conflict", "pod is bound", 7)
    assert len(server.peers) == 1 and len(server.requests) == 2


async def test_a_redirect_is_a_refusal_and_is_not_followed() -> None:
    moved = refusal(b"", b"Location: http://127.0.0.1:1/elsewhere", status=b"307 Temporary Redirect")
    async with RawServer(answering(moved)) as server, server.client() as client:
        with pytest.raises(ApiError, match="307"):
            await written(client)
    assert len(server.requests) == 1


async def test_of_a_long_refusal_only_the_beginning_is_kept() -> None:
    long = refusal(b"x" * (LONGEST_REFUSAL * 8), status=b"500 Internal Server Error")
    async with RawServer(answering(long, CREATED)) as server, server.client() as client:
        with pytest.raises(ApiError, match=r"500: x{200}$"):
            await written(client)
        await written(client)
    assert len(server.peers) == 1


async def endless_interim(peer: Peer) -> None:
    await peer.request()
    while True:
        await peer.say(b"HTTP/1.1 102 Processing\r\n\r\n")


async def endless_head(peer: Peer) -> None:
    await peer.request()
    await peer.say(b"HTTP/1.1 201 Created\r\n")
    while True:
        await peer.say(b"X-More: " + b"x" * 4000 + b"\r\n")


async def endless_body(peer: Peer) -> None:
    await peer.request()
    await peer.say(CHUNKED)
    for _ in range(2 * LONGEST_ANSWER // 2**16):
        await peer.say(b"10000\r\n" + b"x" * 2**16 + b"\r\n")
    await peer.reader.read()


LOST: dict[str, Conversation] = {
    "nothing": once(),
    "a reset": reset,
    "half a status line": once(b"HTTP/1.1 20"),
    "half a head": once(b"HTTP/1.1 201 Created\r\nContent-Le"),
    "an interim answer alone": once(b"HTTP/1.1 102 Processing\r\n\r\n"),
    "another protocol": once(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"),
    "no HTTP": once(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "a status that is none": once(b"HTTP/1.1 abc Created\r\nContent-Length: 0\r\n\r\n"),
    "a length that is none": once(b"HTTP/1.1 201 Created\r\nContent-Length: -2\r\n\r\n{}"),
    "a chunk's length that is none": once(CHUNKED + b"zz\r\n{}\r\n"),
    "interim answers without end": endless_interim,
    "a head without end": endless_head,
}
BROKEN_OFF: dict[str, Conversation] = {
    "half a body": once(b"HTTP/1.1 201 Created\r\nContent-Length: 20\r\n\r\n{}"),
    "half a chunk": once(CHUNKED + b"20\r\n{}"),
    "a body without end": endless_body,
}


@pytest.mark.parametrize("conversation", LOST.values(), ids=LOST)
async def test_what_is_no_answer_is_unreachable_and_nothing_is_sent_twice(conversation: Conversation) -> None:
    async with RawServer(conversation) as server, server.client() as client:
        with pytest.raises(Unreachable, match=f"POST {PATH}: ") as caught:
            await written(client)
        assert client.away.away_since is not None
    assert len(server.requests) == 1
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("conversation", BROKEN_OFF.values(), ids=BROKEN_OFF)
async def test_an_answer_that_breaks_off_is_unreachable_but_the_server_is_not_called_away(conversation: Conversation) -> None:
    async with RawServer(conversation) as server, server.client() as client:
        with pytest.raises(Unreachable):
            await written(client)
        assert client.away.away_since is None
    assert len(server.requests) == 1


async def test_an_answer_that_does_not_come_in_time_is_lost_and_so_is_its_connection() -> None:
    async with RawServer(silent, answering(CREATED)) as server, server.client(timeout=0.05) as client:
        with pytest.raises(Unreachable, match="no answer in time"):
            await written(client)
        await server.hung_up.wait()
        await written(client)
    assert [len(peer.requests) for peer in server.peers] == [1, 1]


async def test_who_is_cancelled_leaves_no_answer_behind_for_the_next() -> None:
    async with RawServer(silent, answering(CREATED)) as server, server.client() as client:
        first = asyncio.create_task(written(client))
        async with asyncio.timeout(5):
            await server.asked.wait()
            first.cancel()
            await server.hung_up.wait()
        with pytest.raises(asyncio.CancelledError):
            await first
        await written(client)
    assert len(server.peers) == 2


async def test_a_second_answer_to_one_request_is_never_taken_for_the_next_ones() -> None:
    async with RawServer(answering(CREATED + refusal(STATUS)), answering(CREATED)) as server, server.client() as client:
        await written(client)
        await written(client)
    assert [len(peer.requests) for peer in server.peers] == [1, 1]


async def test_an_answer_that_nobody_asked_for_is_never_taken_for_the_next_ones() -> None:
    async def talkative(peer: Peer) -> None:
        await peer.request()
        await peer.say(CREATED)
        await peer.say(refusal(STATUS))
        await peer.reader.read()

    async with RawServer(talkative, answering(CREATED)) as server, server.client() as client:
        await written(client)
        async with asyncio.timeout(5):
            await server.hung_up.wait()
        await written(client)
    assert len(server.peers) == 2


async def test_a_connection_whose_answer_says_that_it_is_the_last_is_not_used_again() -> None:
    last = b"HTTP/1.1 201 Created\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
    async with RawServer(answering(last)) as server, server.client() as client:
        await written(client)
        await written(client)
    assert [len(peer.requests) for peer in server.peers] == [1, 1]


async def test_a_connection_that_was_closed_while_it_was_idle_costs_nothing() -> None:
    async with RawServer(once(CREATED), answering(CREATED)) as server, server.client() as client:
        await written(client)
        async with asyncio.timeout(5):
            await server.hung_up.wait()
            assert client._pool is not None
            while client._pool._idle[0].usable:  # noqa: ASYNC110 - the socket tells, and nobody else
                await asyncio.sleep(0)
        await written(client)
    assert len(server.requests) == 2


async def test_a_request_that_meets_the_servers_goodbye_is_not_sent_again() -> None:
    """Whether the server has seen it cannot be known, and a POST may not be done twice."""

    async def goodbye(peer: Peer) -> None:
        await peer.request()
        await peer.say(CREATED)
        await peer.request()

    async with RawServer(goodbye, answering(CREATED)) as server, server.client() as client:
        await written(client)
        with pytest.raises(Unreachable, match="hung up"):
            await written(client)
    assert len(server.requests) == 2 and len(server.peers) == 1


async def test_a_guarded_body_is_withheld_at_the_last_moment_and_its_connection_goes_on() -> None:
    allowed = iter((True, False, True))
    async with RawServer(answering(CREATED)) as server, server.client() as client:
        bodies = [GuardedBody({"n": n}, lambda: next(allowed)) for n in range(3)]
        await written(client, bodies[0])
        with pytest.raises(Unreachable, match="not allowed"):
            await written(client, bodies[1])
        await written(client, bodies[2])
        assert client.away.away_since is None
    assert [body.withheld for body in bodies] == [False, True, False]
    assert [request.partition(b"\r\n\r\n")[2] for request in server.peers[0].requests] == [b'{"n":0}', b'{"n":2}']


async def test_after_a_401_the_next_write_carries_fresh_credentials() -> None:
    async with RawServer(answering(refusal(b"{}", status=b"401 Unauthorized"), CREATED)) as server:
        access = server.access(authorization="Bearer old")
        access.reload = lambda forced: server.access(authorization="Bearer fresh" if forced else "Bearer other")
        async with ApiClient(access) as client:
            with pytest.raises(ApiError):
                await written(client)
            await written(client)
    assert [b"Authorization: Bearer old\r\n" in request for request in server.requests] == [True, False]
    assert b"Authorization: Bearer fresh\r\n" in server.requests[1]


@pytest.mark.parametrize("name", ["a\r\nX-Injected: b", "a b", "\u202e"])
async def test_a_name_that_no_request_line_can_hold_is_not_written(name: str) -> None:
    async with RawServer(answering(CREATED)) as server, server.client() as client:
        with pytest.raises(ApiError, match="is no path"):
            await client.write("POST", f"/api/v1/nodes/{name}", b"{}")
    assert server.requests == []
