"""The answer about one change: two profiles side by side on a trial cluster. Partial results come first, in short steps."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.explain.explanation import CurrentVerdict, evaluated
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import why
from placewright.serving.rights import ALL_NAMESPACES
from placewright.shadow.chooser import Chooser
from placewright_console.local.verdicts import rejections_of
from placewright_console.pages.waitingrows import PendingPod, waiting_rows
from placewright_lab.figures.fragmentation import PodClass
from placewright_lab.whatif.whatifplacements import RecentSample, chosen_again, figures, placed
from placewright_lab.whatif.whatifworld import TrialCluster

Line = dict[str, Any]
#: Steps, each with a line or None.
Lines = Generator[Line | None, None, None]
#: Seconds until the first partial result, and between two of them.
_FIRST: Final = 0.1
_BETWEEN: Final = 0.3
#: Seconds after which an answer ends early.
MOST_SECONDS: Final = 30.0
#: Pods, and groups of pods, that an answer names.
_MOST_NAMED: Final = 50


@dataclass(slots=True)
class TriedProfile:
    """One profile on the trial cluster, and the results so far.

    Attributes:
        evaluator: evaluator of the profile; None for an invalid profile.
        problem: reason why the profile is invalid.
        verdicts: verdicts about waiting pods, by uid.
        nodes: nodes of the waiting pods after all were placed; None before.
        figures: figures of the cluster with these pods.
        again: nodes that it chooses now for pods of the last hour, by uid.
    """

    evaluator: Evaluator | None
    problem: str = ""
    verdicts: dict[str, CurrentVerdict] = field(default_factory=dict)
    nodes: dict[str, NodeName | None] | None = None
    figures: Line | None = None
    again: dict[str, NodeName | None] = field(default_factory=dict)

    def placed(self) -> Line:
        """Return the number of waiting pods that got nodes, and the figures of the cluster with them."""
        return {"placed": sum(node is not None for node in (self.nodes or {}).values()), **(self.figures or {})}


@dataclass(frozen=True, slots=True)
class Subject:
    """The cluster and the pods about which both profiles are asked.

    Attributes:
        trial: the cluster.
        pods: waiting pods of the profile, in the order of the queue.
        recent: placements of the profile in the last hour.
        mix: classes of pods that measure fragmentation.
    """

    trial: TrialCluster
    pods: Sequence[PodInfo]
    recent: RecentSample
    mix: Sequence[PodClass]


class Answer:
    """Compares two profiles. If both are the same `TriedProfile`, it describes the present state."""

    def __init__(self, subject: Subject, before: TriedProfile, after: TriedProfile, clock: Callable[[], float]) -> None:
        """Ask nothing yet.

        Args:
            subject: cluster and pods of the question.
            before: unchanged profile, which keeps the results about it.
            after: changed profile.
            clock: function that returns monotonic seconds.
        """
        self._subject = subject
        self._before = before
        self._after = after
        self._clock = clock
        self._ends = clock() + MOST_SECONDS
        self._tells = clock() + _FIRST
        #: True if there was no time for all of it.
        self.cut = False

    def lines(self) -> Lines:
        """Find out everything. Each line of `waiting`, `placing` and `recent` takes the place of the earlier lines of its part."""
        for part in (self._waiting, self._placing, self._recent):
            try:
                yield from part()
            except Exception as problem:  # noqa: BLE001 - a plugin may be out-of-tree code
                yield {"part": part.__name__.strip("_"), "error": why(problem)}

    def _due(self) -> bool:
        now = self._clock()
        if now < self._tells:
            return False
        self._tells = now + _BETWEEN
        return True

    def _late(self) -> bool:
        self.cut = self.cut or self._clock() > self._ends
        return self.cut

    # --- waiting pods ------------------------------------------------------------------------------------------------------------

    def _waiting(self) -> Lines:
        tried = 0
        for tried, pod in enumerate(self._subject.pods, 1):
            for side in (self._before, self._after):
                if pod.uid not in side.verdicts:
                    side.verdicts[pod.uid] = self._verdict(side, pod)
                    yield None
            if self._late():
                break
            if self._due():
                yield self._waiting_line(tried)
        yield self._waiting_line(tried)

    def _verdict(self, side: TriedProfile, pod: PodInfo) -> CurrentVerdict:
        if side.evaluator is None:
            return CurrentVerdict(error=side.problem)
        return evaluated(side.evaluator, self._subject.trial.cluster, pod, briefly=True)

    def _waiting_line(self, tried: int) -> Line:
        comes, goes, fits, gated = list[PendingPod](), list[PendingPod](), [0, 0], [0, 0]
        for pod in self._subject.pods[:tried]:
            before, after = self._before.verdicts[pod.uid], self._after.verdicts[pod.uid]
            for place, now in enumerate((before, after)):
                fits[place] += bool(now.feasible)
                gated[place] += bool(now.gated)
            if after.feasible and not before.feasible:
                comes.append(_told(pod, before))
            elif before.feasible and not after.feasible:
                goes.append(_told(pod, after))
        return {
            "part": "waiting", "tried": tried, "of": len(self._subject.pods), "fits": fits, "gated": gated,
            "comes": len(comes), "goes": len(goes), "comesBy": _by_reason(comes), "goesBy": _by_reason(goes),
        }  # fmt: skip

    # --- placing them --------------------------------------------------------------------------------------------------------------

    def _placing(self) -> Lines:
        for number, side in enumerate((self._before, self._after)):
            if side.nodes is None and not self._late():
                yield from self._place(side, number)
        before, after = self._before, self._after
        if before.nodes is None or after.nodes is None:
            return
        others = [
            [pod.namespace, pod.name, before.nodes.get(pod.uid), after.nodes.get(pod.uid)]
            for pod in self._subject.pods
            if before.nodes.get(pod.uid) != after.nodes.get(pod.uid)
        ]
        yield {
            "part": "placing", "of": len(self._subject.pods), "before": before.placed(), "after": after.placed(),
            "others": len(others), "named": others[:_MOST_NAMED],
        }  # fmt: skip

    def _place(self, side: TriedProfile, number: int) -> Lines:
        """Place the pods under one profile, measure, and take them back, also if the answer ends in the middle."""
        subject, trial = self._subject, self._subject.trial
        nodes: dict[str, NodeName | None] = {}
        steps = placed(trial, side.evaluator, subject.pods, self._before.nodes or {}, nodes)
        try:
            for tried, _ in enumerate(steps, 1):
                if self._late():
                    return
                yield {"part": "placing", "side": number, "tried": tried, "of": len(subject.pods)} if self._due() else None
            side.figures, side.nodes = figures(trial, subject.mix), nodes
        finally:
            steps.close()  # takes back the members of a group that is under way
            trial.take_all_back(subject.pods)

    # --- the last hour -------------------------------------------------------------------------------------------------------------

    def _recent(self) -> Lines:
        tried, trial = 0, self._subject.trial
        sides = [(side, _chooser(trial, side)) for side in (self._before, self._after)]
        for tried, recent in enumerate(self._subject.recent.tried, 1):
            preferred: NodeName | None = recent.node
            for side, chooser in sides:
                if recent.pod.uid not in side.again:
                    side.again[recent.pod.uid] = None if chooser is None else chosen_again(trial, chooser, recent, preferred)
                    yield None
                preferred = side.again[recent.pod.uid]
            if self._late():
                break
            if self._due():
                yield self._recent_line(tried)
        yield self._recent_line(tried)

    def _recent_line(self, tried: int) -> Line:
        others, nowhere, drifted = [], 0, 0
        for recent in self._subject.recent.tried[:tried]:
            pod, node = recent.pod, recent.node
            before, after = self._before.again[pod.uid], self._after.again[pod.uid]
            drifted += before != node
            if before != after:
                nowhere += after is None
                others.append([pod.namespace, pod.name, node, before, after, recent.at])
        return {
            "part": "recent", "tried": tried, "of": self._subject.recent.of, "others": len(others), "nowhere": nowhere, "drifted": drifted,
            "named": others[:_MOST_NAMED],
        }  # fmt: skip


def _chooser(trial: TrialCluster, side: TriedProfile) -> Chooser | None:
    return None if side.evaluator is None else Chooser(trial, side.evaluator, random.Random(0))


def _told(pod: PodInfo, now: CurrentVerdict) -> PendingPod:
    return PendingPod(pod.namespace, pod.name, "", "gated" if now.gated else "", rejections_of(now), 0.0)


def _by_reason(pods: Sequence[PendingPod]) -> list[Any]:
    """Group pods by reasons like in the section `queue`, the largest first: reasons, number, namespace and names."""
    rows = sorted(waiting_rows(pods, ALL_NAMESPACES).values(), key=lambda row: -row["count"])
    return [[row["reasons"], row["count"], row["namespace"], [name for name, _ in row["pods"]]] for row in rows[:_MOST_NAMED]]
