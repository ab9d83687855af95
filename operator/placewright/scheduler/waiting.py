"""Pods that Permit plugins keep waiting: placed, reserved, and not yet allowed to bind."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping

from placewright.api.pods import PodInfo
from placewright.framework.status import SUCCESS, Status, error, unschedulable
from placewright.scheduler.messages import permit_timeout
from placewright.scheduler.ports import Clock


class WaitingPod:
    """One pod and the plugins that have not allowed it yet."""

    def __init__(self, pod: PodInfo, waits: Mapping[str, float], clock: Clock) -> None:
        """`waits`: plugin name to the longest it may keep the pod, in seconds."""
        self.pod = pod
        self._waits = dict(waits)
        self._clock = clock
        self._since = clock()
        self._verdict: Status | None = None
        self._decided = asyncio.Event()

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """Plugins that have not allowed the pod."""
        return tuple(self._waits)

    def allow(self, plugin: str) -> None:
        """The plugin has no objection any more; the last one lets the pod go."""
        self._waits.pop(plugin, None)
        if not self._waits:
            self._decide(SUCCESS)

    def reject(self, plugin: str, reason: str) -> None:
        """The plugin refuses; the pod is rolled back."""
        self._decide(unschedulable(reason).by(plugin))

    def give_up(self, reason: str) -> None:
        """Nobody refuses, but the pod cannot be bound from here; it is rolled back and tried again."""
        self._decide(error(reason))

    async def decision(self) -> Status:
        """Wait until everybody allowed, somebody rejected, or somebody's time is over."""
        while self._verdict is None:
            plugin, longest = min(self._waits.items(), key=lambda wait: wait[1])
            left = self._since + longest - self._clock()
            if left <= 0:
                self.reject(plugin, permit_timeout(plugin, longest))
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._decided.wait()
        return self._verdict

    def _decide(self, verdict: Status) -> None:
        if self._verdict is None:
            self._verdict = verdict
            self._decided.set()


class WaitingPods:
    """All waiting pods, by uid."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(tuple(self._pods.values()))

    def get(self, uid: str) -> WaitingPod | None:
        """The waiting pod, or None."""
        return self._pods.get(uid)

    def __len__(self) -> int:
        return len(self._pods)

    def enter(self, pod: PodInfo, waits: Mapping[str, float]) -> None:
        """Keep the pod from now on, if any plugin wants it to wait: plugins can find it here before its binding has begun."""
        if waits:
            self._pods[pod.uid] = WaitingPod(pod, waits, self._clock)

    async def decided(self, pod: PodInfo) -> Status:
        """Wait until the pod is allowed or rejected, and let it go; SUCCESS at once for one that was not to wait."""
        waiting = self._pods.get(pod.uid)
        if waiting is None:
            return SUCCESS
        try:
            return await waiting.decision()
        finally:
            del self._pods[pod.uid]
