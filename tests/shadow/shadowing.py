"""A scheduler with shadows beside it, all else faked: a clock that stands still, and work that is done when a test says so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from placewright.cluster.cluster import Cluster
from placewright.framework.interface import Plugin
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from placewright.shadow.shadow import REPORT_SECONDS, Shadow
from placewright.shadow.shadows import Shadows
from placewright.testing.profiles import ProfileMaker, registry_with
from scheduler.makers import World

Body = dict[str, Any]


class Ticking:
    """A clock that moves only when somebody moves it, and by a little at each look where that is wanted.

    Attributes:
        now: seconds.
        tick: seconds that each look takes.
    """

    def __init__(self, tick: float = 0.0) -> None:
        self.now = 1000.0
        self.tick = tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


class Beside(World):
    """The scheduler of `World` with shadows of its profile `default`.

    Attributes:
        clock: the shadows'.
    """

    def __init__(self, *plugins: type[Plugin], **spec: Any) -> None:
        """`plugins`: those that only shadows use. `spec`: of the live profile."""
        self.clock = Ticking()
        self._plugins_of_shadows = plugins
        super().__init__(**spec)
        self.shadows = Shadows(self.cluster, self._build_shadow, self.clock, lambda: datetime(2026, 1, 1, tzinfo=UTC))
        self.deciding.append(self.shadows.decided)
        self.trying.append(self.shadows)
        self.event_handlers = ClusterEventHandlers(self.cluster, self.queue, self.binding, listener=self.shadows)
        self._adopted: dict[str, ResolvedProfile] = {}

    def _build_shadow(self, profile: ResolvedProfile, cluster: Cluster) -> Evaluator:
        return ProfileHandle(cluster).evaluator(profile, registry_with(self._plugins_of_shadows))

    def shadow(self, name: str = "shadow", *, budget: float = 50, generation: int = 1, **spec: Any) -> Shadow:
        """Put a shadow of `default` to work; it knows the cluster then."""
        made = ProfileMaker(name).generation(generation).spec(mode="Shadow", shadows="default", shadow={"budgetPercent": budget})
        self._adopted[name] = made.spec(**spec).resolved(*self._plugins_of_shadows)
        self.shadows.adopt(self._adopted.values())
        return self.rest(self.shadows.by_name[name])

    def rest(self, shadow: Shadow) -> Shadow:
        """Until the shadow has nothing left to do, and has said so."""
        for _ in range(100_000):
            if shadow.idle:
                self.clock.now += REPORT_SECONDS
                if shadow.idle:
                    return shadow
            self.clock.now = max(self.clock.now, shadow.pace.due)
            self.shadows.work()
        raise AssertionError("the shadow never comes to rest")
