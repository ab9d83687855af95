"""The figures of a run: placements, speed, use of nodes before and after the change, and reasons. Pure functions.

The outcome of each pod of a run, and the end of the run. Pure: each call brings the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np
from msgspec.structs import replace

from placewright.api.annotations import Decision, read_decision
from placewright.api.objects import Node, NodeName, Pod, PodKey
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.scheduler.cycle import cut
from placewright_lab.figures.figures import Reason, ResourceUse, node_uses, reasons_of
from placewright_lab.readers.openb import is_gpu

#: Seconds without a placement after which a run with unplaced pods is over. Retries happen every ten seconds or sooner,
#: so that a full cluster shows well before the limit.
QUIET_SECONDS: Final = 4.0


#: Characters of a reason.
_LONGEST: Final = 400
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


@dataclass(frozen=True, slots=True)
class Generation:
    """The placements of one generation of a profile, and the use of nodes by these pods alone, by resource."""

    profile: str
    generation: int
    placed: int
    use: Mapping[str, ResourceUse]


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds from created to bound, and placements a second from the first creation to the last placement."""

    pods_per_second: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Summary:
    """A run's outcome.

    Attributes:
        nodes, pods: numbers of nodes and pods.
        states: pods by state.
        generations: placements by profile and generation, with profile "" for pods that carry no decision.
        use: use of nodes at the end, by resource.
        speed: speed of the placements; None if no pod was placed.
        reasons: reasons why pods have no place, the most frequent first.
    """

    nodes: int
    pods: int
    states: Mapping[State, int]
    generations: Sequence[Generation]
    use: Mapping[str, ResourceUse]
    speed: Speed | None
    reasons: Sequence[Reason]

    @property
    def honest(self) -> bool:
        """True if every pod has an outcome: a place, or a reason."""
        return not self.states.get(State.WAITING) and not self.states.get(State.GONE)


def summarise(tracker: Tracker, nodes: Sequence[Node], pods: Mapping[PodKey, Pod]) -> Summary:
    """Sum up a run. `nodes` and `pods` are the created ones."""
    placed = {key: fate for key, fate in tracker.fates.items() if fate.state is State.PLACED}
    waiting = (fate.message or "no decision yet" for fate in tracker.fates.values() if fate.state is not State.PLACED)
    infos = {key: PodInfo(replace(pod, metadata=replace(pod.metadata, uid=key))) for key, pod in pods.items()}
    generations: dict[tuple[str, int], dict[PodKey, TrackedPod]] = {}
    for key, fate in placed.items():
        generations.setdefault(fate.decided_by, {})[key] = fate
    return Summary(
        nodes=len(nodes),
        pods=len(tracker.fates),
        states=dict(Counter(fate.state for fate in tracker.fates.values())),
        generations=[Generation(*who, len(fates), _use(nodes, fates, infos)) for who, fates in sorted(generations.items())],
        use=_use(nodes, placed, infos),
        speed=_speed(tracker.times()),
        reasons=[Reason(cut(each.what, _LONGEST), each.pods, cut(each.example, _LONGEST)) for each in reasons_of(waiting)],
    )


def _use(nodes: Sequence[Node], placed: Mapping[PodKey, TrackedPod], pods: Mapping[PodKey, PodInfo]) -> dict[str, ResourceUse]:
    """Return the use of nodes by these pods alone, by label: `cpu`, `memory`, and `gpu` if a node has one."""
    cluster = Cluster()
    for node in nodes:
        cluster.set_node(node)
    for key, fate in placed.items():
        cluster.assume(pods[key].on(fate.node), fate.node)
    found = {"gpu" if is_gpu(use.resource) else use.resource: use for use in node_uses(cluster)}
    return {label: found[label] for label in ("cpu", "memory", "gpu") if label in found}


def _speed(times: Sequence[tuple[float, float]]) -> Speed | None:
    if not times:
        return None
    # The watch may show a bound pod before the answer to its creation.
    waits = np.array([max(bound - created, 0.0) for created, bound in times])
    whole = max(b for _, b in times) - min(c for c, _ in times)
    p50, p99 = np.percentile(waits, [50, 99])
    return Speed(len(times) / whole if whole > 0 else 0.0, float(p50), float(p99))
