"""The engine: everything one scheduler consists of, put together around one API server.

It outlives Kopf: when a broken stream ends Kopf's part, that is started again and finds the same engine, with its queue.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from placewright.api.devices import ResourceClaim
from placewright.api.podgroups import NativePodGroup
from placewright.api.pods import PodInfo
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.cluster.cluster import Cluster
from placewright.cluster.observedcluster import ObservedCluster
from placewright.engine.arrivals import ArrivalsWatch
from placewright.engine.companions import MakeCompanions, ReplicaInfo, no_companions
from placewright.engine.debugsignal import Debugger
from placewright.engine.decisionmarks import MarkKeeper
from placewright.engine.discovery import Discovery
from placewright.engine.extenders import Extenders
from placewright.engine.freedmemory import give_back_memory
from placewright.engine.keptoutpods import KeptOutPods
from placewright.engine.memory import column_bytes, plugin_bytes
from placewright.engine.options import EngineOptions
from placewright.engine.pluginwatch import PluginWatch
from placewright.engine.podgroupstatus import GroupStatusKeeper, WaitingMembers
from placewright.engine.profilehistory import HistoryKeeper, LastGood
from placewright.engine.profilekeeper import FileProfiles, ProfileKeeper
from placewright.engine.profilestatus import StatusReporter
from placewright.engine.reconcile.forgotten import ForgottenPods
from placewright.engine.reconcile.loop import ReconcileLoop
from placewright.engine.reconcile.reconciler import Reconciler
from placewright.engine.reflectors import NODES_PATH, PODS_PATH, reflected_core, reflected_rows
from placewright.engine.steadyclock import SteadyClock
from placewright.engine.takeover import Takeover, ask_for_unresolved, caught_up
from placewright.engine.unclaimedpods import UnclaimedPods, nothing_remembered, remembered_by
from placewright.framework.memory import PLUGIN_BYTES
from placewright.framework.registry import Registry, installed_plugins
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.handle import NoBinder, ProfileHandle, build_evaluator
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.runtime.rowchecks import NoNominations
from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import ApiClient
from placewright.kube.decisionmarks import MarkStore
from placewright.kube.history import HistoryStore, operator_namespace
from placewright.kube.profiles import ProfileEvents
from placewright.kube.ratelimit import TokenBucket, Traffic
from placewright.kube.reflector import Reflector
from placewright.kube.retry import RetryBackoff, until_answered
from placewright.kube.writers.binder import BindCounts, HttpBinder
from placewright.kube.writers.claims import HttpClaimWriter
from placewright.kube.writers.events import EventCounts, HttpEventRecorder, uses_core_events
from placewright.kube.writers.evictor import HttpEvictor
from placewright.kube.writers.objects import HttpObjectPatcher
from placewright.kube.writers.podgroupstatus import GroupView, HttpGroupStatusWriter
from placewright.kube.writers.podstatus import HttpStatusWriter, StatusCounts
from placewright.kube.writers.volumes import HttpVolumeWriter
from placewright.kube.writers.writer import QueueingWriter
from placewright.leadership.election import Alone, Election
from placewright.leadership.leaserule import Timing
from placewright.leadership.peers import Replica, make_replica
from placewright.plugins.catalog import in_tree
from placewright.profiles.difference import reconsidered
from placewright.profiles.live import Active, LiveProfiles, Swap
from placewright.profiles.profilestate import ProfileStanding
from placewright.queue.events import A_SLICE
from placewright.queue.policy import QueuePolicy
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.attempts import Observers
from placewright.scheduler.cycle import SchedulingCycle
from placewright.scheduler.decisiondetail import DecisionDetail
from placewright.scheduler.eventhandlers import ClusterEventHandlers, Untimed
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.ports import EventType, Voices
from placewright.scheduler.scheduler import DRAIN_SECONDS, Ports, Scheduler
from placewright.scheduler.selfcheck import SelfCheck
from placewright.shadow.shadows import Shadows

_logger = logging.getLogger(__name__)

#: The kinds that a decision writes to, beside pods.
_WRITTEN_KINDS: Final = (ResourceClaim, PersistentVolume, PersistentVolumeClaim)
#: The share of the time between the end of one leader's term and the begin of the next for which a request of the former may be under way.
OUTLIVES_LEAD: Final = 0.8
#: Seconds for which the last verdicts may be written before the lead is given back: the next replica waits for that.
_LAST_WORDS_SECONDS: Final = 0.5
#: Seconds between two flushes of the queue's backoff and of pods that have waited too long, as in kube-scheduler.
BACKOFF_FLUSH_SECONDS: Final = 1.0
UNSCHEDULABLE_FLUSH_SECONDS: Final = 30.0


class Engine:
    """One scheduler on one API server, whole: `start`, `drain` and `stop` only run what is built here.

    Attributes:
        companions: the listeners, and the servers that are open for as long as the engine exists.
        shadows: profiles that decide beside others and bind nothing.
        claims: writes claims to devices.
        column_budget: memory for the columns that are kept between decisions, of all profiles and shadows together.
        plugin_watch: records the failures of plugins.
        profiles: keeps the profiles; the handler of profiles calls it.
        history: records every generation of a profile, and its standing.
        event_handlers: takes pods, nodes and all other objects from the watches; the handler of pods calls it.
        marks: keeps marks of decisions that may end the process.
        forgotten: finds pods that wait although they would fit.
        discovery: adds a reflector for each kind that the API server serves.
        now: seconds since 1970, for all limits that compare with timestamps of the API server.
        arrivals: by kind, the watch of each source with a follower; on while a profile runs a plugin that declares it.
    """

    def __init__(self, access: ClusterAccess, options: EngineOptions, make_companions: MakeCompanions) -> None:
        """Build all parts and start none. `build_engine` describes the arguments."""
        self.access, self.options, self.now = access, options, SteadyClock()
        self.replica: Replica = make_replica(int(time.time() * 1000), random.Random(), os.environ)
        self.namespace = operator_namespace(os.environ)
        self.companions = make_companions(ReplicaInfo(access, self.replica, self._active))
        heard = self.companions.listeners
        self.leadership = self._make_leadership()
        limit = TokenBucket(options.qps, options.burst) if options.qps else None
        # What leaves in the last moment of the lead must be over before another replica may take it.
        outlive = OUTLIVES_LEAD * Timing.of(options.peering_lifetime).gap
        self.client = ApiClient(access, limit=limit, listeners=heard.requests, outlive=outlive)
        self.takeover = Takeover(self.leadership, self._prepare_term, self._end_term, self._listed)
        observed = ObservedCluster()
        self.cluster: Cluster = observed
        self.column_budget = ColumnBudget(column_bytes())
        PLUGIN_BYTES.limit = plugin_bytes()
        self.shadows = Shadows(observed, self._build_shadow, time.perf_counter, lambda: datetime.now(UTC))
        self.plugin_watch = PluginWatch(untouched=options.check_plugins)
        self.observers = Observers((*heard.attempts, self.plugin_watch), (self.shadows.decided,), heard.groups, (self.shadows,))
        self.queue = SchedulingQueue(
            self._policy, time.monotonic, self.observers.pod_entered, heard.hints, slices=A_SLICE, wall=self.now
        )  # fmt: skip
        # --- what is written to the API server
        leads, sleep = self._leads, self.takeover.sleep
        self._events = HttpEventRecorder(self.client, self.replica.identity, core=self._core_events, may_warn=leads)
        self._status = HttpStatusWriter(self.client, leads, sleep=sleep)
        self._group_status = HttpGroupStatusWriter(self.client, GroupView(leads, self.cluster.pod_groups.object_of, self._native_version))
        self._groups = GroupStatusKeeper(self.cluster, self._group_status, self._events, self._native_version)
        self._binder = HttpBinder(self.client, leads, aside=self.queue.in_flight.aside, before=self._status.nomination_written, sleep=sleep)
        self._volumes = HttpVolumeWriter(self.client, leads, sleep=sleep)
        self.claims = HttpClaimWriter(self.client, leads, self._claims_version, heard.claims, sleep=sleep)
        # --- decisions
        store_of_marks = MarkStore(self.client.sending(Traffic.BIND), self.namespace, leads)
        self.marks = MarkKeeper(store_of_marks, self.replica.identity, self.queue, self.cluster, now=self.now)
        ports = Ports(
            self._events, self._status, HttpEvictor(self.client, leads, sleep=sleep), self.observers, self._groups, precautions=self.marks,
            since_1970=self.now,
        )  # fmt: skip
        detail = DecisionDetail(time.perf_counter, on=heard.details)
        cycle = SchedulingCycle(self.cluster, self.queue.nominator, random.Random(options.seed), detail)
        self.scheduler = Scheduler(self.cluster, self.queue, self._evaluator, cycle, ports, time.monotonic, self.takeover)
        self.event_handlers = ClusterEventHandlers(
            self.cluster, self.queue, self.scheduler.binding, heard.watch_events or Untimed(), self.shadows, self._namespace_gates
        )
        # --- profiles
        self._registry: Registry = in_tree().with_installed(installed_plugins())
        self._extenders = Extenders(self.client, lambda: self.cluster.node_count)
        self.live: LiveProfiles[Evaluator] = LiveProfiles(self._registry, self._build, self._swapped, self._shadows_changed)
        store = HistoryStore(self.client, self.namespace)
        self.history = HistoryKeeper(store, self._standings, self._active)
        self.profiles = self._make_keeper(store)
        remembered = remembered_by(store) if options.profiles is None else nothing_remembered
        self.unclaimed = UnclaimedPods(
            self.queue, self.cluster, lambda: self.live.active, self.profiles.standings, self._events, remembered
        )
        # --- what is read from the API server
        self.reconcile_loop = ReconcileLoop(
            self.client, Reconciler(self.cluster, self.queue, self.scheduler.binding, self.event_handlers), options.reconcile_seconds,
            self.leadership, self.profiles,
        )  # fmt: skip
        self.leadership.on_change(self.reconcile_loop.lead_changed)
        self.forgotten = ForgottenPods(
            SelfCheck(self.cluster, self.queue, self._evaluator, time.monotonic), self._events, self._leads, time.monotonic
        )
        self._reflectors = reflected_core(self.client, self.event_handlers, self.reconcile_loop.pods_listed)
        self.discovery = Discovery(
            self.client,
            self.event_handlers,
            self._reflectors,
            options.reconcile_seconds,
            rows=reflected_rows(self._registry.sources.values()),
        )
        self.arrivals = {
            kind: ArrivalsWatch(self.client, self.cluster, source, self.now)
            for kind, (source, _) in self._registry.sources.items()
            if source.follower is not None
        }
        # --- what runs
        self._deciding: asyncio.Task[None] | None = None
        self._tasks, self._ending = list[asyncio.Task[None]](), False

    def _make_leadership(self) -> Election | Alone:
        if not self.options.leader_elect:
            return Alone()
        return Election(self.access, self.replica, self.namespace, self.options.peering_lifetime, self._settled)

    def _make_keeper(self, store: HistoryStore) -> ProfileKeeper:
        reporter = StatusReporter(self.client, ProfileEvents(self.client, self.replica.identity))
        keeper = ProfileKeeper if self.options.profiles is None else FileProfiles
        return keeper(
            self.client, self.live, self.queue, self._active, reporter, LastGood(store), self.history, self.shadows.report,
            self.plugin_watch,
        )  # fmt: skip

    # --- life ----------------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Reach the API server, fill the columns, begin to schedule. This waits for as long as the API server is away.

        Raises:
            CannotElect: replicas could not elect one of them.
            ConfigError: a profile of a file cannot take effect.
        """
        found = await until_answered(self.discovery.survey, RetryBackoff())
        await self.leadership.require()
        if isinstance(self.leadership, Election):
            self.replica = self.leadership.replica
        self.discovery.adopt(found)
        if isinstance(self.profiles, FileProfiles):
            self.profiles.load(self.options.profiles or ())
        self.leadership.start()
        self._events.start()
        self._status.start()
        self._group_status.start()
        self._reflectors.start()
        self._deciding = asyncio.create_task(self._schedule_when_synced(), name="scheduler")
        self._spawn(self.takeover.run(), "takeover")
        self._spawn(self.queue.sweeps.run(), "events for waiting pods")
        self._spawn(give_back_memory(), "freed memory")
        self._spawn(self._every(BACKOFF_FLUSH_SECONDS, self._flush_backoff), "backoff flush")
        self._spawn(self._every(UNSCHEDULABLE_FLUSH_SECONDS, self.queue.flush_unschedulable), "unschedulable flush")
        self._spawn(self.scheduler.given_up.run(), "giving up")
        self._spawn(self.reconcile_loop.run(), "reconciler")
        self._spawn(self.marks.run(self._leads, self._events, self._status), "decision marks")
        self._spawn(self.forgotten.run(), "forgotten pods")
        self._spawn(self.profiles.run(), "profile status")
        self._spawn(self.history.run(), "profile history")
        self._spawn(self.discovery.run(), "rediscovery")
        for kind, watch in self.arrivals.items():
            self._spawn(watch.run(), f"watch of {kind}")
        self._spawn(self._groups.run(), "group status")
        self._spawn(self._waiting_members().run(self._leads), "gated groups")
        kept_out = KeptOutPods(self.queue, self._events, self._status)
        self._spawn(kept_out.run(self._leads), "pods whose namespace may not use their profile")
        self._spawn(self.unclaimed.run(lambda: self.takeover.active and self.profiles.loaded), "pods that no profile takes")
        self._spawn(self.shadows.run(), "shadows")
        self._spawn(self.plugin_watch.run(self.queue, self._events, self._status, self._leads), "plugin watch")
        self._spawn(Debugger(self).run(), "debugger")

    async def broken(self) -> str:
        """Wait until a part has ended that should run until `drain` or `stop`. Returns its name and its error."""
        ended, _ = await asyncio.wait(self._parts(), return_when=asyncio.FIRST_COMPLETED)
        return "; ".join(_how_it_ended(task) for task in ended)

    async def drain(self) -> None:
        """Stop deciding, finish the bindings under way, and then give the lead back, so that the next replica begins after them."""
        self._ending = True
        if self._deciding is not None:
            self._deciding.cancel()
            await asyncio.gather(self._deciding, return_exceptions=True)
            self._deciding = None
            whole = await self.scheduler.drain()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    await self.claims.settled()
            await self._status.settled(_LAST_WORDS_SECONDS)
            await self.marks.end_term()
            await self.leadership.resign(give_back=whole)

    async def stop(self) -> None:
        """Drain, write the queued events and statuses, close connections. It may be called on an engine whose start was given up."""
        self._ending = True
        if self._deciding is not None or self._tasks:
            await self.drain()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._tasks = []
            await asyncio.gather(self._events.close(), self._status.close(), self._group_status.close(), self._reflectors.stop())
            await self.leadership.stop()
        for active in self.live.active.values():
            active.evaluator.runtime.close()
        await self._extenders.close()
        await self.close()

    async def close(self) -> None:
        """Close connections; enough for an engine that was never started."""
        await self.leadership.close()
        await self.client.close()

    def _parts(self) -> list[asyncio.Task[None]]:
        deciding = [] if self._deciding is None else [self._deciding]
        writing = [task for writer in self.outbox.values() for task in writer.tasks]
        return [*self._tasks, *self._reflectors.tasks, *self.leadership.tasks, *writing, *deciding]

    # --- health --------------------------------------------------------------------------------------------------------------

    @property
    def ending(self) -> bool:
        """True once it has been told to end."""
        return self._ending

    @property
    def started(self) -> bool:
        """True once the API server has answered and everything runs."""
        return bool(self._tasks)

    @property
    def profiles_loaded(self) -> bool:
        """True once the profiles that there are have been read."""
        return self.started and self.profiles.loaded

    def unsynced(self) -> list[str]:
        """The kinds whose first list is not complete, as words for a person."""
        return self._reflectors.unsynced() if self.started else ["anything, as the API server has not answered yet"]

    def ended_parts(self) -> list[str]:
        """Names of the parts that have ended although the engine has not been told to end."""
        if self._ending or not self.started:
            return []
        return [task.get_name() for task in self._parts() if task.done()]

    def _waiting_members(self) -> WaitingMembers:
        return WaitingMembers(self.queue, self.cluster.pod_groups, self._policy, Voices(self._events, self._status, self._groups))

    def _native_version(self) -> str:
        return self.discovery.version_of(NativePodGroup)

    async def _settled(self) -> None:
        await self.scheduler.settled()

    def _core_events(self) -> bool:
        return uses_core_events(self.discovery.served)

    def _standings(self) -> Mapping[str, ProfileStanding]:
        return self.profiles.standings()

    def _active(self) -> bool:
        """Whether this replica is the active one; a term begins a moment later."""
        return self.leadership.active

    def _leads(self) -> bool:
        """Whether this replica may write what it decided."""
        return self.takeover.active

    async def _schedule_when_synced(self) -> None:
        await self._reflectors.wait_synced()
        _logger.info("synced: %d nodes, %d pods on them", self.cluster.node_count, self.cluster.pod_count_total)
        await self.scheduler.run()

    async def _listed(self) -> None:
        await self._reflectors.wait_synced()

    async def _prepare_term(self) -> None:
        await self.scheduler.settled()
        client = self.client.sending(Traffic.BIND)  # a sender without the backoff of refusals in an earlier term
        await ask_for_unresolved(client, self.scheduler.binding, self.event_handlers)
        decided_on = [each for each in self._reflectors.members if _decided_on(each)]
        await asyncio.gather(caught_up(client, decided_on), self.profiles.refresh())
        await self.marks.begin_term()

    def _end_term(self) -> None:
        """Drop the queued writes, abort the requests under way, roll back the decisions that are not bound."""
        for writer in (self._events, self._status, self._group_status):
            writer.end_term()
        self.client.abort_unwanted()
        self.scheduler.end_term()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    @staticmethod
    async def _every(seconds: float, act: Any) -> None:
        while True:
            # At whole multiples of the clock, because backoff ends in windows of a second.
            await asyncio.sleep(seconds - time.monotonic() % seconds)
            act()

    def _flush_backoff(self) -> None:
        """End the backoff of a slice of pods, and of the next in the event loop's next turn: a mass of pods may be due in one second."""
        if self.queue.flush_backoff(A_SLICE) >= A_SLICE:
            asyncio.get_running_loop().call_soon(self._flush_backoff)

    def _announce(self, pod: PodInfo, reason: str, action: str, message: str, warning: bool) -> None:
        self._events.record(pod, EventType.WARNING if warning else EventType.NORMAL, reason, action, message)

    def _claims_version(self) -> str:
        """The API version in which claims to devices are read, and so written."""
        return self.discovery.version_of(ResourceClaim) or "v1"

    # --- figures, for metrics --------------------------------------------------------------------------------------------------

    @property
    def bindings(self) -> BindCounts:
        """Counts of Bindings by outcome."""
        return self._binder.counts

    @property
    def outbox(self) -> Mapping[str, QueueingWriter[Any, Any]]:
        """The writers that queue their writes, by name."""
        return {writer.NAME: writer for writer in (self._events, self._status, self._group_status)}

    @property
    def event_counts(self) -> EventCounts:
        """Counts of events about pods by outcome."""
        return self._events.counts

    @property
    def status_counts(self) -> StatusCounts:
        """Counts of writes of pods' conditions by outcome."""
        return self._status.counts

    @property
    def group_status_counts(self) -> StatusCounts:
        """Counts of writes of groups' status by outcome."""
        return self._group_status.counts

    @property
    def reflectors(self) -> tuple[Reflector[Any], ...]:
        """The reflectors; none before the API server has answered."""
        return tuple(self._reflectors.members) if self.started else ()

    # --- profiles --------------------------------------------------------------------------------------------------------------

    def _build(self, profile: ResolvedProfile) -> Evaluator:
        if profile.shadows is not None:
            return self._build_shadow(profile, Cluster())  # tells whether it can be built; `Shadows` builds the one that decides
        handle = ProfileHandle(
            self.cluster, self._binder, self.queue.nominator, self.scheduler.waiting, self._volumes, self.claims, self._announce,
            members=self.queue.pod_groups, guarding=self.plugin_watch.guarding(profile), budget=self.column_budget, now=self.now,
            wake=self.queue.alarms.wake_after, evictions=self.scheduler.evictions, activate=self.queue.activate,
            patcher=HttpObjectPatcher(self.client, self._leads, sleep=self.takeover.sleep),
        )  # fmt: skip
        return handle.evaluator(profile, self._registry, self._extenders.make(profile))

    def _build_shadow(self, profile: ResolvedProfile, cluster: Cluster) -> Evaluator:
        """Build a shadow's evaluator, without extenders and with ports that send nothing."""
        guarding = self.plugin_watch.guarding(profile)
        return build_evaluator(
            profile, self._registry, cluster, NoBinder(), NoNominations(), guarding=guarding, budget=self.column_budget, now=self.now
        )

    def _shadows_changed(self, shadows: Mapping[str, Active[Evaluator]]) -> None:
        self.shadows.adopt(active.profile for active in shadows.values())
        self._watch_arrivals()

    def _evaluator(self, scheduler_name: str) -> Evaluator | None:
        active = self.live.by_scheduler_name(scheduler_name)
        return None if active is None else active.evaluator

    def _namespace_gates(self) -> Iterator[tuple[str, Callable[[PodInfo], bool]]]:
        return ((name, active.evaluator.runtime.namespace_gate.keeps_out) for name, active in self.live.active.items())

    def _policy(self, scheduler_name: str) -> QueuePolicy | None:
        evaluator = self._evaluator(scheduler_name)
        return None if evaluator is None else ProfilePolicy(evaluator.runtime)

    def _swapped(self, swap: Swap[Evaluator]) -> None:
        self._extenders.swapped(swap)
        if swap.before is not None:
            swap.before.evaluator.runtime.close()
        if swap.after is not None:
            swap.after.evaluator.runtime.start()
        if swap.after is not None:
            self.unclaimed.claimed(swap.scheduler_name)
        elif swap.before is not None:
            self.unclaimed.lost(swap.scheduler_name, swap.before.profile.name)
        in_question = None
        if swap.before is not None and swap.after is not None:
            in_question = reconsidered(swap.before.profile, swap.after.profile)
        self.queue.reprioritise(swap.scheduler_name, in_question)
        if swap.after is not None:
            self.queue.sweeps.keep_out(swap.scheduler_name, swap.after.evaluator.runtime.namespace_gate.keeps_out)
        self._watch_arrivals()

    def _watch_arrivals(self) -> None:
        in_effect = (active.profile for active in (*self.live.active.values(), *self.live.shadows.values()))
        plugins = {name for profile in in_effect for name in profile.plugin_names}
        wanted = {source.name for name in plugins for source in self._registry[name].sources}
        for kind, watch in self.arrivals.items():
            watch.turn(on=kind in wanted)


def build_engine(
    access: ClusterAccess,
    options: EngineOptions = EngineOptions(),  # noqa: B008
    make_companions: MakeCompanions = no_companions,
) -> Engine:
    """Build a scheduler for one API server, without a request to it.

    The kinds that the API server serves are no part of the build: the engine must exist and answer probes while the API server is away, and
    the kinds may change later. `Discovery` adds their reflectors, at the start and later.

    Args:
        access: address of the API server, and credentials for it.
        options: of the engine.
        make_companions: makes the listeners, and the servers that are open for as long as the engine exists.

    Returns:
        An engine that has not been started.
    """
    return Engine(access, options, make_companions)


def _decided_on(reflector: Reflector[Any]) -> bool:
    """Whether a reflector reads a kind that the decisions of an earlier leader change."""
    return reflector.source.path in (PODS_PATH, NODES_PATH) or reflector.source.kind in _WRITTEN_KINDS


def _how_it_ended(task: asyncio.Task[None]) -> str:
    if task.cancelled():
        return f"{task.get_name()} was cancelled"
    problem = task.exception()
    while isinstance(problem, BaseExceptionGroup) and len(problem.exceptions) == 1:  # a task group wraps the error of its only failing task
        (problem,) = problem.exceptions
    if problem is not None:
        asyncio.get_running_loop().call_exception_handler({"message": f"{task.get_name()} broke", "exception": problem})
    return f"{task.get_name()} ended ({type(problem).__name__}: {problem})"
