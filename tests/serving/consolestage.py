"""A console with readers, without an operator: a judge that knows everybody's rights, and a small state."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp

from placewright.http.listener import Listener, bind
from placewright.http.routes import Answer, Endpoint, PublicOnly, Question, RequestRefused, Routes
from placewright.kube.errors import ApiError
from placewright.serving.pages import GuardedPages
from placewright.serving.readerrights import ENTER, EVERYWHERE, ConsoleRights
from placewright.serving.reviews import AskedRight, User
from placewright.serving.rights import Rights
from placewright.testing import VirtualTime
from placewright_console.live.console import Console
from placewright_console.pages.companypages import CompanyPages
from placewright_console.pages.statedelta import Sections
from placewright_console.pages.verdictdesk import BUSY, TOO_MANY
from placewright_console.pages.waitingpage import PodsAsked

LOOPBACK: Final = "127.0.0.1"
SECRETS: Final = (b"bank", b"ledger")


class FakeJudge:
    """Knows users by their tokens, and their rights: `enter`, `everywhere`, or the name of a namespace."""

    def __init__(self) -> None:
        self.rights: dict[str, set[str]] = {}
        self._names: dict[str, str] = {}
        self.asked: list[str] = []
        self.away = False
        #: Namespaces about which an answer never comes.
        self.silent: set[str] = set()
        self.under_way = self.most_under_way = 0

    def person(self, name: str, *rights: str) -> str:
        """Returns the token."""
        self.rights[name] = set(rights)
        token = f"token-of-{len(self._names)}"
        self._names[token] = name
        return token

    async def user_of(self, token: str) -> User | None:
        self._note("token")
        name = self._names.get(token, "")
        return User(name) if name in self.rights else None

    async def allows(self, user: User, wanted: AskedRight) -> bool:
        what = {ENTER: "enter", EVERYWHERE: "everywhere"}.get(wanted, wanted.namespace)
        self._note(what)
        self.under_way += 1
        self.most_under_way = max(self.under_way, self.most_under_way)
        try:
            await (asyncio.Event().wait() if what in self.silent else asyncio.sleep(0))
        finally:
            self.under_way -= 1
        return what in self.rights.get(user.username, ())

    def _note(self, what: str) -> None:
        self.asked.append(what)
        if self.away:
            raise ApiError(500, "InternalError", "away")


class FakeCompany(CompanyPages):
    """Tells of everything that may be seen what it is called."""

    def __init__(self) -> None:
        """It has no cluster."""

    def group(self, namespace: str, name: str, rights: Rights) -> dict[str, Any] | None:
        return {"group": f"{namespace}/{name}"}

    def claim(self, namespace: str, name: str, rights: Rights) -> dict[str, Any] | None:
        return {"claim": f"{namespace}/{name}"}

    async def verdicts(self, namespace: str, name: str, rights: Rights) -> bytes | None:
        if name == "crowded":
            raise RequestRefused(BUSY, TOO_MANY)
        return json.dumps({"verdicts": f"{namespace}/{name}"}).encode()


class FakeSource:
    """A node, and a pod that was placed in each of two namespaces."""

    def __init__(self) -> None:
        self.beats = 0
        self.released = 0
        self.more = 0
        self.broken = False
        self.text = "hello"
        self.company = FakeCompany()

    def advance(self) -> bool:
        if self.broken:
            raise RuntimeError("a defect")
        self.beats += 1
        self.more = max(self.more - 1, 0)
        return self.more > 0

    def release(self) -> None:
        self.released += 1

    def sections(self, rights: Rights) -> Sections:
        placed = {"1": ["shop", "web"], "2": ["bank", "ledger"]}
        return {
            "about": {"text": self.text, "labels": [], "resources": ["cpu"], "profiles": []},
            "nodes": {"n1": [[], [4000], False]},
            "loads": {"n1": [[1000], []]},
            "decisions": {key: [*row, "n1", "", 5.0] for key, row in placed.items() if rights.may_see(row[0])},
        }

    def node(self, name: str, rights: Rights) -> dict[str, Any] | None:
        return {"name": name, "pods": [each for each in ("shop", "bank") if rights.may_see(each)]} if name == "n1" else None

    def pod(self, namespace: str, name: str, rights: Rights) -> dict[str, Any] | None:
        known = {("shop", "web"), ("bank", "ledger")}
        return {"name": name} if (namespace, name) in known and rights.may_see(namespace) else None

    def waiting(self, asked: PodsAsked, rights: Rights) -> dict[str, Any]:
        pods = [["shop", "web", 1.0], ["bank", "ledger", 2.0]]
        return {"pods": [each for each in pods if rights.may_see(str(each[0]))], "more": asked.after is not None}


class Site:
    """A console on loopback, and how to ask it."""

    def __init__(self, session: aiohttp.ClientSession, port: int, judge: FakeJudge, source: FakeSource, clock: VirtualTime) -> None:
        self.session, self.port, self.judge, self.source, self.clock = session, port, judge, source, clock
        self.elsewhere = ""
        self.namespaces = ["bank", "shop"]
        rights = ConsoleRights(judge, lambda: self.namespaces, clock)
        self.console = Console(source, clock)
        self.pages = GuardedPages(ENTER.path, self.console, rights, lambda: self.elsewhere)

    def url(self, path: str) -> str:
        return f"http://{LOOPBACK}:{self.port}{path}"

    def get(self, path: str, token: str = "", method: str = "GET", **headers: str) -> Any:
        headers = {"Accept-Encoding": "identity", **headers}
        given = {**headers, "Authorization": f"Bearer {token}"} if token else headers
        return self.session.request(method, self.url(path), headers=given, allow_redirects=False)

    async def read(self, path: str, token: str = "", method: str = "GET", **headers: str) -> tuple[int, bytes, Any]:
        async with self.get(path, token, method, **headers) as answer:
            return answer.status, await answer.read(), answer.headers

    async def until(self, holds: Any) -> None:
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110 - the console tells nobody
                await asyncio.sleep(0.01)


async def lines_of(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """The messages of a feed."""
    while line := await answer.content.readline():
        if line.strip():
            yield json.loads(line)


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    opened = bind(LOOPBACK, 0, "--port")
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(60), connector=aiohttp.TCPConnector(limit=0)) as session:
        made = Site(session, opened.getsockname()[1], FakeJudge(), FakeSource(), VirtualTime(1000.0))

        async def metrics(_question: Question) -> Answer:
            return Answer(b"some_metric 1\n")

        class Everybody(PublicOnly):
            async def admit(self, endpoint: Endpoint, question: Question) -> None:
                """Metrics are for all here, and the console judges itself."""

        routes = Routes([made.pages.endpoint, Endpoint("/metrics", metrics)])
        async with made.console.open(), Listener(routes, Everybody()).serving(opened, None):
            yield made


async def seen(rights: ConsoleRights, token: str) -> Rights | int:
    """What the owner of a token may see, or the status of the refusal."""
    question = Question("/console/api/feed", authorization=f"Bearer {token}" if token else "")
    try:
        return (await rights.of(question)).rights
    except RequestRefused as refused:
        return refused.status
