"""The endpoints on a real API server: whose a token is and what they may, it says itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command

from .stage import Stage
from .views import DEADLINE

RBAC = "/apis/rbac.authorization.k8s.io/v1"
PAGES = ("/configz", "/metrics", "/debug/queue", "/debug/cache")


@asynccontextmanager
async def served(stage: Stage) -> AsyncIterator[str]:
    """The address of an operator that is ready."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*operator_command(stage.installation.operator_kubeconfig), "--secure-port", str(port), "--bind-address", "127.0.0.1"]
    async with OperatorProcess(command, stage.installation.folder / f"{stage.namespace}-serving.log") as process:
        stage.operators.append(process)
        async with asyncio.timeout(DEADLINE):
            while (await asked(f"https://127.0.0.1:{port}/readyz"))[0] != 200:  # noqa: ASYNC110 - an endpoint tells nobody
                await asyncio.sleep(0.1)
        yield f"https://127.0.0.1:{port}"


async def asked(url: str, token: str = "") -> tuple[int, str]:
    """Status and text; 0 while nobody listens."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    with contextlib.suppress(aiohttp.ClientConnectionError):
        async with aiohttp.ClientSession() as session, session.get(url, ssl=trusting, headers=headers) as answer:
            return answer.status, await answer.text()
    return 0, ""


async def post(stage: Stage, path: str, body: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(await stage.client.post(path, body)))


@pytest.fixture
async def token(stage: Stage) -> AsyncIterator[str]:
    """Of an account that may read every page."""
    accounts, name = f"/api/v1/namespaces/{stage.namespace}/serviceaccounts", f"{stage.namespace}-reader"
    await post(stage, accounts, {"metadata": {"name": "reader"}})
    rules = [{"nonResourceURLs": ["/configz", "/metrics", "/debug/*"], "verbs": ["get"]}]
    await post(stage, f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": stage.namespace}
    await post(stage, f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]})
    yield (await post(stage, f"{accounts}/reader/token", {"spec": {}}))["status"]["token"]
    for kind in ("clusterrolebindings", "clusterroles"):
        await stage.delete(f"{RBAC}/{kind}/{name}")


async def test_the_api_server_decides_who_reads_what(stage: Stage, token: str) -> None:
    accounts = f"/api/v1/namespaces/{stage.namespace}/serviceaccounts"
    await post(stage, accounts, {"metadata": {"name": "stranger"}})
    stranger = (await post(stage, f"{accounts}/stranger/token", {"spec": {}}))["status"]["token"]
    name = f"system:serviceaccount:{stage.namespace}:stranger"
    async with served(stage) as address:
        for page in PAGES:
            assert (await asked(f"{address}{page}", token))[0] == 200, page
            assert await asked(f"{address}{page}", stranger) == (403, f'forbidden: User "{name}" cannot get path "{page}"\n')
            assert await asked(f"{address}{page}", "nonsense") == (401, "Unauthorized\n")
            assert await asked(f"{address}{page}") == (403, f'forbidden: User "system:anonymous" cannot get path "{page}"\n')
        config = json.loads((await asked(f"{address}/configz", token))[1])
        assert [profile["activeGeneration"] for profile in config["profiles"] if profile["name"] == "default"]
        assert "scheduler_pending_pods" in (await asked(f"{address}/metrics", token))[1]
