"""The points at which a pod waits its turn: PreEnqueue lets it into the active queue, QueueSort orders that queue."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

from placewright.api.pods import PodInfo
from placewright.framework.interface.plugin import ArgsT, Plugin
from placewright.framework.ports import Seconds
from placewright.framework.status import Status


class PreEnqueuePlugin(Plugin[ArgsT], ABC):
    """Keeps a pod out of the active queue until it may be tried.

    When: a pod is to become active or to back off. It was created, or its attempt failed with an error, or its profile changed. Or an
        event or the timeout brings it back. It is not asked again when the backoff ends.
    How often: any number of times per attempt, mostly once. The plugins are asked in order up to the first that does not answer SUCCESS.
    By: the live queue; the queue of `simulate`; `explain` and `evaluate`, once for the pod that they are asked about. No shadow calls it.
    Runs: on the event loop, and never awaits. It is called for thousands of pods in one go after a profile changed, so it should take
        microseconds.
    Reads: the pod, `self.handle.cluster`, and the plugin's memory.
    May change: nothing; a refused pod may never be seen again.
    Statuses:
        SUCCESS: the next plugin is asked; after the last one the pod becomes active, or backs off if its last attempt was a moment ago.
        UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE, PENDING: the pod is gated in this plugin's name. It stays so until an event that
            this plugin registered happens and the hint answers QUEUE; then all PreEnqueue plugins are asked again. Neither the timeout of
            five minutes nor a backoff ends a gate. No attempt is counted, and no event or condition is written.
        ERROR: the pod is gated in no plugin's name, so that any event may bring it back; an event on the pod tells why. An exception
            counts as ERROR.

    Example:
        def pre_enqueue(self, pod):
            if pod.labels.get("example.com/approved") == "yes":
                return SUCCESS
            return unresolvable("waiting for the label example.com/approved")
    """

    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Judge whether the pod may be tried.

        Args:
            pod: its newest version.

        Returns:
            SUCCESS, or a rejection that gates the pod; the reason is what `explain` shows.
        """


class QueueSortPlugin(Plugin[ArgsT], ABC):
    """Orders the active queue. One plugin a profile; all profiles' keys are compared with each other, so all must agree on one.

    When: a pod enters the active queue or begins to back off, changes there, or its profile changes.
    How often: once each time. The queue keeps the key, so it may depend on nothing but the pod and the timestamp.
    By: the live queue, and the queue of `simulate`. Other callers have no order to keep.
    Runs: on the event loop, and never awaits; thousands of calls in one go after a profile changed, so it should take microseconds.
    Reads: the pod and the timestamp.
    May change: nothing.
    Statuses: none. A pod whose key cannot be computed, or cannot be compared, comes after all others.

    Example:
        def sort_key(self, pod, timestamp):
            return (-pod.priority, timestamp)
    """

    @abstractmethod
    def sort_key(self, pod: PodInfo, timestamp: Seconds) -> tuple[Any, ...]:
        """Return the pod's place in the order.

        Args:
            pod: its newest version; of a group, the member of the highest priority.
            timestamp: when the pod entered the queue, or came back after its last attempt; of a group, when its first member came.
                Seconds on the queue's clock.

        Returns:
            A tuple that compares with those of all other pods. The lowest is tried first.
        """


class PodGroupSettings(Protocol):
    """The settings by which PodGroups are decided, and by which nodes may be kept for them."""

    @property
    def reservation_after_seconds(self) -> int:
        """Seconds that a group is tried in vain before nodes may be kept for it; 0: at once."""

    @property
    def reservations(self) -> int:
        """Number of groups that may have nodes kept for them at a time; 0: none."""

    @property
    def reservation_percent(self) -> int:
        """Share of all nodes that may be kept for groups; at least one node."""

    @property
    def reservation_percent_of_namespace(self) -> int:
        """Share of all nodes that may be kept for the groups of one namespace; at least one node."""

    @property
    def reservation_seconds(self) -> int:
        """Seconds that nodes are kept for a group at most; its namespace then rests for as long."""

    @property
    def schedule_timeout_seconds(self) -> int:
        """Seconds that members wait for each other between decision and first Binding, unless the group says so itself; 0: without end."""

    @property
    def domains_to_compare(self) -> int:
        """Number of topology domains that hold the whole group and are compared before the best is chosen."""


class PodGroupPlugin(PreEnqueuePlugin[ArgsT], ABC):
    """Has the scheduler decide PodGroups as a whole: enough members get nodes together, or none does.

    A profile without such a plugin schedules each member by itself. The plugin's PreEnqueue gates members until their group can be
    decided. Members whose group did not fit wait for its events. If a profile has several such plugins, the first one counts. The plugin
    registers no event for members that come or get a node: the queue tries the group's gated members again by itself.

    When: a group is decided. Its members pass PreFilter to Permit one after the other; each is assumed and reserved for real. If too few
        fit, all is taken back before another pod is decided. No Binding is sent before all members have passed PreBind.
    How often: `settings` is read each time a group is decided.
    By: live, shadows and `simulate`. `explain` places a group's members on a cluster that it throws away.
    Runs: on the event loop, and never awaits.
    Reads: the plugin's arguments.
    May change: nothing.
    Statuses: those of PreEnqueue.

    Example:
        @property
        def settings(self):
            return self.args  # a class of arguments with these seven fields
    """

    @property
    @abstractmethod
    def settings(self) -> PodGroupSettings:
        """The settings by which groups of this profile are decided."""
