"""The answer about one change: two profiles side by side on a trial cluster. Partial results come first, in short steps.

Placement of pods under two profiles: waiting pods one after the other, and pods of the last hour each by itself.

Both are approximations, which docs/console.md describes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.api.podstart import MIRROR, bound_at
from placewright.explain.explanation import CurrentVerdict, evaluated
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import why
from placewright.serving.rights import ALL_NAMESPACES
from placewright.shadow.chooser import Chooser
from placewright.shadow.podgroups import together
from placewright.shadow.tape import Decided, LiveChoice
from placewright_console.local.verdicts import rejections_of
from placewright_console.pages.decisionrows import SeenDecision
from placewright_console.pages.waitingrows import PendingPod, waiting_rows
from placewright_lab.figures.figures import PodClass, classes_of, empty_nodes, fragmentation, node_uses
from placewright_lab.simulation.apiserver import waiting
from placewright_lab.whatif.whatifworld import TrialChooser, TrialCluster

#: Nodes by the pod's uid; None if no node can hold it.
Nodes = Mapping[str, NodeName | None]
#: Number of the most popular kinds of pods that measure fragmentation. A larger mix takes long on many nodes.
_MOST_CLASSES: Final = 100
#: Number of pods that are counted between two looks at the clock.
_PIECE: Final = 500
_HOUR: Final = 3600.0
#: Number of placements of the last hour that are tried again.
MOST_TRIED: Final = 200


# --- the waiting pods --------------------------------------------------------------------------------------------------------------


def placed(
    trial: TrialCluster, evaluator: Evaluator | None, pods: Sequence[PodInfo], preferred: Nodes, nodes: dict[str, NodeName | None]
) -> Generator[None, None, None]:
    """Place waiting pods one after the other, like a scheduler without other work. A group gets nodes as a whole or not at all.

    The trial evicts no pod and asks no extender. The pods stay placed until `trial.take_all_back(pods)`.

    Args:
        trial: cluster, which changes.
        evaluator: evaluator of the profile; None for an invalid profile, which places no pod.
        pods: pods in the order of the queue; pods that PreEnqueue keeps are left out.
        preferred: nodes that win among equally good ones, so that chance makes no difference between two profiles.
        nodes: dictionary that gets the node of each tried pod.
    """
    if evaluator is None:
        return
    chooser = TrialChooser(trial, evaluator)
    for pod in pods:
        if pod.uid in nodes or not evaluator.runtime.run_pre_enqueue(pod).ok:
            yield
            continue
        if pod.pod_group is not None:
            members = _members(evaluator, pods, pod.pod_group)
            nodes.update(dict.fromkeys((each.uid for each in members), None))
            decided = [Decided(each, 0, _choice(preferred.get(each.uid))) for each in members]
            found = yield from together(trial, chooser, pod.pod_group, decided)
            nodes.update((uid, one.node) for uid, one in found.items())
            continue
        one = chooser.find(pod, _choice(preferred.get(pod.uid)))
        if one is not None:
            trial.choose(pod, one.node)
        nodes[pod.uid] = None if one is None else one.node
        yield


def _members(evaluator: Evaluator, pods: Iterable[PodInfo], ref: GroupRef) -> list[PodInfo]:
    return [pod for pod in pods if pod.pod_group == ref and evaluator.runtime.run_pre_enqueue(pod).ok]


def _choice(node: NodeName | None) -> LiveChoice | None:
    return None if node is None else LiveChoice(node, (), {})


class Mix:
    """The workload that measures fragmentation: the requests of all pods, waiting or on nodes."""

    def __init__(self) -> None:
        self._pods: dict[tuple[tuple[tuple[str, int], ...], bytes], int] = {}

    def count(self, trial: TrialCluster) -> Iterator[None]:
        """Count all pods of a trial that does not change meanwhile, piece by piece."""
        pods = [*trial.pending, *(each.pod for each in trial.cluster.placements())]
        for start in range(0, len(pods), _PIECE):
            for each in classes_of(pods[start : start + _PIECE]):
                key = (tuple(sorted(each.requests.items())), each.selection)
                self._pods[key] = self._pods.get(key, 0) + each.pods
            yield

    def classes(self) -> tuple[PodClass, ...]:
        """Return the most popular classes of pods."""
        popular = sorted(self._pods.items(), key=lambda item: -item[1])[:_MOST_CLASSES]
        return tuple(PodClass(dict(requests), selection, count) for (requests, selection), count in popular)


def figures(trial: TrialCluster, mix: Sequence[PodClass]) -> dict[str, Any]:
    """Measure the cluster in its present state in the trial, with the classes of a `Mix`.

    Return `empty` nodes, `uses` and `fragments`. `uses` have resource, requested, allocatable, mean and deviation of the nodes' shares.
    `fragments` have device, free, stranded, and the expected useless share of free devices for a pod of the mix.
    """
    cluster = trial.cluster
    return {
        "empty": empty_nodes(cluster),
        "uses": [[each.resource, each.requested, each.allocatable, each.mean, each.deviation] for each in node_uses(cluster)],
        "fragments": [[each.resource, each.free, each.stranded, each.rate] for each in fragmentation(cluster, mix)],
    }


# --- the last hour -----------------------------------------------------------------------------------------------------------------


class Recent(NamedTuple):
    """A pod that got its node in the last hour.

    Attributes:
        at: time of the placement, seconds since 1970.
    """

    pod: PodInfo
    node: NodeName
    at: float


class RecentSample(NamedTuple):
    """Placements of the last hour.

    Attributes:
        of: number of all of them.
        tried: the first `MOST_TRIED` of them, in an order that spreads any first part over the hour.
    """

    of: int
    tried: Sequence[Recent]


class LastHour:
    """The pods that got their nodes in the last hour, of all profiles."""

    def __init__(self) -> None:
        self._found: dict[str, list[Recent]] = {}

    def find(self, trial: TrialCluster, seen: Iterable[SeenDecision]) -> Iterator[None]:
        """Find the pods in a trial that does not change meanwhile, piece by piece.

        `seen` has placements that were observed. The conditions of all other pods tell the time.
        """
        times = {each.uid: each.at for each in seen}
        for place, (pod, node, _) in enumerate(trial.cluster.placements()):
            at = times.get(pod.uid) or bound_at(pod)
            if at is not None and trial.now - _HOUR <= at <= trial.now and _is_placed(trial, pod, node):
                self._found.setdefault(pod.scheduler_name, []).append(Recent(pod, node, at))
            if place % _PIECE == 0:
                yield

    def of(self, scheduler_name: str) -> RecentSample:
        """Return a sample of the placements of one scheduler's profile."""
        found = sorted(self._found.get(scheduler_name, ()), key=lambda each: (-each.at, each.pod.key))
        step = max(len(found) / MOST_TRIED, 1.0)
        sample = [found[int(place * step)] for place in range(min(len(found), MOST_TRIED))]
        return RecentSample(len(found), [sample[place] for place in _spread(len(sample))])


def _is_placed(trial: TrialCluster, pod: PodInfo, node: NodeName) -> bool:
    """Return whether a scheduler placed the pod on a node that still exists, and the pod is still there."""
    return not pod.terminating and MIRROR not in (pod.pod.metadata.annotations or {}) and trial.cluster.row(node) is not None


def _spread(count: int) -> Iterator[int]:
    """Yield all numbers below `count` so that the first few are spread evenly: 0, 4, 2, 6, 1, 3, 5, 7 for 8."""
    seen = set[int]()
    step = 1 << max(count - 1, 1).bit_length()
    while step:
        for place in range(0, count, step):
            if place not in seen:
                seen.add(place)
                yield place
        step //= 2


def chosen_again(trial: TrialCluster, chooser: Chooser, recent: Recent, preferred: NodeName | None) -> NodeName | None:
    """Choose a node for a pod on the present cluster, without the pod. Return None if no node can hold it.

    Args:
        trial: cluster, which is unchanged afterwards.
        chooser: chooser of a profile that reserves nothing.
        recent: pod with its node.
        preferred: node that wins among equally good ones.
    """
    known = trial.cluster.remove_pod(recent.pod.uid)
    assert known is not None
    try:
        found = chooser.find(waiting(recent.pod), _choice(preferred))
    finally:
        trial.cluster.set_pod(known.pod)
    return None if found is None else found.node


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
