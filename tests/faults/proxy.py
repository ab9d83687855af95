"""What stands between one replica and the API server: a reverse proxy with TLS on both sides, and trouble that can be switched on and off.

It knows nothing of schedulers but what a Binding looks like, and keeps a record of each that passes. All choices come from one seeded
generator. Without trouble it passes everything on, and watches as they come.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import ssl
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import aiohttp
import yaml
from aiohttp import web

from kubesandbox.auth.credentials import Credentials

Object = dict[str, Any]
#: Headers that concern one connection, or the length that we count ourselves.
_OWN_HEADERS: Final = frozenset({"host", "connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding"})
_REASONS: Final = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}
#: A Binding that is passed on, and whose answer never arrives.
LOSE: Final = 0


@dataclass(slots=True)
class BindingRequest:
    """One Binding that a replica sent.

    Attributes:
        at: when it arrived here, monotonic seconds.
        passed: when it was passed on, None for never.
        code: what the API server answered, None if it was not asked or did not answer.
    """

    replica: str
    uid: str
    pod: str
    node: str
    at: float
    passed: float | None = None
    code: int | None = None


@dataclass
class Trouble:
    """What goes wrong at the moment.

    Attributes:
        delay: seconds before each request is passed on.
        bindings: the share of Bindings, from 0 to 1, that meet one of `answers`.
        claims: the same of writes to ResourceClaims.
        evictions: the same of deletions of pods.
        answers: codes to answer instead of passing a request on; `LOSE`: pass it on, and break the connection instead of answering.
        gone: how a watch that resumes is told that history is forgotten: "status" or "event"; empty: it is not.
        held_back: seconds before each write to what is `held` is passed on; not at all once its sender has hung up.
        held: how such a path ends.
        lead_refused: whether what keeps a replica in the lead, its writes to Lease and peering, is answered 500.
        watch_lag: seconds by which watches of what is `lagging` are late, at least.
        lagging: a part of their path.
        deleted_again: seconds after which watches of pods tell of a deletion once more; 0 for never.
    """

    delay: float = 0.0
    bindings: float = 0.0
    claims: float = 0.0
    evictions: float = 0.0
    answers: tuple[int, ...] = (409, 429, 500, LOSE)
    gone: str = ""
    held_back: float = 0.0
    held: str = "/binding"
    lead_refused: bool = False
    watch_lag: float = 0.0
    lagging: str = "/api/v1/pods"
    deleted_again: float = 0.0


@dataclass
class Counts:
    """How much trouble there was; `answers` by code."""

    watches_dropped: int = 0
    connections_reset: int = 0
    told_gone: int = 0
    told_again: int = 0
    answers: dict[int, int] = field(default_factory=dict)


class Resetting(asyncio.Protocol):
    """A connection that is reset at once, and counted."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()  # type: ignore[attr-defined]
        self._counts.connections_reset += 1


class Proxy:
    """One replica's way to the API server."""

    def __init__(self, replica: str, upstream: Path, seed: int) -> None:
        """`upstream`: kubeconfig of the API server."""
        self.replica = replica
        self.trouble = Trouble()
        self.counts = Counts()
        self.bindings: list[BindingRequest] = []
        #: How many writes are held back now.
        self.holding = 0
        #: Seconds on the monotonic clock at which the last request arrived.
        self.last_request = 0.0
        #: The same of each write to a Lease that was granted, and answered.
        self.renewals: list[float] = []
        content = yaml.safe_load(upstream.read_text())
        cluster = content["clusters"][0]["cluster"]
        self._upstream: str = cluster["server"]
        self._upstream_ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._token: str = content["users"][0]["user"]["token"]
        self._random = Random(f"{seed}/{replica}")
        self._through = asyncio.Event()
        self._through.set()
        self._cuts = 0
        #: By id, as requests cannot be hashed.
        self._watches: dict[int, web.BaseRequest] = {}
        #: By collection and selectors, the version of the last list: a watch may begin there once.
        self._listed: dict[str, str] = {}
        self._dropping: asyncio.Task[None] | None = None
        #: Deletions that are to be told once more.
        self.repeating: set[asyncio.Task[None]] = set()
        self._http: web.Server
        self._listening: asyncio.Server | None = None
        self._resetting: asyncio.Server | None = None
        self._session: aiohttp.ClientSession
        self._port = 0

    async def start(self, credentials: Credentials) -> bytes:
        """Listen on a free port of loopback; answers the kubeconfig that leads here."""
        tls = ssl.create_default_context(cadata=self._upstream_ca)
        connector = aiohttp.TCPConnector(limit=0, ssl=tls)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None))
        self._http = web.Server(self._handle, request_factory=_request, handler_cancellation=True, access_log=None)
        self._tls = credentials.server_context()
        await self._listen()
        return credentials.kubeconfig(f"https://127.0.0.1:{self._port}", self._token)

    async def close(self) -> None:
        self.drop_watches_every(None)
        for task in self.repeating:
            task.cancel()
        self._through.set()
        for listening in (self._listening, self._resetting):
            if listening is not None:
                listening.close()
        self._break_connections()
        await self._http.shutdown(timeout=1.0)
        await self._session.close()

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(self._http, "127.0.0.1", self._port, ssl=self._tls, backlog=256, reuse_address=True)
        self._port = self._listening.sockets[0].getsockname()[1]

    # --- trouble ---

    def cut(self, *, refuse: bool) -> None:
        """Nothing gets through any more: with `refuse` connections break and new ones are refused, without they stand still."""
        self._through.clear()
        self._cuts += 1
        if refuse:
            assert self._listening is not None
            self._listening.close()
            self._listening = None
            self._break_connections()

    async def reset(self) -> None:
        """Connections break, and new ones are reset as soon as they are made, before TLS begins: the server has just been killed."""
        self.cut(refuse=True)
        loop = asyncio.get_running_loop()
        self._resetting = await loop.create_server(lambda: Resetting(self.counts), "127.0.0.1", self._port, backlog=256, reuse_address=True)

    async def heal(self) -> None:
        """Let new connections through; those that stood still break, with all that was sent on them."""
        if self._resetting is not None:
            self._resetting.close()
            self._resetting = None
        if self._listening is None:
            await self._listen()
        self._break_connections()
        self._cuts += 1  # what stood still must not get through before it hears that its connection is broken
        self._through.set()

    async def calm(self) -> None:
        """No trouble any more."""
        self.trouble = Trouble()
        self.drop_watches_every(None)
        if not self._through.is_set():
            await self.heal()

    def drop_watches(self) -> None:
        """Break every watch."""
        for request in tuple(self._watches.values()):
            self.counts.watches_dropped += 1
            _abort(request)

    def drop_watches_every(self, seconds: float | None) -> None:
        """From now on, again and again; None ends it."""
        if self._dropping is not None:
            self._dropping.cancel()
            self._dropping = None
        if seconds is not None:
            self._dropping = asyncio.create_task(self._keep_dropping(seconds))

    async def _keep_dropping(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            self.drop_watches()

    def _break_connections(self) -> None:
        for connection in self._http.connections:
            if connection.transport is not None:
                connection.transport.abort()  # type: ignore[attr-defined]

    # --- requests ---

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        arrived = self.last_request = time.monotonic()
        body = await request.read()
        record = self._record(request, body)
        cuts = self._cuts
        await self._through.wait()
        if self.trouble.delay:
            await asyncio.sleep(self.trouble.delay)
        if self.trouble.held_back and request.method != "GET" and request.path.endswith(self.trouble.held):
            await self._hold_back()
        if cuts != self._cuts or not self._through.is_set():
            return _lost(request)
        if self.trouble.lead_refused and _keeps_the_lead(request):
            return _status(500)
        try:
            answer = await self._answer(request, body, record)
        except (aiohttp.ClientError, OSError):
            return _lost(request)
        if request.method == "PUT" and "/leases/" in request.path and answer.status < 300 and not _is_broken(request):
            self.renewals.append(arrived)
        return answer

    async def _hold_back(self) -> None:
        self.holding += 1
        try:
            await asyncio.sleep(self.trouble.held_back)
        finally:
            self.holding -= 1

    async def _answer(self, request: web.BaseRequest, body: bytes, record: BindingRequest | None) -> web.StreamResponse:
        if request.query.get("watch") in ("1", "true"):
            return await self._watch(request)
        trouble = self._trouble_with(self._share_of(request, record))
        if trouble:
            return _status(trouble)
        if record is not None:
            record.passed = time.monotonic()
        async with self._ask(request, body) as answer:
            if record is not None:
                record.code = answer.status
            content = await answer.read()
        if request.method == "GET":
            self._remember_version(request, content)
        if trouble == LOSE or not self._through.is_set():
            return _lost(request)
        return web.Response(status=answer.status, body=content, headers=_passed_on(answer.headers))

    def _share_of(self, request: web.BaseRequest, record: BindingRequest | None) -> float:
        """Of such requests, which share meets trouble."""
        if record is not None:
            return self.trouble.bindings
        if request.method == "DELETE" and "/pods/" in request.path:
            return self.trouble.evictions
        return self.trouble.claims if request.method != "GET" and "/resourceclaims" in request.path else 0.0

    def _trouble_with(self, share: float) -> int | None:
        """A code, `LOSE`, or None for no trouble."""
        if not share or self._random.random() >= share:
            return None
        chosen = self._random.choice(self.trouble.answers)
        self.counts.answers[chosen] = self.counts.answers.get(chosen, 0) + 1
        return chosen

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        if self.trouble.gone and self._resumes(request):
            self.counts.told_gone += 1
            if self.trouble.gone == "status":
                return _status(410)
            line = json.dumps({"type": "ERROR", "object": _status_object(410)}) + "\n"
            return web.Response(text=line, content_type="application/json")
        async with self._ask(request, b"") as answer:
            response = web.StreamResponse(status=answer.status, headers=_passed_on(answer.headers))
            self._watches[id(request)] = request
            try:
                await response.prepare(request)
                rest = b""
                while chunk := await answer.content.readany():
                    await self._through.wait()
                    if self.trouble.watch_lag and self.trouble.lagging in request.path:
                        await asyncio.sleep(self.trouble.watch_lag)
                    lines, end, rest = (rest + chunk).rpartition(b"\n")
                    await response.write(lines + end)  # whole lines, between which others may be repeated
                    if self.trouble.deleted_again and request.path == "/api/v1/pods":
                        self._repeat(response, [line for line in lines.splitlines() if b'"type":"DELETED"' in line[:40]])
                with contextlib.suppress(ConnectionError):
                    await response.write_eof()
            except (aiohttp.ClientError, OSError):
                _abort(request)
            finally:
                self._watches.pop(id(request), None)
            return response

    def _repeat(self, response: web.StreamResponse, lines: list[bytes]) -> None:
        async def later() -> None:
            await asyncio.sleep(self.trouble.deleted_again)
            with contextlib.suppress(aiohttp.ClientError, OSError):  # the watch may be over
                await response.write(b"".join(line + b"\n" for line in lines))
                self.counts.told_again += len(lines)

        if lines:
            task = asyncio.create_task(later())
            self.repeating.add(task)
            task.add_done_callback(self.repeating.discard)

    def _ask(self, request: web.BaseRequest, body: bytes) -> Any:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OWN_HEADERS}
        return self._session.request(request.method, f"{self._upstream}{request.path_qs}", data=body or None, headers=headers)

    def _record(self, request: web.BaseRequest, body: bytes) -> BindingRequest | None:
        if request.method != "POST" or not request.path.endswith("/binding"):
            return None
        content = json.loads(body)
        pod = f"{content['metadata'].get('namespace', '')}/{content['metadata']['name']}"
        record = BindingRequest(self.replica, content["metadata"]["uid"], pod, content["target"]["name"], time.monotonic())
        self.bindings.append(record)
        return record

    def _remember_version(self, request: web.BaseRequest, content: bytes) -> None:
        if self.trouble.gone and b'List"' in content[:4000]:
            with contextlib.suppress(ValueError, KeyError):  # discovery has lists without a version
                self._listed[_collection(request)] = json.loads(content)["metadata"]["resourceVersion"]

    def _resumes(self, request: web.BaseRequest) -> bool:
        """Whether a watch begins anywhere but at the list that was made for it."""
        version = request.query.get("resourceVersion", "")
        return version not in ("", "0") and self._listed.pop(_collection(request), None) != version


def _keeps_the_lead(request: web.BaseRequest) -> bool:
    return request.method != "GET" and any(each in request.path for each in ("/leases/", "/clusterkopfpeerings/"))


def _collection(request: web.BaseRequest) -> str:
    query = request.query
    return f"{request.path}?{query.get('fieldSelector', '')}&{query.get('labelSelector', '')}"


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=4 * 2**20)


def _passed_on(headers: Any) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _OWN_HEADERS - {"content-encoding"}}


def _status_object(code: int) -> Object:
    reason = _REASONS[code]
    return {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": f"fault: {reason}", "reason": reason, "code": code}


def _status(code: int) -> web.Response:
    headers = {"Retry-After": "1"} if code == 429 else None
    return web.json_response(_status_object(code), status=code, headers=headers)


def _abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()  # type: ignore[attr-defined]


def _is_broken(request: web.BaseRequest) -> bool:
    return request.transport is None or request.transport.is_closing()


def _lost(request: web.BaseRequest) -> web.Response:
    """An answer for form's sake, on a connection that is broken."""
    _abort(request)
    return web.Response()
