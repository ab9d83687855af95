"""The pods and profiles of a run, as the API server shows them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from placewright.api.objects import Pod
from placewright.api.profile import GROUP, PLURAL, VERSION, SchedulingProfile
from placewright.kube.client import ApiClient
from placewright.kube.reflector import Reflector, Reflectors, Source
from placewright_lab.demo.summary import Tracker

PODS_PATH: Final = "/api/v1/pods"
PROFILES_PATH: Final = f"/apis/{GROUP}/{VERSION}/{PLURAL}"


class PodSink:
    """Tells a tracker about pods, with the time at which we heard of them."""

    def __init__(self, tracker: Tracker, clock: Callable[[], float]) -> None:
        self._tracker = tracker
        self._clock = clock

    def changed(self, old: Pod | None, new: Pod) -> None:
        """Tell the tracker that a pod appeared or changed."""
        self._tracker.seen(new, self._clock())

    def deleted(self, old: Pod) -> None:
        """Tell the tracker that a pod is gone."""
        self._tracker.gone(old, self._clock())

    def synced(self) -> None:
        """Do nothing, because pods tell their own state."""


class Profiles:
    """The profiles on the API server. A caller may wait until one is shown, or in use."""

    def __init__(self) -> None:
        self._shown: dict[str, int] = {}
        self._generations: dict[str, int] = {}
        self._changed = asyncio.Event()

    def changed(self, old: SchedulingProfile | None, new: SchedulingProfile) -> None:
        """Note the generations of a profile that appeared or changed."""
        self._shown[new.metadata.name] = new.metadata.generation
        self._generations[new.metadata.name] = new.status.active_generation
        self._changed.set()

    def deleted(self, old: SchedulingProfile) -> None:
        """Forget a profile that is gone."""
        self._shown.pop(old.metadata.name, None)
        self._generations.pop(old.metadata.name, None)

    def synced(self) -> None:
        """Do nothing."""

    async def wait_shown(self, name: str, generation: int) -> None:
        """Return once a watch has brought this generation of the profile, or a later one."""
        await self._wait(self._shown, name, generation)

    async def wait_active(self, name: str, generation: int) -> None:
        """Return once the status says that the operator decides with this generation, or with a later one.

        The operator writes status at most once a second, so this may return a second late.
        """
        await self._wait(self._generations, name, generation)

    async def _wait(self, generations: dict[str, int], name: str, generation: int) -> None:
        while generations.get(name, 0) < generation:
            self._changed.clear()
            await self._changed.wait()


def watch_run(client: ApiClient, tracker: Tracker, profiles: Profiles, clock: Callable[[], float]) -> Reflectors:
    """Return reflectors for all pods and all profiles, which the caller starts and stops."""
    pods = Reflector(client, Source(PODS_PATH, Pod), PodSink(tracker, clock))
    return Reflectors([pods, Reflector(client, Source(PROFILES_PATH, SchedulingProfile), profiles)])
