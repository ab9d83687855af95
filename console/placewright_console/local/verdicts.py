"""The verdicts about the waiting pods of a world. Each pod is evaluated by its own profile, and again after changes.

No operator's queue is in it. A pod's sub-queue is where the scheduler would put it: gated if PreEnqueue rejects it,
unschedulable if no node can hold it, active if a node can.

The pods without a node of a file, for the pages of groups, claims and verdicts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.explain.explanation import CurrentVerdict, evaluated
from placewright.framework.runtime.evaluation import Evaluator
from placewright.queue.queued import SubQueue
from placewright_console.local.seenworld import SeenWorld
from placewright_console.pages.pendingpods import GroupTurn, WaitingPlace, unclaimed, unix_seconds
from placewright_console.pages.waitingrows import PendingPod, WaitReason, gate_reason

#: The reason of a pod that has not been evaluated yet.
NOT_YET: Final = WaitReason("", "not evaluated yet")
#: Weight of the latest verdict's seconds.
_SMOOTHING: Final = 0.1


class _Verdict(NamedTuple):
    """The result for a pod, the number of changes that the world had seen, and the time."""

    pod: PodInfo
    changes: int
    at: float
    place: str
    rejections: tuple[WaitReason, ...]


class WaitingVerdicts:
    """Evaluates the pending pods of a world and keeps the results.

    Example:
        verdicts.work(0.02)     # as often as there is time
        verdicts.waiting()      # all pending pods, with the latest verdicts
    """

    def __init__(self, world: SeenWorld, clock: Callable[[], float], rest: float = 0.0) -> None:
        """Evaluate no pod yet.

        Args:
            world: world with the pods.
            clock: seconds, monotonic.
            rest: age up to which a verdict is good enough, as a multiple of the time that all verdicts take. A busy cluster changes all the
                time.
        """
        self._world = world
        self._clock = clock
        self._rest = rest
        #: Seconds that a verdict takes, smoothed.
        self._cost = 0.0
        self._kept: dict[str, _Verdict] = {}
        self._since: dict[str, float] = {}
        self._turn: Iterator[str] = iter(())

    @property
    def unknown(self) -> int:
        """Number of pending pods that have no verdict."""
        return sum(uid not in self._kept for uid in self._world.pending)

    def work(self, seconds: float) -> bool:
        """Evaluate pods for a time: the ones without a verdict, then the ones whose verdict is older than the last change.

        Args:
            seconds: seconds after which no further pod is begun.

        Returns:
            Whether there is more to do.
        """
        for gone in self._kept.keys() - self._world.pending.keys():
            del self._kept[gone]
        for gone in self._since.keys() - self._world.pending.keys():
            del self._since[gone]
        ends = self._clock() + seconds
        while (uid := self._next()) is not None:
            began = self._clock()
            self._kept[uid] = self._evaluated(self._world.pending[uid])
            self._cost += _SMOOTHING * (self._clock() - began - self._cost)
            if self._clock() >= ends:
                return True
        return False

    def waiting(self) -> Iterator[PendingPod]:
        """Yield all pending pods with their latest verdicts."""
        for uid, pod in self._world.pending.items():
            known = self._kept.get(uid)
            place, rejections = (known.place, known.rejections) if known is not None else ("", (NOT_YET,))
            profile = pod.scheduler_name if pod.scheduler_name in self._world.evaluators else ""
            group = "" if pod.pod_group is None else pod.pod_group.name
            yield PendingPod(pod.namespace, pod.name, profile, place, rejections, self._waits_since(pod), group)

    def standing(self, pod: PodInfo) -> WaitingPlace:
        """Say where a pending pod waits, and since when.

        Returns:
            Its sub-queue as far as it is known.
        """
        known = self._kept.get(pod.uid)
        return WaitingPlace("not evaluated yet" if known is None else known.place, self._waits_since(pod))

    def _next(self) -> str | None:
        """Return the next pod without a verdict of this moment; each pod has its turn before any has another."""
        uid = next((uid for uid in self._turn if self._is_due(uid)), None)
        if uid is None:
            due = sorted((uid for uid in self._world.pending if self._is_due(uid)), key=lambda uid: uid in self._kept)
            self._turn = iter(due)
            uid = next(self._turn, None)
        return uid

    def _is_due(self, uid: str) -> bool:
        pod, known = self._world.pending.get(uid), self._kept.get(uid)
        if pod is None or known is None or known.pod is not pod:
            return pod is not None
        good_for = self._rest * self._cost * len(self._world.pending)
        return known.changes != self._world.changes and self._clock() - known.at >= good_for

    def _evaluated(self, pod: PodInfo) -> _Verdict:
        evaluator = self._world.evaluators.get(pod.scheduler_name)
        place, rejections = self._without_profile(pod) if evaluator is None else self._with_profile(evaluator, pod)
        return _Verdict(pod, self._world.changes, self._clock(), place, rejections)

    def _without_profile(self, pod: PodInfo) -> tuple[str, tuple[WaitReason, ...]]:
        return "", (WaitReason("", unclaimed(pod, self._world.evaluators)),)

    def _with_profile(self, evaluator: Evaluator, pod: PodInfo) -> tuple[str, tuple[WaitReason, ...]]:
        now = evaluated(evaluator, self._world.cluster, pod, briefly=True)
        if now.gated:
            return SubQueue.GATED.value, (gate_reason(pod, "", now.gated),)
        if now.feasible:
            return SubQueue.ACTIVE.value, (WaitReason("", "fits", now.feasible),)
        return SubQueue.UNSCHEDULABLE.value, rejections_of(now)

    def _waits_since(self, pod: PodInfo) -> float:
        if pod.uid not in self._since:
            self._since[pod.uid] = unix_seconds(pod.created) or self._world.began
        return self._since[pod.uid]


def rejections_of(now: CurrentVerdict) -> tuple[WaitReason, ...]:
    """Tell why a pod waits.

    Args:
        now: the verdicts about it. No node can hold it.

    Returns:
        The reasons; a gate, or a plugin that failed, is one.
    """
    told = tuple(WaitReason(each.plugin, each.reason, each.nodes) for each in now.refusals)
    return told or (WaitReason("", now.gated or now.error or now.message),)


#: Share of the time that verdicts about all nodes may take, because one person reads.
LOCAL_SHARE: Final = 0.5


class SeenPending:
    """The pending pods of a world. Implements `PendingPods`."""

    def __init__(self, world: SeenWorld, verdicts: WaitingVerdicts) -> None:
        """Look at a world.

        Args:
            world: world with the pods.
            verdicts: verdicts about them.
        """
        self._world = world
        self._verdicts = verdicts

    def named(self, namespace: str, name: str) -> PodInfo | None:
        """Find a pending pod. O(pending pods)."""
        return next((pod for pod in self.of_namespace(namespace) if pod.name == name), None)

    def of_namespace(self, namespace: str) -> Iterator[PodInfo]:
        """Iterate over the pending pods of a namespace. O(pending pods)."""
        return (pod for pod in self._world.pending.values() if pod.namespace == namespace)

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Return the pending members of a group."""
        return self._world.members.members(ref)

    def standing(self, pod: PodInfo) -> WaitingPlace:
        """Return where the scheduler would put the pod."""
        return self._verdicts.standing(pod)

    def evaluator(self, pod: PodInfo) -> Evaluator | str:
        """Return the evaluator of the pod's profile, or that no profile claims it."""
        return self._world.evaluators.get(pod.scheduler_name) or unclaimed(pod, self._world.evaluators)

    def turn_of(self, ref: GroupRef) -> GroupTurn:
        """Return nothing: a file has no queue."""
        return GroupTurn()
