"""`/console`: the console's pages, and the data behind them for people whom the API server lets see it.

The pages carry no data and need no token. What they ask for is below `/console/api/`, needs a bearer token, and is answered by the replica
that places pods, as only that one has the queue.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from placewright.api.decode import DecodeError
from placewright.console.companypages import CompanyPages
from placewright.console.source import ConsoleSource
from placewright.console.staticpages import SECURITY_HEADERS, static_pages
from placewright.console.verdictdesk import TooManyQuestionsError
from placewright.console.waitingpage import LONGEST_AFTER, LONGEST_ROWS, PodsAsked
from placewright.engine.engine import Engine
from placewright.leadership.election import Alone
from placewright.serving.consolerights import ConsoleRights, Visitor
from placewright.serving.consolestreams import ConsoleStreams
from placewright.serving.routes import JSON, TEXT, Answer, Audience, Endpoint, Question, RequestRefused

PATH: Final = "/console"
_PAGES: Final = f"{PATH}/"
_DATA: Final = f"{PATH}/api/"
_LINES: Final = "application/x-ndjson"
#: How much longer the pause after an explanation is than the explanation took: together they take a fifth of the event loop's time at most.
_REST: Final = 4.0
#: Explanations that wait for their turn.
_MOST_WAITING: Final = 50
#: Characters of a name, by the rules of Kubernetes, and of a namespace with it.
_LONGEST_NAME: Final = 253
_LONGEST_PAIR: Final = 63 + 1 + _LONGEST_NAME
_FOUND: Final = 302
_BAD_REQUEST: Final = 400
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_BUSY: Final = 503
#: The same for what is not there and for what the reader may not see.
_MISSING: Final = "there is none of this name, or none that you may see"
_TOO_MANY: Final = "too many people ask at once; try again"
_UNKEPT: Final = {"Cache-Control": "no-store", **SECURITY_HEADERS}

#: Makes a page of plain data for a reader; None where there is none that this reader may see.
_Making = Callable[[Question, Visitor], dict[str, Any] | None]


class Console:
    """One replica's console.

    Attributes:
        streams: of its readers.
    """

    def __init__(
        self,
        source: ConsoleSource,
        company: CompanyPages,
        rights: ConsoleRights,
        elsewhere: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Serve nothing yet; `endpoint` is what serves, and `open` what publishes.

        Args:
            source: of the state, and of the pages of nodes and pods.
            company: pages of groups and claims, and verdicts.
            rights: of readers.
            elsewhere: says in a sentence which replica to ask instead; empty where this one places pods.
            clock: seconds, monotonic.
        """
        self.streams = ConsoleStreams(source, rights, clock)
        self._source = source
        self._company = company
        self._rights = rights
        self._elsewhere = elsewhere
        self._turn = _Turn()
        self._made: Mapping[str, _Making] = {
            "node": self._node,
            "pod": self._pod,
            "group": self._group,
            "claim": self._claim,
            "waiting": self._waiting,
        }

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of all paths below `/console`."""
        return Endpoint(PATH, self.answer, Audience.ITS_OWN, below=True)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Publish for as long as the context is open."""
        async with self.streams.open():
            yield

    def lead_changed(self, active: bool) -> None:
        """End the streams where the lead is lost: the state that counts is another replica's."""
        if not active:
            self.streams.end_all()

    async def answer(self, question: Question) -> Answer:
        """Answer a request. A refusal has the headers of the pages, too."""
        try:
            if not question.path.startswith(_DATA):
                return _page(question.path)
            return await self._data(question)
        except RequestRefused as refused:
            headers = {**_UNKEPT, **_challenge(question, refused.status)}
            return Answer(f"{refused}\n".encode(), TEXT, refused.status, headers)

    async def _data(self, question: Question) -> Answer:
        if question.site not in ("", "same-origin", "none"):
            raise RequestRefused(_FORBIDDEN, "pages of other sites may not read the console")
        what = question.path.removeprefix(_DATA)
        visitor = await self._rights.of(question, anew=what == "feed")
        if elsewhere := self._elsewhere():
            raise RequestRefused(_BUSY, elsewhere)
        if what == "feed":
            packing = {"Content-Encoding": "gzip"} if question.packed else {}
            return Answer(self.streams.follow(question, visitor), _LINES, headers={**_UNKEPT, **packing, "Vary": "Accept-Encoding"})
        if what == "verdicts":
            found = await self._verdicts(question, visitor)
        elif what in self._made:
            async with self._turn.taken():
                made = self._made[what](question, visitor)
            found = None if made is None else msgspec.json.encode(made)
        else:
            raise RequestRefused(_NOT_FOUND, "404 page not found")
        if found is None:
            raise RequestRefused(_NOT_FOUND, _MISSING)
        return Answer(found, JSON, headers=_UNKEPT)

    def _node(self, question: Question, visitor: Visitor) -> dict[str, Any] | None:
        return self._source.node(_parameter(question, "name", _LONGEST_NAME), visitor.rights)

    def _pod(self, question: Question, visitor: Visitor) -> dict[str, Any] | None:
        return self._source.pod(*_pair(question, "pod", visitor), visitor.rights)

    def _group(self, question: Question, visitor: Visitor) -> dict[str, Any] | None:
        return self._company.group(*_pair(question, "group", visitor), visitor.rights)

    def _claim(self, question: Question, visitor: Visitor) -> dict[str, Any] | None:
        return self._company.claim(*_pair(question, "claim", visitor), visitor.rights)

    def _waiting(self, question: Question, visitor: Visitor) -> dict[str, Any]:
        rows, after = [question.query.get(name, ("",))[-1] for name in ("rows", "after")]
        if len(rows) > LONGEST_ROWS or len(after) > LONGEST_AFTER:
            raise RequestRefused(_BAD_REQUEST, "the question is too long")
        try:
            asked = PodsAsked.of(rows, after)
        except DecodeError as problem:
            raise RequestRefused(_BAD_REQUEST, str(problem)) from None
        return self._source.waiting(asked, visitor.rights)

    async def _verdicts(self, question: Question, visitor: Visitor) -> bytes | None:
        try:
            return await self._company.verdicts(*_pair(question, "pod", visitor), visitor.rights)
        except TooManyQuestionsError:
            raise RequestRefused(_BUSY, _TOO_MANY) from None


def active_elsewhere(engine: Engine) -> str:
    """Say which replica places pods, where it is not this one.

    Args:
        engine: of this replica.

    Returns:
        A sentence; empty where this one does.
    """
    if engine.ending:
        return "this replica is ending"
    if not engine.started:
        return "this replica is starting: the API server has not answered yet"
    leadership, pod = engine.leadership, engine.replica.identity.partition("/")[0]
    if leadership.active or isinstance(leadership, Alone):
        return ""
    sight = leadership.lease.sight
    holder = "" if sight is None or sight.record.holder == engine.replica.identity else sight.record.holder.partition("/")[0]
    return f"{pod} stands by; {f'the active replica is {holder}' if holder else 'no replica is active now'}"


class _Turn:
    """Has answers that take long made one after the other, with pauses between them in which pods are placed."""

    def __init__(self) -> None:
        self._one = asyncio.Lock()
        self._waiting = 0
        self._free_at = 0.0

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """Wait for a turn. Raises `RequestRefused` where too many wait."""
        if self._waiting >= _MOST_WAITING:
            raise RequestRefused(_BUSY, _TOO_MANY)
        self._waiting += 1
        try:
            async with self._one:
                await asyncio.sleep(max(self._free_at - time.monotonic(), 0))
                began = time.monotonic()
                try:
                    yield
                finally:
                    now = time.monotonic()
                    self._free_at = now + (now - began) * _REST
        finally:
            self._waiting -= 1


def _challenge(question: Question, status: int) -> dict[str, str]:
    """Say that another token may help, as RFC 6750, section 3, does. The pages ask for one where they see it."""
    wrong = {_UNAUTHORIZED: "invalid_token", _FORBIDDEN: "insufficient_scope"}.get(status)
    if wrong is None:
        return {}
    return {"WWW-Authenticate": f'Bearer error="{wrong}"' if question.authorization else "Bearer"}


def _page(path: str) -> Answer:
    if path == PATH:
        # Relative, for proxies that serve it below a path of their own.
        return Answer(b"", status=_FOUND, headers={"Location": "console/", **SECURITY_HEADERS})
    page = static_pages().get(path.removeprefix(_PAGES))
    if page is None:
        raise RequestRefused(_NOT_FOUND, "404 page not found")
    return Answer(page.body, page.content_type, headers={"Cache-Control": "no-cache", **SECURITY_HEADERS})


def _pair(question: Question, name: str, visitor: Visitor) -> tuple[str, str]:
    """Namespace and name out of `NAMESPACE/NAME`. Raises `RequestRefused` for a namespace that the reader may not see."""
    namespace, _, named = _parameter(question, name, _LONGEST_PAIR).partition("/")
    if not visitor.rights.may_see(namespace):
        raise RequestRefused(_NOT_FOUND, _MISSING)
    return namespace, named


def _parameter(question: Question, name: str, longest: int) -> str:
    text = question.query.get(name, ("",))[-1]
    if not text or len(text) > longest:
        raise RequestRefused(_BAD_REQUEST, f"{name}: found {text[:80]!r}; allowed a name of at most {longest} characters")
    return text
