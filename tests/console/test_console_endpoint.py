"""`/console` over real sockets: pages for all, data for few, streams that end when they have to, and metrics beside a hundred of them."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import zlib
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from console.makers import HOSTILE
from placewright.http import accept, listener
from placewright.http.routes import PublicOnly, Question, RequestRefused, Routes
from placewright.serving.readerrights import KEPT_SECONDS
from placewright_console.live import streams
from placewright_console.live.console import Console
from placewright_console.pages.staticpages import static_pages
from serving.consolestage import SECRETS, Site, lines_of, site


@pytest.fixture
async def here(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    monkeypatch.setattr(streams, "BEAT", 0.02)
    monkeypatch.setattr(streams, "RIGHTS_SECONDS", 0.02)
    async with site() as made:
        yield made


# --- pages ------------------------------------------------------------------------------------------------------------------------


async def test_pages_need_no_token_and_carry_the_headers_that_keep_others_out(here: Site) -> None:
    for name, page in static_pages().items():
        status, body, headers = await here.read(f"/console/{name}")
        assert (status, body) == (200, page.body), name
        assert headers["Content-Security-Policy"].startswith("default-src 'self'")
        assert headers["Content-Type"] == page.content_type
    assert here.judge.asked == []


async def test_the_pages_are_at_a_folder_and_its_name_leads_there(here: Site) -> None:
    status, _, headers = await here.read("/console")
    assert (status, headers["Location"]) == (302, "console/"), "relative, for proxies with a path of their own"


@pytest.mark.parametrize(
    "path", ["/console/nothing.js", "/console/../pyproject.toml", "/console//", "/consoles", "/console/api", "//console/"]
)
async def test_other_paths_are_404(path: str, here: Site) -> None:
    assert (await here.read(path))[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
@pytest.mark.parametrize("path", ["/console/", "/console/api/feed", "/console/api/whatif", "/console/api/apply"])
async def test_nothing_but_get_is_answered(method: str, path: str, here: Site) -> None:
    status, _, headers = await here.read(path, here.judge.person("ann", "enter", "everywhere"), method)
    assert (status, headers["Allow"]) == (405, "GET")


async def test_it_is_not_among_what_is_served_without_tls(here: Site) -> None:
    endpoint = here.pages.endpoint
    assert Routes([endpoint]).open_to_everybody().paths == ()
    with pytest.raises(RequestRefused):
        await PublicOnly().admit(endpoint, Question("/console/"))


# --- data -------------------------------------------------------------------------------------------------------------------------

DATA = ["/console/api/feed", "/console/api/node?name=n1", "/console/api/pod?pod=shop/web"]


@pytest.mark.parametrize("path", [*DATA, "/console/api/nothing"])
async def test_data_needs_a_token_in_the_header_and_nowhere_else(path: str, here: Site) -> None:
    token = here.judge.person("ann", "enter", "everywhere")
    query = f"{path}{'&' if '?' in path else '?'}token={token}&access_token={token}"
    for asking in (here.get(path), here.get(path, "nonsense"), here.get(query), here.get(path, Cookie=f"token={token}")):
        async with asking as answer:
            assert (answer.status, answer.headers["Cache-Control"]) == (401, "no-store")
            sent = "Authorization" in answer.request_info.headers
            assert answer.headers["WWW-Authenticate"] == ('Bearer error="invalid_token"' if sent else "Bearer")
            body = await answer.read()
            assert not any(secret in body for secret in (*SECRETS, b"web"))


async def test_whom_the_api_server_knows_and_does_not_let_in_is_told_so(here: Site) -> None:
    token = here.judge.person(HOSTILE, "everywhere")
    for path in DATA:
        status, body, headers = await here.read(path, token)
        assert (status, body.decode()) == (403, f'forbidden: User "{HOSTILE}" cannot get path "/console"\n')
        assert headers["WWW-Authenticate"].startswith("Bearer")
        assert headers["Content-Type"].startswith("text/plain")
        assert headers["Content-Security-Policy"].startswith("default-src 'self'")


async def test_pages_of_other_sites_cannot_open_it_behind_a_proxy_that_knows_the_person(here: Site) -> None:
    token = here.judge.person("ann", "enter", "everywhere")
    for far in ("cross-site", "same-site"):
        assert (await here.read("/console/api/node?name=n1", token, **{"Sec-Fetch-Site": far}))[0] == 403
    assert (await here.read("/console/api/node?name=n1", token, **{"Sec-Fetch-Site": "same-origin"}))[0] == 200


async def first_of(here: Site, token: str) -> tuple[bytes, dict[str, Any]]:
    async with here.get("/console/api/feed", token) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/x-ndjson")
        line = await answer.content.readline()
        return line, json.loads(line)


async def test_each_sees_what_they_may_and_no_byte_of_the_rest(here: Site) -> None:
    everything, _ = await first_of(here, here.judge.person("ann", "enter", "everywhere"))
    assert all(secret in everything for secret in SECRETS)
    for rights in (("shop",), ()):
        token = here.judge.person("bob", "enter", *rights)
        here.clock.now += KEPT_SECONDS + 1
        said, message = await first_of(here, token)
        assert not any(secret in said for secret in SECRETS)
        assert list(message["state"]["decisions"]) == (["1"] if rights else [])
        for path in ("node?name=n1", *(f"{page}=bank/ledger" for page in ("pod?pod", "group?group", "claim?claim", "verdicts?pod"))):
            _, body, _ = await here.read(f"/console/api/{path}", token)
            assert not any(secret in body for secret in SECRETS)


async def test_a_pod_that_may_not_be_seen_is_told_like_one_that_is_not_there(here: Site) -> None:
    token = here.judge.person("bob", "enter", "shop")
    assert (await here.read("/console/api/pod?pod=shop/web", token))[:2] == (200, b'{"name":"web"}')
    hidden, missing = [await here.read(f"/console/api/pod?pod={pod}", token) for pod in ("bank/ledger", "bank/nothing")]
    assert hidden[:2] == missing[:2] == (404, b"no such pod: it may have gone since, or you may not see it\n")


async def test_pages_of_groups_claims_and_verdicts_are_asked_for_by_namespace_and_name(here: Site) -> None:
    token = here.judge.person("bob", "enter", "shop")
    for what, by in (("group", "group"), ("claim", "claim"), ("verdicts", "pod")):
        status, body, headers = await here.read(f"/console/api/{what}?{by}=shop/it", token)
        assert (status, json.loads(body), headers["Content-Type"]) == (200, {what: "shop/it"}, "application/json")
    assert (await here.read("/console/api/verdicts?pod=shop/crowded", token))[0] == 503


async def test_pages_of_waiting_pods_are_for_who_may_see_them_and_a_wrong_question_is_one_line(here: Site) -> None:
    token = here.judge.person("bob", "enter", "shop")
    status, body, _ = await here.read("/console/api/waiting?rows=a,b&after=1.5/shop/web", token)
    assert (status, json.loads(body)) == (200, {"pods": [["shop", "web", 1.0]], "more": True})
    for wrong in ("", "?rows=", "?rows=a&after=x", f"?rows={'x' * 2000}", f"?rows=a&after=1/{'x' * 500}/p"):
        status, body, _ = await here.read(f"/console/api/waiting{wrong}", token)
        assert (status, body.count(b"\n")) == (400, 1), wrong


@pytest.mark.parametrize(
    "path", ["node", "node?name=", f"node?name={'x' * 300}", "pod", "pod?pod=", "node?name=gone", "pod?pod=shop", "pod?pod=shop/"]
)
async def test_what_is_no_name_or_not_there_is_one_line(path: str, here: Site) -> None:
    status, body, _ = await here.read(f"/console/api/{path}", here.judge.person("ann", "enter", "everywhere"))
    assert status in (400, 404)
    assert body.count(b"\n") == 1


async def test_a_replica_that_stands_by_names_the_active_one_and_only_to_those_who_may_enter(here: Site) -> None:
    here.elsewhere = "pod placewright-1 is active"
    status, body, _ = await here.read("/console/api/feed", here.judge.person("ann", "enter"))
    assert (status, body) == (503, b"pod placewright-1 is active\n")
    assert (await here.read("/console/api/feed", "nonsense"))[0] == 401
    assert (await here.read("/console/"))[0] == 200


# --- streams ------------------------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def following(here: Site, token: str) -> AsyncIterator[AsyncIterator[dict[str, Any]]]:
    async with here.get("/console/api/feed", token) as answer:
        assert answer.status == 200
        messages = lines_of(answer)
        assert "state" in await anext(messages)
        yield messages


async def test_changes_come_as_deltas(here: Site) -> None:
    async with following(here, here.judge.person("ann", "enter", "everywhere")) as messages:
        here.source.text = "changed"
        assert (await anext(messages))["delta"] == {"put": {"about": {"text": "changed"}}}


async def test_nothing_runs_without_readers(here: Site) -> None:
    async with following(here, here.judge.person("ann", "enter")):
        await here.until(lambda: here.source.beats > 2)
    await here.until(lambda: here.source.released == 1)
    await asyncio.sleep(0.05)
    beats, asked = here.source.beats, len(here.judge.asked)
    await asyncio.sleep(0.2)
    assert (here.source.beats, len(here.judge.asked)) == (beats, asked)


async def test_a_reader_that_has_gone_is_noticed_at_once(here: Site) -> None:
    """Nothing is written meanwhile: the connection itself says so."""
    token = here.judge.person("ann", "enter", "everywhere")
    async with following(here, token):
        assert len(here.console.streams) == 1
    await here.until(lambda: not len(here.console.streams))
    assert here.console.streams.feed.readers == 0


async def test_a_right_that_is_withdrawn_changes_the_stream_to_what_may_still_be_seen(here: Site) -> None:
    token = here.judge.person("ann", "enter", "everywhere", "shop")
    async with following(here, token) as messages:
        here.judge.rights["ann"].discard("everywhere")
        here.clock.now += KEPT_SECONDS + 0.1
        message = await anext(messages)
        assert list(message["state"]["decisions"]) == ["1"]
        here.judge.rights["ann"].add("everywhere")
        here.clock.now += KEPT_SECONDS + 0.1
        assert set((await anext(messages))["state"]["decisions"]) == {"1", "2"}


@pytest.mark.parametrize("gone", ["enter", "token"])
async def test_a_stream_ends_when_its_reader_may_not_enter_any_more(gone: str, here: Site) -> None:
    token = here.judge.person("ann", "enter", "everywhere")
    async with following(here, token) as messages:
        if gone == "token":
            del here.judge.rights["ann"]
        else:
            here.judge.rights["ann"].discard("enter")
        here.clock.now += KEPT_SECONDS + 0.1
        assert [each async for each in messages] == []
    assert (await here.read("/console/api/feed", token))[0] == (401 if gone == "token" else 403)


async def test_a_stream_outlives_an_api_server_that_is_away_for_a_moment_and_no_longer_than_a_minute(here: Site) -> None:
    async with following(here, here.judge.person("ann", "enter", "everywhere")) as messages:
        here.clock.now += KEPT_SECONDS + 0.1
        asked = len(here.judge.asked)
        await here.until(lambda: len(here.judge.asked) >= asked + 3)
        here.judge.away = True
        here.clock.now += KEPT_SECONDS + 0.1
        asked = len(here.judge.asked)
        await here.until(lambda: len(here.judge.asked) > asked + 3)
        here.source.text = "still here"
        assert (await anext(messages))["delta"]["put"]["about"] == {"text": "still here"}
        here.clock.now += streams.UNSAID_SECONDS
        assert [each async for each in messages] == []


async def test_all_streams_end_when_the_lead_is_lost(here: Site) -> None:
    async with following(here, here.judge.person("ann", "enter", "everywhere")) as messages:
        here.pages.lead_changed(active=True)
        assert len(here.console.streams) == 1
        here.pages.lead_changed(active=False)
        assert [each async for each in messages] == []


async def test_a_defect_of_the_source_ends_the_streams_and_nothing_else(here: Site, caplog: pytest.LogCaptureFixture) -> None:
    async with following(here, here.judge.person("ann", "enter", "everywhere")) as messages:
        here.source.broken = True
        assert [each async for each in messages] == []
    assert caplog.text.count("the console has a defect") == 1
    assert (await here.read("/metrics"))[0] == 200


async def test_metrics_are_answered_beside_a_hundred_readers_that_stay(here: Site) -> None:
    token = here.judge.person("ann", "enter", "everywhere")
    async with contextlib.AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(following(here, token)) for _ in range(100)]
        assert (await here.read("/metrics"))[:2] == (200, b"some_metric 1\n")
        here.source.text = "for all"
        assert {json.dumps(await anext(each)) for each in streams} == {
            '{"from": 1, "version": 2, "delta": {"put": {"about": {"text": "for all"}}}}'
        }
    await here.until(lambda: not len(here.console.streams))


async def test_a_stream_has_no_end_after_the_time_that_other_answers_have(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accept, "ANSWER_SECONDS", 0.2)
    async with following(here, here.judge.person("ann", "enter", "everywhere")) as messages:
        await asyncio.sleep(0.6)
        here.source.text = "later"
        assert "delta" in await anext(messages)


async def test_a_reader_that_does_not_read_is_hung_up_on(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_PIECE_SECONDS", 0.2)
    here.source.text = "x" * 8_000_000
    reader, writer = await asyncio.open_connection("127.0.0.1", here.port, limit=1024)
    token = here.judge.person("ann", "enter", "everywhere")
    writer.write(f"GET /console/api/feed HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    await here.until(lambda: len(here.console.streams))
    await here.until(lambda: not len(here.console.streams))
    with contextlib.suppress(ConnectionError):
        while await reader.read(1024):
            pass
    writer.close()


async def test_who_says_more_than_a_request_is_hung_up_on(here: Site) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
    token = here.judge.person("ann", "enter", "everywhere")
    writer.write(f"GET /console/api/feed HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    await reader.readuntil(b"ledger")
    writer.write(b"and more")
    with contextlib.suppress(ConnectionError):
        await reader.read()
    await here.until(lambda: not len(here.console.streams))
    writer.close()


# --- how many ----------------------------------------------------------------------------------------------------------------------


async def test_a_crowd_of_one_user_makes_room_for_others_and_none_for_itself(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewright_console.live.streams.MOST_STREAMS", 5)
    crowd, other = here.judge.person("crowd", "enter", "everywhere"), here.judge.person("ann", "enter", "everywhere")
    async with contextlib.AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(following(here, crowd)) for _ in range(5)]
        assert (await here.read("/console/api/feed", crowd))[0] == 503
        await stack.enter_async_context(following(here, other))
        assert [each async for each in streams[0]] == []
        assert len(here.console.streams) == 5
        await stack.enter_async_context(following(here, other))
        status, body, _ = await here.read("/console/api/feed", other)
        assert (status, body) == (503, b"too many readers: 5 follow; try again later\n"), "they have as many as each other, but for one"


async def test_where_the_port_has_no_place_for_a_stream_it_is_refused_and_nothing_is_left(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accept, "FOLLOWING", 1)
    token = here.judge.person("ann", "enter", "everywhere")
    async with following(here, token):
        assert (await here.read("/console/api/feed", token))[0] == 503
        assert len(here.console.streams) == 1


async def test_more_kinds_of_rights_than_are_served_are_refused(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewright_console.pages.feed.MOST_CLASSES", 1)
    async with following(here, here.judge.person("ann", "enter")):
        assert (await here.read("/console/api/feed", here.judge.person("bob", "enter", "shop")))[0] == 503
        async with following(here, here.judge.person("cleo", "enter", "everywhere")):
            assert len(here.console.streams) == 2, "a place is kept for a reader who may see all"


async def test_explanations_take_turns_with_pauses_longer_than_themselves(here: Site) -> None:
    token = here.judge.person("ann", "enter", "everywhere")
    loop = asyncio.get_running_loop()
    took: list[tuple[float, float]] = []

    def slow(name: str, _rights: object) -> dict[str, str]:
        began = loop.time()
        while loop.time() < began + 0.02:
            pass  # the loop stands still meanwhile, as it does for an explanation
        took.append((began, loop.time()))
        return {"name": name}

    here.source.node = slow  # type: ignore[method-assign,assignment]
    await asyncio.gather(*(here.read("/console/api/node?name=n1", token) for _ in range(4)))
    assert all(later[0] - before[1] >= 0.07 for before, later in itertools.pairwise(took))


async def test_the_end_of_the_console_ends_its_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    async with site() as here:
        answer = await here.get("/console/api/feed", here.judge.person("ann", "enter", "everywhere"))
        await answer.content.readline()
    with contextlib.suppress(aiohttp.ClientError):
        assert await answer.content.read() == b""
    assert isinstance(here.console, Console)
    assert not len(here.console.streams)


async def test_who_takes_gzip_gets_one_stream_of_it_whose_pieces_are_made_once_for_all(here: Site) -> None:
    token = here.judge.person("ann", "enter", "everywhere", "shop")
    here.source.text = "long " * 10_000
    packed = {"Accept-Encoding": "br, gzip"}
    async with here.get("/console/api/feed", token, **packed) as one, here.get("/console/api/feed", token, **packed) as other:
        assert one.headers["Content-Encoding"] == "gzip"
        assert one.headers["Vary"] == "Accept-Encoding"
        first, second = lines_of(one), lines_of(other)  # aiohttp unpacks it, as browsers do
        assert await anext(first) == await anext(second)
        here.source.text = "short"
        assert (await anext(first))["delta"] == (await anext(second))["delta"] == {"put": {"about": {"text": "short"}}}
        here.judge.rights["ann"].discard("everywhere")
        here.clock.now += KEPT_SECONDS + 0.1
        assert list((await anext(first))["state"]["decisions"]) == ["1"], "another class of rights goes on in the same stream"


async def test_a_packed_stream_is_small_and_any_unpacker_takes_it(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewright_console.live.streams.SILENCE_SECONDS", 0.01)
    here.source.text = "long " * 10_000
    reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
    token = here.judge.person("ann", "enter", "everywhere")
    asked = f"GET /console/api/feed HTTP/1.0\r\nHost: x\r\nAccept-Encoding: gzip\r\nAuthorization: Bearer {token}\r\n\r\n"
    writer.write(asked.encode())
    await reader.readuntil(b"\r\n\r\n")
    unpacking, said, taken = zlib.decompressobj(zlib.MAX_WBITS | 16), b"", 0
    async with asyncio.timeout(30):
        while said.count(b"\n") < 5:
            piece = await reader.read(65536)
            taken += len(piece)
            said += unpacking.decompress(piece)
    assert said.endswith(b"}}}\n\n\n\n\n")
    assert taken < len(said) / 20
    writer.close()
