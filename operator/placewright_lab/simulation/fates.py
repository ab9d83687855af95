"""What becomes of each pod, written down as the scheduler tells it."""

from __future__ import annotations

from collections.abc import Callable

from placewright.api.objects import PodKey
from placewright.api.pods import PodInfo
from placewright.scheduler.attempts import Attempt, Result
from placewright.scheduler.ports import Clock, EventType
from placewright_lab.simulation.outcome import Fate


class Fates:
    """Hears of pods that come and go, and of every attempt; an observer of the scheduler, and its recorder of events.

    Attributes:
        by_uid: pods that are to be placed, in the order in which they came.
        evicted: uids of other pods that had to leave.
    """

    def __init__(self, clock: Clock) -> None:
        self.by_uid: dict[str, Fate] = {}
        self.evicted: list[str] = []
        self._clock = clock

    # --- what the world does ------------------------------------------------------------------------------------------------

    def came(self, pod: PodInfo) -> None:
        """A pod is to be placed."""
        self.by_uid[pod.uid] = Fate(pod, self._clock())

    def left(self, uid: str) -> None:
        """It is gone."""
        fate = self.by_uid.get(uid)
        if fate is not None and fate.left is None:
            fate.left = self._clock()

    def preempted(self, victim: PodInfo, preemptor: PodInfo) -> None:
        """A pod on a node has to leave."""
        fate = self.by_uid.get(victim.uid)
        if fate is None:
            self.evicted.append(victim.uid)
        else:
            fate.preempted = True
        self.by_uid[preemptor.uid].preempted_others.append(PodKey(victim.key))

    # --- what the scheduler says --------------------------------------------------------------------------------------------

    def attempt_ended(self, attempt: Attempt) -> None:
        """Take down what came of it."""
        fate = self.by_uid[attempt.uid]
        fate.attempts = attempt.number
        if attempt.result is Result.SCHEDULED and attempt.placement is not None:
            placement = attempt.placement
            fate.node, fate.bound = placement.node, attempt.ended
            fate.score, fate.parts = placement.score, placement.plugins
            fate.message, fate.plugins = "", frozenset()
        elif attempt.failure is not None:
            fate.rejected = True
            fate.message = attempt.failure.message
            fate.plugins = attempt.failure.unschedulable_plugins | attempt.failure.pending_plugins

    def pod_entered(self, place: str, event: str) -> None:
        """What happened to it last is known from its attempts."""

    def record(self, pod: PodInfo, kind: EventType, reason: str, action: str, note: str) -> None:
        """Nobody reads events here."""

    # --- at the end ---------------------------------------------------------------------------------------------------------

    def explain(self, why: Callable[[PodInfo], tuple[str, str]]) -> None:
        """Ask (message, plugin) for each pod that waits and was never tried."""
        for fate in self.by_uid.values():
            if fate.pending and not fate.message:
                message, plugin = why(fate.pod)
                fate.message, fate.plugins = message, frozenset({plugin} if plugin else ())
