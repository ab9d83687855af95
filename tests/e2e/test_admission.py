"""The webhook and the definition on a real API server, which in 1.20 knows no CEL: there the operator's own checks are all there is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from placewright.engine.engine import build_engine
from placewright.engine.options import AdmissionOptions, EngineOptions
from placewright.handlers.operator import run_engine
from placewright.kube.auth.login import load_config
from placewright.kube.client import MERGE_PATCH, ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError
from ports import reserved_port
from programs import not_on_this_server

from .installation import PROFILES, Installation

DEADLINE = 60.0
LOOK_SECONDS = 0.1
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/placewright-e2e"


def a_profile(name: str, **spec: Any) -> dict[str, Any]:
    spec = {"schedulerName": name, **spec}
    spec = {"schedulerName": "default-scheduler", **spec}
    return {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": name}, "spec": spec}


BAD = {"initialSeconds": 3, "maxSeconds": 2}
DENIED = 'admission webhook "profiles.placewright.dev" denied the request: '
CEL = 25
"""The first minor version that keeps to the rules of a definition."""


@asynccontextmanager
async def cluster(installation: Installation, *names: str) -> AsyncIterator[ApiClient]:
    """Somebody who may do everything; what he made is gone at the end."""
    async with ApiClient(load_config(str(installation.kubeconfig))) as client:
        try:
            yield client
        finally:
            for path in (CONFIGURATION, *(f"{PROFILES}/{name}" for name in names)):
                with contextlib.suppress(ApiError):
                    await client.delete(path)


@asynccontextmanager
async def operator(installation: Installation, admission: AdmissionOptions | None) -> AsyncIterator[None]:
    stop = asyncio.Event()
    engine = build_engine(load_config(str(installation.kubeconfig)), EngineOptions(seed=1, peering_lifetime=5, admission=admission))
    task = asyncio.create_task(run_engine(engine, stop))
    try:
        yield
    finally:
        stop.set()
        await task


async def said_of(client: ApiClient, content: dict[str, Any]) -> str:
    """What the API server says of a new profile; empty when it takes it."""
    try:
        await client.post(PROFILES, content)
    except ApiError as refused:
        return str(refused)
    return ""


async def refused(client: ApiClient, content: dict[str, Any]) -> str:
    """What is said once the API server has heard of the webhook: it looks for configurations now and then."""
    async with asyncio.timeout(DEADLINE):
        while not (said := await said_of(client, content)):
            await client.delete(f"{PROFILES}/{content['metadata']['name']}")
            await asyncio.sleep(LOOK_SECONDS)
    return said


async def test_the_api_server_asks_the_webhook_before_it_stores_a_profile(installation: Installation) -> None:
    if installation.control_plane is None:
        not_on_this_server("it is that of KUBECONFIG_E2E and cannot call this machine")
    options = AdmissionOptions(address="127.0.0.1", port=reserved_port(), configuration="placewright-e2e")
    async with cluster(installation, "asked-bad", "asked-good") as client, operator(installation, options):
        said = await refused(client, a_profile("asked-bad", weights={"NodeResourceFit": 1}))
        assert f'{DENIED}spec.weights.NodeResourceFit: found "NodeResourceFit"' in said
        said = await said_of(client, a_profile("asked-bad", backoff=BAD))
        if installation.control_plane.assets.minor >= CEL:
            assert "spec.backoff: Invalid value: " in said
            assert "maxSeconds is at least initialSeconds" in said
            assert DENIED not in said, "the rule of the definition comes before the webhook"
        else:
            assert f"{DENIED}spec.backoff.maxSeconds: found 2; allowed" in said
        assert await said_of(client, a_profile("asked-good")) == ""
        with pytest.raises(ApiError, match="immutable"):
            await client.patch(f"{PROFILES}/asked-good", {"spec": {"schedulerName": "other"}}, content_type=MERGE_PATCH)
        await client.patch(f"{PROFILES}/asked-good", {"spec": {"paused": True}}, content_type=MERGE_PATCH)


async def test_what_an_api_server_without_cel_lets_pass_the_operator_refuses(installation: Installation) -> None:
    async with cluster(installation, "unasked") as client:
        said = await said_of(client, a_profile("unasked", backoff=BAD))
        if said:
            assert "maxSeconds is at least initialSeconds" in said
            return
        async with operator(installation, None), asyncio.timeout(DEADLINE):
            ready: dict[str, Any] | None = None
            while ready is None or ready["status"] != "False":
                await asyncio.sleep(LOOK_SECONDS)
                ready = await _ready(client, "unasked")
        assert ready["reason"] == "InvalidProfile"
        assert "spec.backoff.maxSeconds: found 2; allowed" in ready["message"]


async def _ready(client: ApiClient, name: str) -> dict[str, Any] | None:
    try:
        found = await client.get_as(f"{PROFILES}/{name}", dict[str, Any])
    except ApiError as missing:
        if missing.status != NOT_FOUND:
            raise
        return None
    conditions = (found.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == "Ready"), None)
