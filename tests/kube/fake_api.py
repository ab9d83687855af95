"""A server that misbehaves on purpose, for what a well-behaved sandbox cannot do: half lines, broken streams, answers that get lost.

Each path has a script; a step answers one request. The last step of a script answers all further requests, so tests do not race with
retries.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from aiohttp import web

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import ApiClient

Step = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


@dataclass
class Request:
    """What a client sent. `peer`: the common name in its certificate."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    raw: bytes
    peer: str


class FakeApi:
    """Scripted answers by `METHOD path`; a watch is `WATCH path`. Everything asked is kept in `requests`."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self.requests: list[Request] = []
        self._scripts: dict[str, list[Step]] = defaultdict(list)
        self._changed = asyncio.Condition()
        self.open = asyncio.Event()
        self._runner: web.ServerRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self._tls).start()
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.open.set()
        await self.die()

    async def die(self) -> None:
        """Stop listening. Connections are refused from now on."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()

    def client(self, **options: Any) -> ApiClient:
        return ApiClient(ClusterAccess(self.url), **options)

    def on(self, request: str, *steps: Step) -> None:
        """Append steps to the script of `METHOD /path`."""
        self._scripts[request].extend(steps)

    def asked(self, method: str, path: str = "") -> list[Request]:
        return [one for one in self.requests if one.method == method and one.path.endswith(path)]

    async def until_asked(self, method: str, path: str = "", times: int = 1) -> list[Request]:
        """Wait until that many such requests have come."""
        async with self._changed:
            await asyncio.wait_for(self._changed.wait_for(lambda: len(self.asked(method, path)) >= times), 10)
        return self.asked(method, path)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        text = await request.read()
        method = "WATCH" if request.query.get("watch") else request.method
        async with self._changed:
            body = json.loads(text) if text and "protobuf" not in request.content_type else text or None
            self.requests.append(Request(method, request.path, request.query, request.headers, body, text, _peer(request)))
            self._changed.notify_all()
        script = self._script(method, request.path)
        if not script:
            return web.json_response({"kind": "Status", "reason": "NotFound", "code": 404, "message": "no script"}, status=404)
        step = script.pop(0) if len(script) > 1 else script[0]
        return await step(request)

    def _script(self, method: str, path: str) -> list[Step] | None:
        return self._scripts.get(f"{method} {path}")


def _peer(request: web.BaseRequest) -> str:
    certificate = request.transport.get_extra_info("peercert") if request.transport is not None else None
    return next((value for part in (certificate or {}).get("subject", ()) for key, value in part if key == "commonName"), "")


def answer(body: Any, status: int = 200, **headers: str) -> Step:
    """Answer with JSON."""

    async def step(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response(body, status=status, headers=headers)

    return step


def answer_bytes(body: bytes, content_type: str) -> Step:
    """Answer with something else than JSON."""

    async def step(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body, content_type=content_type)

    return step


def refuse(status: int, reason: str = "", **headers: str) -> Step:
    """Answer with a Kubernetes Status."""
    return answer({"kind": "Status", "code": status, "reason": reason, "message": f"scripted {status}"}, status, **headers)


def hang_up(then: Callable[[], None] = lambda: None) -> Step:
    """Do something and break the connection without an answer."""

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        then()
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return step


def silent(until: asyncio.Event) -> Step:
    """Answer only once it is set."""

    async def step(_: web.BaseRequest) -> web.StreamResponse:
        await until.wait()
        return web.json_response({})

    return step


def stream(*chunks: bytes | asyncio.Event, broken: bool = False) -> Step:
    """Send chunks one by one; an event between them is waited for; at the end close cleanly, or break the connection."""

    async def step(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            if isinstance(chunk, asyncio.Event):
                await chunk.wait()
            else:
                await response.write(chunk)
        if broken:
            assert request.transport is not None
            # What was written must be on its way before the connection breaks.
            await asyncio.sleep(0)
            request.transport.close()
        return response

    return step


def listing(*items: Mapping[str, Any], version: str = "10", following: str = "") -> dict[str, Any]:
    return {"kind": "List", "metadata": {"resourceVersion": version, "continue": following}, "items": list(items)}


def a_node(name: str, version: str = "1", uid: str = "", **extra: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid or f"uid-{name}", "resourceVersion": version}, **extra}


def event(change: str, item: Mapping[str, Any]) -> bytes:
    return json.dumps({"type": change, "object": item}).encode() + b"\n"


def bookmark(version: str) -> bytes:
    return event("BOOKMARK", {"kind": "Node", "metadata": {"resourceVersion": version, "creationTimestamp": None}})
