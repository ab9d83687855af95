"""The pods of kube-system come as soon as the API server admits any, whatever it says before."""

from __future__ import annotations

from typing import Any, cast

import pytest

from placewright.kube.client import ApiClient
from placewright.kube.errors import ApiError
from tools.conformance.systempods import NAMES, make_system_pods

NO_ACCOUNT = ApiError(403, "Forbidden", 'error looking up service account kube-system/default: serviceaccount "default" not found')
NO_TOKEN = ApiError(500, "ServerTimeout", 'No API token found for service account "default", retry after the token is created')


class Server:
    """Refuses the first pods, each with the next of these errors."""

    def __init__(self, *refusals: ApiError) -> None:
        self._refusals = list(refusals)
        self.made: list[dict[str, Any]] = []

    async def post(self, path: str, body: dict[str, Any]) -> bytes:
        if self._refusals:
            raise self._refusals.pop(0)
        self.made.append(body)
        return b"{}"


async def test_each_node_gets_one_of_each() -> None:
    server = Server(NO_ACCOUNT, NO_TOKEN)
    await make_system_pods(cast(ApiClient, server), 2)
    expected = {(f"{name}-{node}", node) for name in NAMES for node in ("node-0000", "node-0001")}
    assert {(pod["metadata"]["name"], pod["spec"]["nodeName"]) for pod in server.made} == expected
    assert len(server.made) == len(expected)


async def test_another_refusal_is_not_waited_for() -> None:
    with pytest.raises(ApiError, match="no such thing"):
        await make_system_pods(cast(ApiClient, Server(ApiError(404, "NotFound", "no such thing"))), 1)
