"""The points that take a placed pod to its node: Reserve, Permit, PreBind, Bind and PostBind.

Reserve and Permit end the scheduling cycle; the others are the binding cycle. The pod is assumed on its node before Reserve: it counts
there for every decision, though the API server does not know yet. Many binding cycles run at once, while other pods are decided
(docs/overload.md has the numbers). A binding cycle ends with a Binding, or everything is taken back. Then the Reserve plugins unreserve in
reverse order, and the pod no longer counts on its node. Other pods hear of the room as if the pod had been deleted there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework.interface.cyclestate import CycleState
from placewright.framework.interface.plugin import ArgsT, Plugin
from placewright.framework.ports import Seconds
from placewright.framework.status import SUCCESS, Status


class ReservePlugin(Plugin[ArgsT], ABC):
    """Keeps what the pod will need while it is being bound, and gives it back if the binding fails.

    When: a node was chosen and the pod is assumed there. `unreserve` follows if this or a later step fails. Reserve or Permit refused, or
        the wait for Permit, PreBind or the Binding failed. Or the pod was deleted, or its group was taken back.
    How often: `reserve` once per attempt that chose a node, in order up to the first that fails. A group may be tried in several ways;
        then it is called once for each trial. `unreserve` at most once after it, for all Reserve plugins in reverse order. A bound pod is
        never unreserved.
    By: live and `simulate`. `explain` calls `reserve` for the members of a group, on a cluster that it throws away.
    Runs: on the event loop, within the scheduling cycle: `reserve` never awaits. `unreserve` may come from the binding cycle; it never
        awaits.
    Reads: everything.
    May change: the plugin's memory, and the state: its `annotations` are written with the Binding. `Cluster.annotate` shows them on the
        assumed pod at once. `unreserve` takes all of it back. It writes nothing to the API server.
    Statuses:
        SUCCESS: the next plugin is asked.
        UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE: everything is taken back, and the pod waits in the unschedulable set for this
            plugin's events; a hint that answers QUEUE lets it back off and then be tried. PostFilter is not called, and a nomination ends.
        PENDING: the same, but the event makes the pod active at once, without backoff.
        ERROR: everything is taken back, and the pod backs off by the count of its errors in a row; no event ends that early.

    Example:
        def reserve(self, state, pod, node):
            self._seats[node] += 1
            self._taken[pod.uid] = node
            return SUCCESS

        def unreserve(self, state, pod, node):
            if self._taken.pop(pod.uid, None) is not None:
                self._seats[node] -= 1
    """

    @abstractmethod
    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Take what the pod needs on the node.

        Args:
            state: the state that Score left, or PreFilter if nothing was scored.
            pod: assumed on `node`.
            node: exists now; it may vanish before the Binding.

        Returns:
            SUCCESS, or why the pod cannot have it. If it refuses after it took a part, `unreserve` is called and gives that back.
        """

    @abstractmethod
    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Give back what `reserve` took. It is also called if `reserve` was not, because an earlier plugin refused.

        An exception is logged, and the other plugins give back all the same.

        Args:
            state: the same attempt's state.
            pod: still assumed on `node`, or bound to another node by another client.
            node: may be gone.
        """


@dataclass(frozen=True, slots=True)
class PermitResult:
    """The answer of Permit.

    Attributes:
        status: see `PermitPlugin`.
        timeout: seconds that the pod waits for this plugin at most, with WAIT; up to 900. When they have passed, the pod is rejected in
            this plugin's name.
    """

    status: Status
    timeout: Seconds = 0.0


class PermitPlugin(Plugin[ArgsT], ABC):
    """Allows, refuses or delays the binding of a placed pod.

    When: after all Reserve plugins, as the last step of the scheduling cycle.
    How often: once per attempt that reserved; all plugins in order, up to the first that refuses.
    By: live and `simulate`.
    Runs: on the event loop, within the scheduling cycle: it never awaits. A pod that waits keeps its room on the node and its
        reservations. It takes no place among the Bindings under way.
    Reads: everything; `Handle.waiting_pods` returns the pods that wait.
    May change: the plugin's memory and the state; it may allow or reject other pods that wait for it.
    Statuses:
        SUCCESS: this plugin does not object.
        WAIT: the binding cycle waits until each plugin that said WAIT has called `allow` on the waiting pod. If such a plugin calls
            `reject`, or its timeout passes, the pod is UNSCHEDULABLE in that plugin's name. The wait also ends when the pod is deleted or
            this replica's term ends.
        UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE: everything is taken back, and the pod waits in the unschedulable set for this
            plugin's events; a hint that answers QUEUE lets it back off and then be tried. A nomination ends.
        PENDING: the same, but the event makes the pod active at once, without backoff.
        ERROR: everything is taken back, and the pod backs off by the count of its errors in a row; no event ends that early.

    Example:
        def permit(self, state, pod, node):
            return PermitResult(SUCCESS if self._is_open(node) else Status(Code.WAIT), timeout=30.0)
    """

    @abstractmethod
    def permit(self, state: CycleState, pod: PodInfo, node: NodeName) -> PermitResult:
        """Judge whether the pod may be bound.

        Args:
            state: the state that Reserve left.
            pod: assumed on `node`.
            node: the node that is to get the pod.

        Returns:
            SUCCESS, a rejection, or WAIT with a timeout.
        """


class PreBindPlugin(Plugin[ArgsT], ABC):
    """Does the work that comes before the Binding, such as binding volumes.

    When: the binding cycle begins, or the wait for Permit ended well.
    How often: once per attempt that was permitted, unless `pre_bind_pre_flight` answered SKIP; the plugins run one after the other, up to
        the first that fails.
    By: live and `simulate`, which writes into its own objects.
    Runs: as a task on the event loop, and may await for as long as it likes: the pod holds up no other. It must not block, and it must let
        `asyncio.CancelledError` pass. The framework ends it so when the pod is preempted, its group is taken back, or this replica's term
        ends.
    Reads: everything; after an await the cluster may have changed.
    May change: objects at the API server, through the ports of the handle; the state. Its writes stay when the pod is rolled back,
        unless `unreserve` of the same plugin undoes it.
    Statuses:
        SUCCESS, SKIP: the next plugin runs; after the last one the Binding is sent.
        UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE: the pod is rolled back, and waits in the unschedulable set for this plugin's
            events; a hint that answers QUEUE lets it back off and then be tried. Events since its attempt began count, too.
        PENDING: the same, but the event makes the pod active at once, without backoff.
        ERROR: the pod is rolled back, and backs off by the count of its errors in a row; no event ends that early.

    Example:
        async def pre_bind(self, state, pod, node):
            done = await self.handle.volumes.until(lambda: state.abandoned or self._is_ready(pod), seconds=600.0)
            return SUCCESS if done else error("the volume is still being made")
    """

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Say whether `pre_bind` has something to do for this pod; it is called right before, and must not await.

        A pod for which all plugins answer SKIP is bound at once, without the work that lets a pod wait. Any other answer than SUCCESS
        and SKIP is an ERROR of the attempt.

        Args:
            state: the state that Permit left.
            pod: assumed on `node`.
            node: the node that is to get the pod.

        Returns:
            SKIP when `pre_bind` need not be called; else SUCCESS, which is the default.
        """
        return SUCCESS

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Prepare the node for the pod, or the pod for the node.

        Args:
            state: the state that Permit left; `state.abandoned` turns True when the pod is deleted meanwhile.
            pod: assumed on `node`.
            node: the node that is to get the pod.

        Returns:
            SUCCESS or SKIP, else why the pod cannot be bound.
        """


class BindPlugin(Plugin[ArgsT], ABC):
    """Writes the Binding.

    When: all PreBind plugins have succeeded; of a group, those of all its members. Not for a pod that an extender binds.
    How often: once per attempt; the plugins are asked in order, up to the first that does not answer SKIP.
    By: live and `simulate`.
    Runs: as a task on the event loop, and may await. While it runs, the pod holds one of the places for Bindings under way.
    Reads: everything.
    May change: the pod at the API server, through `Handle.binder`. The binder waits its turn, tries again, and looks for the outcome after
        an answer that was lost. A plugin that writes by itself must do all that.
    Statuses:
        SUCCESS: the pod is bound, and has left the queue.
        SKIP: the next plugin is asked. If every plugin skips, that is an ERROR.
        UNSCHEDULABLE, UNSCHEDULABLE_AND_UNRESOLVABLE: the pod is rolled back, and waits in the unschedulable set for this plugin's
            events; a hint that answers QUEUE lets it back off and then be tried.
        PENDING: the same, but the event makes the pod active at once, without backoff.
        ERROR: the pod is rolled back, and backs off by the count of its errors in a row; no event ends that early.

    Example:
        async def bind(self, state, pod, node, annotations):
            if "example.com/by-hand" not in pod.labels:
                return SKIP
            await self.handle.binder.bind(pod, node, annotations)
            return SUCCESS
    """

    @abstractmethod
    async def bind(self, state: CycleState, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> Status:
        """Bind the pod to the node.

        Args:
            state: the state that PreBind left.
            pod: assumed on `node`.
            node: the node that gets the pod.
            annotations: to be written in the same request: the decision, and `state.annotations`.

        Returns:
            SUCCESS once the API server has accepted the Binding, SKIP, or why it did not.

        Raises:
            BindError: the Binding was refused, or its outcome is unknown. In the second case the pod keeps its place until a watch shows
                the outcome.
        """


class PostBindPlugin(Plugin[ArgsT], ABC):
    """Hears that a pod was bound.

    When: the API server accepted the Binding, or a watch showed the pod on its node.
    How often: once per bound pod; all plugins in order, also after one that raised.
    By: live and `simulate`.
    Runs: on the event loop, and never awaits.
    Reads: everything.
    May change: the plugin's memory, and `state.activate`. What `reserve` kept for the time of binding is released here.
    Statuses: none. An exception is logged; the pod is bound.

    Example:
        def post_bind(self, state, pod, node):
            self._taken.pop(pod.uid, None)
    """

    @abstractmethod
    def post_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Take note of the Binding.

        Args:
            state: the attempt's state, for the last time.
            pod: the pod as it was when the attempt began.
            node: the node that the pod is bound to.
        """
