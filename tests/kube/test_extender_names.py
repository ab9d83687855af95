"""Names of extenders are looked up by threads of their own."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from aiohttp import web
from fake_api import FakeApi, answer

from placewright.kube.extenders.connection import ExtenderConnection
from placewright.kube.extenders.names import ExtenderNames


class NameServers:
    """Names that end in `.hangs` are not answered before a test ends; all others as ever."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answered = threading.Event()
        self._look_up = socket.getaddrinfo

    def getaddrinfo(self, host: str, *rest: Any) -> Any:
        self.asked.append(host)
        if host.endswith(".hangs"):
            self.answered.wait(30)
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return self._look_up(host, *rest)


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServers]:
    made = NameServers()
    monkeypatch.setattr(socket, "getaddrinfo", made.getaddrinfo)
    yield made
    made.answered.set()


async def test_a_name_is_looked_up(servers: NameServers) -> None:
    names = ExtenderNames()
    found = await names.resolve("localhost", 8888)
    assert {(each["host"], each["port"]) for each in found} <= {("127.0.0.1", 8888)}
    assert found and servers.asked == ["localhost"]
    await names.close()


async def test_an_extender_that_sends_everybody_to_names_that_nobody_answers_for_leaves_the_event_loops_threads_alone(
    servers: NameServers,
) -> None:
    """Each call is sent elsewhere. New credentials are read by the same threads as names are looked up by."""
    sent = 0

    async def elsewhere(_: web.Request) -> web.StreamResponse:
        nonlocal sent
        sent += 1
        return web.Response(status=307, headers={"Location": f"http://host-{sent}.hangs/bind"})

    async with FakeApi() as api:
        api.on("POST /bind", elsewhere)
        api.on("POST /good/bind", answer({}))
        bad = ExtenderConnection(api.url, ssl.create_default_context(), "", {})
        good = ExtenderConnection(f"{api.url}/good", ssl.create_default_context(), "", {})
        calls = [asyncio.create_task(bad.post("bind", b"{}", again=False)) for _ in range(50)]
        async with asyncio.timeout(5):
            while sent < 50 or not any(host.endswith(".hangs") for host in servers.asked):  # noqa: ASYNC110 - what a server counts
                await asyncio.sleep(0)
            assert await asyncio.gather(*(asyncio.to_thread(lambda: "read") for _ in range(20))) == ["read"] * 20
            assert await good.post("bind", b"{}", again=False) == b"{}"
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        servers.answered.set()
        await bad.close()
        await good.close()
