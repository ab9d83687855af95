"""What plugins may ask of the scheduler around them, and how a profile's plugins are built around it."""

from __future__ import annotations

from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Hashable,
    Iterable,
    Mapping,
    MutableMapping,
    Sequence,
)
from typing import Any

from placewright.api.devices import AllocationResult, ResourceClaim
from placewright.api.objects import NodeName, PodExtendedResourceClaimStatus
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import (
    Binder,
    BindError,
    ClaimError,
    ClaimWriter,
    CycleState,
    Extender,
    Plugin,
    RowTrials,
    Seconds,
    VolumeError,
    VolumeWriter,
    WaitingForPermit,
)
from placewright.framework.ports import PodGroupMembers
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import Guarding
from placewright.framework.runtime.keptanswers import AnswerByRow
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.runtime.rowchecks import Nominations
from placewright.framework.status import Status


class NoBinder:
    """For evaluations outside a running scheduler: it refuses."""

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """There is nothing to bind to."""
        raise BindError(f"{pod.key} cannot be bound to {node}: there is no API server")

    async def bind_by(self, pod: PodInfo, node: NodeName, send: Callable[[], Awaitable[None]]) -> None:
        """Nobody else can, either."""
        await self.bind(pod, node, {})


class NoVolumeWriter:
    """For evaluations outside a running scheduler: it refuses."""

    async def bind(self, volume: PersistentVolume) -> PersistentVolume:
        """There is nothing to write to."""
        raise VolumeError(f"persistentvolume {volume.metadata.name} cannot be bound: there is no API server")

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """There is nothing to write to."""
        raise VolumeError(f"persistentvolumeclaim {claim.metadata.name} cannot be provisioned: there is no API server")

    async def until(self, done: Callable[[], bool], seconds: Seconds) -> bool:
        """Nothing will happen: it is so, or it is not."""
        return done()


class NoClaimWriter:
    """For evaluations outside a running scheduler: it refuses."""

    async def reserve(self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo) -> ResourceClaim:
        """There is nothing to write to."""
        raise _no_api_server(claim, "reserved")

    async def release(self, claim: ResourceClaim, pod: PodInfo, *, deallocate: bool) -> None:
        """There is nothing to write to."""
        raise _no_api_server(claim, "released")

    async def create(self, claim: ResourceClaim, generate_name: str) -> ResourceClaim:
        """There is nothing to write to."""
        raise _no_api_server(claim, "created")

    async def delete(self, claim: ResourceClaim) -> None:
        """There is nothing to write to."""
        raise _no_api_server(claim, "deleted")

    async def tell_pod(self, pod: PodInfo, status: PodExtendedResourceClaimStatus) -> None:
        """There is nothing to write to."""
        raise ClaimError(f"the status of pod {pod.key} cannot be written: there is no API server")

    async def until(self, done: Callable[[], bool], seconds: Seconds) -> bool:
        """Nothing will happen: it is so, or it is not."""
        return done()

    def waited(self, profile: str, drivers: Collection[str], status: str, seconds: Seconds) -> None:
        """Nobody counts."""

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Nothing is written."""
        work.close()

    def now(self) -> float:
        """No time passes."""
        return 0.0


def _no_api_server(claim: ResourceClaim, what: str) -> ClaimError:
    return ClaimError(f"resourceclaim {claim.metadata.name} cannot be {what}: there is no API server")


def said_to_nobody(pod: PodInfo, reason: str, action: str, message: str) -> None:
    """For evaluations outside a running scheduler."""


#: (pod, reason, action, message): a Normal event about the pod.
Announce = Callable[[PodInfo, str, str, str], None]


class NoPodGroupMembers:
    """For evaluations outside a running scheduler: nobody waits."""

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """None."""
        return ()

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """This one alone."""
        return {beside.scheduler_name: 1} if beside.may_be_tried else {}


class ProfileHandle:
    """The `Handle` of one profile's plugins.

    Attributes:
        guarding: how the plugins are watched.
    """

    def __init__(  # noqa: PLR0913 - one port each
        self,
        cluster: Cluster,
        binder: Binder,
        nominations: Nominations,
        waiting: Iterable[WaitingForPermit],
        volumes: VolumeWriter,
        claims: ClaimWriter = NoClaimWriter(),  # noqa: B008 - it has no state
        announce: Announce = said_to_nobody,
        members: PodGroupMembers = NoPodGroupMembers(),  # noqa: B008 - it has no state
        guarding: Guarding | None = None,
        budget: ColumnBudget | None = None,
    ) -> None:
        self.guarding = Guarding() if guarding is None else guarding
        self._budget = budget
        self._members = members
        self._claims = claims
        self._announce = announce
        self._runs: frozenset[str] = frozenset()
        self._cluster = cluster
        self._waiting = waiting
        self._binder = binder
        self._volumes = volumes
        self._nominations = nominations
        self._evaluator: Evaluator | None = None

    @property
    def cluster(self) -> Cluster:
        """The cluster as columns."""
        return self._cluster

    @property
    def binder(self) -> Binder:
        """Where bindings go."""
        return self._binder

    @property
    def volumes(self) -> VolumeWriter:
        """Where it is written which claim gets which volume."""
        return self._volumes

    @property
    def claims(self) -> ClaimWriter:
        """Where it is written which claim gets which devices."""
        return self._claims

    def announce(self, pod: PodInfo, reason: str, action: str, message: str) -> None:
        """A Normal event about the pod."""
        self._announce(pod, reason, action, message)

    def runs(self, plugin: str) -> bool:
        """Whether the profile runs this plugin at any point."""
        return plugin in self._runs

    def waiting_pods(self) -> Iterable[WaitingForPermit]:
        """Placed pods that Permit plugins keep waiting."""
        return self._waiting

    def waiting_members(self, ref: GroupRef) -> Collection[PodInfo]:
        """The pods of a group that have no node yet."""
        return self._members.members(ref)

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """How many of them may be tried, by scheduler name."""
        return self._members.ready_members(ref, beside)

    def making_room_for(self, pod: PodInfo) -> bool:
        """Whether victims of this pod are being evicted right now."""
        return pod.uid in self._nominations.making_room_for

    def check_row(self, pod: PodInfo, row: int) -> Status:
        """`Handle.check_row`; raise `RuntimeError` when a plugin asks in its constructor."""
        if self._evaluator is None:
            raise RuntimeError("check_row was called before the profile was built")
        return self._evaluator.checker.check_row(pod, row)

    def trials(self, pod: PodInfo, rows: Iterable[int] | None = None) -> RowTrials:
        """`Handle.trials`; raise `RuntimeError` when a plugin asks in its constructor."""
        if self._evaluator is None:
            raise RuntimeError("trials were asked for before the profile was built")
        return self._evaluator.checker.trials(pod, rows)

    def kept_of_rows(self, purpose: Hashable, state: CycleState, pod: PodInfo) -> MutableMapping[int, Any] | None:
        """`Handle.kept_of_rows`."""
        if self._evaluator is None or self._evaluator.checker.kept.own_row(pod) is not None:
            return None
        return self._evaluator.checker.kept.of(purpose, state, pod, AnswerByRow)

    def evaluator(
        self, profile: ResolvedProfile, registry: Mapping[str, type[Plugin]], extenders: Sequence[Extender] = ()
    ) -> Evaluator:
        """Build the profile's plugins around this handle; exceptions of their constructors pass through."""
        self._runs = frozenset(plugin for names in profile.points.values() for plugin in names)
        runtime = ProfileRuntime(profile, registry, self, extenders, self.guarding)
        self._evaluator = Evaluator(runtime, self._cluster, self._nominations, self._budget)
        return self._evaluator


def build_evaluator(  # noqa: PLR0913 - one port each
    profile: ResolvedProfile,
    registry: Mapping[str, type[Plugin]],
    cluster: Cluster,
    binder: Binder,
    nominations: Nominations,
    waiting: Iterable[WaitingForPermit] = (),
    volumes: VolumeWriter = NoVolumeWriter(),  # noqa: B008 - it has no state
    guarding: Guarding | None = None,
    budget: ColumnBudget | None = None,
) -> Evaluator:
    """One profile generation, ready to evaluate pods, without extenders. `waiting` is read anew whenever a plugin asks."""
    return ProfileHandle(cluster, binder, nominations, waiting, volumes, guarding=guarding, budget=budget).evaluator(profile, registry)
