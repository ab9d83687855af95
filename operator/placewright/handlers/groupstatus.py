"""What became of groups of pods, from the scheduler to the objects that declare them: their status, and events about them.

Implements the scheduler's `GroupStatusWriter`. That members run is told at a beat: the scheduler does not look at it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from placewright.api.podgroups import COSCHEDULING_GROUP, KIND, NATIVE_GROUP, VOLCANO_GROUP, Form, Gang
from placewright.cluster.cluster import Cluster
from placewright.kube.writers.events import HttpEventRecorder, Regarding
from placewright.kube.writers.podgroupstatus import GroupNews, HttpGroupStatusWriter
from placewright.scheduler.ports import EventType

#: How often it is told how many members run, seconds.
BEAT_SECONDS: Final = 1.0
_REPORTER: Final = "placewright"


class GroupStatusKeeper:
    """Tells of groups, in status and events."""

    def __init__(
        self, cluster: Cluster, writer: HttpGroupStatusWriter, events: HttpEventRecorder, native_version: Callable[[], str]
    ) -> None:
        """`native_version`: in which scheduling.k8s.io's PodGroups are read."""
        self._cluster = cluster
        self._writer = writer
        self._events = events
        self._native_version = native_version

    def group_waits(self, gang: Gang, placed: int, missing: int, message: str, *, error: bool = False) -> None:
        """Say on the object that it waits, and why."""
        self._writer.tell(GroupNews(gang, placed=False, error=error, message=message))
        self._events.record_about(self._regarding(gang), EventType.WARNING, "FailedScheduling", "Scheduling", message)

    def group_placed(self, gang: Gang, placed: int) -> None:
        """Say on the object that it has what it needs."""
        message = f"{placed} members have a node, {gang.min_member} are needed"
        self._writer.tell(GroupNews(gang, placed=True, message=message, owners=self._owners(gang)))
        self._events.record_about(self._regarding(gang), EventType.NORMAL, "Scheduled", "Binding", message)

    async def run(self) -> None:
        """Tell at every beat how many members run, where that changed; until cancelled."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self.tell_running()

    def tell_running(self) -> None:
        """Tell it now."""
        gangs = self._cluster.gangs
        for ref in gangs.take_stirred():
            gang = gangs.get(ref) if ref.form is Form.COSCHEDULING else None
            if gang is not None:
                self._writer.tell(GroupNews(gang, running=gangs.running(ref), owners=self._owners(gang)))

    def _owners(self, gang: Gang) -> str:
        """Of one member, as all have the same: `namespace/name` of its owners."""
        placements = (self._cluster.placement(uid) for uid in self._cluster.gangs.placed(gang.ref))
        member = next((placement.pod for placement in placements if placement is not None), None)
        owners = member.pod.metadata.owner_references if member is not None else None
        return ",".join(sorted(f"{gang.ref.namespace}/{owner.name}" for owner in owners or ()))

    def _regarding(self, gang: Gang) -> Regarding:
        ref = gang.ref
        api_version, kind = {
            Form.COSCHEDULING: (f"{COSCHEDULING_GROUP}/v1alpha1", KIND),
            Form.NATIVE: (f"{NATIVE_GROUP}/{self._native_version()}", KIND),
            Form.WORKLOAD: (f"{NATIVE_GROUP}/v1alpha1", "Workload"),
            Form.VOLCANO: (f"{VOLCANO_GROUP}/v1beta1", KIND),
        }[ref.form]
        return Regarding(api_version, kind, ref.namespace, ref.object_name, gang.uid, gang.resource_version, _REPORTER)
