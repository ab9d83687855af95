"""Keeps SchedulingProfiles: applies what Kopf shows, and writes back how each one stands.

Only the active replica writes status; at most one write a profile and beat, and none when nothing changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from placewright.api.objects import Condition, ObjectMeta
from placewright.api.profile import QueueSizes, SchedulingProfile
from placewright.framework.evaluation import Evaluator
from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, RequestError
from placewright.kube.profiles import PROFILES_PATH, ProfileEvents, patch_status, profile_path
from placewright.kube.wire import Wire
from placewright.profiles.live import LiveProfiles
from placewright.profiles.standing import Reason, Standing, status_of
from placewright.queue.queue import SchedulingQueue

_logger = logging.getLogger(__name__)

_BEAT_SECONDS: Final = 1.0
#: After so many beats without any profile it is said that nothing will happen.
_PATIENT_BEATS: Final = 5

#: Reasons of events about profiles.
ACTIVE: Final = "ProfileActive"
REJECTED: Final = "ProfileRejected"


class ProfileKeeper:
    """The live profiles and their status."""

    def __init__(
        self,
        client: ApiClient,
        live: LiveProfiles[Evaluator],
        queue: SchedulingQueue,
        may_write: Callable[[], bool],
        events: ProfileEvents,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._live = live
        self._queue = queue
        self._may_write = may_write
        self._events = events
        self._now = now
        self._seen: dict[str, SchedulingProfile] = {}
        self._conditions: dict[str, list[Condition]] = {}
        self._written: dict[str, dict[str, Any]] = {}
        self._announced: dict[str, Standing] = {}
        self._unreadable: dict[str, Standing] = {}
        self._changed = asyncio.Event()
        self._wire = Wire(SchedulingProfile)

    def apply(self, profile: SchedulingProfile) -> None:
        """A profile appeared or changed."""
        name = profile.metadata.name
        self._seen[name] = profile
        self._unreadable.pop(name, None)
        self._conditions.setdefault(name, list(profile.status.conditions or ()))
        outcome = self._live.apply(profile)
        if not outcome.changed or outcome.standing is None:
            return
        standing = outcome.standing
        if standing.reason.stalls:
            _logger.error("profile %s: generation %d is refused: %s", name, standing.observed_generation, standing.message)
        else:
            _logger.info("profile %s: %s", name, standing.message)
        self._changed.set()

    def remove(self, name: str, uid: str) -> None:
        """A profile was deleted: its pods wait. An object of that name with another uid is another profile, and stays."""
        seen = self._seen.get(name)
        if seen is None or seen.metadata.uid != uid:
            return
        active = next((swap for swap in self._live.remove(name, uid).swaps if swap.after is None), None)
        if active is not None:
            _logger.warning("profile %s was deleted: pods of schedulerName %r wait", name, active.scheduler_name)
        for memory in (self._seen, self._conditions, self._written, self._announced, self._unreadable):
            memory.pop(name, None)
        self._changed.set()

    async def compare(self) -> None:
        """Remove profiles that are gone although no watch said so; raises `RequestError` or `DecodeError`."""
        known = {name: profile.metadata.uid for name, profile in self._seen.items()}
        page = self._wire.page(await self._client.get(PROFILES_PATH))
        listed = {item.metadata.name: item.metadata.uid for item in page.items}
        for name, uid in known.items():
            if listed.get(name) != uid:
                self.remove(name, uid)

    def refuse_unreadable(self, metadata: ObjectMeta, problem: str) -> None:
        """A profile does not even have the shape of one: the last good generation stays in effect."""
        name = metadata.name
        _logger.error("profile %s: generation %d is refused: %s", name, metadata.generation, problem)
        self._seen[name] = SchedulingProfile(metadata=metadata)
        active = next((s.active_generation for s in self._live.standings() if s.name == name), None)
        self._unreadable[name] = Standing(name, "", metadata.generation, active, Reason.INVALID_PROFILE, problem)
        self._changed.set()

    async def run(self) -> None:
        """Write status and announce changes, on change and at every beat, until cancelled."""
        for beat in itertools.count():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_BEAT_SECONDS):
                    await self._changed.wait()
            self._changed.clear()
            if beat == _PATIENT_BEATS and not self._seen:
                _logger.warning("there is no SchedulingProfile: no pod is placed until one is applied, such as manifests/base/profile.yaml")
            if self._may_write():
                for standing in self._standings():
                    await self._report(standing)

    def _standings(self) -> list[Standing]:
        readable = {standing.name: standing for standing in self._live.standings()}
        return list((readable | self._unreadable).values())

    async def _report(self, standing: Standing) -> None:
        profile = self._seen.get(standing.name)
        if profile is None:
            return
        await self._announce_once(profile, standing)
        previous = self._conditions.get(standing.name, [])
        status = status_of(standing, previous, self._now().strftime("%Y-%m-%dT%H:%M:%SZ"), self._sizes(standing.scheduler_name))
        if self._written.get(standing.name) == status:
            return
        try:
            await patch_status(self._client, profile_path(standing.name), status)
        except RequestError as problem:
            if not (isinstance(problem, ApiError) and problem.status == NOT_FOUND):
                _logger.debug("profile %s: status could not be written, will be tried again: %s", standing.name, problem)
            return
        self._written[standing.name] = status
        self._conditions[standing.name] = [_condition(item) for item in status["conditions"]]

    async def _announce_once(self, profile: SchedulingProfile, standing: Standing) -> None:
        if self._announced.get(standing.name) == standing:
            return
        self._announced[standing.name] = standing
        refused = standing.reason.stalls
        with contextlib.suppress(RequestError):  # best effort, as all events
            await self._events.record(
                profile.metadata, "Warning" if refused else "Normal", REJECTED if refused else ACTIVE, standing.message
            )

    def _sizes(self, scheduler_name: str) -> QueueSizes:
        sizes = self._queue.sizes(scheduler_name)
        return QueueSizes(
            active=sizes.active + sizes.in_flight, backoff=sizes.backoff, unschedulable=sizes.unschedulable, gated=sizes.gated
        )


def _condition(item: dict[str, Any]) -> Condition:
    return Condition(
        type=item["type"],
        status=item["status"],
        reason=item.get("reason", ""),
        message=item.get("message", ""),
        last_transition_time=item.get("lastTransitionTime"),
        observed_generation=item.get("observedGeneration"),
    )
