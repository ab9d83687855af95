"""Snapshots and recordings as they were: with the decisions of the scheduler that ran, for looking at them.

`recording.py` reads the same files for a replay, in which another scheduler decides. Here each object is decoded once, as what the columns
take, because a file may have a million of them and a person waits.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from placewright.api.bad_input import bad_field
from placewright.api.decode import DECODE_ERRORS, DecodeError, decode
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.api.quantity import QuantityError
from placewright.cluster.objects import ClusterObject
from placewright.offline.kinds import Manifest
from placewright.offline.world import as_served
from placewright_lab.simulation.scenario import Act
from placewright_lab.snapshots.linefile import LARGEST_TEXT, numbered_lines, only_what_stays
from placewright_lab.snapshots.recording import ChangeLine
from placewright_lab.snapshots.snapshot import (
    RECORDING,
    SNAPSHOT,
    Header,
    check_counts,
    checked_object,
    identified,
    read_header,
    refuse_twice,
)

#: What the cluster takes.
Seen: TypeAlias = Node | PodInfo | ClusterObject
R = TypeVar("R")
#: Objects that are read or built between two looks at the clock.
PIECE: Final = 64


class SeenChange(NamedTuple):
    """A change of an object, as a recorder saw it.

    Attributes:
        at: seconds after the beginning.
        manifest: the object as it is then; of a deleted one, its name and kind.
    """

    at: float
    act: Act
    manifest: Manifest


@dataclass(frozen=True, slots=True)
class SeenCluster:
    """A file as read.

    Attributes:
        objects: at the beginning, without the profiles, each as the cluster takes it.
        profiles: at the beginning.
        changes: in order of time; none in a snapshot.
        notes: what a person should know.
    """

    path: Path
    header: Header
    objects: Sequence[Seen]
    profiles: Sequence[SchedulingProfile]
    changes: Sequence[SeenChange]
    notes: Sequence[str]

    @property
    def remarks(self) -> Sequence[str]:
        """The notes, and what the recorder could not read."""
        return [*self.notes, *(f"left out of the file: {each}" for each in self.header.left_out)]


@only_what_stays()
def read_seen(path: Path, largest: int = LARGEST_TEXT) -> SeenCluster:
    """Read a snapshot or a recording; of a recording that was cut off, its whole lines.

    Args:
        path: of the file.
        largest: bytes of text that it may unpack to.

    Returns:
        The cluster and its changes.

    Raises:
        InputError: with the line of the fault.
    """
    file = SeenFile(path, largest)
    finished(file.reading())
    return file.cluster


def finished(pieces: Generator[object, None, R]) -> R:
    """Do all pieces of a work at once.

    Args:
        pieces: of the work.

    Returns:
        Its result.
    """
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            result: R = done.value
            return result


class SeenFile:
    """A file that is read piece by piece.

    Example:
        file = SeenFile(path)
        for _ in file.reading():
            print(file.taken, "of", file.promised)
        file.cluster

    Attributes:
        header: of the file.
        promised: objects at the beginning, as the header says.
    """

    def __init__(self, path: Path, largest: int = LARGEST_TEXT) -> None:
        """Read the header.

        Args:
            path: of the file.
            largest: bytes of text that it may unpack to.

        Raises:
            InputError: the file is neither a snapshot nor a recording.
        """
        kind = _kind(path, largest)
        self._path = path
        self._notes: list[str] = []
        self._objects: list[Seen] = []
        self._profiles: list[SchedulingProfile] = []
        self._changes: list[SeenChange] = []
        self._of_owner: dict[str, PodInfo] = {}
        self._seen: set[tuple[str, str, str]] = set()
        self._counts: dict[str, int] = {}
        self._lines = numbered_lines(path, largest, self._notes.append if kind == RECORDING else None)
        self.header = read_header(self._lines, path, kind)
        self.promised = sum(self.header.counts.values())

    @property
    def taken(self) -> int:
        """Objects of the beginning that were read."""
        return len(self._seen)

    @property
    def cluster(self) -> SeenCluster:
        """The objects and changes that were read; the whole file once `reading` has ended."""
        return SeenCluster(self._path, self.header, self._objects, self._profiles, self._changes, self._notes)

    def reading(self) -> Generator[None, None, None]:
        """Read the rest.

        Yields:
            After each piece.

        Raises:
            InputError: with the line of the fault.
        """
        left = self.promised if self.header.placewright == RECORDING else math.inf
        for number, line in self._lines:
            if left > 0:
                self._take(f"{self._path}: line {number}", line)
                left -= 1
            else:
                self._changes.append(_change(f"{self._path}: line {number}", line, self._changes[-1].at if self._changes else 0.0))
            if number % PIECE == 0:
                yield
        check_counts(self._path, self.header, self._counts)

    def _take(self, where: str, line: bytes) -> None:
        """One more object of the beginning."""
        identity, struct = identified(line, where)
        try:
            item: Any = decode(line, struct)
            if not isinstance(item, SchedulingProfile):
                self._objects.append(self._served(item))
            else:
                self._profiles.append(item)
        except (DecodeError, QuantityError) as problem:
            raise bad_field(f"{where}: {identity.kind} {identity.metadata.name}", str(problem), f"a valid {identity.kind}") from None
        refuse_twice(self._seen, where, identity.kind, struct, identity.metadata)
        self._counts[identity.kind] = self._counts.get(identity.kind, 0) + 1

    def _served(self, item: Any) -> Seen:
        owners = item.metadata.owner_references
        if not owners:
            return as_served(item)
        # Pods of one owner are made from one template, so most of them have equal requests.
        served = as_served(item, self._of_owner.get(owners[0].uid))
        if isinstance(served, PodInfo):
            self._of_owner[owners[0].uid] = served
        return served


def _kind(path: Path, largest: int) -> str:
    """Which of the two the file says it is; a file that is neither is refused as no snapshot."""
    _, line = next(numbered_lines(path, largest, lambda _: None), (1, b""))
    try:
        told = msgspec.json.decode(line)
    except DECODE_ERRORS:
        return SNAPSHOT
    return RECORDING if isinstance(told, dict) and told.get("placewright") == RECORDING else SNAPSHOT


def _change(where: str, line: bytes, earliest: float) -> SeenChange:
    try:
        change = msgspec.json.decode(line, type=ChangeLine)
    except DECODE_ERRORS as problem:
        raise bad_field(where, str(problem), "one change as JSON: at, act and object") from None
    if not (math.isfinite(change.at) and change.at >= earliest):
        raise bad_field(f"{where}: at", change.at, f"seconds, {earliest:g} or more, as the line before says")
    manifest, _ = checked_object(change.object, where)
    return SeenChange(change.at, change.act, manifest)
