"""The input of a simulation: a cluster, and its later changes."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from placewright.api.compatibility import BASELINE
from placewright.offline.kinds import Manifest


class Act(enum.StrEnum):
    """A change of an object, in the words of a watch."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Happening:
    """One change by another writer than the scheduler.

    Attributes:
        at: seconds after the beginning.
        manifest: new state of the object; for a deleted one, at least kind, name, namespace and uid.
    """

    at: float
    act: Act
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Scenario:
    """One cluster and its future, the same for every profile that is tried on it.

    Attributes:
        source: origin of the scenario, for people.
        objects: all objects at the beginning, in any order.
        happenings: changes in the order of time.
        durations: seconds for which bound pods run, by uid; other pods run to the end.
        start_seconds: seconds from a pod's binding until it is Ready.
        kubernetes: minor version of the cluster's API server, for profiles that follow it.
    """

    source: str
    objects: Sequence[Manifest]
    happenings: Sequence[Happening] = ()
    durations: Mapping[str, float] = field(default_factory=dict)
    start_seconds: float = 0.0
    kubernetes: int = BASELINE
