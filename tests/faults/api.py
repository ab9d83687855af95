"""The API server as a person with curl would meet it: requests and watches in plain JSON, straight to the server and past every proxy.

Nothing of the scheduler is used here: what it believes must not decide what the audit sees.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp

from contract.client import JSON, MERGE, Client
from contract.cluster import client_from

Object = dict[str, Any]
#: (type of the change, the object, when it was heard of on the monotonic clock).
Hear = Callable[[str, Object, float], None]

_CREATED_MEANWHILE: Final = 409
_AGAIN_SECONDS: Final = 0.05


class Refused(Exception):
    """The API server said no."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text[:300]}")
        self.code = code


class Api:
    """A client that repeats each request until the API server answers."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def request(self, method: str, path: str, body: Object | None = None, content_type: str = JSON) -> Object:
        """Raises `Refused` for what is not granted."""
        while True:
            with contextlib.suppress(aiohttp.ClientError, OSError):
                answer = await self.client.request(method, path, body, content_type)
                if answer.status >= 300:
                    raise Refused(answer.status, str(answer.body))
                return dict(answer.body)
            await asyncio.sleep(_AGAIN_SECONDS)

    async def request_without_answer(self, path: str, body: Object) -> None:
        """POST once what may cost the connection that it came on."""
        with contextlib.suppress(aiohttp.ClientError, OSError):
            answer = await self.client.post(path, body)
            assert answer.status < 300, answer

    async def get(self, path: str) -> Object:
        return await self.request("GET", path)

    async def create(self, path: str, body: Object) -> Object:
        """The object as it is then; one that was created although its answer got lost is no error."""
        try:
            return await self.request("POST", path, body)
        except Refused as refused:
            if refused.code != _CREATED_MEANWHILE:
                raise
            return await self.get(f"{path}/{body['metadata']['name']}")

    async def patch(self, path: str, change: Object) -> Object:
        return await self.request("PATCH", path, change, MERGE)

    async def delete(self, path: str) -> None:
        """At once; what is gone already is no error."""
        try:
            await self.request("DELETE", path, {"gracePeriodSeconds": 0})
        except Refused as refused:
            if refused.code != 404:
                raise

    async def watch(self, path: str, hear: Hear) -> None:
        """Tell of everything there is, as ADDED, and then of every change, without a gap, until cancelled.

        Raises `Refused` with 410 if history is forgotten, as changes were missed then.
        """
        listed = await self.get(path)
        for each in listed["items"]:
            hear("ADDED", each, time.monotonic())
        version = listed["metadata"]["resourceVersion"]
        while True:
            with contextlib.suppress(aiohttp.ClientError, OSError, json.JSONDecodeError):
                async with self.client.watch(path, resourceVersion=version, allowWatchBookmarks=True) as watch:
                    if watch.status >= 300:
                        raise Refused(watch.status, f"a watch of {path}")
                    while (event := await watch.next_or_end()) is not None:
                        if event["type"] == "ERROR":
                            raise Refused(event["object"]["code"], event["object"]["message"])
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            hear(event["type"], event["object"], time.monotonic())
            await asyncio.sleep(_AGAIN_SECONDS)


@asynccontextmanager
async def api_of(kubeconfig: Path) -> AsyncIterator[Api]:
    """The API server of a kubeconfig."""
    async with client_from(kubeconfig) as client:
        yield Api(client)
