"""The figures of a run: placements, speed, use of nodes before and after the change, and reasons. Pure functions.

The outcome of each pod of a run, and the end of the run. Pure: each call brings the time.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from placewright.api.annotations import Decision, read_decision
from placewright.api.objects import Node, NodeName, Pod, PodKey
from placewright.api.requests import canonical, pod_requests
from placewright_lab.readers.openb import GPU_MILLI

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


_FIT_ERROR: Final = re.compile(r"\d+/\d+ nodes are available: (?P<reasons>\d+ .+?)\.(?: |$)")
_BETWEEN_REASONS: Final = re.compile(r", (?=\d+ )")


@dataclass(frozen=True, slots=True)
class Use:
    """Requested share of one resource in percent, over the nodes that have it. Nothing is requested on `empty` nodes."""

    nodes: int
    empty: int
    min: float
    mean: float
    max: float
    deviation: float


@dataclass(frozen=True, slots=True)
class Generation:
    """The placements of one generation of a profile, and the use of nodes by these pods alone, by resource."""

    profile: str
    generation: int
    placed: int
    use: Mapping[str, Use]


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds from created to bound, and placements a second from the first creation to the last placement."""

    pods_per_second: float
    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class UnplacedReason:
    """A reason why pods have no place, the number of its pods, and one of their messages in full."""

    what: str
    pods: int
    example: str


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
    use: Mapping[str, Use]
    speed: Speed | None
    reasons: Sequence[UnplacedReason]

    @property
    def honest(self) -> bool:
        """True if every pod has an outcome: a place, or a reason."""
        return not self.states.get(State.WAITING) and not self.states.get(State.GONE)


class NodeUse:
    """Requested over allocatable by node, for any choice of pods."""

    def __init__(self, nodes: Sequence[Node], pods: Mapping[PodKey, Pod]) -> None:
        self._rows = {NodeName(node.metadata.name): row for row, node in enumerate(nodes)}
        allocatable = [canonical(node.status.allocatable or {}) for node in nodes]
        names = {"cpu": "cpu", "memory": "memory", "gpu": _gpu_resource(allocatable)}
        self._resources = {label: name for label, name in names.items() if any(name in a for a in allocatable)}
        self._room = {label: np.array([a.get(name, 0) for a in allocatable], float) for label, name in self._resources.items()}
        self._requests = {key: pod_requests(pod.spec) for key, pod in pods.items()}

    def of(self, fates: Mapping[PodKey, TrackedPod]) -> dict[str, Use]:
        """Return the use by these pods, by the resource's label (`cpu`, `memory`, and `gpu` if a node has one)."""
        return {label: _use(self._room[label], self._requested(name, fates)) for label, name in self._resources.items()}

    def _requested(self, resource: str, fates: Mapping[PodKey, TrackedPod]) -> NDArray[np.float64]:
        total = np.zeros(len(self._rows))
        for key, fate in fates.items():
            row = self._rows.get(fate.node)
            if row is not None:
                total[row] += self._requests[key].get(resource, 0)
        return total


def summarise(tracker: Tracker, nodes: Sequence[Node], pods: Mapping[PodKey, Pod]) -> Summary:
    """Sum up a run. `nodes` and `pods` are the created ones."""
    placed = {key: fate for key, fate in tracker.fates.items() if fate.state is State.PLACED}
    use = NodeUse(nodes, pods)
    return Summary(
        nodes=len(nodes),
        pods=len(tracker.fates),
        states=dict(Counter(fate.state for fate in tracker.fates.values())),
        generations=_generations(placed, use.of),
        use=use.of(placed),
        speed=_speed(tracker.times()),
        reasons=_reasons(tracker.fates.values()),
    )


def _gpu_resource(allocatable: Sequence[Mapping[str, int]]) -> str:
    """Return the resource for GPUs: the trace's resource, or the first vendor's resource that ends in gpu."""
    names = {name for resources in allocatable for name in resources}
    return GPU_MILLI if GPU_MILLI in names else min((n for n in names if n.endswith("/gpu")), default=GPU_MILLI)


def _use(room: NDArray[np.float64], requested: NDArray[np.float64]) -> Use:
    have = room > 0
    share = 100.0 * requested[have] / room[have]
    return Use(int(have.sum()), int((share == 0).sum()), float(share.min()), float(share.mean()), float(share.max()), float(share.std()))


def _generations(placed: Mapping[PodKey, TrackedPod], use: Callable[[Mapping[PodKey, TrackedPod]], dict[str, Use]]) -> list[Generation]:
    groups: dict[tuple[str, int], dict[PodKey, TrackedPod]] = {}
    for key, fate in placed.items():
        groups.setdefault(fate.decided_by, {})[key] = fate
    return [Generation(*who, len(fates), use(fates)) for who, fates in sorted(groups.items())]


def _speed(times: Sequence[tuple[float, float]]) -> Speed | None:
    if not times:
        return None
    # The watch may show a bound pod before the answer to its creation.
    waits = np.array([max(bound - created, 0.0) for created, bound in times])
    whole = max(b for _, b in times) - min(c for c, _ in times)
    p50, p99 = np.percentile(waits, [50, 99])
    return Speed(len(times) / whole if whole > 0 else 0.0, float(p50), float(p99))


def _reasons(fates: Iterable[TrackedPod]) -> list[UnplacedReason]:
    messages: dict[str, list[str]] = {}
    for fate in fates:
        if fate.state is not State.PLACED:
            message = fate.message or "no decision yet"
            messages.setdefault(_without_counts(message), []).append(message)
    found = [UnplacedReason(what, len(alike), alike[0]) for what, alike in messages.items()]
    return sorted(found, key=lambda reason: -reason.pods)


def _without_counts(message: str) -> str:
    """Return the reasons without numbers of nodes, which differ from pod to pod. Other messages stay unchanged."""
    match = _FIT_ERROR.match(message)
    if match is None:
        return message
    return ", ".join(sorted(reason.partition(" ")[2] for reason in _BETWEEN_REASONS.split(match["reasons"])))
