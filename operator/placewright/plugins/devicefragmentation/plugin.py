"""DeviceFragmentation. Implements PreEnqueue, PreFilter, Filter, PreScore, Score, Reserve.

A resource counts the units of all devices of a node together, thousandths of GPUs for example. A pod that requests up to one device's units
gets them on one device. A pod that requests more gets whole devices. The plugin rejects nodes where that is impossible, although the sum of
free units suffices. It prefers nodes where the pod strands least for the mix of pods (`measure`). The same measure chooses the device on
the node. The Binding writes the choice on the pod.

Score: 100 / (1 + e^g), rounded down, for a growth of the node's fragmentation by g devices: 50 if nothing changes. The paper's authors use
the same scale in their simulator. It is coarse, one point for a twenty-fifth of a device around 50. A finer rank of nodes fills fewer
devices in the end (docs/fragmentation.md has both figures).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Final

import numpy as np

from placewright.api.annotations import DEVICES, write_devices
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.requests import CPU, MEMORY
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
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
from placewright.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from placewright.plugins.devicefragmentation.args import DeviceFragmentationArgs, may_be_asked
from placewright.plugins.devicefragmentation.columns import UsefulColumn
from placewright.plugins.devicefragmentation.devices import Devices
from placewright.plugins.devicefragmentation.measure import Ask, FragmentationMeasure, IntTable, Nodes, choose
from placewright.plugins.devicefragmentation.mix import Mix, Typical
from placewright.plugins.devicefragmentation.noteddevices import noted_devices

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
            event_with_hint(EventResource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, self._may_free_devices),
            event_with_hint(EventResource.NODE, Action.ADD | Action.UPDATE_NODE_ALLOCATABLE),
        )

    def _may_free_devices(self, pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        """Queue for a pod that frees some of the resource, and for the waiting pod itself if it shrinks."""
        if not isinstance(old, PodInfo):
            return QueueingHint.SKIP
        return QueueingHint.when(old.uid == pod.uid or bool(old.node_name and old.requests.get(self.args.resource, 0)))

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
