"""Has kube-scheduler place pods one at a time, and keeps what the cluster was at each decision."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from contract.client import MERGE, Client, Watch
from contract.cluster import client_from
from e2e.answers.comparing import heard_of
from e2e.answers.legacy import PROFILE, RETIRING, marks
from e2e.answers.randomcluster import NAMESPACES, PRIORITIES, Dice, Object, owned, replica_sets, services
from e2e.answers.scorelog import Scores, known_in, scores_in
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.controlplane.server import ControlPlane

NODES: Final = 50
PODS: Final = 200
_ASSIGNED: Final = 40
_ALL_NODES: Final = {"percentageOfNodesToScore": 100}
_TOUCHED: Final = "example.com/touched"


@dataclass(frozen=True)
class Decision:
    """One pod, what was in the cluster, and what kube-scheduler made of it.

    Attributes:
        objects: everything that placement looks at, as the API server had it just before; the pod is not among them.
        node: where it went; "" when nowhere.
        message: of the condition PodScheduled, for a pod that went nowhere.
        scores: weighted; empty when at most one node was left.
    """

    pod: Object
    objects: tuple[Object, ...]
    node: str = ""
    message: str = ""
    scores: Scores = field(default_factory=dict)

    @property
    def key(self) -> str:
        """namespace/name."""
        return _key(self.pod)


def record(plane: ControlPlane, seed: int) -> list[Decision]:
    """Fills the control plane and has its own kube-scheduler place `PODS` pods."""
    assert plane.assets.kube_scheduler is not None, "whoever calls has looked"
    return asyncio.run(_record(plane, plane.assets.kube_scheduler, Dice(seed)))


async def _record(plane: ControlPlane, program: Path, dice: Dice) -> list[Decision]:
    async with client_from(plane.kubeconfig) as client:
        setting = _Setting(client, dice)
        assigned = await setting.furnish()
        scheduler = KubeScheduler(
            program, plane.assets.minor, plane.kubeconfig, plane.folder, flags=["--v=10"], profile=PROFILE, settings=_ALL_NODES
        )
        with scheduler:
            await heard_of(setting.node_names | {_key(pod) for pod in assigned}, scheduler)
            await setting.touch_nodes(known_in(scheduler.log))
            placed = [*assigned, await _placed_on_the_last_node(client, dice)]
            decisions = await _place_all(client, setting, dice, placed)
        logged = scores_in(scheduler.log)
    return [replace(decision, scores=logged.get(decision.key, {})) for decision in decisions]


class _Setting:
    """The objects around the pods."""

    def __init__(self, client: Client, dice: Dice) -> None:
        self._client = client
        self._dice = dice
        self.fixed: list[Object] = []
        self.replica_sets: list[Object] = []
        self.node_names: set[str] = set()

    async def furnish(self) -> list[Object]:
        """Create everything but the pods to be placed; the pods that are on nodes already."""
        await self._create("/api/v1/namespaces", ({"metadata": {"name": name}} for name in NAMESPACES if name != "default"))
        classes = ({"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"} for name, value in PRIORITIES.items())
        await self._create("/apis/scheduling.k8s.io/v1/priorityclasses", classes)
        nodes = await self._create("/api/v1/nodes", (self._dice.node(number) for number in range(NODES)))
        self.node_names = {node["metadata"]["name"] for node in nodes}
        self.fixed += await self._create_namespaced("/api/v1", "services", services())
        self.replica_sets = await self._create_namespaced("/apis/apps/v1", "replicasets", replica_sets())
        self.fixed += self.replica_sets
        for name in sorted(self.node_names):
            body = {"metadata": marks(self._dice, self.replica_sets)}
            (await self._client.patch(f"/api/v1/nodes/{name}", body, MERGE)).expect(200)
        return await self._assign()

    async def _assign(self) -> list[Object]:
        """Pods that somebody else put on nodes; a few of them are on their way out, but no kubelet lets them go."""
        pods = [small(self.perhaps_owned(self._dice.pod(f"there-{number:02}"))) for number in range(_ASSIGNED)]
        for pod in pods:
            pod["spec"]["nodeName"] = f"node-{self._dice.randrange(NODES):02}"
        created = await self._create_namespaced("/api/v1", "pods", pods)
        for pod in created[::8]:
            (await self._client.delete(_path(pod))).expect(200)
        return [(await self._client.get(_path(pod))).expect(200) for pod in created]

    async def touch_nodes(self, order: Sequence[str]) -> None:
        """As kubelets do every few minutes, once all nodes are there; which kube-scheduler got to know in this order.

        1.20 takes note of how many nodes have an image when a node comes or changes, and only for that node; later versions always know.
        The last touch, of a node with room, is one that a pod can wait for: see `_placed_on_the_last_node`.
        """
        nodes = (await self._client.get("/api/v1/nodes")).expect(200)["items"]
        nodes.sort(key=lambda node: int(node["status"]["allocatable"]["pods"]))
        touched: dict[str, Object] = {}
        for node in nodes:
            name = node["metadata"]["name"]
            labels = {_TOUCHED: "last", RETIRING: None} if node is nodes[-1] else {}
            body = {"metadata": {"labels": labels, "annotations": {_TOUCHED: "yes"}}}
            answer = await self._client.patch(f"/api/v1/nodes/{name}", body, MERGE)
            touched[name] = {"kind": "Node", **answer.expect(200)}
        # Which pod of a Service is the first depends on the order.
        self.fixed += [touched[name] for name in order if name in touched]

    def perhaps_owned(self, pod: Object) -> Object:
        """One pod in eight belongs to its namespace's ReplicaSet."""
        if not self._dice.maybe(0.12):
            return pod
        home = pod["metadata"]["namespace"]
        return owned(pod, next(each for each in self.replica_sets if each["metadata"]["namespace"] == home))

    async def _create(self, path: str, bodies: Iterable[Object]) -> list[Object]:
        answers = await asyncio.gather(*(self._client.post(path, body) for body in bodies))
        return [answer.expect(201) for answer in answers]

    async def _create_namespaced(self, root: str, plural: str, bodies: Iterable[Object]) -> list[Object]:
        posts = (self._client.post(f"{root}/namespaces/{body['metadata']['namespace']}/{plural}", body) for body in bodies)
        return [answer.expect(201) for answer in await asyncio.gather(*posts)]


async def _placed_on_the_last_node(client: Client, dice: Dice) -> Object:
    """A pod that can be placed once kube-scheduler has seen the last node's last change; no Service draws it elsewhere."""
    pod = small(dice.pod("first"))
    pod["metadata"]["labels"] = {}
    anywhere = [{"operator": "Exists"}]
    pod["spec"] = {"containers": pod["spec"]["containers"], "nodeSelector": {_TOUCHED: "last"}, "tolerations": anywhere}
    async with _watching(client) as watch:
        return await _settled(watch, await _post(client, pod), only_placed=True)


async def _place_all(client: Client, setting: _Setting, dice: Dice, placed: list[Object]) -> list[Decision]:
    """One decision a pod, each made before the next pod is there."""
    decisions = []
    async with _watching(client) as watch:
        for number in range(PODS):
            pod = await _post(client, setting.perhaps_owned(dice.pod(f"pod-{number:03}")))
            objects = (*setting.fixed, *placed)
            seen = await _settled(watch, pod)
            decisions.append(Decision({"kind": "Pod", **pod}, objects, seen["spec"].get("nodeName", ""), _message(seen)))
            if seen["spec"].get("nodeName"):
                placed.append(seen)
            else:  # or it would be tried again beside the next ones
                (await client.delete(_path(pod), {"gracePeriodSeconds": 0})).expect(200)
    return decisions


@asynccontextmanager
async def _watching(client: Client) -> AsyncIterator[Watch]:
    """All changes of pods from now on."""
    listed = (await client.get("/api/v1/pods", limit=1)).expect(200)
    async with client.watch("/api/v1/pods", resourceVersion=listed["metadata"]["resourceVersion"]) as watch:
        yield watch


async def _post(client: Client, pod: Object) -> Object:
    return (await client.post(f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)).expect(201)


async def _settled(watch: Watch, pod: Object, *, only_placed: bool = False) -> Object:
    """The pod as it is once it is on a node, or once kube-scheduler has said that it fits nowhere."""
    while True:
        event = await watch.next()
        seen: Object = event["object"]
        if seen["metadata"]["uid"] == pod["metadata"]["uid"] and (seen["spec"].get("nodeName") or (_message(seen) and not only_placed)):
            return {"kind": "Pod", **seen}


def small(pod: Object) -> Object:
    """The pod with small requests.

    Nobody looks whether it fits where it is put, and on an overfull node 1.20 refuses even pods that ask for none of what is short.
    """
    for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
        requests = container["resources"]["requests"]
        container["resources"] = {"requests": {"cpu": "10m", "memory": "16Mi"} if requests else {}}
    return pod


def _message(pod: Object) -> str:
    conditions = pod.get("status", {}).get("conditions") or ()
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"), "")


def _key(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
