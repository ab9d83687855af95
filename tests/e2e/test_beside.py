"""Placewright and a kube-scheduler at once, on one API server: what docs/beside-default-scheduler.md promises."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from placewright_lab.controlplane.kubescheduler import KubeScheduler
from programs import not_on_this_server

from . import makers
from .ending import overfull, world_of
from .stage import Stage

Object = dict[str, Any]
NODES: Final = 10
POOL: Final = "placewright.dev/pool"
TAINT: Final = {"key": POOL, "effect": "NoSchedule"}
ROOM: Final = 4
"""Pods of a CPU that a node takes."""


@contextlib.contextmanager
def kube_scheduler(stage: Stage) -> Iterator[KubeScheduler]:
    """The one among the assets, for pods that name no scheduler."""
    control_plane = stage.installation.control_plane
    if control_plane is None or control_plane.assets.kube_scheduler is None:
        not_on_this_server("KUBEBUILDER_ASSETS has no kube-scheduler")
    assets = control_plane.assets
    with KubeScheduler(assets.kube_scheduler, assets.minor, control_plane.kubeconfig, stage.installation.folder) as running:
        yield running


def a_pod(stage: Stage, name: str, **spec: Any) -> Object:
    made = makers.a_pod(name, stage.namespace, stage.namespace, cpu="1")
    made["spec"] |= spec
    return made


def for_us(stage: Stage, name: str) -> Object:
    """As the page has it: the pool's label, and its taint tolerated."""
    selector = {makers.STAGE: stage.namespace, POOL: "placewright"}
    return a_pod(stage, name, nodeSelector=selector, tolerations=[{**TAINT, "operator": "Exists"}])


def for_them(stage: Stage, name: str) -> Object:
    return a_pod(stage, name, schedulerName="default-scheduler")


async def placed(stage: Stage, manifests: list[Object]) -> list[Object]:
    """The pods, when both schedulers have said that they placed theirs. The stage's own views show one scheduler's pods only."""
    path = f"/api/v1/namespaces/{stage.namespace}/pods"
    await asyncio.gather(*(stage.client.post(path, each) for each in manifests))
    await stage.until_told([f"{stage.namespace}/{each['metadata']['name']}" for each in manifests])
    found: list[Object] = json.loads(await stage.client.get(path))["items"]
    return found


async def test_with_a_pool_of_its_own_each_fills_its_nodes_to_the_brim_and_no_further(stage: Stage) -> None:
    for number in range(NODES):
        await stage.node(f"theirs-{number}", cpu=str(ROOM))
        ours = await stage.node(f"ours-{number}", cpu=str(ROOM), taint=POOL)
        await stage.patch(f"/api/v1/nodes/{ours}", {"metadata": {"labels": {POOL: "placewright"}}})
    async with stage.active_operator():
        with kube_scheduler(stage):
            mixed = [make(stage, f"{make.__name__.replace('_', '-')}-{n}") for n in range(NODES * ROOM) for make in (for_us, for_them)]
            pods = await placed(stage, mixed)
    assert len(pods) == 2 * NODES * ROOM
    assert overfull(replace(world_of(stage), pods=pods)) == []
    assert all(("-ours-" in each["spec"]["nodeName"]) == ("for-us" in each["metadata"]["name"]) for each in pods)
