"""The part of the engine that reads from the API server: reflectors, discovery, and the comparison of both with cache and queue."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Set as AbstractSet
from typing import Any

from placewright.engine.arrivals import ArrivalsWatch
from placewright.engine.companions import Listeners
from placewright.engine.decidingpart import DecidingPart
from placewright.engine.discovery import Discovery, reflected_core, reflected_rows
from placewright.engine.options import EngineOptions
from placewright.engine.reconcile.forgotten import ForgottenPods
from placewright.engine.reconcile.loop import Comparer, ReconcileLoop
from placewright.engine.reconcile.reconciler import Reconciler
from placewright.engine.takeover import Leader, Takeover
from placewright.engine.writingpart import WritingPart
from placewright.kube.reflector import Reflector
from placewright.kube.tasks import Tasks
from placewright.scheduler.eventhandlers import ClusterEventHandlers, Departed, Stopwatch
from placewright.scheduler.selfcheck import SelfCheck


class ReadingPart:
    """Keeps cluster and queue as the API server shows them.

    Attributes:
        event_handlers: take pods, nodes and all other objects from the watches; the handler of pods calls them.
        reflectors: reflectors of all kinds that the API server serves. Discovery adds to them.
        discovery: adds a reflector for each kind that the API server serves.
        reconcile_loop: compares cache and queue with the API server.
        forgotten: finds pods that wait although they would fit.
        arrivals: watches of the sources with a follower, by kind. A watch is on while a profile runs a plugin that declares it.
    """

    def __init__(
        self, options: EngineOptions, heard: Listeners, leadership: Leader, takeover: Takeover, writing: WritingPart, deciding: DecidingPart
    ) -> None:
        """Build the reflectors of nodes and pods, and what adds to them or compares with them.

        Args:
            options: options of the engine.
            heard: measures the handling of watch events.
            leadership: says whether this replica is the active one.
            takeover: says whether this replica decides.
            writing: has the client, and records events about forgotten pods.
            deciding: its cluster and queue are kept as the API server shows them.
        """
        client, cluster, queue, beat = writing.client, deciding.cluster, deciding.queue, options.reconcile_seconds
        self._binding, self._registry = deciding.scheduler.binding, deciding.registry
        self.event_handlers = ClusterEventHandlers(
            cluster, queue, self._binding, heard.watch_events or Stopwatch(), deciding.shadows, deciding.namespace_gates
        )
        reconciler = Reconciler(cluster, queue, self._binding, self.event_handlers)
        self.reconcile_loop = ReconcileLoop(Comparer(client, reconciler), beat, leadership, deciding.profiles)
        leadership.on_change(self.reconcile_loop.lead_changed)
        check = SelfCheck(cluster, queue, deciding.evaluator, time.monotonic)
        self.forgotten = ForgottenPods(check, writing.events, takeover.may_write, time.monotonic)
        self.reflectors = reflected_core(client, self.event_handlers, self.reconcile_loop.pods_listed)
        rows = reflected_rows(self._registry.sources.values())
        self.discovery = Discovery(
            client, self.event_handlers, self.reflectors, beat, rows=rows, answered=deciding.profiles.server_answered
        )
        self.arrivals = {
            kind: ArrivalsWatch(client, cluster, source, deciding.now)
            for kind, (source, _) in self._registry.sources.items()
            if source.follower is not None
        }
        self._children = Tasks(
            {
                "reconciler": self.reconcile_loop.run, "forgotten pods": self.forgotten.run, "rediscovery": self.discovery.run,
                **{f"watch of {kind}": watch.run for kind, watch in self.arrivals.items()},
            }
        )  # fmt: skip

    @property
    def running(self) -> tuple[Reflector[Any], ...]:
        """The reflectors that run; none before the API server has answered."""
        return tuple(self.reflectors.members) if self.reflectors.tasks else ()

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks that run."""
        return [*self._children.tasks, *self.reflectors.tasks]

    def unsynced(self) -> list[str]:
        """Return the kinds whose first list is not complete, as words for a person."""
        return self.reflectors.unsynced() if self.running else ["anything, as the API server has not answered yet"]

    async def wait_synced(self) -> None:
        """Return when every first list is complete."""
        await self.reflectors.wait_synced()

    def unscheduled_pod_gone(self, pod: Departed) -> None:
        """Take in that a pod left Kopf's watch: it was bound, finished, or deleted."""
        self.event_handlers.unscheduled_pod_gone(pod)
        if pod.uid in self._binding.unresolved:
            self.reconcile_loop.pods_listed()  # its binding had no answer, and it is bound or deleted: only the API server knows

    def watch_arrivals(self, plugins: AbstractSet[str]) -> None:
        """Watch what the plugins of the profiles in effect follow, and nothing else."""
        wanted = {source.name for name in plugins for source in self._registry[name].sources}
        for kind, watch in self.arrivals.items():
            watch.set_enabled(on=kind in wanted)

    def start(self) -> None:
        """Start the reflectors that discovery has adopted, and all that compares or adds to them."""
        self.reflectors.start()
        self._children.start()

    async def stop(self) -> None:
        """End all of them."""
        await self._children.stop()
        await self.reflectors.stop()
