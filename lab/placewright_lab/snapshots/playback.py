"""Snapshots and recordings for the console, with the decisions of the scheduler that ran.

`recording.py` reads the same files for a replay, in which another scheduler decides. Here each object is decoded once, in the form for the
columns. A file may have a million objects, and a person waits.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from placewright.api.bad_input import bad_field
from placewright.api.decode import DECODE_ERRORS, DecodeError, decode
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.api.quantity import QuantityError
from placewright.cluster.objects import ClusterObject
from placewright.offline.world import as_served
from placewright_lab.simulation.scenario import Happening
from placewright_lab.snapshots.linefile import LARGEST_TEXT, numbered_lines
from placewright_lab.snapshots.snapshot import RECORDING, SNAPSHOT, ObjectFile, identified, read_change

#: Objects of the cluster.
Seen: TypeAlias = Node | PodInfo | ClusterObject
R = TypeVar("R")
#: Number of objects that are read or built between two looks at the clock.
PIECE: Final = 64


def finished(pieces: Generator[object, None, R]) -> R:
    """Do all pieces of a work at once, and return its result."""
    while True:
        try:
            next(pieces)
        except StopIteration as done:
            result: R = done.value
            return result


class SeenFile(ObjectFile):
    """A snapshot or a recording that is read piece by piece. Of a recording that was cut off, whole lines are read.

    Example:
        file = SeenFile(path)
        for _ in file.reading():
            print(file.taken, "of", file.promised)

    Attributes:
        promised: number of objects at the beginning, by the header.
        objects: objects at the beginning that were read, without the profiles, each as the cluster takes it.
        profiles: profiles at the beginning that were read.
        changes: changes that were read, in order of time; none in a snapshot.
    """

    def __init__(self, path: Path, largest: int = LARGEST_TEXT) -> None:
        """Read the header. Raises `InputError` if the file is neither a snapshot nor a recording, or unpacks to more bytes."""
        super().__init__(path, _kind(path, largest), largest)
        self.objects: list[Seen] = []
        self.profiles: list[SchedulingProfile] = []
        self.changes: list[Happening] = []
        self._of_owner: dict[str, PodInfo] = {}
        self.promised = sum(self.header.counts.values())

    @property
    def kubernetes(self) -> int:
        """Minor version of the API server that was recorded."""
        return self.header.kubernetes

    @property
    def remarks(self) -> Sequence[str]:
        """Remarks for people: the end of a cut file, and the collections that the recorder could not read."""
        return [*self.notes, *(f"left out of the file: {each}" for each in self.header.left_out)]

    def reading(self) -> Generator[None, None, None]:
        """Read the rest, piece by piece. Raises `InputError` with the line of the fault."""
        for number, (where, line) in enumerate(self.beginning(), 1):
            self._take(where, line)
            if number % PIECE == 0:
                yield
        for number, (where, line) in enumerate(self.rest(), 1):
            self.changes.append(read_change(line, where, self.changes[-1].at if self.changes else 0.0))
            if number % PIECE == 0:
                yield

    def _take(self, where: str, line: bytes) -> None:
        """Take one more object of the beginning."""
        identity, struct = identified(line, where)
        try:
            item: Any = decode(line, struct)
            if not isinstance(item, SchedulingProfile):
                self.objects.append(self._served(item))
            else:
                self.profiles.append(item)
        except (DecodeError, QuantityError) as problem:
            raise bad_field(f"{where}: {identity.kind} {identity.metadata.name}", str(problem), f"a valid {identity.kind}") from None
        self.note(where, identity.kind, struct, identity.metadata)

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
    """Return the kind of the file. A file of another kind counts as a snapshot, whose reader refuses it."""
    _, line = next(numbered_lines(path, largest, lambda _: None), (1, b""))
    try:
        told = msgspec.json.decode(line)
    except DECODE_ERRORS:
        return SNAPSHOT
    return RECORDING if isinstance(told, dict) and told.get("placewright") == RECORDING else SNAPSHOT
