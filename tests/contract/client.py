"""A small client for the contract tests: requests as they go over the wire, answers as they come back."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp

Object = dict[str, Any]

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"
DEADLINE = 15.0
"""Seconds for any one answer or event."""


@dataclass(frozen=True)
class Answer:
    """One answer. `body` is decoded JSON, or text if it is no JSON."""

    status: int
    body: Any
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)

    def expect(self, *codes: int) -> Object:
        """Return the body. Fail with the server's words if the code is another."""
        assert self.status in codes, f"expected {codes}, got {self.status}: {self.body}"
        return self.body  # type: ignore[no-any-return]

    def refused(self, code: int, reason: str = "") -> str:
        """Return the message of a refusal with this code (and reason)."""
        body = self.expect(code)
        assert body["kind"] == "Status", body
        assert body["status"] == "Failure", body
        assert not reason or body["reason"] == reason, body
        return str(body["message"])


class Watch:
    """An open watch. Events are dictionaries with `type` and `object`."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status

    async def next(self) -> Object:
        """Return the next event. Fail if the stream ends or no event comes within the deadline."""
        event = await self.next_or_end()
        assert event is not None, "the stream ended"
        return event

    async def next_or_end(self) -> Object | None:
        """Return the next event, or None at the end of the stream."""
        async with asyncio.timeout(DEADLINE):
            line = await self._response.content.readline()
        return json.loads(line) if line else None

    async def until(self, kind: str) -> Object:
        """Return the next event of this type, and drop all before it."""
        while True:
            event = await self.next()
            if event["type"] == kind:
                return event

    async def names(self, count: int) -> list[tuple[str, str]]:
        """Return the next events as (type, name of the object)."""
        events = [await self.next() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


class Client:
    """Requests to one server; a context manager that owns its connections."""

    def __init__(self, server: str, context: ssl.SSLContext, token: str = "") -> None:
        self.server = server.rstrip("/")
        self.token = token
        self._context = context
        self._headers = {"User-Agent": "contract/1.0", **({"Authorization": f"Bearer {token}"} if token else {})}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._context)
        # A watch line holds a whole object, and objects may have a megabyte and more.
        self._session = aiohttp.ClientSession(connector=connector, headers=self._headers, read_bufsize=2**22)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._session is not None:
            await self._session.close()

    @property
    def session(self) -> aiohttp.ClientSession:
        assert self._session is not None, "enter the client first"
        return self._session

    async def request(
        self, method: str, path: str, body: object = None, content_type: str = JSON, accept: str = JSON, **query: object
    ) -> Answer:
        """Make one request, with `query` values as text."""
        data = None if body is None else body if isinstance(body, (str, bytes)) else json.dumps(body)
        headers = {"Accept": accept, **({"Content-Type": content_type} if data is not None else {})}
        parameters = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in query.items()}
        async with (
            asyncio.timeout(DEADLINE),
            self.session.request(method, self.server + path, data=data, headers=headers, params=parameters) as found,
        ):
            text = await found.text()
            is_json = "json" in found.content_type
            shown = {key.lower(): value for key, value in found.headers.items()}
            return Answer(found.status, json.loads(text) if is_json else text, shown.get("content-type", ""), shown)

    async def get(self, path: str, accept: str = JSON, **query: object) -> Answer:
        return await self.request("GET", path, accept=accept, **query)

    async def post(self, path: str, body: object, **query: object) -> Answer:
        return await self.request("POST", path, body, **query)  # type: ignore[arg-type]

    async def put(self, path: str, body: object, **query: object) -> Answer:
        return await self.request("PUT", path, body, **query)  # type: ignore[arg-type]

    async def patch(self, path: str, body: object, content_type: str, **query: object) -> Answer:
        return await self.request("PATCH", path, body, content_type, **query)  # type: ignore[arg-type]

    async def apply(self, path: str, body: object, manager: str, **query: object) -> Answer:
        return await self.request("PATCH", path, body, APPLY, fieldManager=manager, **query)  # type: ignore[arg-type]

    async def delete(self, path: str, body: object = None, **query: object) -> Answer:
        return await self.request("DELETE", path, body, **query)  # type: ignore[arg-type]

    @asynccontextmanager
    async def watch(self, path: str, accept: str = JSON, **query: object) -> AsyncIterator[Watch]:
        """An open watch on a collection; closed on leaving."""
        parameters = {"watch": "true"} | {
            key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in query.items()
        }
        response = await self.session.get(self.server + path, params=parameters, headers={"Accept": accept})
        try:
            yield Watch(response)
        finally:
            response.close()
