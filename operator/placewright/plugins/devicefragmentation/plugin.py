"""DeviceFragmentation. Implements PreEnqueue, PreFilter, Filter, PreScore, Score, Reserve.

A resource counts the units of all devices of a node together, thousandths of GPUs for example. A pod that requests up to one device's units
gets them on one device. A pod that requests more gets whole devices. The plugin rejects nodes where that is impossible, although the sum of
free units suffices. It prefers nodes where the pod strands least for the mix of pods (`measure`). The same measure chooses the device on
the node. The Binding writes the choice on the pod.

Score: 100 / (1 + e^g), rounded down, for a growth of the node's fragmentation by g devices: 50 if nothing changes. The paper's authors use
the same scale in their simulator. It is coarse, one point for a twenty-fifth of a device around 50. A finer rank of nodes fills fewer
devices in the end (docs/fragmentation.md has both figures).

The free part of each device of each node.

Kubernetes counts a node's devices in one number. An annotation of the pod names its devices (`noteddevices`). The Binding writes it, and an
assumed pod carries it from the moment of the choice. So the free parts follow from nodes and their pods alone, for every profile, and also
after a restart.

Pods without a valid annotation are assumed to be packed, because an extender or another scheduler bound them. They count after pods with
one, in order of creation. Each share takes the fullest device that has room, whole devices take free ones, lowest number first. If there is
no such device, the pod takes what it can from the devices with most left.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Final

import numpy as np

from placewright.api.annotations import DEVICES, read_devices, write_devices
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.requests import CPU, MEMORY
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, event_with_hint
from placewright.framework.interface import (
    MAX_NODE_SCORE,
    BoolColumn,
    CycleState,
    FilterPlugin,
    Handle,
    IntColumn,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Reads,
    Rejection,
    ReservePlugin,
    Rows,
    ScorePlugin,
)
from placewright.framework.memory import Memory
from placewright.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from placewright.plugins.devicefragmentation.args import MOST_DEVICES, DeviceFragmentationArgs, may_be_asked
from placewright.plugins.devicefragmentation.measure import Ask, FragmentationMeasure, IntTable, Nodes, choose
from placewright.plugins.devicefragmentation.mix import Mix, Typical, UsefulColumn
from placewright.plugins.devicefragmentation.noteddevices import noted_devices
from placewright.plugins.shared.hints import was_in_the_way

#: Most annotations whose parsed form is kept: about as many as there are devices.
_MOST_READ: Final = 4096


class Devices:
    """Free units by row and device, kept up to date row by row."""

    def __init__(self, resource: str, units: int) -> None:
        """Start empty; one whole device has `units` of the resource."""
        self.resource = resource
        self.units = units
        self._free: IntColumn = np.zeros((0, 1), np.int64)
        self._read = Memory(_MOST_READ)
        self._stale: set[int] = set()
        self._positions = (-1, -1)

    def at(self, cluster: Cluster, rows: Rows) -> IntColumn:
        """Return the free units of each device in these rows, 0 for devices that a node lacks; shape (len(rows), devices)."""
        in_dry_runs = cluster.dry_run_rows()
        self._refresh(cluster, in_dry_runs)
        free: IntColumn = self._free[rows]
        if in_dry_runs:
            for index, row in enumerate(rows.tolist()):
                if row in in_dry_runs:
                    free[index] = 0
                    self._write(free[index], self.of_row(cluster, row))
        return free

    def of_row(self, cluster: Cluster, row: int, without: str = "") -> list[int]:
        """Compute the free units of each device of a row anew, without the pod of uid `without`."""
        name = cluster.names[row]
        count = self.count(cluster, row)
        if name is None or not count:
            return []
        free = [self.units] * count
        unknown: list[PodInfo] = []
        notes = noted_devices(cluster)
        for pod in cluster.pods_on(name):
            asked = pod.requests.get(self.resource, 0)
            if asked > 0 and pod.uid != without:
                chosen = self._noted(pod, notes.of(pod), count)
                if chosen is None:
                    unknown.append(pod)
                else:
                    _take(free, asked, chosen, self.units)
        for pod in sorted(unknown, key=lambda pod: (pod.created, pod.uid)):
            self._pack(free, pod.requests[self.resource])
        return free

    def _noted(self, pod: PodInfo, note: str | None, count: int) -> tuple[int, ...] | None:
        """Return the devices that the pod's annotation names, out of `count`; None if it names no valid choice."""
        if note is None:
            return None
        (chosen,) = self._read.recall(note, lambda: (read_devices({DEVICES: note}, self.resource),))
        if chosen is None or len(set(chosen)) != len(chosen) or not all(0 <= index < count for index in chosen):
            return None
        return chosen if len(chosen) == -(-pod.requests.get(self.resource, 0) // self.units) else None

    def count(self, cluster: Cluster, row: int) -> int:
        """Return how many devices a row has. An amount beyond whole devices belongs to none."""
        return min(int(cluster.resources.column(self.resource).allocatable[row]) // self.units, MOST_DEVICES)

    def _refresh(self, cluster: Cluster, in_dry_runs: Iterable[int]) -> None:
        """Compute changed rows anew. Rows of a dry run stay stale until it ends."""
        positions = (cluster.node_journal.position, cluster.pod_journal.position)
        if positions == self._positions and not self._stale:
            return
        self._note_changes(cluster)
        self._positions = positions
        now = self._stale.difference(in_dry_runs)
        for row in now:
            self._free[row] = 0
            self._write(self._free[row], self.of_row(cluster, row))
        self._stale -= now

    def _note_changes(self, cluster: Cluster) -> None:
        nodes, pods = cluster.node_journal.since(self._positions[0]), cluster.pod_journal.since(self._positions[1])
        if nodes is None or pods is None or self._positions[0] < 0:
            self._stale.update(range(cluster.size))
        else:
            self._stale.update(nodes, pods)
        if nodes is None or nodes or self._positions[0] < 0:
            self._grow(cluster)

    def _grow(self, cluster: Cluster) -> None:
        offered = cluster.resources.column(self.resource).allocatable[: cluster.size]
        devices = min(int(offered.max(initial=0)) // self.units, MOST_DEVICES)
        rows, width = self._free.shape
        if devices > width or cluster.size > rows:
            grown = np.zeros((max(2 * rows, cluster.size), max(devices, width)), np.int64)
            grown[:rows, :width] = self._free
            self._free = grown

    @staticmethod
    def _write(target: IntColumn, free: Sequence[int]) -> None:
        target[: len(free)] = free

    def _pack(self, free: list[int], asked: int) -> None:
        if asked <= self.units:
            fitting = [(left, index) for index, left in enumerate(free) if left >= asked]
            if fitting:
                free[min(fitting)[1]] -= asked
                return
        else:
            for index in [index for index, left in enumerate(free) if left == self.units][: asked // self.units]:
                free[index] = 0
                asked -= self.units
        for index in sorted(range(len(free)), key=lambda index: -free[index]):
            taken = min(free[index], asked)
            free[index] -= taken
            asked -= taken


def _take(free: list[int], asked: int, chosen: Iterable[int], units: int) -> None:
    """Subtract a pod's request from its devices, never below 0: annotations may promise more than there is."""
    for index in chosen:
        share = min(asked, units)
        free[index] = max(free[index] - share, 0)
        asked -= share


NAME: Final = "DeviceFragmentation"
_WORKLOAD: Final = f"{NAME}/workload"
#: Growth in devices beyond which the score is 0 or 100 anyway.
_FAR: Final = 50


class DeviceFragmentation(
    PreEnqueuePlugin[DeviceFragmentationArgs], PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin
):
    """Places pods where the devices stay most useful to later pods."""

    name = NAME
    reads = Reads.NODE_AND_ITS_PODS

    @classmethod
    def counted_resources(cls, args: DeviceFragmentationArgs) -> tuple[str, ...]:
        """Name the one resource whose units the plugin counts."""
        return (args.resource,)

    def __init__(self, args: DeviceFragmentationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._devices = Devices(args.resource, args.units_per_device)
        self._notes = noted_devices(handle.cluster)
        self._mix = Mix(args)
        self._taken: Typical = ()
        self._workload = FragmentationMeasure((), args.units_per_device)
        self._standing = UsefulColumn(partial(self._work_out, self._workload))

    def sign(self, pod: PodInfo) -> Hashable:
        """Sign the pod by its requests and the version of the mix, on which its columns depend."""
        self._current()
        return self._mix.version, self._ask(pod)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Admit every pod, and count it in the mix whether or not it will find a node."""
        self._mix.see(pod)
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
        """Skip pods that request no device; reject pods that request neither a share of one nor whole ones."""
        state.write(_WORKLOAD, self._workload)
        asked, units = self._ask(pod).units, self.args.units_per_device
        if not asked:
            return PreFilterResult(SKIP)
        if may_be_asked(asked, units):
            return PreFilterResult()
        what = f"asks for {asked} {self.args.resource}, allowed are 1 to {units} on one device, or a multiple of {units} for whole devices"
        return PreFilterResult(unresolvable(what))

    def filter(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> BoolColumn:
        """Allow rows where one device has room for the share, or enough whole devices are free."""
        return self._has_room(self._devices.at(cluster, rows), self._ask(pod).units)

    def explain(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> list[Rejection]:
        """Reject as unschedulable where free units are spread over devices, as unresolvable where the node has too few."""
        units, asked = self.args.units_per_device, self._ask(pod).units
        wanted = "on one device" if asked <= units else "in whole devices"
        reason = f"Insufficient {self.args.resource} {wanted}"
        few = np.array([self._devices.count(cluster, row) * units < asked for row in rows.tolist()], np.bool_)
        verdicts = ((unschedulable(reason), rows[~few]), (unresolvable(reason), rows[few]))
        return [Rejection(status, rejected) for status, rejected in verdicts if len(rejected)]

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Cluster, feasible: Rows) -> Status:
        """Skip while no pod that requests devices has been seen: no device can be stranded for a later pod."""
        return SUCCESS if self._of(state).total else SKIP

    def score(self, state: CycleState, pod: PodInfo, cluster: Cluster, rows: Rows) -> IntColumn:
        """Score nodes by how little their fragmentation would grow; 100 is the least."""
        workload = self._of(state)
        nodes = self._nodes(workload, cluster, rows, self._devices.at(cluster, rows))
        growth = workload.growth(nodes, self._ask(pod), self._useful(workload, cluster, rows))
        devices = np.clip(growth / (max(workload.total, 1) * self.args.units_per_device), -_FAR, _FAR)
        scores: IntColumn = (MAX_NODE_SCORE / (1 + np.exp(devices))).astype(np.int64)
        return scores

    def reserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        """Choose the devices, and note them on the pod."""
        cluster, ask = self.handle.cluster, self._ask(pod)
        row = cluster.row(node)
        if row is None or not ask.units:
            return SUCCESS
        free = np.array([self._devices.of_row(cluster, row, without=pod.uid)], np.int64)
        if not free.size or not self._has_room(free, ask.units)[0]:
            return unschedulable(f"node(s) had no device left for {ask.units} {self.args.resource}")
        workload = self._of(state)
        nodes = self._nodes(workload, cluster, np.array([row], np.intp), free)
        # The pod is assumed by now, so the columns count its request.
        before = nodes._replace(cpu=nodes.cpu + ask.cpu, memory=nodes.memory + ask.memory)
        chosen = choose(workload, before, ask, self.args.units_per_device)
        state.annotations[DEVICES] = write_devices(self.args.resource, chosen)
        self._notes.choose(pod, state.annotations[DEVICES])
        cluster.annotate(pod.uid, {DEVICES: state.annotations[DEVICES]})
        return SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node: NodeName) -> None:
        """Remove the choice of devices from the pod."""
        if state.annotations.pop(DEVICES, None) is not None:
            self._notes.withdraw(pod)
            self.handle.cluster.annotate(pod.uid, {DEVICES: None})

    def events(self) -> Sequence[ClusterEventWithHint]:
        """Declare pods that leave or shrink and had some of the resource, and nodes that come or change their allocatable."""
        return (
            event_with_hint(EventResource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, was_in_the_way(PodInfo, self._had_devices)),
            event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
        )

    def _had_devices(self, pod: PodInfo, old: PodInfo) -> bool:
        """Return whether a pod had some of the resource on a node; True for the waiting pod itself, which shrinks."""
        return old.uid == pod.uid or bool(old.node_name and old.requests.get(self.args.resource, 0))

    def _current(self) -> FragmentationMeasure:
        """Return the prepared mix as it is now; rebuild it if the classes changed."""
        typical = self._mix.typical(self.handle.cluster)
        if typical is not self._taken:
            self._taken = typical
            self._workload = FragmentationMeasure(typical, self.args.units_per_device)
            self._standing = UsefulColumn(partial(self._work_out, self._workload))
        return self._workload

    def _of(self, state: CycleState) -> FragmentationMeasure:
        """Return the mix that this cycle began with, because other pods may be counted between its steps."""
        known = state.data.get(_WORKLOAD)
        return known if isinstance(known, FragmentationMeasure) else self._workload

    def _ask(self, pod: PodInfo) -> Ask:
        requests = pod.requests
        return Ask(requests.get(self.args.resource, 0), requests.get(CPU, 0), requests.get(MEMORY, 0))

    def _has_room(self, free: IntColumn, asked: int) -> BoolColumn:
        units = self.args.units_per_device
        room: BoolColumn = free.max(axis=1, initial=0) >= asked if asked <= units else (free == units).sum(axis=1) >= asked // units
        return room

    def _useful(self, workload: FragmentationMeasure, cluster: Cluster, rows: Rows) -> IntColumn:
        """Return the usable amount on these rows as they are."""
        if workload is not self._workload or cluster.dry_run_rows():
            return self._work_out(workload, cluster, rows)
        useful: IntColumn = self._standing.current(cluster)[0][rows]
        return useful

    def _work_out(self, workload: FragmentationMeasure, cluster: Cluster, rows: Rows) -> IntColumn:
        return workload.useful(self._nodes(workload, cluster, rows, self._devices.at(cluster, rows)))

    def _nodes(self, workload: FragmentationMeasure, cluster: Cluster, rows: Rows, devices: IntTable) -> Nodes:
        cpu, memory = cluster.resources.column(CPU), cluster.resources.column(MEMORY)
        return Nodes(
            cpu.allocatable[rows] - cpu.requested[rows],
            memory.allocatable[rows] - memory.requested[rows],
            devices,
            workload.selected.current(cluster)[0][rows],
        )
