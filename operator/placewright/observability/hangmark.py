"""The marks that a process leaves before it ends, because its loop does not turn: on the pod that it decides, and on a plugin's profile.

Python cannot interrupt what blocks, so the process has to end; and without a mark the next one would take the same pod first and hang
again, and all profiles would stand still for good. Marks are written from the watchdog's thread, with a loop and a connection of its own,
as the engine's loop is the one that hangs.

Where a plugin of somebody else hangs, its profile is marked at the end: all its pods need the plugin. In any other decision the pod is, and
as soon as the hang is noticed, because another replica takes over, or a kubelet kills this one, before the watchdog does.
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
from placewright.engine.engine import Engine
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

#: All of it, in seconds: the profiles of this process stand still meanwhile.
_SECONDS: Final = 5.0


class HangMark:
    """Says on a profile which of its plugins hangs; to be called in a thread while the engine's loop hangs."""

    def __init__(self, engine: Engine, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        """To be made in the loop that is watched. `now`: for the times of conditions."""
        self._loop = asyncio.get_running_loop()
        self._engine = engine
        self._now = now

    def __call__(self, frame: FrameType | None, seconds: float) -> None:
        """Mark the profile whose plugin runs in this frame; nothing where none does. Never raises, and never takes long."""
        found = running(frame)
        if found is None:
            return
        call, point = found
        said = said_of(call.plugin, point, seconds)
        if self._engine.options.profiles is not None:
            _log.critical("profile %s: %s; it comes from a file, so the next process will take its pods again", call.profile, said)
            return
        try:
            written = asyncio.run(self._mark(call, said))
        except Exception as problem:  # noqa: BLE001 - the process ends in any case
            unheard = "that could not be written, so the next replica will take its pods"
            _log.critical("profile %s: %s; %s: %r", call.profile, said, unheard, problem)
            return
        if written:
            _log.critical("profile %s, generation %d: %s", call.profile, call.generation, said)

    def mark_decision(self, frame: FrameType | None, _seconds: float) -> None:
        """Mark the pod that is decided in this frame, unless it is marked, or its profile will be. Never raises, and never takes long."""
        engine, found = self._engine, pod_under_decision(frame)
        if found is None or engine.marks.marked_already(found.uid):
            return
        if running(frame) is not None and engine.options.profiles is None:
            return
        try:
            mark = asyncio.run(self._mark_pod(found))
        except Exception as problem:  # noqa: BLE001 - nothing else can be done
            _log.error("pod %s is being decided, which could not be noted: %r", found.key, problem)
            return
        _log.error("pod %s is being decided; it is noted, and whoever decides next tries it after all others", found.key)
        self._loop.call_soon_threadsafe(engine.marks.hung, mark)

    async def _mark_pod(self, queued: QueuedPod) -> DecisionMark:
        access = replace(self._engine.access, reload=None)
        async with asyncio.timeout(_SECONDS), ApiClient(access, timeout=_SECONDS) as client:
            store = MarkStore(client, self._engine.namespace)
            return await store.open(marked(queued.pod, heavy=heavy_work(queued.pod) > 0), self._engine.replica.identity)

    async def _mark(self, call: PluginInCall, said: str) -> bool:
        """Write it, unless the profile has another generation by now; False then."""
        access = replace(self._engine.access, reload=None)  # a fresh look at credentials could take longer than there is time
        async with asyncio.timeout(_SECONDS), ApiClient(access, timeout=_SECONDS) as client:
            page = Wire(SchedulingProfile).page(await client.get(PROFILES_PATH, {"fieldSelector": f"metadata.name={call.profile}"}))
            for profile in page.items:
                if not isinstance(profile, SchedulingProfile):
                    continue  # then nobody takes this generation in any case
                if (profile.metadata.name, profile.metadata.generation) == (call.profile, call.generation):
                    await self._write(client, profile, said)
                    return True
        return False

    async def _write(self, client: ApiClient, profile: SchedulingProfile, said: str) -> None:
        meta, status = profile.metadata, profile.status
        standing = ProfileStanding(meta.name, profile.spec.scheduler_name, meta.generation, None, Reason.PLUGIN_HANGING, said)
        time = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
        await apply_status(client, meta.name, status_of(standing, status.conditions or (), time, status.pending, (), status.shadow))
        events = ProfileEvents(client, self._engine.replica.identity)
        await events.record(meta, "Warning", Reason.PLUGIN_HANGING.value, said)
