"""The input of a simulation: a cluster, and the changes in it from then on."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
        manifest: the object as it is then; of one that goes, at least kind, name, namespace and uid.
    """

    at: float
    act: Act
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class Scenario:
    """One cluster and its future, the same for every profile that is tried on it.

    Attributes:
        source: where it comes from, for people.
        objects: at the beginning, in any order: nodes, pods with and without a node, volumes, and all others that placement reads.
        happenings: in order of time.
        durations: by uid of a pod, for how many seconds it runs once it is bound; pods that are not named run to the end.
        start_seconds: from a pod's Binding until it is Ready.
    """

    source: str
    objects: Sequence[Manifest]
    happenings: Sequence[Happening] = ()
    durations: Mapping[str, float] = field(default_factory=dict)
    start_seconds: float = 0.0
