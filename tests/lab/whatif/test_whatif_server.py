"""The what-if page's requests: a question and its lines, what is refused, and that a newer question ends the one before."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from console.makers import HOSTILE, shop
from placewright.http.listener import bind
from placewright_console.local.localserver import LOOPBACK, ConsoleServer
from placewright_console.local.seenworld import SeenWorld
from placewright_lab.consolefiles.additions import open_file, what_if_of
from placewright_lab.whatif.whatif import WhatIf
from placewright_lab.whatif.whatifpages import LARGEST_BODY, READ_ONLY

Line = dict[str, Any]


class Asker:
    """A browser with a session."""

    def __init__(self, http: aiohttp.ClientSession, site: str) -> None:
        self.http = http
        self.site = site

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, str]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Origin": self.site, "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.http.post(self.site + path, data=data, headers=sent) as answer:
            return answer.status, await answer.text()

    async def ask(self, changes: Line, page: str = "one") -> list[Line]:
        status, text = await self.post("/api/whatif", {"profile": "default", "changes": changes, "page": page})
        assert status == 200, text
        return [json.loads(line) for line in text.splitlines()]


@asynccontextmanager
async def asking(path: Path) -> AsyncIterator[Asker]:
    source = open_file(path, 2**24)
    server = ConsoleServer(source, bind(LOOPBACK, 0, "--port"), what_if_of(source))
    async with server.serving(), aiohttp.ClientSession() as http:
        site, _, fragment = server.url.partition("/#")
        secret = json.dumps({"secret": fragment.removeprefix("secret=")})
        async with http.post(f"{site}/api/session", data=secret, headers={"Origin": site}) as answer:
            assert answer.status == 200
            http.headers["Authorization"] = f"Bearer {await answer.text()}"
        yield Asker(http, site)


@pytest.fixture
async def asker(tmp_path: Path) -> AsyncIterator[Asker]:
    async with asking(shop(tmp_path / "shop.snapshot")) as made:
        yield made


async def test_a_question_is_answered_in_lines_that_begin_with_the_patch_and_end_with_an_end(asker: Asker) -> None:
    lines = await asker.ask({"weights": {"NodeResourcesFit": 5}})
    parts = [line["part"] for line in lines]
    assert parts[:3] == ["preparing", "patch", "basis"]
    assert parts[-1] == "end"
    assert {"waiting", "placing", "recent"} < set(parts)
    assert "preparing" not in [line["part"] for line in await asker.ask({})], "the copy serves again while nothing changes"


async def test_the_form_has_the_profiles_with_their_weights_and_the_schema(asker: Asker) -> None:
    async with asker.http.get(f"{asker.site}/api/whatif") as answer:
        form = await answer.json()
    (profile,) = form["profiles"]
    assert (profile["name"], profile["spec"]) == ("default", {"schedulerName": "default-scheduler"})
    assert profile["weights"]["NodeResourcesFit"] == 1
    assert form["schema"]["properties"]["preset"]["enum"][0] == "default"
    assert (form["writes"], form["readOnly"]) == (False, READ_ONLY)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"profile=default", {"Content_Type": "application/x-www-form-urlencoded"}, 415),
        (b'{"profile":"default"}', {"Content_Type": "text/plain"}, 415),
        (b"[]", {}, 400),
        (b'{"profile":"default","changes":[]}', {}, 400),
        (b'{"profile":"default","what":1}', {}, 400),
        (b'{"profile":"' + b"x" * LARGEST_BODY + b'"}', {}, 413),
        (b'{"profile":"default"}', {"Origin": "http://evil.example"}, 403),
    ],
)
async def test_a_body_of_another_kind_or_size_or_from_another_site_is_refused(
    body: bytes, headers: dict[str, str], status: int, asker: Asker
) -> None:
    for path in ("/api/whatif", "/api/apply"):
        assert (await asker.post(path, body, **headers))[0] == status, path


async def test_nothing_is_asked_or_written_without_the_session(asker: Asker) -> None:
    async with aiohttp.ClientSession() as stranger:
        for path in ("/api/whatif", "/api/apply"):
            async with stranger.post(asker.site + path, json={"profile": "default"}, headers={"Origin": asker.site}) as answer:
                assert answer.status == 401
        async with stranger.get(f"{asker.site}/api/whatif") as answer:
            assert answer.status == 401


async def test_a_console_of_a_file_writes_nothing_and_says_why(asker: Asker) -> None:
    status, text = await asker.post("/api/apply", {"profile": "default", "uid": "", "generation": 0, "changes": {"paused": True}})
    assert (status, text.strip()) == (403, READ_ONLY)


async def test_problems_of_a_change_are_those_of_the_operator_and_nothing_else_is_said(asker: Asker) -> None:
    lines = await asker.ask({"weights": {"NodeResourcesFitt": 2}, "backoff": {"initialSeconds": "soon"}})
    (problems,) = [line for line in lines if line["part"] != "preparing"]
    assert problems["part"] == "problems"
    assert [path for path, _, _ in problems["problems"]] == ["spec.backoff.initialSeconds"]
    (problems,) = await asker.ask({"weights": {"NodeResourcesFitt": 2}})
    ((path, found, allowed),) = problems["problems"]
    assert (path, found) == ("spec.weights.NodeResourcesFitt", '"NodeResourcesFitt"')
    assert "did you mean 'NodeResourcesFit'" in allowed


ODD: tuple[Line, ...] = (
    {"pluginConfig": "x"}, {"plugins": []}, {"extenders": [1]}, {"extenders": {"a": 1}}, {"weights": [1]}, {"weights": {"__proto__": 1}},
    {"backoff": None, "fairness": 7}, {"extenders": [{"tlsConfig": 1}, {"tlsConfig": {"keyData": "(hidden)"}}]}, {"preset": HOSTILE},
    {"schedulerName": None}, {"mode": "Shadow"}, {"weights": {"x" * 300: 1}},
    {"pods": {"podSelector": None}}, {"pluginConfig": [{"name": HOSTILE}] * 200},
)  # fmt: skip


@pytest.mark.parametrize("changes", ODD, ids=lambda each: str(each)[:30])
async def test_an_odd_change_is_answered_with_its_problems_or_tried(changes: Line, asker: Asker) -> None:
    last = (await asker.ask(changes))[-1]
    assert last["part"] == "end" or all(len(problem) == 3 for problem in last["problems"])


async def test_a_change_that_is_nested_deeply_ends_no_console(asker: Asker) -> None:
    for depth in (200, 900, 100_000):
        deep = b'{"a":' * depth + b"1" + b"}" * depth
        for before, after in ((b'{"pluginConfig":[{"name":"x","args":', b"}]}"), (b'{"backoff":', b"}")):
            status, text = await asker.post("/api/whatif", b'{"profile":"default","changes":' + before + deep + after + b"}")
            assert status == 400 or json.loads(text.splitlines()[-1])["part"] == "problems"
    assert (await asker.ask({}))[-1]["part"] == "end"


async def test_a_newer_question_of_a_page_ends_the_one_before_and_none_of_another_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, asked = asyncio.Event(), []
    kept = WhatIf.answer

    def slow(self: WhatIf, name: str, changes: Line) -> Generator[Line | None, None, None]:
        asked.append(changes)
        begun.set()
        while len(asked) == 1 and not newer.done():
            yield {"part": "waits"}
        if len(asked) == 1:  # it is known that a newer one has come: the next line is the last
            yield from ({"part": "waits"} for _ in range(50))
        yield from kept(self, name, changes)

    monkeypatch.setattr(WhatIf, "answer", slow)
    async with asking(shop(tmp_path / "s")) as asker:
        newer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        first = asyncio.create_task(asker.ask({"weights": {"NodeResourcesFit": 2}}))
        await begun.wait()
        other = asyncio.create_task(asker.ask({"weights": {"NodeResourcesFit": 3}}, page="another"))
        second = asyncio.create_task(asker.ask({"weights": {"NodeResourcesFit": 4}}))
        async with asyncio.timeout(30):
            lines = await first
        newer.set_result(None)
        assert {line["part"] for line in lines} <= {"preparing", "waits"}, "it was given up"
        assert (await other)[-1]["part"] == (await second)[-1]["part"] == "end"


async def test_a_question_that_is_given_up_does_not_end_the_preparation_that_the_next_one_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, prepared = asyncio.Event(), asyncio.Event(), 0
    kept = WhatIf.prepared

    def slow(self: WhatIf, world: SeenWorld) -> Generator[None, None, None]:
        nonlocal prepared
        prepared += 1
        begun.set()
        while not go_on.is_set():
            yield
        yield from kept(self, world)

    monkeypatch.setattr(WhatIf, "prepared", slow)
    async with asking(shop(tmp_path / "s")) as asker, asyncio.timeout(30):
        given_up = asyncio.create_task(asker.ask({}))
        await begun.wait()
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        async with asker.http.post(f"{asker.site}/api/whatif", json={"profile": "default"}, headers={"Origin": asker.site}) as answer:
            assert json.loads(await answer.content.readline())["part"] == "preparing"
            go_on.set()
            assert json.loads((await answer.read()).splitlines()[-1])["part"] == "end"
        assert prepared == 1


async def test_an_answer_that_nobody_reads_any_more_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    def endless(self: WhatIf, name: str, changes: Line) -> Generator[Line | None, None, None]:
        try:
            while True:
                begun.set()
                yield {"part": "waits"}
        finally:
            ended.set()

    async with asking(shop(tmp_path / "s")) as asker:
        with monkeypatch.context() as patched:
            patched.setattr(WhatIf, "answer", endless)
            reading = asyncio.create_task(asker.ask({}))
            await begun.wait()
            reading.cancel()
            async with asyncio.timeout(30):
                await ended.wait()
        assert (await asker.ask({}))[-1]["part"] == "end"


async def test_an_unknown_profile_is_told(asker: Asker) -> None:
    _, text = await asker.post("/api/whatif", {"profile": "nobody"})
    assert json.loads(text.splitlines()[-1])["problems"][0][1] == "no such profile"
