"""The pods that upstream's tests expect on every node of a healthy cluster; without them most specs wait a minute for nothing."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from placewright.kube.client import ApiClient
from placewright.kube.errors import FORBIDDEN, ApiError
from placewright.sandbox.nodes import simulated_node

NAMES: Final = ("kube-proxy", "fluentd-elasticsearch", "node-problem-detector")
_PODS: Final = "/api/v1/namespaces/kube-system/pods"
_ADMITTED_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.1


async def make_system_pods(client: ApiClient, nodes: int) -> None:
    """One of each on each of so many simulated nodes, requesting nothing. Needs somebody who makes default service accounts."""
    for number in range(nodes):
        node = simulated_node(number, "")["metadata"]["name"]
        for name in NAMES:
            await _once_admitted(client, _pod(f"{name}-{node}", node))


async def _once_admitted(client: ApiClient, pod: dict[str, Any]) -> None:
    """Pods are forbidden until the controller manager has made their service account."""
    async with asyncio.timeout(_ADMITTED_SECONDS):
        while True:
            try:
                await client.post(_PODS, pod)
            except ApiError as error:
                if error.status != FORBIDDEN:
                    raise
                await asyncio.sleep(_LOOK_SECONDS)
            else:
                return


def _pod(name: str, node: str) -> dict[str, Any]:
    spec = {
        "nodeName": node,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "containers": [{"name": "main", "image": "example.test/main"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
