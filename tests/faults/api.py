"""The API server as a person with curl would meet it: requests and watches in plain JSON, straight to the server and past every proxy.

Nothing of the scheduler is used here: what it believes must not decide what the audit sees.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import aiohttp
import yaml

Object = dict[str, Any]
#: (type of the change, the object, when it was heard of on the monotonic clock).
Hear = Callable[[str, Object, float], None]

MERGE: Final = "application/merge-patch+json"
_CREATED_MEANWHILE: Final = 409
_AGAIN_SECONDS: Final = 0.05
#: The longest line of a watch, bytes.
_LONGEST_LINE: Final = 2**22


class Refused(Exception):
    """The API server said no."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text[:300]}")
        self.code = code


class Api:
    """One API server, by its kubeconfig. To be closed."""

    def __init__(self, kubeconfig: Path) -> None:
        content = yaml.safe_load(kubeconfig.read_text())
        cluster = content["clusters"][0]["cluster"]
        self.server: str = cluster["server"]
        self.ca: bytes = base64.b64decode(cluster["certificate-authority-data"])
        self.token: str = content["users"][0]["user"]["token"]
        connector = aiohttp.TCPConnector(limit=64, ssl=ssl.create_default_context(cadata=self.ca.decode()))
        self._session = aiohttp.ClientSession(
            self.server, connector=connector, headers={"Authorization": f"Bearer {self.token}"}, read_bufsize=_LONGEST_LINE
        )

    async def close(self) -> None:
        await self._session.close()

    async def request(self, method: str, path: str, body: Object | None = None, content_type: str = "application/json") -> Object:
        """Ask until somebody answers; raises `Refused` for what is not granted."""
        data = None if body is None else json.dumps(body)
        while True:
            try:
                async with self._session.request(method, path, data=data, headers={"Content-Type": content_type}) as answer:
                    text = await answer.text()
                    if answer.status >= 300:
                        raise Refused(answer.status, text)
                    return dict(json.loads(text))
            except (aiohttp.ClientError, OSError):
                await asyncio.sleep(_AGAIN_SECONDS)

    async def request_without_answer(self, path: str, body: Object) -> None:
        """POST once what may cost the connection that it came on."""
        with contextlib.suppress(aiohttp.ClientError, OSError):
            async with self._session.post(path, data=json.dumps(body)) as answer:
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
            try:
                version = await self._watch_from(path, version, hear)
            except (aiohttp.ClientError, OSError):
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _watch_from(self, path: str, version: str, hear: Hear) -> str:
        query = {"watch": "1", "resourceVersion": version, "allowWatchBookmarks": "true"}
        forever = aiohttp.ClientTimeout(total=None)
        try:
            async with self._session.get(path, params=query, timeout=forever) as answer:
                if answer.status >= 300:
                    raise Refused(answer.status, await answer.text())
                async for line in answer.content:
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        raise Refused(event["object"]["code"], event["object"]["message"])
                    version = event["object"]["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        hear(event["type"], event["object"], time.monotonic())
        except (aiohttp.ClientError, OSError, json.JSONDecodeError):
            await asyncio.sleep(_AGAIN_SECONDS)
        return version
