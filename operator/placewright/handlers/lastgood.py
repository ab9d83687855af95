"""The last good generation of a profile whose newest one is refused, for a replica that has not seen it.

Whoever takes over, or is started again, sees only what the API server holds now. What was in effect before stands in the history.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

from placewright.api.decode import convert
from placewright.api.profile import ProfileSpec, SchedulingProfile
from placewright.kube.history import HistoryStore, with_keys_of
from placewright.profiles.standing import Reason

_logger = logging.getLogger(__name__)

_TOOK: Final = frozenset({Reason.ACTIVE, Reason.PAUSED})


class LastGood:
    """Looks it up; once for each generation that was refused."""

    def __init__(self, store: HistoryStore) -> None:
        self._store = store
        self._asked: set[tuple[str, int]] = set()

    async def before(self, refused: SchedulingProfile) -> SchedulingProfile | None:
        """The newest earlier generation of this very object that took effect; None when none is recorded, or this was asked already.

        Raises `RequestError` or `DecodeError`; then it may be asked again.
        """
        meta = refused.metadata
        if (meta.uid, meta.generation) in self._asked:
            return None
        revisions = await self._store.revisions(meta.name)
        self._asked.add((meta.uid, meta.generation))
        took = [
            each.recorded
            for each in revisions
            if each.recorded.uid == meta.uid and each.recorded.generation < meta.generation and each.result in _TOOK
        ]
        if not took:
            return None
        last = max(took, key=lambda recorded: recorded.generation)
        spec, missing = with_keys_of(last.spec, msgspec.to_builtins(refused.spec))
        if missing:
            _logger.warning("profile %s: generation %d is not put back: keys are not recorded (%s)", meta.name, last.generation, missing)
            return None
        return SchedulingProfile(metadata=msgspec.structs.replace(meta, generation=last.generation), spec=convert(spec, ProfileSpec))
