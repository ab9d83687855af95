"""Has kube-scheduler place pods one at a time, and keeps what the cluster was at each decision, and what it logs at verbosity 10.

Two kinds of its lines count: weighted scores, in 1.20 `Plugin NAME scores on NAMESPACE/POD => [{NODE SCORE} ...]` and today
`"Plugin scored node for pod" pod="NAMESPACE/POD" plugin="NAME" node="NODE" score=SCORE`, and `add event for` a node or a scheduled pod.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Final

import pytest

from contract.client import Client
from contract.cluster import client_from
from e2e.answers.comparing import ALL_NODES, Object, key_of, message_of, node_of, path_of, post, remove
from placewright_lab.controlplane.assets import VARIABLE, from_environment
from placewright_lab.controlplane.flags import Features, gates_flag
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.controlplane.server import ControlPlane, Options
from programs import not_on_this_server

SEED: Final = 20
#: The minor version whose rules are described here, unless a recorder says otherwise. 1.23 to 1.35 log other lines.
VERSION: Final = 20
_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.02
_LAST_WORDS: Final = 1000
#: By plugin, by node.
Scores = dict[str, dict[str, int]]

_SCORES: Final = re.compile(r"\] Plugin (\S+) scores on (\S+) => \[(.*)\]$", re.MULTILINE)
_ONE: Final = re.compile(r"\{(\S+) (-?\d+)\}")
_SCORE_TODAY: Final = re.compile(r'"Plugin scored node for pod" pod="(.+?)" plugin="(.+?)" node="(.+?)" score=(-?\d+)')
_ADDED: Final = re.compile(r"\] \"?[Aa]dd event for (?:scheduled pod|node)\"? (?:node=|pod=)?\"?([^\s\"]+)")


def seeds() -> list[int]:
    """The fixed one, and another that SAME_ANSWERS_SEED may name."""
    more = os.environ.get("SAME_ANSWERS_SEED")
    return [SEED, *([int(more)] if more else [])]


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
        return key_of(self.pod)

    @property
    def feasible(self) -> frozenset[str]:
        """The nodes that kube-scheduler found; where one alone is left it is chosen unscored."""
        return next((frozenset(scores) for scores in self.scores.values()), frozenset({self.node} if self.node else ()))


class Recorder:
    """The objects around the pods.

    Attributes:
        fixed: those that do not change.
        placed: pods on nodes.
        known: nodes and pods that kube-scheduler must know before the first decision.
        versions: minor versions that the comparison is about.
        gates: feature gates of every program.
    """

    pods: ClassVar[int]
    profile: ClassVar[Object]
    environment: ClassVar[Mapping[str, str]] = {}
    versions: ClassVar[range] = range(VERSION, VERSION + 1)
    gates: ClassVar[str] = ""

    def __init__(self, client: Client, seed: int) -> None:
        self.client = client
        self.fixed: list[Object] = []
        self.placed: list[Object] = []
        self.known: set[str] = set()

    async def furnish(self) -> None:
        """Create everything but the pods to be placed."""
        raise NotImplementedError

    def pod(self, number: int) -> Object:
        """The next pod."""
        raise NotImplementedError

    async def begin(self, order: Sequence[str]) -> None:
        """What is done before the first decision, once kube-scheduler got to know nodes and pods in this order."""

    async def objects(self) -> list[Object]:
        """Everything that placement looks at."""
        return [*self.fixed, *self.placed]

    async def meanwhile(self) -> None:
        """What others do while kube-scheduler decides."""

    async def settled(self, pod: Object, *, only_placed: bool = False) -> Object:
        """The pod as it is once it is on a node, or once kube-scheduler has said that it fits nowhere."""
        async with asyncio.timeout(_SECONDS):
            while True:
                seen = (await self.client.get(path_of(pod))).expect(200)
                if node_of(seen) or (message_of(seen) and not only_placed):
                    return {"kind": "Pod", **seen}
                await self.meanwhile()
                await asyncio.sleep(_LOOK_SECONDS)

    async def decide(self, number: int) -> Decision:
        """One decision, made before the next pod is there."""
        objects = await self.objects()
        pod = await post(self.client, self.pod(number))
        seen = await self.settled(pod)
        if node_of(seen):
            self.placed.append(seen)
        else:  # or it would be tried again beside the next ones
            await remove(self.client, seen)
        return Decision({"kind": "Pod", **pod}, tuple(objects), node_of(seen), message_of(seen))


def record(kind: type[Recorder], seed: int) -> list[Decision]:
    """Fill a control plane and have its own kube-scheduler place pods; skips the test where there is none of that version."""
    assets = from_environment(os.environ)
    if assets is None or assets.kube_scheduler is None:
        not_on_this_server(f"{VARIABLE} has no kube-scheduler")
    if assets.minor not in kind.versions:
        not_on_this_server(f"the rules compared are those of 1.{kind.versions[0]}, and this kube-scheduler is 1.{assets.minor}")
    with ControlPlane(assets, Options(audit=False, features=Features(gates=kind.gates))) as plane, pytest.MonkeyPatch.context() as patched:
        for name, value in kind.environment.items():
            patched.setenv(name, value)
        flags = ["--v=10", *gates_flag(kind.gates)]
        scheduler = KubeScheduler(
            assets.kube_scheduler, assets.minor, plane.kubeconfig, plane.folder, flags=flags, profile=kind.profile, settings=ALL_NODES
        )
        decisions = asyncio.run(_record(kind, seed, plane, scheduler))
        logged = _scores_in(scheduler.log)
    return [replace(decision, scores=logged.get(decision.key, {})) for decision in decisions]


async def _record(kind: type[Recorder], seed: int, plane: ControlPlane, scheduler: KubeScheduler) -> list[Decision]:
    async with client_from(plane.kubeconfig) as client:
        recorder = kind(client, seed)
        await recorder.furnish()
        with scheduler:
            async with asyncio.timeout(_SECONDS):  # volumes and claims it has read before nodes and pods
                while not recorder.known <= set(order := _ADDED.findall(scheduler.log.read_text(errors="replace"))):
                    assert not scheduler.ended, f"kube-scheduler ended: {scheduler.log.read_text()[-_LAST_WORDS:]}"
                    await asyncio.sleep(_LOOK_SECONDS)
            await recorder.begin(order)
            return [await recorder.decide(number) for number in range(kind.pods)]


def _scores_in(log: Path) -> dict[str, Scores]:
    """By pod (namespace/name), the weighted scores of its last attempt; nothing for pods that fitted at most one node."""
    found: dict[str, Scores] = {}
    text = log.read_text(errors="replace")
    for plugin, pod, scores in _SCORES.findall(text):
        found.setdefault(pod, {})[plugin] = {node: int(score) for node, score in _ONE.findall(scores)}
    for pod, plugin, node, score in _SCORE_TODAY.findall(text):
        found.setdefault(pod, {}).setdefault(plugin, {})[node] = int(score)
    return found
