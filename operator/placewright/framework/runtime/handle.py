"""The handle of a profile's plugins, its ports that refuse without an API server, and the building of plugins."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Coroutine,
    Hashable,
    Iterable,
    Mapping,
    MutableMapping,
    Sequence,
)
from collections.abc import Set as AbstractSet
from typing import Any, Final, NoReturn

import numpy as np

from placewright.api.compatibility import Rule
from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
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
from placewright.framework.ports import Nominations, PodGroupMembers
from placewright.framework.preemption.evictions import Evictions
from placewright.framework.preemption.rules import PreemptionRules
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import Guarding
from placewright.framework.runtime.podcolumns import NOT_FEASIBLE
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.framework.runtime.rowchecks import AnswerByRow, NoNominations
from placewright.framework.status import Status


def refuse(error: type[Exception], what: str) -> Any:
    """Make an async method that raises an error, because there is no API server.

    `what` says what cannot be done; `{0}` and `{1}` in it are the arguments of the call.
    """

    async def refusal(_port: object, *args: Any, **_named: Any) -> NoReturn:
        raise error(f"{what.format(*args)}: there is no API server")

    return refusal


class NoBinder(Binder):
    """A binder for evaluations outside a running scheduler: it refuses."""

    bind = refuse(BindError, "{0.key} cannot be bound to {1}")
    bind_by = bind


class NoVolumeWriter(VolumeWriter):
    """A writer of volumes for evaluations outside a running scheduler: it refuses."""

    bind = refuse(VolumeError, "persistentvolume {0.metadata.name} cannot be bound")
    select_node = refuse(VolumeError, "persistentvolumeclaim {0.metadata.name} cannot be provisioned")

    async def until(self, done: Callable[[], bool], seconds: Seconds) -> bool:
        """Return the predicate's value now. Without a clock there is nothing to wait for."""
        return done()


class NoClaimWriter(ClaimWriter):
    """A writer of claims for evaluations outside a running scheduler: it refuses."""

    reserve = refuse(ClaimError, "resourceclaim {0.metadata.name} cannot be reserved")
    release = refuse(ClaimError, "resourceclaim {0.metadata.name} cannot be released")
    create = refuse(ClaimError, "resourceclaim {0.metadata.name} cannot be created")
    delete = refuse(ClaimError, "resourceclaim {0.metadata.name} cannot be deleted")
    tell_pod = tell_node_resources = refuse(ClaimError, "the status of pod {0.key} cannot be written")
    until = NoVolumeWriter.until

    def waited(self, profile: str, drivers: Collection[str], status: str, seconds: Seconds) -> None:
        """Count no wait."""
        return

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Drop the work, because nothing is written."""
        work.close()

    def now(self) -> float:
        """Return 0, because no time passes."""
        return 0.0


class NoObjectPatcher(ObjectPatcher):
    """A writer of objects for evaluations outside a running scheduler: it refuses."""

    patch = refuse(PatchError, "{0} cannot be patched")


def ignore(*_told: Any) -> None:
    """Do nothing: without an API server no event is written, and without a queue no pod is woken."""


#: (seconds, event, subject): an event that happens later.
Wake = Callable[[float, ClusterEvent, Any], None]
#: (pod, reason, action, message, whether it is a Warning): an event about the pod.
Announce = Callable[[PodInfo, str, str, str, bool], None]


class NoPodGroupMembers(PodGroupMembers):
    """A queue without pods, for evaluations outside a running scheduler."""

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Return no pod."""
        return ()

    def ready_members(self, ref: GroupRef, beside: PodInfo) -> Mapping[str, int]:
        """Count `beside` alone."""
        return {beside.scheduler_name: 1} if beside.may_be_tried and beside.pod_group == ref else {}


class ProfileHandle:
    """The `Handle` of one profile's plugins.

    Without a port it refuses to write, as for evaluations without an API server.

    Attributes:
        guarding: the way in which the plugins are watched.

    Example:
        evaluator = ProfileHandle(cluster).evaluator(profile, in_tree())
    """

    def __init__(  # noqa: PLR0913 - one port each
        self,
        cluster: Cluster,
        binder: Binder = NoBinder(),  # noqa: B008 - it has no state
        nominations: Nominations | None = None,
        waiting: Iterable[WaitingForPermit] = (),
        volumes: VolumeWriter = NoVolumeWriter(),  # noqa: B008 - it has no state
        claims: ClaimWriter = NoClaimWriter(),  # noqa: B008 - it has no state
        announce: Announce = ignore,
        members: PodGroupMembers = NoPodGroupMembers(),  # noqa: B008 - it has no state
        guarding: Guarding | None = None,
        budget: ColumnBudget | None = None,
        now: Callable[[], float] | None = None,
        wake: Wake = ignore,
        evictions: Evictions | None = None,
        activate: Callable[[Iterable[PodInfo]], None] = ignore,
        patcher: ObjectPatcher = NoObjectPatcher(),  # noqa: B008 - it has no state
    ) -> None:
        #: Implements `Handle.now`, by the clock that timestamps in claims go by if none was given. No method: a call less for each pod.
        self.now: Final = claims.now if now is None else now
        #: Implements `Handle.activate`.
        self.activate: Final = activate
        self.cluster: Final = cluster
        self.binder: Final = binder
        self.volumes: Final = volumes
        self.claims: Final = claims
        self.waiting_members: Final = members.members
        self.ready_members: Final = members.ready_members
        self.guarding = Guarding() if guarding is None else guarding
        # These four are filled in before the plugins are built, because constructors may ask for them.
        self.profile_name = ""
        self._patches: frozenset[ObjectPatch] = frozenset()
        self._runs: frozenset[str] = frozenset()
        self._rules: AbstractSet[Rule] = frozenset()
        self._patcher = patcher
        self._wake = wake
        self._evictions = Evictions(cluster) if evictions is None else evictions
        self._budget = budget
        self._announce = announce
        self._waiting = waiting
        self._nominations = NoNominations() if nominations is None else nominations
        # Made after the plugins, which it asks; so no constructor of a plugin can ask about rows.
        self._evaluator: Evaluator | None = None

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

    def in_force(self, rule: Rule) -> bool:
        """Return True for a rule of the profile's version, or one that the profile switches on."""
        return rule in self._rules

    def runs(self, plugin: str) -> bool:
        """Return True for a plugin of the profile."""
        return plugin in self._runs

    async def patch(self, what: ObjectPatch, name: str, body: Mapping[str, Any], namespace: str = "") -> None:
        """Patch an object that a plugin of the profile declares."""
        if what not in self._patches:
            raise ValueError(f"no plugin of profile {self.profile_name} declares that it patches {what.resource}.{what.group}")
        await self._patcher.patch(what.path(name, namespace), body, namespace)

    def waiting_pods(self) -> Iterable[WaitingForPermit]:
        """Return the pods that wait for Permit plugins."""
        return self._waiting

    def waiting_pod(self, uid: str) -> WaitingForPermit | None:
        """Find a pod that waits for Permit plugins."""
        return next((waiting for waiting in self._waiting if waiting.pod.uid == uid), None)

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
        return self._built("check_row was called").checker.check_row(pod, row)

    def trials(self, pod: PodInfo, rows: Iterable[int] | None = None) -> RowTrials:
        """Run PreFilter, and return the trials of rows."""
        return self._built("trials were asked for").checker.trials(pod, rows)

    def score_rows(self, pod: PodInfo, rows: Rows) -> IntColumn:
        """Evaluate the pod on these rows, and score the rows that can hold it."""
        evaluator = self._built("score_rows was called")
        evaluation = evaluator.evaluate(pod)
        asked = np.zeros(self.cluster.size, np.bool_)
        asked[rows] = True
        evaluation.feasible = evaluation.feasible & asked
        evaluation.count = int(np.count_nonzero(evaluation.feasible))
        if not evaluation.count:
            return np.full(len(rows), NOT_FEASIBLE, np.int64)
        return evaluator.score(evaluation)[rows].astype(np.int64)

    def kept_of_rows(self, purpose: Hashable, state: CycleState, pod: PodInfo) -> MutableMapping[int, Any] | None:
        """Return the notes about rows; None for a nominated pod."""
        # A nominated pod is judged on its own node without itself. So its answers there are its own.
        if self._evaluator is None or self._evaluator.checker.kept.own_row(pod) is not None:
            return None
        return self._evaluator.checker.kept.of(purpose, state, pod, AnswerByRow)

    def evaluator(self, profile: ResolvedProfile, registry: Mapping[str, type[Plugin]], extenders: Sequence[Extender] = ()) -> Evaluator:
        """Build the profile's plugins around this handle.

        Args:
            profile: resolved.
            registry: the classes of all its plugins.
            extenders: the profile's extenders, in the order in which they are asked.

        Raises:
            PluginBuildError: a plugin cannot be built.
            InputError: a plugin refuses its arguments.
        """
        self._runs = frozenset(plugin for names in profile.points.values() for plugin in names)
        self.profile_name = profile.name
        self._rules = profile.rules
        self._patches = frozenset(patch for plugin in self._runs for patch in registry[plugin].patches)
        runtime = ProfileRuntime(profile, registry, self, extenders, self.guarding, self._evictions)
        self._evaluator = Evaluator(runtime, self.cluster, self._nominations, self._budget)
        return self._evaluator

    def _built(self, asked: str) -> Evaluator:
        if self._evaluator is None:
            raise RuntimeError(f"{asked} before the profile was built")
        return self._evaluator
