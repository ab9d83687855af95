"""A group in the scheduler's hands: its members, how many of them are needed, and what they are placed with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from placewright.api.podgroups import PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import PodGroupPlugin, PodGroupSettings
from placewright.framework.runtime.evaluation import Evaluator
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.attempts import Attempt
from placewright.scheduler.binding import Reserver
from placewright.scheduler.cycle import FitError, SchedulingCycle
from placewright.scheduler.extendedcycle import ExtendedCycle


@dataclass(frozen=True, slots=True)
class MemberCycle:
    """What members of a group are placed with, one after the other: the scheduling cycle, and what assumes and reserves for real."""

    cluster: Cluster
    queue: SchedulingQueue
    cycle: SchedulingCycle
    extended: ExtendedCycle
    reserver: Reserver


@dataclass(slots=True)
class Group:
    """A group whose members were handed out together.

    Attributes:
        plugin: the profile's, because of which the members are decided together.
        attempts: one a member, highest priority first, then by age.
        needed: so many of them have to be placed, or none is.
        decided: when it was known where they could go, seconds on the scheduler's clock.
    """

    pod_group: PodGroup
    plugin: PodGroupPlugin
    evaluator: Evaluator
    attempts: list[Attempt] = field(default_factory=list)
    decided: float | None = None

    @property
    def needed(self) -> int:
        """The fewest members that may be placed."""
        return self.pod_group.min_member

    @property
    def mixed(self) -> bool:
        """Whether the members ask for different amounts."""
        return mixed(self.attempts)

    def largest_first(self) -> Group:
        """The same group, with the members that ask for most first."""
        return Group(self.pod_group, self.plugin, self.evaluator, largest_first(self.attempts))

    @property
    def settings(self) -> PodGroupSettings:
        """What the profile says about groups."""
        return self.plugin.settings

    @property
    def scheduler_name(self) -> str:
        """The members'."""
        return self.attempts[0].pod.scheduler_name

    @property
    def priority(self) -> int:
        """That of its first member."""
        return max((attempt.pod.priority for attempt in self.attempts), default=0)


@dataclass(frozen=True, slots=True)
class Misfit:
    """A member that no node could hold, beside the members placed before it."""

    attempt: Attempt
    failure: FitError


class Member(Protocol):
    """Whatever stands for a member."""

    @property
    def pod(self) -> PodInfo:
        """The member."""


_M = TypeVar("_M", bound=Member)


def mixed(members: Sequence[Member]) -> bool:
    """Whether the members ask for different amounts."""
    return any(member.pod.requests != members[0].pod.requests for member in members)


def largest_first(members: Sequence[_M]) -> list[_M]:
    """The members that ask for most, of any resource and measured by the largest request of it, first."""
    most: dict[str, int] = {}
    for member in members:
        for name, amount in member.pod.requests.items():
            most[name] = max(most.get(name, 1), amount)

    def size(member: _M) -> float:
        return max((amount / most[name] for name, amount in member.pod.requests.items()), default=0.0)

    return sorted(members, key=size, reverse=True)
