"""The second act of a demo: jobs whose pods are placed all or none, each with a device of its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from kubesandbox.devices.layouts import DRIVER
from placewright.api.objects import Pod
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.offline.kinds import Manifest, kind_of
from placewright_lab.demo.operatorprocess import OperatorProcess

#: Label of the nodes with devices, which come with the jobs.
LABEL: Final = "sandbox.placewright.dev/gpus"
DEVICES: Final = 2
NODES: Final = 4
FIRST: Final = 6
SECOND: Final = 4
_JOB: Final = "job"
_LOOK_SECONDS: Final = 0.05
_PODS: Final = "/api/v1/namespaces/default/pods"


class _Pods(msgspec.Struct):
    items: list[Pod]


@dataclass(eq=False)
class Jobs:
    """Two jobs, on nodes with devices for one of them at a time.

    Attributes:
        say: takes a line for each step.
        scheduler: schedulerName of the pods.
        seconds: time limit of a job.
        pause: seconds to wait after each step, so that a person can look at it.
    """

    client: ApiClient
    operator: OperatorProcess
    say: Callable[[str], None]
    scheduler: str
    seconds: float
    clock: Callable[[], float] = time.monotonic
    pause: float = 0.0

    async def run(self) -> bool:
        """Run both jobs. Return False if one was not placed, or only in part."""
        self.say(f"\n{NODES} nodes more, with {DEVICES} devices each, and jobs whose pods are placed all or none, with a device each:")
        try:
            await self._prepare()
            return await self._first() and await self._second()
        except RequestError as error:
            self.say(f"the jobs could not be run: {error}")
            return False

    async def _prepare(self) -> None:
        for number in range(NODES):
            await self._create(gpu_node(number))
        await self._create(template())

    async def _first(self) -> bool:
        start = await self._submit("train", FIRST)
        placed = await self._until("train", lambda pods: len(_nodes(pods)) == FIRST)
        if placed is None:
            return self._stuck("train")
        nodes = len(set(_nodes(placed)))
        self.say(f"train, {FIRST} pods: all placed {self._since(start)} after the last was created, on {nodes} nodes")
        await asyncio.sleep(self.pause)
        return True

    async def _second(self) -> bool:
        await self._submit("evaluate", SECOND)
        pods = await self._until("evaluate", lambda pods: all(map(_message, pods)))
        if pods is None or _nodes(pods):
            return self._stuck("evaluate")
        left, why = NODES * DEVICES - FIRST, _message(pods[0]).partition(", preemption:")[0]
        self.say(f"evaluate, {SECOND} pods for the {left} devices that are left: none placed. {why}")
        await asyncio.sleep(self.pause)
        start = self.clock()
        await self.client.delete(f"{_PODS}?labelSelector={_JOB}%3Dtrain", {"gracePeriodSeconds": 0})
        if await self._until("evaluate", lambda pods: len(_nodes(pods)) == SECOND) is None:
            return self._stuck("evaluate")
        self.say(f"train is deleted: all {SECOND} pods of evaluate placed {self._since(start)} later")
        await asyncio.sleep(self.pause)
        return True

    async def _submit(self, name: str, count: int) -> float:
        """Create a job. Return the time."""
        await self._create(group(name, count))
        for number in range(count):
            await self._create(member(name, number, self.scheduler))
        return self.clock()

    async def _create(self, manifest: Manifest) -> None:
        path = kind_of(manifest).path(manifest["metadata"].get("namespace", ""))
        await self.client.post(path, msgspec.json.encode(manifest))

    async def _until(self, job: str, seen: Callable[[list[Pod]], bool]) -> list[Pod] | None:
        """Return the job's pods when they are as wanted, or None after the time limit."""
        deadline = self.clock() + self.seconds
        while self.clock() < deadline and self.operator.exit_code is None:
            answer = await self.client.get(f"{_PODS}?labelSelector={_JOB}%3D{job}")
            pods = msgspec.json.decode(answer, type=_Pods).items
            if pods and seen(pods):
                return pods
            await asyncio.sleep(_LOOK_SECONDS)
        return None

    def _since(self, start: float) -> str:
        return f"{1000 * (self.clock() - start):.0f} ms"

    def _stuck(self, job: str) -> bool:
        self.say(f"{job} was not placed as it should be within {self.seconds:.0f} s")
        return False


def _nodes(pods: list[Pod]) -> list[str]:
    return [pod.spec.node_name for pod in pods if pod.spec.node_name]


def _message(pod: Pod) -> str:
    """Return the reason why the pod is not placed; empty until one is known."""
    found = [each.message for each in pod.status.conditions or () if each.type == "PodScheduled" and each.status == "False"]
    return found[0] if found else ""


def gpu_node(number: int) -> Manifest:
    """Return a node that gets devices."""
    name = f"gpu-{number}"
    amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
    labels = {LABEL: "", "kubernetes.io/hostname": name}
    ready = {"type": "Ready", "status": "True"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def template() -> Manifest:
    """Return a pod with a claim to one device."""
    request = {"name": "gpu", "exactly": {"deviceClassName": DRIVER}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one-gpu", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def group(name: str, count: int) -> Manifest:
    """Return a group of pods, all or none."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": count}}},
    }


def member(job: str, number: int, scheduler: str) -> Manifest:
    """Return a pod of a job."""
    container = {"name": "main", "image": "train:1", "resources": {"claims": [{"name": "gpu"}]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{job}-{number}", "namespace": "default", "labels": {_JOB: job}},
        "spec": {
            "schedulerName": scheduler,
            "schedulingGroup": {"podGroupName": job},
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
            "containers": [container],
        },
    }
