"""Pods and nodes of `randomcluster` before kube-scheduler 1.20, with the plugins that it shipped then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from contract.client import MERGE, Client
from e2e.answers.comparing import PODS, Object, create, key_of, path_of, post
from e2e.answers.legacy import PROFILE, RETIRING, marks
from e2e.answers.randomcluster import NAMESPACES, PRIORITIES, Dice, owned, replica_sets, services
from e2e.answers.recording import Recorder

NODES: Final = 50
_ASSIGNED: Final = 40
_TOUCHED: Final = "example.com/touched"


class PodRecorder(Recorder):
    """Everything that pods without volumes ask for."""

    pods = 200
    profile = PROFILE

    def __init__(self, client: Client, seed: int) -> None:
        super().__init__(client, seed)
        self._dice = Dice(seed)
        self._replica_sets: list[Object] = []

    async def furnish(self) -> None:
        """Create namespaces, classes, nodes, Services, ReplicaSets, and pods that the test binds itself."""
        await create(self.client, "/api/v1/namespaces", ({"metadata": {"name": name}} for name in NAMESPACES if name != "default"))
        classes = ({"metadata": {"name": name}, "value": value, "preemptionPolicy": "Never"} for name, value in PRIORITIES.items())
        await create(self.client, "/apis/scheduling.k8s.io/v1/priorityclasses", classes)
        nodes = await create(self.client, "/api/v1/nodes", [self._dice.node(number) for number in range(NODES)])
        names = sorted(node["metadata"]["name"] for node in nodes)
        self.fixed += await create(self.client, "/api/v1/namespaces/{}/services", services())
        self._replica_sets = await create(self.client, "/apis/apps/v1/namespaces/{}/replicasets", replica_sets())
        self.fixed += self._replica_sets
        for name in names:
            body = {"metadata": marks(self._dice, self._replica_sets)}
            (await self.client.patch(f"/api/v1/nodes/{name}", body, MERGE)).expect(200)
        await self._assign()
        self.known = {*names, *map(key_of, self.placed)}

    async def _assign(self) -> None:
        """A few of them are on their way out, but no kubelet lets them go."""
        pods = [small(self._perhaps_owned(self._dice.pod(f"there-{number:02}"))) for number in range(_ASSIGNED)]
        for pod in pods:
            pod["spec"]["nodeName"] = f"node-{self._dice.randrange(NODES):02}"
        created = await create(self.client, PODS, pods)
        for pod in created[::8]:
            (await self.client.delete(path_of(pod))).expect(200)
        self.placed = [(await self.client.get(path_of(pod))).expect(200) for pod in created]

    async def begin(self, order: Sequence[str]) -> None:
        """Touch nodes as kubelets do every few minutes, once all nodes are there.

        1.20 takes note of how many nodes have an image when a node comes or changes, and only for that node; later versions always know.
        The last touch, of a node with room, is one that a pod can wait for. No Service draws that pod elsewhere.
        """
        nodes = (await self.client.get("/api/v1/nodes")).expect(200)["items"]
        nodes.sort(key=lambda node: int(node["status"]["allocatable"]["pods"]))
        touched: dict[str, Object] = {}
        for node in nodes:
            name = node["metadata"]["name"]
            labels = {_TOUCHED: "last", RETIRING: None} if node is nodes[-1] else {}
            body = {"metadata": {"labels": labels, "annotations": {_TOUCHED: "yes"}}}
            answer = await self.client.patch(f"/api/v1/nodes/{name}", body, MERGE)
            touched[name] = {"kind": "Node", **answer.expect(200)}
        # Which pod of a Service is the first depends on the order.
        self.fixed += [touched[name] for name in order if name in touched]
        pod = small(self._dice.pod("first"))
        pod["metadata"]["labels"] = {}
        anywhere = [{"operator": "Exists"}]
        pod["spec"] = {"containers": pod["spec"]["containers"], "nodeSelector": {_TOUCHED: "last"}, "tolerations": anywhere}
        self.placed.append(await self.settled(await post(self.client, pod), only_placed=True))

    def pod(self, number: int) -> Object:
        """Any pod."""
        return self._perhaps_owned(self._dice.pod(f"pod-{number:03}"))

    def _perhaps_owned(self, pod: Object) -> Object:
        """One pod in eight belongs to its namespace's ReplicaSet."""
        if not self._dice.maybe(0.12):
            return pod
        home = pod["metadata"]["namespace"]
        return owned(pod, next(each for each in self._replica_sets if each["metadata"]["namespace"] == home))


def small(pod: Object) -> Object:
    """The pod with small requests.

    The test does not check whether the pod fits. On an overfull node, 1.20 refuses even a pod that does not request what is short.
    """
    for container in (*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())):
        requests = container["resources"]["requests"]
        container["resources"] = {"requests": {"cpu": "10m", "memory": "16Mi"} if requests else {}}
    return pod
