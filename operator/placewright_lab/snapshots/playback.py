"""Snapshots and recordings as they were: with the decisions of the scheduler that ran, for looking at them.

`recording.py` reads the same files for a replay, in which another scheduler decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from placewright.api.bad_input import bad_field
from placewright.api.decode import DECODE_ERRORS
from placewright.api.profile import SchedulingProfile
from placewright_lab.readers.kinds import Manifest
from placewright_lab.simulation.scenario import Act
from placewright_lab.snapshots.linefile import LARGEST_TEXT, numbered_lines, only_what_stays
from placewright_lab.snapshots.recording import ChangeLine
from placewright_lab.snapshots.snapshot import RECORDING, SNAPSHOT, Header, ObjectLines, checked_object, read_header


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
        objects: at the beginning, without the profiles.
        profiles: at the beginning.
        changes: in order of time; none in a snapshot.
        notes: what a person should know.
    """

    path: Path
    header: Header
    objects: Sequence[Manifest]
    profiles: Sequence[SchedulingProfile]
    changes: Sequence[SeenChange]
    notes: Sequence[str]


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
    notes: list[str] = []
    kind = _kind(path, largest)
    lines = numbered_lines(path, largest, notes.append if kind == RECORDING else None)
    header = read_header(lines, path, kind)
    beginning, changes = ObjectLines(path), list[SeenChange]()
    left = sum(header.counts.values()) if kind == RECORDING else math.inf
    for number, line in lines:
        if left > 0:
            beginning.take(number, line)
            left -= 1
        else:
            changes.append(_change(f"{path}: line {number}", line, changes[-1].at if changes else 0.0))
    beginning.check(header)
    return SeenCluster(path, header, beginning.objects, beginning.profiles, changes, notes)


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
