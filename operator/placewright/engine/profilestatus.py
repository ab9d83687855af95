"""Writes the standing of profiles into their status, and an event whenever it changes.

There is at most one write a second for each profile, and none when nothing changed.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from placewright.api.objects import Condition, ObjectMeta
from placewright.api.profile import ProfileStatus, QueueSizes, SchedulingProfile, ShadowStatus
from placewright.framework.runtime.guard import PluginFailures
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, RequestError
from placewright.kube.profiles import ProfileEvents, apply_status
from placewright.profiles.advice import Recommendation
from placewright.profiles.profilestate import OUR_CONDITIONS, READY, PluginFailing, ProfileStanding, Reason, status_of

_logger = logging.getLogger(__name__)

#: Least seconds between two writes of one profile's status.
WRITE_SECONDS: Final = 1.0

#: Most events about one profile that wait to be sent; of a storm of changes the last ones are sent.
_MOST_UNSAID: Final = 20

#: Reasons of events about profiles.
ACTIVE: Final = "ProfileActive"
REJECTED: Final = "ProfileRejected"
#: Reasons of profiles that are told by an event of the same reason.
_EVENTS_OF_THEIR_OWN: Final = (Reason.PLUGIN_HANGING, Reason.PODS_SELECTED_TWICE)


@dataclass(slots=True)
class _Report:
    """The reports about one profile: written ones and queued ones.

    Attributes:
        metadata: metadata of the object as it was last seen.
        conditions: conditions of the object, replaced by the written ones after each write.
        shown: the status as it was first seen.
        written: the status that was written last; None when it must be written anew.
        announced: the standing of the last event.
        unsaid: standings since then, oldest first, which is the order of their events. One that was over before the status was due is
            announced, too. An event is made from the first of these alone, so none is written twice.
        due: the time from which the status may be written again, seconds of the clock.
        failing: the last write failed, and a warning has said so.
        plugins: makes the condition about failing plugins.
    """

    metadata: ObjectMeta
    conditions: Sequence[Condition] = ()
    shown: ProfileStatus = field(default_factory=ProfileStatus)
    written: Mapping[str, Any] | None = None
    announced: ProfileStanding | None = None
    unsaid: deque[ProfileStanding] = field(default_factory=lambda: deque(maxlen=_MOST_UNSAID))
    due: float = 0.0
    failing: bool = False
    plugins: PluginFailing | None = None


@dataclass(eq=False)
class StatusReporter:
    """Writes the status of each profile, and events about it, where they differ from those written last.

    Attributes:
        client: writes the status.
        events: about profiles.
        now: the time of conditions.
        clock: seconds, monotonic, for the pace of writes.
    """

    client: ApiClient
    events: ProfileEvents
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._reports: dict[str, _Report] = {}

    def seen(self, profile: SchedulingProfile) -> None:
        """Take a profile as the API server shows it. If another client has changed its status, it is written anew."""
        metadata, status = profile.metadata, profile.status
        known = self._reports.get(metadata.name)
        if known is None or known.metadata.uid != metadata.uid:
            self._reports[metadata.name] = _Report(metadata, tuple(status.conditions or ()), status)
            return
        known.metadata = metadata
        if known.written is not None and _ours(status) != _ours(msgspec.convert(known.written, ProfileStatus)):
            known.written = None

    def note(self, standing: ProfileStanding) -> None:
        """Queue a standing for an event, unless it is the newest one already. The next may follow before the event can be sent."""
        report = self._reports.get(standing.name)
        if report is not None and standing != (report.unsaid[-1] if report.unsaid else report.announced):
            report.unsaid.append(standing)

    def uid_of(self, name: str) -> str | None:
        """Return the uid of the profile that is reported under a name; None if there is none."""
        report = self._reports.get(name)
        return None if report is None else report.metadata.uid

    def forget(self, name: str) -> None:
        """Drop what was reported of a deleted profile."""
        self._reports.pop(name, None)

    def seconds_until_due(self, name: str) -> float:
        """Seconds until the status of a profile may be written; 0 when it may be now."""
        report = self._reports.get(name)
        return 0.0 if report is None else max(0.0, report.due - self.clock())

    async def report(
        self,
        standing: ProfileStanding,
        pending: QueueSizes,
        hints: Sequence[Recommendation],
        shadow: ShadowStatus | None = None,
        failures: PluginFailures | None = None,
    ) -> None:
        """Write the status and announce the standing, where they changed and are due. An error of the API server is logged, not raised.

        Args:
            standing: standing of the profile at the time of the call.
            pending: the numbers of its pods in the queue.
            hints: recommendations to its author.
            shadow: comparison of its decisions, for a shadow.
            failures: failures of its plugins under the generation in effect.
        """
        report = self._reports.get(standing.name)
        if report is None:
            return
        self.note(standing)
        while report.unsaid and report.unsaid[0] != standing:
            await self._announce_next(report)
        if self.clock() < report.due:
            return
        failing = self._failing(report, standing, failures)
        status = status_of(standing, report.conditions, self.now().strftime("%Y-%m-%dT%H:%M:%SZ"), pending, hints, shadow, failing)
        if report.written != status:
            report.due = self.clock() + WRITE_SECONDS
            await self._write(report, status)
        if report.unsaid and report.unsaid[0] == standing:
            await self._announce_next(report)

    def _failing(self, report: _Report, standing: ProfileStanding, failures: PluginFailures | None) -> Condition | None:
        if standing.active_generation is None or failures is None:
            return None
        if report.plugins is None:
            report.plugins = PluginFailing(self.clock)
        return report.plugins.condition(standing.active_generation, failures, report.conditions)

    async def _write(self, report: _Report, status: Mapping[str, Any]) -> None:
        try:
            # A watch may show the new status before the request is answered, so it counts as written from now on.
            report.written = status
            await apply_status(self.client, report.metadata.name, status)
        except RequestError as problem:
            report.written = None
            if not (isinstance(problem, ApiError) and problem.status == NOT_FOUND):  # then a watch is about to show its deletion
                away = not isinstance(problem, ApiError)  # the client logs once that the API server does not answer
                level = logging.DEBUG if report.failing or away else logging.WARNING
                _logger.log(level, "profile %s: status could not be written, will be tried again: %s", report.metadata.name, problem)
                report.failing = report.failing or not away
            return
        report.failing = False
        report.conditions = msgspec.convert(status["conditions"], tuple[Condition, ...])

    async def _announce_next(self, report: _Report) -> None:
        standing = report.unsaid.popleft()
        first, report.announced = report.announced is None, standing
        if first and _says(report.shown, standing):
            return  # another replica, or this one before it was started again, announced it
        refused = standing.reason.stalls
        kind, reason = ("Warning", REJECTED) if refused else ("Normal", ACTIVE)
        if standing.reason in _EVENTS_OF_THEIR_OWN:
            reason = standing.reason.value
        with contextlib.suppress(RequestError):  # best effort, as all events
            await self.events.record(report.metadata, kind, reason, standing.message)


def _ours(status: ProfileStatus) -> tuple[object, ...]:
    """Return the fields of a status that this operator writes, to be compared."""
    conditions = {each.type: each for each in status.conditions or () if each.type in OUR_CONDITIONS}
    return status.observed_generation, status.active_generation, status.pending, status.shadow, conditions


def _says(status: ProfileStatus, standing: ProfileStanding) -> bool:
    """Whether a status shows a standing already."""
    ready = next((each for each in status.conditions or () if each.type == READY), None)
    if ready is None or status.active_generation != (standing.active_generation or 0):
        return False
    return (ready.observed_generation, ready.reason) == (standing.observed_generation, standing.reason)
