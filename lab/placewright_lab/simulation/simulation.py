"""Runs a profile on a cluster and its future, with the scheduler's own engine, in virtual time.

The scheduler's own queue, columns, event handlers, cycle, binding and preemption run. Only the API server around them is ours. The clock of
the event loop jumps from one event to the next. Decisions and bindings take no virtual time, so the scheduler decides about the next pod
right after a binding. Equal scenarios, profiles and seeds give equal outcomes.
"""

from __future__ import annotations

import asyncio
import enum
import heapq
import math
import random
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, cast

from placewright.api.devices import ResourceClaim
from placewright.api.objects import Node, PodKey
from placewright.api.pods import PodInfo
from placewright.api.profile import DEFAULT_SCHEDULER_NAME
from placewright.cluster.cluster import Cluster
from placewright.framework.preemption.evictions import MINUTE
from placewright.framework.registry import Registry
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import is_ours
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.runtime.snapshot import Snapshot
from placewright.offline.kinds import Manifest
from placewright.offline.world import read_object
from placewright.queue.queue import MAX_UNSCHEDULABLE_SECONDS, SchedulingQueue
from placewright.scheduler.attempts import Observers
from placewright.scheduler.cycle import SchedulingCycle
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.scheduler import Ports, Scheduler
from placewright_lab.simulation.apiserver import MIRROR, ApiServer, InstantVolumeWriter, waiting
from placewright_lab.simulation.claimwriter import TEMPLATE, InstantClaimWriter, without
from placewright_lab.simulation.outcome import Fates, Outcome
from placewright_lab.simulation.scenario import Act, Happening, Scenario
from placewright_lab.simulation.virtualtime import VirtualTimeLoop

#: Seconds between two looks for pods that have waited too long for an event.
FLUSH_SECONDS: Final = 30.0
#: Seconds without a change after which every waiting pod has been tried again. No other attempt can end differently.
PATIENCE_SECONDS: Final = MAX_UNSCHEDULABLE_SECONDS + 2 * FLUSH_SECONDS
#: Number of attempts for each waiting pod that means the same, even in a short time.
TRIES_PER_POD: Final = 10
_LEAST_TRIES: Final = 1000
_NO_DATE: Final = "2000-01-01T00:00:00Z"


class Which(enum.StrEnum):
    """The pods that a simulation places.

    PENDING: pods that have no node at the beginning, and pods that come later. ALL: pods on nodes, too, as if everything were created anew.
    Pods that a kubelet read from its own files stay.
    """

    PENDING = "pending"
    ALL = "all"


def simulate(
    scenario: Scenario,
    profiles: ResolvedProfile | Sequence[ResolvedProfile],
    registry: Registry,
    *,
    seed: int = 0,
    which: Which = Which.PENDING,
    name: str = "",
    together: Collection[str] = (),
) -> Outcome:
    """Let profiles place a scenario's pods until nothing can change any more.

    Several profiles each serve their scheduler name. A single profile serves all pods if no pod asks for its name. Pods of other schedulers
    stay unchanged. The simulation does not ask extenders.

    `together` are further schedulerNames whose pods a single profile places. So profiles of several names are compared by the same pods.

    `seed` decides among equally good nodes, like the operator's. `name` is the name of the outcome, by default that of the first profile.

    Raises `InputError` for an object that cannot be read, and `RuntimeError` if the caller is a coroutine.
    """
    began = time.perf_counter()
    _require_no_loop()
    several = [profiles] if isinstance(profiles, ResolvedProfile) else list(profiles)
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        loop = cast("VirtualTimeLoop", runner.get_loop())
        simulation = Simulation(loop, scenario, several, registry, seed, which, together)
        runner.run(simulation.run())
    outcome = simulation.outcome(name or several[0].name or several[0].scheduler_name, seed)
    outcome.wall_seconds = time.perf_counter() - began
    return outcome


def _require_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("simulate runs an event loop of its own: a coroutine calls it in a thread")


class Simulation:
    """One run of `simulate`."""

    def __init__(
        self,
        loop: VirtualTimeLoop,
        scenario: Scenario,
        profiles: Sequence[ResolvedProfile],
        registry: Registry,
        seed: int,
        which: Which,
        together: Collection[str] = (),
    ) -> None:
        self._loop = loop
        self._scenario = scenario
        self._which = which
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._appointments = 0
        self._under_way: set[asyncio.Task[Any]] = set()
        self._stirred = asyncio.Event()
        self._changed_at = 0.0
        self._tries = 0
        self._fates = Fates(loop.time)
        begin = _begin(scenario.objects)
        self._server = ApiServer(
            loop.time, begin, scenario.durations, self._fates, self._later, self._changed, scenario.start_seconds
        )  # fmt: skip
        self._cluster = Cluster()
        self._claims = InstantClaimWriter(
            self._cluster, loop.time, begin.timestamp(), self._server.put, self._server.remove, self._server.claimed
        )
        self._server.claims = self._claims
        self._evaluators: dict[str, Evaluator] = {}
        self._for_all: Evaluator | None = None
        self._left: list[PodKey] = []
        self._queue = SchedulingQueue(self._policy, loop.time, self._entered)
        cycle = SchedulingCycle(self._cluster, self._queue.nominator, random.Random(seed))
        ports = Ports(
            self._fates, self._server, self._server, Observers([self._fates]), start=self._start, since_1970=self._claims.now
        )  # fmt: skip
        self._scheduler = Scheduler(self._cluster, self._queue, self._evaluator, cycle, ports, loop.time)
        self._server.event_handlers = ClusterEventHandlers(self._cluster, self._queue, self._scheduler.binding)
        self._build(profiles, registry, together)
        self._outsiders = sorted({name for profile in profiles for name in profile.plugin_names if not is_ours(registry[name])})
        self._shown: Snapshot | None = None
        self._patience = PATIENCE_SECONDS + max((_stated_waits(profile) for profile in profiles), default=0.0)

    def outcome(self, profile: str, seed: int) -> Outcome:
        """Return the result after `run` has ended."""
        self._fates.explain(self._why)
        for _, queued in self._queue.pods():
            if queued.given_up_at is not None:  # reports have a rate limit, and the end may come first
                self._fates.by_uid[queued.uid].given_up = True
        waiting_for_others = (queued.key for _, queued in self._queue.pods() if queued.uid not in self._fates.by_uid)
        passed_over = [*waiting_for_others, *self._left]
        return Outcome(
            profile,
            seed,
            self._fates.by_uid,
            self._cluster,
            ended=self._loop.time(),
            evicted=self._fates.evicted,
            passed_over=passed_over,
            plugin_failures=[*self._written(), *self._failures()],
        )

    def _written(self) -> Iterator[str]:
        """Return a sentence if a plugin wrote into an object of the beginning. Any of several plugins may be the writer."""
        if self._shown is not None and (written := self._shown.written()):
            yield f"{'one of the plugins' if self._outsiders[1:] else 'plugin'} {', '.join(self._outsiders)}: {written}"

    def _failures(self) -> Iterator[str]:
        return (told for evaluator in self._evaluators.values() for told in evaluator.runtime.failures.sentences())

    async def run(self) -> None:
        """Run from the beginning until nothing can change any more."""
        evaluators = tuple(dict.fromkeys(self._evaluators.values()))
        for evaluator in evaluators:
            evaluator.runtime.start()
        self._begin()
        while True:
            await self._decide()
            moment = self._next_moment()
            if moment is None and not (self._under_way and await self._loop.quiet()):
                break
            await self._wait(moment)
            self._act()
        for task in self._under_way:  # these wait for something that never comes
            task.cancel()
        for evaluator in evaluators:
            evaluator.runtime.close()

    # --- profiles -----------------------------------------------------------------------------------------------------------

    def _build(self, profiles: Sequence[ResolvedProfile], registry: Registry, together: Collection[str]) -> None:
        nominator, permits = self._queue.nominator, self._scheduler.waiting
        volumes = InstantVolumeWriter(self._cluster, self._loop.time, self._server.put)
        for profile in profiles:
            handle = ProfileHandle(
                self._cluster, self._server, nominator, permits, volumes, self._claims, members=self._queue.pod_groups,
                wake=self._queue.alarms.wake_after, evictions=self._scheduler.evictions, activate=self._queue.activate,
                patcher=self._server,
            )  # fmt: skip
            self._evaluators[profile.scheduler_name] = handle.evaluator(profile, registry)
        if len(profiles) == 1:
            alone = self._evaluators[profiles[0].scheduler_name]
            self._evaluators |= dict.fromkeys(together, alone)
            self._for_all = None if profiles[0].scheduler_name in asked_for(self._scenario) else alone

    def _evaluator(self, scheduler_name: str) -> Evaluator | None:
        return self._for_all or self._evaluators.get(scheduler_name)

    def _policy(self, scheduler_name: str) -> ProfilePolicy | None:
        evaluator = self._evaluator(scheduler_name)
        return None if evaluator is None else ProfilePolicy(evaluator.runtime)

    def _why(self, pod: PodInfo) -> tuple[str, str]:
        """Return the message and the plugin for a pod that was never tried."""
        policy = self._policy(pod.scheduler_name)
        if policy is None or policy.paused:
            return "its profile is paused", ""
        status = policy.pre_enqueue(self._queue.latest(pod.uid) or pod)
        return ("", "") if status.ok else (status.message, status.plugin)

    # --- changes ------------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Fill the cluster: nodes in the given order, then pods on nodes, then waiting pods, the oldest first."""
        found = [read_object(manifest, self._scenario.source) for manifest in self._scenario.objects]
        if self._outsiders:  # once for all calls, because a check of every call, like in `evaluate`, would take longer than the simulation
            self._shown = Snapshot(self._cluster, found)
        pods = [item for item in found if isinstance(item, PodInfo) and not item.finished]
        nodes = [item for item in found if isinstance(item, Node)]
        to_place = {pod.uid for pod in pods if self._to_place(pod)}
        self._begin_without_pods(found, to_place)
        for node in nodes:  # the choice among equally good nodes draws their rows
            self._server.put(node)
        for pod in pods:
            if pod.uid not in to_place:
                self._server.put_pod(pod)
                if pod.node_name and self._is_movable(pod) and self._evaluator(pod.scheduler_name) is None:
                    self._left.append(PodKey(pod.key))
        for pod in sorted(pods, key=lambda pod: pod.created):
            if pod.uid in to_place:
                self._comes(pod)
        for happening in self._scenario.happenings:
            self._later(happening.at, partial(self._happens, happening))

    def _begin_without_pods(self, found: Iterable[Any], to_place: Collection[str]) -> None:
        for manifest in self._scenario.objects:
            if manifest.get("kind") == TEMPLATE:
                self._claims.template(manifest, self._scenario.source)
        for item in found:
            if isinstance(item, ResourceClaim):
                self._server.put(without(item, to_place))
            elif not isinstance(item, Node | PodInfo | None):
                self._server.put(item)

    def _to_place(self, pod: PodInfo) -> bool:
        if self._evaluator(pod.scheduler_name) is None or pod.finished:
            return False
        if not pod.node_name:
            return True
        return self._is_movable(pod)

    def _is_movable(self, pod: PodInfo) -> bool:
        """Return whether a profile would place a pod anew that is on a node."""
        mirror = MIRROR in (pod.pod.metadata.annotations or {})
        return self._which is Which.ALL and not mirror and not pod.terminating

    def _comes(self, pod: PodInfo) -> None:
        pod = waiting(pod)
        self._fates.came(pod)
        self._server.put_pod(pod)

    def _happens(self, happening: Happening) -> None:
        item = read_object(happening.manifest, self._scenario.source)
        gone = happening.act is Act.DELETED
        if isinstance(item, PodInfo):
            self._happens_to_pod(item, gone=gone)
        elif item is not None:
            (self._server.remove if gone else self._server.put)(item)
        elif happening.manifest.get("kind") == TEMPLATE and not gone:
            self._claims.template(happening.manifest, self._scenario.source)

    def _happens_to_pod(self, pod: PodInfo, *, gone: bool) -> None:
        if gone:
            self._server.remove_pod(pod.uid)
        elif not self._server.knows(pod.uid) and self._to_place(pod):
            self._comes(pod)
        else:
            self._server.put_pod(pod)

    def _changed(self) -> None:
        self._changed_at = self._loop.time()
        self._tries = 0

    # --- time ---------------------------------------------------------------------------------------------------------------

    async def _decide(self) -> None:
        """Decide and bind, one pod after the other, while there is any decision to make."""
        while not self._tired and (queued := self._queue.pop()) is not None:
            self._tries += 1
            self._scheduler.schedule_one(queued)
            await self._loop.quiet()

    @property
    def _tired(self) -> bool:
        """Return whether nothing has changed for so long that no other attempt can end differently."""
        too_often = self._tries > max(_LEAST_TRIES, TRIES_PER_POD * len(self._queue))
        return too_often or self._loop.time() > self._changed_at + self._patience

    def _start(self, work: Coroutine[Any, Any, Any]) -> None:
        task = self._loop.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        self._stirred.set()

    def _entered(self, place: str, event: str) -> None:
        self._stirred.set()

    def _next_moment(self) -> float | None:
        """Return the time of the next known event. Bindings under way may be faster."""
        moments = [self._agenda[0][0]] if self._agenda else []
        alarm = self._queue.alarms.next
        if alarm is not None and len(self._queue):  # time may help a pod when no change in the cluster can
            moments.append(alarm)
        beat = self._next_beat()
        if not self._tired and self._loop.time() < beat <= self._changed_at + self._patience:
            moments.append(beat)
        return min(moments, default=None)

    def _next_beat(self) -> float:
        """Return when the queue has something to do by itself."""
        backoff = self._queue.next_backoff_expiry
        lanes = [lane for lane in self._queue.profile_queues() if lane.open]
        waits = (queued.timestamp for lane in lanes for queued in lane.unschedulable if queued.given_up_at is None)
        longest = min(waits, default=math.inf) + MAX_UNSCHEDULABLE_SECONDS
        flush = math.inf if math.isinf(longest) else (longest // FLUSH_SECONDS + 1) * FLUSH_SECONDS
        deadline = self._queue.giving_up.next_deadline()
        judged = math.inf if deadline is None else max(math.ceil(deadline), math.floor(self._loop.time()) + 1)
        return min(flush, judged) if backoff is None else min(flush, judged, backoff)

    async def _wait(self, moment: float | None) -> None:
        """Wait until then, or until a binding under way has an effect."""
        self._stirred.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(moment):
                await self._stirred.wait()
                return
        if moment is not None:
            self._loop.jump_to(moment)

    def _act(self) -> None:
        """Handle every event that is due."""
        now = self._loop.time()
        while self._agenda and self._agenda[0][0] <= now:
            heapq.heappop(self._agenda)[2]()
        if self._queue.alarms.ring():
            self._changed()
        self._queue.flush_backoff()
        self._scheduler.given_up.beat()
        if now % FLUSH_SECONDS == 0:
            self._queue.flush_unschedulable()

    def _later(self, moment: float, act: Callable[[], None]) -> None:
        """Run callbacks of one moment in the order in which they were registered."""
        self._appointments += 1
        heapq.heappush(self._agenda, (moment, self._appointments, act))


def _stated_waits(profile: ResolvedProfile) -> float:
    """Return the seconds after which the profile's rules of preemption may change their answer without any event."""
    rules = profile.settings.preemption
    return 0.0 if rules is None else max(rules.wait_seconds, rules.min_run_seconds, MINUTE if rules.max_evictions_per_minute else 0.0)


def asked_for(scenario: Scenario) -> set[str]:
    """Return the scheduler names of all pods."""
    manifests = [*scenario.objects, *(happening.manifest for happening in scenario.happenings)]
    pods = (manifest for manifest in manifests if manifest.get("kind") == "Pod")
    return {str((pod.get("spec") or {}).get("schedulerName") or DEFAULT_SCHEDULER_NAME) for pod in pods}


def _begin(objects: Iterable[Manifest]) -> datetime:
    """Return the latest creation. Pods that start in the simulation start later than all running pods."""
    dates = ((manifest.get("metadata") or {}).get("creationTimestamp") for manifest in objects)
    latest = max((date for date in dates if isinstance(date, str)), default=_NO_DATE)
    try:
        found = datetime.fromisoformat(latest)
    except ValueError:
        found = datetime.fromisoformat(_NO_DATE)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
