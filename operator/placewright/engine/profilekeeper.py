"""Keeps SchedulingProfiles: applies each generation that Kopf shows, records it, and has its standing written by the active replica.

It also records the failures of plugins: by generation of a profile, as totals for metrics, and on the pods that they hold back.

A PreEnqueue plugin that fails keeps a pod out of the queue. Then no attempt writes the pod's condition, so it is written here.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from placewright.api.decode import DecodeError, convert
from placewright.api.objects import ObjectMeta
from placewright.api.profile import QueueSizes, SchedulingProfile, ShadowStatus
from placewright.engine.profilehistory import HistoryKeeper, LastGood
from placewright.engine.profilestatus import StatusReporter
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import Call, Guarding, PluginFailures
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, ConfigError, RequestError
from placewright.kube.profileadmission import assigns_profiles
from placewright.kube.profileapi import list_profiles
from placewright.kube.serverversion import ServerVersion, SteadyVersion
from placewright.kube.tasks import until_set
from placewright.profiles.advice import Recommendation, Surroundings, advise
from placewright.profiles.live import Active, LiveProfiles, Swap
from placewright.profiles.profilestate import ProfileStanding, Reason
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.attempts import FAILED_SCHEDULING, SCHEDULER_ERROR, Attempt, Result
from placewright.scheduler.ports import EventRecorder, EventType, StatusWriter

#: Generations of a profile whose failures are kept: the one in effect, and those refused since.
_MOST_GENERATIONS: Final = 20


class PluginWatch:
    """The failures of plugins, by profile and generation.

    Attributes:
        totals: failures since the start, by (profile, plugin, extension point).
        told: the message that a gated pod was last told, by its uid.
    """

    def __init__(self, *, untouched: bool = False) -> None:
        """Record nothing yet.

        Args:
            untouched: check after each call whether the plugin wrote into objects, which is slow.
        """
        self.totals: Counter[tuple[str, str, str]] = Counter()
        self.told: dict[str, str] = {}
        self._untouched = untouched
        self._kept: dict[str, dict[int, PluginFailures]] = {}

    def guarding(self, profile: ResolvedProfile) -> Guarding:
        """Return the guard for the plugins of a generation. A generation that is built again gets the same record of failures."""
        kept = self._kept.setdefault(profile.name, {})
        if profile.generation not in kept:
            kept[profile.generation] = PluginFailures(heard=self._counting(profile.name))
            for oldest in sorted(kept)[:-_MOST_GENERATIONS]:
                del kept[oldest]
        return Guarding(kept[profile.generation], self._untouched)

    def failures_of(self, name: str, generation: int | None) -> PluginFailures | None:
        """Find the failures under a generation of a profile.

        Args:
            name: name of the profile.
            generation: None if none is in effect.

        Returns:
            None for a generation that was not built here.
        """
        return None if generation is None else self._kept.get(name, {}).get(generation)

    def attempt_ended(self, attempt: Attempt) -> None:
        """Note whether an attempt failed, under its generation."""
        failures = self.failures_of(attempt.profile.name, attempt.profile.generation)
        if failures is not None and not failures.passed:
            failures.attempted(attempt.uid, failed=attempt.result is Result.ERROR)

    def pod_entered(self, place: str, event: str) -> None:
        """Ignored: only attempts call plugins that can fail a pod.

        Args:
            place: the sub-queue.
            event: that brought the pod there.
        """

    def forget(self, name: str) -> None:
        """Drop the record of a deleted profile."""
        self._kept.pop(name, None)
        for key in [key for key in self.totals if key[0] == name]:
            del self.totals[key]

    def _counting(self, name: str) -> Callable[[Call], None]:
        def heard(call: Call) -> None:
            self.totals[name, call.plugin, call.point] += 1

        return heard

    # --- pods without an attempt ---------------------------------------------------------------------------------------------------

    def tell(self, queue: SchedulingQueue, events: EventRecorder, status: StatusWriter) -> None:
        """Tell the pods that a failing PreEnqueue plugin keeps out, each once for each message.

        Args:
            queue: knows the gated pods.
            events: events of these pods.
            status: status for their PodScheduled condition.
        """
        for uid in [uid for uid in self.told if queue.get(uid) is None]:
            del self.told[uid]
        for failures in [each for kept in self._kept.values() for each in kept.values()]:
            for pod, message in failures.to_tell():
                queued = queue.get(pod.uid)
                if queued is not None and queued.gated and self.told.get(pod.uid) != message:
                    self.told[pod.uid] = message
                    events.record(queued.pod, EventType.WARNING, FAILED_SCHEDULING, "Scheduling", message)
                    status.pod_unscheduled(queued.pod, SCHEDULER_ERROR, message, None)


_logger = logging.getLogger(__name__)

_BEAT_SECONDS: Final = 1.0
#: Beats without any profile after which a warning says that no pod will be placed.
_PATIENT_BEATS: Final = 5
#: Beats between two looks at the admission that gives profiles to pods.
_ADMISSION_BEATS: Final = 60
#: Uids of deleted profiles that are remembered, against late events of a watch that is behind.
_REMEMBERED_GONE: Final = 100
#: The verdict on a generation, as metrics name it.
TAKEN: Final = "success"
REFUSED: Final = "refused"


@dataclass(eq=False)
class ProfileKeeper:
    """Applies profiles to the live ones, and has their history and status written.

    Attributes:
        client: lists profiles.
        live: the profiles in effect.
        queue: its sizes are part of the status.
        may_write: whether this replica is the active one.
        reporter: writes status and events.
        last_good: finds the last good generation of a refused profile.
        history: records generations.
        compared: the comparison of the shadow of a name; None for other profiles.
        watch: the failures of plugins, for the status.
        reloads: counts of judged generations by (profile, verdict), where the verdict is `TAKEN` or `REFUSED`.
    """

    client: ApiClient
    live: LiveProfiles[Evaluator]
    queue: SchedulingQueue
    may_write: Callable[[], bool]
    reporter: StatusReporter
    last_good: LastGood
    history: HistoryKeeper
    compared: Callable[[str], ShadowStatus | None] = lambda _name: None
    watch: PluginWatch = field(default_factory=PluginWatch)

    def __post_init__(self) -> None:
        self.reloads: Counter[tuple[str, str]] = Counter()
        self._seen: dict[str, SchedulingProfile] = {}
        #: Uids of profiles that were deleted; none comes back.
        self._gone: deque[str] = deque(maxlen=_REMEMBERED_GONE)
        self._assigning: bool | None = None
        self._admission_due = 0
        self._unreadable: dict[str, ProfileStanding] = {}
        self._changed = asyncio.Event()
        self._listed = False
        self._version = SteadyVersion(time.monotonic)

    @property
    def loaded(self) -> bool:
        """True once a profile was seen, or a list has shown that there is none."""
        return self._listed or bool(self._seen)

    def take(self, kind: str | None, body: Mapping[str, Any]) -> None:
        """Take an event of a watch of profiles.

        Args:
            kind: the event's type; None for an object of a list.
            body: the object. One that has not the shape of a profile is refused, and the last good generation stays in effect.
        """
        metadata = convert(body["metadata"], ObjectMeta)
        if kind == "DELETED":
            self.remove(metadata.name, metadata.uid)
            return
        seen = self._seen.get(metadata.name)
        earlier = seen is not None and seen.metadata.uid == metadata.uid and metadata.generation < seen.metadata.generation
        if earlier or metadata.uid in self._gone:
            return  # a watch that is behind shows an earlier state of a profile, which may be deleted now
        try:
            self.apply(convert(body, SchedulingProfile))
        except DecodeError as problem:
            self.refuse_unreadable(metadata, str(problem))
        self.history.saw(body)

    def apply(self, profile: SchedulingProfile) -> None:
        """Judge a profile that appeared or changed, and put it into effect unless it is refused."""
        name = profile.metadata.name
        self._seen[name] = profile
        self._unreadable.pop(name, None)
        self.reporter.seen(profile)
        outcome = self.live.apply(profile)
        if not outcome.changed or outcome.standing is None:
            return
        standing = outcome.standing
        self._judged(name, refused=standing.reason.refuses)
        if standing.reason.refuses:
            _logger.error("profile %s: generation %d is refused: %s", name, standing.observed_generation, standing.message)
        else:
            _logger.info("profile %s: %s", name, standing.message)
        self._note(standing, *outcome.others)
        self._say_of_others(outcome.others)
        self._changed.set()

    def remove(self, name: str, uid: str) -> None:
        """Take a deleted profile out of effect. Its pods wait.

        Args:
            name: name of the profile.
            uid: uid of the deleted object. An object of that name with another uid is another profile, and stays.
        """
        seen = self._seen.get(name)
        if seen is None or seen.metadata.uid != uid:
            return
        outcome = self.live.remove(name, uid)
        self._say_deleted(name, outcome.swaps)
        self._note(*outcome.others)
        self._say_of_others(outcome.others)
        self._seen.pop(name)
        self._gone.append(uid)
        self._unreadable.pop(name, None)
        for result in (TAKEN, REFUSED):
            del self.reloads[name, result]
        self.reporter.forget(name)
        self.watch.forget(name)
        self.history.forget(name, uid)
        self._changed.set()

    def server_answered(self, version: ServerVersion) -> None:
        """Let profiles follow the version of the API server, once all API servers have it."""
        minor = self._version.after(version)
        if minor == self.live.kubernetes:
            return
        outcome = self.live.follow(minor)
        if outcome.swaps:
            _logger.info("profiles were built anew, to follow Kubernetes 1.%d", minor)
        self._note(*outcome.others)
        self._say_of_others(outcome.others)
        self._changed.set()

    def _note(self, *standings: ProfileStanding) -> None:
        """Have standings announced, on the active replica alone: every replica judges alike, and one event is enough."""
        if self.may_write():
            for standing in standings:
                self.reporter.note(standing)

    @staticmethod
    def _say_deleted(name: str, swaps: Sequence[Swap[Evaluator]]) -> None:
        for swap in swaps:
            if swap.after is None:
                _logger.warning("profile %s was deleted: pods of schedulerName %r wait", name, swap.scheduler_name)
            else:
                heir = swap.after.profile
                what = "profile %s was deleted: profile %s (generation %d) places the pods of schedulerName %r from now on"
                _logger.warning(what, name, heir.name, heir.generation, swap.scheduler_name)
        if not swaps:
            _logger.info("profile %s was deleted; no pods were its own", name)

    @staticmethod
    def _say_of_others(standings: Sequence[ProfileStanding]) -> None:
        """Log the new standings of profiles that another profile's change touched: an heir of its schedulerName, a shadow of it."""
        for standing in standings:
            level = logging.WARNING if standing.reason.stalls else logging.INFO
            _logger.log(level, "profile %s: %s", standing.name, standing.message)

    async def refresh(self) -> None:
        """Take every profile as it is now, and remove the deleted ones.

        A replica that takes over needs this: Kopf shows no profile to a replica that stands by, and takes a while to list them afterwards.
        The reconciler needs it, because a watch that broke may have missed the deletion of a profile.

        Raises:
            RequestError: the API server did not answer.
            DecodeError: its answer cannot be read.
        """
        known = {name: profile.metadata.uid for name, profile in self._seen.items()}
        try:
            bodies = await list_profiles(self.client)
        except ApiError as problem:
            if problem.status != NOT_FOUND:  # without the definition there is none
                raise
            return
        for body in bodies:
            self.take(None, body)
        listed = {body["metadata"]["name"]: body["metadata"].get("uid", "") for body in bodies}
        for name, uid in known.items():
            if listed.get(name) != uid:
                self.remove(name, uid)
        self._listed = True

    def refuse_unreadable(self, metadata: ObjectMeta, problem: str) -> None:
        """Refuse an object that has not the shape of a profile. The last good generation stays in effect.

        Args:
            metadata: metadata of the object.
            problem: the reason, for its status.
        """
        name = metadata.name
        known = self._unreadable.get(name)
        if known is not None and (known.observed_generation, known.message) == (metadata.generation, problem):
            return
        _logger.error("profile %s: generation %d is refused: %s", name, metadata.generation, problem)
        self._judged(name, refused=True)
        self._seen[name] = SchedulingProfile(metadata=metadata)
        if metadata.uid != self.reporter.uid_of(name):
            self.reporter.seen(self._seen[name])
        self._unreadable[name] = ProfileStanding(name, "", metadata.generation, None, Reason.INVALID_PROFILE, problem)
        self._changed.set()

    async def run(self) -> None:
        """Have the standing of profiles written, on change and at every beat, until cancelled."""
        missed = False
        for beat in itertools.count():
            await until_set(self._changed, self._beat())
            self._changed.clear()
            await self._recall()
            if beat >= _PATIENT_BEATS and self.loaded and not (self._seen or missed):
                missed = True
                _logger.warning("there is no SchedulingProfile: no pod is placed until one is applied, such as manifests/base/profile.yaml")
            if self.may_write():
                await self._look_for_admission(beat)
                await self._tell()

    async def _recall(self) -> None:
        """Put the last recorded good generation into effect for each refused profile that has no generation in effect here."""
        for name, standing in self.standings().items():
            if not standing.reason.stalls or standing.active_generation is not None or standing.reason is Reason.PLUGIN_HANGING:
                continue
            try:
                earlier = await self.last_good.before(self._seen[name])
            except (RequestError, DecodeError) as problem:
                _logger.debug("profile %s: its history cannot be read, will be tried again: %s", name, problem)
                continue
            if earlier is not None and self.live.restore(earlier).changed:
                again = "profile %s: generation %d is in effect again: the newest is refused"
                _logger.warning(again, name, earlier.metadata.generation)

    def _beat(self) -> float:
        """Seconds to wait for a change, less where the status of a profile becomes due earlier."""
        return min([_BEAT_SECONDS, *(wait for name in self._seen if (wait := self.reporter.seconds_until_due(name)))])

    async def _tell(self) -> None:
        active = self.in_effect()
        await asyncio.gather(*(self._tell_of(name, active.get(name)) for name in self.standings()))

    async def _tell_of(self, name: str, active: Active[Evaluator] | None) -> None:
        standing = self._standing(name)  # read here: a generation may have come since the gathered tasks were made
        if standing is None:
            return
        failures = self.watch.failures_of(standing.name, standing.active_generation)
        sizes = self._sizes(standing.scheduler_name if active is None else active.profile.scheduler_name)
        advice = () if active is None else self.advice_on(active)
        await self.reporter.report(standing, sizes, advice, self.compared(standing.name), failures)

    def in_effect(self) -> Mapping[str, Active[Evaluator]]:
        """Return the generations in effect, by name of the profile."""
        return {each.profile.name: each for each in self.live.active.values()}

    def advice_on(self, active: Active[Evaluator]) -> tuple[Recommendation, ...]:
        """Recommendations to the author of a profile in effect."""
        scorers = [type(plugin) for plugin in active.evaluator.runtime.score]
        around = Surroundings(active.evaluator.cluster.resources, self._assigning)
        return advise(active.profile, scorers, active.evaluator.impact, self.live.catalogue, around)

    async def _look_for_admission(self, beat: int) -> None:
        """Look whether pods are given profiles, now and then, if a profile wants to be given."""
        if beat < self._admission_due or not any(each.spec.pods and each.spec.pods.assigns for each in self._seen.values()):
            return
        self._admission_due = beat + _ADMISSION_BEATS
        with contextlib.suppress(RequestError):  # looked for again
            self._assigning = await assigns_profiles(self.client)

    def _judged(self, name: str, *, refused: bool) -> None:
        self.reloads[name, TAKEN] += not refused
        self.reloads[name, REFUSED] += refused

    def standings(self) -> Mapping[str, ProfileStanding]:
        """Return the standing of every profile, by name. An unreadable newest generation is refused, and an earlier one may be active."""
        return {name: standing for name in self._seen if (standing := self._standing(name)) is not None}

    def _standing(self, name: str) -> ProfileStanding | None:
        readable, refused = self.live.standing(name), self._unreadable.get(name)
        if refused is None:
            return readable
        return replace(refused, active_generation=None if readable is None else readable.active_generation)

    def _sizes(self, scheduler_name: str) -> QueueSizes:
        sizes = self.queue.sizes(scheduler_name)
        return QueueSizes(
            active=sizes.active + sizes.in_flight, backoff=sizes.backoff, unschedulable=sizes.unschedulable, gated=sizes.gated
        )


class FileProfiles(ProfileKeeper):
    """Keeps the profiles of a file instead of custom resources (`placewright run --config`): read once, never watched or written.

    The API server need not serve SchedulingProfile then, and the operator needs no right to it.
    """

    def load(self, profiles: Iterable[SchedulingProfile]) -> None:
        """Put profiles into effect.

        Raises:
            ConfigError: a profile cannot take effect; the message names each of them.
        """
        for profile in profiles:
            self.apply(profile)
        refused = [standing for standing in self.standings().values() if standing.reason.refuses]
        if refused:
            raise ConfigError("\n".join(f"profile {standing.name}: {standing.message}" for standing in refused))

    async def refresh(self) -> None:
        """Do nothing: a file is read once."""

    async def run(self) -> None:
        """Wait until cancelled: profiles of a file have no status to write."""
        await asyncio.Event().wait()
