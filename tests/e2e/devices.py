"""Claims to devices on a stage, for servers that serve them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contract.devices import a_claim, device_class, request, resource_slice, shared_path

from .makers import a_pod
from .stage import Stage


@asynccontextmanager
async def pod_with_a_device(stage: Stage, node: str) -> AsyncIterator[str]:
    """The key of a pod whose claim only this node can serve; what it needs is taken away afterwards, but for the claim."""
    name = f"{stage.namespace}-gpus"
    shared = {
        shared_path("deviceclasses"): device_class(name),
        shared_path("resourceslices"): resource_slice(name, nodeName=node, pool={"name": node}),
    }
    wanting = a_pod("trainer", stage.namespace, stage.namespace)
    wanting["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "it"}]
    try:
        for path, body in shared.items():
            await stage.client.post(path, body)
        await stage.client.post(
            f"/apis/resource.k8s.io/v1/namespaces/{stage.namespace}/resourceclaims", a_claim("it", request("gpu", name))
        )
        await stage.client.post(f"/api/v1/namespaces/{stage.namespace}/pods", wanting)
        yield f"{stage.namespace}/trainer"
    finally:
        for path in shared:
            await stage.delete(f"{path}/{name}")
