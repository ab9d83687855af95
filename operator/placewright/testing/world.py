"""A whole scheduler without an API server: queue, columns, cycles and event handlers are the real ones, the ports are fakes.

A fake replaces the port through which claims get volumes. It binds and makes volumes as soon as the scheduler asks.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Self

from msgspec.structs import replace

from placewright.api.errors import VolumeError
from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.storage import BIND_COMPLETED, SELECTED_NODE, PersistentVolume, PersistentVolumeClaim, VolumePhase
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import ClusterObject
from placewright.framework.interface import Extender, Plugin
from placewright.framework.runtime.calllimit import CALL_SECONDS, limited_calls
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import Guarding
from placewright.framework.runtime.handle import ProfileHandle
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import QueuedPod, SubQueue
from placewright.scheduler.attempts import Attempt, Observer, Observers, TrialObserver
from placewright.scheduler.cycle import DecisionDetail, SchedulingCycle
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.ports import AlwaysLead, Lead
from placewright.scheduler.scheduler import REVIEW_SECONDS, Ports, Scheduler
from placewright.testing.claimport import FakeClaimWriter
from placewright.testing.objectmaker import DEFAULT_NAMESPACE, next_version
from placewright.testing.plugincase import AnyNode, AnyObject, AnyPod, built
from placewright.testing.ports import FakeBinder, FakeEvents, FakeEvictor, FakeGroupStatus, FakeObjectPatcher, FakeStatus, WatchingPort
from placewright.testing.profiles import ProfileMaker, profile, registry_with, require_plugin
from placewright.testing.virtualtime import RestlessError, VirtualTime
from placewright.testing.volumes import persistent_volume

_BOUND: Final = VolumePhase(phase="Bound")


class VolumeWrite(NamedTuple):
    """A write of the scheduler: `bind` a volume to a claim, or `select` a node for a claim whose volume is to be made."""

    verb: str
    name: str
    to: str


class FakeVolumeWriter(WatchingPort):
    """Records what the scheduler writes of volumes. Implements the framework's `VolumeWriter`; `answers` go by the volume or the claim.

    A call that ends well does what the volume controller and a provisioner would do: the claim and its volume are bound to each other.

    Attributes:
        writes: all writes, in order.
    """

    def __init__(self, cluster: Cluster, clock: Callable[[], float], shows: Callable[[ClusterObject], object] = lambda _item: None) -> None:
        """Keep the volumes of a cluster.

        Args:
            cluster: holds the volumes and the claims.
            clock: seconds.
            shows: called with each object that a call changed; without it the scheduler sees none of the changes.
        """
        super().__init__(clock)
        self.writes: list[VolumeWrite] = []
        self._cluster = cluster
        self._shows = shows

    async def bind(self, volume: PersistentVolume) -> PersistentVolume:
        """Bind a volume to the claim that it names.

        Args:
            volume: the volume with its `claimRef`.

        Returns:
            The volume as it was shown, in the phase Bound.

        Raises:
            VolumeError: the claim is gone, or the volume names none.
        """
        reference = volume.spec.claim_ref
        if reference is None:
            raise VolumeError(f"persistentvolume {volume.metadata.name} names no claim")
        self.writes.append(VolumeWrite("bind", volume.metadata.name, reference.name))
        await self._answer(volume.metadata.name)
        # Looked up after the answer, because the claim may be deleted while the call is under way.
        claim = self._cluster.objects.storage.claims.shown(reference.name, reference.namespace)
        if claim is None:
            raise VolumeError(f"persistentvolumeclaim {reference.namespace}/{reference.name} is gone")
        bound = replace(volume, metadata=replace(volume.metadata, resource_version=next_version()), status=_BOUND)
        self._shows(bound)
        self._complete(claim, volume.metadata.name)
        return bound

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Make a volume that the selected node reaches, and bind the claim to it.

        Args:
            claim: the claim with the annotation that names the node.

        Returns:
            The claim as it was shown, in the phase Bound; the volume is called `pvc-UID` after the claim's uid.
        """
        meta = claim.metadata
        node = (meta.annotations or {}).get(SELECTED_NODE, "")
        self.writes.append(VolumeWrite("select", meta.name, node))
        await self._answer(meta.name)
        asked = (claim.spec.resources.requests or {}).get("storage", "0")
        made = persistent_volume(f"pvc-{meta.uid}", str(asked)).storage_class(claim.spec.storage_class_name or "").on(node)
        made = made.access_modes(*(claim.spec.access_modes or ())).bound_to(meta.name, namespace=meta.namespace, uid=meta.uid)
        self._shows(made.build())
        return self._complete(claim, made.name)

    def _complete(self, claim: PersistentVolumeClaim, volume: str) -> PersistentVolumeClaim:
        meta = claim.metadata
        meta = replace(meta, annotations={**(meta.annotations or {}), BIND_COMPLETED: "yes"}, resource_version=next_version())
        bound = replace(claim, metadata=meta, spec=replace(claim.spec, volume_name=volume), status=_BOUND)
        self._shows(bound)
        return bound


#: Takes a pod, or the pods of a group, to their nodes; True when all are bound.
BindingCycleWork = Coroutine[Any, Any, bool]

#: Seconds between two looks for pods that waited too long for an event; backoffs end at whole seconds. As `placewright run` does it.
_UNSCHEDULABLE_BEAT: Final = 30.0
#: A pod that is tried so often at one moment is tried for ever.
_MOST_ATTEMPTS_OF_A_POD: Final = 100


class AttemptLog:
    """Records attempts. Implements the scheduler's `Observer`.

    Attributes:
        attempts: the attempts that ended, in order.
        entered: (sub-queue, event) for each time that a pod entered a sub-queue.
    """

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.entered: list[tuple[str, str]] = []

    def attempt_ended(self, attempt: Attempt) -> None:
        """Record an attempt."""
        self.attempts.append(attempt)

    def pod_entered(self, place: str, event: str) -> None:
        """Record that a pod entered a sub-queue. Implements `Observer.pod_entered`."""
        self.entered.append((place, event))

    def last_of(self, uid: str) -> Attempt | None:
        """Return a pod's last attempt that ended; None: none did."""
        return next((attempt for attempt in reversed(self.attempts) if attempt.uid == uid), None)


class World:
    """A scheduler on a cluster, under one or more profiles. Its clock moves only when a test moves it.

    `add` shows objects as watches would, and lets the scheduler decide and bind until it waits. With `watches`, the writes of the ports
    come back as they would from an API server: a bound pod is shown on its node, a victim of preemption leaves, volumes and claims change.

    Without `add`, step by step: `show` objects, then `decide` the next pod and run its binding cycle yourself, in a coroutine.

    Attributes:
        time: the clock, with its event loop; seconds.
        cluster: the columns.
        queue: the scheduling queue.
        cycle: the scheduling cycle.
        scheduler: decides and binds.
        event_handlers: handle the watch events, for news that `show` and `remove` do not bring.
        profiles: profiles in effect, by schedulerName.
        log: attempts that ended.
        observers: the scheduler's observers; a test adds to `listening`, `deciding` (each choice) and `trying` (groups).
        binder, events, status, groups, evictor, volumes, claims, objects: the fakes of the ports.

    Example:
        world = World(nodes=[node("a")])
        world.add(pod("web"))
        assert_placed(world, "web", on="a")
    """

    def __init__(  # noqa: PLR0913 - what a test may want to say, each with a default
        self,
        *plugins: type[Plugin],
        nodes: Iterable[AnyNode] = (),
        pods: Iterable[AnyPod] = (),
        objects: Iterable[AnyObject] = (),
        profile: ProfileMaker = profile(),  # noqa: B008 - makers do not change
        extenders: Sequence[Extender] = (),
        lead: Lead | None = None,
        watches: bool = True,
        call_seconds: float | None = CALL_SECONDS,
    ) -> None:
        """Put a scheduler together, and show it a cluster.

        Args:
            plugins: each is enabled at all its points; with any, all plugins are checked as by `placewright run --check-plugins`.
            nodes: the cluster's.
            pods: pods on these nodes; other pods wait until something is added or time passes.
            objects: everything else in the cluster: volumes, Services, claims to devices.
            profile: that the plugins are enabled in; without one kube-scheduler's default.
            extenders: the profile's extenders.
            lead: whether this replica may decide; without one it always may.
            watches: whether the writes of the ports come back.
            call_seconds: that one call of these plugins may take before `PluginError` ends it; None for no limit, as under a debugger.

        Raises:
            TypeError: one of `plugins` is no class of a plugin.
            ProfileError: the profile is wrong.
            PluginBuildError: the constructor of a plugin raises.
        """
        for each in plugins:
            require_plugin(each)
        self.time = VirtualTime()
        self.cluster = Cluster()
        self._call_seconds = call_seconds if plugins else None
        self._watches = watches
        self._plugins = plugins
        self._registry = registry_with(plugins)
        self._lead = lead or AlwaysLead()
        #: Binding cycles that `decide` hands to the test instead of starting them; None: they are started.
        self._held: list[BindingCycleWork] | None = None
        #: So many pods were handed out when the queue was last asked for all of them.
        self._handed_out = 0
        self._make_ports()
        self._make_scheduler()
        # The profile first: pods that are shown pass its PreEnqueue plugins and are sorted by its QueueSort.
        self.use(self._with_plugins(profile), extenders)
        self.show(*nodes, *objects, *pods)

    def _make_ports(self) -> None:
        self.binder, self.evictor = FakeBinder(self._is_bound), FakeEvictor(self._has_left)
        self.events, self.status, self.groups = FakeEvents(), FakeStatus(), FakeGroupStatus()
        self.objects = FakeObjectPatcher()
        self.volumes = FakeVolumeWriter(self.cluster, self.time, self._is_written)
        self.claims = FakeClaimWriter(self.cluster, self.time, self._is_written, self._is_deleted)

    def _make_scheduler(self) -> None:
        self.profiles: dict[str, Evaluator] = {}
        self.log = AttemptLog()
        self.listening: list[Observer] = [self.log]
        self.deciding: list[Callable[[Attempt], None]] = []
        self.trying: list[TrialObserver] = []
        self.observers = Observers(self.listening, self.deciding, (), self.trying)
        self.queue = self._make_queue()
        self.cycle = self._make_cycle()
        ports = Ports(
            self.events, self.status, self.evictor, self.observers, self.groups, start=self._start, since_1970=self.claims.now
        )  # fmt: skip
        self.scheduler = Scheduler(self.cluster, self.queue, self.profiles.get, self.cycle, ports, self.time, self._lead)
        self.event_handlers = ClusterEventHandlers(self.cluster, self.queue, self.scheduler.binding, gates=self._gates)

    def _gates(self) -> Iterator[tuple[str, Callable[[PodInfo], bool]]]:
        return ((name, evaluator.runtime.namespace_gate.keeps_out) for name, evaluator in self.profiles.items())

    def _make_queue(self) -> SchedulingQueue:
        return SchedulingQueue(self._policy, self.time, self.log.pod_entered)

    def _make_cycle(self) -> SchedulingCycle:
        # With the detail of decisions, which assertions print; the seed of the choice among equally good nodes is any.
        return SchedulingCycle(self.cluster, self.queue.nominator, random.Random(7), DecisionDetail(self.time, on=True))

    def _make_guarding(self) -> Guarding:
        return Guarding(untouched=bool(self._plugins))

    # --- profiles ------------------------------------------------------------------------------------------------------------------

    def use(self, profile: ProfileMaker, extenders: Sequence[Extender] = ()) -> None:
        """Put a profile into effect, as the live set does: pods that it may help are tried again after their backoff.

        Args:
            profile: takes the pods of its schedulerName. Plugins of the test run if this profile enables them.
            extenders: the profile's extenders.

        Raises:
            ProfileError: the profile is wrong; the one before stays in effect.
            PluginBuildError: the constructor of a plugin raises; likewise.
        """
        resolved = profile.resolved(*self._plugins)
        handle = ProfileHandle(
            self.cluster, self.binder, self.queue.nominator, self.scheduler.waiting, self.volumes, self.claims, self.events.announce,
            members=self.queue.pod_groups, guarding=self._make_guarding(), wake=self.queue.alarms.wake_after,
            evictions=self.scheduler.evictions, activate=self.queue.activate, patcher=self.objects,
        )  # fmt: skip
        before = self.profiles.get(resolved.scheduler_name)
        with limited_calls(self._call_seconds):
            evaluator = self.profiles[resolved.scheduler_name] = handle.evaluator(resolved, self._registry, extenders)
            if before is not None:
                before.runtime.close()
            evaluator.runtime.start()
        self.queue.reprioritise(resolved.scheduler_name, None)
        self.queue.sweeps.keep_out(resolved.scheduler_name, evaluator.runtime.namespace_gate.keeps_out)

    def close(self) -> None:
        """Close the plugins of all profiles, as at the end of a process."""
        for evaluator in self.profiles.values():
            evaluator.runtime.close()

    def _with_plugins(self, made: ProfileMaker) -> ProfileMaker:
        for plugin in self._plugins:
            made = made.enable(plugin)
        return made

    def plugin(self, kind: type[Plugin], scheduler: str = "default-scheduler") -> Any:
        """Return a plugin of a profile, for questions that a test asks it directly.

        Args:
            kind: the plugin's class.
            scheduler: the schedulerName of the profile.
        """
        return self.profiles[scheduler].runtime.plugin(kind.name)

    def _policy(self, scheduler_name: str) -> ProfilePolicy | None:
        evaluator = self.profiles.get(scheduler_name)
        return None if evaluator is None else ProfilePolicy(evaluator.runtime)

    # --- what happens in the cluster ---------------------------------------------------------------------------------------------------

    def add(self, *things: AnyNode | AnyPod | AnyObject) -> Self:
        """Show objects, new ones or new versions, and let the scheduler decide and bind until it waits.

        Args:
            things: objects or their makers. A pod with a node counts there; a pod without one waits for a decision.

        Returns:
            This world.

        Raises:
            RestlessError: as `settle`.

        Example:
            world.add(node("b"), pod("web").requests(cpu="1"))
        """
        self.show(*things)
        self.settle()
        return self

    def show(self, *things: AnyNode | AnyPod | AnyObject) -> Self:
        """Show objects as watches would; nothing is decided yet."""
        with limited_calls(self._call_seconds):
            for thing in things:
                self._show(built(thing))
        return self

    def _show(self, item: Any) -> None:
        if isinstance(item, Node):
            self.event_handlers.node(item)
        elif not isinstance(item, PodInfo):
            self.event_handlers.cluster_object(item)
        elif item.node_name:
            self.event_handlers.assigned_pod(item)
        else:
            self.event_handlers.unscheduled_pod(item)

    def remove(self, *things: str | AnyNode | AnyPod | AnyObject) -> Self:
        """Delete objects, and let the scheduler decide and bind until it waits.

        Args:
            things: objects or their makers; text is the name of a pod, or its `namespace/name`.

        Returns:
            This world.
        """
        for thing in things:
            self._remove(built(thing))
        self.settle()
        return self

    def _remove(self, item: Any) -> None:
        if isinstance(item, str):
            self.event_handlers.pod_gone(self._known_uid(item))
        elif isinstance(item, Node):
            self.event_handlers.node_gone(NodeName(item.metadata.name))
        elif isinstance(item, PodInfo):
            self.event_handlers.pod_gone(item.uid)
        else:
            self.event_handlers.cluster_object_gone(item)

    def _is_bound(self, pod: PodInfo) -> None:
        """Show a pod on its node, as the watch does soon after the Binding was answered."""
        if self._watches:
            # In a later turn of the loop: a watch tells of a Binding after the binder's request has been answered.
            meta = replace(pod.pod.metadata, resource_version=next_version())
            shown = PodInfo(replace(pod.pod, metadata=meta, spec=replace(pod.pod.spec, node_name=pod.node_name)))
            asyncio.get_running_loop().call_soon(self.event_handlers.assigned_pod, shown)

    def _has_left(self, victim: PodInfo) -> None:
        if self._watches:
            asyncio.get_running_loop().call_soon(self.event_handlers.pod_gone, victim.uid)

    def _is_written(self, item: ClusterObject) -> None:
        if self._watches:
            self.event_handlers.cluster_object(item)

    def _is_deleted(self, item: ClusterObject) -> None:
        if self._watches:
            self.event_handlers.cluster_object_gone(item)

    # --- time --------------------------------------------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The clock, in seconds. Setting it moves the clock and lets nothing run; see `advance`."""
        return self.time.now

    @now.setter
    def now(self, now: float) -> None:
        self.time.now = now

    def settle(self) -> Self:
        """Decide and bind until everything waits, without moving the clock.

        Raises:
            PluginError: a call of a plugin takes longer than `call_seconds`.
            RestlessError: a pod is tried again and again though no time passes.
            RuntimeError: a coroutine called this; inside a running event loop a test goes step by step.
        """
        tried = self.log.attempts
        most = len(tried) + _MOST_ATTEMPTS_OF_A_POD * (1 + len(self.queue))
        # Bindings and failures of one round may make other pods active. So the queue is asked until it has none.
        while len(tried) <= most:
            with limited_calls(self._call_seconds):
                self.time.settle(self._decide_all)
            if not self._handed_out:
                return self
        raise RestlessError(f"pods are tried again and again though no time passes: {tried[-1].pod.key} was the last")

    def advance(self, seconds: float) -> Self:
        """Move the clock; timers ring, backoffs end and pods are tried again on the way, each at its moment.

        Args:
            seconds: length of the move.

        Returns:
            This world.

        Raises:
            RestlessError: as `settle`.

        Example:
            world.advance(331)  # a pod that waits for an event is tried again after 300 seconds, at the next beat of 30
        """
        until = self.now + seconds
        self.settle()
        while (moment := self._next_moment()) <= until:
            self.now = max(self.now, moment)
            self.queue.flush_backoff()
            self.scheduler.given_up.beat()
            if self.now % _UNSCHEDULABLE_BEAT == 0:
                self.queue.flush_unschedulable()
            self.settle()
        self.now = until
        return self.settle()

    def _next_moment(self) -> float:
        """When a timer rings, or the queue has something to do by itself."""
        moments = [(self.now // _UNSCHEDULABLE_BEAT + 1) * _UNSCHEDULABLE_BEAT]
        backoff = self.queue.next_backoff_expiry
        # Never the present second, whose backoffs are flushed already: the clock would stand still.
        moments += [float(max(math.ceil(due), math.floor(self.now) + 1)) for due in (backoff, self.queue.alarms.next) if due is not None]
        if self.cluster.deferred_resizes:
            moments.append(math.floor(self.now) + REVIEW_SECONDS)
        if self.time.next_timer is not None:
            moments.append(self.time.next_timer)
        deadline = self.queue.giving_up.next_deadline()
        if deadline is not None or self.queue.giving_up.news:
            moments.append(float(max(math.ceil(deadline or 0.0), math.floor(self.now) + 1)))
        return min(moments)

    def _decide_all(self) -> None:
        self._handed_out = 0
        self.scheduler.resizes.review()
        # A bound on one round: a pod that returns to the active queue at once would keep the event loop from its turn.
        for _ in range(len(self.queue)):
            queued = self.queue.pop() if self._lead.active else None
            if queued is None:
                return
            self._handed_out += 1
            self.scheduler.schedule_one(queued)

    # --- step by step ------------------------------------------------------------------------------------------------------------------

    def pop(self) -> QueuedPod:
        """Take the next pod out of the queue; there must be one."""
        queued = self.queue.pop()
        assert queued is not None, "no pod is active"
        return queued

    def decide(self) -> BindingCycleWork | None:
        """Decide the next pod; there must be one.

        Returns:
            Its binding cycle, not begun; None if the pod got no node.
        """
        return self.schedule(self.pop())

    def schedule(self, queued: QueuedPod) -> BindingCycleWork | None:
        """Decide a pod that was popped.

        Args:
            queued: the answer of `pop`.

        Returns:
            Its binding cycle, not begun; None if the pod got no node.
        """
        held: list[BindingCycleWork] = []
        self._held = held
        self.scheduler.schedule_one(queued)
        self._held = None
        assert len(held) <= 1, "one pod, one binding cycle; a group's is one, too"
        return held[0] if held else None

    async def attempt(self) -> bool | None:
        """Decide the next pod and bind it.

        Returns:
            True when it is bound, False when its binding cycle failed, None if it got no node.
        """
        binding = self.decide()
        return None if binding is None else await binding

    def _start(self, binding: BindingCycleWork) -> None:
        if self._held is None:
            self.scheduler.spawn(binding)
        else:
            self._held.append(binding)

    # --- what came of it -----------------------------------------------------------------------------------------------------------------

    def node_of(self, name: str) -> str | None:
        """Return the node that a pod counts on, be it bound or only assumed; None: on none."""
        found = next((each for each in self.cluster.placements() if each.pod.key == _key(name)), None)
        return None if found is None else found.node

    def place(self, name: str) -> SubQueue | None:
        """Return where in the queue a pod is; None: the queue does not know it."""
        uid = self.queue.uid_of(_key(name))
        return None if uid is None else self.queue.locate(uid)

    def last_attempt(self, name: str) -> Attempt | None:
        """Return a pod's last attempt that ended; None: none did."""
        key = _key(name)
        return next((attempt for attempt in reversed(self.log.attempts) if attempt.pod.key == key), None)

    def rejections(self, name: str) -> dict[str, str]:
        """Return why a pod has no node, as of its last attempt: by node, `PLUGIN: reason`; empty if it has one."""
        attempt = self.last_attempt(name)
        diagnosis = None if attempt is None or attempt.failure is None else attempt.failure.diagnosis
        if diagnosis is None:
            return {}
        found = {
            str(self.cluster.names[row]): f"{status.plugin}: {status.message}" for status, rows in diagnosis.rejections for row in rows
        }
        # A plugin rejected the pod as a whole in PreFilter: all nodes without a rejection of their own share its status.
        if diagnosis.absent is not None:
            for row in self.cluster.rows().tolist():
                found.setdefault(str(self.cluster.names[row]), f"{diagnosis.absent.plugin}: {diagnosis.absent.message}")
        return found

    def gated_by(self, name: str) -> str:
        """Return what keeps a pod out of the queue, as `PLUGIN: reason`; empty if nothing does."""
        uid = self.queue.uid_of(_key(name))
        waiting = None if uid is None else self.queue.latest(uid)
        policy = None if waiting is None else self._policy(waiting.scheduler_name)
        if waiting is None or policy is None:
            return ""
        status = policy.pre_enqueue(waiting)
        return "" if status.ok else f"{status.plugin}: {status.message}"

    def requested(self, node: str, resource: str = "cpu") -> int:
        """Return how much of a resource is requested on a node: milli-CPU, bytes, or a count.

        Args:
            node: the node's name; 0 is returned if no pod stands on it.
            resource: its name, such as `memory` or `example.com/gpu`.
        """
        return sum(info.requests.get(resource, 0) for info in self.cluster.pods_on(NodeName(node)))

    def _known_uid(self, name: str) -> str:
        key = _key(name)
        uid = self.queue.uid_of(key) or next((each.pod.uid for each in self.cluster.placements() if each.pod.key == key), None)
        assert uid is not None, f"there is no pod {key}"
        return uid


def _key(name: str) -> Any:
    return name if "/" in name else f"{DEFAULT_NAMESPACE}/{name}"
