"""What the framework and its plugins need of the world, as protocols; the scheduler and `placewright.kube` implement them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Protocol

from placewright.api.devices import AllocationResult, ResourceClaim
from placewright.api.extenders import ExtenderSettings, Filtered, NodeVictims
from placewright.api.objects import NodeName, PodExtendedResourceClaimStatus
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.cluster.journal import Log

#: Seconds on the scheduler's clock.
Seconds = float


class WaitingForPermit(Protocol):
    """A placed pod that waits; it keeps its room and what was reserved for it."""

    @property
    def pod(self) -> PodInfo:
        """The pod."""

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Plugins that have not allowed it yet."""

    def allow(self, plugin: str) -> None:
        """This plugin has no objection any more; when none has, the pod is bound."""

    def reject(self, plugin: str, reason: str) -> None:
        """This plugin refuses: everything is taken back, and the pod waits for the plugin's events."""


class PodGroupMembers(Protocol):
    """Pods that wait, by the group that they are placed with; the queue's."""

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """The members without a node, of all profiles, those that are being tried included."""

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """How many of them may be tried, by scheduler name, `beside` counted as it is here: not leaving, and without a scheduling gate.

        Asked for each member's sake, so it must not go through all of them.
        """


class NominationChanges(Log[NodeName]):
    """The log of nodes that pods were nominated to, or not any longer; the queue writes, who keeps something about nodes reads."""


class Binder(Protocol):
    """The port through which a decision becomes a Binding."""

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """Write the Binding; raise `BindError` when it did not happen or was refused."""

    async def bind_by(self, pod: PodInfo, node: NodeName, send: Callable[[], Awaitable[None]]) -> None:
        """Let somebody else write it, such as an extender; `send` raises `ExtenderError`, this the same `BindError` as `bind`."""


class VolumeWriter(Protocol):
    """The port through which a claim gets its volume. All methods raise `VolumeError`."""

    async def bind(self, volume: PersistentVolume) -> PersistentVolume:
        """Write the volume's `claimRef` and annotations, if the volume still is at its resourceVersion; what it is now."""

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Write the claim's annotation with the node, if the claim still is at its resourceVersion; what it is now."""

    async def until(self, done: Callable[[], bool], seconds: Seconds) -> bool:
        """Look again and again; True once `done` says so, False when that did not happen in time. What `done` raises passes through."""


class ClaimWriter(Protocol):
    """The port through which claims to devices are written. What awaits raises `ClaimError`.

    Nothing here is undone by being done twice, and nothing of anybody else's is overwritten: whoever changed the claim in between is looked
    at, and what is wanted is tried again on top of it, or found to be impossible.
    """

    async def reserve(self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo) -> ResourceClaim:
        """The pod may use the claim, which gets this allocation if it has none (None: it has one); what the claim is now.

        Refused when somebody else gave the claim other devices, or took its devices away.
        """

    async def release(self, claim: ResourceClaim, pod: PodInfo, *, deallocate: bool) -> None:
        """The pod does not use the claim any more; with `deallocate`, its devices are free if nobody else does. Fine when it is gone."""

    async def create(self, claim: ResourceClaim, generate_name: str) -> ResourceClaim:
        """Make a claim, under a name that begins like this; what it is now."""

    async def delete(self, claim: ResourceClaim) -> None:
        """Free its devices and delete it; fine when it is gone."""

    async def tell_pod(self, pod: PodInfo, status: PodExtendedResourceClaimStatus) -> None:
        """Write into the pod's status which claim serves its extended resources."""

    async def until(self, done: Callable[[], bool], seconds: Seconds) -> bool:
        """As a `VolumeWriter`'s."""

    def waited(self, profile: str, drivers: Collection[str], status: str, seconds: Seconds) -> None:
        """A pod of this schedulerName waited so long for devices of these drivers: `success`, `failure`, `timeout` or `error`."""

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this beside everything else; what it raises is logged."""

    def now(self) -> float:
        """Seconds since 1970, for timestamps in claims."""


class Extender(Protocol):
    """A web server that has a say in a profile's decisions. Every call raises `ExtenderError`, and none lasts longer than its timeout.

    A call is made only when the extender has the verb for it and is `settings.interested_in` the pod.
    """

    @property
    def settings(self) -> ExtenderSettings:
        """What the profile says of it."""

    async def filter(self, pod: PodInfo, nodes: Sequence[NodeName]) -> Filtered:
        """Which of the nodes can hold the pod; nodes that were not asked about are an error."""

    async def prioritize(self, pod: PodInfo, nodes: Sequence[NodeName]) -> dict[NodeName, int]:
        """Scores as answered, 0 to 10 by convention, for as many of the nodes as it likes; weight and scale are the caller's."""

    async def preempt(
        self,
        pod: PodInfo,
        victims: Mapping[NodeName, NodeVictims],
        pods_on: Callable[[NodeName], Iterable[PodInfo]] | None = None,
    ) -> dict[NodeName, NodeVictims]:
        """The candidates that it agrees to, perhaps with other victims.

        `pods_on` gives all pods of a node, and raises KeyError for an unknown one: as in kube-scheduler, an extender may then name nodes
        and victims that it was not asked about. Without it only those that it was asked about may be named.
        """

    async def bind(self, pod: PodInfo, node: NodeName) -> None:
        """Bind the pod in the scheduler's stead; on return it is bound."""

    def open(self) -> None:
        """Get ready to be called: its profile takes effect."""

    async def close(self) -> None:
        """End its connections; calls under way fail."""
