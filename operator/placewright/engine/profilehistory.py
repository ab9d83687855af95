"""Keeps the history of profiles: every generation, its author, and its standing.

Only the active replica writes. If it has no right to, or no namespace to write to, one line says so. Nothing else changes, because no
decision waits for the history.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from placewright.api.decode import DecodeError, convert
from placewright.api.profile import ProfileSpec, SchedulingProfile
from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError, RequestError
from placewright.kube.history import HistoryStore, RecordedGeneration, Revision, name_of, with_keys_of, without_keys
from placewright.kube.profileapi import SpecChange, last_author
from placewright.kube.tasks import until_set
from placewright.profiles.profilestate import TOOK_EFFECT, ProfileStanding

_logger = logging.getLogger(__name__)

#: Revisions that are kept of a profile; the one in effect is kept besides, however old it is.
KEPT: Final = 20
#: Most records that wait to be written, of all profiles together; beyond it the oldest is dropped.
_MOST_WAITING: Final = 500
_BEAT_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 30.0
#: Seconds within which two changes may have the same `managedFields` time, which has whole seconds: an event may come that late.
_QUICK_SECONDS: Final = 3.0


@dataclass(slots=True)
class _Seen:
    """The newest generation of a profile.

    Attributes:
        recorded: the recorded, as it is written.
        fields: its managedFields, to see who changes them next.
        seen_at: when it was seen first, seconds of the clock.
        told: the standing that has been written, or waits to be.
    """

    recorded: RecordedGeneration
    fields: Sequence[Mapping[str, Any]]
    seen_at: float
    told: ProfileStanding | None = None


@dataclass(eq=False)
class HistoryKeeper:
    """Queues the records of generations and their standings, and writes them.

    Attributes:
        store: reads and writes revisions.
        standings: the standing of every profile, by name.
        may_write: whether this replica is the active one.
        clock: seconds, monotonic, for the pause after a failed write.
    """

    store: HistoryStore
    standings: Callable[[], Mapping[str, ProfileStanding]]
    may_write: Callable[[], bool]
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._seen: dict[str, _Seen] = {}
        self._waiting: list[tuple[RecordedGeneration, ProfileStanding]] = []
        self._changed = asyncio.Event()
        self._not_before = 0.0
        self._failing = False

    def saw(self, profile: Mapping[str, Any]) -> None:
        """Queue a record for a profile's generation, where it is new.

        Args:
            profile: the object as the API server shows it, after it was judged.
        """
        metadata = profile["metadata"]
        name, uid, generation = metadata["name"], metadata.get("uid", ""), metadata.get("generation", 0)
        fields = metadata.get("managedFields") or ()
        known = self._seen.get(name)
        if known is not None and known.recorded.uid == uid and known.recorded.generation >= generation:
            known.fields = fields
            return
        if known is None or known.recorded.uid != uid:
            author = last_author(fields)
        else:
            quick = self.clock() - known.seen_at < _QUICK_SECONDS
            change = SpecChange(known.recorded.spec, without_keys(profile.get("spec") or {}), quick)
            author = last_author(fields, known.fields, change)
        recorded = RecordedGeneration(
            profile=name,
            uid=uid,
            generation=generation,
            changed_by=author.manager,
            changed_at=author.time or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            spec=without_keys(profile.get("spec") or {}),
        )
        self._seen[name] = _Seen(recorded, fields, self.clock())
        self._note(self._seen[name], self.standings().get(name))

    def forget(self, name: str, uid: str) -> None:
        """Drop a deleted profile from memory. Its stored history stays.

        Args:
            name: name of the profile.
            uid: uid of the deleted object; a newer object of that name is kept.
        """
        if name in self._seen and self._seen[name].recorded.uid == uid:
            del self._seen[name]

    async def run(self) -> None:
        """Call `write` on change and at every beat, until cancelled."""
        while True:
            await until_set(self._changed, _BEAT_SECONDS)
            self._changed.clear()
            await self.write()

    async def write(self) -> None:
        """Write the queued records, where this replica is active and no pause is due. An error of the API server is logged, not raised."""
        standings = self.standings()
        for name, seen in self._seen.items():
            self._note(seen, standings.get(name))
        if not self._waiting or not self.may_write() or self.clock() < self._not_before:
            return
        try:
            await self._write_all()
        except (RequestError, DecodeError) as problem:
            self._not_before = self.clock() + _RETRY_SECONDS
            if not self._failing:
                level = logging.INFO if isinstance(problem, ApiError) and problem.status == NOT_FOUND else logging.WARNING
                _logger.log(level, "the history of profiles is not kept in namespace %s for now: %s", self.store.namespace, problem)
            self._failing = True
        else:
            self._failing = False

    def _note(self, seen: _Seen, standing: ProfileStanding | None) -> None:
        """Queue a profile's newest generation with its standing, unless that standing is written or queued already."""
        if standing is None or standing == seen.told or standing.observed_generation != seen.recorded.generation:
            return
        seen.told = standing
        self._waiting = [*self._waiting, (seen.recorded, standing)][-_MOST_WAITING:]
        self._changed.set()

    async def _write_all(self) -> None:
        stored: dict[str, list[Revision]] = {}
        for revision in await self.store.revisions():
            stored.setdefault(revision.recorded.profile, []).append(revision)
        waiting, self._waiting = self._waiting, []
        try:
            while waiting:
                recorded, standing = waiting[0]
                revisions = stored.setdefault(recorded.profile, [])
                await self._write_one(revisions, recorded, standing)
                del waiting[0]
                await self._prune(revisions, recorded.uid, standing.active_generation)
        finally:
            self._waiting = [*waiting, *self._waiting][-_MOST_WAITING:]

    async def _write_one(self, revisions: list[Revision], recorded: RecordedGeneration, standing: ProfileStanding) -> None:
        wanted = recorded.uid, recorded.generation
        known = next((each for each in revisions if (each.recorded.uid, each.recorded.generation) == wanted), None)
        if known is None:
            number = max((each.number for each in revisions), default=0) + 1
            revisions.append(Revision(number, recorded, standing.reason, standing.message, name_of(recorded)))
            with _unless(CONFLICT):  # the replica before us was faster
                await self.store.add(revisions[-1])
        elif (known.result, known.message) != (standing.reason, standing.message):
            marked = replace(known, result=standing.reason, message=standing.message)
            revisions[revisions.index(known)] = marked
            with _unless(NOT_FOUND):
                await self.store.mark(marked)

    async def _prune(self, revisions: list[Revision], uid: str, active: int | None) -> None:
        for revision in revisions[:-KEPT]:
            if (revision.recorded.uid, revision.recorded.generation) != (uid, active):
                with _unless(NOT_FOUND):
                    await self.store.remove(revision)
                revisions.remove(revision)


@contextlib.contextmanager
def _unless(status: int) -> Iterator[None]:
    """Ignore an answer with this status: another client has done the same already."""
    try:
        yield
    except ApiError as error:
        if error.status != status:
            raise


class LastGood:
    """Finds the last good generation of a profile whose newest generation is refused.

    A replica that takes over, or is started again, sees only the newest generation in the API server. The generation that was in effect
    is in the history, which is read once for each refused generation.
    """

    def __init__(self, store: HistoryStore) -> None:
        self._store = store
        self._asked: set[tuple[str, int]] = set()

    async def before(self, refused: SchedulingProfile) -> SchedulingProfile | None:
        """Find the newest earlier generation of the same object that took effect.

        Args:
            refused: the newest generation.

        Returns:
            The profile with that generation's spec; None when none is recorded, or this was asked before.

        Raises:
            RequestError: the history could not be read; the caller may ask again.
            DecodeError: the same.
        """
        meta = refused.metadata
        if (meta.uid, meta.generation) in self._asked:
            return None
        revisions = await self._store.revisions(meta.name)
        self._asked.add((meta.uid, meta.generation))
        took = [
            each.recorded
            for each in revisions
            if each.recorded.uid == meta.uid and each.recorded.generation < meta.generation and each.result in TOOK_EFFECT
        ]
        if not took:
            return None
        last = max(took, key=lambda recorded: recorded.generation)
        spec, missing = with_keys_of(last.spec, msgspec.to_builtins(refused.spec))
        if missing:
            _logger.warning("profile %s: generation %d is not put back: keys are not recorded (%s)", meta.name, last.generation, missing)
            return None
        return SchedulingProfile(metadata=msgspec.structs.replace(meta, generation=last.generation), spec=convert(spec, ProfileSpec))
