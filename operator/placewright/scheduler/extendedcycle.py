"""The scheduling cycle with extenders: the same steps as `cycle`, with questions over HTTP in between.

While an extender answers, the cluster changes, because pods of other profiles are decided. So the answer is applied to the
columns as they are when it arrives. If other nodes have become feasible meanwhile, the extender is asked again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from placewright.api.extenders import MAX_EXTENDER_SCORE, ExtenderError, NodeVictims
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    Alternatives,
    Diagnosis,
    Extender,
    IntColumn,
    PostFilterResult,
    Rejection,
)
from placewright.framework.runtime.evaluation import Evaluation, Evaluator
from placewright.framework.runtime.podcolumns import rows_named
from placewright.framework.runtime.profileruntime import EXTENDER
from placewright.framework.status import Status, error, unresolvable, unschedulable
from placewright.framework.steps import EXTENDER_FILTER, EXTENDER_PREEMPT, EXTENDER_PRIORITIZE, Steps
from placewright.scheduler.binding import end_now
from placewright.scheduler.cycle import NOTHING_TRIED, ScheduleResult, SchedulingCycle, broken, make_room, no_placement

_logger = logging.getLogger(__name__)

#: Most rounds of questions in one attempt, because nodes may become feasible faster than extenders answer.
ROUNDS: Final = 3
LEAD_LOST: Final = "this replica is not the active one any more"
#: Extenders score 0 to 10 and plugins 0 to 100.
_SCALE: Final = MAX_NODE_SCORE // MAX_EXTENDER_SCORE


@dataclass(slots=True)
class _Verdict:
    """The extenders' answer about some nodes."""

    asked: frozenset[NodeName]
    kept: frozenset[NodeName]
    rejections: dict[NodeName, Status] = field(default_factory=dict)


class ExtendedCycle:
    """Decides pods with the help of extenders."""

    def __init__(self, cluster: Cluster, cycle: SchedulingCycle, active: Callable[[], bool] = lambda: True) -> None:
        """Start without questions under way.

        Args:
            cluster: columns, which are only read.
            cycle: the scheduling cycle.
            active: returns whether this replica may decide.
        """
        self._cluster = cluster
        self._cycle = cycle
        self._active = active
        self._asking: set[asyncio.Timeout] = set()

    async def place(
        self, evaluator: Evaluator, pod: PodInfo, steps: Steps, within: frozenset[NodeName] | None = None, *, alone: bool = True
    ) -> ScheduleResult:
        """Choose a node. Nothing is awaited after the last look at the columns, so the decision holds when it is returned.

        Args:
            evaluator: evaluator of the pod's profile.
            pod: a pod without a node.
            steps: record of the time of each extension point.
            within: names of the nodes that are candidates; None for all nodes.
            alone: whether room is made by preemption when no node fits. For a member, its group makes room.

        Returns:
            The decision.

        Raises:
            FitError: no node fits, something broke, or this replica lost the lead.
        """
        if not self._active():
            raise broken(LEAD_LOST)
        asking = asyncio.timeout(None)  # a task of its own would return the answer one turn of the event loop later
        self._asking.add(asking)
        try:
            async with asking:
                return await _Asking(self._cluster, self._cycle, evaluator, pod, steps, within, alone).place()
        except TimeoutError:
            if asking.expired():
                raise broken(LEAD_LOST) from None
            raise
        finally:
            self._asking.discard(asking)

    def give_up(self) -> None:
        """Fail every attempt that waits for an extender, so that a silent extender cannot delay this replica's next term."""
        for asking in self._asking:
            end_now(asking)


@dataclass(frozen=True, slots=True)
class _Asking:
    """One pod's attempt with extenders."""

    cluster: Cluster
    cycle: SchedulingCycle
    evaluator: Evaluator
    pod: PodInfo
    steps: Steps
    within: frozenset[NodeName] | None
    alone: bool

    async def place(self) -> ScheduleResult:
        """Choose a node; raise `FitError` when there is none."""
        evaluation = self._evaluate()
        verdict = _Verdict(frozenset(), frozenset())
        for _ in range(ROUNDS):
            result = await self._on_nominated_node(evaluation)
            if result is not None:
                return result
            evaluation = self._evaluate()
            known = set(self._names(evaluation))
            self.cycle.sample(self.evaluator.runtime, evaluation)
            verdict = await self._filter(self._names(evaluation))
            result = await self._on_best(verdict)
            if result is not None:
                return result
            evaluation = self._evaluate()
            if known.issuperset(self._names(evaluation)):
                break
        return await self._fail(evaluation, verdict)

    # --- the columns as they stand --------------------------------------------------------------------------------------------

    def _evaluate(self) -> Evaluation:
        self.steps.begin()
        return self.cycle.evaluate(self.evaluator, self.pod, self.steps, self.within)

    def _evaluate_among(self, kept: Collection[NodeName]) -> Evaluation:
        evaluation = self._evaluate()
        evaluation.feasible = evaluation.feasible & rows_named(self.cluster, kept)
        evaluation.count = int(np.count_nonzero(evaluation.feasible))
        return evaluation

    def _names(self, evaluation: Evaluation) -> list[NodeName]:
        names = (self.cluster.names[row] for row in np.flatnonzero(evaluation.feasible).tolist())
        return [name for name in names if name is not None]

    # --- filter ---------------------------------------------------------------------------------------------------------------

    async def _on_nominated_node(self, evaluation: Evaluation) -> ScheduleResult | None:
        """Return the decision for the nominated node, if the pod fits there and no extender objects."""
        row = self.cycle.nominated_row(evaluation)
        name = None if row is None else self.cluster.names[row]
        if name is None:
            return None
        try:
            with self.steps.step(EXTENDER_FILTER):
                verdict = await self._ask_filters([name])
        except ExtenderError as problem:
            _logger.warning("pod %s: extenders could not be asked about its nominated node %s: %s", self.pod.key, name, problem)
            return None
        again = self._evaluate_among(verdict.kept)
        return self.cycle.best(self.evaluator, again) if again.count else None

    async def _filter(self, names: Sequence[NodeName]) -> _Verdict:
        try:
            with self.steps.step(EXTENDER_FILTER):
                return await self._ask_filters(names)
        except ExtenderError as problem:
            raise broken(str(problem)) from problem

    async def _ask_filters(self, names: Sequence[NodeName]) -> _Verdict:
        """Ask one extender after another, each about the nodes that the ones before it left; raise `ExtenderError`."""
        left, rejections = tuple(names), dict[NodeName, Status]()
        for extender in self._with("filter_verb"):
            if not left:
                break
            try:
                answer = await extender.filter(self.pod, left)
            except ExtenderError as problem:
                self._pass_over(extender, problem)
                continue
            rejections |= {name: unschedulable(reason) for name, reason in answer.failed.items()}
            rejections |= {name: unresolvable(reason) for name, reason in answer.unresolvable.items()}
            left = answer.kept
        return _Verdict(frozenset(names), frozenset(left), rejections)

    # --- prioritize -----------------------------------------------------------------------------------------------------------

    async def _on_best(self, verdict: _Verdict) -> ScheduleResult | None:
        """Return the decision among the nodes that the extenders kept and that still fit; None when there are none."""
        evaluation = self._evaluate_among(verdict.kept)
        scores: dict[str, IntColumn] = {}
        if evaluation.count > 1:
            with self.steps.step(EXTENDER_PRIORITIZE):
                scored = await self._prioritize(self._names(evaluation))
            # Pods were placed while extenders scored, so the nodes that they kept are filtered once more.
            evaluation = self._evaluate_among(verdict.kept)
            scores = {name: self._column(by_node) for name, by_node in scored.items()}
        return self.cycle.best(self.evaluator, evaluation, scores) if evaluation.count else None

    async def _prioritize(self, names: Sequence[NodeName]) -> dict[str, dict[NodeName, int]]:
        """Return the scores of each extender by node. All are asked at once; an extender that fails adds nothing."""
        extenders = list(self._with("prioritize_verb"))
        # Filters narrow the nodes for each other and are asked in turn; scores are independent, and asked at once.
        answers = await asyncio.gather(*(extender.prioritize(self.pod, names) for extender in extenders), return_exceptions=True)
        scores: dict[str, dict[NodeName, int]] = {}
        for extender, answer in zip(extenders, answers, strict=True):
            if isinstance(answer, ExtenderError):
                name = extender.settings.name
                _logger.warning("pod %s: extender %s adds no scores: %s", self.pod.key, name, answer, extra={"about": name})
            elif isinstance(answer, BaseException):
                raise answer
            else:
                factor = extender.settings.weight * _SCALE
                scores[extender.settings.name] = {name: score * factor for name, score in answer.items()}
        return scores

    def _column(self, by_node: Mapping[NodeName, int]) -> IntColumn:
        column = np.zeros(self.cluster.size, np.int64)
        for name, score in by_node.items():
            row = self.cluster.row(name)
            if row is not None:
                column[row] = score
        return column

    # --- no node --------------------------------------------------------------------------------------------------------------

    async def _fail(self, evaluation: Evaluation, verdict: _Verdict) -> ScheduleResult:
        """Raise `FitError`, after trying to make room."""
        diagnosis = self.evaluator.diagnose(evaluation)
        self._blame_extenders(diagnosis, evaluation, verdict)
        refused = self.cycle.detail.refused(self.cluster, diagnosis)
        if not self.alone:
            raise no_placement(diagnosis, NOTHING_TRIED, refused)
        diagnosis.asks_extenders = any(self._with("preempt_verb"))
        made_room = make_room(self.evaluator.runtime, evaluation, diagnosis)
        if made_room.alternatives is not None:
            with self.steps.step(EXTENDER_PREEMPT):
                made_room = await self._agreed(made_room, made_room.alternatives)
        raise no_placement(diagnosis, made_room, refused)

    def _blame_extenders(self, diagnosis: Diagnosis, evaluation: Evaluation, verdict: _Verdict) -> None:
        """Add nodes that the extenders rejected to the diagnosis. Nodes that they left out without a reason have none."""
        for name in self._names(evaluation):
            status, row = verdict.rejections.get(name), self.cluster.row(name)
            if status is not None and row is not None:
                diagnosis.rejections.append(Rejection(status, np.array([row], np.intp)))
        if verdict.kept != verdict.asked:
            diagnosis.unschedulable_plugins.add(EXTENDER)

    async def _agreed(self, made_room: PostFilterResult, alternatives: Alternatives) -> PostFilterResult:
        """Return the preemption that the extenders agree to."""
        victims: Mapping[NodeName, NodeVictims] = alternatives.victims
        asked = False
        for extender in self._with("preempt_verb"):
            if not victims:
                break
            try:
                victims = await extender.preempt(self.pod, victims, self._pods_on)
            except ExtenderError as problem:
                if not extender.settings.ignorable:
                    return PostFilterResult(error(f"preemption: {problem}"))
                self._pass_over(extender, problem)
            else:
                asked = True
        return alternatives.choose(victims) if asked else made_room

    def _pods_on(self, node: NodeName) -> Iterable[PodInfo]:
        """Return all pods of a node; raise KeyError for a node that is gone, whose pods may still be known."""
        if self.cluster.row(node) is None:
            raise KeyError(node)
        return self.cluster.pods_on(node)

    def _with(self, verb: str) -> Iterator[Extender]:
        return (extender for extender in self.evaluator.runtime.extenders_for(self.pod) if getattr(extender.settings, verb))

    def _pass_over(self, extender: Extender, problem: ExtenderError) -> None:
        """Go on without an extender that may be ignored; otherwise raise the problem again."""
        if not extender.settings.ignorable:
            raise problem
        name = extender.settings.name
        _logger.warning("pod %s: extender %s is passed over: %s", self.pod.key, name, problem, extra={"about": name})
