"""The handle of a profile's plugins, its refusing ports for evaluations without an API server, and the building of plugins around it."""

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
from typing import Any, Final

import numpy as np

from placewright.api.devices import AllocationResult, ResourceClaim
from placewright.api.objects import NodeName, PodExtendedResourceClaimStatus
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.cluster.cluster import Cluster
from placewright.framework.events import ClusterEvent
from placewright.framework.interface import (
    Binder,
    BindError,
    ClaimError,
    ClaimWriter,
    CycleState,
    Extender,
    IntColumn,
    PatchError,
    Plugin,
    Rows,
    RowTrials,
    Seconds,
    VolumeError,
    VolumeWriter,
    WaitingForPermit,
)
from placewright.framework.patches import ObjectPatch, ObjectPatcher
from placewright.framework.ports import PodGroupMembers
from placewright.framework.preemption.evictions import Evictions
from placewright.framework.preemption.rules import PreemptionRules
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import Guarding
from placewright.framework.runtime.keptanswers import AnswerByRow
from placewright.framework.runtime.podcolumns import NOT_FEASIBLE
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.runtime.rowchecks import Nominations
from placewright.framework.status import Status


class NoBinder:
    """A binder for evaluations outside a running scheduler: it refuses."""

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """Refuse, because there is no API server.

        Raises:
            BindError: always.
        """
        raise BindError(f"{pod.key} cannot be bound to {node}: there is no API server")

    async def bind_by(self, pod: PodInfo, node: NodeName, send: Callable[[], Awaitable[None]]) -> None:
        """Refuse, because there is no API server.

        Raises:
            BindError: always.
        """
        await self.bind(pod, node, {})


class NoVolumeWriter:
    """A writer of volumes for evaluations outside a running scheduler: it refuses."""

    async def bind(self, volume: PersistentVolume) -> PersistentVolume:
        """Refuse, because there is no API server.

        Raises:
            VolumeError: always.
        """
        raise VolumeError(f"persistentvolume {volume.metadata.name} cannot be bound: there is no API server")

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Refuse, because there is no API server.

        Raises:
            VolumeError: always.
        """
        raise VolumeError(f"persistentvolumeclaim {claim.metadata.name} cannot be provisioned: there is no API server")

    async def until(self, done: Callable[[], bool], seconds: Seconds) -> bool:
        """Return the predicate's value now. Without a clock there is nothing to wait for."""
        return done()


class NoClaimWriter:
    """A writer of claims for evaluations outside a running scheduler: it refuses."""

    async def reserve(self, claim: ResourceClaim, allocation: AllocationResult | None, pod: PodInfo) -> ResourceClaim:
        """Refuse, because there is no API server.

        Raises:
            ClaimError: always.
        """
        raise _no_api_server(claim, "reserved")

    async def release(self, claim: ResourceClaim, pod: PodInfo, *, deallocate: bool) -> None:
        """Refuse, because there is no API server.

        Raises:
            ClaimError: always.
        """
        raise _no_api_server(claim, "released")

    async def create(self, claim: ResourceClaim, generate_name: str) -> ResourceClaim:
        """Refuse, because there is no API server.

        Raises:
            ClaimError: always.
        """
        raise _no_api_server(claim, "created")

    async def delete(self, claim: ResourceClaim) -> None:
        """Refuse, because there is no API server.

        Raises:
            ClaimError: always.
        """
        raise _no_api_server(claim, "deleted")

    async def tell_pod(self, pod: PodInfo, status: PodExtendedResourceClaimStatus) -> None:
        """Refuse, because there is no API server.

        Raises:
            ClaimError: always.
        """
        raise ClaimError(f"the status of pod {pod.key} cannot be written: there is no API server")

    async def until(self, done: Callable[[], bool], seconds: Seconds) -> bool:
        """Return the predicate's value now. Without a clock there is nothing to wait for."""
        return done()

    def waited(self, profile: str, drivers: Collection[str], status: str, seconds: Seconds) -> None:
        """Count no wait."""

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Drop the work, because nothing is written."""
        work.close()

    def now(self) -> float:
        """Return 0, because no time passes."""
        return 0.0


class NoObjectPatcher:
    """A writer of objects for evaluations outside a running scheduler: it refuses."""

    async def patch(self, path: str, body: Mapping[str, Any], namespace: str) -> None:
        """Refuse, because there is no API server.

        Raises:
            PatchError: always.
        """
        raise PatchError(f"{path} cannot be patched: there is no API server")


def _no_api_server(claim: ResourceClaim, what: str) -> ClaimError:
    return ClaimError(f"resourceclaim {claim.metadata.name} cannot be {what}: there is no API server")


def said_to_nobody(pod: PodInfo, reason: str, action: str, message: str, warning: bool) -> None:
    """Write no event, because there is no API server."""


def never_woken(seconds: float, event: ClusterEvent, subject: Any) -> None:
    """Wake no pod, because none waits."""


def never_activated(pods: Iterable[PodInfo]) -> None:
    """Activate no pod, because none waits."""


#: (seconds, event, subject): an event that happens later.
Wake = Callable[[float, ClusterEvent, Any], None]
#: (pod, reason, action, message, whether it is a Warning): an event about the pod.
Announce = Callable[[PodInfo, str, str, str, bool], None]


class NoPodGroupMembers:
    """A queue without pods, for evaluations outside a running scheduler."""

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Return no pod."""
        return ()

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """Count `beside` alone."""
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
        now: Callable[[], float] | None = None,
        wake: Wake = never_woken,
        evictions: Evictions | None = None,
        activate: Callable[[Iterable[PodInfo]], None] = never_activated,
        patcher: ObjectPatcher = NoObjectPatcher(),  # noqa: B008 - it has no state
    ) -> None:
        #: Implements `Handle.now`, by the clock that timestamps in claims go by where none was given. No method: a call less for each pod.
        self.now: Final = claims.now if now is None else now
        #: Implements `Handle.activate`.
        self.activate: Final = activate
        self._patcher = patcher
        self._patches: frozenset[ObjectPatch] = frozenset()
        self._profile_name = ""
        self._wake = wake
        self.guarding = Guarding() if guarding is None else guarding
        self._evictions = Evictions(cluster) if evictions is None else evictions
        self._budget = budget
        self._members = members
        self._claims = claims
        self._announce = announce
        # Filled in before the plugins are built, because constructors may ask `runs`.
        self._runs: frozenset[str] = frozenset()
        self._cluster = cluster
        self._waiting = waiting
        self._binder = binder
        self._volumes = volumes
        self._nominations = nominations
        # Made after the plugins, which it asks; so no constructor of a plugin can ask about rows.
        self._evaluator: Evaluator | None = None

    @property
    def cluster(self) -> Cluster:
        """The cluster as columns."""
        return self._cluster

    @property
    def binder(self) -> Binder:
        """The port that writes Bindings."""
        return self._binder

    @property
    def volumes(self) -> VolumeWriter:
        """The port that gives claims their volumes."""
        return self._volumes

    @property
    def claims(self) -> ClaimWriter:
        """The port that gives claims their devices."""
        return self._claims

    def wake_after(self, seconds: float, event: ClusterEvent, subject: Any = None) -> None:
        """Set an alarm of the queue."""
        self._wake(seconds, event, subject)

    @property
    def preemption_rules(self) -> PreemptionRules | None:
        """The rules of the profile's `spec.preemption`; no plugin asks before all are built."""
        return None if self._evaluator is None else self._evaluator.runtime.preemption_rules

    def announce(self, pod: PodInfo, reason: str, action: str, message: str, *, warning: bool = False) -> None:
        """Write an event about the pod."""
        self._announce(pod, reason, action, message, warning)

    @property
    def profile_name(self) -> str:
        """The profile's name."""
        return self._profile_name

    def runs(self, plugin: str) -> bool:
        """Return True for a plugin of the profile."""
        return plugin in self._runs

    async def patch(self, what: ObjectPatch, name: str, body: Mapping[str, Any], namespace: str = "") -> None:
        """Patch an object that a plugin of the profile declares."""
        if what not in self._patches:
            raise ValueError(f"no plugin of profile {self._profile_name} declares that it patches {what.resource}.{what.group}")
        await self._patcher.patch(what.path(name, namespace), body, namespace)

    def waiting_pods(self) -> Iterable[WaitingForPermit]:
        """Return the pods that wait for Permit plugins."""
        return self._waiting

    def waiting_pod(self, uid: str) -> WaitingForPermit | None:
        """Find a pod that waits for Permit plugins."""
        return next((waiting for waiting in self._waiting if waiting.pod.uid == uid), None)

    def waiting_members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Return the members of a group without a node."""
        return self._members.members(ref)

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """Count the members of a group that may be tried."""
        return self._members.ready_members(ref, beside)

    def making_room_for(self, pod: PodInfo) -> bool:
        """Return True while victims of the pod are being evicted."""
        return pod.uid in self._nominations.making_room_for

    def nominated_pods(self, node: NodeName) -> Collection[PodInfo]:
        """Copy the list of pods that are nominated to the node."""
        return tuple(self._nominations.pods_on(node))

    def nominate(self, pod: PodInfo, node: NodeName) -> None:
        """Nominate the pod to the node."""
        self._nominations.add(pod, node)

    def withdraw_nomination(self, pod: PodInfo) -> None:
        """Withdraw the pod's nomination."""
        self._nominations.delete(pod.uid)

    def nominated_before(self, pod: PodInfo) -> Sequence[tuple[PodInfo, NodeName]]:
        """Return nominated pods that claim more than room on their node."""
        return () if self._evaluator is None else self._evaluator.checker.nominated_before(pod)

    def check_row(self, pod: PodInfo, row: int) -> Status:
        """Run PreFilter and Filter on one row."""
        if self._evaluator is None:
            raise RuntimeError("check_row was called before the profile was built")
        return self._evaluator.checker.check_row(pod, row)

    def trials(self, pod: PodInfo, rows: Iterable[int] | None = None) -> RowTrials:
        """Run PreFilter, and return the trials of rows."""
        if self._evaluator is None:
            raise RuntimeError("trials were asked for before the profile was built")
        return self._evaluator.checker.trials(pod, rows)

    def score_rows(self, pod: PodInfo, rows: Rows) -> IntColumn:
        """Evaluate the pod on these rows, and score the rows that can hold it."""
        if self._evaluator is None:
            raise RuntimeError("score_rows was called before the profile was built")
        evaluation = self._evaluator.evaluate(pod)
        asked = np.zeros(self._cluster.size, np.bool_)
        asked[rows] = True
        evaluation.feasible = evaluation.feasible & asked
        evaluation.count = int(np.count_nonzero(evaluation.feasible))
        if not evaluation.count:
            return np.full(len(rows), NOT_FEASIBLE, np.int64)
        return self._evaluator.score(evaluation)[rows].astype(np.int64)

    def kept_of_rows(self, purpose: Hashable, state: CycleState, pod: PodInfo) -> MutableMapping[int, Any] | None:
        """Return the notes about rows; None for a nominated pod."""
        # A nominated pod is judged on its own node without itself, so its answers there are not those of its like.
        if self._evaluator is None or self._evaluator.checker.kept.own_row(pod) is not None:
            return None
        return self._evaluator.checker.kept.of(purpose, state, pod, AnswerByRow)

    def evaluator(self, profile: ResolvedProfile, registry: Mapping[str, type[Plugin]], extenders: Sequence[Extender] = ()) -> Evaluator:
        """Build the profile's plugins around this handle.

        Args:
            profile: resolved.
            registry: the classes of all its plugins.
            extenders: in the order in which they are asked.

        Returns:
            An evaluator on the handle's cluster.

        Raises:
            PluginBuildError: a plugin cannot be built.
            InputError: a plugin refuses its arguments.
        """
        self._runs = frozenset(plugin for names in profile.points.values() for plugin in names)
        self._profile_name = profile.name
        self._patches = frozenset(patch for plugin in self._runs for patch in registry[plugin].patches)
        runtime = ProfileRuntime(profile, registry, self, extenders, self.guarding, self._evictions)
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
    now: Callable[[], float] | None = None,
) -> Evaluator:
    """Build one generation of a profile, ready to evaluate pods, without extenders.

    Args:
        profile: resolved.
        registry: the classes of all its plugins.
        cluster: the columns to evaluate on.
        binder: see `Handle.binder`; `NoBinder()` where nothing is bound.
        nominations: pods that room was made for; `NoNominations()` where there are none.
        waiting: pods that Permit plugins keep waiting; read anew whenever a plugin asks.
        volumes: see `Handle.volumes`.
        guarding: how plugins that are not ours are watched.
        budget: memory for kept columns, shared with others; None: one of its own.
        now: see `Handle.now`; None where no time passes.

    Returns:
        An evaluator.

    Raises:
        PluginBuildError: a plugin cannot be built.
        InputError: a plugin refuses its arguments.

    Example:
        evaluator = build_evaluator(profile, in_tree(), cluster, NoBinder(), NoNominations())
    """
    return ProfileHandle(cluster, binder, nominations, waiting, volumes, guarding=guarding, budget=budget, now=now).evaluator(
        profile, registry
    )
