"""The pods that upstream's tests expect on every node of a healthy cluster; without them most specs wait a minute for nothing."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kubesandbox.controllers.kubelet import simulated_node
from placewright.kube.client import ApiClient
from placewright.kube.errors import FORBIDDEN, ApiError
from placewright_lab.controlplane.server import ControlPlaneFailed

NAMES: Final = ("kube-proxy", "fluentd-elasticsearch", "node-problem-detector")
_PODS: Final = "/api/v1/namespaces/kube-system/pods"
_ADMITTED_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.1
_TRY_AGAIN: Final = 500


async def make_system_pods(client: ApiClient, nodes: int) -> None:
    """Make one of each on each of so many simulated nodes, without requests. A controller has to make default service accounts."""
    for number in range(nodes):
        node = simulated_node(number, "")["metadata"]["name"]
        for name in NAMES:
            await _once_admitted(client, _pod(f"{name}-{node}", node))


async def _once_admitted(client: ApiClient, pod: dict[str, Any]) -> None:
    """Pods are refused until there is their service account: as forbidden, and up to 1.23, where it has to have a token, by a 500."""
    refused = "no answer"
    try:
        async with asyncio.timeout(_ADMITTED_SECONDS):
            while True:
                try:
                    await client.post(_PODS, pod)
                except ApiError as error:
                    if error.status not in (FORBIDDEN, _TRY_AGAIN):
                        raise
                    refused = str(error)
                    await asyncio.sleep(_LOOK_SECONDS)
                else:
                    return
    except TimeoutError:
        raise ControlPlaneFailed(f"pods are not admitted in time: {refused}") from None


def _pod(name: str, node: str) -> dict[str, Any]:
    spec = {
        "nodeName": node,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "example.test/main"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
