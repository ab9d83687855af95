"""`placewright sandbox --real`: kube-apiserver and etcd instead of the embedded cluster, with the same nodes and simulated kubelets."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec

from placewright.cli.definitions import shipped_definitions
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import ApiError
from placewright_lab.controlplane.kubelet import Kubelet
from placewright_lab.controlplane.nodekeeper import make_nodes
from placewright_lab.controlplane.programs import provide
from placewright_lab.controlplane.server import ControlPlane, Options

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_ESTABLISHED_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.05
#: How soon it is noticed that the API server or etcd died.
_CHECK_SECONDS: Final = 0.5

_OPENAPI: Final = "/openapi/v2"
#: A server that has just started may need a moment to put its documents together.
_OPENAPI_SECONDS: Final = 5.0
_OPENAPI_WAIT: Final = 0.25

Ready = Callable[[ControlPlane, bool], None]


def serve(environ: Mapping[str, str], nodes: int, options: Options, ready: Ready) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        environ: says where the programs are (`controlplane.programs`).
        nodes: how many to begin with.
        options: of the control plane.
        ready: called once, when everything is there, with whether the API server describes itself to kubectl.

    Raises:
        InputError: there are no programs.
        ControlPlaneFailed: they do not run, or ended by themselves.
        OSError: the kubeconfig cannot be written.
    """
    # Until the loop handles signals, SIGTERM has to clean up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    assets = provide(environ)
    # From this thread, which lives as long as we do: the programs die with it.
    with ControlPlane(assets, options) as running:
        asyncio.run(_serve(running, nodes, ready))


async def _serve(running: ControlPlane, nodes: int, ready: Ready) -> None:
    serving = asyncio.current_task()
    assert serving is not None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    # Only the signals cancel, and nothing is left to do then.
    with suppress(asyncio.CancelledError):
        async with ApiClient(load_config(str(running.kubeconfig))) as client:
            for definition in shipped_definitions():
                await _define(client, definition)
            await make_nodes(client, nodes, running.assets.minor)
            ready(running, await serves_openapi(client))
            await _run_while_served(Kubelet(client), running)


async def serves_openapi(client: ApiClient, patience: float = _OPENAPI_SECONDS) -> bool:
    """Whether the server serves the document by which kubectl checks manifests.

    Servers that were built with a newer Go than they say have been seen to answer 503 for as long as they ran; then `kubectl apply`
    refuses everything, unless it is told not to check.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while True:
                try:
                    await client.get(_OPENAPI)
                except ApiError:
                    await asyncio.sleep(_OPENAPI_WAIT)
                else:
                    return True
    return False


async def _run_while_served(kubelet: Kubelet, running: ControlPlane) -> None:
    working = asyncio.create_task(kubelet.run())
    try:
        while not working.done():
            running.check()
            await asyncio.wait((working,), timeout=_CHECK_SECONDS)
    finally:
        working.cancel()


async def _define(client: ApiClient, definition: dict[str, Any]) -> None:
    """Its resources can be asked for when this returns."""
    await client.post(_DEFINITIONS, definition)
    async with asyncio.timeout(_ESTABLISHED_SECONDS):
        while True:
            if _established(await client.get(f"{_DEFINITIONS}/{definition['metadata']['name']}")):
                return
            await asyncio.sleep(_LOOK_SECONDS)


def _established(answer: bytes) -> bool:
    conditions = msgspec.json.decode(answer).get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
