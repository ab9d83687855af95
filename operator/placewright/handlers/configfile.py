"""Profiles from a file instead of custom resources (`placewright run --config`): read once, watched and written nowhere.

The API server then need not know SchedulingProfile, and the operator needs no right to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import kopf

from placewright.api.profile import SchedulingProfile
from placewright.handlers.profilekeeper import ProfileKeeper
from placewright.kube.errors import ConfigError


class FileProfiles(ProfileKeeper):
    """Keeps profiles that nobody changes; there is no object to write a status to, and none to compare with."""

    def load(self, profiles: Iterable[SchedulingProfile]) -> None:
        """Put the profiles into effect; raises `ConfigError` for one that cannot be."""
        for profile in profiles:
            self.apply(profile)
        stalled = [standing for standing in self.standings().values() if standing.reason.stalls]
        if stalled:
            raise ConfigError("\n".join(f"profile {standing.name}: {standing.message}" for standing in stalled))

    async def compare(self) -> None:
        """Nothing to compare with."""

    async def run(self) -> None:
        """Nothing to tell, until cancelled."""
        await asyncio.Event().wait()


def handlers_of_pods() -> kopf.OperatorRegistry:
    """Kopf's handlers without those of profiles."""
    # Here and not above: they import the engine, which imports this module.
    from placewright.handlers import lifecycle, watching  # noqa: PLC0415

    registry = kopf.OperatorRegistry()
    kopf.on.startup(registry=registry, errors=kopf.ErrorsMode.PERMANENT)(lifecycle.start)
    kopf.on.login(registry=registry)(lifecycle.login)
    kopf.on.cleanup(registry=registry)(lifecycle.stop)
    kopf.on.event("", "v1", "pods", registry=registry)(watching.pod_event)
    return registry
