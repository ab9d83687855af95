"""The HTTP side: one request in, one answer out, or a stream of watch lines.

`Endpoint.handle` is aiohttp's low-level handler. It finds the user, checks the user's rights, injects faults, and then serves objects or
documents (discovery, health). Code below raises refusals as ApiError. Only this module turns them into Status bodies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from aiohttp import web

from kubesandbox import status
from kubesandbox.auth.access import MASTERS, Access, Asked, User
from kubesandbox.faults import Faults
from kubesandbox.status import ApiError
from kubesandbox.storage.store import Watch, Watches
from kubesandbox.web.queries import JSON, parse_query

_logger = logging.getLogger(__name__)
_encode = msgspec.json.Encoder().encode
_OPEN_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz"})


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished answer."""

    body: bytes
    code: int = 200
    content_type: str = JSON


Answer = Reply | Watch
Documents = Callable[[str, str], Reply | None]
Objects = Callable[[web.BaseRequest, str, dict[str, str], User], Awaitable[Answer | None]]


class Endpoint:
    """Answers every request of one server.

    `objects` answers requests on objects and collections, and `documents` all other GET requests. Each returns None for an unknown path.
    """

    def __init__(self, access: Access, documents: Documents, objects: Objects, faults: Faults, watches: Watches) -> None:
        self._access = access
        self._documents = documents
        self._objects = objects
        self._faults = faults
        self._watches = watches

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request. Raise only if the connection breaks or the task is cancelled."""
        path, _, text = request.path_qs.partition("?")
        try:
            return await self._answer(request, path, parse_query(text))
        except ApiError as refused:
            return _refusal(refused)
        except web.HTTPRequestEntityTooLarge:
            message = "the request body is larger than this server accepts"
            return _refusal(ApiError(413, "RequestEntityTooLarge", message))
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:
            _logger.exception("%s %s failed", request.method, path)
            return _refusal(ApiError(500, "InternalError", f"{type(error).__name__}: {error}"))

    async def _answer(self, request: web.BaseRequest, path: str, query: dict[str, str]) -> web.StreamResponse:
        if path in _OPEN_PATHS:
            return web.Response(text="ok")
        user = self._access.user(request.method, path, query, request.headers)
        if path.startswith("/sandbox/"):
            self._only_masters(user, request.method, path)
            self._faults.command(request.method, path, await request.read())
            return web.Response()
        self._access.check(user, request.method, path, query, request.headers.get("Content-Type", ""))
        fault = None
        if self._faults.armed:
            fault = await self._faults.meet(request.method, path, query)
        found = await self._objects(request, path, query, user)
        if found is None and request.method == "GET":
            found = self._documents(path, request.headers.get("Accept", ""))
        if found is None:
            raise status.no_such_path()
        if fault is not None and fault.lose_answer:
            return self._lose(request, found)
        if isinstance(found, Watch):
            return await self._stream(request, found, query)
        return _plain(found)

    def _only_masters(self, user: User, method: str, path: str) -> None:
        if MASTERS not in user.groups:
            self._access.authorizer.refuse(user, Asked(method.lower(), path=path))

    def _lose(self, request: web.BaseRequest, answer: Answer) -> web.Response:
        """Break the connection of a request that was carried out, so that its answer never arrives."""
        if isinstance(answer, Watch):
            self._watches.forget(answer)
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    async def _stream(self, request: web.BaseRequest, watch: Watch, query: dict[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        ending = _at_timeout(query, lambda: self._watches.expire(watch))
        try:
            await response.prepare(request)
            while lines := await watch.next():
                await response.write(lines)
            if (watch.broken or watch.cut) and request.transport is not None:
                request.transport.abort()
            else:
                with suppress(ConnectionError):
                    await response.write_eof()
        except ConnectionError:
            pass  # the watcher has left
        finally:
            if ending is not None:
                ending.cancel()
            self._watches.forget(watch)
        return response


def _at_timeout(query: dict[str, str], act: Callable[[], None]) -> asyncio.TimerHandle | None:
    """Call `act` when the time that the client gave its watch is over."""
    text = query.get("timeoutSeconds", "")
    if not text.isdigit() or int(text) == 0:
        return None
    return asyncio.get_running_loop().call_later(int(text), act)


def _plain(reply: Reply) -> web.Response:
    return web.Response(body=reply.body, status=reply.code, content_type=reply.content_type)


def _refusal(refused: ApiError) -> web.Response:
    headers: dict[str, Any] = {}
    if refused.retry_after is not None:
        headers["Retry-After"] = str(refused.retry_after)
    return web.Response(body=_encode(refused.status()), status=refused.code, content_type=JSON, headers=headers or None)
