"""Groups of pods on a stage."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import yaml

from manifest import manifest
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError

from .installation import apply
from .makers import a_pod
from .stage import Stage

_DEFINITION: Final = Path(__file__).parents[2] / "crds" / "groups" / "podgroups.yaml"
_GROUPS: Final = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
_LOOK_SECONDS: Final = 0.05


async def define_groups(client: ApiClient) -> None:
    """Install the definition, unless the cluster has one; returns when it is served."""
    if not await _served(client):
        await apply(client, yaml.safe_load(_DEFINITION.read_text()))
    async with asyncio.timeout(60.0):
        while not await _served(client):  # noqa: ASYNC110 - the server has no event for it
            await asyncio.sleep(_LOOK_SECONDS)


async def _served(client: ApiClient) -> bool:
    try:
        await client.get(_GROUPS)
    except ApiError as error:
        if error.status != NOT_FOUND:
            raise
        return False
    return True


async def group_of(stage: Stage, name: str, count: int, *, cpu: str) -> list[str]:
    """A group that needs all its members, and these; their keys."""
    group = manifest("scheduling.x-k8s.io/v1alpha1", "PodGroup", name, {"namespace": stage.namespace}, spec={"minMember": count})
    await stage.client.post(f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{stage.namespace}/podgroups", group)
    names = [f"{name}-{number}" for number in range(count)]
    for each in names:
        member = a_pod(each, stage.namespace, stage.namespace, cpu=cpu)
        member["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": name}
        await stage.client.post(f"/api/v1/namespaces/{stage.namespace}/pods", member)
    return [f"{stage.namespace}/{each}" for each in names]
