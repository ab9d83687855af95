"""The base of all plugins that limit the volumes of a node: PreFilter, Filter, and trials of preemption."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
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

_FULL: Final = unschedulable("node(s) exceed max volume count")


@dataclass(frozen=True, slots=True)
class MissingDriver:
    """The rows that are rejected because a CSI driver is not installed.

    Attributes:
        driver: the driver's name.
        everywhere: whether rows without a CSINode are rejected, too.
        rows: True for each rejected row; shape (size,). It follows from the other two, the nodes and the CSINodes.
    """

    driver: str
    everywhere: bool
    rows: BoolColumn = field(compare=False)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The volumes that must be attached for the pod, or why they are unknown: then no node will do."""

    volumes: frozenset[Attachable]
    problem: Status | None = None
    missing: tuple[MissingDriver, ...] = ()

    def installed(self, rows: Rows) -> BoolColumn:
        """Allow rows where no driver is missing."""
        passes = np.ones(len(rows), np.bool_)
        for each in self.missing:
            passes &= ~each.rows[rows]
        return passes

    def explain(self, rows: Rows) -> list[Rejection]:
        """Reject each row for the first driver that is missing there; all others have too many volumes."""
        rejections = []
        for each in self.missing:
            here = each.rows[rows]
            rejections.append(Rejection(unschedulable(f"{each.driver} CSI driver is not installed on the node"), rows[here]))
            rows = rows[~here]
        rejections.append(Rejection(self.problem or _FULL, rows))
        return [each for each in rejections if len(each.rows)]


class CountingJudge(RowVerdict):
    """Judges rows one by one, by their own volumes alone."""

    def __init__(self, counted: AttachedVolumes, wanted: _Wanted, *, free_riders: bool) -> None:
        """Take the volumes of the nodes and of the pod; `free_riders` is that of `AttachedVolumes.room`."""
        self._counted = counted
        self._wanted = wanted
        self._free_riders = free_riders

    def passes(self, rows: Rows) -> BoolColumn:
        """Allow rows with the drivers, and with room for the volumes that are not attached yet."""
        has_room, wanted, free_riders = self._counted.has_room, self._wanted.volumes, self._free_riders
        room = np.fromiter([has_room(wanted, row, free_riders=free_riders) for row in rows.tolist()], np.bool_, len(rows))
        return room & self._wanted.installed(rows)

    def explain(self, rows: Rows) -> list[Rejection]:
        """Reject rows without a driver first, and all others for their volumes."""
        return self._wanted.explain(rows)


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

    def missing(self, pod: PodInfo, cluster: Cluster, volumes: AbstractSet[Attachable]) -> tuple[MissingDriver, ...]:
        """Return the drivers of these volumes of the pod that must be installed; none by default."""
        return ()

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Find the volumes that the pod needs attached; skip pods that bring none."""
        if not self.may_bring(pod):
            return NOTHING_TO_CHECK
        try:
            volumes = self.resolver(cluster, unnoted).of_new_pod(pod)
            wanted = _Wanted(volumes, missing=self.missing(pod, cluster, volumes))
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
        """Allow rows with the drivers, and with room for the volumes that are not attached yet."""
        wanted = state.read(self.name, _Wanted)
        if wanted.problem is not None:
            return np.zeros(len(rows), np.bool_)
        return self._counted(cluster).room(wanted.volumes, rows, free_riders=self.free_riders) & wanted.installed(rows)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Name a missing claim on all rows. Without one, name a missing driver, or too many volumes."""
        return state.read(self.name, _Wanted).explain(rows)

    def judge(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> RowVerdict:
        """Judge rows by the volumes of their own pods."""
        wanted = state.read(self.name, _Wanted)
        if wanted.problem is not None:
            return PlainRowVerdict(self, state, pod, cluster)
        return CountingJudge(self._counted(cluster), wanted, free_riders=self.free_riders)

    def fingerprint(self, state: CycleState, cluster: Cluster) -> Hashable:
        """Return the pod's volumes, and the version of the counts of the nodes."""
        return (state.data.get(self.name), self._counted(cluster).version)

    def _counted(self, cluster: Cluster) -> AttachedVolumes:
        if self._attached is None:
            self._attached = AttachedVolumes(cluster, partial(self.resolver, cluster))
        return self._attached
