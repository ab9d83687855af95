"""Ports: the protocols through which the framework and its plugins reach the queue, the API server and extenders.

The scheduler and `placewright.kube` implement them; a simulation and tests have implementations of their own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Container, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from placewright.api.devices import AllocationResult, ConsumerReference, ResourceClaim
from placewright.api.extenders import ExtenderSettings, Filtered, NodeVictims
from placewright.api.objects import NodeAllocatableClaimStatus, NodeName, PodExtendedResourceClaimStatus
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.cluster.journal import Log

#: Seconds on the scheduler's clock.
Seconds = float


class WaitingForPermit(Protocol):
    """A placed pod that waits; it keeps its room and its reservations."""

    @property
    def pod(self) -> PodInfo:
        """The pod."""

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Plugins that have not allowed it yet."""

    def allow(self, plugin: str) -> None:
        """Take back this plugin's objection; when no plugin has one any more, the pod is bound.

        Args:
            plugin: the caller's name; harmless for a plugin that did not make the pod wait.
        """

    def reject(self, plugin: str, reason: str) -> None:
        """Refuse: everything is taken back, and the pod waits in the unschedulable set for this plugin's events.

        Args:
            plugin: the caller's name.
            reason: text for the pod's event and condition.
        """


class PodGroupMembers(Protocol):
    """The queue, as far as plugins ask it about groups."""

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """List the members that have no node, of all profiles; members that are being tried are among them.

        Args:
            ref: the group.

        Returns:
            The pods, in order of arrival; none for a group that the queue does not know.
        """

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """Count the members that may be tried. Asked for each member's sake, so it must not go through all of them.

        Args:
            ref: the group.
            beside: a pod. A member counts as it is here. It may be tried if it is not being deleted and has no scheduling gate.

        Returns:
            How many there are, by scheduler name.
        """


class NominationChanges(Log[NodeName]):
    """The log of nodes to which pods were nominated, or are not any longer. The queue writes it; caches of verdicts on nodes read it."""


@dataclass(frozen=True, slots=True)
class KeptFor:
    """The group that a node is kept for, and until when.

    Attributes:
        pod_group: the group.
        ends: end of the reservation, in seconds on the scheduler's clock.
        told: the group and the time of day of the end, as messages tell them.
    """

    pod_group: GroupRef
    ends: Seconds
    told: str


class Nominations(Protocol):
    """Pods that preemption made room for and that are not placed yet; the queue's nominator."""

    @property
    def changes(self) -> NominationChanges:
        """Nodes that pods were nominated to, or not any longer."""

    @property
    def with_terms(self) -> int:
        """How many nominated pods have affinity terms of their own."""

    def node_of(self, uid: str) -> NodeName | None:
        """Return the node that a pod is nominated to.

        Returns:
            None if it is nominated to none.
        """

    def nodes(self) -> Collection[NodeName]:
        """List the nodes that have nominated pods."""

    def pods_on(self, node: NodeName) -> Collection[PodInfo]:
        """List the pods that are nominated to a node."""

    def add(self, pod: PodInfo, node: NodeName) -> None:
        """Nominate a pod to a node, and replace an earlier nomination."""

    def delete(self, uid: str) -> object:
        """Withdraw a pod's nomination, if it has one."""

    def claimants(self) -> Iterable[tuple[PodInfo, NodeName]]:
        """List the nominated pods that claim more than room on their node, each with the node."""

    @property
    def making_room_for(self) -> Container[str]:
        """Uids of pods whose victims are being evicted."""

    @property
    def kept_for(self) -> Mapping[str, KeptFor]:
        """By uid, of the nominated pods whose node is kept for their group."""

    @property
    def together(self) -> Container[GroupRef]:
        """Groups whose members are tried together now, and ignore each other's nominations."""


class Binder(Protocol):
    """The port through which a decision becomes a Binding. It waits its turn, tries again, and finds out about lost answers."""

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """Write the Binding, with the pod's uid, so that no namesake is bound.

        Args:
            pod: assumed on `node`.
            node: the node that gets the pod.
            annotations: written on the pod in the same request.

        Raises:
            BindError: the Binding was refused, or given up; with `unknown`, its outcome cannot be told.
        """

    async def bind_by(self, pod: PodInfo, node: NodeName, send: Callable[[], Awaitable[None]]) -> None:
        """Let an extender write the Binding, and look afterwards whether it did.

        Args:
            pod: assumed on `node`.
            node: the node that gets the pod.
            send: asks the extender; raises `ExtenderError`.

        Raises:
            BindError: as `bind`.
        """


class VolumeWriter(Protocol):
    """The port through which a claim gets its volume. All methods raise `VolumeError`."""

    async def bind(self, volume: PersistentVolume) -> PersistentVolume:
        """Write a volume's `claimRef` and annotations, if the volume still is at its resourceVersion.

        Args:
            volume: the volume as it shall be.

        Returns:
            The volume as the API server has it now.

        Raises:
            VolumeError: it was refused, or another client changed the object first.
        """

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Write the annotation that names the node on a claim, if the claim still is at its resourceVersion.

        Args:
            claim: the claim as it shall be.

        Returns:
            The claim as the API server has it now.

        Raises:
            VolumeError: it was refused, or another client changed the object first.
        """

    async def until(self, done: Callable[[], bool], seconds: Seconds) -> bool:
        """Wait until a predicate holds. The watches tell of changes, so looking again asks nothing of the API server.

        Args:
            done: called again and again, five times a second at first, then less often; its exceptions pass through.
            seconds: longest wait.

        Returns:
            False if it did not hold in time.
        """


class ClaimWriter(Protocol):
    """The port through which claims to devices are written. What awaits raises `ClaimError`.

    A call that is repeated does no harm, and no other client's change is overwritten. If the claim changed in between, it is read again.
    Then the change is made on top of it, or found to be impossible.
    """

    async def reserve(
        self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo, group: ConsumerReference | None = None
    ) -> ResourceClaim:
        """Let the pod use a claim.

        Args:
            claim: the claim as it was when the pod was decided.
            allocation: the devices that the claim gets if it has none; None: it has some.
            pod: is added to the claim's users.
            group: the pod's group, which is added instead.

        Returns:
            The claim as the API server has it now.

        Raises:
            ClaimError: another client gave the claim other devices, or took its devices away.
        """

    async def release(self, claim: ResourceClaim, pod: PodInfo, *, deallocate: bool, group: ConsumerReference | None = None) -> None:
        """End the pod's use of a claim; fine when the claim is gone.

        Args:
            claim: any version of it.
            pod: is taken off the claim's users.
            group: the pod's group, which is taken off instead.
            deallocate: free the devices if no other pod uses them.

        Raises:
            ClaimError: it was refused.
        """

    async def create(self, claim: ResourceClaim, generate_name: str) -> ResourceClaim:
        """Make a claim.

        Args:
            claim: a claim without a name.
            generate_name: beginning of its name.

        Returns:
            The claim as the API server made it.

        Raises:
            ClaimError: it was refused.
        """

    async def delete(self, claim: ResourceClaim) -> None:
        """Free a claim's devices and delete it; fine when it is gone.

        Args:
            claim: any version of it.

        Raises:
            ClaimError: it was refused.
        """

    async def tell_pod(self, pod: PodInfo, status: PodExtendedResourceClaimStatus) -> None:
        """Write into a pod's status which claim serves its extended resources.

        Args:
            pod: not bound yet.
            status: the claim, and which container's request it serves.

        Raises:
            ClaimError: it was refused.
        """

    async def tell_node_resources(self, pod: PodInfo, statuses: Sequence[NodeAllocatableClaimStatus]) -> None:
        """Write into a pod's status which resources of its node it takes with its claims.

        Args:
            pod: not bound yet.
            statuses: resources by claim; none to remove earlier ones.

        Raises:
            ClaimError: it was refused.
        """

    async def until(self, done: Callable[[], bool], seconds: Seconds) -> bool:
        """Wait until a predicate holds, as `VolumeWriter.until` does.

        Args:
            done: called again and again; its exceptions pass through.
            seconds: longest wait.

        Returns:
            False if it did not hold in time.
        """

    def waited(self, profile: str, drivers: Collection[str], status: str, seconds: Seconds) -> None:
        """Count for the metrics how long a pod waited for devices.

        Args:
            profile: the pod's schedulerName.
            drivers: drivers of the devices.
            status: `success`, `failure`, `timeout` or `error`.
            seconds: length of the wait.
        """

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside everything else; its exceptions are logged.

        Args:
            work: a coroutine that has not begun.
        """

    def now(self) -> float:
        """Return the seconds since 1970, for timestamps in claims; a simulation has its own."""


class Extender(Protocol):
    """A web server that has a say in a profile's decisions. No call lasts longer than the extender's timeout.

    A call is made only when the extender has the verb for it and is `settings.interested_in` the pod.
    """

    @property
    def settings(self) -> ExtenderSettings:
        """The extender as the profile describes it."""

    async def filter(self, pod: PodInfo, nodes: Sequence[NodeName]) -> Filtered:
        """Ask which nodes can hold a pod.

        Args:
            pod: the pod of the attempt.
            nodes: the nodes that the profile's filters left.

        Returns:
            The nodes that it keeps, and the others with their reasons.

        Raises:
            ExtenderError: no answer, or one that names nodes which it was not asked about.
        """

    async def prioritize(self, pod: PodInfo, nodes: Sequence[NodeName]) -> dict[NodeName, int]:
        """Ask for scores.

        Args:
            pod: the pod of the attempt.
            nodes: the nodes that can hold it.

        Returns:
            Scores as answered, 0 to 10 by convention, for as many of the nodes as it likes; the caller applies weight and scale.

        Raises:
            ExtenderError: no answer, or none that can be read.
        """

    async def preempt(
        self,
        pod: PodInfo,
        victims: Mapping[NodeName, NodeVictims],
        pods_on: Callable[[NodeName], Iterable[PodInfo]] | None = None,
    ) -> dict[NodeName, NodeVictims]:
        """Ask whether victims may be evicted.

        Args:
            pod: the preemptor.
            victims: pods that would have to leave, by node.
            pods_on: returns all pods of a node, and raises KeyError for an unknown one. As in kube-scheduler, an extender may then name
                nodes and victims that it was not asked about. None: it may not.

        Returns:
            The nodes that it agrees to, perhaps with other victims.

        Raises:
            ExtenderError: no answer, or one that names nodes or victims that it may not name.
        """

    async def bind(self, pod: PodInfo, node: NodeName) -> None:
        """Bind the pod in the scheduler's stead; on return it is bound.

        Args:
            pod: assumed on `node`.
            node: the node that gets the pod.

        Raises:
            ExtenderError: it did not bind, as far as it says.
        """

    def open(self) -> None:
        """Get ready to be called, because its profile takes effect."""

    async def close(self) -> None:
        """End its connections; calls under way fail."""
