"""The outcome of each pod of a run, and the end of the run. Pure: each call brings the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from placewright.api.annotations import Decision, read_decision
from placewright.api.objects import NodeName, Pod, PodKey

#: Seconds without a placement after which a run with unplaced pods is over. Retries happen every ten seconds or sooner,
#: so that a full cluster shows well before the limit.
QUIET_SECONDS: Final = 4.0


_NOWHERE: Final = NodeName("")


class State(StrEnum):
    """The state of a pod."""

    WAITING = "waiting"
    PLACED = "placed"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    REFUSED = "refused"
    GONE = "gone"


@dataclass(slots=True)
class TrackedPod:
    """One pod's times of creation and binding (seconds), its node, and who decided, or the reason for no node."""

    created: float | None = None
    bound: float | None = None
    node: NodeName = _NOWHERE
    decision: Decision | None = None
    state: State = State.WAITING
    message: str = ""

    @property
    def decided_by(self) -> tuple[str, int]:
        """Profile and generation of the decision; ("", 0) without one."""
        return (self.decision.profile, self.decision.generation) if self.decision else ("", 0)


@dataclass(frozen=True, slots=True)
class RunState:
    """The run at one moment, for a progress display.

    Attributes:
        elapsed: seconds since the first pod was created.
        total, created: numbers of pods that are wanted, and on the API server.
        states: pods by state.
        generations: placements by profile and generation; ("", 0) for pods without a decision.
        rate: placements a second since the first pod was created.
    """

    elapsed: float
    total: int
    created: int
    states: Mapping[State, int]
    generations: Mapping[tuple[str, int], int]
    rate: float

    @property
    def placed(self) -> int:
        """Number of pods on nodes."""
        return self.states.get(State.PLACED, 0)

    @property
    def settled(self) -> int:
        """Number of pods with an outcome for now."""
        return self.total - self.states.get(State.WAITING, 0)


@dataclass
class Tracker:
    """Follows the pods of one run, `keys`, and ignores other pods of the cluster."""

    keys: Iterable[PodKey]
    quiet_seconds: float = QUIET_SECONDS
    fates: dict[PodKey, TrackedPod] = field(init=False)

    def __post_init__(self) -> None:
        self.fates = {key: TrackedPod() for key in self.keys}
        self._states: Counter[State] = Counter({State.WAITING: len(self.fates)})
        self._generations: Counter[tuple[str, int]] = Counter()
        self._created = 0
        self._first: float | None = None
        self._last_placed = 0.0
        self._last_change = 0.0

    def created(self, key: PodKey, now: float) -> None:
        """Note that the API server accepted the pod."""
        fate = self.fates[key]
        if fate.created is None:
            fate.created = now
            self._created += 1
            self._first = now if self._first is None else min(now, self._first)

    def refused(self, key: PodKey, message: str, now: float) -> None:
        """Note that the API server refused the pod."""
        self._move(self.fates[key], State.REFUSED, message, now)

    def seen(self, pod: Pod, now: float) -> None:
        """Note the state of the pod on the API server."""
        fate = self.fates.get(PodKey(f"{pod.metadata.namespace}/{pod.metadata.name}"))
        if fate is None or fate.state is State.REFUSED:
            return
        if pod.spec.node_name:
            self._placed(fate, pod, now)
        elif fate.state is not State.PLACED:
            self._move(fate, *_unplaced(pod), now)

    def gone(self, pod: Pod, now: float) -> None:
        """Note that the pod was deleted. A pod that ran still counts as placed."""
        fate = self.fates.get(PodKey(f"{pod.metadata.namespace}/{pod.metadata.name}"))
        if fate is not None and fate.state is not State.PLACED:
            self._move(fate, State.GONE, "deleted before it was placed", now)

    def finished(self, now: float) -> bool:
        """Return True if every pod is placed, refused or gone, or if no other pod was placed for a while."""
        if self._states[State.WAITING]:
            return False
        if not self._states[State.UNSCHEDULABLE] and not self._states[State.GATED]:
            return True
        return now - max(self._last_placed, self._last_change) >= self.quiet_seconds

    def snapshot(self, now: float) -> RunState:
        """Return the counts at this moment."""
        elapsed = 0.0 if self._first is None else now - self._first
        placed = self._states[State.PLACED]
        rate = placed / elapsed if elapsed > 0 else 0.0
        states = {state: count for state, count in self._states.items() if count}
        return RunState(elapsed, len(self.fates), self._created, states, dict(self._generations), rate)

    def times(self) -> list[tuple[float, float]]:
        """Return the creation and the binding of each bound pod, in seconds.

        If the watch saw the binding before the answer to the creation, the time of the binding counts for both.
        """
        known = ((fate.created, fate.bound) for fate in self.fates.values())
        return [(min(created, bound), bound) for created, bound in known if created is not None and bound is not None]

    def _placed(self, fate: TrackedPod, pod: Pod, now: float) -> None:
        if fate.state is State.PLACED:
            return
        fate.bound, fate.node = now, NodeName(pod.spec.node_name)
        fate.decision = read_decision(pod.metadata.annotations)
        self._generations[fate.decided_by] += 1
        self._last_placed = now
        self._move(fate, State.PLACED, "", now)

    def _move(self, fate: TrackedPod, state: State, message: str, now: float) -> None:
        if fate.state is not state:
            self._states[fate.state] -= 1
            self._states[state] += 1
            self._last_change = now
        fate.state, fate.message = state, message


def _unplaced(pod: Pod) -> tuple[State, str]:
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            if condition.reason == "SchedulingGated":
                return State.GATED, condition.message
            if condition.reason == "Unschedulable":
                return State.UNSCHEDULABLE, condition.message
    return State.WAITING, ""
