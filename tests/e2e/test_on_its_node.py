"""What a pod's status says of its node: the node that it waits for before its Binding, and a resize in place that has no room."""

from __future__ import annotations

import asyncio
from typing import Any

from manifest import manifest
from placewright.kube.client import STRATEGIC_MERGE_PATCH
from placewright.kube.serverversion import server_version
from programs import not_on_this_server

from .makers import a_pod
from .stage import Stage
from .views import DEADLINE, Seen

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
#: Since which minor version kube-scheduler nominates before slow bindings, and pods are resized by a subresource.
NOMINATED, RESIZED = 35, 32


async def minor(stage: Stage) -> int:
    version = await server_version(stage.client)
    assert version is not None
    return version.minor


async def pod_with_new_volume(stage: Stage) -> str:
    """A pod that waits for its volume: no provisioner runs."""
    name = f"{stage.namespace}-slow"
    slow = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}, "provisioner": "example.test/slow"}
    await stage.client.post(CLASSES, slow | {"volumeBindingMode": "WaitForFirstConsumer"})
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": name, "resources": {"requests": {"storage": "1Gi"}}}
    own = f"/api/v1/namespaces/{stage.namespace}"
    await stage.client.post(f"{own}/persistentvolumeclaims", manifest("v1", "PersistentVolumeClaim", "data", spec=spec))
    subject = a_pod("waits", stage.namespace, stage.namespace)
    subject["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    await stage.client.post(f"{own}/pods", subject)
    return f"{stage.namespace}/waits"


async def until_annotated(stage: Stage, path: str) -> None:
    async with asyncio.timeout(DEADLINE):
        while not (await stage.client.get_as(path, Seen)).metadata.annotations:  # noqa: ASYNC110 - no watch of this kind is open
            await asyncio.sleep(0.1)


async def test_a_pod_that_waits_for_a_volume_names_its_node_meanwhile(stage: Stage) -> None:
    """By the level of the API server: not before 1.35."""
    expected = await minor(stage) >= NOMINATED
    node = await stage.node("one")
    async with stage.active_operator():
        key = await pod_with_new_volume(stage)
        claim = f"/api/v1/namespaces/{stage.namespace}/persistentvolumeclaims/data"
        await until_annotated(stage, claim)
        if expected:
            await stage.views.until(lambda: stage.pod(key).status.get("nominatedNodeName") == node, stage.words)
        assert stage.pod(key).status.get("nominatedNodeName") == (node if expected else None)
        await stage.delete_pod(key)
    await stage.delete(f"{CLASSES}/{stage.namespace}-slow")


async def merge(stage: Stage, path: str, change: dict[str, Any]) -> None:
    await stage.client.patch(path, change, content_type=STRATEGIC_MERGE_PATCH)


async def test_a_deferred_resize_evicts_pods_of_lower_priority(stage: Stage) -> None:
    if await minor(stage) < RESIZED:
        not_on_this_server(f"pods are resized by a subresource since 1.{RESIZED}")
    high = await stage.priority_class("high", 1000)
    await stage.edit_profile(preemption={"deferredResizes": "Preempt"})
    node = await stage.node("one", cpu="4")
    async with stage.active_operator():
        low = await stage.pods(3, cpu="1", grace=0)
        (grows,) = await stage.pods(1, cpu="1", priority_class=high)
        await stage.until_running([*low, grows])
        pod = f"/api/v1/namespaces/{stage.namespace}/pods/{grows.partition('/')[2]}"
        has, wants = {"cpu": "1", "memory": "8Mi"}, {"cpu": "3", "memory": "8Mi"}
        runs = {"name": "main", "resources": {"requests": has}, "allocatedResources": has}
        await merge(stage, f"{pod}/status", {"status": {"containerStatuses": [runs]}})
        await merge(stage, f"{pod}/resize", {"spec": {"containers": [{"name": "main", "resources": {"requests": wants}}]}})
        pending = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "Node didn't have enough cpu"}
        await merge(stage, f"{pod}/status", {"status": {"conditions": [pending]}})
        await stage.views.until(lambda: len(stage.own_pods()) == 2, lambda: f"two of three pods make room on {node}; {stage.words()}")
        assert grows in stage.own_pods()
