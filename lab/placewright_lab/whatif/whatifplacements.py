"""Placement of pods under two profiles: waiting pods one after the other, and pods of the last hour each by itself.

Both are approximations, which docs/console.md describes.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.api.podstart import MIRROR, bound_at
from placewright.framework.runtime.evaluation import Evaluator
from placewright.shadow.chooser import Chooser
from placewright.shadow.podgroups import together
from placewright.shadow.tape import Decided, LiveChoice
from placewright_console.pages.decisionrows import SeenDecision
from placewright_lab.figures.figures import empty_nodes, node_uses
from placewright_lab.figures.fragmentation import PodClass, classes_of, fragmentation
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
