"""A live cluster behind a console on this machine, and a browser's part: it enters by the secret and follows the feed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp

from handlers.stage import DEADLINE, Stage
from placewright.cli.operatorport import OperatorPlace
from placewright.http.listener import bind
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.plugins.catalog import in_tree
from placewright_console.local.clustersource import ClusterSource
from placewright_console.local.localserver import LOOPBACK, ConsoleServer
from placewright_lab.whatif.whatifpages import WhatIfPages

from .makers import applied

State = dict[str, dict[str, Any]]
NAMESPACE: Final = "placewright-system"


class Browser:
    """Keeps every byte that it was sent.

    Attributes:
        received: headers and bodies of all answers.
        state: as the last line of the feed left it.
        said: the reason in the last answer to the feed that was none.
    """

    def __init__(self, http: aiohttp.ClientSession, server: ConsoleServer) -> None:
        self.received = bytearray()
        self.state: State = {}
        self.said = ""
        self.wholes = 0
        self.following: asyncio.Task[None] | None = None
        self._http = http
        self._site, _, fragment = server.url.partition("/#")
        self._secret = fragment.removeprefix("secret=")

    async def enter(self) -> None:
        async with self._http.post(f"{self._site}/api/session", json={"secret": self._secret}, headers={"Origin": self._site}) as answer:
            assert answer.status == 200
            self._http.headers["Authorization"] = f"Bearer {await answer.text()}"
            self._note(answer, b"")

    async def ask(self, path: str) -> tuple[int, Any]:
        async with self._http.get(f"{self._site}/api/{path}") as answer:
            body = await answer.read()
            self._note(answer, body)
            return answer.status, json.loads(body) if answer.content_type == "application/json" else body.decode()

    @asynccontextmanager
    async def slowly(self, path: str) -> AsyncIterator[None]:
        """Ask, and read no more than the beginning."""
        headers = self._http.headers
        async with aiohttp.ClientSession(headers=headers, read_bufsize=2**12) as http, http.get(f"{self._site}/api/{path}") as answer:
            assert answer.status == 200
            yield

    async def follow(self) -> None:
        """For ever, as the page does: what breaks off begins anew."""
        while True:
            try:
                await self._follow_once()
            except aiohttp.ClientError as problem:
                self.said = str(problem)
            await asyncio.sleep(0.05)

    async def _follow_once(self) -> None:
        async with self._http.get(f"{self._site}/api/feed") as answer:
            self._note(answer, b"")
            if answer.status != 200:
                self.said = await answer.text()
                self.received += self.said.encode()
                return
            version, local = 0, {}
            while line := await answer.content.readline():
                self.received += line
                message = json.loads(line) if line.strip() else {}
                if "local" in message:
                    local = message["local"]
                elif "state" in message:
                    self.state, version = message["state"], message["version"]
                    self.wholes += 1
                elif "delta" in message:
                    assert message["from"] == version
                    version = message["version"]
                    self.state = applied(self.state, message["delta"])
                if self.state and local:
                    self.state["about"]["local"] = local
                self.said = ""

    def _note(self, answer: aiohttp.ClientResponse, body: bytes) -> None:
        self.received += json.dumps([str(answer.url), dict(answer.headers)]).encode() + body

    @property
    def reasons(self) -> dict[str, Any]:
        """By the first pod's name: sub-queue and reasons."""
        return {row["pods"][0][0]: (row["place"], row["reasons"]) for row in self.state.get("queue", {}).values() if row["pods"]}

    def place(self, name: str) -> str:
        """The sub-queue of a waiting pod that is the first of its row; "nowhere" where there is none."""
        return str(self.reasons.get(name, ("nowhere",))[0])

    @property
    def notes(self) -> str:
        return "\n".join(self.state.get("about", {}).get("notes", ()))

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(DEADLINE):
            while not condition():
                assert self.following is None or not self.following.done(), "the browser's part ended"
                await asyncio.sleep(0.02)


@asynccontextmanager
async def live_console(stage: Stage, kubeconfig: str = "", **options: Any) -> AsyncIterator[tuple[Browser, ClusterSource]]:
    """A console of the stage's cluster, with one browser that follows it."""
    async with ApiClient(load_config(kubeconfig or str(stage.sandbox.kubeconfig))) as client:
        source = ClusterSource(OperatorPlace(client, None, None, NAMESPACE), in_tree(), **options)
        what_if = WhatIfPages(source, in_tree())
        source.can += what_if.can
        server = ConsoleServer(source, bind(LOOPBACK, 0, "--port"), what_if, source.through)
        async with source.running(), server.serving(), aiohttp.ClientSession(read_bufsize=2**20) as http:
            browser = Browser(http, server)
            await browser.enter()
            browser.following = following = asyncio.create_task(browser.follow())
            try:
                yield browser, source
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
