"""Counts attempts: the observer of the scheduler, with one set of series for each profile.

It is called between decisions, at thousands of pods a second: series that were looked up once are kept, and work that can wait until a
scrape waits.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Protocol

import numpy as np

from placewright.framework.runtime.resolvedprofile import ExtensionPoint, ResolvedProfile
from placewright.framework.status import Code
from placewright.framework.steps import FILTER, POST_FILTER, PRE_FILTER, PRE_SCORE, SCORE, WAIT_ON_PERMIT
from placewright.observability.metrics import own, upstream
from placewright.observability.metrics.series import CounterSeries, Floats, Histogram, Histograms, Series, SeriesOfEvents
from placewright.scheduler.attempts import Attempt, Result

#: Upstream's label of pods that took more attempts than it counts one by one.
_MANY: Final = "15+"
_COUNTED_SINGLY: Final = 14
#: Prefix of steps in which extenders are asked. Upstream has no such extension point.
_EXTENDER: Final = "Extender"

#: Placements of one shape that are noted before they are counted, at most, and shapes that are remembered.
_ROWS: Final = 512
_SHAPES: Final = 256
_ASKED: Final = {
    PRE_FILTER: ExtensionPoint.PRE_FILTER,
    FILTER: ExtensionPoint.FILTER,
    PRE_SCORE: ExtensionPoint.PRE_SCORE,
    SCORE: ExtensionPoint.SCORE,
}

#: Numbers of every placement: attempts, and seconds in all, until a node was chosen, and since it was first tried.
_OF_ALL: Final = 4


class CountReader(Protocol):
    """A second reader of the counts, by profile and generation. It is called when noted placements are counted, hundreds at once."""

    def placed(self, profile: str, generation: int, deciding: Floats, binding: Floats) -> None:
        """Count bound pods.

        Args:
            profile: its schedulerName.
            generation: generation of the profile.
            deciding: seconds to the choice of a node, shape (pods,).
            binding: seconds from the first attempt to the end, shape (pods,).
        """

    def failed(self, profile: str, generation: int) -> None:
        """Count an attempt that bound nothing."""


class AttemptSeries(SeriesOfEvents):
    """All series of attempts. It is the scheduler's `Observer`, called at the end of each attempt.

    Attributes:
        tally: reads the counts, too; None if there is no reader.
    """

    def __init__(self) -> None:
        self.tally: CountReader | None = None
        self.attempts = CounterSeries(upstream.SCHEDULE_ATTEMPTS)
        self.durations = Histograms(upstream.ATTEMPT_DURATION)
        self.steps = Histograms(upstream.EXTENSION_POINT_DURATION)
        self.extenders = Histograms(own.EXTENDER_DURATION)
        self.evaluations = CounterSeries(upstream.PLUGIN_EVALUATIONS)
        self._algorithm = Histograms(upstream.ALGORITHM_DURATION)
        self._sli = Histograms(upstream.SLI_DURATION)
        self._tries = Histograms(upstream.POD_ATTEMPTS)
        self._flushed = CounterSeries(upstream.AFTER_FLUSH)
        self._permit = Histograms(upstream.PERMIT_WAIT)
        self._plugins = Histograms(upstream.PLUGIN_DURATION)
        self._preemptions = CounterSeries(upstream.PREEMPTION_ATTEMPTS)
        self._victims = Histograms(upstream.PREEMPTION_VICTIMS)
        self._incoming = CounterSeries(upstream.INCOMING_PODS)
        self._profiles: dict[str, ProfileSeries] = {}
        # Those without labels are there from the first scrape on, so that rates begin at 0.
        self._chosen = self._algorithm.at()
        self._tried = self._tries.at()
        self._late = self._flushed.at()
        self._made_room = self._preemptions.at()
        self._leaving = self._victims.at()

    # --- the observer ----------------------------------------------------------------------------------------------------------

    def attempt_ended(self, attempt: Attempt) -> None:
        """Count an attempt that has ended."""
        self.of(attempt.profile).take(attempt)
        if attempt.steps.plugins:
            for plugin, point, seconds, outcome in attempt.steps.plugins:
                self._plugins.at(plugin, point, outcome.value).observe(seconds)
        if attempt.flushed and attempt.result is Result.SCHEDULED:
            self._late.value += 1
        elif attempt.failure is not None and attempt.schedule_result is None:
            self._refused(attempt)

    def pod_entered(self, place: str, event: str) -> None:
        """Count a move of a pod into a place of the queue.

        Args:
            place: part of the queue.
            event: that moved the pod.
        """
        self._incoming.at(place, event).value += 1

    def placed(self, numbers: Floats, decided: Floats, since_ready: Floats) -> None:
        """Count bound pods. All arrays have the shape (pods,).

        Args:
            numbers: attempts that the pod took.
            decided: seconds to the choice of a node.
            since_ready: seconds from the first attempt to the end.
        """
        self._tried.observe_all(numbers)
        self._chosen.observe_all(decided)
        for number in np.unique(numbers):
            label = str(int(number)) if number <= _COUNTED_SINGLY else _MANY
            self._sli.at(label).observe_all(since_ready[numbers == number])

    def _refused(self, attempt: Attempt) -> None:
        asked = any(step.name == POST_FILTER for step in attempt.steps.taken)
        if asked and attempt.profile.preempting:
            self._made_room.value += 1
        if attempt.failure is not None and attempt.failure.victims:
            self._leaving.observe(len(attempt.failure.victims))

    # --- profiles ----------------------------------------------------------------------------------------------------------------

    def of(self, profile: ResolvedProfile) -> ProfileSeries:
        """Find the series of a profile, which may be a new generation."""
        found = self._profiles.get(profile.scheduler_name)
        if found is None:
            found = self._profiles[profile.scheduler_name] = ProfileSeries(self, profile)
        elif found.profile is not profile:
            found.adopt(profile)
        return found

    def step(self, name: str, outcome: Code, profile: str) -> Histogram:
        """Find the histogram of a step's times.

        Returns:
            A histogram that may be kept.
        """
        if name == WAIT_ON_PERMIT:
            return self._permit.at(outcome.value)
        family = self.extenders if name.startswith(_EXTENDER) else self.steps
        return family.at(name.removeprefix(_EXTENDER), outcome.value, profile)

    def keep_only(self, profiles: Mapping[str, ResolvedProfile]) -> None:
        """Drop the series of profiles that are in effect no more, and begin those of the others."""
        for name in self._profiles.keys() - profiles.keys():
            self._profiles.pop(name).settle()
        for each in (self.attempts, self.durations, self.steps, self.extenders, self.evaluations):
            at = each.family.labels.index("profile")
            each.forget(lambda labels, at=at: labels[at] not in profiles)  # type: ignore[misc]
        for profile in profiles.values():
            self.of(profile)

    def settle(self) -> None:
        """Count the noted placements of all profiles."""
        for profile in self._profiles.values():
            profile.settle()

    def shares(self) -> dict[tuple[str, str], float]:
        """Return the part of each plugin in the scores of chosen nodes, by the profile object's name and plugin."""
        return {(one.profile.name, plugin): share for one in self._profiles.values() for plugin, share in one.shares()}

    def series(self) -> Sequence[Series]:
        """List the series, for export."""
        self.settle()
        return super().series()


#: Facts that placements share if they are counted in the same series. First come the names of the steps, which all succeeded. Then come
#: plugins that skipped Filter, plugins that skipped Score, and plugins with points in the score.
_Shape = tuple[tuple[str, ...], frozenset[str], frozenset[str], tuple[str, ...]]


class ProfileSeries:
    """The series of one profile.

    Nearly all attempts at high rates are placements that differ in numbers alone. Such placements are noted as rows of numbers, and counted
    hundreds at once. A visit to twenty histograms between two decisions costs more than counting, because they left the processor's cache.

    Attributes:
        profile: the generation in effect.
    """

    def __init__(self, all_of_them: AttemptSeries, profile: ResolvedProfile) -> None:
        name = profile.scheduler_name
        self.profile = profile
        self._all = all_of_them
        self._name = name
        self._attempts = {result: all_of_them.attempts.at(result.value, name) for result in Result}
        #: Rows of each shape: `_OF_ALL` numbers of a placement, then the seconds of each step and the points of each scorer.
        self._noted: dict[_Shape, array[float]] = {}
        self._points: dict[str, int] = {}

    def adopt(self, profile: ResolvedProfile) -> None:
        """Take another generation of the profile. Attempts of the one before that end later are counted as this one's."""
        if profile.generation < self.profile.generation and profile.uid == self.profile.uid:
            return
        self.settle()
        self.profile = profile
        self._points = {}

    def take(self, attempt: Attempt) -> None:
        """Count an attempt that has ended."""
        if attempt.result is not Result.SCHEDULED or not self._note(attempt):
            self._count(attempt)

    def _note(self, attempt: Attempt) -> bool:
        """Note a placement; False if not all of its steps were successes."""
        ended, decided, result, steps = attempt.ended, attempt.decided, attempt.schedule_result, attempt.steps
        assert ended is not None and decided is not None and result is not None
        row = [attempt.number, ended - attempt.started, decided - attempt.started, ended - attempt.first_tried]
        names = []
        for name, _, seconds, outcome in steps.taken:
            if outcome is not Code.SUCCESS:
                return False
            names.append(name)
            row.append(seconds)
        shape = (tuple(names), frozenset(steps.skip_filter), frozenset(steps.skip_score), tuple(result.plugins))
        rows = self._noted.get(shape)
        if rows is None:
            if len(self._noted) >= _SHAPES:
                self.settle()
            rows = self._noted[shape] = array("d")
        row.extend(result.plugins.values())
        rows.extend(row)
        if len(rows) >= _ROWS * len(row):
            self._settle(shape, rows)
        return True

    def settle(self) -> None:
        """Count the noted placements."""
        noted, self._noted = self._noted, {}
        for shape, rows in noted.items():
            self._settle(shape, rows)

    def _settle(self, shape: _Shape, rows: array[float]) -> None:
        steps, skip_filter, skip_score, scorers = shape
        columns = np.array(rows).reshape(-1, _OF_ALL + len(steps) + len(scorers)).T
        del rows[:]
        number, took, decided, since_ready = columns[:_OF_ALL]
        times = len(number)
        self._attempts[Result.SCHEDULED].value += times
        self._all.durations.at(Result.SCHEDULED.value, self._name).observe_all(took)
        self._placed(number, decided, since_ready)
        for name, seconds in zip(steps, columns[_OF_ALL:], strict=False):
            self._all.step(name, Code.SUCCESS, self._name).observe_all(seconds)
        for plugin, points in zip(scorers, columns[_OF_ALL + len(steps) :], strict=True):
            self._points[plugin] = self._points.get(plugin, 0) + int(points.sum())
        self._evaluated(steps, skip_filter, skip_score, times)

    def _count(self, attempt: Attempt) -> None:
        """Count one attempt in all of its series."""
        result, ended, decided, steps = attempt.result, attempt.ended, attempt.decided, attempt.steps
        assert result is not None and ended is not None and decided is not None
        self._attempts[result].value += 1
        self._all.durations.at(result.value, self._name).observe(ended - attempt.started)
        for step in steps.taken:
            self._all.step(step.name, step.outcome, self._name).observe(step.seconds)
        passed = [step.name for step in steps.taken if step.outcome is not Code.ERROR]
        self._evaluated(passed, steps.skip_filter, steps.skip_score, 1)
        if result is Result.SCHEDULED:
            single = [np.array([value]) for value in (attempt.number, decided - attempt.started, ended - attempt.first_tried)]
            self._placed(*single)
        elif self._all.tally is not None:
            self._all.tally.failed(self._name, self.profile.generation)
        if attempt.schedule_result is not None:
            for plugin, product in attempt.schedule_result.plugins.items():
                self._points[plugin] = self._points.get(plugin, 0) + product

    def _placed(self, number: Floats, decided: Floats, since_ready: Floats) -> None:
        self._all.placed(number, decided, since_ready)
        if self._all.tally is not None:
            self._all.tally.placed(self._name, self.profile.generation, decided, since_ready)

    def _evaluated(self, steps: Collection[str], skip_filter: AbstractSet[str], skip_score: AbstractSet[str], times: int) -> None:
        """Count an evaluation for each plugin at each passed extension point, without plugins that skipped it."""
        for point, where in _ASKED.items():
            if point not in steps and point != PRE_FILTER:
                continue
            skipped = skip_filter if point in (PRE_FILTER, FILTER) else skip_score
            for plugin in self.profile.at(where):
                if plugin not in skipped:
                    self._all.evaluations.at(plugin, point, self._name).value += times

    def shares(self) -> Iterator[tuple[str, float]]:
        """Yield the plugins, each with its share of the points of chosen nodes."""
        whole = sum(map(abs, self._points.values()))
        for plugin, points in self._points.items():
            yield plugin, abs(points) / whole if whole else 0.0
