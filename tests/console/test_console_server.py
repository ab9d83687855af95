"""The local console's server: its door, its headers, and that nothing in its address or on disk lets another in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from yarl import URL

from placewright.http.listener import bind
from placewright_console.local.doorkeeper import Doorkeeper
from placewright_console.local.localserver import LOOPBACK, ConsoleServer
from placewright_lab.consolefiles.additions import open_file

from .makers import shop


class Visitor:
    """A client with or without the session's token."""

    def __init__(self, http: aiohttp.ClientSession, server: ConsoleServer) -> None:
        self.http = http
        self.site, _, fragment = server.url.partition("/#")
        self.host = self.site.removeprefix("http://")
        self.secret = fragment.removeprefix("secret=")
        self.server = server

    async def ask(self, path: str, method: str = "GET", **more: Any) -> tuple[int, aiohttp.ClientResponse, bytes]:
        async with self.http.request(method, self.site + path, **more) as answer:
            return answer.status, answer, await answer.read()

    async def enter(self, secret: str | None = None, origin: str | None = None) -> tuple[int, aiohttp.ClientResponse, bytes]:
        told = json.dumps({"secret": self.secret if secret is None else secret})
        status, answer, body = await self.ask("/api/session", "POST", data=told, headers={"Origin": origin or self.site})
        if status == 200:
            self.http.headers["Authorization"] = f"Bearer {body.decode()}"
        return status, answer, body


async def answered(visitor: Visitor, request: str) -> int:
    """The status of an answer to a request that no client library would send."""
    host, _, port = visitor.host.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request.encode("latin-1"))
    status = int((await reader.readline()).split()[1])
    writer.close()
    await writer.wait_closed()
    return status


@pytest.fixture
async def visitor(tmp_path: Path) -> AsyncIterator[Visitor]:
    server = ConsoleServer(open_file(shop(tmp_path / "shop.snapshot"), 2**20), bind(LOOPBACK, 0, "--port"))
    jar = aiohttp.CookieJar(unsafe=True)  # keeps cookies of IP addresses, if there were any
    async with server.serving(), aiohttp.ClientSession(cookie_jar=jar) as http:
        yield Visitor(http, server)


async def test_the_secret_is_exchanged_once_for_a_token_and_no_cookie(visitor: Visitor) -> None:
    status, answer, token = await visitor.enter()
    assert status == 200
    assert "Set-Cookie" not in answer.headers, "a browser would send it to every port of this machine"
    assert answer.headers["Cache-Control"] == "no-store"
    assert len(token) > 32
    assert visitor.secret.encode() not in token
    status, _, text = await visitor.enter()
    assert (status, b"used before" in text) == (403, True)


async def test_what_a_browser_sends_to_another_port_opens_nothing_here(visitor: Visitor) -> None:
    await visitor.enter()
    cookies = visitor.http.cookie_jar.filter_cookies(URL(visitor.site).with_port(1))
    assert not cookies
    async with aiohttp.ClientSession(cookies=cookies) as other, other.get(f"{visitor.site}/api/node?name=a-1") as answer:
        assert answer.status == 401


@pytest.mark.parametrize("path", ["/api/feed", "/api/node?name=a-1", "/api/pod?pod=shop/web-1", "/api/other"])
async def test_data_needs_the_token(path: str, visitor: Visitor) -> None:
    status, _, body = await visitor.ask(path)
    assert (status, b"web-1" in body) == (401, False)
    status, *_ = await visitor.ask(path, headers={"Authorization": "Bearer guess"})
    assert status == 401
    status = await answered(visitor, f"GET {path} HTTP/1.1\r\nHost: {visitor.host}\r\nAuthorization: Bearer \xff\r\n\r\n")
    assert status == 401, "bytes that are no text are refused like any other token"
    token = visitor.server._door._session
    status, *_ = await visitor.ask(path, headers={"Cookie": f"session={token}; placewright-console={token}"})
    assert status == 401, "in a cookie the token itself opens nothing"
    status, *_ = await visitor.ask(path, headers={"Authorization": f"Bearer {visitor.secret}"})
    assert status == 401, "the secret itself opens nothing"
    status, *_ = await visitor.ask(f"{path}{'&' if '?' in path else '?'}secret={visitor.secret}")
    assert status == 401


@pytest.mark.parametrize("secret", ["", "guess", "\u00e9", "a" * 3000])
async def test_a_wrong_secret_opens_nothing_and_uses_nothing_up(secret: str, visitor: Visitor) -> None:
    assert (await visitor.enter(secret))[0] == 403
    assert (await visitor.enter())[0] == 200


NO_SECRETS = [b"", b"[]", b"\xff", b'"x"', b"{", b"[" * 4000, b'{"secret":' * 400, b'{"secret":1}', b'{"secret":"\\ud800"}', b"1" * 4096]


@pytest.mark.parametrize("body", NO_SECRETS)
async def test_a_body_that_is_no_secret_is_refused_in_words(body: bytes, visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    status, _, text = await visitor.ask("/api/session", "POST", data=body, headers={"Origin": visitor.site})
    assert (status, b"the request is not as expected" in text) == (400, True)
    assert caplog.text == ""
    assert (await visitor.enter())[0] == 200


@pytest.mark.parametrize("path", ["/", "/app.js", "/api/feed", "/api/session"])
async def test_another_host_is_refused_everywhere(path: str, visitor: Visitor) -> None:
    port = visitor.site.rpartition(":")[2]
    await visitor.enter()
    for host in (f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{int(port) - 1}", f"0.0.0.0:{port}"):
        status, _, body = await visitor.ask(path, headers={"Host": host})
        assert (status, b"import" in body) == (421, False), host


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1"])
async def test_a_page_of_another_origin_is_refused_even_with_the_token(origin: str, visitor: Visitor) -> None:
    assert (await visitor.enter(origin=origin))[0] == 403
    assert (await visitor.enter())[0] == 200
    assert (await visitor.ask("/api/node?name=a-1", headers={"Origin": origin}))[0] == 403


async def test_a_request_that_changes_something_names_its_origin(visitor: Visitor) -> None:
    status, *_ = await visitor.ask("/api/session", "POST", data=json.dumps({"secret": visitor.secret}))
    assert status == 403


@pytest.mark.parametrize("path", ["/", "/index.html", "/app.js", "/tokens.css", "/icon.svg", "/nothing", "/api/feed", "/../pyproject.toml"])
async def test_every_answer_has_the_headers_that_keep_others_out(path: str, visitor: Visitor) -> None:
    _, answer, body = await visitor.ask(path)
    assert answer.headers["Content-Security-Policy"].startswith("default-src 'self'")
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "Access-Control-Allow-Origin" not in answer.headers
    assert b"hatchling" not in body


async def test_the_feed_begins_with_a_whole_state(visitor: Visitor) -> None:
    await visitor.enter()
    async with visitor.http.get(f"{visitor.site}/api/feed") as answer:
        first = json.loads(await answer.content.readline())
        assert set(first["state"]["nodes"]) == {"a-1", "a-2", "b-1", "gpu-1"}
        have, version = first["state"], first["version"]
        async with asyncio.timeout(30):
            while have["about"]["notEvaluated"]:  # the verdicts come as deltas
                message = json.loads(await answer.content.readline())
                assert message["from"] == version
                version = message["version"]
                have["about"].update(message["delta"].get("put", {}).get("about", {}))


async def test_what_is_not_there_is_told(visitor: Visitor) -> None:
    await visitor.enter()
    for path in ("/api/node?name=gone", "/api/pod?pod=shop/gone", "/nothing.js"):
        assert (await visitor.ask(path))[0] == 404, path
    for path in ("/api/node", "/api/pod?pod="):
        assert (await visitor.ask(path))[0] == 400, path


async def test_a_request_whose_browser_is_gone_ends(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(*_: Any) -> bytes:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    await visitor.enter()
    monkeypatch.setattr(visitor.server._source.company, "verdicts", wait)
    asking = asyncio.create_task(visitor.ask("/api/verdicts?pod=shop/web-1"))
    async with asyncio.timeout(30):
        await begun.wait()
        asking.cancel()
        await ended.wait()


def test_two_consoles_have_nothing_in_common() -> None:
    one, other = Doorkeeper(4000), Doorkeeper(4001)
    assert one.fragment != other.fragment
    assert other.exchange(one.fragment.removeprefix("secret=")) is None


def test_it_listens_on_loopback_alone() -> None:
    with bind(LOOPBACK, 0, "--port") as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
