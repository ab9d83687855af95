"""The pods without a node, for the pages of groups, claims and verdicts.

A file's source answers from its objects, the running operator's from its queue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple, Protocol

from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.framework.runtime.evaluation import Evaluator
from placewright.profiles.problem import did_you_mean


class WaitingPlace(NamedTuple):
    """The place at which a pod without a node waits.

    Attributes:
        place: the name of its sub-queue; empty if the pod is in none.
        since: the time from which it waits, seconds since 1970.
    """

    place: str
    since: float


class GroupTurn(NamedTuple):
    """A group as the queue knows it; nothing in a file.

    Attributes:
        waiting_seconds: since its first member without a node came.
        failures: failed attempts in a row.
        lacks: the shortage at the last attempt.
        kept: nodes that are kept for it, each with the number of members that it is kept for.
    """

    waiting_seconds: float = 0.0
    failures: int = 0
    lacks: str = ""
    kept: Mapping[str, int] = {}


class PendingPods(Protocol):
    """The pods without a node."""

    def named(self, namespace: str, name: str) -> PodInfo | None:
        """Find a pod without a node; None if there is none of that name."""

    def of_namespace(self, namespace: str) -> Iterable[PodInfo]:
        """Return the pods of a namespace. May look at all pods."""

    def members(self, ref: GroupRef) -> Collection[PodInfo]:
        """Return the members of a group."""

    def standing(self, pod: PodInfo) -> WaitingPlace:
        """Say where a pod waits."""

    def evaluator(self, pod: PodInfo) -> Evaluator | str:
        """Return the evaluator of the pod's profile, or the reason why the pod is not evaluated."""

    def turn_of(self, ref: GroupRef) -> GroupTurn:
        """Say what the queue knows of a group."""


def unclaimed(pod: PodInfo, known: Iterable[str]) -> str:
    """Say that no profile claims a pod.

    Args:
        pod: the pod.
        known: schedulerNames of profiles.
    """
    return f"no SchedulingProfile has schedulerName {pod.scheduler_name!r}{did_you_mean(pod.scheduler_name, known)}"


def unix_seconds(text: str) -> float:
    """Read a time in RFC 3339.

    Args:
        text: text in an object or in the header of a file.

    Returns:
        Seconds since 1970; 0.0 for a text that is no time.
    """
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
