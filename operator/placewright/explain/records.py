"""Decision records: the last attempts of each pod and of all pods, for explanations.

They are in memory and bounded three ways: by attempts of a pod, by pods, and by bytes. Pods without a node are kept apart, and so are pods
that took several attempts to get one. So a burst of placements does not push out the reasons why other pods wait.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import chain, islice, takewhile
from typing import Final

import msgspec

from placewright.api.boundedcache import counts_bytes
from placewright.api.objects import NodeName
from placewright.framework.runtime.evaluation import PluginScore
from placewright.framework.steps import Step
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.cycle import NodeRefusal, cut

#: Attempts that are kept of one pod.
PER_POD: Final = 5
#: Last attempts of all pods that are kept, and pods of either kind whose own attempts are kept.
OVERALL: Final = 2_000
#: Bytes of the attempts that are kept by pod, and of the last attempts of all. The oldest are dropped beyond it.
MOST_BYTES: Final = 16 * 2**20
#: Bytes of an attempt without messages and reasons: mostly its steps.
_RECORD_BYTES: Final = 2048
_MESSAGE: Final = 1_024
#: Bytes that a refusal is counted as: a long reason, and names of nodes, few of them long.
_REFUSAL: Final = 512
#: Victims that a record names.
MOST_VICTIMS: Final = 50


class AttemptFacts(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The facts about an attempt that has ended. Durations are seconds.

    Attributes:
        attempt: 1 for the pod's first.
        at: time of its end, seconds since 1970.
        result: `scheduled`, `unschedulable` or `error`.
        seconds: time from the hand-out by the queue to the end.
        feasible: number of nodes that could have held the pod.
        nodes: number of nodes that were examined.
        score: total of the chosen node.
        runner_up: total of the best other node; None if no other node was scored.
        ties: number of nodes with the highest total.
        plugins: weighted part of each plugin in `score`.
        refusals: number of nodes that each plugin rejected; they add up to `nodes` if no node could hold the pod.
        message: the reason why the pod has no node.
        together: members of its group that were decided with it, itself included; 0 for a pod decided by itself.
    """

    namespace: str
    name: str
    uid: str
    profile: str
    generation: int
    attempt: int
    at: float
    result: str
    seconds: float
    feasible: int = 0
    nodes: int = 0
    score: int = 0
    runner_up: int | None = None
    ties: int = 0
    plugins: dict[str, int] = {}
    refusals: tuple[NodeRefusal, ...] = ()
    message: str = ""
    together: int = 0


class AttemptRecord(AttemptFacts, frozen=True, gc=False):
    """An attempt as it is kept.

    Attributes:
        steps: steps with their times, in order.
        node: the chosen node.
        best: the chosen node, and after it the next best ones if the record has them.
        parts: part of each plugin in the total of each node in `best`; empty if the record has the chosen node alone.
        nominated_node: the node that preemption makes room on.
        victims: pods that are to leave the nominated node, as (namespace, name); at most `MOST_VICTIMS`.
    """

    steps: list[Step] = []
    node: NodeName | None = None
    best: tuple[NodeName, ...] = ()
    parts: dict[str, list[PluginScore]] = {}
    nominated_node: NodeName | None = None
    victims: tuple[tuple[str, str], ...] = ()

    @property
    def nbytes(self) -> int:
        """An estimate of the record's size, bytes."""
        return _RECORD_BYTES + (len(self.message) + _REFUSAL * len(self.refusals) if self.message else 0)


#: The last attempts of pods, by uid, in the order of their last attempts.
_Shelf = OrderedDict[str, tuple[AttemptRecord, ...]]


class Records:
    """An observer that keeps the last attempts. They have more detail if `DecisionDetail` is on."""

    def __init__(self, clock: Callable[[], float], *, per_pod: int = PER_POD, overall: int = OVERALL) -> None:
        """Keep no records yet.

        Args:
            clock: seconds since 1970.
            per_pod: attempts that are kept of one pod.
            overall: last attempts of all pods that are kept, and pods of each kind.
        """
        self._clock = clock
        self._per_pod = per_pod
        self._overall = overall
        self._last: deque[AttemptRecord] = deque()
        self._pending: _Shelf = OrderedDict()
        self._placed: _Shelf = OrderedDict()
        self._last_bytes = self._shelf_bytes = 0
        counts_bytes(self)

    @property
    def nbytes(self) -> int:
        """Bytes of all records; a record in both places counts twice."""
        return self._last_bytes + self._shelf_bytes

    # --- observing -----------------------------------------------------------------------------------------------------------

    def attempt_ended(self, attempt: Attempt) -> None:
        """Keep an attempt that has ended."""
        record = recorded(attempt, self._clock())
        uid = record.uid
        self._append(record)
        before = self._pending.pop(uid, None) or self._placed.pop(uid, ())
        if attempt.failure is not None:
            self._keep(self._pending, before, record)
        elif before:
            self._keep(self._placed, before, record)
        # Most pods are placed at once. They are kept only among the last attempts of all, because that costs least.

    def pod_entered(self, place: str, event: str) -> None:
        """Do nothing, because the queue itself knows the place of a pod."""

    def _append(self, record: AttemptRecord) -> None:
        self._last.append(record)
        self._last_bytes += record.nbytes
        while len(self._last) > self._overall or self._last_bytes > MOST_BYTES:
            self._last_bytes -= self._last.popleft().nbytes

    def _keep(self, shelf: _Shelf, before: tuple[AttemptRecord, ...], record: AttemptRecord) -> None:
        if len(before) == self._per_pod:
            self._shelf_bytes -= before[0].nbytes
            before = before[1:]
        self._shelf_bytes += record.nbytes
        shelf[record.uid] = (*before, record)
        if len(shelf) > self._overall:
            self._drop_oldest(shelf)
        while self._shelf_bytes > MOST_BYTES:
            self._drop_oldest(self._pending or self._placed)

    def _drop_oldest(self, shelf: _Shelf) -> None:
        _uid, gone = shelf.popitem(last=False)
        self._shelf_bytes -= sum([record.nbytes for record in gone])

    # --- asking --------------------------------------------------------------------------------------------------------------

    def last(self, most: int) -> list[AttemptRecord]:
        """Return the last attempts of all pods, the latest first."""
        return list(islice(reversed(self._last), most))

    def since(self, known: AttemptRecord | None, most: int) -> list[AttemptRecord]:
        """Find the attempts that ended after one that is known. O(attempts found).

        Args:
            known: an earlier attempt; None for none.
            most: attempts at most, the latest ones.

        Returns:
            The attempts, the latest last.
        """
        found = list(takewhile(lambda record: record is not known, islice(reversed(self._last), most)))
        return found[::-1]

    def last_failed(self, uid: str) -> AttemptRecord | None:
        """Return the last attempt of a pod that has no node; None if it is not kept, or the pod has a node. O(1)."""
        kept = self._pending.get(uid)
        return kept[-1] if kept else None

    def of(self, uid: str) -> tuple[AttemptRecord, ...]:
        """Return the last attempts of a pod, the latest last; none for an unknown pod. O(attempts)."""
        return self._pending.get(uid) or self._placed.get(uid) or tuple(record for record in self._last if record.uid == uid)

    def named(self, namespace: str, name: str) -> tuple[AttemptRecord, ...]:
        """Find the last attempts of the pod that had a name last. O(attempts).

        Returns:
            The attempts, the latest last.
        """
        latest = (kept[-1] for shelf in (self._pending, self._placed) for kept in shelf.values())
        found = [record for record in chain(self._last, latest) if (record.namespace, record.name) == (namespace, name)]
        return self.of(max(found, key=lambda record: record.at).uid) if found else ()


def recorded(attempt: Attempt, now: float) -> AttemptRecord:
    """Make the record of an attempt that has ended."""
    pod, profile, result, failure = attempt.pod, attempt.profile, attempt.schedule_result, attempt.failure
    seconds = (attempt.ended or attempt.started) - attempt.started
    who = (pod.namespace, pod.name, pod.uid, profile.name, profile.generation, attempt.number, now, attempt.result or "", seconds)
    # The steps are kept as they are, because a smaller copy costs more time than it saves memory.
    steps = attempt.steps.taken
    message = "" if failure is None else cut(failure.message, _MESSAGE)
    nominated = None if failure is None else failure.nominated_node or None
    if result is not None:
        return AttemptRecord(
            *who, result.feasible, result.nodes, result.score, result.runner_up, result.ties, result.plugins, (), message,
            attempt.together if failure is None else 0, steps, result.node, result.best,
            result.parts if len(result.best) > 1 else {}, nominated,
        )  # fmt: skip
    if failure is None:
        return AttemptRecord(*who, together=attempt.together, steps=steps)
    refused, victims = failure.refused, tuple([(each.namespace, each.name) for each in failure.victims[:MOST_VICTIMS]])
    return AttemptRecord(
        *who, nodes=refused.nodes, refusals=refused.by, message=message, steps=steps, nominated_node=nominated, victims=victims
    )
