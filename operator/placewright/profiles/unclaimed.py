"""Pods that no profile takes although they were likely meant for one: by which rule, and in which words.

A pod's `schedulerName` may be anybody's, so only three kinds of names count: one that a profile had until it was deleted, one that a
profile claims of which every generation is refused, and one that differs by a few letters from what a profile has. A name under which
another scheduler places pods never counts. Whoever asks has looked for that (`placed_by_others`): nobody can ask which schedulers exist.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from placewright.api.annotations import DECISION
from placewright.api.objects import Condition, Pod
from placewright.profiles.problem import closest_name

#: Reason of the event on the pods.
NO_PROFILE: Final = "NoSchedulingProfile"
#: Schedulers that many clusters have. A name on this list is theirs, however it resembles one of ours, before they have placed any pod.
OTHER_SCHEDULERS: Final = frozenset(
    {
        "crane-scheduler", "default-scheduler", "godel-scheduler", "hami-scheduler", "kai-scheduler", "koord-scheduler", "kube-batch",
        "runai-scheduler", "scheduler-plugins-scheduler", "stork", "volcano", "yunikorn", "gke.io/optimize-utilization-scheduler",
    }
)  # fmt: skip
_POD_SCHEDULED: Final = "PodScheduled"
_GATED: Final = "SchedulingGated"
_MIRROR: Final = "kubernetes.io/config.mirror"


class Why(enum.StrEnum):
    """Why no profile takes a pod; as metrics name it."""

    DELETED = "deleted"
    REFUSED = "refused"
    HANGING = "hanging"
    MISSPELT = "misspelt"


@dataclass(frozen=True, slots=True)
class Unclaimed:
    """A schedulerName that no profile in effect has.

    Attributes:
        scheduler_name: what the pods say.
        why: by which rule they were meant for us.
        ours: the schedulerName that a profile has, or had.
        profile: which one had it or claims it; empty for a misspelt name.
        held: why the profile is held; empty for one that is not.
    """

    scheduler_name: str
    why: Why
    ours: str
    profile: str = ""
    held: str = ""

    def __str__(self) -> str:
        """One line, as pods' events and people at a terminal read it."""
        return f"no profile takes pods of schedulerName {self.scheduler_name!r}{self._because()}"

    def _because(self) -> str:
        if self.why is Why.MISSPELT:
            return f" (did you mean {self.ours!r}?); a pod's own cannot be changed, so whatever made the pod must name another one"
        if self.why is Why.HANGING:
            return f": profile {self.profile!r} is held: {self.held}"
        if self.why is Why.REFUSED:
            return f": profile {self.profile!r} is refused, and its status says why"
        gone = f"profile {self.profile!r}, which had it, was deleted"
        return f": {gone}; apply it again, or let whatever makes the pods name another schedulerName"


@dataclass(frozen=True, slots=True)
class ProfileNames:
    """Which schedulerNames profiles have.

    Attributes:
        live: in effect, paused ones included.
        refused: claimed by a profile of which no generation is in effect, with the profile's name.
        deleted: had by a profile that is gone, with its name.
        held: of those refused, the profiles that are held because a plugin did not return, with why.
    """

    live: Collection[str]
    refused: Mapping[str, str] = field(default_factory=dict)
    deleted: Mapping[str, str] = field(default_factory=dict)
    held: Mapping[str, str] = field(default_factory=dict)

    def judge(self, scheduler_name: str) -> Unclaimed | None:
        """Whether pods of this name were likely meant for a profile, if no other scheduler places them; None where not."""
        if scheduler_name in self.live:
            return None
        if (profile := self.refused.get(scheduler_name)) in self.held:
            return Unclaimed(scheduler_name, Why.HANGING, scheduler_name, str(profile), self.held[str(profile)])
        for why, known in ((Why.REFUSED, self.refused), (Why.DELETED, self.deleted)):
            if scheduler_name in known:
                return Unclaimed(scheduler_name, why, scheduler_name, known[scheduler_name])
        if scheduler_name in OTHER_SCHEDULERS:
            return None
        meant = closest_name(scheduler_name, [*self.live, *self.refused])
        return Unclaimed(scheduler_name, Why.MISSPELT, meant) if meant else None


def placed_by_others(pod: Pod) -> bool:
    """Whether a scheduler that is not ours put this pod on its node: it carries no decision of ours, and no node's own file made it."""
    noted = pod.metadata.annotations or {}
    return bool(pod.spec.node_name) and DECISION not in noted and _MIRROR not in noted


def looked_at_by_others(conditions: Iterable[Condition] | None) -> bool:
    """Whether some scheduler has said of a waiting pod why it waits. The API server itself says that of gated pods alone."""
    return any(each.type == _POD_SCHEDULED and each.reason != _GATED for each in conditions or ())
