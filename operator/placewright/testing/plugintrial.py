"""One scenario told to one plugin: asked at every step, and compared with itself over time and over pods.

The plugin runs in a profile of its own, under the scheduler's own evaluator, queue and event handlers. Beside the plugin that lives through
the whole scenario, another is built anew at each step: what the two say must be the same.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError
from placewright.framework.interface import (
    FilterPlugin,
    Plugin,
    PreEnqueuePlugin,
    PreparingPlugin,
    QueueSortPlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
)
from placewright.framework.registry import Registry
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import Call, Guarding, PluginFailures
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.status import unschedulable
from placewright.queue import hints
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import SubQueue
from placewright.scheduler.attempts import FailureHandler, Observers
from placewright.scheduler.binding import BindingCycle, WaitingPods
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from placewright.scheduler.policy import ProfilePolicy
from placewright.scheduler.ports import AlwaysLead
from placewright.testing.bindingpoints import BindingPoints
from placewright.testing.objectfields import differing_fields, in_words
from placewright.testing.pluginanswers import PluginQuestions, PodAnswers, checked
from placewright.testing.pluginreport import BreachError, CaseCounts, Promise
from placewright.testing.ports import FakeBinder, FakeEvents, FakeStatus
from placewright.testing.scenarios import WAITING_POD_CHANGED, Change, Scenario

#: The queue's clock stands still: no backoff ends by itself.
_NOW: Final = 100.0
_TRIED_AGAIN: Final = (SubQueue.ACTIVE, SubQueue.BACKOFF)
#: Questions that tell chance from other mistakes: a fair coin shows the same side in one of a thousand million such rows.
_QUESTIONS_ABOUT_CHANCE: Final = 30
#: Columns say which nodes are rejected, and hold no reasons.
_REJECTED: Final = unschedulable("rejected")


class QuietFailures(PluginFailures):
    """Counts failures and lets nothing be logged: the first one ends the run, and the error says it."""

    def note(self, plugin: str, point: str, problem: str) -> bool:
        """Count a failure.

        Args:
            plugin: the plugin's name.
            point: the extension point.
            problem: one sentence.

        Returns:
            False, as for a failure that was logged before: the caller logs nothing.
        """
        super().note(plugin, point, problem)
        return False


@dataclass(frozen=True)
class CheckedPlugin:
    """The plugin that is checked, in its profile.

    Attributes:
        plugin: its class.
        profile: runs it, with no other plugin that filters or scores unless the caller asked for some.
        registry: knows all plugins of the profile.
        by_itself: no other plugin of the profile filters or scores.
    """

    plugin: type[Plugin]
    profile: ResolvedProfile
    registry: Registry
    by_itself: bool


class PluginTrial:
    """One run of one scenario."""

    def __init__(self, subject: CheckedPlugin, scenario: Scenario, tally: CaseCounts) -> None:
        self._subject = subject
        self._name = subject.plugin.name
        # The plugin may write into objects, and the reducer runs the same scenario again.
        self._scenario = scenario = scenario.copied()
        self._tally = tally
        self._waiting = {pod.uid: pod for pod in scenario.waiting}
        self._cluster = Cluster()
        self._guarding = Guarding(QuietFailures(), ours=True)
        self._queue = SchedulingQueue(lambda _name: self._policy, lambda: _NOW)
        # One plugin lives through the whole scenario with its kept columns. Another is asked with its calls watched for
        # writes, so that the watch changes nothing about the first.
        self._kept = self._evaluator(self._guarding)
        self._watched = self._evaluator(Guarding(QuietFailures(), untouched=True, ours=True))
        self._policy = ProfilePolicy(self._kept.runtime)
        events = FakeEvents()
        failures = FailureHandler(self._queue, events, FakeStatus(), AlwaysLead())
        binding = BindingCycle(self._cluster, self._queue, WaitingPods(lambda: _NOW), failures, events, Observers())
        self._handlers = ClusterEventHandlers(self._cluster, self._queue, binding)
        #: Uids of pods that PreEnqueue kept out of the queue before the latest change.
        self._gated: set[str] = set()
        #: Number of changes that were told.
        self.told = 0

    def _evaluator(self, guarding: Guarding) -> Evaluator:
        handle = ProfileHandle(self._cluster, FakeBinder(), self._queue.nominator, members=self._queue.pod_groups, guarding=guarding)
        return handle.evaluator(self._subject.profile, self._subject.registry)

    def run(self) -> None:
        """Tell the scenario, and look at the plugin after the setup and after each change.

        Raises:
            BreachError: the first promise that the plugin breaks, or `REPEATS` if the plugin answers by chance: what it breaks first is
                then drawn, too. `told` says how many changes led there.
        """
        try:
            self._tell()
        except BreachError as breach:
            if breach.breach.promise is not Promise.UNTOUCHED:  # a plugin that writes changes its next answer
                self._ask_about_chance()
            raise

    def _tell(self) -> None:
        for change in self._scenario.setup:
            change.tell(self._handlers)
        before = self._look()
        for change in self._scenario.changes:
            self.told += 1
            # Hints are asked only for pods that the queue holds as rejected when the change comes.
            self._reject(before)
            with _hints_are_not_logged():
                change.tell(self._handlers)
            if change.kind is WAITING_POD_CHANGED and change.item.uid in self._waiting:
                self._waiting[change.item.uid] = change.item
            now = self._look()
            self._woken(before, now, change)
            before = now
        self._sort()

    def _ask_about_chance(self) -> None:
        """Ask a plugin that was built just now the same questions many times. Raises `BreachError` if it gives two answers to one."""
        plugin: Any = self._evaluator(self._guarding).runtime.plugin(self._name)
        questions = PluginQuestions(plugin, self._cluster, CaseCounts(), alone=False, repeat=_QUESTIONS_ABOUT_CHANCE)
        for pod in self._waiting.values():
            try:
                questions.answers(pod)
            except BreachError as breach:
                if breach.breach.promise is Promise.REPEATS:
                    raise

    # --- one moment ------------------------------------------------------------------------------------------------------------------

    def _look(self) -> dict[str, PodAnswers]:
        """Compare everything that can be compared, and return the plugin's answer about each waiting pod, by uid."""
        self._watch()
        # Built just now, this plugin remembers nothing: its answers are the measure of all others.
        fresh = self._evaluator(self._guarding)
        plugin: Any = fresh.runtime.plugin(self._name)
        questions = PluginQuestions(plugin, self._cluster, self._tally)
        found = {uid: questions.answers(pod) for uid, pod in self._waiting.items()}
        self._signatures(plugin, found)
        for uid, pod in self._waiting.items():
            self._kept_equals_fresh(pod, found[uid])
        for pod in self._in_turn():
            self._gives_back(plugin, pod, found[pod.uid])
        return found

    def _in_turn(self) -> list[PodInfo]:
        """Return the pod whose turn it is for checks that are made once a moment."""
        pods = list(self._waiting.values())
        return [pods[self.told % len(pods)]] if pods else []

    def _watch(self) -> None:
        """Ask with every call watched, before any other caller: about all pods at first, then about one a moment."""
        plugin: Any = self._watched.runtime.plugin(self._name)
        questions = PluginQuestions(plugin, self._cluster, CaseCounts(), alone=False)
        turn = self._in_turn()
        for pod in turn if self.told else self._waiting.values():
            answers = questions.answers(pod)
            self._tally.saw(Promise.UNTOUCHED)
            if pod in turn:
                BindingPoints(self._watched, plugin, self._cluster, self._tally).pass_through(pod, answers)

    def _signatures(self, plugin: Any, found: Mapping[str, PodAnswers]) -> None:
        """Pods that share a column, by signature and fingerprint, have the same one."""
        if not isinstance(plugin, FilterPlugin | ScorePlugin):
            return
        first: dict[Any, str] = {}
        for uid, pod in self._waiting.items():
            with checked():
                key = self._shares(plugin, pod, found[uid])
            if key is None or found[uid].error:
                continue
            other = first.setdefault(key, uid)
            if other != uid:
                self._tally.saw(Promise.SIGN)
                if not found[uid].same_columns(found[other]):
                    self._differ(self._waiting[other], pod, found[other], found[uid])

    def _shares(self, plugin: Any, pod: PodInfo, answers: PodAnswers) -> Any:
        """Pods with equal keys share a column; with None a pod shares none."""
        signature = plugin.sign(pod)
        if signature is None or plugin.reads is not Reads.CLUSTER:
            return None if signature is None else (signature,)
        if answers.refused is not None or answers.skipped:
            return None
        fingerprint = plugin.fingerprint(answers.state, self._cluster)
        return None if fingerprint is None else (signature, fingerprint)

    @staticmethod
    def _differ(one: PodInfo, other: PodInfo, said: PodAnswers, too: PodAnswers) -> None:
        fields = ", ".join(in_words(path) for path in differing_fields(one.pod, other.pod)) or "nothing but their names"
        words = f"pods {one.key} and {other.key} have the same signature and differ in {fields}, and {_difference(said, too)}"
        raise BreachError(Promise.SIGN, "Sign", words)

    def _gives_back(self, plugin: Any, pod: PodInfo, before: PodAnswers) -> None:
        """Reserve and Unreserve leave everything as it was; so does Unreserve alone."""
        if not isinstance(plugin, ReservePlugin) or not before.accepted:
            return
        questions, node = PluginQuestions(plugin, self._cluster, CaseCounts(), alone=False), min(before.accepted)
        # Where an earlier plugin's Reserve fails, the scheduler calls Unreserve of plugins whose Reserve was never called.
        for reserves in (True, False):
            state = questions.answers(pod).state
            self._cluster.assume(pod, node)
            try:
                with checked():
                    reserved = not reserves or plugin.reserve(state, pod, node).ok
                with checked(Promise.UNRESERVE):
                    plugin.unreserve(state, pod, node)
            finally:
                self._cluster.forget(pod, node)
            if reserved:
                self._tally.saw(Promise.UNRESERVE)
            after = questions.answers(pod)
            if not after.same_columns(before):
                done = "Reserve and Unreserve" if reserves else "Unreserve alone"
                words = f"after {done} of pod {pod.key} on node {node}, {_difference(before, after, 'the answer before', 'the one now')}"
                raise BreachError(Promise.UNRESERVE, "Unreserve", words)

    # --- over time -------------------------------------------------------------------------------------------------------------------

    def _kept_equals_fresh(self, pod: PodInfo, fresh: PodAnswers) -> None:
        """Columns that were kept through all changes say what a plugin says that was built just now."""
        if fresh.error or not self._subject.by_itself:
            return
        plugin: Any = self._kept.runtime.plugin(self._name)
        if isinstance(plugin, PreparingPlugin):
            # The scheduler may prepare a pod before its turn, and decides the same then.
            for _ in plugin.prepare(pod, self._cluster):
                pass
        promise = self._promise_of(plugin)
        try:
            kept = self._kept_answers(pod)
        except CycleError as problem:
            raise BreachError(promise, _point(plugin), f"with what was kept, pod {pod.key} ends in an error: {problem}") from problem
        if kept is None or kept.same_columns(fresh):
            self._tally.saw(promise)
            return
        # The plugin of the kept column is asked anew. If it still differs, the plugin remembers something; else the column is
        # stale, and `reads` or the fingerprint did not say on what it depends.
        again = PluginQuestions(plugin, self._cluster, CaseCounts(), alone=False).answers(pod)
        point = "Filter" if kept.accepted != fresh.accepted else "Score"
        since = f"now that {self._scenario.changes[self.told - 1].words}" if self.told else "after the setup"
        words = f"{since}, {_difference(fresh, kept, 'a fresh column', 'the kept one')} for pod {pod.key}"
        if not again.same_columns(fresh):
            raise BreachError(Promise.MEMORY, point, f"{words}, because the plugin remembers something of its own")
        says = "its fingerprint is the same" if promise is Promise.FINGERPRINT else f"it says reads = Reads.{plugin.reads.name}"
        raise BreachError(promise, point, f"{words}, because {says}")

    @staticmethod
    def _promise_of(plugin: Any) -> Promise:
        if not isinstance(plugin, FilterPlugin | ScorePlugin):
            return Promise.MEMORY
        return Promise.FINGERPRINT if plugin.reads is Reads.CLUSTER else Promise.READS

    def _kept_answers(self, pod: PodInfo) -> PodAnswers | None:
        """Return the evaluator's answer; None if it does not ask the plugin."""
        evaluation = self._kept.evaluate(pod)
        found = PodAnswers(evaluation.state)
        rows = self._cluster.rows()
        names = {int(row): NodeName(self._cluster.node(int(row)).metadata.name) for row in rows}
        if evaluation.refusal is not None:
            if evaluation.refusal.plugin != self._name:
                return None
            found.rejected = dict.fromkeys(names.values(), evaluation.refusal)
            return found
        found.accepted = {names[row] for row in np.flatnonzero(evaluation.feasible).tolist()}
        found.rejected = {name: _REJECTED for name in names.values() if name not in found.accepted}
        if evaluation.count and self._kept.runtime.score:
            self._kept.score(evaluation)
            parts = self._kept.breakdown(evaluation, evaluation.rows).get(self._name, [])
            found.scores = {names[row]: part.normalised for row, part in zip(evaluation.rows.tolist(), parts, strict=False)}
        return found

    # --- hints -----------------------------------------------------------------------------------------------------------------------

    def _reject(self, found: Mapping[str, PodAnswers]) -> None:
        """Let the queue hold each pod as this plugin has it: gated, rejected, or not at all."""
        gates = isinstance(self._kept.runtime.plugin(self._name), PreEnqueuePlugin)
        for uid in self._waiting:
            self._queue.delete(uid)
        for uid, pod in self._waiting.items():
            if not (found[uid].rejected or gates):
                continue
            self._queue.add(pod)
            queued = self._queue.pop()
            if queued is not None and found[uid].rejected:
                self._queue.return_unschedulable(queued, {self._name})
            elif queued is not None:
                self._queue.done(uid)
        self._gated = {uid for uid in self._waiting if self._queue.locate(uid) is SubQueue.GATED}
        self._tally.gated += len(self._gated)

    def _woken(self, before: Mapping[str, PodAnswers], now: Mapping[str, PodAnswers], change: Change) -> None:
        """Every pod that waits for this plugin, and that it accepts on another node now, is tried again."""
        failures = self._kept.runtime.failures
        if failures.counts[Call(self._name, "QueueingHint")]:
            raise BreachError(Promise.ANSWERS, "QueueingHint", failures.last[Call(self._name, "QueueingHint")])
        for uid, pod in self._waiting.items():
            place = self._queue.locate(uid)
            if uid in self._gated:
                self._lifted(pod, change, gated=place is SubQueue.GATED and not self._goes_along(uid))
            # Nodes that the plugin accepted before are no news: the pod did not wait for them.
            elif place is not None and (helped := now[uid].accepted - before[uid].accepted) and not now[uid].error:
                self._tally.saw(Promise.HINTS)
                if place not in _TRIED_AGAIN:
                    words = f"pod {pod.key} waits because {self._name} rejected it, and goes on waiting although {change.words}"
                    raise BreachError(Promise.HINTS, "QueueingHint", f"{words}, and it is accepted on node {min(helped)} now")

    def _goes_along(self, uid: str) -> bool:
        """Return whether the pod will be tried with another member of its group."""
        queued = self._queue.get(uid)
        group = None if queued is None else queued.pod_group
        return group is not None and any(member.place in _TRIED_AGAIN for member in group.members.values())

    def _lifted(self, pod: PodInfo, change: Change, *, gated: bool) -> None:
        plugin = self._kept.runtime.plugin(self._name)
        if not isinstance(plugin, PreEnqueuePlugin):
            return
        with checked():
            accepted = plugin.pre_enqueue(pod).ok
        self._tally.cases[Promise.HINTS] += accepted
        if accepted and gated:
            words = f"pod {pod.key} is gated by {self._name}, and stays so although {change.words} and PreEnqueue accepts it now"
            raise BreachError(Promise.HINTS, "QueueingHint", words)

    def _sort(self) -> None:
        """Keys of all pods can be compared."""
        plugin = self._kept.runtime.plugin(self._name)
        if not isinstance(plugin, QueueSortPlugin):
            return
        for pod in self._waiting.values():
            with checked():
                plugin.sort_key(pod, _NOW)
            self._tally.saw(Promise.ANSWERS)


@contextmanager
def _hints_are_not_logged() -> Iterator[None]:
    """Silence the queue's log of hints that raise. Here such a hint ends the run, and the error says it."""
    log = logging.getLogger(hints.__name__)
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _point(plugin: Any) -> str:
    return "Filter" if isinstance(plugin, FilterPlugin) else "Score" if isinstance(plugin, ScorePlugin) else "PreFilter"


def _difference(one: PodAnswers, other: PodAnswers, first: str = "one", second: str = "the other") -> str:
    """Where two answers differ, in words."""
    for name in sorted(one.accepted ^ other.accepted):
        takes, rejects = (first, second) if name in one.accepted else (second, first)
        return f"{takes} accepts node {name} where {rejects} rejects it"
    for name in sorted(one.scores.keys() | other.scores.keys()):
        if one.scores.get(name) != other.scores.get(name):
            return f"{first} gives node {name} {one.scores.get(name, 'no score')} where {second} gives {other.scores.get(name, 'no score')}"
    return f"{first} rejects other nodes than {second}"
