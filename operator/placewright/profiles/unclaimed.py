"""Pods that no profile takes although they were likely meant for one: the rules, and the messages.

Any scheduler may use any `schedulerName`, so only three kinds of names count. The first is the name of a deleted profile. The second is the
name of a profile whose every generation is refused. The third differs by a few letters from a profile's name. A name under which another
scheduler places pods never counts. The caller finds that out from pods (`placed_by_others`), because no API lists the schedulers of a
cluster.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from placewright.api.annotations import DECISION
from placewright.api.objects import Condition, Pod
from placewright.api.podstart import MIRROR
from placewright.profiles.problem import closest_name

#: Reason of the event on the pods.
NO_PROFILE: Final = "NoSchedulingProfile"
#: Schedulers that many clusters have. Such a name is theirs, however similar to one of ours, even before they have placed a pod.
OTHER_SCHEDULERS: Final = frozenset(
    {
        "crane-scheduler", "default-scheduler", "godel-scheduler", "hami-scheduler", "kai-scheduler", "koord-scheduler", "kube-batch",
        "runai-scheduler", "scheduler-plugins-scheduler", "stork", "volcano", "yunikorn", "gke.io/optimize-utilization-scheduler",
    }
)  # fmt: skip
_POD_SCHEDULED: Final = "PodScheduled"
_GATED: Final = "SchedulingGated"


class Why(enum.StrEnum):
    """The reason why no profile takes a pod; the values are labels of metrics."""

    DELETED = "deleted"
    REFUSED = "refused"
    HANGING = "hanging"
    MISSPELT = "misspelt"


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """A schedulerName that no profile in effect has.

    Attributes:
        scheduler_name: schedulerName of the pods.
        why: the rule by which they were meant for a profile.
        ours: the schedulerName that a profile has, or had.
        profile: that had the name or claims it; empty for a misspelt name.
        held: why the profile is held; empty for one that is not.
    """

    scheduler_name: str
    why: Why
    ours: str
    profile: str = ""
    held: str = ""

    def __str__(self) -> str:
        """One line, for events on the pods and for people at a terminal."""
        return f"no profile takes pods of schedulerName {self.scheduler_name!r}{self._because()}"

    def _because(self) -> str:
        if self.why is Why.MISSPELT:
            return f" (did you mean {self.ours!r}?); a pod's own cannot be changed, so the pod's creator must name another one"
        if self.why is Why.HANGING:
            return f": profile {self.profile!r} is held: {self.held}"
        if self.why is Why.REFUSED:
            return f": profile {self.profile!r} is refused, and its status says why"
        gone = f"profile {self.profile!r}, which had it, was deleted"
        return f": {gone}; apply it again, or let the pods' creator name another schedulerName"


@dataclass(frozen=True, slots=True)
class ProfileNames:
    """The schedulerNames of profiles.

    Attributes:
        live: names in effect, paused profiles included.
        refused: to the profile that claims the name and has no generation in effect.
        deleted: to the deleted profile that had the name.
        held: to the reason, by name of a refused profile that is held because a plugin did not return.
    """

    live: Collection[str]
    refused: Mapping[str, str] = field(default_factory=dict)
    deleted: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)

    def judge(self, scheduler_name: str) -> Unclaimed | None:
        """Find out whether pods of a name were likely meant for a profile, if no other scheduler places them.

        Returns:
            The reason; None when they were not.
        """
        if scheduler_name in self.live:
            return None
        if (profile := self.refused.get(scheduler_name)) in self.held:
            return Unclaimed(scheduler_name, Why.HANGING, scheduler_name, str(profile), self.held[str(profile)])
        for why, known in ((Why.REFUSED, self.refused), (Why.DELETED, self.deleted)):
            if scheduler_name in known:
                return Unclaimed(scheduler_name, why, scheduler_name, known[scheduler_name])
        # After the exact names: a deleted or refused profile may have been for the default scheduler's pods.
        if scheduler_name in OTHER_SCHEDULERS:
            return None
        meant = closest_name(scheduler_name, [*self.live, *self.refused])
        return Unclaimed(scheduler_name, Why.MISSPELT, meant) if meant else None


def placed_by_others(pod: Pod) -> bool:
    """Return whether another scheduler put a pod on its node: it has a node, carries no decision of ours, and is no static pod.

    Returns:
        True when another scheduler placed it.
    """
    noted = pod.metadata.annotations or {}
    return bool(pod.spec.node_name) and DECISION not in noted and MIRROR not in noted


def looked_at_by_others(conditions: Iterable[Condition] | None) -> bool:
    """Return whether a scheduler has written a reason into a waiting pod. The API server itself writes one for gated pods only."""
    return any(each.type == _POD_SCHEDULED and each.reason != _GATED for each in conditions or ())
