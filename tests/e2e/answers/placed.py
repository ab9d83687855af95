"""Native groups before a real kube-scheduler 1.36 that knows topologies and preempts for groups: its answers, and ours."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contract.client import MERGE, Client
from contract.cluster import client_from
from e2e.answers.comparing import ALL_NODES, PODS, Object, create, message_of, node_of, path_of, remove
from e2e.answers.randomcluster import Dice
from placewright.api.decode import convert
from placewright.api.objects import Node, Pod
from placewright.api.podgroups import NativePodGroup, group_of
from placewright.api.pods import PodInfo
from placewright.cluster.podgrouptrees import GroupTree
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.podgroups.domains import domains
from placewright.scheduler.podgroups.group import DryRunSeatHolder, Group, MemberCycle
from placewright.scheduler.podgroups.placements import HoldingDomain, Placements
from placewright.scheduler.podgroups.trial import GroupTrial
from placewright.scheduler.turns import at_once
from placewright.testing import World
from placewright_lab.controlplane.flags import Features, gates_flag
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.controlplane.server import ControlPlane

GATES: Final = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true,WorkloadAwarePreemption=true"
FEATURES: Final = Features(gates=GATES, apis="scheduling.k8s.io/v1alpha2=true")
COUNT: Final = 16
PREEMPTORS: Final = 12
RACKS: Final = 5
RACK: Final = "example.com/rack"
#: By name of the priority class.
PRIORITIES: Final = {"p10": 10, "p20": 20, "p30": 30, "p40": 40, "job": 1000}
_GROUPS: Final = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
_SETTLED_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.05
#: After this no message is late.
_QUIET_SECONDS: Final = 0.3
#: Part of the message of a member whose group has not come.
_WAITS: Final = "to appear in scheduling queue"
_SCORED: Final = re.compile(r'"Calculated placement\'s final score for podGroup" podGroup="default/(\S+)" placement="(\S+)" score=(\d+)')


@dataclass(frozen=True)
class Came:
    """A group that came, its members, and the nodes and pods that were there."""

    before: Sequence[Object]
    group: Object
    members: Sequence[Object]

    def world(self) -> World:
        """The same in a world of ours, in which nothing is decided yet."""
        nodes = [convert(each, Node) for each in self.before if each["kind"] == "Node"]
        pods = [PodInfo(convert(each, Pod)) for each in (*self.before, *self.members) if each["kind"] == "Pod"]
        return World().show(*nodes, convert(self.group, NativePodGroup), *pods)


@dataclass(frozen=True)
class PlacedGroup:
    """One group with a topology.

    Attributes:
        came: the group.
        racks: where its members are.
        placed: number of members on nodes.
        scores: kube-scheduler's, by rack; empty if at most one rack holds it.
    """

    came: Came
    racks: frozenset[str]
    placed: int
    scores: Mapping[str, int]

    def holding(self) -> dict[str, tuple[int, int]]:
        """By rack that holds the group by our rules: its score, and the members that get a node there."""
        world = self.came.world()
        cluster, evaluator = world.cluster, world.profiles["default-scheduler"]
        pods = [PodInfo(convert(each, Pod)) for each in self.came.members]
        ref = group_of(pods[0].pod)
        assert ref is not None, "the members name their group"
        pod_group, plugin = cluster.pod_groups.get(ref), evaluator.runtime.pod_groups
        assert pod_group is not None and plugin is not None
        waiting = [queued for pod in pods if (queued := world.queue.get(pod.uid)) is not None]
        attempts = [Attempt(queued, evaluator.runtime.profile, lambda: 0.0) for queued in waiting]
        group, holding = Group(GroupTree(pod_group), plugin, evaluator, attempts), list[HoldingDomain]()
        with cluster.dry_run(journalled=True) as dry_run:
            cycle = MemberCycle(cluster, world.queue, world.cycle, DryRunSeatHolder(cluster, dry_run))
            for domain in domains(cluster, pod_group.topology_key, pods, group.needed):
                trial = at_once(GroupTrial(cycle, group, domain).run())
                if trial.fits():
                    holding.append(HoldingDomain(domain, [seat.attempt.pod for seat in trial.seats.values()], 0))
                trial.take_back()
        totals = Placements(cluster, pod_group, pods, evaluator.runtime, lambda _: (False, 0.0)).totals(holding)
        return {each.domain.value: (total, len(each.pods)) for each, total in zip(holding, totals, strict=True)}


@dataclass(frozen=True)
class Preemption:
    """A group that finds no node, and the pods that kube-scheduler evicted for it."""

    came: Came
    evicted: frozenset[str]

    def ours(self) -> frozenset[str]:
        """The pods that we evict."""
        return frozenset(victim for victim, _, _ in self.came.world().settle().evictor.evicted)

    def priorities(self, names: Iterable[str]) -> list[int]:
        """The priorities of these pods, the highest first."""
        known = {each["metadata"]["name"]: each["spec"]["priority"] for each in self.came.before if each["kind"] == "Pod"}
        return sorted((known[name] for name in names), reverse=True)


def run_placements(plane: ControlPlane, seed: int) -> tuple[list[PlacedGroup], list[Preemption]]:
    """Place groups in racks, one after the other, then let groups preempt."""
    return asyncio.run(_run(plane, Dice(seed)))


async def _run(plane: ControlPlane, dice: Dice) -> tuple[list[PlacedGroup], list[Preemption]]:
    assert plane.assets.kube_scheduler is not None, "the caller has looked for kube-scheduler"
    async with client_from(plane.kubeconfig) as client:
        classes = ({"metadata": {"name": name}, "value": value} for name, value in PRIORITIES.items())
        await create(client, "/apis/scheduling.k8s.io/v1/priorityclasses", classes)
        stage = _Stage(client, dice)
        await stage.furnish()
        flags = ["--v=10", *gates_flag(GATES)]
        scheduler = KubeScheduler(
            plane.assets.kube_scheduler, plane.assets.minor, plane.kubeconfig, plane.folder, settings=ALL_NODES, flags=flags
        )
        with scheduler:
            placed = [await stage.place(f"placed-{number:02}", scheduler.log) for number in range(COUNT)]
            preempted = [await stage.preempt(f"preempts-{number:02}") for number in range(PREEMPTORS)]
    return placed, preempted


class _Stage:
    """Nodes in racks, with pods that come and go between the groups."""

    def __init__(self, client: Client, dice: Dice) -> None:
        self._client = client
        self._dice = dice
        self._made = 0
        self._nodes: list[Object] = []

    async def furnish(self) -> None:
        for number in range(RACKS * 3):
            cpu, memory = self._dice.randint(2, 8), self._dice.randint(4, 16)
            meta = {"name": f"n{number:02}", "labels": {RACK: f"r{number % RACKS}"}}
            amounts = {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "40"}
            node = {"metadata": meta, "status": {"allocatable": amounts, "capacity": amounts}}
            self._nodes += [{"kind": "Node", **each} for each in await create(self._client, "/api/v1/nodes", [node])]

    async def place(self, name: str, log: Path) -> PlacedGroup:
        """Let a group with a topology come among pods that it may not evict."""
        await self._empty()
        await self._fill(self._dice.randint(0, 25), ("job",))
        count = self._dice.randint(1, 8)
        needed = None if self._dice.maybe(0.2) else self._dice.randint(1, count)
        came = await self._come(name, needed, count, {"schedulingConstraints": {"topology": [{"key": RACK}]}})
        nodes = [node_of(pod) for pod in await self._settled(came.members) if node_of(pod)]
        racks = {node["metadata"]["name"]: node["metadata"]["labels"][RACK] for node in self._nodes}
        return PlacedGroup(came, frozenset(racks[node] for node in nodes), len(nodes), _scores(log, name))

    async def preempt(self, name: str) -> Preemption:
        """Let a group come into a full cluster of less important pods."""
        await self._empty()
        await self._fill(200, ("p10", "p20", "p30", "p40"))
        count = self._dice.randint(4, 20)
        came = await self._come(name, count, count, {})
        await self._settled(came.members)
        there = {pod["metadata"]["name"] for pod in await self._pods()}
        return Preemption(came, frozenset({each["metadata"]["name"] for each in came.before if each["kind"] == "Pod"} - there))

    async def _come(self, name: str, needed: int | None, count: int, spec: Object) -> Came:
        """Let a group come. Its members come first, and wait for it, so that they are decided together."""
        cpu = self._dice.choice(("500m", "1", "1500m", "2"))
        policy: Object = {"basic": {}} if needed is None else {"gang": {"minCount": needed}}
        before = [*self._nodes, *await self._pods()]
        own = {"schedulingGroup": {"podGroupName": name}, "priorityClassName": "job"}
        made = await create(self._client, PODS, [_pod(f"{name}-{number}", cpu, own) for number in range(count)])
        await asyncio.sleep(_QUIET_SECONDS)
        body = {"metadata": {"name": name}, "spec": {"schedulingPolicy": policy, "priorityClassName": "job", **spec}}
        (group,) = await create(self._client, _GROUPS, [body])
        return Came(before, group, [{"kind": "Pod", **each} for each in made])

    async def _fill(self, tries: int, classes: Sequence[str]) -> None:
        """Pods that are created with a random node that is not full. Each has its own start time."""
        free = {node["metadata"]["name"]: int(node["status"]["allocatable"]["cpu"]) * 2 for node in self._nodes}
        pods = []
        for _ in range(tries):
            name, halves = self._dice.choice(sorted(free)), self._dice.randint(1, 4)
            if free[name] >= halves:
                free[name] -= halves
                self._made += 1
                own = {"nodeName": name, "priorityClassName": self._dice.choice(classes)}
                pods.append(_pod(f"runs-{self._made:04}", f"{halves * 500}m", own))
        await asyncio.gather(*map(self._start, await create(self._client, PODS, pods)))

    async def _start(self, pod: Object) -> None:
        number = int(pod["metadata"]["name"].partition("-")[2])
        started = f"2026-01-01T{number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        (await self._client.patch(f"{path_of(pod)}/status", {"status": {"startTime": started}}, MERGE)).expect(200)

    async def _empty(self) -> None:
        await asyncio.gather(*(remove(self._client, pod) for pod in await self._pods()))
        await asyncio.sleep(_QUIET_SECONDS)

    async def _pods(self) -> list[Object]:
        items = (await self._client.get(PODS.format("default"))).expect(200)["items"]
        return [{"kind": "Pod", **each} for each in items]

    async def _settled(self, members: Sequence[Object]) -> list[Object]:
        """The members as they are once each has a node or was tried in vain, and nothing has changed for a while."""
        async with asyncio.timeout(_SETTLED_SECONDS):
            last: list[object] = []
            while True:
                pods = [(await self._client.get(path_of(pod))).expect(200) for pod in members]
                now: list[object] = [(node_of(pod), message_of(pod)) for pod in pods]
                told = [message for pod in pods if (message := message_of(pod)) and _WAITS not in message]
                if now == last and len(told) + sum(bool(node_of(pod)) for pod in pods) == len(pods):
                    return pods
                last = now
                await asyncio.sleep(_QUIET_SECONDS)


def _scores(log: Path, name: str) -> dict[str, int]:
    return {rack: int(score) for group, rack, score in _SCORED.findall(log.read_text(errors="replace")) if group == name}


def _pod(name: str, cpu: str, spec: Object) -> Object:
    container = {"name": "main", "image": "registry.example/tiny:1", "resources": {"requests": {"cpu": cpu}}}
    whole = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": whole}
