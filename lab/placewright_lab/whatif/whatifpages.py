"""The requests of the what-if page: the form, a question with its answer in lines of JSON, and the writes.

Questions are answered one after the other, in slices of the server's loop. A newer question of the same page ends the one before. Writes
need a console that may write.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final, TypeVar

import msgspec
from aiohttp import web

from placewright.api.bad_input import InputError
from placewright.api.decode import decode
from placewright.framework.registry import Registry
from placewright.http.routes import SECURITY_HEADERS, RequestRefused
from placewright_console.local.clusterathand import ClusterAtHand
from placewright_console.local.doorkeeper import DATA
from placewright_console.local.seenworld import SeenWorld
from placewright_lab.whatif.whatif import WhatIf
from placewright_lab.whatif.whatifapply import Applied, Seen, apply_change, apply_shadow

#: Bytes of a question or of a change, more than any profile has.
T = TypeVar("T")
LARGEST_BODY: Final = 2**20
#: Seconds of work between two turns of the loop.
_SLICE: Final = 0.02
_WRITE_SECONDS: Final = 30.0
#: Number of pages that are told apart.
_MOST_PAGES: Final = 50
_JSON: Final = "application/json"
_FORBIDDEN: Final = 403
_TOO_LARGE: Final = 413
_NO_JSON: Final = 415
_NO_CLUSTER: Final = 503
#: The reason why the page has no buttons that write.
READ_ONLY: Final = "This console only reads: `placewright console --allow-changes` may apply changes, with your own rights"


class Question(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a question.

    Attributes:
        profile: name of the profile's object.
        changes: merge patch of its `spec`, as the form shows it.
        page: name of a browser's tab, because a newer question of one tab ends the one before.
    """

    profile: str
    changes: dict[str, Any] = {}
    page: str = ""


class WantedWrite(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a write.

    Attributes:
        profile: name of the profile's object.
        uid, generation: object and version that the person saw.
        changes: merge patch of its `spec`, as the form shows it.
        shadow: True to create a shadow with the change, instead of changing the profile.
    """

    profile: str
    uid: str
    generation: int
    changes: dict[str, Any]
    shadow: bool = False


class WhatIfPages:
    """Answers the what-if page."""

    def __init__(self, at_hand: ClusterAtHand, registry: Registry) -> None:
        """Ask nothing yet. `at_hand` is the cluster that the console shows."""
        self._at_hand = at_hand
        self._registry = registry
        self._what_if = WhatIf(registry, time.monotonic)
        self._lock = asyncio.Lock()
        self._preparing: asyncio.Task[None] | None = None
        self._asked = 0
        self._newest: dict[str, int] = {}

    @property
    def can(self) -> Sequence[str]:
        """Words of `about.can`."""
        return ("whatif",) if self._at_hand.writer is None else ("whatif", "apply")

    @property
    def under_way(self) -> bool:
        """True while a question is being answered, so that less urgent work waits."""
        return self._lock.locked() or self._preparing is not None

    def routes(self) -> Iterable[web.RouteDef]:
        """Return the routes by their path. All need the session."""
        return (
            web.get(f"{DATA}whatif", self._form),
            web.post(f"{DATA}whatif", self._ask),
            web.post(f"{DATA}apply", self._apply),
        )

    async def _form(self, request: web.Request) -> web.Response:
        form = self._what_if.form(await self._shown_world())
        return _json({**form, "writes": self._at_hand.writer is not None, "readOnly": "" if self._at_hand.writer else READ_ONLY})

    async def _ask(self, request: web.Request) -> web.StreamResponse:
        asked = await _body(request, Question)
        number = self._next(asked.page)
        async with self._lock:
            world = await self._shown_world()
            answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-store", **SECURITY_HEADERS})
            await answer.prepare(request)
            if self._preparing is not None or not self._what_if.is_fresh(world):
                await _tell(answer, {"part": "preparing"})
                await self._prepared(world)
            with closing(self._what_if.answer(asked.profile, asked.changes)) as lines:
                await self._stream(request, answer, lines, lambda: self._newest.get(asked.page) == number)
        return answer

    async def _shown_world(self) -> SeenWorld:
        try:
            return await self._at_hand.current_world()
        except InputError as problem:
            raise RequestRefused(_NO_CLUSTER, str(problem)) from None

    def _next(self, page: str) -> int:
        self._asked += 1
        self._newest.pop(page, None)  # so that it is the last one
        self._newest[page] = self._asked
        if len(self._newest) > _MOST_PAGES:
            del self._newest[next(iter(self._newest))]
        return self._asked

    async def _prepared(self, world: SeenWorld) -> None:
        """Have the copy prepared, also after the end of the question. Otherwise a person who moves a slider would see no answer."""
        if self._preparing is not None:
            await asyncio.shield(self._preparing)
        if not self._what_if.is_fresh(world):
            self._preparing = asyncio.create_task(self._through(self._what_if.prepared(world)), name="what-if copy")
            self._preparing.add_done_callback(self._has_prepared)
            await asyncio.shield(self._preparing)

    def _has_prepared(self, _task: asyncio.Task[None]) -> None:
        self._preparing = None

    async def _through(self, steps: Iterable[None]) -> None:
        ends = time.monotonic() + _SLICE
        for _ in steps:
            if time.monotonic() >= ends:
                ends = await self._pause()

    async def _stream(
        self, request: web.Request, answer: web.StreamResponse, lines: Iterable[Mapping[str, Any] | None], newest: Callable[[], bool]
    ) -> None:
        ends = time.monotonic() + _SLICE
        for line in lines:
            if line is not None:
                await _tell(answer, line)
            if line is not None or time.monotonic() >= ends:
                ends = await self._pause()
                if not newest() or request.transport is None or request.transport.is_closing():
                    return

    async def _pause(self) -> float:
        """Let the rest of the server have its turn. Return the time at which the next slice ends."""
        await asyncio.sleep(0)
        return time.monotonic() + _SLICE

    async def _apply(self, request: web.Request) -> web.Response:
        change = await _body(request, WantedWrite)
        writer = self._at_hand.writer
        if writer is None:
            raise RequestRefused(_FORBIDDEN, READ_ONLY)
        write = apply_shadow if change.shadow else apply_change
        applied: Applied = await write(writer, self._registry, Seen(change.profile, change.uid, change.generation), change.changes)
        return _json({"said": applied.said, "ok": applied.object is not None}, applied.status)


async def _body(request: web.Request, kind: type[T]) -> T:
    """Decode a body of JSON, or refuse a body that is too long, or from another site's form. Raises `DecodeError`."""
    if request.content_type != _JSON:
        raise RequestRefused(_NO_JSON, "a body of application/json is expected")
    text = b""
    async for piece in request.content.iter_any():
        text += piece
        if len(text) > LARGEST_BODY:
            raise RequestRefused(_TOO_LARGE, f"a body of at most {LARGEST_BODY} bytes is expected")
    return decode(text, kind)


async def _tell(answer: web.StreamResponse, line: Mapping[str, Any]) -> None:
    async with asyncio.timeout(_WRITE_SECONDS):
        await answer.write(msgspec.json.encode(line) + b"\n")


def _json(value: Mapping[str, Any], status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(value), headers={"Content-Type": _JSON, "Cache-Control": "no-store"})
