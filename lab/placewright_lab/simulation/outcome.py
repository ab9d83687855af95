"""The result of a simulation: for every pod its node and the time, or the reason for none, and the cluster at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from placewright.api.objects import Node, NodeName, PodKey
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster, PodOnNode
from placewright.cluster.objects import ClusterObject
from placewright.scheduler.attempts import Attempt, Result
from placewright.scheduler.giveupreports import EVENT_REASON
from placewright.scheduler.ports import Clock, EventType


@dataclass(slots=True)
class Fate:
    """One pod that the profile had to place. Times are virtual seconds from the beginning.

    Attributes:
        pod: the pod at its creation.
        created: time of its creation; 0 for pods that waited at the beginning.
        node: its node, also after it left; None while it waits.
        bound: time of its binding.
        left: time of its deletion, end or preemption; None while it is there.
        attempts: number of attempts.
        message: reason why it has no node, in kube-scheduler's words; empty for a pod with a node.
        plugins: plugins that rejected it last.
        score: total of its node; 0 if there was no choice.
        parts: weighted part of each plugin in the total.
        rejected: True after an attempt without a node, even if it got a node later.
        preempted: True if it had to leave for another.
        preempted_others: keys of pods that had to leave for it.
        given_up: True after it waited longer than giveUpAfterSeconds, even if it got a node later.
    """

    pod: PodInfo
    created: float
    node: NodeName | None = None
    bound: float | None = None
    left: float | None = None
    attempts: int = 0
    message: str = ""
    plugins: frozenset[str] = frozenset()
    score: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    rejected: bool = False
    preempted: bool = False
    preempted_others: list[PodKey] = field(default_factory=list)
    given_up: bool = False

    @property
    def pending(self) -> bool:
        """True while it waits for a node."""
        return self.node is None and self.left is None


@dataclass(slots=True)
class Outcome:
    """The result of one profile on a scenario.

    Attributes:
        profile: name of the profile for people.
        seed: seed of the choice among equally good nodes.
        fates: fates by uid, in the order in which pods came.
        cluster: cluster at the end, with all its pods.
        ended: virtual seconds at the end.
        wall_seconds: real seconds that it took.
        evicted: uids of pods of the beginning that had to leave for others.
        passed_over: keys of pods that stay where they are, because no profile has the name of their scheduler. These are pods that wait at
            the end. If pods on nodes are placed anew, pods on nodes are among them.
        plugin_failures: sentence for each extension point at which a plugin failed. Figures of such an outcome mean little.
    """

    profile: str
    seed: int
    fates: dict[str, Fate]
    cluster: Cluster
    ended: float = 0.0
    wall_seconds: float = 0.0
    evicted: list[str] = field(default_factory=list)
    passed_over: list[PodKey] = field(default_factory=list)
    plugin_failures: list[str] = field(default_factory=list)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle for another process: the cluster's columns are built again from its objects."""
        known = (list(self.cluster.nodes()), list(self.cluster.placements()), list(_objects(self.cluster)))
        rest = (self.ended, self.wall_seconds, self.evicted, self.passed_over, self.plugin_failures)
        return _from_another_process, (self.profile, self.seed, self.fates, *known, rest)

    def placed(self) -> Iterator[Fate]:
        """Return the pods that got a node, even if they have left it since."""
        return (fate for fate in self.fates.values() if fate.node is not None)

    def pending(self) -> Iterator[Fate]:
        """Return the pods that wait at the end."""
        return (fate for fate in self.fates.values() if fate.pending)


def _objects(cluster: Cluster) -> Iterator[ClusterObject]:
    """Yield the assumed state of the objects, like the cluster's readers see it."""
    yield from cluster.objects.shown()
    yield from cluster.objects.devices.claims.values()


def _from_another_process(
    profile: str,
    seed: int,
    fates: dict[str, Fate],
    nodes: Iterable[Node],
    placements: Iterable[PodOnNode],
    objects: Iterable[ClusterObject],
    rest: tuple[Any, ...],
) -> Outcome:
    cluster = Cluster()
    for item in objects:
        cluster.objects.put(item)
    for node in nodes:
        cluster.set_node(node)
    for placement in placements:
        if placement.assumed:
            cluster.assume(placement.pod, placement.node)
        else:
            cluster.set_pod(placement.pod)
    return Outcome(profile, seed, fates, cluster, *rest)


class Fates:
    """Hears of pods that come and leave, and of every attempt, as observer and as recorder of events.

    Attributes:
        by_uid: pods to place, in the order in which they came.
        evicted: uids of other pods that had to leave.
    """

    def __init__(self, clock: Clock) -> None:
        self.by_uid: dict[str, Fate] = {}
        self.evicted: list[str] = []
        self._clock = clock

    # --- changes of the world -----------------------------------------------------------------------------------------------

    def came(self, pod: PodInfo) -> None:
        """Note that a pod wants a node."""
        self.by_uid[pod.uid] = Fate(pod, self._clock())

    def left(self, uid: str) -> None:
        """Note that a pod is gone."""
        fate = self.by_uid.get(uid)
        if fate is not None and fate.left is None:
            fate.left = self._clock()

    def preempted(self, victim: PodInfo, preemptor: PodInfo) -> None:
        """Note that a pod on a node has to leave."""
        fate = self.by_uid.get(victim.uid)
        if fate is None:
            self.evicted.append(victim.uid)
        else:
            fate.preempted = True
        self.by_uid[preemptor.uid].preempted_others.append(PodKey(victim.key))

    # --- told by the scheduler ----------------------------------------------------------------------------------------------

    def attempt_ended(self, attempt: Attempt) -> None:
        """Note the result of an attempt."""
        fate = self.by_uid[attempt.uid]
        fate.attempts = attempt.number
        if attempt.result is Result.SCHEDULED and attempt.schedule_result is not None:
            result = attempt.schedule_result
            fate.node, fate.bound = result.node, attempt.ended
            fate.score, fate.parts = result.score, result.plugins
            fate.message, fate.plugins = "", frozenset()
        elif attempt.failure is not None:
            fate.rejected = True
            fate.message = attempt.failure.message
            fate.plugins = attempt.failure.unschedulable_plugins | attempt.failure.pending_plugins

    def pod_entered(self, place: str, event: str) -> None:
        """Do nothing, because a pod's attempts tell its history."""

    def record(self, pod: PodInfo, kind: EventType, reason: str, action: str, note: str) -> None:
        """Note that a pod is given up, and drop all other events."""
        if reason == EVENT_REASON:
            self.by_uid[pod.uid].given_up = True

    # --- at the end ---------------------------------------------------------------------------------------------------------

    def explain(self, why: Callable[[PodInfo], tuple[str, str]]) -> None:
        """Ask for the message and the plugin of each pod that waits and was never tried."""
        for fate in self.by_uid.values():
            if fate.pending and not fate.message:
                message, plugin = why(fate.pod)
                fate.message, fate.plugins = message, frozenset({plugin} if plugin else ())
