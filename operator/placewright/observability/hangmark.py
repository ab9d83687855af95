"""Marks a pod or a profile while the event loop hangs in a decision.

Python cannot interrupt a plugin that blocks. A hang that outlasts the lead costs it; a longer one ends the process. Without a mark the next
process would take the same pod first and hang again. No profile would place pods any more. The watchdog's thread writes marks with
an event loop and a connection of its own, because the engine's loop hangs.

If an out-of-tree plugin hangs, its profile is marked, because all pods of the profile need the plugin. In any other decision the pod is
marked. Both are done as soon as the hang is noticed: another replica takes over, or a kubelet kills this process, before the watchdog ends
it. A plugin that returns after all leaves its profile held. Otherwise it would be asked again at once and hold up all profiles again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from types import FrameType
from typing import Final

from placewright.api.decisionmarks import DecisionMark, heavy_work, marked
from placewright.api.profile import SchedulingProfile
from placewright.engine.companions import ReplicaInfo
from placewright.engine.decisionmarks import MarkKeeper
from placewright.framework.runtime.guard import PluginInCall, running
from placewright.kube.client import ApiClient
from placewright.kube.decisionmarks import MarkStore
from placewright.kube.listwatch import Wire
from placewright.kube.profiles import PROFILES_PATH, ProfileEvents, apply_status
from placewright.profiles.live import said_of
from placewright.profiles.profilestate import ProfileStanding, Reason, status_of
from placewright.queue.queued import QueuedPod
from placewright.scheduler.underdecision import pod_under_decision

_log = logging.getLogger(__name__)

#: Seconds for all requests of a mark: no profile of this process places pods meanwhile.
_SECONDS: Final = 5.0


class HangMark:
    """Marks the profile whose plugin hangs, or the pod that is being decided. It is called in a thread while the engine's loop hangs."""

    def __init__(
        self, info: ReplicaInfo, marks: MarkKeeper, *, from_file: bool, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        """Take the running event loop, which is the watched one.

        Args:
            info: the replica of the event loop.
            marks: its marks.
            from_file: whether the profiles come from a file, and so have no status to write.
            now: the time of conditions.
        """
        self._loop = asyncio.get_running_loop()
        self._info = info
        self._marks = marks
        self._from_file = from_file
        self._now = now

    def mark_profile(self, frame: FrameType | None, seconds: float) -> bool:
        """Mark the profile whose plugin runs in a frame. An error is logged, not raised.

        Returns:
            Whether a plugin of another package runs there.
        """
        found = running(frame)
        if found is None:
            return False
        call, point = found
        said = said_of(call.plugin, point, seconds)
        if self._from_file:
            _log.critical("profile %s: %s; it comes from a file, so the next process will take its pods again", call.profile, said)
            return True
        try:
            written = asyncio.run(self._mark(call, said))
        except Exception as problem:  # noqa: BLE001 - the process ends in any case
            unheard = "profile %s: %s; that could not be written, so the next replica will take its pods: %r"
            _log.critical(unheard, call.profile, said, problem)
            return True
        if written:
            _log.critical("profile %s, generation %d: %s", call.profile, call.generation, said)
        return True

    def mark_decision(self, frame: FrameType | None, seconds: float) -> None:
        """Mark the profile whose plugin runs in a frame, else the pod that is decided there. An error is logged, not raised."""
        found = pod_under_decision(frame)
        if (self.mark_profile(frame, seconds) and not self._from_file) or found is None:
            return
        if self._marks.marked_already(found.uid):
            return
        try:
            mark = asyncio.run(self._mark_pod(found))
        except Exception as problem:  # noqa: BLE001 - the log is the only place left
            _log.error("pod %s is being decided, and no mark of it could be written: %r", found.key, problem)
            return
        _log.error("pod %s is being decided; a mark notes it, and the next leader tries it after all others", found.key)
        self._loop.call_soon_threadsafe(self._marks.hung, mark)

    async def _mark_pod(self, queued: QueuedPod) -> DecisionMark:
        access = replace(self._info.access, reload=None)
        async with asyncio.timeout(_SECONDS), ApiClient(access, timeout=_SECONDS) as client:
            store = MarkStore(client, self._info.namespace)
            return await store.open(marked(queued.pod, heavy=heavy_work(queued.pod) > 0), self._info.replica.identity)

    async def _mark(self, call: PluginInCall, said: str) -> bool:
        """Write a profile's status. If the profile has another generation by now, return False without a write."""
        access = replace(self._info.access, reload=None)  # a reload of credentials may take longer than `_SECONDS`
        async with asyncio.timeout(_SECONDS), ApiClient(access, timeout=_SECONDS) as client:
            page = Wire(SchedulingProfile).page(await client.get(PROFILES_PATH, {"fieldSelector": f"metadata.name={call.profile}"}))
            for profile in page.items:
                if not isinstance(profile, SchedulingProfile):
                    continue  # a generation that cannot be decoded is refused by every replica
                if (profile.metadata.name, profile.metadata.generation) == (call.profile, call.generation):
                    await self._write(client, profile, said)
                    return True
        return False

    async def _write(self, client: ApiClient, profile: SchedulingProfile, said: str) -> None:
        meta, status = profile.metadata, profile.status
        standing = ProfileStanding(meta.name, profile.spec.scheduler_name, meta.generation, None, Reason.PLUGIN_HANGING, said)
        time = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        await apply_status(client, meta.name, status_of(standing, status.conditions or (), time, status.pending, (), status.shadow))
        events = ProfileEvents(client, self._info.replica.identity)
        await events.record(meta, "Warning", Reason.PLUGIN_HANGING.value, said)
