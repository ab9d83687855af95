"""Makers for the scheduler's tests: pods and nodes in a few words, ports that remember, and a scheduler with a clock that stands still."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import lru_cache
from typing import Any, Self

import msgspec

from placewright.api.annotations import Decision, read_decision
from placewright.api.decode import convert
from placewright.api.errors import BindError
from placewright.api.extenders import ExtenderError
from placewright.api.objects import Node, NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.cluster.observedcluster import ObservedCluster
from placewright.engine.reconcile.reconciler import Reconciler
from placewright.framework.interface import Extender, Plugin
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import Guarding
from placewright.framework.runtime.handle import NoVolumeWriter, ProfileHandle
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright.queue.hints import Timed
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod, SubQueue
from placewright.queue.room import STATED_SIZES, RoomSizes
from placewright.scheduler.attempts import Attempt, Observer, Observers, TrialObserver
from placewright.scheduler.cycle import SchedulingCycle
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.ports import AlwaysLead, EventType, Lead
from placewright.scheduler.scheduler import Ports, Scheduler

Body = dict[str, Any]
_versions = itertools.count(1)


class PodMaker:
    """Builds a pod step by step; `info` may be called again and again, each time for a newer version of the same pod."""

    def __init__(self, name: str) -> None:
        self._meta: Body = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        self._container: Body = {"name": "main"}
        self._spec: Body = {"containers": [self._container]}
        self._status: Body = {}

    def namespace(self, namespace: str) -> Self:
        self._meta["namespace"] = namespace
        return self

    def uid(self, uid: str) -> Self:
        self._meta["uid"] = uid
        return self

    def created(self, when: str) -> Self:
        self._meta["creationTimestamp"] = when
        return self

    def version(self, version: str) -> Self:
        self._meta["resourceVersion"] = version
        return self

    def labels(self, **labels: str) -> Self:
        self._meta["labels"] = labels
        return self

    def annotated(self, **annotations: str) -> Self:
        self._meta["annotations"] = annotations
        return self

    def deleting(self) -> Self:
        self._meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return self

    def requests(self, **amounts: str) -> Self:
        self._container["resources"] = {"requests": amounts}
        return self

    def priority(self, priority: int) -> Self:
        self._spec["priority"] = priority
        return self

    def scheduler(self, name: str) -> Self:
        self._spec["schedulerName"] = name
        return self

    def gates(self, *names: str) -> Self:
        self._spec["schedulingGates"] = [{"name": name} for name in names]
        return self

    def on(self, node: str) -> Self:
        self._spec["nodeName"] = node
        return self

    def phase(self, phase: str) -> Self:
        self._status["phase"] = phase
        return self

    def nominated(self, node: str) -> Self:
        self._status["nominatedNodeName"] = node
        return self

    def info(self) -> PodInfo:
        meta = {"resourceVersion": f"v{next(_versions)}"} | self._meta
        return PodInfo(convert({"metadata": meta, "spec": self._spec, "status": self._status}, Pod))


def pod(name: str) -> PodMaker:
    """A pod of the default scheduler; its uid is `uid-NAME`."""
    return PodMaker(name)


class NodeMaker:
    """Builds a node step by step."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._meta: Body = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        self._spec: Body = {}
        self._status: Body = {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}}

    def offers(self, **amounts: str) -> Self:
        self._status["allocatable"].update(amounts)
        return self

    def labels(self, **labels: str) -> Self:
        self._meta["labels"] = self._meta["labels"] | labels
        return self

    def annotated(self, **annotations: str) -> Self:
        self._meta["annotations"] = annotations
        return self

    def cordoned(self) -> Self:
        self._spec["unschedulable"] = True
        return self

    def tainted(self, key: str) -> Self:
        self._spec["taints"] = [{"key": key, "effect": "NoSchedule"}]
        return self

    def condition(self, kind: str, status: str, seen: str = "") -> Self:
        self._status["conditions"] = [{"type": kind, "status": status, "lastTransitionTime": seen}]
        return self

    def features(self, *names: str) -> Self:
        self._status["declaredFeatures"] = list(names)
        return self

    def build(self) -> Node:
        return convert({"metadata": self._meta, "spec": self._spec, "status": self._status}, Node)


def node(name: str) -> NodeMaker:
    """A node with 4 CPUs, 16 GiB and room for 110 pods."""
    return NodeMaker(name)


class RecordingPorts:
    """Events, statuses, evictions and Bindings, remembered. What becomes of a Binding is set in `answers`, by pod uid.

    Attributes:
        events: (pod name, type, reason, action, note).
        statuses: (pod name, reason, message, nominated node).
        cleared: pods whose nomination was to be cleared.
        evicted: (victim, preemptor, node).
        bound: (pod name, uid, node, decision), also of Bindings whose answer is an error.
        answers: what `bind` raises for a pod, once; a future instead of an exception is awaited first.
    """

    def __init__(self) -> None:
        self.events: list[tuple[str, EventType, str, str, str]] = []
        self.statuses: list[tuple[str, str, str, str | None]] = []
        self.cleared: list[str] = []
        self.evicted: list[tuple[str, str, str]] = []
        self.bound: list[tuple[str, str, str, Decision | None]] = []
        self.answers: dict[str, Exception | asyncio.Future[None]] = {}

    def record(self, pod: PodInfo, kind: EventType, reason: str, action: str, note: str) -> None:
        self.events.append((pod.name, kind, reason, action, note))

    def pod_unscheduled(self, pod: PodInfo, reason: str, message: str, nominated_node: NodeName | None) -> None:
        self.statuses.append((pod.name, reason, message, nominated_node))

    def nomination_cleared(self, pod: PodInfo) -> None:
        self.cleared.append(pod.name)

    async def evict(self, victim: PodInfo, preemptor: PodInfo, node: NodeName) -> None:
        self.evicted.append((victim.name, preemptor.name, node))

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        self.bound.append((pod.name, pod.uid, node, read_decision(annotations)))
        answer = self.answers.pop(pod.uid, None)
        if isinstance(answer, Exception):
            raise answer
        if answer is not None:
            await answer

    async def bind_by(self, pod: PodInfo, node: NodeName, send: Callable[[], Awaitable[None]]) -> None:
        """As the real binder, but nobody looks at the pod afterwards."""
        try:
            await send()
        except ExtenderError as problem:
            raise BindError(str(problem)) from problem

    def reasons(self, name: str) -> list[str]:
        """The reasons of a pod's events, in order."""
        return [event[2] for event in self.events if event[0] == name]


#: What takes a pod, or a group, to its nodes.
Binding = Coroutine[Any, Any, bool]

CONFLICT = BindError("the pod is bound to another node", conflict=True)
REFUSED = BindError("given up after 5 attempts: 500")
UNKNOWN = BindError("answer lost, and the pod could not be read", unknown=True)


class Observed:
    """What an observer was told."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.entered: list[tuple[str, str]] = []

    def attempt_ended(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)

    def pod_entered(self, place: str, event: str) -> None:
        self.entered.append((place, event))


@lru_cache(maxsize=256)
def resolved(body: bytes, plugins: tuple[type[Plugin], ...]) -> ResolvedProfile:
    """A profile in JSON, with these out-of-tree plugins known; kept, for nobody writes into it and worlds are made by the thousand."""
    return resolve(convert(msgspec.json.decode(body), SchedulingProfile), in_tree().extended(plugins))


class World:
    """A scheduler on a cluster, under one or more profiles, with everything around it faked."""

    def __init__(
        self,
        *plugins: type[Plugin],
        lead: Lead | None = None,
        guarding: Guarding | None = None,
        timed: Timed | None = None,
        sizes: RoomSizes = STATED_SIZES,
        **spec: Any,
    ) -> None:
        """`plugins`: out-of-tree plugins, all enabled. `timed`: takes the time of hints. `sizes`: of profiles' rooms.

        `spec`: fields of the profile's spec.
        """
        self.now = 100.0
        self._guarding = guarding
        self.ports = RecordingPorts()
        self.cluster = ObservedCluster()
        self.profiles: dict[str, Evaluator] = {}
        self.observed = Observed()
        self.queue = SchedulingQueue(self._policy, lambda: self.now, self.observed.pod_entered, timed, sizes=sizes)
        self._out_of_tree = plugins
        self._registry = in_tree().extended(plugins)
        self._extra = [{"name": plugin.name} for plugin in plugins]
        self.cycle = SchedulingCycle(self.cluster, self.queue.nominator, random.Random(7))
        #: Who hears of attempts, of decisions and of trials; a test may add to them.
        self.listening: list[Observer] = [self.observed]
        self.deciding: list[Callable[[Attempt], None]] = []
        self.trying: list[TrialObserver] = []
        self.observers = Observers(self.listening, self.deciding, (), self.trying)
        self._held: list[Binding] | None = None
        ports = Ports(self.ports, self.ports, self.ports, self.observers, start=self._start)
        self.scheduler = Scheduler(
            self.cluster, self.queue, self.profiles.get, self.cycle, ports, lambda: self.now, lead or AlwaysLead()
        )
        self.binding = self.scheduler.binding
        self.intake = ClusterEventHandlers(self.cluster, self.queue, self.binding)
        self.reconciler = Reconciler(self.cluster, self.queue, self.binding, self.intake)
        self.use_profile(**spec)

    def use_profile(
        self, *, name: str = "default", generation: int = 1, asking: Sequence[Extender] = (), **spec: Any
    ) -> None:
        """Swap a profile in, as the live set does; `asking` these extenders."""
        enabled = {"plugins": {"multiPoint": {"enabled": self._extra}}} if self._extra else {}
        body = {"metadata": {"name": name, "generation": generation}, "spec": {"schedulerName": "default-scheduler", **enabled, **spec}}
        profile = resolved(msgspec.json.encode(body), self._out_of_tree)
        nominator, waiting = self.queue.nominator, self.scheduler.waiting
        handle = ProfileHandle(
            self.cluster, self.ports, nominator, waiting, NoVolumeWriter(), members=self.queue.pod_groups, guarding=self._guarding
        )
        self.profiles[profile.scheduler_name] = handle.evaluator(profile, self._registry, asking)
        self.queue.reprioritise(profile.scheduler_name, None)

    def _policy(self, scheduler_name: str) -> ProfilePolicy | None:
        evaluator = self.profiles.get(scheduler_name)
        return None if evaluator is None else ProfilePolicy(evaluator.runtime)

    @property
    def evaluator(self) -> Evaluator:
        return self.profiles["default-scheduler"]

    # --- what happens -----------------------------------------------------------------------------------------------------------

    def nodes(self, *makers: NodeMaker) -> Self:
        for maker in makers:
            self.intake.node(maker.build())
        return self

    def pods(self, *makers: PodMaker) -> Self:
        """Unscheduled pods, or pods on nodes, as the watches show them."""
        for maker in makers:
            info = maker.info()
            (self.intake.assigned_pod if info.node_name else self.intake.unscheduled_pod)(info)
        return self

    def pop(self) -> QueuedPod:
        queued = self.queue.pop()
        assert queued is not None, "nothing to try"
        return queued

    def decide(self) -> Binding | None:
        """Decide the next pod; its binding, not begun, or None."""
        return self.schedule(self.pop())

    def schedule(self, queued: QueuedPod) -> Binding | None:
        """Decide a pod that was popped, likewise."""
        held: list[Binding] = []
        self._held = held
        self.scheduler.schedule_one(queued)
        self._held = None
        assert len(held) <= 1, "one pod, one binding; a group's is one, too"
        return held[0] if held else None

    def _start(self, binding: Binding) -> None:
        if self._held is None:
            self.scheduler.beside(binding)
        else:
            self._held.append(binding)

    async def attempt(self) -> bool | None:
        """Decide the next pod and bind it; None when there was nothing to bind."""
        binding = self.decide()
        return None if binding is None else await binding

    # --- what came of it --------------------------------------------------------------------------------------------------------

    def place(self, name: str) -> SubQueue | None:
        return self.queue.locate(f"uid-{name}")

    def node_of(self, name: str) -> str | None:
        """Where a pod counts, assumed or confirmed."""
        placement = self.cluster.placement(f"uid-{name}")
        return None if placement is None else placement.node

    def requested_cpu(self, name: str) -> int:
        """Milli-CPU taken on a node."""
        return sum(info.requests.get("cpu", 0) for info in self.cluster.pods_on(NodeName(name)))
