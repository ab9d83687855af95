"""The part of the engine that decides: cluster, queue, scheduler, the profiles in effect, and what is said of pods that wait."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.engine.children import every, while_leading
from placewright.engine.companions import Listeners, ReplicaInfo
from placewright.engine.decisionmarks import MarkKeeper
from placewright.engine.extenders import Extenders
from placewright.engine.memory import column_bytes, plugin_bytes
from placewright.engine.options import EngineOptions
from placewright.engine.podgroupstatus import GroupStatusKeeper, KeptOutPods, WaitingMembers
from placewright.engine.profilehistory import HistoryKeeper, LastGood
from placewright.engine.profilekeeper import FileProfiles, PluginWatch, ProfileKeeper
from placewright.engine.profilestatus import StatusReporter
from placewright.engine.steadyclock import SteadyClock
from placewright.engine.takeover import Takeover
from placewright.engine.unclaimedpods import UnclaimedPods, nothing_remembered, remembered_by
from placewright.engine.writingpart import WritingPart
from placewright.framework.memory import PLUGIN_BYTES
from placewright.framework.registry import Registry, installed_plugins
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.kube.decisionmarks import MarkStore
from placewright.kube.history import HistoryStore
from placewright.kube.profiles import ProfileEvents
from placewright.kube.ratelimit import Traffic
from placewright.kube.tasks import Tasks
from placewright.plugins.catalog import in_tree
from placewright.profiles.effective import reconsidered
from placewright.profiles.live import Active, LiveProfiles, Swap
from placewright.profiles.profilestate import ProfileStanding
from placewright.queue.events import A_SLICE
from placewright.queue.policy import QueuePolicy
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.attempts import Observers
from placewright.scheduler.cycle import DecisionDetail, SchedulingCycle
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.ports import StatusChannels
from placewright.scheduler.scheduler import Ports, Scheduler
from placewright.shadow.shadows import Shadows

_logger = logging.getLogger(__name__)

#: Seconds between two looks at pods and groups that wait.
BEAT_SECONDS: Final = 1.0
GROUPS_BEAT_SECONDS: Final = 2.0
#: Seconds between two flushes of the queue's backoff and of pods that have waited too long, as in kube-scheduler.
BACKOFF_FLUSH_SECONDS: Final = 1.0
UNSCHEDULABLE_FLUSH_SECONDS: Final = 30.0


class Reader(Protocol):
    """The part that reads, as this one calls it while it runs."""

    async def wait_synced(self) -> None:
        """Return when every first list is complete."""

    def watch_arrivals(self, plugins: AbstractSet[str]) -> None:
        """Watch what the plugins of the profiles in effect follow, and nothing else."""


class DecidingPart:
    """One scheduler with its profiles.

    Attributes:
        replica: identity of this replica, as marks and explanations name it.
        now: seconds since 1970, for all limits that compare with timestamps of the API server.
        cluster: nodes, pods on them, and all other objects.
        column_budget: memory for the columns that are kept between decisions, of all profiles and shadows together.
        shadows: profiles that decide beside others and bind nothing.
        plugin_watch: records the failures of plugins.
        queue: the waiting pods.
        marks: keeps marks of decisions that may end the process.
        scheduler: decides and binds.
        registry: the plugins that exist here.
        live: the profiles in effect.
        profiles: keeps the profiles; the handler of profiles calls it.
        unclaimed: finds pods that no profile takes.
    """

    def __init__(
        self,
        info: ReplicaInfo,
        options: EngineOptions,
        heard: Listeners,
        takeover: Takeover,
        writing: WritingPart,
        reading: Callable[[], Reader],
    ) -> None:
        """Build a scheduler, its profiles, and what tells of pods that wait. Start none of it.

        Args:
            info: this replica.
            options: options of the engine.
            heard: called at attempts, and at queueing hints.
            takeover: says whether this replica may decide.
            writing: the scheduler's ports.
            reading: returns the part that reads. Called while the scheduler runs.
        """
        client, events, status, leads = writing.client, writing.events, writing.status, takeover.may_write
        self._writing, self._reading = writing, reading
        self.replica, self.now = info.replica.identity, SteadyClock()
        self.cluster = Cluster()
        self.column_budget = ColumnBudget(column_bytes())
        PLUGIN_BYTES.limit = plugin_bytes()
        self.shadows = Shadows(self.cluster, self._build_shadow, time.perf_counter, lambda: datetime.now(UTC))
        self.plugin_watch = PluginWatch(untouched=options.check_plugins)
        observers = Observers((*heard.attempts, self.plugin_watch), (self.shadows.decided,), heard.groups, (self.shadows,))
        self.queue = SchedulingQueue(
            self._policy, time.monotonic, observers.pod_entered, heard.hints, slices=A_SLICE, wall=self.now
        )  # fmt: skip
        groups = GroupStatusKeeper(self.cluster, writing.group_status, events, writing.native_version, writing.composite_version)
        self.marks = MarkKeeper(
            MarkStore(client.sending(Traffic.BIND), info.namespace, leads), self.replica, self.queue, self.cluster, now=self.now
        )
        ports = Ports(events, status, writing.evictor, observers, groups, precautions=self.marks, since_1970=self.now)
        detail = DecisionDetail(time.perf_counter, on=heard.details)
        cycle = SchedulingCycle(self.cluster, self.queue.nominator, random.Random(options.seed), detail)
        self.scheduler = Scheduler(self.cluster, self.queue, self.evaluator, cycle, ports, time.monotonic, takeover)
        # --- profiles
        self.registry: Registry = in_tree().with_installed(installed_plugins())
        self._extenders = Extenders(client, lambda: self.cluster.node_count)
        self.live: LiveProfiles[Evaluator] = LiveProfiles(self.registry, self._build, self._swapped, self._shadows_changed)
        store = HistoryStore(client, info.namespace)
        history = HistoryKeeper(store, self._standings, info.leads)
        self.profiles = (ProfileKeeper if options.profiles is None else FileProfiles)(
            client, self.live, self.queue, info.leads, StatusReporter(client, ProfileEvents(client, self.replica)), LastGood(store),
            history, self.shadows.report, self.plugin_watch,
        )  # fmt: skip
        remembered = remembered_by(store) if options.profiles is None else nothing_remembered
        self.unclaimed = UnclaimedPods(self.queue, self.cluster, lambda: self.live.active, self.profiles.standings, events, remembered)
        # --- what runs
        members = WaitingMembers(self.queue, self.cluster.pod_groups, self._policy, StatusChannels(events, status, groups))
        kept_out = KeptOutPods(self.queue, events, status)
        at_beats = partial(while_leading, BEAT_SECONDS)
        self._scheduling = Tasks({"scheduler": self._schedule_when_synced})
        self._keepers = Tasks(
            {
                "events for waiting pods": self.queue.sweeps.run,
                "backoff flush": partial(every, BACKOFF_FLUSH_SECONDS, self._flush_backoff),
                "unschedulable flush": partial(every, UNSCHEDULABLE_FLUSH_SECONDS, self.queue.flush_unschedulable),
                "giving up": self.scheduler.given_up.run,
                "decision marks": partial(at_beats, leads, partial(self.marks.beat, events, status), int),
                "profile status": self.profiles.run,
                "profile history": history.run,
                "group status": partial(every, BEAT_SECONDS, groups.tell_running),
                "gated groups": partial(while_leading, GROUPS_BEAT_SECONDS, leads, members.look, members.told.clear),
                "pods whose namespace may not use their profile": partial(at_beats, leads, kept_out.look, kept_out.told.clear),
                "pods that no profile takes": partial(
                    at_beats, lambda: leads() and self.profiles.loaded, self.unclaimed.look, self.unclaimed.reset
                ),
                "shadows": self.shadows.run,
                "plugin watch": partial(
                    at_beats, leads, partial(self.plugin_watch.tell, self.queue, events, status), self.plugin_watch.told.clear
                ),
            }
        )

    @property
    def runs(self) -> bool:
        """Whether pods are decided: from `start` until `drain`."""
        return bool(self._scheduling.tasks)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks that run."""
        return [*self._scheduling.tasks, *self._keepers.tasks]

    def start(self) -> None:
        """Begin to decide once every list is complete, and start the keepers."""
        self._scheduling.start()
        self._keepers.start()

    async def drain(self) -> bool:
        """Stop deciding, and finish the bindings under way. Returns whether all of them ended in time."""
        await self._scheduling.stop()
        return await self.scheduler.drain()

    async def stop(self) -> None:
        """End the keepers."""
        await self._keepers.stop()

    async def close(self) -> None:
        """Close the plugins of the profiles in effect, and the extenders' connections."""
        for active in self.live.active.values():
            active.evaluator.runtime.close()
        await self._extenders.close()

    def evaluator(self, scheduler_name: str) -> Evaluator | None:
        """Find the evaluator in effect for a schedulerName; None if no profile takes its pods."""
        active = self.live.by_scheduler_name(scheduler_name)
        return None if active is None else active.evaluator

    def namespace_gates(self) -> Iterator[tuple[str, Callable[[PodInfo], bool]]]:
        """Iterate over schedulerNames, each with the check whether a pod's namespace may not use the profile."""
        return ((name, active.evaluator.runtime.namespace_gate.keeps_out) for name, active in self.live.active.items())

    def _policy(self, scheduler_name: str) -> QueuePolicy | None:
        evaluator = self.evaluator(scheduler_name)
        return None if evaluator is None else ProfilePolicy(evaluator.runtime)

    def _standings(self) -> Mapping[str, ProfileStanding]:
        return self.profiles.standings()

    async def _schedule_when_synced(self) -> None:
        await self._reading().wait_synced()
        _logger.info("synced: %d nodes, %d pods on them", self.cluster.node_count, self.cluster.pod_count_total)
        await self.scheduler.run()

    def _build_shadow(self, profile: ResolvedProfile, cluster: Cluster) -> Evaluator:
        """Build a shadow's evaluator, without extenders and with ports that send nothing."""
        guarding = self.plugin_watch.guarding(profile)
        handle = ProfileHandle(cluster, guarding=guarding, budget=self.column_budget, now=self.now)
        return handle.evaluator(profile, self.registry)

    def _build(self, profile: ResolvedProfile) -> Evaluator:
        if profile.shadows is not None:
            return self._build_shadow(profile, Cluster())  # tells whether it can be built; `Shadows` builds the one that decides
        writing, queue, scheduler = self._writing, self.queue, self.scheduler
        handle = ProfileHandle(
            self.cluster, writing.binder, queue.nominator, scheduler.waiting, writing.volumes, writing.claims, writing.announce,
            members=queue.pod_groups, guarding=self.plugin_watch.guarding(profile), budget=self.column_budget, now=self.now,
            wake=queue.alarms.wake_after, evictions=scheduler.evictions, activate=queue.activate, patcher=writing.patcher,
        )  # fmt: skip
        return handle.evaluator(profile, self.registry, self._extenders.make(profile))

    def _swapped(self, swap: Swap[Evaluator]) -> None:
        """Pass on that another generation or profile takes the pods of a schedulerName."""
        before, after = swap.before, swap.after
        self._extenders.swapped(swap)
        if before is not None:
            before.evaluator.runtime.close()
        if after is not None:
            after.evaluator.runtime.start()
            self.unclaimed.claimed(swap.scheduler_name)
        elif before is not None:
            self.unclaimed.lost(swap.scheduler_name, before.profile.name)
        in_question = None if before is None or after is None else reconsidered(before.profile, after.profile)
        self.queue.reprioritise(swap.scheduler_name, in_question)
        if after is not None:
            self.queue.sweeps.keep_out(swap.scheduler_name, after.evaluator.runtime.namespace_gate.keeps_out)
        self._follow_profiles()

    def _shadows_changed(self, shadows: Mapping[str, Active[Evaluator]]) -> None:
        """Pass on the shadows in effect."""
        self.shadows.adopt(active.profile for active in shadows.values())
        self._follow_profiles()

    def _follow_profiles(self) -> None:
        in_effect = (*self.live.active.values(), *self.live.shadows.values())
        self._reading().watch_arrivals({name for active in in_effect for name in active.profile.plugin_names})

    def _flush_backoff(self) -> None:
        """End the backoff of a slice of pods, and of the next in the event loop's next turn: a mass of pods may be due in one second."""
        if self.queue.flush_backoff(A_SLICE) >= A_SLICE:
            asyncio.get_running_loop().call_soon(self._flush_backoff)
