"""The scheduler's tests use the public kit (`placewright.testing`); what they have beside it is here."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from placewright.api.errors import BindError
from placewright.engine.reconcile.reconciler import Reconciler
from placewright.framework.interface import Extender, Plugin
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import Guarding
from placewright.queue.hints import Timed
from placewright.queue.inflight import STATED_SIZES, RoomSizes
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.cycle import SchedulingCycle
from placewright.scheduler.ports import Lead
from placewright.testing import World as KitWorld
from placewright.testing import node, pod, profile
from placewright.testing.nodes import NodeMaker
from placewright.testing.pods import PodMaker
from placewright.testing.profiles import ProfileMaker
from placewright.testing.world import BindingCycleWork as Binding

__all__ = ["CONFLICT", "DEADLINE", "REFUSED", "UNKNOWN", "Binding", "NodeMaker", "PodMaker", "World", "node", "pod"]

#: Seconds after which a test that waits is given up. Far more than any needs: beside other work five were not enough.
DEADLINE = 60
CONFLICT = BindError("the pod is bound to another node", conflict=True)
REFUSED = BindError("given up after 5 attempts: 500")
UNKNOWN = BindError("answer lost, and the pod could not be read", unknown=True)


class World(KitWorld):
    """A world that a test takes step by step: nothing that is written comes back by itself. With a reconciler."""

    def __init__(
        self,
        *plugins: type[Plugin],
        lead: Lead | None = None,
        guarding: Guarding | None = None,
        timed: Timed | None = None,
        sizes: RoomSizes = STATED_SIZES,
        slices: int | None = None,
        **spec: Any,
    ) -> None:
        """Set the world up.

        Args:
            plugins: beside those of Kubernetes.
            lead: the replica has it, where none is given.
            guarding: what bounds plugins.
            timed: takes the time of hints.
            sizes: of profiles' rooms.
            slices: pods that are told of an event at once.
            spec: fields of the profile's spec, its name and generation.
        """
        self._guarding = guarding or Guarding()
        self._timed = timed
        self._sizes = sizes
        self._slices = slices
        super().__init__(*plugins, profile=_profile(**spec), lead=lead, watches=False)
        self.binding = self.scheduler.binding
        self.reconciler = Reconciler(self.cluster, self.queue, self.binding, self.event_handlers)

    def _make_queue(self) -> SchedulingQueue:
        return SchedulingQueue(self._policy, self.time, self.log.pod_entered, self._timed, sizes=self._sizes, slices=self._slices)

    def _make_cycle(self) -> SchedulingCycle:
        return SchedulingCycle(self.cluster, self.queue.nominator, random.Random(7))

    def _make_guarding(self) -> Guarding:
        return self._guarding

    def use_profile(self, *, name: str = "default", generation: int = 1, asking: Sequence[Extender] = (), **spec: Any) -> None:
        """Swap a profile in, `asking` these extenders, with the world's plugins enabled."""
        self.use(self._with_plugins(_profile(name, generation, **spec)), asking)

    @property
    def evaluator(self) -> Evaluator:
        return self.profiles["default-scheduler"]

    #: Nodes and pods, as the watches show them.
    nodes = pods = KitWorld.show


def _profile(name: str = "default", generation: int = 1, **spec: Any) -> ProfileMaker:
    return profile(name).generation(generation).spec(**spec)
