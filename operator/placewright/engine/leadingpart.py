"""The part of the engine that leads: whether this replica may act, and what begins and ends with a term."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable
from typing import Any, Final

from placewright.api.devices import ResourceClaim
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.engine.companions import ReplicaInfo
from placewright.engine.decidingpart import DecidingPart
from placewright.engine.discovery import NODES_PATH, PODS_PATH
from placewright.engine.options import EngineOptions
from placewright.engine.readingpart import ReadingPart
from placewright.engine.takeover import Takeover, ask_for_unresolved, caught_up
from placewright.engine.writingpart import WritingPart
from placewright.kube.auth.login import ClusterAccess
from placewright.kube.history import operator_namespace
from placewright.kube.ratelimit import Traffic
from placewright.kube.reflector import Reflector
from placewright.kube.tasks import Tasks
from placewright.leadership.election import Alone, Election
from placewright.leadership.peers import Replica, make_replica

#: The kinds that a decision writes to, beside pods.
_WRITTEN_KINDS: Final = (ResourceClaim, PersistentVolume, PersistentVolumeClaim)

#: The parts whose work begins and ends with a term. Callable once they have been built.
LedParts = Callable[[], tuple[WritingPart, DecidingPart, ReadingPart]]


class LeadingPart:
    """Says whether this replica may act, and begins and ends terms.

    Attributes:
        info: this replica, as it is known before the API server is asked.
        leadership: whether this replica is the active one.
        takeover: whether this replica may decide and write; its term begins a moment after it became the active one.
    """

    def __init__(self, access: ClusterAccess, options: EngineOptions, led: LedParts) -> None:
        """Take part in no election yet.

        Args:
            access: address of the API server, and credentials for it.
            options: options of the engine.
            led: returns the parts whose work begins and ends with a term.
        """
        replica, namespace = make_replica(int(time.time() * 1000), random.Random(), os.environ), operator_namespace(os.environ)
        self.leadership = Election(access, replica, namespace, options.peering_lifetime, self._settled) if options.leader_elect else Alone()
        self.info = ReplicaInfo(access, replica, namespace, lambda: self.leadership.active)
        self._led = led
        self.takeover = Takeover(self.leadership, self._prepare_term, self._end_term, self._listed)
        self._children = Tasks({"takeover": self.takeover.run})

    @property
    def replica(self) -> Replica:
        """This replica. An election gives it a priority behind the replicas that were there before."""
        return self.info.replica if isinstance(self.leadership, Alone) else self.leadership.replica

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The tasks that run."""
        return [*self._children.tasks, *self.leadership.tasks]

    def start(self) -> None:
        """Take part in the election, and prepare a term whenever this replica is the active one."""
        self.leadership.start()
        self._children.start()

    async def stop(self) -> None:
        """Give the lead back if this replica has it still."""
        await self._children.stop()
        await self.leadership.stop()

    async def close(self) -> None:
        """Close the connections."""
        await self.leadership.close()

    async def _settled(self) -> None:
        _, deciding, _ = self._led()
        await deciding.scheduler.settled()

    async def _listed(self) -> None:
        _, _, reading = self._led()
        await reading.wait_synced()

    async def _prepare_term(self) -> None:
        writing, deciding, reading = self._led()
        await self._settled()
        client = writing.client.sending(Traffic.BIND)  # a sender without the backoff of refusals in an earlier term
        await ask_for_unresolved(client, deciding.scheduler.binding, reading.event_handlers)
        decided_on = [each for each in reading.reflectors.members if _decided_on(each)]
        await asyncio.gather(caught_up(client, decided_on), deciding.profiles.refresh())
        await deciding.marks.begin_term()

    def _end_term(self) -> None:
        """Drop the queued writes, abort the requests under way, roll back the decisions that are not bound."""
        writing, deciding, _ = self._led()
        writing.end_term()
        deciding.scheduler.end_term()


def _decided_on(reflector: Reflector[Any]) -> bool:
    """Whether a reflector reads a kind that the decisions of an earlier leader change."""
    return reflector.source.path in (PODS_PATH, NODES_PATH) or reflector.source.kind in _WRITTEN_KINDS
