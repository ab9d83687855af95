"""The base of all plugins that limit the volumes of a node: PreFilter, Filter, and trials of preemption."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

import numpy as np

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.filters import NOTHING_TO_CHECK
from placewright.framework.interface import (
    ArgsT,
    BoolColumn,
    CycleState,
    Handle,
    PreFilterPlugin,
    PreFilterResult,
    Reads,
    Rejection,
    Rows,
)
from placewright.framework.rowwise import PlainRowVerdict, RowVerdict, RowwiseFilter
from placewright.framework.status import Status, error, unresolvable, unschedulable
from placewright.plugins.nodevolumelimits.attachable import Attachable, Lookup, NoSuchClaimError, Resolver, UnusableVolumeError, unnoted
from placewright.plugins.nodevolumelimits.attached import AttachedVolumes


class CountingJudge(RowVerdict):
    """Judges rows one by one, by their own volumes alone."""

    def __init__(self, counted: AttachedVolumes, wanted: AbstractSet[Attachable], rejection: Status, *, free_riders: bool) -> None:
        """Take the arguments of `AttachedVolumes.room`, and the status for rows without room."""
        self._counted = counted
        self._wanted = wanted
        self._rejection = rejection
        self._free_riders = free_riders

    def passes(self, rows: Rows) -> BoolColumn:
        """Allow rows with room for the volumes that are not attached yet."""
        has_room, wanted, free_riders = self._counted.has_room, self._wanted, self._free_riders
        return np.fromiter([has_room(wanted, row, free_riders=free_riders) for row in rows.tolist()], np.bool_, len(rows))

    def explain(self, rows: Rows) -> list[Rejection]:
        """Reject all rows with one reason."""
        return [Rejection(self._rejection, rows)]


_FULL: Final = unschedulable("node(s) exceed max volume count")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The volumes that must be attached for the pod, or why they are unknown: then no node will do."""

    volumes: frozenset[Attachable]
    problem: Status | None = None


class VolumeCountLimit(PreFilterPlugin[ArgsT], RowwiseFilter):
    """Rejects nodes where the pod's volumes would exceed a limit.

    Attributes:
        free_riders: whether a node over its limit takes a pod that brings no new volume, see `AttachedVolumes.room`.
    """

    reads = Reads.CLUSTER
    free_riders: ClassVar[bool]

    def __init__(self, args: ArgsT, handle: Handle) -> None:
        super().__init__(args, handle)
        self._attached: AttachedVolumes | None = None

    @abstractmethod
    def resolver(self, cluster: Cluster, noted: Callable[[Lookup], None]) -> Resolver:
        """Return a resolver of the volumes that count; it calls `noted` for every object that it looks up."""

    def may_bring(self, pod: PodInfo) -> bool:
        """Return False for pods that bring no volume that could count, whichever volumes their claims have."""
        return bool(pod.volumes)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Find the volumes that the pod needs attached; skip pods that bring none."""
        if not self.may_bring(pod):
            return NOTHING_TO_CHECK
        try:
            wanted = _Wanted(self.resolver(cluster, unnoted).of_new_pod(pod))
        except NoSuchClaimError as problem:
            # Filter reports it, not PreFilter. As upstream, VolumeBinding's PreFilter reports such a claim first.
            wanted = _Wanted(frozenset(), unresolvable(str(problem)))
        except UnusableVolumeError as problem:
            return PreFilterResult(error(str(problem)))
        if not wanted.volumes and wanted.problem is None:
            return NOTHING_TO_CHECK
        self._counted(cluster).catch_up()
        state.write(self.name, wanted)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows with room for the volumes that are not attached yet."""
        wanted = state.read(self.name, _Wanted)
        if wanted.problem is not None:
            return np.zeros(len(rows), np.bool_)
        return self._counted(cluster).room(wanted.volumes, rows, free_riders=self.free_riders)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Reject all rows with one reason: a missing claim, or too many volumes."""
        return [Rejection(state.read(self.name, _Wanted).problem or _FULL, rows)]

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict:
        """Judge rows by the volumes of their own pods."""
        wanted = state.read(self.name, _Wanted)
        if wanted.problem is not None:
            return PlainRowVerdict(self, state, pod, cluster)
        return CountingJudge(self._counted(cluster), wanted.volumes, _FULL, free_riders=self.free_riders)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """Return the pod's volumes, and the version of the counts of the nodes."""
        return (state.data.get(self.name), self._counted(cluster).version)

    def _counted(self, cluster: Cluster) -> AttachedVolumes:
        if self._attached is None:
            self._attached = AttachedVolumes(cluster, partial(self.resolver, cluster))
        return self._attached
