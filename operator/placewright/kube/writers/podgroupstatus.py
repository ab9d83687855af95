"""Writes the status of pod groups into the objects that declare them.

Of a group only the latest news is written, at most once a second, and only fields that differ. A replica that lost the lead writes nothing.

PodGroups of scheduling.x-k8s.io may have a controller of their own (scheduler-plugins'), which derives `phase`, `occupiedBy` and `running`
from the members. This writer writes the values that it would write, and leaves alone the values that only it can know: `succeeded`,
`failed`, and the phases Finished and Failed. So neither undoes the other's writes; without that controller a group is Pending, then
Scheduling, then Running. PodGroups of scheduling.k8s.io get their condition. Workloads have no status, and Volcano writes the status of its
PodGroups itself: of these two only events tell (docs/decisions/0022).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Final

from placewright.api.givenup import SCHEDULED as GROUP_SCHEDULED
from placewright.api.givenup import find_given_up
from placewright.api.objects import Condition
from placewright.api.podgroups import (
    COSCHEDULING_GROUP,
    NATIVE_GROUP,
    CompositePodGroup,
    CoschedulingPodGroup,
    CoschedulingStatus,
    GroupObject,
    GroupRef,
    NativePodGroup,
    PodGroup,
)
from placewright.kube.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from placewright.kube.errors import ApiError, RequestError
from placewright.kube.ratelimit import Traffic
from placewright.kube.writers.events import seconds_time
from placewright.kube.writers.podstatus import StatusCounts, condition_json, dated, find_condition
from placewright.kube.writers.writequeue import QueueingWriter, remember

#: Condition of the API version of Kubernetes 1.36.
SCHEDULED: Final = "PodGroupScheduled"
#: Condition of later API versions; once True it never becomes False again.
INITIALLY_SCHEDULED: Final = "PodGroupInitiallyScheduled"
#: The same for a group of groups.
COMPOSITE_INITIALLY_SCHEDULED: Final = "CompositePodGroupInitiallyScheduled"
_VERSION_OF_136: Final = "v1alpha2"
PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
RUNNING: Final = "Running"
#: Phases that a controller sets and never changes.
_FINAL: Final = frozenset({"Finished", "Failed"})
_LONGEST_MESSAGE: Final = 32_768
#: Seconds between two writes about one group.
PAUSE_SECONDS: Final = 1.0
WORKERS: Final = 2
MOST_WAITING: Final = 5_000


@dataclass(frozen=True, slots=True)
class GroupNews:
    """News of a group; a field that is None has no news.

    Attributes:
        pod_group: the group.
        placed: whether its members have their nodes.
        error: an error kept it from being placed, not a lack of room.
        message: message of the condition.
        running: number of members that run.
        owners: the members' owners, for `occupiedBy`.
        given_up: the condition of a group whose members are given up, or no longer are, without its time.
    """

    pod_group: PodGroup
    placed: bool | None = None
    error: bool = False
    message: str = ""
    running: int | None = None
    owners: str = ""
    given_up: Condition | None = None


@dataclass(eq=False)
class HttpGroupStatusWriter(QueueingWriter[GroupRef, GroupNews]):
    """Writes news of groups, latest wins; the network side of the scheduler's port `GroupStatusWriter`.

    Attributes:
        shown: the object of a group as the watch shows it; None when it is gone.
        native_version: API version in which PodGroups of scheduling.k8s.io are read.
        composite_version: API version in which CompositePodGroups are read.
        counts: outcomes so far.
    """

    TRAFFIC: ClassVar[Traffic] = Traffic.STATUS
    NAME: ClassVar[str] = "group status"

    _: KW_ONLY
    shown: Callable[[GroupRef], GroupObject | None]
    native_version: Callable[[], str]
    composite_version: Callable[[], str]
    workers: int = WORKERS
    counts: StatusCounts = field(init=False, default_factory=StatusCounts)

    def __post_init__(self) -> None:
        super().__post_init__()
        #: Earliest time at which a group may be written again; the oldest entries are dropped.
        self._paused_until: OrderedDict[GroupRef, float] = OrderedDict()
        #: Version that was read and status that was then written, by group.
        self._written: OrderedDict[GroupRef, tuple[str, dict[str, Any]]] = OrderedDict()

    def tell(self, news: GroupNews) -> None:
        """Queue news of a group; returns at once. Fields without news keep the value that waits to be written."""
        ref = news.pod_group.ref
        before = self.waiting.get(ref)
        if before is not None:
            self.counts.overtaken += 1
            if before.pod_group.uid == news.pod_group.uid:
                news = _together(before, news)
        self._put(ref, replace(news, message=news.message[:_LONGEST_MESSAGE]))
        if len(self.waiting) > MOST_WAITING:
            self._drop(self._take_out(next(iter(self.waiting))))

    # --- working ---------------------------------------------------------------------------------------------------------------

    def _not_before(self, ref: GroupRef) -> float:
        return self._paused_until.get(ref, 0.0)

    def _namespace_of(self, item: GroupNews) -> str:
        return item.pod_group.ref.namespace

    async def _write(self, news: GroupNews) -> None:
        ref = news.pod_group.ref
        item = self.shown(ref)
        if item is None or item.metadata.uid != news.pod_group.uid:
            self.counts.vanished += 1
            return
        status = self._status(item, news)
        seen = item.metadata.resource_version
        if not status or self._written.get(ref) == (seen, status):
            self.counts.unchanged += 1
            return
        if await self._sent(item, ref, status):
            self.counts.written += 1
            remember(self._written, ref, (seen, status), MOST_WAITING)
        remember(self._paused_until, ref, self.clock() + PAUSE_SECONDS, MOST_WAITING)

    async def _sent(self, item: GroupObject, ref: GroupRef, status: dict[str, Any]) -> bool:
        native, root, collection = True, f"{NATIVE_GROUP}/{self.native_version()}", "podgroups"
        if isinstance(item, CompositePodGroup):
            root, collection = f"{NATIVE_GROUP}/{self.composite_version()}", "compositepodgroups"
        elif not isinstance(item, NativePodGroup):
            native, root = False, f"{COSCHEDULING_GROUP}/v1alpha1"
        path = f"/apis/{root}/namespaces/{ref.namespace}/{collection}/{ref.object_name}/status"
        # A strategic merge patch leaves conditions of others alone, but the API server refuses it for custom resources.
        kind = STRATEGIC_MERGE_PATCH if native else MERGE_PATCH
        body = {"metadata": {"uid": item.metadata.uid}, "status": status}
        try:
            await self._send(lambda: self.client.patch(path, self._guarded(body), content_type=kind))
        except RequestError as error:
            if isinstance(error, ApiError) and error.gone_or_replaced:
                self.counts.vanished += 1
            else:
                self._failed(ref, error)
            return False
        self._complained = False
        return True

    # --- the status to write -----------------------------------------------------------------------------------------------------

    def _status(self, item: GroupObject, news: GroupNews) -> dict[str, Any]:
        """Return the fields of the status that differ from the wanted ones."""
        if isinstance(item, CoschedulingPodGroup):
            return coscheduling_changes(item.status, news, self.utc_now())
        if isinstance(item, NativePodGroup | CompositePodGroup):
            wanted = (self._scheduled_condition(item, news), self._given_up_condition(item, news))
            conditions = [each for each in wanted if each is not None]
            return {"conditions": conditions} if conditions else {}
        return {}

    def _scheduled_condition(self, item: NativePodGroup | CompositePodGroup, news: GroupNews) -> dict[str, Any] | None:
        if news.placed is None:
            return None
        kind = SCHEDULED if self.native_version() == _VERSION_OF_136 else INITIALLY_SCHEDULED
        if isinstance(item, CompositePodGroup):
            kind = COMPOSITE_INITIALLY_SCHEDULED
        return native_condition(kind, find_condition(item, kind), news, item.metadata.generation, self.utc_now())

    def _given_up_condition(self, item: NativePodGroup | CompositePodGroup, news: GroupNews) -> dict[str, Any] | None:
        """Return the condition to write; a group that is placed is given up no longer."""
        existing, wanted = find_given_up(item.status.conditions), news.given_up
        if news.placed and existing is not None and existing.status == "True":
            wanted = Condition(type=existing.type, status="False", reason=GROUP_SCHEDULED, message=news.message)
        if wanted is None:
            return None
        if existing is not None and (existing.status, existing.message) == (wanted.status, wanted.message):
            return None
        return condition_json(dated(wanted, existing, item.metadata.generation, self.utc_now()))


def _together(before: GroupNews, news: GroupNews) -> GroupNews:
    given_up = news.given_up or before.given_up
    if news.placed is None and news.given_up is not None:
        return replace(before, pod_group=news.pod_group, given_up=given_up)
    if news.placed is None:
        return replace(before, pod_group=news.pod_group, running=news.running, owners=news.owners)
    kept = replace(news, running=before.running, owners=before.owners) if news.running is None else news
    return replace(kept, given_up=given_up)


def coscheduling_changes(known: CoschedulingStatus, news: GroupNews, now: datetime) -> dict[str, Any]:
    """Compute the fields to write into a status of scheduling.x-k8s.io.

    Args:
        known: the status as the watch shows it.
        news: news of the group.
        now: the time of day.

    Returns:
        The fields that differ; empty when none does.
    """
    phase = _phase(known, news)
    running = known.running if news.running is None else news.running
    wanted: dict[str, Any] = {"phase": phase, "running": running, "occupiedBy": known.occupied_by or news.owners}
    has = {"phase": known.phase, "running": known.running, "occupiedBy": known.occupied_by}
    if known.schedule_start_time is None and phase in (SCHEDULING, RUNNING):
        wanted["scheduleStartTime"] = seconds_time(now)
    return {field: value for field, value in wanted.items() if value != has.get(field)}


def _phase(known: CoschedulingStatus, news: GroupNews) -> str:
    """Return the phase as far as a scheduler can tell. A phase that a controller derived from ended members stays."""
    least = news.pod_group.min_member
    running = known.running if news.running is None else news.running
    if known.phase in _FINAL or (known.phase == RUNNING and known.succeeded + known.failed):
        return known.phase
    if running >= least > 0:
        return RUNNING
    if news.placed or known.phase in (SCHEDULING, RUNNING):
        return SCHEDULING
    return PENDING


def native_condition(kind: str, existing: Condition | None, news: GroupNews, generation: int, now: datetime) -> dict[str, Any] | None:
    """Compute the condition of scheduling.k8s.io.

    Args:
        kind: its type.
        existing: the condition as the watch shows it.
        news: news of the group.
        generation: generation of the object; 0 if it has none.
        now: the time of day.

    Returns:
        The condition; None when it is there already, or may not change any more.
    """
    if kind in (INITIALLY_SCHEDULED, COMPOSITE_INITIALLY_SCHEDULED) and existing is not None and existing.status == "True":
        return None
    status = "True" if news.placed else "False"
    reason = "Scheduled" if news.placed else "SchedulerError" if news.error else "Unschedulable"
    said = existing is not None and (existing.status, existing.reason, existing.message) == (status, reason, news.message)
    if said:
        return None
    wanted = Condition(type=kind, status=status, reason=reason, message=news.message)
    return condition_json(dated(wanted, existing, generation, now))
