"""The part of the engine that writes to the API server: the client, and a writer for each kind of object.

Every writer asks before each request whether this replica still leads.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

from placewright.api.devices import ResourceClaim
from placewright.api.podgroups import CompositePodGroup, GroupObject, GroupRef, NativePodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.engine.companions import Listeners, ReplicaInfo
from placewright.engine.discovery import Discovery
from placewright.engine.options import EngineOptions
from placewright.engine.takeover import Takeover
from placewright.kube.client import ApiClient
from placewright.kube.ratelimit import TokenBucket
from placewright.kube.writers.binder import HttpBinder
from placewright.kube.writers.claims import HttpClaimWriter
from placewright.kube.writers.events import HttpEventRecorder
from placewright.kube.writers.evictor import HttpEvictor
from placewright.kube.writers.objects import HttpObjectPatcher
from placewright.kube.writers.podgroupstatus import HttpGroupStatusWriter
from placewright.kube.writers.podstatus import HttpStatusWriter
from placewright.kube.writers.volumes import HttpVolumeWriter
from placewright.kube.writers.writequeue import QueueingWriter
from placewright.leadership.leaserule import Timing
from placewright.queue.queue import SchedulingQueue
from placewright.scheduler.ports import EventType
from placewright.scheduler.scheduler import DRAIN_SECONDS

#: Share of the time between two leaders' terms for which a request of the former leader may be under way.
OUTLIVES_LEAD: Final = 0.8
#: Seconds for which the last verdicts may be written before the lead is given back: the next replica waits for that.
_LAST_WORDS_SECONDS: Final = 0.5


class ClusterAndQueue(Protocol):
    """The part that decides, as far as writers read it."""

    cluster: Cluster
    queue: SchedulingQueue


class WritingPart:
    """The client of the API server, and the writers.

    Attributes:
        client: sends all requests of the engine but those of the election.
        events: records events about pods and groups.
        status: writes conditions and nominations of pods.
        group_status: writes the status of groups.
        binder: binds pods.
        evictor: evicts the victims of preemption.
        volumes: writes claims to volumes.
        claims: writes claims to devices.
        patcher: patches the objects that plugins declare.
    """

    def __init__(
        self,
        info: ReplicaInfo,
        options: EngineOptions,
        heard: Listeners,
        takeover: Takeover,
        deciding: Callable[[], ClusterAndQueue],
        discovery: Callable[[], Discovery],
    ) -> None:
        """Build the writers, without a request.

        Args:
            info: this replica.
            options: options of the engine.
            heard: called at requests and at writes of claims.
            takeover: says whether this replica may write what it decided.
            deciding: returns the part that decides. Called at a write.
            discovery: returns what knows the served kinds. Called at a write.
        """
        self._deciding, self._discovery = deciding, discovery
        limit = TokenBucket(options.qps, options.burst) if options.qps else None
        # What leaves in the last moment of the lead must be over before another replica may take it.
        outlive = OUTLIVES_LEAD * Timing.of(options.peering_lifetime).gap
        self.client = client = ApiClient(info.access, limit=limit, listeners=heard.requests, outlive=outlive)
        leads, sleep = takeover.may_write, takeover.sleep
        self.events = HttpEventRecorder(client, leads, instance=info.replica.identity)
        self.status = HttpStatusWriter(client, leads, sleep=sleep)
        self.group_status = HttpGroupStatusWriter(
            client, leads, shown=self._group_object, native_version=self.native_version, composite_version=self.composite_version
        )
        self.binder = HttpBinder(client, leads, aside=self._aside, before=self.status.nomination_written, sleep=sleep)
        self.evictor = HttpEvictor(client, leads, sleep=sleep)
        self.volumes = HttpVolumeWriter(client, leads, sleep=sleep)
        self.claims = HttpClaimWriter(client, leads, self._claims_version, heard.claims, sleep=sleep)
        self.patcher = HttpObjectPatcher(client, leads, sleep=sleep)

    def native_version(self) -> str:
        """Return the API version in which PodGroups of scheduling.k8s.io are read; empty if they are not served."""
        return self._discovery().version_of(NativePodGroup)

    def composite_version(self) -> str:
        """Return the API version in which CompositePodGroups are read; empty if they are not served."""
        return self._discovery().version_of(CompositePodGroup)

    def _claims_version(self) -> str:
        return self._discovery().version_of(ResourceClaim) or "v1"

    def _aside(self, pod: PodInfo) -> AbstractContextManager[None]:
        return self._deciding().queue.in_flight.aside(pod)

    def _group_object(self, ref: GroupRef) -> GroupObject | None:
        return self._deciding().cluster.pod_groups.object_of(ref)

    @property
    def outbox(self) -> Mapping[str, QueueingWriter[Any, Any]]:
        """The writers that queue their writes, by name."""
        return {writer.NAME: writer for writer in (self.events, self.status, self.group_status)}

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """The workers of the writers that queue."""
        return [task for writer in self.outbox.values() for task in writer.tasks]

    def announce(self, pod: PodInfo, reason: str, action: str, message: str, warning: bool) -> None:
        """Record an event about a pod for a plugin.

        Args:
            pod: the event is about it.
            reason: reason in CamelCase.
            action: the action that the event reports.
            message: message for people.
            warning: the event's type is Warning.
        """
        self.events.record(pod, EventType.WARNING if warning else EventType.NORMAL, reason, action, message)

    def start(self) -> None:
        """Start the writers that queue."""
        for writer in self.outbox.values():
            writer.start()

    def end_term(self) -> None:
        """Drop the queued writes and abort the requests under way: they follow from decisions of a term that is over."""
        for writer in self.outbox.values():
            writer.end_term()
        self.client.guarded.abort_unwanted()

    async def drain(self) -> None:
        """Finish what the last decisions need, in bounded time: claims to devices, and verdicts on pods."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await self.claims.settled()
        await self.status.settled(_LAST_WORDS_SECONDS)

    async def stop(self) -> None:
        """Write what is queued, and end the writers."""
        await asyncio.gather(*(writer.close() for writer in self.outbox.values()))

    async def close(self) -> None:
        """Close the connections."""
        await self.client.close()
