"""The console of a real operator, asked as a program would: three users with a token each, and what becomes of them when things change."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import aiohttp

from handlers.stage import DEADLINE, new_stage

from .consolecast import COME_IN, RBAC, READ, SECRET, at_work
from .consolestage import lines_of
from .desk import Desk, desk, trusting


async def state_of(asked: Desk, token: str) -> tuple[int, bytes]:
    """The first line of the feed, or the refusal."""
    url = f"https://127.0.0.1:{asked.served.port}/console/api/feed"
    async with aiohttp.ClientSession() as session, session.get(url, ssl=trusting(), headers={"Authorization": f"Bearer {token}"}) as answer:
        return answer.status, await answer.content.readline()


async def test_who_asks_sees_what_the_api_server_lets_them_list_and_no_byte_of_the_rest() -> None:
    async with at_work() as (asked, cast):
        ann = cast.person("ann", COME_IN, READ)
        bob = cast.person("bob", COME_IN, here=READ)
        eve = cast.person("eve", COME_IN)
        mallory = cast.person("mallory", READ)
        async with asyncio.timeout(DEADLINE):
            while SECRET.encode() not in (await state_of(asked, ann))[1]:  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0.05)  # the placements are confirmed in a moment
        assert b'"web"' in (await state_of(asked, ann))[1]
        for token, sees_web in ((bob, True), (eve, False)):
            status, said = await state_of(asked, token)
            assert (status, b'"web"' in said, b"node-0" in said) == (200, sees_web, True)
            for path in ("node?name=node-0", "node?name=node-1", f"pod?pod=bank/{SECRET}", "pod?pod=default/web"):
                said += (await asked.get(f"/console/api/{path}", token)).text.encode()
            assert SECRET.encode() not in said
            assert b"bank" not in said
            assert (b"web" in said) == sees_web
        status, said = await state_of(asked, mallory)
        assert (status, said.decode()) == (403, 'forbidden: User "system:serviceaccount:default:mallory" cannot get path "/console"\n')
        assert (await state_of(asked, "nonsense"))[0] == 401
        for method in ("POST", "PUT", "DELETE"):
            assert (await asked.get("/console/api/apply", ann, method)).status == 405


async def test_a_right_that_is_withdrawn_is_gone_from_a_stream_that_is_open_and_with_the_token_the_stream() -> None:
    async with at_work() as (asked, cast):
        ann = cast.person("ann", COME_IN, READ, here=READ)
        url, headers = f"https://127.0.0.1:{asked.served.port}/console/api/feed", {"Authorization": f"Bearer {ann}"}
        async with aiohttp.ClientSession() as session, session.get(url, ssl=trusting(), headers=headers) as answer:
            messages = lines_of(answer)
            assert "bank" in json.dumps(await anext(messages))
            roles = asked.stage.sandbox.resource(RBAC, "v1", "clusterroles")
            asked.stage.sandbox.writes.modify(roles, "", "ann", lambda role: role.update(rules=[COME_IN]))
            async with asyncio.timeout(DEADLINE):
                while "state" not in (message := await anext(messages)):
                    pass
            assert "bank" not in json.dumps(message)
            assert '"web"' in json.dumps(message)
            cast.delete("serviceaccounts", "ann", "default")
            async with asyncio.timeout(DEADLINE):
                with suppress(aiohttp.ClientPayloadError):
                    assert all("bank" not in json.dumps(each) for each in [each async for each in messages])
        assert (await state_of(asked, ann))[0] == 401


async def test_without_the_flag_the_paths_are_404() -> None:
    async with new_stage() as stage, desk(stage.profile().nodes(1)) as asked:
        for path in ("/console", "/console/", "/console/app.js", "/console/api/feed"):
            assert (await asked.get(path)).status == 404


async def test_a_replica_that_stands_by_names_the_active_one_and_streams_end_with_the_lead() -> None:
    async with at_work() as (asked, cast), desk(asked.stage, console=True) as second:
        ann = cast.person("ann", COME_IN, READ)
        await second.until_ready(leading=False)
        active = asked.engine.replica.identity.partition("/")[0]
        async with asyncio.timeout(DEADLINE):
            while (found := await state_of(second, ann))[0] != 503 or b"the active replica is" not in found[1]:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert found[1].decode() == f"{second.engine.replica.identity.partition('/')[0]} stands by; the active replica is {active}\n"
        url, headers = f"https://127.0.0.1:{asked.served.port}/console/api/feed", {"Authorization": f"Bearer {ann}"}
        async with aiohttp.ClientSession() as session, session.get(url, ssl=trusting(), headers=headers) as answer:
            await answer.content.readline()
            ending = asyncio.create_task(asked.running.end())
            async with asyncio.timeout(DEADLINE):
                with suppress(aiohttp.ClientError):
                    while await answer.content.readline():
                        pass
            await ending
        await second.until_ready()
        assert (await state_of(second, ann))[0] == 200
