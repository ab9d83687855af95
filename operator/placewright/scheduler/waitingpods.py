"""Pods that Permit plugins keep waiting before their binding, like kube-scheduler's `waitingPodsMap`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping

from placewright.api.pods import PodInfo
from placewright.framework.status import SUCCESS, Status, error, unschedulable
from placewright.scheduler.messages import permit_timeout
from placewright.scheduler.ports import Clock


class WaitingPod:
    """A pod that waits for permission, with the plugins that have not allowed it yet."""

    def __init__(self, pod: PodInfo, waits: Mapping[str, float], clock: Clock) -> None:
        """Begin to wait now.

        Args:
            pod: a pod that is assumed and reserved.
            waits: seconds that each plugin may keep the pod, by name.
            clock: seconds, monotonic.
        """
        self.pod = pod
        self._waits = dict(waits)
        self._clock = clock
        self._since = clock()
        self._verdict: Status | None = None
        self._decided = asyncio.Event()

    @property
    def pending_plugins(self) -> tuple[str, ...]:
        """The plugins that have not allowed the pod."""
        return tuple(self._waits)

    def allow(self, plugin: str) -> None:
        """Allow the pod on behalf of a plugin; the last plugin to allow lets it go."""
        self._waits.pop(plugin, None)
        if not self._waits:
            self._decide(SUCCESS)

    def reject(self, plugin: str, reason: str) -> None:
        """Reject the pod on behalf of a plugin; it is rolled back.

        Args:
            plugin: name of the plugin.
            reason: text of the pod's event.
        """
        self._decide(unschedulable(reason).by(plugin))

    def give_up(self, reason: str) -> None:
        """Fail the pod without blaming a plugin; it is rolled back and tried again."""
        self._decide(error(reason))

    async def decision(self) -> Status:
        """Wait until every plugin has allowed the pod, one has rejected it, or one has used up its time.

        Returns:
            SUCCESS, a rejection, or an error.
        """
        while self._verdict is None:
            plugin, longest = min(self._waits.items(), key=lambda wait: wait[1])
            # The scheduler's clock decides, because tests move it by hand. asyncio's timeout only ends the wait.
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
    """All waiting pods, by uid.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pods: dict[str, WaitingPod] = {}

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(tuple(self._pods.values()))

    def get(self, uid: str) -> WaitingPod | None:
        """Return the waiting pod of this uid; None when it does not wait."""
        return self._pods.get(uid)

    def __len__(self) -> int:
        return len(self._pods)

    def enter(self, pod: PodInfo, waits: Mapping[str, float]) -> None:
        """Keep the pod if a plugin wants it to wait. Plugins find it here from now on, before its binding cycle has begun.

        Args:
            pod: a pod that is assumed and reserved.
            waits: seconds that each plugin may keep the pod, by name; empty when no plugin does.
        """
        if waits:
            self._pods[pod.uid] = WaitingPod(pod, waits, self._clock)

    async def decided(self, pod: PodInfo) -> Status:
        """Wait for the decision about a pod and let the pod go. Return SUCCESS at once for a pod that no plugin keeps."""
        waiting = self._pods.get(pod.uid)
        if waiting is None:
            return SUCCESS
        try:
            return await waiting.decision()
        finally:
            del self._pods[pod.uid]
