"""Random sequences of pods before a real kube-scheduler, of any version: each decision, and who had to go for it.

Nothing but the server's own state counts: before each pod the cluster is read anew, so both always decide about what kube-scheduler chose
before. Nodes are few and small, so that pods preempt. What controllers and kubelets do is done here: pods that were placed start, one after
another and each at a time of its own, victims go, and disruption budgets say what they allow.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from contract.client import MERGE, Client, Watch
from contract.cluster import client_from
from contract.devices import VERSION
from e2e.answers.claimed import COLLECTIONS, Devices
from e2e.answers.comparing import ALL_NODES, Object, create, judged, key_of, message_of, node_of, path_of, post, remove
from e2e.answers.randomcluster import APPS, NAMESPACES, PRIORITIES, Dice, services
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.controlplane.server import ControlPlane
from placewright_lab.simulation.evaluation import Verdict

NODES: Final = 12
PODS: Final = 80
#: The oldest minor version whose rules are all the same as ours.
SAME_RULES: Final = 36
#: Scores whose rules changed after 1.20 (`table.py`), and the default spreading: both schedulers leave them out there.
_CHANGED_SCORES: Final = ("NodeResourcesBalancedAllocation", "ImageLocality", "InterPodAffinity", "PodTopologySpread")
_BUDGETS: Final = {20: "/apis/policy/v1beta1"}
_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
#: Less than the client's own deadline for an event.
_VICTIM_SECONDS: Final = 10.0


@dataclass(frozen=True)
class Step:
    """One pod, what kube-scheduler made of it, and what we say of the same cluster.

    Attributes:
        node: where it went without anybody's going; "" otherwise.
        message: of the condition PodScheduled, where it went nowhere at first.
        nominated: where it went after victims had gone; "" otherwise.
        victims: who had to go, as namespace/name, sorted.
        landed: where the nominated pod came to be.
        ours: what we say of the pod.
        afterwards: what we say of it once the victims have gone; None where nobody has.
    """

    key: str
    node: str
    message: str
    nominated: str
    victims: tuple[str, ...]
    landed: str
    ours: Verdict
    afterwards: Verdict | None = None

    @property
    def expected_to_land_on(self) -> tuple[str, ...]:
        """Where a nominated pod may come to be: on its node.

        Of several victims one goes before another, and the pod is tried each time: then it may be any node that it fits on.
        """
        assert self.afterwards is not None, "nobody has gone"
        fitting = tuple(each.node for each in self.afterwards.nodes if each.fits)
        return (self.nominated,) if self.nominated in fitting and len(self.victims) == 1 else fitting


def profile_of(minor: int, *, ours: bool) -> Object:
    """The default, less the scores whose rules changed; ours weighs what is left as kube-scheduler did then."""
    if minor >= SAME_RULES:
        return {}
    others = {"NodeAffinity": 1, "TaintToleration": 1} if ours else {}
    score = {
        "disabled": [{"name": name} for name in (*_CHANGED_SCORES, *others)],
        "enabled": [{"name": name, "weight": weight} for name, weight in others.items()],
    }
    return {"plugins": {"score": score}}


def run_sequence(plane: ControlPlane, seed: int) -> list[Step]:
    """Fills the control plane, has its own kube-scheduler place `PODS` pods, and empties it again."""
    return asyncio.run(_run(plane, Dice(seed)))


async def _run(plane: ControlPlane, dice: Dice) -> list[Step]:
    assert plane.assets.kube_scheduler is not None, "the caller has looked for kube-scheduler"
    minor = plane.assets.minor
    async with client_from(plane.kubeconfig) as client:
        sequence = PodSequence(client, dice, minor)
        await sequence.furnish()
        scheduler = KubeScheduler(
            plane.assets.kube_scheduler, minor, plane.kubeconfig, plane.folder, profile=profile_of(minor, ours=False), settings=ALL_NODES
        )
        with scheduler:
            await sequence.warm_up()
            steps = [await sequence.step(number) for number in range(PODS)]
    return steps


class PodSequence:
    """A cluster that fills up and empties."""

    def __init__(self, client: Client, dice: Dice, minor: int) -> None:
        self._client = client
        self._dice = dice
        self._minor = minor
        self._started = 0
        self._devices = Devices(client, dice)
        self._has_devices = minor >= VERSION

    # --- what is there ---

    async def furnish(self) -> None:
        """Nodes, classes, Services, budgets and devices."""
        await create(self._client, "/api/v1/namespaces", ({"metadata": {"name": name}} for name in NAMESPACES if name != "default"))
        classes = ({"metadata": {"name": name}, "value": value} for name, value in PRIORITIES.items())
        await create(self._client, "/apis/scheduling.k8s.io/v1/priorityclasses", classes)
        nodes = [_small(self._dice, self._dice.node(number)) for number in range(NODES)]
        await create(self._client, "/api/v1/nodes", nodes)
        await create(self._client, "/api/v1/namespaces/{}/services", services())
        for namespace in NAMESPACES:
            await self._budget(namespace)
        if self._has_devices:
            await self._devices.furnish([node["metadata"]["name"] for node in nodes], PODS)

    async def _budget(self, namespace: str) -> None:
        """One that allows a few disruptions of an app's pods; nobody counts them, so it goes on allowing them."""
        path = f"{_BUDGETS.get(self._minor, '/apis/policy/v1')}/namespaces/{namespace}/poddisruptionbudgets"
        body = {"metadata": {"name": "few"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": self._dice.choice(APPS)}}}}
        await create(self._client, path, [body])
        status = {"disruptionsAllowed": self._dice.randint(0, 1), "currentHealthy": 3, "desiredHealthy": 1, "expectedPods": 3}
        (await self._client.patch(f"{path}/few/status", {"status": status | {"observedGeneration": 1}}, MERGE)).expect(200)

    async def warm_up(self) -> None:
        """Return when kube-scheduler places pods; it has heard of all that there is then."""
        pod = {"metadata": {"name": "warm-up", "namespace": "default"}, "spec": _anywhere()}
        async with self._watching() as watch:
            await remove(self._client, await _News(watch, await post(self._client, pod)).settled(placed=True))

    async def objects(self) -> list[Object]:
        """All that placement looks at, as the server has it."""
        collections = {
            "/api/v1/nodes": ("v1", "Node"),
            "/api/v1/pods": ("v1", "Pod"),
            "/api/v1/services": ("v1", "Service"),
            "/apis/scheduling.k8s.io/v1/priorityclasses": ("scheduling.k8s.io/v1", "PriorityClass"),
            f"{_BUDGETS.get(self._minor, '/apis/policy/v1')}/poddisruptionbudgets": ("policy/v1", "PodDisruptionBudget"),
            **(COLLECTIONS if self._has_devices else {}),
        }
        found = []
        for path, (version, kind) in collections.items():
            items = (await self._client.get(path)).expect(200)["items"]
            found += [{"apiVersion": version, "kind": kind, **item} for item in items]
        return found

    # --- one pod after another ---

    async def step(self, number: int) -> Step:
        """Another pod; sometimes one that was there goes before."""
        if self._dice.maybe(0.15):
            await self._somebody_goes()
        pod = self._pod(number)
        before = await self.objects()
        async with self._watching() as watch:
            created = await post(self._client, pod)
            ours = judged(before, created, profile_of(self._minor, ours=True))
            news = _News(watch, created)
            seen = await news.settled()
            node = node_of(seen)
            nominated = "" if node else str(seen["status"].get("nominatedNodeName", ""))
            landed = await self._make_room(news, ours.victims) if nominated else ""
        if node or landed:
            await self._start(seen)
        else:  # or it would be tried again beside the next ones
            await remove(self._client, seen)
        victims = tuple(sorted(news.told_to_go))
        left = [each for each in before if not (each["kind"] == "Pod" and key_of(each) in victims)]
        afterwards = judged(left, created, profile_of(self._minor, ours=True)) if victims else None
        return Step(key_of(created), node, "" if node else message_of(seen), nominated, victims, landed, ours, afterwards)

    def _pod(self, number: int) -> Object:
        """No two pods in the same moment: who came later matters to preemption."""
        pod = self._dice.pod(f"pod-{number:03}")
        if self._minor < SAME_RULES:  # how hard constraints count changed
            pod["spec"].pop("topologySpreadConstraints", None)
        if "priorityClassName" not in pod["spec"] and self._dice.maybe(0.5):
            pod["spec"]["priorityClassName"] = self._dice.choice(tuple(PRIORITIES))
        if self._has_devices and self._dice.maybe(0.2):
            self._devices.let_claim(pod, number)
        return pod

    async def _make_room(self, news: _News, expected: Sequence[str]) -> str:
        """Victims go once all that we expect were told to, or nobody else is; where the pod came to be, "" if it did not in time."""
        await news.until(lambda: set(expected) <= news.told_to_go.keys())
        gone: set[str] = set()

        async def others_go() -> None:
            for key, victim in list(news.told_to_go.items()):
                if key not in gone:
                    gone.add(key)
                    await remove(self._client, victim)

        await others_go()
        while not news.node and await news.hear():
            await others_go()
        return news.node

    async def _start(self, pod: Object) -> None:
        """As its kubelet would, a minute after the one before: preemption spares who runs for longer."""
        self._started += 1
        began = (_EPOCH + timedelta(minutes=self._started)).strftime("%Y-%m-%dT%H:%M:%SZ")
        (await self._client.patch(f"{path_of(pod)}/status", {"status": {"phase": "Running", "startTime": began}}, MERGE)).expect(200)

    async def _somebody_goes(self) -> None:
        pods = (await self._client.get("/api/v1/pods")).expect(200)["items"]
        free = sorted((each for each in pods if not each["spec"].get("resourceClaims")), key=key_of)
        if free:
            await remove(self._client, self._dice.choice(free))

    # --- requests ---

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[Watch]:
        listed = (await self._client.get("/api/v1/pods", limit=1)).expect(200)
        async with self._client.watch("/api/v1/pods", resourceVersion=listed["metadata"]["resourceVersion"]) as watch:
            yield watch


def _small(dice: Dice, node: Object) -> Object:
    resources = node["status"]["allocatable"] | {"cpu": dice.choice(("1", "2", "3")), "memory": dice.choice(("2Gi", "4Gi", "8Gi"))}
    node["status"] |= {"allocatable": resources, "capacity": resources}
    return node


def _anywhere() -> Object:
    return {"containers": [{"name": "c", "image": "registry.example/tiny:1"}], "tolerations": [{"operator": "Exists"}]}


class _News:
    """What becomes of one pod, and who is told to go meanwhile.

    Attributes:
        told_to_go: by namespace/name, as last seen.
        node: where the pod is; "" as long as it is nowhere.
    """

    def __init__(self, watch: Watch, pod: Object) -> None:
        self._watch = watch
        self._uid = pod["metadata"]["uid"]
        self._pod = pod
        self.told_to_go: dict[str, Object] = {}
        self.node = ""

    async def hear(self) -> bool:
        """Take in one event; False when none comes for long."""
        try:
            async with asyncio.timeout(_VICTIM_SECONDS):
                event = await self._watch.next()
        except TimeoutError:
            return False
        seen: Object = event["object"]
        if seen["metadata"]["uid"] == self._uid:
            self._pod, self.node = seen, node_of(seen)
        elif seen["metadata"].get("deletionTimestamp") and event["type"] == "MODIFIED":
            self.told_to_go[key_of(seen)] = seen
        return True

    async def until(self, done: Callable[[], bool]) -> None:
        """Return when it is so, or when nothing comes for long."""
        while not done() and await self.hear():
            pass

    async def settled(self, *, placed: bool = False) -> Object:
        """The pod as it is once it is on a node, or once kube-scheduler has said that it fits nowhere."""
        await self.until(lambda: bool(self.node or (message_of(self._pod) and not placed)))
        assert self.node or message_of(self._pod), "kube-scheduler said nothing of the pod"
        return self._pod
