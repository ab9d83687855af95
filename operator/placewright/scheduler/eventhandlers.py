"""Event handlers: every watch ends here, and its objects become changes of the columns and of the queue.

Each method takes one kind of event, is idempotent, and tolerates events that come late, twice or out of order: the object is
believed, and not the type of the event that brought it.

Facts: kube-scheduler's `eventhandlers.go`, v1.36.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, Protocol

from placewright.api.devices import ResourceClaim
from placewright.api.objects import Condition, Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.profileaccess import DEFAULTS_ON, facts_of
from placewright.api.quantity import QuantityError
from placewright.api.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from placewright.cluster.cluster import Cluster, PodOnNode
from placewright.cluster.devices import DEVICE_KINDS
from placewright.cluster.objects import KINDS, ClusterObject
from placewright.cluster.podgroups import GROUP_KINDS
from placewright.cluster.storage import STORAGE_KINDS
from placewright.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    Action,
    ClusterEvent,
    EventResource,
)
from placewright.framework.podchanges import pod_update_events, same_version
from placewright.queue.queue import SchedulingQueue
from placewright.queue.queued import POD_ADD
from placewright.scheduler.binding import BindingCycle
from placewright.scheduler.repairs import Repairs

_logger = logging.getLogger(__name__)


def _node_update(action: Action, label: str) -> ClusterEvent:
    return ClusterEvent(EventResource.NODE, action, label)


_ALLOCATABLE: Final = _node_update(Action.UPDATE_NODE_ALLOCATABLE, "NodeUpdateAllocatable")
_LABEL: Final = _node_update(Action.UPDATE_NODE_LABEL, "NodeUpdateLabel")
_TAINT: Final = _node_update(Action.UPDATE_NODE_TAINT, "NodeUpdateTaint")
_CONDITION: Final = _node_update(Action.UPDATE_NODE_CONDITION, "NodeUpdateCondition")
_ANNOTATION: Final = _node_update(Action.UPDATE_NODE_ANNOTATION, "NodeUpdateAnnotation")
_FEATURE: Final = _node_update(Action.UPDATE_NODE_DECLARED_FEATURE, "NodeUpdateDeclaredFeature")

_CLAIM_CHANGED: Final = ClusterEvent(EventResource.RESOURCE_CLAIM, Action.UPDATE, "ResourceClaimUpdate")
_NAMESPACE_UPDATE: Final = "NamespaceUpdate"
_CLAIM_GONE: Final = ClusterEvent(EventResource.RESOURCE_CLAIM, Action.DELETE, "ResourceClaimDelete")

#: Labels of changes of waiting pods, as upstream's metrics name them.
POD_UPDATE: Final = "UnscheduledPodUpdate"
POD_DELETE: Final = "UnscheduledPodDelete"

#: The gates of all profiles: the schedulerName, and whether the profile keeps out the pods of a pod's namespace.
NamespaceGates = Callable[[], Iterable[tuple[str, Callable[[PodInfo], bool]]]]

#: Kinds that select the pods of default spread constraints. Their status changes with each of their pods, and that helps no pod.
_SELECTING: Final = (Service, ReplicationController, ReplicaSet, StatefulSet)
#: The event resource of each kind whose changes may help rejected pods. No plugin listens for disruption budgets.
_EVENT_RESOURCES: Final = {
    kind.__name__: EventResource(kind.__name__) for kind in (*_SELECTING, Namespace, *STORAGE_KINDS, *DEVICE_KINDS)
} | {kind.__name__: EventResource.POD_GROUP for kind in GROUP_KINDS}
#: All others are kinds that plugins declare.
_OUR_KINDS: Final[frozenset[type[Any]]] = frozenset(KINDS)


class Stopwatch(Protocol):
    """Measures how long events take to be handled."""

    def begin(self) -> None:
        """Note that an event arrived."""

    def handled(self, event: str) -> None:
        """Note that an event of this label has been handled. Several may follow one `begin`."""


class Untimed:
    """Measures nothing."""

    def begin(self) -> None:
        """Do nothing."""

    def handled(self, event: str) -> None:
        """Do nothing."""


class Departed(Protocol):
    """The two facts that are read of a pod that left a watch."""

    @property
    def uid(self) -> str:
        """The pod's uid."""

    @property
    def node_name(self) -> NodeName:
        """The pod's node; empty for a pod that was deleted, or finished, without one."""


class ClusterEventObserver(Protocol):
    """Told of events that change no column of the cluster. An implementation notes them and never raises."""

    def object_put(self, item: ClusterObject) -> None:
        """Note that an object that is neither node nor pod appeared or changed."""

    def object_removed(self, item: ClusterObject) -> None:
        """Note that an object that is neither node nor pod is gone."""

    def pod_left(self, uid: str) -> None:
        """Note that a pod left the queue's care: it is on a node, finished, or deleted."""


class NoListener:
    """Notes nothing."""

    def object_put(self, item: ClusterObject) -> None:
        """Do nothing."""

    def object_removed(self, item: ClusterObject) -> None:
        """Do nothing."""

    def pod_left(self, uid: str) -> None:
        """Do nothing."""


class ClusterEventHandlers:
    """Feeds one scheduler with the events of all watches.

    Args:
        cluster: nodes, pods on nodes and other objects.
        queue: pods without a node.
        binding: told where pods with an unresolved Binding stand.
        stopwatch: measures how long events take.
        listener: told of events that change no column.
        gates: asked again about waiting pods when a namespace changed. Without gates nothing is kept out.
    """

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        binding: BindingCycle,
        stopwatch: Stopwatch = Untimed(),  # noqa: B008 - it has no state
        listener: ClusterEventObserver = NoListener(),  # noqa: B008 - likewise
        gates: NamespaceGates = tuple,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._binding = binding
        self._stopwatch = stopwatch
        self._listener = listener
        self._gates = gates
        #: Differences found and mended; shared with the reconciler.
        self.repairs = Repairs()
        #: Uids of pods and names of nodes that left while the reconciler compares with a list; None at other times.
        self._departed: set[str] | None = None
        cluster.objects.devices.claims.listeners.append(self._claim_settled)

    # --- departures ------------------------------------------------------------------------------------------------------------

    @contextmanager
    def noting_departures(self) -> Iterator[None]:
        """Note the pods and nodes that leave inside the `with` block. A list that was asked for before shows them as they were."""
        self._departed = set()
        try:
            yield
        finally:
            self._departed = None

    def has_departed(self, key: str) -> bool:
        """Tell whether a pod or a node left inside the `with` block of `noting_departures`.

        Args:
            key: the pod's uid or the node's name.

        Returns:
            False outside such a block.
        """
        return self._departed is not None and key in self._departed

    # --- pods without a node ---------------------------------------------------------------------------------------------------

    def unscheduled_pod(self, pod: PodInfo) -> None:
        """Take in a pod that the watch of unscheduled pods shows. A pod with a node, or finished, leaves the queue."""
        self._stopwatch.begin()
        if pod.node_name or pod.finished:
            self.unscheduled_pod_gone(pod)
        elif self._cluster.placement(pod.uid) is None or self._queue.get(pod.uid) is not None:
            known = self._queue.latest(pod.uid)
            self._queue.update(pod)
            self._stopwatch.handled(POD_ADD if known is None else POD_UPDATE)
            if known is not None and known.nominated_node != pod.nominated_node:
                self._nomination_ends(known)
        # Otherwise the pod is bound already: the watch of assigned pods was faster, and this event is older.

    def unscheduled_pod_gone(self, pod: Departed) -> None:
        """Take in that a pod left the watch of unscheduled pods: bound, finished, or deleted.

        The API server may show the pod as it was before, without a node, in all three cases. So a Binding of unknown outcome
        keeps its room on the node until the watch of assigned pods, or the reconciler, tells.
        """
        self._stopwatch.begin()
        known = self._queue.latest(pod.uid)
        self._leaves(pod.uid)
        if known is not None:
            self._stopwatch.handled(POD_DELETE)
        if pod.node_name:
            self._binding.resolve(pod.uid, pod.node_name)
            return
        self._stop_waiting(pod.uid)
        if known is not None:
            self._nomination_ends(known)

    def pod_gone(self, uid: str) -> None:
        """Take in that a pod does not exist any more, wherever it was."""
        self._leaves(uid)
        self._stop_waiting(uid)
        self._binding.resolve(uid, None)
        self.assigned_pod_gone(uid)

    def _nomination_ends(self, pod: PodInfo) -> None:
        """Report the nominated room as free to pods of no higher priority, which took it for occupied."""
        if pod.nominated_node:
            self._queue.move(ASSIGNED_POD_DELETE, pod, None, except_uid=pod.uid, up_to_priority=pod.priority)

    def _leaves(self, uid: str) -> None:
        self._queue.delete(uid)
        self._listener.pod_left(uid)
        if self._departed is not None:
            self._departed.add(uid)

    def _stop_waiting(self, uid: str) -> None:
        waiting = self._binding.waiting.get(uid)
        if waiting is not None:
            waiting.reject("", "removed")
        self._binding.abandon(uid)

    # --- pods on nodes ---------------------------------------------------------------------------------------------------------

    def known_on_node(self, uid: str) -> PodInfo | None:
        """Return a pod as it was last known on a node.

        Args:
            uid: the pod's.

        Returns:
            The pod, assumed or confirmed; None when it was on none.
        """
        known = self._cluster.placement(uid)
        return None if known is None else known.pod

    def assigned_pod(self, pod: PodInfo) -> None:
        """Take in a pod that stands on a node: add, update or confirm it."""
        self._stopwatch.begin()
        self._binding.resolve(pod.uid, pod.node_name)
        # The pod may be the younger one of two with this name, while the older one is still assumed: its room would be counted
        # twice.
        for predecessor in self._cluster.assumed_predecessors(pod):
            self._replaced(predecessor, pod)
        if pod.finished:
            self.assigned_pod_gone(pod.uid)
            return
        known = self._cluster.set_pod(pod)
        if self._queue.get(pod.uid) is not None and (known is None or not known.assumed):
            self._queue.delete(pod.uid)
        # A confirmation is an event as well: waiting pods were not told when the pod was assumed, as its binding could have
        # failed.
        if known is None or known.assumed:
            self._move(ASSIGNED_POD_ADD, None, pod)
        elif not same_version(known.pod, pod):
            for event in pod_update_events(known.pod, pod):
                self._move(event, known.pod, pod)
        if known is not None and known.node != pod.node_name:
            self._move(ASSIGNED_POD_DELETE, known.pod.on(known.node), None)

    def assigned_pod_gone(self, uid: str) -> None:
        """Take in that a pod on a node was deleted or finished."""
        self._stopwatch.begin()
        known = self._cluster.remove_pod(uid)
        self._leaves(uid)
        if known is not None:
            self._move(ASSIGNED_POD_DELETE, known.pod.on(known.node), None)

    def _replaced(self, assumed: PodOnNode, by: PodInfo) -> None:
        """Give up an assumed pod whose name belongs to a younger pod.

        API servers that do not compare a Binding's uid (before 1.23, some 1.25 and 1.26) bind the pod that has the name: then
        the younger pod stands there, with its own requests.
        """
        old, node, _ = assumed
        _logger.warning(
            "pod %s on node %s is another one (uid %s) than was placed on node %s (uid %s): created anew meanwhile, now counted as it is",
            by.key, by.node_name, by.uid, node, old.uid,
        )  # fmt: skip
        self.repairs.replaced += 1
        self._binding.give_up(old.uid)
        self._stop_waiting(old.uid)
        self._leaves(old.uid)
        self._cluster.remove_pod(old.uid)
        self._queue.move(ASSIGNED_POD_DELETE, old.on(node), None)

    # --- nodes and the rest ------------------------------------------------------------------------------------------------------

    def node(self, node: Node) -> None:
        """Take in a node that appeared or changed. A node that cannot be read keeps its last good state."""
        self._stopwatch.begin()
        try:
            old = self._cluster.set_node(node)
        except QuantityError as problem:
            # One node that cannot be read must not stop the watch of all nodes.
            _logger.warning("node %s keeps its last known state: status.allocatable: %s", node.metadata.name, problem)
            return
        if old is None:
            self._move(NODE_ADD, None, node)
            return
        for event in node_update_events(old, node):
            self._move(event, old, node)

    def node_gone(self, name: NodeName) -> None:
        """Take in that a node was deleted."""
        old = self._cluster.remove_node(name)
        if self._departed is not None:
            self._departed.add(name)
        if old is not None:
            self._move(NODE_DELETE, old, None)

    def cluster_object(self, item: ClusterObject) -> None:
        """Take in a namespace, service, workload, budget, volume, device or group that appeared or changed."""
        self._stopwatch.begin()
        old = self._cluster.objects.put(item)
        self._listener.object_put(item)
        if isinstance(item, Namespace):
            self._keep_out(item.metadata.name, old, item)
        if old is None:
            self._moved_by(item, Action.ADD, None, item)
        elif not _same_revision(old, item) and not _selects_as_before(old, item):
            self._moved_by(item, Action.UPDATE, old, item)

    def cluster_object_gone(self, item: ClusterObject) -> None:
        """Take in that such an object was deleted."""
        self._stopwatch.begin()
        old = self._cluster.objects.remove(item)
        self._listener.object_removed(item)
        if isinstance(item, Namespace):
            self._keep_out(item.metadata.name, old, None)
        if old is not None:
            self._moved_by(item, Action.DELETE, old, None)

    def _keep_out(self, name: str, old: ClusterObject | None, new: ClusterObject | None) -> None:
        """Gate waiting pods that a namespace's change keeps out of their profile, before one of them is tried again."""
        if _facts(name, old) == _facts(name, new):
            return
        for scheduler_name, keeps_out in self._gates():
            self._queue.sweeps.keep_out(scheduler_name, partial(_concerns, name, keeps_out), _NAMESPACE_UPDATE)

    def source_object(self, item: ClusterObject) -> None:
        """Take an object of a polled source that appeared or changed; `source_listed` tells waiting pods of all at once."""
        self._stopwatch.begin()
        self._cluster.objects.put(item)
        self._listener.object_put(item)

    def source_object_gone(self, item: ClusterObject) -> None:
        """Such an object is gone."""
        self._stopwatch.begin()
        self._cluster.objects.remove(item)
        self._listener.object_removed(item)

    def source_listed(self, kind: type[ClusterObject]) -> None:
        """Make one event of all objects that a list of a polled source changed: there may be as many as nodes."""
        self._move(ClusterEvent(kind.__name__, Action.UPDATE, f"{kind.__name__}Update"), None, None)

    def _claim_settled(self, before: ResourceClaim, now: ResourceClaim | None) -> None:
        """Report the end of an assumption about a claim; no watch tells of it."""
        self._queue.move(_CLAIM_GONE if now is None else _CLAIM_CHANGED, before, now)

    def _moved_by(self, item: ClusterObject, action: Action, old: ClusterObject | None, new: ClusterObject | None) -> None:
        kind = type(item)
        resource = _EVENT_RESOURCES.get(kind.__name__) if kind in _OUR_KINDS else kind.__name__
        if resource is not None:
            self._move(ClusterEvent(resource, action, f"{resource}{(action.name or '').title()}"), old, new)

    def _move(self, event: ClusterEvent, old: Any, new: Any) -> None:
        self._queue.move(event, old, new)
        self._stopwatch.handled(event.label)


def _concerns(namespace: str, keeps_out: Callable[[PodInfo], bool], pod: PodInfo) -> bool:
    """Return whether a change of the namespace keeps the pod out; one of `DEFAULTS_ON` may concern all pods."""
    return namespace in (pod.namespace, DEFAULTS_ON) and keeps_out(pod)


def _facts(name: str, namespace: ClusterObject | None) -> object:
    """Collect the facts by which profiles judge a namespace."""
    return facts_of(name, {name: namespace} if isinstance(namespace, Namespace) else {})


def _same_revision(old: ClusterObject, new: ClusterObject) -> bool:
    """Return whether a relist shows an unchanged object. Without a resourceVersion that cannot be known."""
    return old.metadata.resource_version == new.metadata.resource_version != ""


def _selects_as_before(old: ClusterObject, new: ClusterObject) -> bool:
    return isinstance(old, _SELECTING) and isinstance(new, _SELECTING) and old.spec == new.spec


def node_update_events(old: Node, new: Node) -> Iterator[ClusterEvent]:
    """Compare two versions of a node. Changes that cannot matter to any pod, as the time of a heartbeat, give no event.

    Args:
        old: the version before.
        new: the version now.

    Yields:
        One event for each kind of change.
    """
    if old.status.allocatable != new.status.allocatable:
        yield _ALLOCATABLE
    if (old.metadata.labels or {}) != (new.metadata.labels or {}):
        yield _LABEL
    uncordoned = old.spec.unschedulable and not new.spec.unschedulable
    if uncordoned or (old.spec.taints or ()) != (new.spec.taints or ()):
        yield _TAINT
    if _by_type(old.status.conditions) != _by_type(new.status.conditions):
        yield _CONDITION
    if (old.metadata.annotations or {}) != (new.metadata.annotations or {}):
        yield _ANNOTATION
    if (old.status.declared_features or ()) != (new.status.declared_features or ()):
        yield _FEATURE


def _by_type(conditions: tuple[Condition, ...] | None) -> dict[str, str]:
    return {condition.type: condition.status for condition in conditions or ()}
