"""A stand-in for the operator: takes up profiles, binds pods in turn to nodes with CPU to spare, refuses pods that ask for too much.

Run as `python fake_operator.py KUBECONFIG`; ends when its standard input ends.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import msgspec

from placewright.api.annotations import DECISION
from placewright.api.objects import Node, Pod
from placewright.api.profile import SchedulingProfile
from placewright.api.requests import canonical, pod_requests
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import ApiError
from placewright.kube.reflector import Reflector, Reflectors, Source
from placewright_lab.demo.livestate import PODS_PATH, PROFILES_PATH


class Worker:
    """A sink for everything, in which each change puts one piece of work into a queue."""

    def __init__(self, work: asyncio.Queue[Any]) -> None:
        self.work = work

    def changed(self, old: Any, new: Any) -> None:
        self.work.put_nowait(new)

    def deleted(self, old: Any) -> None: ...

    def synced(self) -> None: ...


async def serve(kubeconfig: str) -> None:
    async with ApiClient(load_config(kubeconfig)) as client:
        work: asyncio.Queue[Any] = asyncio.Queue()
        sink = Worker(work)
        nodes = Reflector(client, Source("/api/v1/nodes", Node), sink)
        profiles = Reflector(client, Source(PROFILES_PATH, SchedulingProfile), sink)
        first = Reflectors([nodes, profiles])
        first.start()
        await first.wait_synced()
        pods = Reflectors([Reflector(client, Source(PODS_PATH, Pod, "spec.nodeName="), sink)])
        pods.start()
        turn, generation = 0, 1
        while True:
            item = await work.get()
            if isinstance(item, SchedulingProfile) and item.status.active_generation != item.metadata.generation:
                generation = item.metadata.generation
                await client.patch(f"{PROFILES_PATH}/{item.metadata.name}/status", {"status": {"activeGeneration": generation}})
            elif isinstance(item, Pod) and not item.spec.node_name and not item.status.conditions:
                turn += 1
                await place(client, item, sorted(nodes.store.values(), key=lambda n: n.metadata.name), turn, generation)


async def place(client: ApiClient, pod: Pod, nodes: list[Node], turn: int, generation: int) -> None:
    path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
    want = pod_requests(pod.spec).get("cpu", 0)
    fitting = [n for n in nodes if canonical(n.status.allocatable or {}).get("cpu", 0) >= want]
    if not fitting:
        message = f"0/{len(nodes)} nodes are available: {len(nodes)} Insufficient cpu."
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        await client.patch(f"{path}/status", {"status": {"conditions": [condition]}})
        return
    decision = {"profile": "default", "generation": generation, "score": 100}
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod.metadata.name, "annotations": {DECISION: msgspec.json.encode(decision).decode()}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": fitting[turn % len(fitting)].metadata.name},
    }
    try:
        await client.post(f"{path}/binding", binding)
    except ApiError as error:
        if error.status != 409:
            raise


async def until_input_ends(kubeconfig: str) -> None:
    serving = asyncio.create_task(serve(kubeconfig))
    reading = asyncio.create_task(asyncio.to_thread(os.read, sys.stdin.fileno(), 1))
    done, _ = await asyncio.wait([serving, reading], return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    serving.cancel()


if __name__ == "__main__":
    if sys.argv[1:] == ["fail"]:
        sys.exit("this operator cannot start")
    asyncio.run(until_input_ends(sys.argv[1]))
