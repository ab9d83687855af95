"""The scheduler as a plugin may use it: the cluster, the ports, the pods that wait, and trials of single rows.

Every plugin of a profile gets the same handle in its constructor, as `self.handle`. A shadow, `evaluate`, and `explain` without a cluster
have a handle of their own. Its ports refuse to write.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, MutableMapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from placewright.api.compatibility import Rule
from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import ClusterEvent
from placewright.framework.interface.columns import IntColumn, Rejection, Rows
from placewright.framework.interface.cyclestate import CycleState
from placewright.framework.patches import ObjectPatch
from placewright.framework.ports import Binder, ClaimWriter, VolumeWriter, WaitingForPermit
from placewright.framework.preemption.rules import PreemptionRules
from placewright.framework.status import Status

#: Seconds by which an alarm is set later than its moment: seconds since 1970 and a monotonic clock differ when they are rounded.
ROUNDING_SECONDS: Final = 0.01


class RowChecks(NamedTuple):
    """The answer of `RowTrials.check`; a row that is in neither attribute can hold the pod.

    Attributes:
        rejections: rows that cannot hold the pod, grouped by status; every row at most once.
        unsettled: rows that cannot be judged while other rows are changed hypothetically, too; check each of them alone.
    """

    rejections: list[Rejection]
    unsettled: Rows


class RowTrials(Protocol):
    """Checks many hypothetically changed rows for one pod, each row as if it alone were changed.

    Preemption takes pods off hundreds of nodes at once, and asks about all these nodes in one call. A call for each row would take most of
    the time of a preemption (docs/decisions/0013).
    """

    @property
    def rows_are_apart(self) -> bool:
        """Whether no filter that judges the pod looks at another row than the one that it judges."""

    def check(self, rows: Rows) -> RowChecks:
        """Judge rows as the columns stand now.

        Args:
            rows: shape (k,), changed since the trials were asked for.

        Returns:
            For each row the answer of `Handle.check_row`, if all other rows stood as they did before the trials.

        Raises:
            CycleError: a plugin broke.
        """


class Handle(Protocol):
    """The scheduler as a plugin may use it. Every call belongs on the thread of the event loop."""

    @property
    def cluster(self) -> Cluster:
        """The cluster as columns. In a shadow it is the shadow's own cluster; in `evaluate`, one made from files."""

    @property
    def binder(self) -> Binder:
        """The port that writes Bindings. It refuses outside of a scheduler that binds."""

    @property
    def volumes(self) -> VolumeWriter:
        """The port that gives claims their volumes. It refuses outside of a scheduler that binds."""

    @property
    def claims(self) -> ClaimWriter:
        """The port that gives claims their devices. It refuses outside of a scheduler that binds."""

    def now(self) -> float:
        """Return the time, in seconds since 1970: the time of day, in a simulation virtual time, and 0 where no time passes.

        A column that depends on the time is wrong when time has passed. `Plugin.sign` is called before each attempt. Its answer
        includes the time, or it notes the changed rows in a journal of the cluster.
        """

    def wake_after(self, seconds: float, event: ClusterEvent, subject: Any = None) -> None:
        """Let an event happen when time has passed, for waiting pods that time alone may help. It comes within a second after the moment.

        Outside of a scheduler that binds, nothing waits and nothing happens.

        Args:
            seconds: seconds from now. For a moment that `now` is compared with, add `ROUNDING_SECONDS`.
            event: its resource is the plugin's name, and the plugin registers an interest in it.
            subject: given to the hint as the object after the event.

        Example:
            self.handle.wake_after(30.0, ClusterEvent(self.name, Action.UPDATE, "SeatsFree"))
        """

    def in_force(self, rule: Rule) -> bool:
        """Tell whether a rule that versions of kube-scheduler differ in is in force for the profile. The answer never changes.

        Example:
            self._scores = handle.in_force(Rule.STORAGE_CAPACITY_SCORING)
        """

    @property
    def preemption_rules(self) -> PreemptionRules | None:
        """The rules of the profile's `spec.preemption`; None for a profile whose pods preempt as kube-scheduler's do.

        A PostFilter plugin that evicts pods asks them before it looks for victims. The scheduler refuses victims that they forbid.
        """

    def announce(self, pod: PodInfo, reason: str, action: str, message: str, *, warning: bool = False) -> None:
        """Write an event about a pod; nothing happens outside of a running scheduler.

        Args:
            pod: the event's subject.
            reason: one word in CamelCase, such as `Preempted`.
            action: the work under way, one word in CamelCase, such as `Binding`.
            message: text for people; 1024 characters at most.
            warning: whether the event is a Warning; else it is Normal.
        """

    @property
    def profile_name(self) -> str:
        """Name of the SchedulingProfile that runs the plugin; "" before its plugins are built."""

    def activate(self, pods: Iterable[PodInfo]) -> None:
        """Try waiting pods now, without their backoff. A pod that is being tried is tried again after its attempt.

        During an attempt, `CycleState.activate` does the same when the pod has passed Permit. Do not call this in PreEnqueue, QueueSort or
        a hint, because the queue calls these while it moves pods.

        Args:
            pods: any version of them; pods that the queue does not know are ignored, and so are gated ones that a plugin still gates.
        """

    def score_rows(self, pod: PodInfo, rows: Rows) -> IntColumn:
        """Run the profile's PreFilter, Filter, PreScore and Score, as an attempt would if the cluster had these nodes only.

        Do not call this at any of these points, because the calls would never end.

        Args:
            pod: any pod, also another one than the pod of the attempt.
            rows: rows that hold nodes, each once; shape (k,).

        Returns:
            The weighted sums of scores, shape (k,) int64; -1 for a row that cannot hold the pod.

        Raises:
            CycleError: a plugin broke.
            RuntimeError: called from a constructor, before the profile was built.
        """

    def runs(self, plugin: str) -> bool:
        """Whether the profile runs the plugin of this name at any point."""

    async def patch(self, what: ObjectPatch, name: str, body: Mapping[str, Any], namespace: str = "") -> None:
        """Patch an object that a plugin of the profile declares in `Plugin.patches`; temporary errors are tried again.

        Args:
            what: the declared objects.
            name: the object's name.
            body: a merge patch; with `metadata.resourceVersion` it is refused once another client changed the object.
            namespace: the object's namespace; empty for an object without.

        Raises:
            PatchError: the API server refused, this replica does not lead, or there is no API server.
            ValueError: no plugin of the profile declares `what`, or the namespace does not suit it.
        """

    def waiting_pods(self) -> Iterable[WaitingForPermit]:
        """Return the placed pods that Permit plugins keep waiting, of all profiles.

        A plugin calls `allow` or `reject` on a pod under its own name, from wherever it runs on the loop: the permit of another pod, a
        hint, a timer.

        Example:
            for waiting in self.handle.waiting_pods():
                if self.name in waiting.pending_plugins and waiting.pod.namespace == pod.namespace:
                    waiting.allow(self.name)
        """

    def waiting_pod(self, uid: str) -> WaitingForPermit | None:
        """Find a placed pod that Permit plugins keep waiting, of any profile; None for a pod that does not wait.

        Args:
            uid: the pod's.
        """

    def waiting_members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Return the pods of a group that have no node yet, of all profiles, with pods that are being tried."""

    def kept_of_rows(self, purpose: Hashable, state: CycleState, pod: PodInfo) -> MutableMapping[int, Any] | None:
        """Return the notes about rows for pods of the same signature and priority; the plugin adds to them.

        The framework forgets a row's note when the node changes, or a pod on it or nominated to it. So a note may depend on these, on the
        pod's signature and priority, and on `purpose`.

        Args:
            purpose: key that tells apart the notes of several plugins, and names everything else that they depend on.
            state: this attempt's state, after PreFilter.
            pod: the pod of this attempt.

        Returns:
            Notes by row. None if notes cannot be kept. That is so if a filter looks at other nodes, or the pod belongs to a group or is
            nominated. Notes are not kept in a dry run, either.
        """

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """Count the members of a group that may be tried: those without a node that are not being deleted and have no scheduling gate.

        Args:
            ref: the group.
            beside: a pod. If it is a member, it counts as it is here, although the queue may know another version of it.

        Returns:
            How many there are, by scheduler name. The queue keeps the numbers, so the call costs the same for a group of any size.
        """

    def making_room_for(self, pod: PodInfo) -> bool:
        """Whether victims of this pod are being evicted right now."""

    def nominated_pods(self, node: NodeName) -> Collection[PodInfo]:
        """Return the pods that are nominated to a node, of all profiles, in order of nomination.

        Args:
            node: any.
        """

    def nominate(self, pod: PodInfo, node: NodeName) -> None:
        """Keep room on a node for a pod, against pods of no higher priority.

        The nomination ends when the pod is bound, deleted or nominated elsewhere. The pod's status is not written: the scheduler writes the
        node that PostFilter answers. A restart forgets other nominations.

        Args:
            pod: a pod without a node; its earlier nomination is replaced.
            node: the node that keeps the room.
        """

    def withdraw_nomination(self, pod: PodInfo) -> None:
        """Keep no more room for a pod; harmless for a pod that is not nominated."""

    def nominated_before(self, pod: PodInfo) -> Sequence[tuple[PodInfo, NodeName]]:
        """Return the nominated pods of at least the pod's priority that claim more than room: volumes, devices, extended resources.

        Preemption made room for them, and the framework keeps that room on the node of the nomination. Volumes and devices may belong to
        no single node. So a plugin that gives them out asks here in PreFilter, and counts them as taken.

        Args:
            pod: the pod of the attempt. It is not among them, nor is a member of its group. Pods that are assumed by now are not, either.

        Returns:
            The pods with the nodes that they are nominated to, highest priority first.
        """

    def check_row(self, pod: PodInfo, row: int) -> Status:
        """Run the profile's PreFilter and Filter on one row as the columns stand now; see `Cluster.dry_run_on_row`.

        Pods of at least the same priority may be nominated to that node. Then the pod must fit with and without them.

        Args:
            pod: any pod, also another one than the pod of the attempt.
            row: a row that holds a node.

        Returns:
            SUCCESS, or the first rejection with the plugin's name.

        Raises:
            CycleError: a plugin broke.
            RuntimeError: called from a constructor, before the profile was built.

        Example:
            with cluster.dry_run_on_row(remove=[victim], row=row):
                fits = self.handle.check_row(pod, row).ok
        """

    def trials(self, pod: PodInfo, rows: Iterable[int] | None = None) -> RowTrials:
        """Return `check_row` for many rows at once. PreFilter runs here, so call it before anything is changed hypothetically.

        Args:
            pod: the pod to try.
            rows: the rows that will be asked about; None: any.

        Raises:
            CycleError: a plugin broke.
            RuntimeError: called from a constructor, before the profile was built.
        """
