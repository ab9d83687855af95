"""Recordings: a snapshot, and the changes in the cluster from then on.

After the header and the objects come changes, a line each: `{"at": seconds, "act": "ADDED", "object": {…}}`. Changes of fields that
placement does not read are left out. The recorded cluster had a scheduler, too. A replay removes its decisions, so that another scheduler
can decide: pods come without a node, and a pod that ended by itself tells how long it ran.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from placewright.api.bad_input import bad_field
from placewright.api.decode import DECODE_ERRORS
from placewright.api.pods import FINISHED_PHASES
from placewright.api.profile import DEFAULT_SCHEDULER_NAME, SchedulingProfile
from placewright.api.profile import KIND as PROFILE
from placewright.offline.kinds import Manifest, kind_and_group
from placewright_lab.simulation.scenario import Act, Happening, Scenario
from placewright_lab.snapshots.linefile import LARGEST_TEXT, numbered_lines, only_what_stays
from placewright_lab.snapshots.snapshot import RECORDING, Header, ObjectLines, checked_object, read_header, source_of

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
    notes: list[str] = []
    lines = numbered_lines(path, largest, notes.append)
    header = read_header(lines, path, RECORDING)
    beginning = ObjectLines(path)
    total = sum(header.counts.values())
    for _ in range(total):
        number, line = next(lines, (0, b""))
        if not number:
            break
        beginning.take(number, line)
    beginning.names.check(header)
    replay = _Replay(path, beginning.objects, beginning.profiles, schedulers)
    for number, line in lines:
        replay.take(f"{path}: line {number}", line)
    if replay.profile_changes:
        notes.append(f"{path}: {replay.profile_changes} changes of SchedulingProfiles are passed over: a replay has its own profiles")
    scenario = Scenario(source_of(path, header), replay.objects, replay.happenings, replay.durations)
    return Recording(header, scenario, beginning.profiles, replay.nodes, replay.bound_at, replay.now, notes)


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
