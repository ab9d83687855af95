"""An operator's console behind the console on this machine: found by the Lease, handed through, found again, and its token kept."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from handlers.stage import DEADLINE, Stage, new_stage
from placewright.http.certificates import self_made
from placewright.http.listener import bind
from placewright.leadership.leaseobject import LEASE_NAME
from placewright_console.local import clustersource, operatorlink
from placewright_console.local.operatorlink import CertificateChangedError

from .livestage import NAMESPACE, live_console

#: Bytes. A console that read on would hold far more after half a second.
MOST_WAITING = 2**25
TOKEN = "a-token-that-stays-here"


class StandIn:
    """An operator's port that answers as told.

    Attributes:
        status: of every answer.
        tokens: the Authorization headers that it was shown.
        asked: paths and queries.
        written: bytes of a feed that never ends.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.status = 200
        self.tokens: list[str] = []
        self.asked: list[str] = []
        self.written = 0
        self.port = 0
        self.tls = self_made()
        self._stop = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.tokens.append(request.headers.get("Authorization", ""))
        self.asked.append(request.path_qs)
        if self.status != 200:
            return web.Response(status=self.status, text=f"status {self.status} of {self.name}\n", headers={"WWW-Authenticate": "Bearer"})
        if request.path == "/console/api/feed":
            return await self._feed(request)
        if request.path == "/console/api/node":
            return web.json_response({"name": request.query["name"], "of": self.name}, headers={"X-Own": "no"})
        return web.Response(status=404, text="no such pod\n")

    async def _feed(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
        await answer.prepare(request)
        await answer.write(b'{"version":7,"state":{"about":{"source":"' + self.name.encode() + b'","can":["time"]},"nodes":{"n":[]}}}\n')
        await answer.write(b'{"from":7,"version":8,"delta":{"put":{"nodes":{"m":[]}}}}\n')
        with contextlib.suppress(ConnectionError):
            while "flood" in request.query:
                await answer.write(b" " * 2**16 + b"\n")
                self.written += 2**16
        await self._stop.wait()
        return answer

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[StandIn]:
        app = web.Application()
        app.add_routes([web.get("/{path:.*}", self.answer)])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        listening = bind("127.0.0.1", self.port, "--secure-port")
        self.port = listening.getsockname()[1]
        self._stop.clear()
        await web.SockSite(runner, listening, ssl_context=self.tls).start()
        try:
            yield self
        finally:
            self._stop.set()
            await runner.cleanup()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with new_stage() as made:
        yield made.profile().nodes(1)


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operatorlink, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(operatorlink, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(operatorlink, "LONGEST_RETRY_SECONDS", 0.2)
    monkeypatch.setattr(operatorlink, "REFUSED_SECONDS", 0.2)


async def test_the_operator_s_answers_are_handed_on_and_the_token_is_in_none_of_them(
    stage: Stage, capfd: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    async with StandIn("one").serving() as operator, live_console(stage, server=operator.url, token=TOKEN, say=said.append) as (browser, _):
        await browser.until(lambda: browser.state.get("nodes", {}).keys() == {"n", "m"})
        assert browser.state["about"]["local"]["can"] == ["whatif"]
        assert await browser.ask("node?name=a%26b") == (200, {"name": "a&b", "of": "one"})
        assert await browser.ask("pod?pod=x/y") == (404, "no such pod\n")
        operator.status = 500
        assert await browser.ask("node?name=n") == (500, "status 500 of one\n")
        assert set(operator.tokens) == {f"Bearer {TOKEN}"}
        assert not [path for path in operator.asked if TOKEN in path]
        assert operator.asked[-1] == "/console/api/node?name=n"
    assert TOKEN.encode() not in browser.received
    assert b"X-Own" not in browser.received
    printed = capfd.readouterr()
    assert TOKEN not in printed.out + printed.err + "".join(said)


async def test_what_the_operator_says_of_the_token_never_reaches_the_page(stage: Stage) -> None:
    """The kubeconfig's own token, with answers of all statuses."""
    async with StandIn("one").serving() as operator, live_console(stage, server=operator.url) as (browser, source):
        token = source._client.access.authorization.removeprefix("Bearer ")
        await browser.until(lambda: browser.state.get("nodes"))
        for status in (401, 403, 404, 429, 500, 503):
            operator.status = status
            await browser.ask("node?name=n")
        assert token in operator.tokens[-1]
        assert token.encode() not in browser.received
        assert b"WWW-Authenticate" not in browser.received


@pytest.mark.parametrize(
    ("status", "why"),
    [(404, "the operator's console is switched off (404)"), (403, "not open to this user (403): status 403 of one"), (401, "(401)")],
)
async def test_an_operator_that_refuses_is_replaced_by_the_api_server_s_objects_until_it_no_longer_does(
    status: int, why: str, stage: Stage
) -> None:
    operator = StandIn("one")
    operator.status = status
    async with operator.serving(), live_console(stage, server=operator.url) as (browser, _):
        await browser.until(lambda: browser.state.get("nodes", {}).keys() == {"node-0"})
        assert why in browser.notes
        operator.status = 200
        await browser.until(lambda: browser.state["nodes"].keys() == {"n", "m"})
        operator.status = status
        assert (await browser.ask("node?name=n"))[0] in (status, 503)


async def test_a_user_without_a_token_is_told_so_and_sees_the_api_server_s_objects(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewright.cli.operatorport.bearer_token", lambda _: "")  # the sandbox knows no certificates of users
    async with StandIn("one").serving() as operator, live_console(stage, server=operator.url) as (browser, _):
        await browser.until(lambda: browser.state.get("nodes", {}).keys() == {"node-0"})
        assert "evaluated here: the kubeconfig has no token to show it" in browser.notes
        assert operator.asked == []


async def test_the_kubeconfig_s_token_is_sent_to_this_machine_alone(stage: Stage) -> None:
    async with live_console(stage, server="https://placewright.example.com") as (browser, _):
        await browser.until(lambda: browser.state.get("nodes"))
        assert "is not on this machine, so the kubeconfig's token is not sent there" in browser.notes


async def test_an_operator_that_goes_away_is_told_found_again_and_replaced_after_a_while(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clustersource, "AWAY_SECONDS", 0.6)
    operator = StandIn("one")
    async with operator.serving():
        stack = contextlib.AsyncExitStack()
        browser, _ = await stack.enter_async_context(live_console(stage, server=operator.url))
        await browser.until(lambda: browser.wholes == 1 and browser.state["nodes"].keys() == {"n", "m"})
    async with stack:
        await browser.until(lambda: "does not answer" in browser.said)
        async with operator.serving():
            await browser.until(lambda: browser.wholes == 2)
            assert browser.state["nodes"].keys() == {"n", "m"}
        await browser.until(lambda: browser.state["nodes"].keys() == {"node-0"})
        assert "the operator does not answer" in browser.notes
        async with operator.serving():
            await browser.until(lambda: browser.state["nodes"].keys() == {"n", "m"})


async def test_the_replica_of_the_lease_is_asked_and_the_next_one_after_a_change_of_leader(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with StandIn("one").serving() as one, StandIn("two").serving() as two:
        put_kubectl(tmp_path, monkeypatch, {"pod-1": one.port, "pod-2": two.port})
        hold_lease(stage, "pod-1/uid")
        async with live_console(stage) as (browser, _):
            await browser.until(lambda: browser.state.get("about", {}).get("source") == "one")
            hold_lease(stage, "pod-2/uid")
            await browser.until(lambda: browser.state["about"]["source"] == "two")
            assert (await browser.ask("node?name=n"))[1]["of"] == "two"
            # A broken port-forward, as after a restart of the pod.
            os.kill(int((tmp_path / "pod-2.pid").read_text()), 9)
            before = browser.wholes
            await browser.until(lambda: browser.wholes > before)
            # The Lease is given up, as in a rolling update, and taken again.
            hold_lease(stage, "")
            await browser.until(lambda: "no replica holds the Lease" in browser.said)
            hold_lease(stage, "pod-1/uid")
            await browser.until(lambda: browser.state["about"]["source"] == "one")
        for name in ("pod-1", "pod-2"):
            with pytest.raises(ProcessLookupError):
                os.kill(int((tmp_path / f"{name}.pid").read_text()), 0)


async def test_another_server_that_takes_the_port_over_ends_the_console_and_is_not_shown_the_token(stage: Stage) -> None:
    """As a program of another user may, once a port-forward has ended."""
    operator, thief = StandIn("one"), StandIn("thief")

    async def taken_over() -> None:
        async with contextlib.AsyncExitStack() as stack:
            async with operator.serving():
                browser, _ = await stack.enter_async_context(live_console(stage, server=operator.url, token=TOKEN))
                await browser.until(lambda: browser.state.get("nodes"))
            thief.port = operator.port
            async with thief.serving(), asyncio.timeout(DEADLINE):
                await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as ended:
        await taken_over()
    (problem,) = ended.value.exceptions
    assert isinstance(problem, CertificateChangedError)
    assert f"the server at {operator.url} has another certificate than before" in str(problem)
    assert thief.tokens == []


async def test_an_operator_that_comes_back_with_its_certificate_is_taken(stage: Stage) -> None:
    operator = StandIn("one")
    async with contextlib.AsyncExitStack() as stack:
        async with operator.serving():
            browser, _ = await stack.enter_async_context(live_console(stage, server=operator.url, token=TOKEN))
            await browser.until(lambda: browser.wholes == 1)
        await browser.until(lambda: "does not answer" in browser.said)
        async with operator.serving():
            await browser.until(lambda: browser.wholes == 2)


async def test_a_browser_that_does_not_read_stops_the_operator_s_stream(stage: Stage) -> None:
    """What waits is what the sockets and streams of three connections hold, and stays so."""
    async with StandIn("one").serving() as operator, live_console(stage, server=operator.url) as (browser, _):
        await browser.until(lambda: browser.state.get("nodes"))
        async with browser.slowly("feed?flood=yes"):
            written = -1
            while operator.written != written and written < MOST_WAITING:
                written = operator.written
                await asyncio.sleep(0.5)
            assert 0 < written < MOST_WAITING


def put_kubectl(folder: Path, monkeypatch: pytest.MonkeyPatch, ports: dict[str, int]) -> None:
    """A stand-in for kubectl: the sandbox has no kubelet to forward a port."""
    script = (
        f"#!{sys.executable}\nimport os, signal, sys\n"
        "name = next(word for word in sys.argv if word.startswith('pod/')).removeprefix('pod/')\n"
        f"open({str(folder)!r} + f'/{{name}}.pid', 'w').write(str(os.getpid()))\n"
        f"print('Forwarding from 127.0.0.1:%d -> 10259' % {ports!r}[name], flush=True)\n"
        "signal.pause()\n"
    )
    kubectl = folder / "kubectl"
    kubectl.write_text(script)
    kubectl.chmod(kubectl.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def hold_lease(stage: Stage, holder: str) -> None:
    """As leadership writes it."""
    leases = stage.sandbox.resource("coordination.k8s.io", "v1", "leases")
    content: dict[str, Any] = {"metadata": {"name": LEASE_NAME, "namespace": NAMESPACE}, "spec": {"holderIdentity": holder}}
    with contextlib.suppress(Exception):
        stage.sandbox.writes.create(stage.sandbox.resource("", "v1", "namespaces"), "", {"metadata": {"name": NAMESPACE}})
    try:
        stage.sandbox.writes.create(leases, NAMESPACE, content)
    except Exception:  # noqa: BLE001 - it is there
        stage.sandbox.writes.modify(leases, NAMESPACE, LEASE_NAME, lambda found: found["spec"].update(holderIdentity=holder))
