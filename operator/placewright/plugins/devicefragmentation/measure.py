"""The fragmentation measure on columns.

Source: Q. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC 2023,
section 3. A node n has R_g free on its device g. A class m of pods asks for D_m devices, which is less than one or a whole number. The
class has the share p_m of the workload M. It cannot use this amount of node n:

    F_n(m) = sum over g of R_g                                    if a pod of the class cannot run on the node
    F_n(m) = sum over g of R_g where R_g < min(D_m, 1), else 0    if it can (quadrant III of the paper's figure)

A pod cannot run if the node's devices, CPU, memory or labels do not suffice (quadrants I, II and IV). The node's fragmentation F_n(M) is
the sum over m of p_m F_n(m). A pod goes where it grows least.

This module computes the complement, the amount that class m can use: U_n(m) = sum over g of R_g − F_n(m). It is 0 where the class cannot
run, and otherwise the sum of the R_g that are large enough. For shares that is a sum over devices. For several whole devices it depends on
the number of free ones. Sizes of requests are few and sorted, so both are looked up in sums over the classes that fit.

Popularities are counts, and amounts have the resource's units, so all results are whole numbers. Divide by `total` for the paper's F.
Pods that request no device are left out of M. They can use no device, before or after, so they add the same on every node.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.framework.interface import IntColumn
from placewright.plugins.devicefragmentation.mix import BoolTable, SelectionTable, Typical

IntTable = NDArray[np.int64]

#: Marks a device that cannot take the pod; less than any usable amount.
IMPOSSIBLE: Final = -1


class Nodes(NamedTuple):
    """Rows as the measure sees them.

    Attributes:
        cpu, memory: free milli-CPU and bytes; shape (rows,).
        devices: free units by device, 0 for devices that are not there; shape (rows, devices).
        selected: whether a pod with each distinct selection may run there; shape (rows, selections).
    """

    cpu: IntColumn
    memory: IntColumn
    devices: IntTable
    selected: BoolTable


class Ask(NamedTuple):
    """The request of a pod to be placed; `units` counts the devices' resource, 0 for none."""

    units: int
    cpu: int
    memory: int


class FragmentationMeasure:
    """A mix of pods, prepared for the measure.

    Attributes:
        total: sum of all popularities.
        selections: distinct node selections, in the order of `Nodes.selected`.
        selected: table of the rows that each selection matches.
    """

    def __init__(self, typical: Typical, units: int) -> None:
        """Prepare the mix; one whole device has `units` of the resource."""
        by_size = sorted(typical)
        self.total = sum(count for _, count in by_size)
        self.selections = tuple(dict.fromkeys(shape.selection for shape, _ in by_size))
        self.selected = SelectionTable(self.selections)
        self._units = units
        self._cpu = np.array([shape.cpu for shape, _ in by_size], np.int64)
        self._memory = np.array([shape.memory for shape, _ in by_size], np.int64)
        self._selection = np.array([self.selections.index(shape.selection) for shape, _ in by_size], np.intp)
        self._counts = np.array([count for _, count in by_size], np.int64)
        sizes, self._first_of_size = np.unique(np.array([shape.units for shape, _ in by_size], np.int64), return_index=True)
        self._shares = sizes[sizes <= units]
        self._wholes = sizes[sizes > units] // units

    def useful(self, nodes: Nodes) -> IntColumn:
        """Return the amount that the next pod is expected to use, times `total`: sum over m of p_m U_n(m); shape (rows,)."""
        fits = self._fitting(nodes)
        shared: IntColumn = self._of_devices(fits, nodes.devices).sum(axis=1)
        return shared + self._of_whole_ones(fits, _whole(nodes.devices, self._units))

    def fragmentation(self, nodes: Nodes) -> IntColumn:
        """Return F_n(M), times `total`; shape (rows,)."""
        fragmentation: IntColumn = self.total * nodes.devices.sum(axis=1) - self.useful(nodes)
        return fragmentation

    def growth(self, nodes: Nodes, ask: Ask, useful: IntColumn | None = None) -> IntColumn:
        """Return by how much F grows, times `total`, if the pod gets its best devices; shape (rows,).

        `useful` is the result for these nodes before the pod, if it is known. If the pod does not fit, the number means nothing.
        """
        before = self.useful(nodes) if useful is None else useful
        best: IntColumn = self.useful_after(nodes, ask).max(axis=1)
        growth: IntColumn = before - self.total * ask.units - best
        return growth

    def useful_after(self, nodes: Nodes, ask: Ask) -> IntTable:
        """Return `useful` with the pod placed, by the device of its share; `IMPOSSIBLE` if it does not fit; shape (rows, devices).

        Pods that request no device, or whole ones, have one column, because all free whole devices are equal.
        """
        left = nodes._replace(cpu=nodes.cpu - ask.cpu, memory=nodes.memory - ask.memory)
        fits, devices = self._fitting(left), nodes.devices
        worth, whole = self._of_devices(fits, devices), _whole(devices, self._units)
        if ask.units <= 0:
            unchanged: IntTable = worth.sum(axis=1)[:, None]
            return unchanged + self._of_whole_ones(fits, whole)[:, None]
        if ask.units <= self._units:
            return self._after_share(fits, devices, worth, whole, ask.units)
        number = ask.units // self._units
        taken = number * self._units * fits.shares[:, -1]
        after = worth.sum(axis=1) - taken + self._of_whole_ones(fits, np.maximum(whole - number, 0))
        return np.where(whole >= number, after, IMPOSSIBLE)[:, None]

    def _after_share(self, fits: _Fitting, devices: IntTable, worth: IntTable, whole: IntColumn, units: int) -> IntTable:
        left = np.maximum(devices - units, 0)
        after = worth.sum(axis=1)[:, None] - worth + self._of_devices(fits, left)
        if len(self._wholes):
            broken = self._of_whole_ones(fits, np.maximum(whole - 1, 0))[:, None]
            after += np.where(devices == self._units, broken, self._of_whole_ones(fits, whole)[:, None])
        return np.where(devices >= units, after, IMPOSSIBLE)

    def _fitting(self, nodes: Nodes) -> _Fitting:
        fits = (nodes.cpu[:, None] >= self._cpu) & (nodes.memory[:, None] >= self._memory)
        if nodes.selected.shape[1] > 1 or not nodes.selected.all():
            fits &= nodes.selected[:, self._selection]
        if not self.total:
            nothing = np.zeros((len(fits), 1), np.int64)
            return _Fitting(nothing, nothing)
        # Not a matrix product: numpy's library starts threads for it, which costs more than it saves.
        of_size = np.add.reduceat(fits * self._counts, self._first_of_size, axis=1)
        return _Fitting(_up_to_each(of_size[:, : len(self._shares)]), _up_to_each(of_size[:, len(self._shares) :]))

    def _of_devices(self, fits: _Fitting, devices: IntTable) -> IntTable:
        """Weigh each device by the classes that request a share; shape (rows, devices)."""
        served: IntTable = fits.shares[np.arange(len(devices))[:, None], self._shares.searchsorted(devices, "right")]
        return devices * served

    def _of_whole_ones(self, fits: _Fitting, whole: IntColumn) -> IntColumn:
        """Weigh this number of free whole devices by the classes that request several; shape (rows,)."""
        if not len(self._wholes):
            return np.zeros(len(whole), np.int64)
        served = fits.wholes[np.arange(len(whole)), self._wholes.searchsorted(whole, "right")]
        worth: IntColumn = self._units * whole * served
        return worth


class _Fitting(NamedTuple):
    """Pods of M that fit by CPU, memory and labels and request at most the i-th size, by row. Column 0 has none."""

    shares: IntTable
    wholes: IntTable


def _up_to_each(of_size: IntTable) -> IntTable:
    """Sum up over sizes, beginning with 0; shape (rows, sizes + 1)."""
    sums = np.zeros((len(of_size), of_size.shape[1] + 1), np.int64)
    np.cumsum(of_size, axis=1, out=sums[:, 1:])
    return sums


def _whole(devices: IntTable, units: int) -> IntColumn:
    whole: IntColumn = (devices == units).sum(axis=1)
    return whole


def choose(workload: FragmentationMeasure, node: Nodes, ask: Ask, units: int) -> tuple[int, ...]:
    """Return the indices of devices for a pod that fits on `node`, one row that does not count the pod.

    A share gets the best device. Among equally good devices it gets the fullest, then the first. Whole devices are the first free ones.
    """
    free = node.devices[0]
    if ask.units > units:
        return tuple(np.flatnonzero(free == units)[: ask.units // units].tolist())
    useful = workload.useful_after(node, ask)[0]
    return (int(np.lexsort((free, -useful))[0]),)
