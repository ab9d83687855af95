"""The recent evictions that preemption asked for, of all profiles, and the clocks of its rules.

Two rules need them. One bounds the pods that a profile displaces within a minute. The other counts victims that a disruption budget's
status may not show yet. Nothing is kept while no profile has such rules. The record belongs to one replica: a new leader starts with an
empty one.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from placewright.api.pods import PodInfo
from placewright.api.workloads import PodDisruptionBudget
from placewright.cluster.cluster import Cluster
from placewright.framework.ports import Seconds

MINUTE: Final = 60.0
#: After this an eviction counts against no budget any more, although the budget's status was never written since. The disruption controller
#: writes it when pods that the budget selects are fewer, or fewer are healthy; an hour without it says that neither is the case.
SHOWN_AT_LATEST: Final = 3600.0
#: Until then the status of a budget may have been computed before the victim left, although it was written afterwards.
SHOWN_AT_EARLIEST: Final = 5.0
#: Evictions kept at most, of all namespaces; some hundred bytes each.
MOST_KEPT: Final = 10_000
_POD_SCHEDULED: Final = "PodScheduled"
_GATED: Final = "SchedulingGated"


@dataclass(frozen=True, slots=True)
class Eviction:
    """A victim that was told to leave.

    Attributes:
        uid: the victim's.
        namespace: the victim's.
        name: the victim's.
        labels: the victim's.
        at: when it was told, seconds on the record's clock.
        versions: the resourceVersions at that time of the budgets in its namespace, by their uid.
    """

    uid: str
    namespace: str
    name: str
    labels: Mapping[str, str]
    at: Seconds
    versions: Mapping[str, str]


class Evictions:
    """The record of evictions of one scheduler.

    Args:
        cluster: the cluster of the evicted pods.
        clock: seconds, monotonic; the queue's.
        since_1970: seconds since 1970; None if no time passes, and then every wait is over.
        first_tried: when a pod could first be tried, by its uid, on `clock`; None for a pod that never could, or is unknown.

    Attributes:
        cluster: the cluster of the evicted pods.
        needed: whether any profile has rules; nothing is kept before.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Callable[[], Seconds] = lambda: 0.0,
        since_1970: Callable[[], Seconds] | None = None,
        first_tried: Callable[[str], Seconds | None] = lambda _uid: None,
    ) -> None:
        self.needed = False
        self._since_1970 = since_1970
        self.cluster = cluster
        self._clock = clock
        self._first_tried = first_tried
        #: Evictions within a minute, by profile: (time, number), oldest first.
        self._minutes: dict[str, deque[tuple[Seconds, int]]] = {}
        #: Evictions by namespace and uid, the oldest first. Only namespaces with budgets have any.
        self._under_way: dict[str, dict[str, Eviction]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._under_way.values()))

    # --- what is asked for -----------------------------------------------------------------------------------------------------------

    def asked_for(self, scheduler_name: str, victims: Iterable[PodInfo]) -> None:
        """Note that these pods are told to leave."""
        if not self.needed:
            return
        now, victims = self._clock(), list(victims)
        self._minutes = {name: minute for name, minute in self._minutes.items() if self.within_a_minute(name)}
        self._minutes.setdefault(scheduler_name, deque()).append((now, len(victims)))
        for namespace in {victim.namespace for victim in victims}:
            self._note([victim for victim in victims if victim.namespace == namespace], namespace, now)

    def failed(self, victim: PodInfo) -> None:
        """Note that a victim stays. It still counts as asked for."""
        self._under_way.get(victim.namespace, {}).pop(victim.uid, None)

    def _note(self, victims: Iterable[PodInfo], namespace: str, now: Seconds) -> None:
        budgets = self.cluster.objects.disruption_budgets.values()
        shown = {each.metadata.uid: each.metadata.resource_version for each in budgets if each.metadata.namespace == namespace}
        known = self._under_way.pop(namespace, {}).values()
        as_it_was = {each.uid for each in known if not shown.items().isdisjoint(each.versions.items())}
        kept = {each.uid: each for each in known if self._counts(each, now, as_it_was=each.uid in as_it_was)}
        if shown:
            kept |= {each.uid: Eviction(each.uid, namespace, each.name, each.labels, now, shown) for each in victims}
        if kept:
            self._under_way[namespace] = kept  # behind all others, as it was used last
        while len(self) > MOST_KEPT:
            longest_unused = next(iter(self._under_way))
            evictions = self._under_way[longest_unused]
            del evictions[next(iter(evictions))]
            if not evictions:
                del self._under_way[longest_unused]

    # --- how many --------------------------------------------------------------------------------------------------------------------

    def within_a_minute(self, scheduler_name: str) -> int:
        """Count the pods that a profile's pods displaced in the last minute."""
        minute, now = self._minutes.get(scheduler_name, deque()), self._clock()
        while minute and minute[0][0] <= now - MINUTE:
            minute.popleft()
        return sum(number for _, number in minute)

    def until_fewer(self, scheduler_name: str) -> Seconds:
        """Return the seconds until the last minute has fewer evictions than now; a minute if it has none."""
        minute = self._minutes.get(scheduler_name)
        return max(minute[0][0] + MINUTE - self._clock(), 0.0) if minute else MINUTE

    # --- which budgets do not show it yet ----------------------------------------------------------------------------------------------

    def not_shown_by(self, budget: PodDisruptionBudget) -> Iterator[Eviction]:
        """Find evictions in the budget's namespace that its status may not show yet.

        Yields:
            The evictions, whether or not the budget selects the victim.
        """
        now, meta = self._clock(), budget.metadata
        for eviction in self._under_way.get(meta.namespace, {}).values():
            if self._counts(eviction, now, as_it_was=eviction.versions.get(meta.uid) == meta.resource_version):
                yield eviction

    def _counts(self, eviction: Eviction, now: Seconds, *, as_it_was: bool) -> bool:
        """Whether a status may not show the eviction: it is as it was, or was written too early."""
        age, place = now - eviction.at, self.cluster.placement(eviction.uid)
        early = age < SHOWN_AT_EARLIEST or not (place is None or place.pod.terminating)
        return age < SHOWN_AT_LATEST and (as_it_was or early)

    # --- how long ------------------------------------------------------------------------------------------------------------------------

    def waited(self, pod: PodInfo) -> Seconds:
        """Return how long a pod has waited for a node, from when it could first be tried.

        The queue of this replica knows, and after a change of leader the pod's condition does. Where neither says it, it is the pod's age.
        """
        if self._since_1970 is None:
            return math.inf
        tried, told, now = self._first_tried(pod.uid), _told_at(pod), self._since_1970()
        known = [] if tried is None else [self._clock() - tried]
        known += [] if told is None else [now - told]
        return max(known, default=now - (seconds_of(pod.created) or now))

    @property
    def now(self) -> Seconds:
        """Seconds since 1970; infinite if no time passes."""
        return math.inf if self._since_1970 is None else self._since_1970()


def _told_at(pod: PodInfo) -> Seconds | None:
    """Return when the pod was first told that it has no node, in seconds since 1970; None if that is not known.

    The API server dates the condition of a gated pod, and the time stays while the status does. So the time says nothing of a pod whose
    spec has changed, for example because it lost its gates.
    """
    if pod.pod.metadata.generation > 1:
        return None
    for condition in pod.pod.status.conditions or ():
        if condition.type == _POD_SCHEDULED and condition.status == "False" and condition.reason != _GATED:
            return seconds_of(condition.last_transition_time)
    return None


def seconds_of(stated: str | None) -> Seconds | None:
    """Read a time of the API.

    Args:
        stated: RFC 3339; empty or None for no time.

    Returns:
        Seconds since 1970; None for no time, or an illegible one.
    """
    if not stated:
        return None
    try:
        found = datetime.fromisoformat(stated)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
