"""An operator on a stage with its endpoints open, and somebody who asks them."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

import aiohttp

from handlers.stage import DEADLINE, FAST, Running, Stage, operator
from placewright.engine.companions import Companions, ReplicaInfo
from placewright.engine.engine import Engine
from placewright.engine.options import EngineOptions
from placewright.serving.endpoints import Served, ServingOptions, endpoints

LOOPBACK: Final = "127.0.0.1"


class Reply(NamedTuple):
    status: int
    text: str
    headers: dict[str, str]


class Desk:
    """Where to ask. `running` is the operator behind it, `stage` the cluster."""

    def __init__(self, stage: Stage, running: Running, served: Served, session: aiohttp.ClientSession) -> None:
        self.stage = stage
        self.running = running
        self.served = served
        self._session = session
        self._trusting = trusting()

    @property
    def engine(self) -> Engine:
        return self.running.engine

    async def get(self, path: str, token: str = "", method: str = "GET", **headers: str) -> Reply:
        """Over HTTPS."""
        return await self._ask(method, f"https://{LOOPBACK}:{self.served.port}{path}", token, headers)

    async def health(self, path: str) -> Reply:
        """Over HTTP, at the port for health alone."""
        return await self._ask("GET", f"http://{LOOPBACK}:{self.served.health_port}{path}", "", {})

    async def _ask(self, method: str, url: str, token: str, headers: dict[str, str]) -> Reply:
        given = {**headers, "Authorization": f"Bearer {token}"} if token else headers
        async with self._session.request(method, url, ssl=self._trusting, headers=given) as answer:
            return Reply(answer.status, await answer.text(), dict(answer.headers))

    async def until_ready(self, *, leading: bool = True) -> None:
        """Wait until it says so."""
        async with asyncio.timeout(DEADLINE):
            # An endpoint tells nobody when it changes.
            while self.engine.leading.leadership.active != leading or (await self.get("/readyz")).status != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


def trusting() -> ssl.SSLContext:
    """TLS without a look at the certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the default one would read every authority that this machine knows
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@asynccontextmanager
async def desk(stage: Stage, options: EngineOptions = FAST, **serving: Any) -> AsyncIterator[Desk]:
    """An operator that serves, on ports that are free."""
    opened: asyncio.Future[Served] = asyncio.get_running_loop().create_future()
    serve = endpoints(ServingOptions(**{"address": LOOPBACK, "port": 0, "health_port": 0, **serving}))

    def telling(info: ReplicaInfo) -> Companions:
        """The endpoints, and which ports they got."""
        made = serve(info)

        @asynccontextmanager
        async def opening(engine: Engine) -> AsyncIterator[None]:
            async with made.open(engine) as served:
                assert isinstance(served, Served)
                opened.set_result(served)
                yield

        return Companions(made.listeners, opening)

    async with operator(stage, options, telling) as running:
        await asyncio.wait((opened, running.task), return_when=asyncio.FIRST_COMPLETED)
        if running.task.done():
            running.task.result()
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(DEADLINE)) as session:
            yield Desk(stage, running, opened.result(), session)


async def said(port: int, request: bytes, *, address: str = LOOPBACK, tls: ssl.SSLContext | None = None) -> bytes:
    """All that comes back until the other side closes."""
    reader, writer = await asyncio.open_connection(address, port, ssl=tls)
    try:
        async with asyncio.timeout(DEADLINE):
            writer.write(request)
            with contextlib.suppress(ConnectionError):
                return await reader.read()
            return b""
    finally:
        writer.close()


def get(path: str, *more: str) -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: x", *more, "", ""]).encode()
