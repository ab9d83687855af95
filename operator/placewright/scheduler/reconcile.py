"""The reconciler's comparison: what the API server lists against what the queue and the cluster believe.

Kopf says nothing about objects that vanished while its stream was broken, a bind whose answer got lost is in nobody's queue, and a watch
that skipped one event is never told so. Full lists tell; the differences go through the intake as if they had been news, and are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from placewright.api.objects import Node, ObjectMeta, Pod
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.beliefs import AssignedBelief, NodeBelief, QueueBelief
from placewright.scheduler.binding import BindingCycle
from placewright.scheduler.comparison import Comparison
from placewright.scheduler.intake import Intake


class Reconciler:
    """Makes comparisons, to be run inside `watching`; then ask for each of `doubtful` and say `looked`."""

    def __init__(self, cluster: Cluster, queue: SchedulingQueue, binding: BindingCycle, intake: Intake) -> None:
        self.repairs = intake.repairs
        self._cluster = cluster
        self._queue = queue
        self._binding = binding
        self._intake = intake
        self._unconfirmed_before: frozenset[str] = frozenset()
        self._doubtful: frozenset[str] = frozenset()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note what leaves meanwhile: what a list shows of it is old."""
        self._intake.departed = set()
        try:
            yield
        finally:
            self._intake.departed = None

    def nodes(self) -> Comparison[Node]:
        """Compare nodes; before the list is asked for."""
        return Comparison(NodeBelief(self._cluster, self._intake))

    def assigned(self) -> Comparison[Pod]:
        """Compare pods on nodes; before the list is asked for."""
        return Comparison(AssignedBelief(self._cluster, self._intake))

    def unscheduled(self) -> UnscheduledComparison:
        """Compare pods without a node; before the list is asked for."""
        belief = QueueBelief(self._cluster, self._queue, self._intake)
        return UnscheduledComparison(belief, self, self._binding, frozenset(self._binding.unresolved), self._unconfirmed())

    def departed(self, uid: str) -> bool:
        """Whether a pod left while the comparison ran."""
        return uid in (self._intake.departed or ())

    def doubt(self, unresolved: frozenset[str], unconfirmed: frozenset[str], seen: set[str]) -> None:
        """Bindings without an answer at once; those that succeeded only when two comparisons in a row saw no watch confirm them."""
        self._doubtful = (unresolved | (unconfirmed & self._unconfirmed_before)) - seen
        self._unconfirmed_before = unconfirmed

    def doubtful(self) -> list[PodInfo]:
        """Pods that hold room on a node, are not listed without one, and that no watch has shown there: only reading each one tells."""
        placements = (self._cluster.placement(uid) for uid in self._doubtful)
        return [placement.pod for placement in placements if placement is not None and placement.assumed]

    def looked(self, pod: PodInfo, found: PodInfo | None) -> None:
        """A doubtful pod was read; None when there is none of that name."""
        if found is None or found.uid != pod.uid:
            self._intake.pod_gone(pod.uid)
            self.repairs.forgotten += 1
        elif found.node_name:
            self._intake.assigned_pod(found)

    def _unconfirmed(self) -> frozenset[str]:
        if not self._cluster.assumed_count:
            return frozenset()
        uids = (placement.pod.uid for placement in self._cluster.placements() if placement.assumed)
        return frozenset(uid for uid in uids if self._queue.get(uid) is None)


class UnscheduledComparison(Comparison[Pod]):
    """Pods without a node: the list also tells of Bindings whose answer got lost."""

    def __init__(
        self,
        belief: QueueBelief,
        reconciler: Reconciler,
        binding: BindingCycle,
        unresolved: frozenset[str],
        unconfirmed: frozenset[str],
    ) -> None:
        """`unresolved`, `unconfirmed`: what was believed when the list was asked for; what came later cannot be judged by it."""
        super().__init__(belief)
        self._reconciler = reconciler
        self._binding = binding
        self._unresolved = unresolved
        self._unconfirmed = unconfirmed
        #: Those of the two that the list shows.
        self._seen: set[str] = set()

    def shown(self, item: Pod) -> None:
        """A pod that the API server has without a node. A Binding of it that was asked for before the list was does not exist."""
        uid = item.metadata.uid
        if uid in self._unresolved and uid in self._binding.unresolved and not self._reconciler.departed(uid):
            self._binding.resolve(uid, None)
            self._reconciler.repairs.unbound += 1
        self._saw(uid)
        super().shown(item)

    def unreadable(self, metadata: ObjectMeta) -> None:
        """It exists, which is all that can be told."""
        self._saw(metadata.uid)
        super().unreadable(metadata)

    def listed(self) -> None:
        """What holds room without being shown either way is to be asked for."""
        super().listed()
        self._reconciler.doubt(self._unresolved, self._unconfirmed, self._seen)

    def _saw(self, uid: str) -> None:
        if uid in self._unresolved or uid in self._unconfirmed:
            self._seen.add(uid)
