"""Snapshots: files with the objects of a cluster that the scheduler reads, at one moment.

The file has gzipped lines of JSON. The first line is a header. Each other line has an object with the fields that placement reads. Objects
keep the order in which the API server listed them, because the draw among equal nodes depends on it.

Recordings: a snapshot, and the changes in the cluster from then on.

After the header and the objects come changes, a line each: `{"at": seconds, "act": "ADDED", "object": {…}}`. Changes of fields that
placement does not read are left out. The recorded cluster had a scheduler, too. A replay removes its decisions, so that another scheduler
can decide: pods come without a node, and a pod that ended by itself tells how long it ran.
"""

from __future__ import annotations

import gzip
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from placewright.api.bad_input import InputError, bad_field, shown
from placewright.api.compatibility import BASELINE
from placewright.api.decode import DECODE_ERRORS, DecodeError, decode
from placewright.api.objects import ObjectMeta
from placewright.api.pods import FINISHED_PHASES
from placewright.api.profile import DEFAULT_SCHEDULER_NAME, SchedulingProfile
from placewright.api.profile import KIND as PROFILE
from placewright.offline.kinds import Manifest, kind_and_group
from placewright.offline.world import KNOWN, struct_of
from placewright_lab.simulation.scenario import Act, Happening, Scenario
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
        kubernetes: its minor version, by which profiles are judged that follow it.
        counts: number of objects by kind; in a recording, of the objects at its beginning.
        anonymised: True if names are made up.
        left_out: collections that could not be read.
    """

    placewright: str
    version: int
    taken: str
    server: str = ""
    kubernetes: int = BASELINE
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
        return Scenario(source_of(self.path, self.header), self.objects, kubernetes=self.header.kubernetes)


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
    file = ObjectFile(path, SNAPSHOT, largest)
    objects, profiles = file.manifests()
    return Snapshot(path, file.header, objects, profiles)


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


class ObjectFile:
    """A snapshot or a recording that is read line by line. Raises `InputError` naming the line.

    Attributes:
        header: header of the file.
        notes: remarks for people about a recording that was cut off.
        taken: number of objects at the beginning that were noted.
    """

    def __init__(self, path: Path, kind: str, largest: int = LARGEST_TEXT) -> None:
        """Read the header. The file has this kind, and unpacks to so many bytes at most."""
        self.notes: list[str] = []
        self.taken = 0
        self._path = path
        self._lines = numbered_lines(path, largest, self.notes.append if kind == RECORDING else None)
        self.header = read_header(self._lines, path, kind)
        self._seen: set[tuple[str, str, str]] = set()
        self._counts: Counter[str] = Counter()

    def beginning(self) -> Iterator[tuple[str, bytes]]:
        """Yield place and text of each object at the beginning. Then all that the header promises must have been noted."""
        most = sum(self.header.counts.values()) if self.header.placewright == RECORDING else None
        yield from islice(self.rest(), most)
        for kind, promised in self.header.counts.items():
            if (found := self._counts[kind]) != promised:
                raise bad_field(f"{self._path}: {shown(kind)}", f"{found} objects", f"{promised}, as its header says: it is not whole")

    def rest(self) -> Iterator[tuple[str, bytes]]:
        """Yield place and text of each line that was not read yet."""
        return ((f"{self._path}: line {number}", line) for number, line in self._lines)

    def note(self, where: str, kind: str, struct: type[Any], meta: ObjectMeta | Names) -> None:
        """Note an object. `struct` tells kinds of one name apart. Raises `InputError` for an object that the file had already."""
        key = (struct.__name__, meta.namespace, meta.name)
        if key in self._seen:
            raise bad_field(where, f"{kind} {meta.namespace}/{meta.name} again", "every object once")
        self._seen.add(key)
        self._counts[kind] += 1
        self.taken += 1

    def manifests(self) -> tuple[list[Manifest], list[SchedulingProfile]]:
        """Read and check all objects at the beginning; profiles are apart."""
        objects, profiles = [], []
        for where, line in self.beginning():
            manifest, item = checked_object(line, where)
            self.note(where, str(manifest["kind"]), type(item), item.metadata)
            if isinstance(item, SchedulingProfile):
                profiles.append(item)
            else:
                objects.append(manifest)
        return objects, profiles


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


_ObjectKey = tuple[str, str, str]


class ChangeLine(msgspec.Struct, frozen=True):
    """A change, with `at` in seconds after the beginning.

    A deleted object has kind, name, namespace and uid. A finished pod also has its phase.
    """

    at: float
    act: Act
    object: msgspec.Raw


def read_change(line: bytes, where: str, earliest: float) -> Happening:
    """Read a change that is not earlier than the one before. Raises `InputError` naming `where`."""
    try:
        change = msgspec.json.decode(line, type=ChangeLine)
    except DECODE_ERRORS as problem:
        raise bad_field(where, str(problem), "one change as JSON: at, act and object") from None
    if not (math.isfinite(change.at) and change.at >= earliest):
        raise bad_field(f"{where}: at", change.at, f"seconds, {earliest:g} or more, as the line before says")
    return Happening(change.at, change.act, checked_object(change.object, where)[0])


@dataclass(frozen=True, slots=True)
class Recording:
    """A recording as read.

    Attributes:
        scenario: cluster at the beginning, and later changes by other writers than the scheduler.
        profiles: profiles at the beginning.
        recorded_nodes: nodes that the recorded scheduler chose during the recording, by uid of the pod.
        recorded_at: seconds after the beginning at which each of these pods was seen on its node.
        seconds: seconds after the beginning of the last change.
        notes: remarks for people.
    """

    header: Header
    scenario: Scenario
    profiles: Sequence[SchedulingProfile]
    recorded_nodes: Mapping[str, str]
    recorded_at: Mapping[str, float]
    seconds: float
    notes: Sequence[str]


@only_what_stays()
def read_recording(path: Path, largest: int = LARGEST_TEXT, schedulers: Collection[str] | None = None) -> Recording:
    """Read a recording. If it was cut off, read its whole lines.

    A replay decides anew about pods of `schedulers`, or of all schedulers for None. Other pods go to their recorded nodes. Raises
    `InputError` with the line of the fault, and above `largest` bytes of text.
    """
    file = ObjectFile(path, RECORDING, largest)
    objects, profiles = file.manifests()
    replay = _Replay(path, objects, profiles, schedulers)
    for where, line in file.rest():
        replay.take(where, line)
    if replay.profile_changes:
        file.notes.append(f"{path}: {replay.profile_changes} changes of SchedulingProfiles are passed over: a replay has its own profiles")
    scenario = Scenario(
        source_of(path, file.header), replay.objects, replay.happenings, replay.durations, kubernetes=file.header.kubernetes
    )
    return Recording(file.header, scenario, profiles, replay.nodes, replay.bound_at, replay.now, file.notes)


@dataclass(slots=True)
class _Replay:
    """Turns recorded changes into changes of a simulation."""

    path: Path
    objects: list[Manifest]
    profiles: Sequence[SchedulingProfile]
    schedulers: Collection[str] | None
    happenings: list[Happening] = field(default_factory=list)
    durations: dict[str, float] = field(default_factory=dict)
    nodes: dict[str, str] = field(default_factory=dict)
    bound_at: dict[str, float] = field(default_factory=dict)
    now: float = 0.0
    profile_changes: int = 0
    _there: dict[_ObjectKey, str] = field(default_factory=dict)
    #: The last content of pods that the replay has to place, by uid.
    _shown: dict[str, Manifest] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.objects = [self._beginning(each) for each in self.objects]
        self._there.update({(PROFILE, "", each.metadata.name): each.metadata.uid for each in self.profiles})

    def _beginning(self, manifest: Manifest) -> Manifest:
        self._there[_key(manifest)] = _uid(manifest)
        if manifest["kind"] != "Pod" or _node(manifest) or not self._is_open(manifest):
            return manifest
        return self._follow(manifest)

    def take(self, where: str, line: bytes) -> None:
        """Take one more change. Raises `InputError`."""
        change = read_change(line, where, self.now)
        manifest = change.manifest
        self._check_order(where, change.act, manifest)
        self.now = change.at
        if manifest["kind"] == PROFILE:
            self.profile_changes += 1
        elif manifest["kind"] == "Pod":
            self.happenings += self._pod(change.act, manifest)
        else:
            self.happenings.append(change)

    def _check_order(self, where: str, act: Act, manifest: Manifest) -> None:
        key, uid = _key(manifest), _uid(manifest)
        known = self._there.get(key)
        wrong = known is not None if act is Act.ADDED else known != uid
        if wrong:
            what = f"{act} of the {key[0]} {'/'.join(filter(None, key[1:]))}"
            raise bad_field(f"{where}: act", what, "ADDED of what is not there, and MODIFIED and DELETED of what is")
        if act is Act.DELETED:
            del self._there[key]
        else:
            self._there[key] = uid

    def _pod(self, act: Act, manifest: Manifest) -> Iterator[Happening]:
        uid = _uid(manifest)
        if act is Act.DELETED:
            yield from self._pod_gone(uid, manifest)
            return
        if act is Act.ADDED and self._is_open(manifest):
            node = _node(manifest)
            shown = self._follow(manifest)
            self._note_node(uid, node)
            yield Happening(self.now, act, shown)
            return
        if uid not in self._shown:
            yield Happening(self.now, act, manifest)
            return
        before = self._shown[uid]
        self._note_node(uid, _node(manifest))
        shown = self._follow(manifest)
        if shown != before:
            yield Happening(self.now, act, shown)

    def _pod_gone(self, uid: str, manifest: Manifest) -> Iterator[Happening]:
        followed = self._shown.pop(uid, None)
        ended_itself = (manifest.get("status") or {}).get("phase") in FINISHED_PHASES
        if followed is not None and ended_itself and uid in self.bound_at:
            self.durations[uid] = self.now - self.bound_at[uid]
        else:
            yield Happening(self.now, Act.DELETED, manifest)

    def _is_open(self, pod: Manifest) -> bool:
        """Return whether a replay decides where the pod goes."""
        ours = self.schedulers is None or (pod.get("spec") or {}).get("schedulerName", DEFAULT_SCHEDULER_NAME) in self.schedulers
        return ours and not _belongs_to_a_node(pod)

    def _follow(self, manifest: Manifest) -> Manifest:
        shown = self._shown[_uid(manifest)] = undecided(manifest)
        return shown

    def _note_node(self, uid: str, node: str) -> None:
        if node and uid not in self.nodes:
            self.nodes[uid] = node
            self.bound_at[uid] = self.now


def undecided(pod: Manifest) -> Manifest:
    """Return the pod without a scheduler's decision about it, and without a node's later reports."""
    spec = {key: value for key, value in (pod.get("spec") or {}).items() if key != "nodeName"}
    return {key: value for key, value in pod.items() if key != "status"} | {"spec": spec}


def _belongs_to_a_node(pod: Manifest) -> bool:
    """Return whether a pod is static, which no scheduler places on its node."""
    owners = pod["metadata"].get("ownerReferences") or ()
    return bool(_node(pod)) and any(owner.get("kind") == "Node" for owner in owners)


def _key(manifest: Mapping[str, Any]) -> _ObjectKey:
    meta = manifest["metadata"]
    return kind_and_group(manifest), str(meta.get("namespace") or ""), str(meta["name"])


def _uid(manifest: Mapping[str, Any]) -> str:
    return str(manifest["metadata"].get("uid") or "")


def _node(pod: Mapping[str, Any]) -> str:
    return str((pod.get("spec") or {}).get("nodeName") or "")
