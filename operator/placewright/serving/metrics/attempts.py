"""Attempts become figures: the observer that counts them, one set of series a profile.

Called in the midst of deciding, at thousands of pods a second: what is looked up is kept, and what can wait until somebody asks, waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from placewright.framework.resolved import ExtensionPoint, ResolvedProfile
from placewright.framework.status import Code
from placewright.framework.steps import FILTER, POST_FILTER, PRE_FILTER, PRE_SCORE, SCORE, WAIT_ON_PERMIT, Step, Steps
from placewright.scheduler.attempts import Attempt, Result
from placewright.serving.metrics import own, upstream
from placewright.serving.metrics.series import Cell, Counters, Histogram, Histograms, Series

#: What upstream calls the label of pods that took more attempts than it counts one by one.
_MANY: Final = "15+"
_COUNTED_SINGLY: Final = 14
_PREEMPTION: Final = "DefaultPreemption"
#: Steps of ours begin so where extenders are asked; upstream has no such extension point.
_EXTENDER: Final = "Extender"

#: Attempts that wait to be counted, at most; they keep their pods in memory.
_AT_ONCE: Final = 64
_LATER: Final = frozenset({FILTER, PRE_SCORE, SCORE})
_ASKED: Final = {
    PRE_FILTER: ExtensionPoint.PRE_FILTER,
    FILTER: ExtensionPoint.FILTER,
    PRE_SCORE: ExtensionPoint.PRE_SCORE,
    SCORE: ExtensionPoint.SCORE,
}

#: What an attempt says of the plugins that were asked: those that skip Filter and Score, and the last step of the four that it came to.
_Course = tuple[frozenset[str], frozenset[str], str]


class AttemptSeries:
    """Everything that attempts are counted in; hears of their ends as the scheduler's `Observer`."""

    def __init__(self) -> None:
        self.attempts = Counters(upstream.SCHEDULE_ATTEMPTS)
        self.durations = Histograms(upstream.ATTEMPT_DURATION)
        self.steps = Histograms(upstream.EXTENSION_POINT_DURATION)
        self.extenders = Histograms(own.EXTENDER_DURATION)
        self.evaluations = Counters(upstream.PLUGIN_EVALUATIONS)
        self._algorithm = Histograms(upstream.ALGORITHM_DURATION)
        self._sli = Histograms(upstream.SLI_DURATION)
        self._tries = Histograms(upstream.POD_ATTEMPTS)
        self._flushed = Counters(upstream.AFTER_FLUSH)
        self._permit = Histograms(upstream.PERMIT_WAIT)
        self._plugins = Histograms(upstream.PLUGIN_DURATION)
        self._preemptions = Counters(upstream.PREEMPTION_ATTEMPTS)
        self._victims = Histograms(upstream.PREEMPTION_VICTIMS)
        self._incoming = Counters(upstream.INCOMING_PODS)
        self._entered: dict[tuple[str, str], Cell] = {}
        self._profiles: dict[str, ProfileSeries] = {}
        self._waiting: list[Attempt] = []
        # Those without labels are there from the first scrape on, so that rates begin at 0.
        self._chosen = self._algorithm.at()
        self._tried = self._tries.at()
        self._late = self._flushed.at()
        self._made_room = self._preemptions.at()
        self._leaving = self._victims.at()

    # --- the observer ----------------------------------------------------------------------------------------------------------

    def attempt_ended(self, attempt: Attempt) -> None:
        """Count it, soon: a few dozen in a row take half the time of as many one by one, with a decision between each two."""
        self._waiting.append(attempt)
        if len(self._waiting) >= _AT_ONCE:
            self._count_waiting()

    def _count_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for attempt in waiting:
            self._count(attempt)

    def _count(self, attempt: Attempt) -> None:
        self.of(attempt.profile).take(attempt)
        if attempt.steps.plugins:
            for plugin, point, seconds, outcome in attempt.steps.plugins:
                self._plugins.at(plugin, point, outcome.value).observe(seconds)
        if attempt.result is Result.SCHEDULED:
            self._placed(attempt)
        elif attempt.failure is not None and attempt.placement is None:
            self._refused(attempt)

    def pod_entered(self, place: str, event: str) -> None:
        """Count it."""
        cell = self._entered.get((place, event))
        if cell is None:
            cell = self._entered[place, event] = self._incoming.at(place, event)
        cell.value += 1

    def _placed(self, attempt: Attempt) -> None:
        number = attempt.number
        if attempt.decided is not None and attempt.ended is not None:
            self._chosen.observe(attempt.decided - attempt.started)
            self._sli.at(str(number) if number <= _COUNTED_SINGLY else _MANY).observe(attempt.ended - attempt.first_tried)
        self._tried.observe(number)
        if attempt.flushed:
            self._late.value += 1

    def _refused(self, attempt: Attempt) -> None:
        asked = any(step.name == POST_FILTER for step in attempt.steps.taken)
        if asked and _PREEMPTION in attempt.profile.at(ExtensionPoint.POST_FILTER):
            self._made_room.value += 1
        if attempt.failure is not None and attempt.failure.victims:
            self._leaving.observe(len(attempt.failure.victims))

    # --- profiles ----------------------------------------------------------------------------------------------------------------

    def of(self, profile: ResolvedProfile) -> ProfileSeries:
        """The series of a profile, which may be a new generation."""
        found = self._profiles.get(profile.scheduler_name)
        if found is None:
            found = self._profiles[profile.scheduler_name] = ProfileSeries(self, profile)
        elif found.profile is not profile:
            found.adopt(profile)
        return found

    def permit_waited(self, step: Step) -> None:
        """A pod waited to be permitted."""
        self._permit.at(step.outcome.value).observe(step.seconds)

    def keep_only(self, profiles: Mapping[str, ResolvedProfile]) -> None:
        """Forget profiles that are in effect no more, and begin those that are: by schedulerName."""
        self._count_waiting()
        for name in self._profiles.keys() - profiles.keys():
            del self._profiles[name]
        for each in (self.attempts, self.durations, self.steps, self.extenders, self.evaluations):
            at = each.family.labels.index("profile")
            each.forget(lambda labels, at=at: labels[at] not in profiles)  # type: ignore[misc]
        for profile in profiles.values():
            self.of(profile)

    def shares(self) -> dict[tuple[str, str], float]:
        """By profile object's name and plugin, the plugin's part in the scores of chosen nodes."""
        return {(one.profile.name, plugin): share for one in self._profiles.values() for plugin, share in one.shares()}

    def series(self) -> Iterable[Series]:
        """For export."""
        self._count_waiting()
        for profile in self._profiles.values():
            profile.settle()
        return (
            self.attempts, self.durations, self._algorithm, self._sli, self._tries, self._flushed, self.steps, self._plugins,
            self.evaluations, self._permit, self._preemptions, self._victims, self._incoming, self.extenders,
        )  # fmt: skip


class ProfileSeries:
    """The series of one profile, looked up.

    Attributes:
        profile: the generation in effect.
    """

    def __init__(self, all_of_them: AttemptSeries, profile: ResolvedProfile) -> None:
        name = profile.scheduler_name
        self.profile = profile
        self._all = all_of_them
        self._name = name
        self._attempts = {result: all_of_them.attempts.at(result.value, name) for result in Result}
        self._durations: dict[Result, Histogram] = {}
        self._successes: dict[str, Histogram] = {}
        self._courses: Counter[_Course] = Counter()
        self._points: dict[str, int] = {}

    def adopt(self, profile: ResolvedProfile) -> None:
        """Another generation decides from now on. Late ends of attempts of the one before are counted as its own."""
        if profile.generation < self.profile.generation and profile.uid == self.profile.uid:
            return
        self.settle()
        self.profile = profile
        self._points = {}

    def take(self, attempt: Attempt) -> None:
        """Count an attempt."""
        result, ended = attempt.result, attempt.ended
        assert result is not None  # it has ended
        assert ended is not None
        self._attempts[result].value += 1
        duration = self._durations.get(result)
        if duration is None:
            duration = self._durations[result] = self._all.durations.at(result.value, self._name)
        duration.observe(ended - attempt.started)
        self._courses[_course(attempt.steps)] += 1
        self._take_steps(attempt.steps.taken)
        if attempt.placement is not None:
            points = self._points
            for plugin, product in attempt.placement.plugins.items():
                points[plugin] = points.get(plugin, 0) + product

    def _take_steps(self, steps: list[Step]) -> None:
        successes = self._successes
        for step in steps:
            found = successes.get(step[0]) if step[3] is Code.SUCCESS else None
            if found is not None:
                found.observe(step[2])
            else:
                self._take_rare(step)

    def _take_rare(self, step: Step) -> None:
        """A step that is seen for the first time, or was no success."""
        name, outcome = step.name, step.outcome
        if name == WAIT_ON_PERMIT:
            self._all.permit_waited(step)
            return
        family = self._all.extenders if name.startswith(_EXTENDER) else self._all.steps
        found = family.at(name.removeprefix(_EXTENDER), outcome.value, self._name)
        if outcome is Code.SUCCESS:
            self._successes[name] = found
        found.observe(step.seconds)

    def settle(self) -> None:
        """Work out what has been waiting for somebody to ask: how often each plugin had a say."""
        courses, self._courses = self._courses, Counter()
        for (skip_filter, skip_score, reached), times in courses.items():
            for point, where in _ASKED.items():
                skipped = skip_filter if point in (PRE_FILTER, FILTER) else skip_score
                for plugin in self.profile.at(where):
                    if plugin not in skipped:
                        self._all.evaluations.at(plugin, point, self._name).value += times
                if point == reached:
                    break

    def shares(self) -> Iterator[tuple[str, float]]:
        """Plugins with their parts."""
        whole = sum(map(abs, self._points.values()))
        for plugin, points in self._points.items():
            yield plugin, abs(points) / whole if whole else 0.0


def _course(steps: Steps) -> _Course:
    reached = PRE_FILTER
    for step in steps.taken:
        if step[0] in _LATER and step[3] is not Code.ERROR:
            reached = step[0]
        elif step[0] == POST_FILTER:
            break
    return frozenset(steps.skip_filter), frozenset(steps.skip_score), reached
