"""The event handlers turn the objects of all watches into changes of the cluster and of the queue.

Each method takes one kind of event, and may be called again with the same object. Events may come late, twice or out of order.
So a handler goes by the object, and not by the type of the event that brought it.

Facts: kube-scheduler's `eventhandlers.go`, v1.36.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from placewright.api.devices import ResourceClaim
from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.profileaccess import DEFAULTS_ON, facts_of
from placewright.api.quantity import QuantityError
from placewright.api.workloads import Namespace, ReplicaSet, ReplicationController, Service, StatefulSet
from placewright.cluster.cluster import Cluster, PodOnNode
from placewright.cluster.devices import DEVICE_KINDS
from placewright.cluster.objects import GROUP_KINDS, KINDS, ClusterObject
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


#: The changes of a node that may help rejected pods: the label of each event, its action, and the part of the node that is compared.
_NODE_CHANGES: Final[dict[ClusterEvent, Callable[[Node], object]]] = {
    ClusterEvent(EventResource.NODE, action, f"NodeUpdate{label}"): part
    for label, action, part in (
        ("Allocatable", Action.UPDATE_NODE_ALLOCATABLE, lambda node: node.status.allocatable),
        ("Label", Action.UPDATE_NODE_LABEL, lambda node: node.metadata.labels or {}),
        ("Taint", Action.UPDATE_NODE_TAINT, lambda node: node.spec.taints or ()),
        ("Condition", Action.UPDATE_NODE_CONDITION, lambda node: {each.type: each.status for each in node.status.conditions or ()}),
        ("Annotation", Action.UPDATE_NODE_ANNOTATION, lambda node: node.metadata.annotations or {}),
        ("DeclaredFeature", Action.UPDATE_NODE_DECLARED_FEATURE, lambda node: node.status.declared_features or ()),
    )
}

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


class Stopwatch:
    """Measures how long events take to be handled. This class measures nothing."""

    def begin(self) -> None:
        """Note that an event arrived."""

    def handled(self, event: str) -> None:
        """Note that an event of this label has been handled. Several may follow one `begin`."""


class Departed(Protocol):
    """A pod that left a watch, by the two facts that the handlers read of it."""

    @property
    def uid(self) -> str:
        """The pod's uid."""

    @property
    def node_name(self) -> NodeName:
        """The pod's node; empty for a pod that was deleted, or finished, without one."""


class ClusterEventObserver:
    """Observes events that change no column of the cluster, and never raises. This class ignores them."""

    def object_put(self, item: ClusterObject) -> None:
        """Note that an object that is neither node nor pod appeared or changed."""

    def object_removed(self, item: ClusterObject) -> None:
        """Note that an object that is neither node nor pod is gone."""

    def pod_left(self, uid: str) -> None:
        """Note that a pod left the queue's care: it is on a node, finished, or deleted."""


@dataclass(eq=False)
class ClusterEventHandlers:
    """Feeds one scheduler with the events of all watches.

    Attributes:
        cluster: nodes, pods on nodes and other objects.
        queue: pods without a node.
        binding: binding cycle, which is told where pods with an unresolved Binding stand.
        stopwatch: measures how long events take.
        listener: observer of events that change no column.
        gates: gates of all profiles. When a namespace changes, they judge its pods again.
        repairs: differences that were found and mended; shared with the reconciler.
    """

    cluster: Cluster
    queue: SchedulingQueue
    binding: BindingCycle
    stopwatch: Stopwatch = field(default_factory=Stopwatch)
    listener: ClusterEventObserver = field(default_factory=ClusterEventObserver)
    gates: NamespaceGates = tuple
    repairs: Repairs = field(default_factory=Repairs, init=False)
    #: Uids of pods and names of nodes that left while the reconciler compares with a list; None at other times.
    _departed: set[str] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.cluster.objects.devices.claims.listeners.append(self._claim_settled)

    # --- departures ------------------------------------------------------------------------------------------------------------

    @contextmanager
    def noting_departures(self) -> Iterator[None]:
        """Note the pods and nodes that leave inside the `with` block. A list that was asked for before still shows them."""
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
        self.stopwatch.begin()
        if pod.node_name or pod.finished:
            self.unscheduled_pod_gone(pod)
        elif self.cluster.placement(pod.uid) is None or self.queue.get(pod.uid) is not None:
            known = self.queue.latest(pod.uid)
            self.queue.update(pod)
            if self.cluster.placement(pod.uid) is not None:
                self.queue.nominator.delete(pod.uid)  # the pod is assumed on its node, so its room is counted there
            self.stopwatch.handled(POD_ADD if known is None else POD_UPDATE)
            if known is not None and known.nominated_node != pod.nominated_node:
                self._nomination_ends(known)
        # Otherwise the pod is bound already: the watch of assigned pods was faster, and this event is older.

    def unscheduled_pod_gone(self, pod: Departed) -> None:
        """Take in that a pod left the watch of unscheduled pods, because it was bound, finished, or deleted.

        In all three cases the API server may show the pod as it was before, without a node. So a Binding of unknown outcome keeps
        its room on the node. The watch of assigned pods, or the reconciler, will show the outcome.
        """
        self.stopwatch.begin()
        known = self.queue.latest(pod.uid)
        self._leaves(pod.uid)
        if known is not None:
            self.stopwatch.handled(POD_DELETE)
        if pod.node_name:
            self.binding.resolve(pod.uid, pod.node_name)
            return
        self._stop_waiting(pod.uid)
        if known is not None:
            self._nomination_ends(known)

    def pod_gone(self, uid: str) -> None:
        """Take in that a pod does not exist any more, wherever it was."""
        self._leaves(uid)
        self._stop_waiting(uid)
        self.binding.resolve(uid, None)
        self.assigned_pod_gone(uid)

    def _nomination_ends(self, pod: PodInfo) -> None:
        """Report the nominated room as free. Pods of no higher priority took it for occupied."""
        if pod.nominated_node:
            self.queue.move(ASSIGNED_POD_DELETE, pod, None, except_uid=pod.uid, up_to_priority=pod.priority)

    def _leaves(self, uid: str) -> None:
        gone = self.queue.delete(uid)
        # The queue tries the pod's own group again. Without the pod, there may be room for the other groups of its tree, too.
        lineage = [] if gone is None or gone.pod_group is None else self.cluster.pod_groups.lineage(gone.pod_group)
        for ref in self.cluster.pod_groups.leaves(lineage[-1].ref) if len(lineage) > 1 else ():
            self.queue.retry_group(ref)
        self.listener.pod_left(uid)
        if self._departed is not None:
            self._departed.add(uid)

    def _stop_waiting(self, uid: str) -> None:
        waiting = self.binding.waiting.get(uid)
        if waiting is not None:
            waiting.reject("", "removed")
        self.binding.abandon(uid)

    # --- pods on nodes ---------------------------------------------------------------------------------------------------------

    def known_on_node(self, uid: str) -> PodInfo | None:
        """Return a pod as it was last known on a node.

        Args:
            uid: the pod's.

        Returns:
            The pod, assumed or confirmed; None when it was on none.
        """
        known = self.cluster.placement(uid)
        return None if known is None else known.pod

    def assigned_pod(self, pod: PodInfo) -> None:
        """Take in a pod that stands on a node: add, update or confirm it."""
        self.stopwatch.begin()
        self.binding.resolve(pod.uid, pod.node_name)
        # An older pod of this name may still be assumed. Then its room would be counted twice.
        for predecessor in self.cluster.assumed_predecessors(pod):
            self._replaced(predecessor, pod)
        if pod.finished:
            self.assigned_pod_gone(pod.uid)
            return
        known = self.cluster.set_pod(pod)
        if self.queue.get(pod.uid) is not None and (known is None or not known.assumed):
            self.queue.delete(pod.uid)
        # A confirmation is an event as well. Waiting pods were not told when the pod was assumed, because its binding could
        # have failed.
        if known is None or known.assumed:
            self._move(ASSIGNED_POD_ADD, None, pod)
        elif not same_version(known.pod, pod):
            for event in pod_update_events(known.pod, pod):
                self._move(event, known.pod, pod)
        if known is not None and known.node != pod.node_name:
            self._move(ASSIGNED_POD_DELETE, known.pod.on(known.node), None)

    def assigned_pod_gone(self, uid: str) -> None:
        """Take in that a pod on a node was deleted or finished."""
        self.stopwatch.begin()
        known = self.cluster.remove_pod(uid)
        self._leaves(uid)
        if known is not None:
            self._move(ASSIGNED_POD_DELETE, known.pod.on(known.node), None)

    def _replaced(self, assumed: PodOnNode, by: PodInfo) -> None:
        """Give up an assumed pod whose name belongs to a younger pod.

        Some API servers do not compare a Binding's uid (before 1.23, some 1.25 and 1.26). They bind the pod that has the name, so
        the younger pod stands on the node, with its own requests.
        """
        old, node, _ = assumed
        _logger.warning(
            "pod %s on node %s is another one (uid %s) than was placed on node %s (uid %s): it was created anew, and now counts",
            by.key, by.node_name, by.uid, node, old.uid,
        )  # fmt: skip
        self.repairs.replaced += 1
        self.binding.give_up(old.uid)
        self._stop_waiting(old.uid)
        self._leaves(old.uid)
        self.cluster.remove_pod(old.uid)
        self.queue.move(ASSIGNED_POD_DELETE, old.on(node), None)

    # --- nodes and the rest ------------------------------------------------------------------------------------------------------

    def node(self, node: Node) -> None:
        """Take in a node that appeared or changed. A node that cannot be read keeps its last good state."""
        self.stopwatch.begin()
        try:
            old = self.cluster.set_node(node)
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
        old = self.cluster.remove_node(name)
        if self._departed is not None:
            self._departed.add(name)
        if old is not None:
            self._move(NODE_DELETE, old, None)

    def cluster_object(self, item: ClusterObject) -> None:
        """Take in a namespace, service, workload, budget, volume, device or group that appeared or changed."""
        self._object_changed(item, self.put_object(item), item)

    def cluster_object_gone(self, item: ClusterObject) -> None:
        """Take in that such an object was deleted."""
        self._object_changed(item, self.remove_object(item), None)

    def _object_changed(self, item: ClusterObject, old: ClusterObject | None, new: ClusterObject | None) -> None:
        """Tell waiting pods of an object's change, unless a relist shows it as it was. A namespace may gate pods first."""
        kind = type(item)
        action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE
        if isinstance(item, Namespace):
            self._keep_out(item.metadata.name, old, new)
        resource = _EVENT_RESOURCES.get(kind.__name__) if kind in _OUR_KINDS else kind.__name__
        if resource is not None and _differ(old, new):
            self._move(ClusterEvent(resource, action, f"{resource}{(action.name or '').title()}"), old, new)

    def _keep_out(self, name: str, old: ClusterObject | None, new: ClusterObject | None) -> None:
        """Gate waiting pods that a namespace's change keeps out of their profile, before one of them is tried again."""
        if _facts(name, old) == _facts(name, new):
            return
        for scheduler_name, keeps_out in self.gates():
            self.queue.sweeps.keep_out(scheduler_name, partial(_concerns, name, keeps_out), _NAMESPACE_UPDATE)

    def put_object(self, item: ClusterObject) -> ClusterObject | None:
        """Take in an object that appeared or changed, and return its version before. Tell no waiting pod.

        `source_listed` tells them of all changes of a polled source at once.
        """
        self.stopwatch.begin()
        old = self.cluster.objects.put(item)
        self.listener.object_put(item)
        return old

    def remove_object(self, item: ClusterObject) -> ClusterObject | None:
        """Take in that an object is gone, and return its last version. Tell no waiting pod."""
        self.stopwatch.begin()
        old = self.cluster.objects.remove(item)
        self.listener.object_removed(item)
        return old

    def source_listed(self, kind: type[ClusterObject]) -> None:
        """Report all changes of a polled source's list as one event, because there may be as many as nodes."""
        self._move(ClusterEvent(kind.__name__, Action.UPDATE, f"{kind.__name__}Update"), None, None)

    def _claim_settled(self, before: ResourceClaim, now: ResourceClaim | None) -> None:
        """Report the end of an assumption about a claim, because no watch will report it."""
        self.queue.move(_CLAIM_GONE if now is None else _CLAIM_CHANGED, before, now)

    def _move(self, event: ClusterEvent, old: Any, new: Any) -> None:
        self.queue.move(event, old, new)
        self.stopwatch.handled(event.label)


def _concerns(namespace: str, keeps_out: Callable[[PodInfo], bool], pod: PodInfo) -> bool:
    """Return whether a change of the namespace keeps the pod out; one of `DEFAULTS_ON` may concern all pods."""
    return namespace in (pod.namespace, DEFAULTS_ON) and keeps_out(pod)


def _facts(name: str, namespace: ClusterObject | None) -> object:
    """Collect the facts by which profiles judge a namespace."""
    return facts_of(name, {name: namespace} if isinstance(namespace, Namespace) else {})


def _differ(old: ClusterObject | None, new: ClusterObject | None) -> bool:
    """Return whether two versions may differ for pods. Without a resourceVersion, a relist may show an unchanged object."""
    if old is None or new is None:
        return old is not new
    if old.metadata.resource_version == new.metadata.resource_version != "":
        return False
    return not (isinstance(old, _SELECTING) and isinstance(new, _SELECTING) and old.spec == new.spec)


def node_update_events(old: Node, new: Node) -> Iterator[ClusterEvent]:
    """Compare two versions of a node. A change that can matter to no pod, such as the time of a heartbeat, gives no event.

    Args:
        old: the version before.
        new: the version now.

    Yields:
        One event for each kind of change. The end of a cordon is a change of taints.
    """
    uncordoned = old.spec.unschedulable and not new.spec.unschedulable
    for event, part in _NODE_CHANGES.items():
        if part(old) != part(new) or (uncordoned and event.action is Action.UPDATE_NODE_TAINT):
            yield event
