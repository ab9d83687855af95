"""The console of a real operator, asked as a program would: three users with a token each, and what becomes of them when things change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp

from handlers.stage import DEADLINE, new_stage
from serving.consolecast import COME_IN, RBAC, READ, SECRET, at_work
from serving.desk import Desk, desk, trusting

from .makers import applied


class Follower:
    """One reader of the feed, who keeps every byte and the state that they make."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.said = b""
        self.state: dict[str, dict[str, Any]] = {}
        self.states = 0
        self.ended = False
        self._news = asyncio.Event()

    async def read(self, answer: aiohttp.ClientResponse) -> None:
        with suppress(aiohttp.ClientError):
            while line := await answer.content.readline():
                self._take(line)
        self.ended = True
        self._news.set()

    def _take(self, line: bytes) -> None:
        self.said += line
        message = json.loads(line) if line.strip() else {}
        if "state" in message:
            self.states += 1
            self.state = message["state"]
        elif "delta" in message:
            self.state = applied(self.state, message["delta"])
        self._news.set()

    async def until(self, holds: Callable[[Follower], Any]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not holds(self):
                self._news.clear()
                await self._news.wait()

    def shows(self, *names: str) -> bool:
        """Whether the state has these names, and all nodes and decisions have been read."""
        text = json.dumps(self.state)
        return self.state.get("about", {}).get("behind") == 0 and "node-1" in text and all(f'"{name}"' in text for name in names)


@asynccontextmanager
async def following(asked: Desk, token: str) -> AsyncIterator[Follower]:
    url = f"https://127.0.0.1:{asked.served.port}/console/api/feed"
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession() as session, session.get(url, ssl=trusting(), headers=headers) as answer:
        follower = Follower(answer.status)
        reading = asyncio.create_task(follower.read(answer) if answer.status == 200 else asyncio.sleep(0))
        if answer.status != 200:
            follower.said = await answer.read()
        try:
            yield follower
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def refused(asked: Desk, token: str) -> tuple[int, str]:
    async with following(asked, token) as follower:
        return follower.status, follower.said.decode()


async def test_who_asks_sees_what_the_api_server_lets_them_list_and_no_byte_of_the_rest() -> None:
    async with at_work() as (asked, cast):
        cast.priority_class("urgent", 1000)
        cast.pod("waits", "default", cpu="99")
        cast.pod(f"{SECRET}-waits", "bank", cpu="98", claim=f"{SECRET}-claim")
        cast.pod("pushes", "default", cpu="4", priorityClassName="urgent", affinity=cast.beside(SECRET, "bank"))
        ann, bob, eve = cast.person("ann", COME_IN, READ), cast.person("bob", COME_IN, here=READ), cast.person("eve", COME_IN)
        async with following(asked, ann) as all_of_it, following(asked, bob) as some, following(asked, eve) as sums:
            await all_of_it.until(lambda it: it.shows("web", SECRET, "waits", f"{SECRET}-waits", "pushes"))
            await some.until(lambda it: it.shows("web", "waits", "pushes"))
            await sums.until(lambda it: it.shows() and it.state["decisions"].get("hidden"))
            await asyncio.sleep(0.3)  # some beats more, in which nothing may slip through
            pages = ["node?name=node-0", "node?name=node-1", "pod?pod=default/pushes"]
            pages += [f"{page}?pod={pod}" for page in ("pod", "verdicts") for pod in ("default/waits", f"bank/{SECRET}-waits")]
            for follower, token, seen in ((some, bob, True), (sums, eve, False)):
                said = follower.said
                for path in pages:
                    reply = await asked.get(f"/console/api/{path}", token)
                    assert reply.status == (200 if path.startswith("node") or (seen and "default" in path) else 404), path
                    said += reply.text.encode()
                assert SECRET.encode() not in said
                assert b"bank" not in said
                assert (b"waits" in said) == seen
            assert SECRET.encode() in (await asked.get(f"/console/api/pod?pod=bank/{SECRET}-waits", ann)).text.encode()
        mallory = cast.person("mallory", READ)
        status, told = await refused(asked, mallory)
        assert (status, told) == (403, 'forbidden: User "system:serviceaccount:default:mallory" cannot get path "/console"\n')
        assert (await refused(asked, "nonsense"))[0] == 401
        for method in ("POST", "PUT", "DELETE"):
            assert (await asked.get("/console/api/apply", ann, method)).status == 405


async def test_a_right_that_is_withdrawn_is_gone_from_a_stream_that_is_open_and_with_the_token_the_stream() -> None:
    async with at_work() as (asked, cast):
        ann = cast.person("ann", COME_IN, READ, here=READ)
        async with following(asked, ann) as follower:
            await follower.until(lambda it: it.shows("web", SECRET))
            roles = asked.stage.sandbox.resource(RBAC, "v1", "clusterroles")
            asked.stage.sandbox.writes.modify(roles, "", "ann", lambda role: role.update(rules=[COME_IN]))
            await follower.until(lambda it: it.states == 2)
            follower.said = b""
            await follower.until(lambda it: it.shows("web"))
            assert SECRET not in json.dumps(follower.state)
            cast.delete("serviceaccounts", "ann", "default")
            await follower.until(lambda it: it.ended)
            assert SECRET.encode() not in follower.said
        assert (await refused(asked, ann))[0] == 401


async def test_without_the_flag_the_paths_are_404() -> None:
    async with new_stage() as stage, desk(stage.profile().nodes(1)) as asked:
        for path in ("/console", "/console/", "/console/app.js", "/console/api/feed"):
            assert (await asked.get(path)).status == 404


async def test_a_replica_that_stands_by_names_the_active_one_and_streams_end_with_the_lead() -> None:
    async with at_work() as (asked, cast), desk(asked.stage, console=True) as second:
        ann = cast.person("ann", COME_IN, READ)
        await second.until_ready(leading=False)
        active, other = (each.engine.leading.replica.identity.partition("/")[0] for each in (asked, second))
        async with asyncio.timeout(DEADLINE):
            while "the active replica is" not in (found := await refused(second, ann))[1]:
                assert found[0] == 503
        assert found == (503, f"{other} stands by; the active replica is {active}\n")
        async with following(asked, ann) as follower:
            await follower.until(lambda it: it.states)
            ending = asyncio.create_task(asked.running.end())
            await follower.until(lambda it: it.ended)
            await ending
        await second.until_ready()
        async with following(second, ann) as follower:
            await follower.until(lambda it: it.shows())
