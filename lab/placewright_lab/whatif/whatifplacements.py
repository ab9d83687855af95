"""Places pods under two profiles: the waiting ones one after the other, and pods of the last hour each by itself.

Both are approximations, and docs/console.md says which.
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

#: Nodes by the pod's uid; None where no node can hold it.
Nodes = Mapping[str, NodeName | None]
#: Kinds of pods by which fragmentation is judged, the most popular first: a larger mix takes long on many nodes.
_MOST_CLASSES: Final = 100
#: Pods that are counted between two looks at the clock.
_PIECE: Final = 500
_HOUR: Final = 3600.0
#: Placements of the last hour that are tried again.
MOST_TRIED: Final = 200


# --- the waiting pods --------------------------------------------------------------------------------------------------------------


def placed(
    trial: TrialCluster, evaluator: Evaluator | None, pods: Sequence[PodInfo], preferred: Nodes, nodes: dict[str, NodeName | None]
) -> Generator[None, None, None]:
    """Place waiting pods one after the other, as a scheduler without other work would. A group gets nodes as a whole or not at all.

    No room is made by preemption, and no extender is asked. The pods stay placed: `trial.take_all_back(pods)` undoes it.

    Args:
        trial: is changed.
        evaluator: of the profile; None for one that cannot be used, which places no pod.
        pods: in the order of the queue. Pods that PreEnqueue keeps are left out.
        preferred: the nodes that are taken where several are equally good, so that chance makes no difference between two profiles.
        nodes: is filled with the node of each pod that was tried.

    Yields:
        After each pod.
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
    """The workload by which fragmentation is judged: all pods, waiting or on nodes, by what they ask for."""

    def __init__(self) -> None:
        self._pods: dict[tuple[tuple[tuple[str, int], ...], bytes], int] = {}

    def count(self, trial: TrialCluster) -> Iterator[None]:
        """Count all pods.

        Args:
            trial: with the pods; it does not change meanwhile.

        Yields:
            After each piece of work.
        """
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
    """Measure the cluster as it stands in the trial.

    Args:
        trial: with or without placements.
        mix: the classes of a `Mix`.

    Returns:
        `empty` nodes; `uses`: resource, requested, allocatable, mean and deviation of the nodes' shares; `fragments`: device, free,
        stranded, and the share of the free ones that a pod of the mix is expected to find useless.
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
        at: the time, seconds since 1970.
    """

    pod: PodInfo
    node: NodeName
    at: float


class RecentSample(NamedTuple):
    """Placements of the last hour.

    Attributes:
        of: number of all of them.
        tried: at most `MOST_TRIED`, spread over the hour, in an order in which the first ones are spread over it, too.
    """

    of: int
    tried: Sequence[Recent]


class LastHour:
    """The pods that got their nodes in the last hour, of all profiles."""

    def __init__(self) -> None:
        self._found: dict[str, list[Recent]] = {}

    def find(self, trial: TrialCluster, seen: Iterable[SeenDecision]) -> Iterator[None]:
        """Find them.

        Args:
            trial: with the pods; it does not change meanwhile.
            seen: placements that were seen as they happened; of all others the pod's condition tells the time.

        Yields:
            After each piece of work.
        """
        times = {each.uid: each.at for each in seen}
        for place, (pod, node, _) in enumerate(trial.cluster.placements()):
            at = times.get(pod.uid) or bound_at(pod)
            if at is not None and trial.now - _HOUR <= at <= trial.now and _is_placed(trial, pod, node):
                self._found.setdefault(pod.scheduler_name, []).append(Recent(pod, node, at))
            if place % _PIECE == 0:
                yield

    def of(self, scheduler_name: str) -> RecentSample:
        """Take a sample of one profile's placements.

        Args:
            scheduler_name: of the profile.

        Returns:
            The sample.
        """
        found = sorted(self._found.get(scheduler_name, ()), key=lambda each: (-each.at, each.pod.key))
        step = max(len(found) / MOST_TRIED, 1.0)
        sample = [found[int(place * step)] for place in range(min(len(found), MOST_TRIED))]
        return RecentSample(len(found), [sample[place] for place in _spread(len(sample))])


def _is_placed(trial: TrialCluster, pod: PodInfo, node: NodeName) -> bool:
    """Whether a scheduler placed the pod, and it stays on a node that there is."""
    return not pod.terminating and MIRROR not in (pod.pod.metadata.annotations or {}) and trial.cluster.row(node) is not None


def _spread(count: int) -> Iterator[int]:
    """Yield all numbers below `count`, so that the first few are spread evenly, too: 0, 4, 2, 6, 1, 3, 5, 7 for 8."""
    seen = set[int]()
    step = 1 << max(count - 1, 1).bit_length()
    while step:
        for place in range(0, count, step):
            if place not in seen:
                seen.add(place)
                yield place
        step //= 2


def chosen_again(trial: TrialCluster, chooser: Chooser, recent: Recent, preferred: NodeName | None) -> NodeName | None:
    """Choose a node for a pod on the cluster as it is now, without the pod.

    Args:
        trial: is as before afterwards.
        chooser: of a profile; reserves nothing.
        recent: the pod, and its node.
        preferred: is taken where several nodes are equally good.

    Returns:
        None where no node can hold it.
    """
    known = trial.cluster.remove_pod(recent.pod.uid)
    assert known is not None
    try:
        found = chooser.find(waiting(recent.pod), _choice(preferred))
    finally:
        trial.cluster.set_pod(known.pod)
    return None if found is None else found.node
