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
#: Seconds between two looks at the API server and etcd.
_CHECK_SECONDS: Final = 0.5

_OPENAPI: Final = "/openapi/v2"
#: Seconds that a fresh server may need for its documents.
_OPENAPI_SECONDS: Final = 5.0
_OPENAPI_WAIT: Final = 0.25

Ready = Callable[[ControlPlane, bool], None]


def serve(environ: Mapping[str, str], nodes: int, options: Options, ready: Ready) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        environ: environment that names the programs (`controlplane.programs`).
        nodes: number of nodes at the beginning.
        options: options of the control plane.
        ready: function that is called once, with whether the API server describes itself to kubectl.

    Raises:
        InputError: there are no programs.
        ControlPlaneFailed: the programs do not run, or ended by themselves.
        OSError: the kubeconfig cannot be written.
    """
    # Until the loop handles signals, SIGTERM has to clean up like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    assets = provide(environ)
    # This thread lives as long as we do, and the programs die with it.
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
    """Return whether the server serves the document with which kubectl checks manifests.

    Some servers that were built with a newer Go answer 503 for ever. Then `kubectl apply` refuses everything, unless it does not check.
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
    """Create a definition, and return when the server serves its resources."""
    await client.post(_DEFINITIONS, definition)
    async with asyncio.timeout(_ESTABLISHED_SECONDS):
        while True:
            if _established(await client.get(f"{_DEFINITIONS}/{definition['metadata']['name']}")):
                return
            await asyncio.sleep(_LOOK_SECONDS)


def _established(answer: bytes) -> bool:
    conditions = msgspec.json.decode(answer).get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
