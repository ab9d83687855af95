"""A bare HTTP client of a sandbox, from nothing but its kubeconfig."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

Object = dict[str, Any]


@dataclass
class Client:
    """Makes requests with the kubeconfig's server, authority and token."""

    session: aiohttp.ClientSession
    server: str

    async def ask(self, method: str, path: str, content: object = None, **more: Any) -> tuple[int, Any]:
        """Make one request. Return the code and the decoded JSON of its answer."""
        async with self.session.request(method, self.server + path, json=content, **more) as answer:
            return answer.status, await answer.json()

    async def expect(self, code: int, method: str, path: str, content: object = None, **more: Any) -> Any:
        """Make one request that must be answered with `code`."""
        found, body = await self.ask(method, path, content, **more)
        assert found == code, body
        return body


@asynccontextmanager
async def client_of(kubeconfig: Path, *, token: str | None = None) -> AsyncIterator[Client]:
    """Return a client of the server behind a kubeconfig, with its own or another `token`."""
    config = yaml.safe_load(kubeconfig.read_bytes())  # noqa: ASYNC240  a small local file
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    headers = {"Authorization": f"Bearer {user['token'] if token is None else token}"}
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority))
    timeout = aiohttp.ClientTimeout(total=20)
    async with aiohttp.ClientSession(headers=headers, connector=connector, timeout=timeout) as session:
        yield Client(session, cluster["server"])
