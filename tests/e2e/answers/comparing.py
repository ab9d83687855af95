"""What all comparisons with kube-scheduler share: pods as the API server shows them, our verdict, and how differences are told."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from contract.client import Client
from placewright.api.decode import convert
from placewright.api.profile import SchedulingProfile
from placewright.framework.interface import Plugin
from placewright.framework.runtime.evaluation import Evaluator
from placewright.offline.world import OfflineCluster, offline_evaluator, world_from
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright_lab.simulation.evaluation import Verdict, evaluate_pod

Object = dict[str, Any]
ALL_NODES: Final = {"percentageOfNodesToScore": 100}
PODS: Final = "/api/v1/namespaces/{}/pods"
AT_ONCE: Final = {"gracePeriodSeconds": 0}
_SHOWN: Final = 20


def key_of(pod: Object) -> str:
    """namespace/name."""
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def path_of(pod: Object) -> str:
    """Where the API server has it."""
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def node_of(pod: Object) -> str:
    """Where it is; "" when nowhere."""
    return str(pod["spec"].get("nodeName", ""))


def message_of(pod: Object) -> str:
    """Why it is nowhere, by its condition PodScheduled."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"), "")


async def create(client: Client, path: str, bodies: Iterable[Object]) -> list[Object]:
    """The objects as they are then. `{}` in the path stands for the namespace of each."""
    posts = (client.post(path.format(body["metadata"].get("namespace", "")), body) for body in bodies)
    return [answer.expect(201) for answer in await asyncio.gather(*posts)]


async def post(client: Client, pod: Object) -> Object:
    """Create a pod."""
    (made,) = await create(client, PODS, [pod])
    return made


async def remove(client: Client, pod: Object) -> None:
    """At once."""
    (await client.delete(path_of(pod), AT_ONCE)).expect(200)


def evaluator_of(objects: Sequence[Object], spec: Object, plugins: Iterable[type[Plugin]] = ()) -> tuple[OfflineCluster, Evaluator]:
    """The cluster of these objects, and a profile around it, with more plugins than those of Kubernetes."""
    world, registry = world_from(objects, "the server"), in_tree().extended(plugins)
    profile = convert({"spec": {"schedulerName": "default-scheduler", **spec}}, SchedulingProfile)
    return world, offline_evaluator(resolve(profile, registry), registry, world.cluster)


def judged(objects: Sequence[Object], pod: Object, spec: Object, plugins: Iterable[type[Plugin]] = ()) -> Verdict:
    """What `placewright evaluate` says of a pod beside these objects."""
    world, evaluator = evaluator_of([*objects, pod], spec, plugins)
    return evaluate_pod(evaluator, world.cluster, world.pending[key_of(pod)])


def counted(nodes: int, reasons: Iterable[str]) -> str:
    """Why a pod fits nowhere, in the form in which kube-scheduler puts it."""
    listed = ", ".join(sorted(f"{count} {reason}" for reason, count in Counter(reasons).items()))
    return f"0/{nodes} nodes are available: {listed}."


def listed(problems: list[str]) -> str:
    """How many there are, and the first of them."""
    return "\n".join([f"{len(problems)} differences:", *problems[:_SHOWN]])
