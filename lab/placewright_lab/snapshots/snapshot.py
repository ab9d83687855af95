"""Snapshots: files with the objects of a cluster that the scheduler reads, at one moment.

The file has gzipped lines of JSON. The first line is a header. Each other line has an object with the fields that placement reads. Objects
keep the order in which the API server listed them, because the draw among equal nodes depends on it.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from placewright.api.bad_input import InputError, bad_field, shown
from placewright.api.decode import DECODE_ERRORS, DecodeError, decode
from placewright.api.objects import ObjectMeta
from placewright.api.profile import KIND as PROFILE
from placewright.api.profile import SchedulingProfile
from placewright.offline.kinds import Manifest
from placewright.offline.world import KNOWN, struct_of
from placewright_lab.simulation.scenario import Scenario
from placewright_lab.snapshots.linefile import LARGEST_TEXT, NewFile, numbered_lines, only_what_stays

SNAPSHOT: Final = "snapshot"
RECORDING: Final = "recording"
#: Version of the format. A newer one with an important addition gets a new number, and is refused here.
FORMAT_VERSION: Final = 1
_READ_BY: Final = {SNAPSHOT: "simulate --snapshot", RECORDING: "simulate --record"}


class Header(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The first line.

    Attributes:
        placewright: kind of the file: `snapshot` or `recording`.
        version: version of the format.
        taken: RFC 3339 time.
        server: name of the API server, for people.
        counts: number of objects by kind; in a recording, of the objects at its beginning.
        anonymised: True if names are made up.
        left_out: collections that could not be read.
    """

    placewright: str
    version: int
    taken: str
    server: str = ""
    counts: dict[str, int] = {}
    anonymised: bool = False
    left_out: tuple[str, ...] = ()


class _Claim(msgspec.Struct, frozen=True):
    """The fields of a header that tell whether the rest is readable."""

    placewright: str
    version: int


class Names(msgspec.Struct, frozen=True):
    """The name of an object, and its namespace."""

    name: str = ""
    namespace: str = ""


class Identity(msgspec.Struct, frozen=True):
    """Kind and names of an object, read without the rest of its line."""

    kind: str
    metadata: Names
    apiVersion: str = ""  # noqa: N815 - as it stands in the file


_IDENTITY: Final = msgspec.json.Decoder(Identity)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot, with `objects` in the order of the file, without the profiles."""

    path: Path
    header: Header
    objects: Sequence[Manifest]
    profiles: Sequence[SchedulingProfile]

    @property
    def scenario(self) -> Scenario:
        """The cluster in its recorded state, without later changes."""
        return Scenario(source_of(self.path, self.header), self.objects)


def source_of(path: Path, header: Header) -> str:
    """Return the origin of a scenario, for people."""
    return f"{path} ({header.server or 'an API server'}, {header.taken})"


def read_snapshot(path: Path, largest: int = LARGEST_TEXT) -> Scenario:
    """Read a snapshot's cluster, packed or plain. Raises `InputError` with the line of the fault, and above `largest` bytes of text."""
    return open_snapshot(path, largest).scenario


def profiles_in(path: Path, largest: int = LARGEST_TEXT) -> Sequence[SchedulingProfile]:
    """Return the profiles of the cluster in a snapshot. Raises the errors of `read_snapshot`."""
    return open_snapshot(path, largest).profiles


@only_what_stays()
def open_snapshot(path: Path, largest: int = LARGEST_TEXT) -> Snapshot:
    """Return all of a snapshot. Raises the errors of `read_snapshot`."""
    lines = numbered_lines(path, largest)
    header = read_header(lines, path, SNAPSHOT)
    gathered = ObjectLines(path)
    for number, line in lines:
        gathered.take(number, line)
    gathered.names.check(header)
    return Snapshot(path, header, gathered.objects, gathered.profiles)


def read_header(lines: Iterator[tuple[int, bytes]], path: Path, wanted: str) -> Header:
    """Read the header, the first line. Raises `InputError` for another kind of file, and for an unknown version."""
    number, line = next(lines, (1, b""))
    where = f"{path}: line {number}"
    try:
        claim = msgspec.json.decode(line, type=_Claim)
    except DECODE_ERRORS:
        raise bad_field(where, line[:60].decode("utf-8", "replace"), f"the header of a Placewright {wanted}") from None
    if claim.placewright != wanted:
        reader = _READ_BY.get(claim.placewright)
        hint = f" (placewright {reader} reads this file)" if reader else ""
        raise bad_field(f"{where}: placewright", claim.placewright, f"{wanted}{hint}")
    if claim.version != FORMAT_VERSION:
        newer = ", or a newer Placewright to read it" if claim.version > FORMAT_VERSION else ""
        raise bad_field(f"{where}: version", claim.version, f"version {FORMAT_VERSION} of the format{newer}")
    try:
        return decode(line, Header)
    except DecodeError as problem:
        raise InputError(f"{where}: {problem}") from None


class SeenNames:
    """The objects of a file that were read so far: their names, and their number by kind."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: set[tuple[str, str, str]] = set()
        self._counts: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, where: str, kind: str, struct: type[Any], meta: ObjectMeta | Names) -> None:
        """Note an object. `struct` tells kinds of one name apart. Raises `InputError` for an object that the file had already."""
        key = (struct.__name__, meta.namespace, meta.name)
        if key in self._seen:
            raise bad_field(where, f"{kind} {meta.namespace}/{meta.name} again", "every object once")
        self._seen.add(key)
        self._counts[kind] += 1

    def check(self, header: Header) -> None:
        """Raise `InputError` if the file does not have all objects that its header promises."""
        for kind, promised in header.counts.items():
            if (found := self._counts[kind]) != promised:
                raise bad_field(f"{self._path}: {shown(kind)}", f"{found} objects", f"{promised}, as its header says: it is not whole")


class ObjectLines:
    """Gathers the objects of a file line by line, and checks each. Raises `InputError` naming the line."""

    def __init__(self, path: Path) -> None:
        self.objects: list[Manifest] = []
        self.profiles: list[SchedulingProfile] = []
        self.names = SeenNames(path)
        self._path = path

    def take(self, number: int, line: bytes) -> None:
        """Take one more object."""
        where = f"{self._path}: line {number}"
        manifest, item = checked_object(line, where)
        kind = str(manifest["kind"])
        self.names.add(where, kind, type(item), item.metadata)
        if kind == PROFILE:
            self.profiles.append(item)
        else:
            self.objects.append(manifest)


def identified(raw: bytes | msgspec.Raw, where: str) -> tuple[Identity, type[Any]]:
    """Return kind and name of the object in a line, and the struct of the kind. Raises `InputError` for an unknown kind or no name."""
    try:
        identity = _IDENTITY.decode(raw)
    except DECODE_ERRORS as problem:
        raise bad_field(where, str(problem), "one object as JSON, of the shape of its kind") from None
    struct = struct_of(identity.apiVersion, identity.kind)
    if struct is None:
        raise bad_field(f"{where}: kind", identity.kind, f"one of {', '.join(sorted(KNOWN))}")
    if not identity.metadata.name:
        raise bad_field(f"{where}: metadata.name", identity.metadata.name, "a name")
    return identity, struct


def checked_object(raw: bytes | msgspec.Raw, where: str) -> tuple[Manifest, Any]:
    """Return an object as plain data and as the struct of its kind. Raises `InputError`."""
    _, struct = identified(raw, where)
    try:
        return msgspec.json.decode(raw, type=dict[str, Any]), msgspec.json.decode(raw, type=struct)
    except DECODE_ERRORS as problem:
        raise bad_field(where, str(problem), "one object as JSON, of the shape of its kind") from None


# --- writing --------------------------------------------------------------------------------------------------------------------------


def write_snapshot(path: Path, header: Header, lines: Iterable[bytes], *, force: bool = False) -> int:
    """Write a snapshot that only its owner may read, in one step, and return its size in bytes.

    Raises `InputError` if the file exists already, unless forced, and if it cannot be written.
    """
    with NewFile(path, force=force) as new:
        with gzip.GzipFile(fileobj=new.file, filename="", mode="wb", compresslevel=6) as packed:
            packed.write(msgspec.json.encode(header) + b"\n")
            packed.writelines(line + b"\n" for line in lines)
        new.stand()
        return new.file.tell()
