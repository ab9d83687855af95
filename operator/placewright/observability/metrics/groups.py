"""Metrics of groups of pods and of claims to devices: decisions about groups, waiting groups, and writes for claims."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator

from prometheus_client.core import Metric

from placewright.api.podgroups import GroupRef
from placewright.cluster.cluster import Cluster
from placewright.engine.decidingpart import DecidingPart
from placewright.observability.metrics import own, upstream
from placewright.observability.metrics.series import CounterSeries, Histograms, SeriesOfEvents, counted, single
from placewright.scheduler.attempts import GroupAttempt


class GroupSeries(SeriesOfEvents):
    """The series of attempts to decide groups, called at the end of each."""

    def __init__(self) -> None:
        self._attempts = CounterSeries(upstream.GROUP_ATTEMPTS)
        self._durations = Histograms(upstream.GROUP_ATTEMPT_DURATION)
        self._algorithm = Histograms(upstream.GROUP_ALGORITHM_DURATION)
        self._searched = self._algorithm.at()

    def __call__(self, attempt: GroupAttempt) -> None:
        """Count an attempt that has ended."""
        result, profile = attempt.result.value, attempt.profile.scheduler_name
        self._attempts.at(result, profile).value += 1
        self._durations.at(result, profile).observe(attempt.ended - attempt.started)
        if attempt.decided is not None:
            self._searched.observe(attempt.decided - attempt.started)

    def keep_only(self, profiles: Collection[str]) -> None:
        """Drop the series of profiles that are in effect no more."""
        self._attempts.forget(lambda labels: labels[1] not in profiles)
        self._durations.forget(lambda labels: labels[1] not in profiles)


class ClaimSeries(SeriesOfEvents):
    """The series of writes for claims, and of waits for their devices. It is the claim writer's `ClaimListener`."""

    def __init__(self) -> None:
        self._created = CounterSeries(upstream.CLAIM_CREATES)
        self._readied = CounterSeries(upstream.BINDING_CONDITIONS)
        self._waits = Histograms(upstream.BINDING_CONDITIONS_WAIT)

    def created(self, *, failed: bool) -> None:
        """Count a claim that was made for a pod's extended resources, or whose write failed."""
        self._created.at("failure" if failed else "success").value += 1

    def waited(self, profile: str, drivers: Collection[str], status: str, seconds: float) -> None:
        """Count a pod's wait for devices.

        Args:
            profile: the pod's schedulerName.
            drivers: drivers of the devices.
            status: outcome of the wait.
            seconds: length of the wait.
        """
        for driver in drivers:
            self._readied.at(profile, driver, status).value += 1
            self._waits.at(profile, driver, status).observe(seconds)


def standing(deciding: DecidingPart) -> Iterator[Metric]:
    """Read the numbers of waiting and placed groups. It walks over groups, not over pods."""
    pod_groups = deciding.cluster.pod_groups
    undecided = (queued for queued in deciding.queue.pod_groups if not pod_groups.placed(queued.ref))
    waiting = [queued.since for queued in undecided if not _placed_singly(deciding.cluster, queued.ref)]
    reserving = len(deciding.scheduler.pod_groups.reservations)
    yield counted(own.GROUPS, {"waiting": len(waiting), "placed": pod_groups.placed_groups, "reserving": reserving})
    yield single(own.GROUPS_OLDEST, max(time.monotonic() - min(waiting), 0.0) if waiting else 0.0)


def _placed_singly(cluster: Cluster, ref: GroupRef) -> bool:
    """Whether the members of a group do not wait for each other, by its object."""
    pod_group = cluster.pod_groups.get(ref)
    return pod_group is not None and pod_group.basic
