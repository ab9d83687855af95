"""Groups of pods that go all or none, before a real kube-scheduler that has them: which of them found room, and which do so here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contract.client import Client
from contract.cluster import client_from
from e2e.answers.comparing import ALL_NODES, PODS, Object, create, evaluator_of, message_of, node_of, path_of, remove
from e2e.answers.randomcluster import Dice
from e2e.answers.sequences import PodSequence, profile_of
from placewright.offline.world import tried_lacks
from placewright_lab.controlplane.flags import Features, gates_flag
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.controlplane.server import ControlPlane

#: The first minor version whose groups Placewright reads, and what turns them on there.
GROUPS: Final = 36
FEATURES: Final = Features(gates="GenericWorkload=true,GangScheduling=true", apis="scheduling.k8s.io/v1alpha2=true")
COUNT: Final = 20
_ROOT: Final = "/apis/scheduling.k8s.io/v1alpha2"
_NEVER: Final = {"metadata": {"name": "grouped"}, "value": 200_000, "preemptionPolicy": "Never"}
_SETTLED_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.1


@dataclass(frozen=True)
class GroupStep:
    """One group.

    Attributes:
        placed: how many members came onto nodes.
        size: how many there are; all are needed.
        lacks: what we say that the group lacks; "" where it fits.
    """

    name: str
    placed: int
    size: int
    lacks: str


def run_groups(plane: ControlPlane, seed: int) -> list[GroupStep]:
    """Groups, with single pods between them, until the cluster is full."""
    return asyncio.run(_run(plane, Dice(seed)))


async def _run(plane: ControlPlane, dice: Dice) -> list[GroupStep]:
    assert plane.assets.kube_scheduler is not None, "the caller has looked for kube-scheduler"
    minor = plane.assets.minor
    async with client_from(plane.kubeconfig) as client:
        sequence = PodSequence(client, dice, minor)
        await sequence.furnish()
        await create(client, "/apis/scheduling.k8s.io/v1/priorityclasses", [_NEVER])
        flags = gates_flag(FEATURES.gates)
        scheduler = KubeScheduler(plane.assets.kube_scheduler, minor, plane.kubeconfig, plane.folder, settings=ALL_NODES, flags=flags)
        steps = []
        with scheduler:
            await sequence.warm_up()
            for number in range(COUNT):
                await sequence.step(number)
                steps.append(await _step(client, dice, sequence, f"group-{number:02}"))
    return steps


async def _step(client: Client, dice: Dice, sequence: PodSequence, name: str) -> GroupStep:
    size, cpu = dice.randint(2, 5), dice.choice(("100m", "300m", "600m", "1"))
    group = {"metadata": {"name": name}, "spec": {"schedulingPolicy": {"gang": {"minCount": size}}}}
    made = await create(client, f"{_ROOT}/namespaces/default/podgroups", [group])
    before = await sequence.objects()
    members = await create(client, PODS, [_member(f"{name}-{number}", name, cpu) for number in range(size)])
    placed = await _settled(client, members)
    lacks = _lacks([*before, *made, *members])
    if placed < size:
        for each in members:
            await remove(client, each)
    return GroupStep(name, placed, size, lacks)


def _lacks(objects: Sequence[Object]) -> str:
    world, evaluator = evaluator_of(objects, profile_of(GROUPS, ours=True))
    found = list(world.pending.values())
    ref = found[0].pod_group
    assert ref is not None, "the members name their group"
    return tried_lacks(evaluator, world.cluster, ref, [each for each in found if each.pod_group == ref])


async def _settled(client: Client, members: Sequence[Object]) -> int:
    """How many are on nodes, once all are or all were refused."""
    async with asyncio.timeout(_SETTLED_SECONDS):
        while True:
            pods = [(await client.get(path_of(pod))).expect(200) for pod in members]
            placed = sum(map(bool, map(node_of, pods)))
            if placed == len(members) or (not placed and all(map(message_of, pods))):
                return placed
            await asyncio.sleep(_LOOK_SECONDS)


def _member(name: str, group: str, cpu: str) -> Object:
    container = {"name": "main", "image": "registry.example/tiny:1", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "schedulingGroup": {"podGroupName": group}, "priorityClassName": "grouped"}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
