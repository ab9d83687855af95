"""The fragmentation measure on columns.

Source: Q. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC 2023,
section 3. A node n has R_g free on its device g. A class m of pods asks for D_m devices, less than one or a whole number, and has the share
p_m of the workload M. What class m cannot use of node n is

    F_n(m) = sum over g of R_g                                where a pod of the class cannot run on the node: its devices, CPU, memory or
                                                              labels do not suffice (quadrants I, II and IV of the paper's figure),
    F_n(m) = sum over g of R_g where R_g < min(D_m, 1), else 0    where it can (quadrant III),

the node's fragmentation F_n(M) = sum over m of p_m F_n(m), and a pod goes where F_n(M) grows least.

Here it is turned round: what class m can use of a node, U_n(m) = sum over g of R_g − F_n(m), is 0 where it cannot run, and else the sum of
the R_g that are not too small. For shares that is a sum over devices, for several whole devices it depends on the number of free ones:
the sizes of requests being few and sorted, both are looked up in sums over the classes that fit by CPU, memory and labels.

Popularities are counts, amounts are the resource's own units, so everything is a whole number: the paper's F is this one over `total`.
Pods that ask for no device are left out of M: to them all that is free is useless, now and after, so that they add the same on every node.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from placewright.framework.interface import IntColumn
from placewright.plugins.devicefragmentation.mix import Typical

#: Per row and class: shape (rows, classes).
BoolTable = NDArray[np.bool_]
IntTable = NDArray[np.int64]

#: In a gain, for a device that cannot take the pod: less than any.
IMPOSSIBLE: Final = -1


class Nodes(NamedTuple):
    """Rows as the measure sees them.

    Attributes:
        cpu, memory: free milli-CPU and bytes; shape (rows,).
        devices: free units by device, 0 for devices that are not there; shape (rows, devices).
        selected: by each distinct selection of the workload, whether a pod with it may be there; shape (rows, selections).
    """

    cpu: IntColumn
    memory: IntColumn
    devices: IntTable
    selected: BoolTable


class Ask(NamedTuple):
    """The demand of a pod that is to be placed; `units` of the devices' resource, 0 for none."""

    units: int
    cpu: int
    memory: int


class FragmentationMeasure:
    """A mix of pods, prepared for the measure.

    Attributes:
        total: all popularities together.
        selections: distinct node selections, in the order of `Nodes.selected`.
    """

    def __init__(self, typical: Typical, units: int) -> None:
        """`units`: of one whole device."""
        by_size = sorted(typical)
        self.total = sum(count for _, count in by_size)
        self.selections = tuple(dict.fromkeys(shape.selection for shape, _ in by_size))
        self._units = units
        self._cpu = np.array([shape.cpu for shape, _ in by_size], np.int64)
        self._memory = np.array([shape.memory for shape, _ in by_size], np.int64)
        self._selection = np.array([self.selections.index(shape.selection) for shape, _ in by_size], np.intp)
        self._counts = np.array([count for _, count in by_size], np.int64)
        sizes, self._first_of_size = np.unique(np.array([shape.units for shape, _ in by_size], np.int64), return_index=True)
        self._shares = sizes[sizes <= units]
        self._wholes = sizes[sizes > units] // units

    def useful(self, nodes: Nodes) -> IntColumn:
        """The amount that the next pod is expected to use, times `total`: sum over m of p_m U_n(m); shape (rows,)."""
        fits = self._fitting(nodes)
        shared: IntColumn = self._of_devices(fits, nodes.devices).sum(axis=1)
        return shared + self._of_whole_ones(fits, _whole(nodes.devices, self._units))

    def fragmentation(self, nodes: Nodes) -> IntColumn:
        """F_n(M), times `total`; shape (rows,)."""
        fragmentation: IntColumn = self.total * nodes.devices.sum(axis=1) - self.useful(nodes)
        return fragmentation

    def growth(self, nodes: Nodes, ask: Ask, useful: IntColumn | None = None) -> IntColumn:
        """F after less F before, times `total`, if the pod comes and gets the devices that are best for it; shape (rows,).

        `useful`: of these nodes, where it is known. Where the pod does not fit, a number without meaning.
        """
        before = self.useful(nodes) if useful is None else useful
        best: IntColumn = self.useful_after(nodes, ask).max(axis=1)
        growth: IntColumn = before - self.total * ask.units - best
        return growth

    def useful_after(self, nodes: Nodes, ask: Ask) -> IntTable:
        """`useful` once the pod is there, by the device that a share is put on, `IMPOSSIBLE` where it does not fit; shape (rows, devices).

        Pods that ask for no device, or whole ones, have one column: free whole devices are all alike.
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
        # Not a matrix product: numpy's library starts threads for those, which costs more than it brings.
        of_size = np.add.reduceat(fits * self._counts, self._first_of_size, axis=1)
        return _Fitting(_up_to_each(of_size[:, : len(self._shares)]), _up_to_each(of_size[:, len(self._shares) :]))

    def _of_devices(self, fits: _Fitting, devices: IntTable) -> IntTable:
        """The worth of each device to classes that ask for a share; shape (rows, devices)."""
        served: IntTable = fits.shares[np.arange(len(devices))[:, None], self._shares.searchsorted(devices, "right")]
        return devices * served

    def _of_whole_ones(self, fits: _Fitting, whole: IntColumn) -> IntColumn:
        """The worth of this number of free whole devices to classes that ask for several; shape (rows,)."""
        if not len(self._wholes):
            return np.zeros(len(whole), np.int64)
        served = fits.wholes[np.arange(len(whole)), self._wholes.searchsorted(whole, "right")]
        worth: IntColumn = self._units * whole * served
        return worth


class _Fitting(NamedTuple):
    """By row, how many pods of M fit by CPU, memory and labels and ask for at most the i-th size, sizes ascending; none in column 0."""

    shares: IntTable
    wholes: IntTable


def _up_to_each(of_size: IntTable) -> IntTable:
    """Running sums over sizes, with nothing before the first; shape (rows, sizes + 1)."""
    sums = np.zeros((len(of_size), of_size.shape[1] + 1), np.int64)
    np.cumsum(of_size, axis=1, out=sums[:, 1:])
    return sums


def _whole(devices: IntTable, units: int) -> IntColumn:
    whole: IntColumn = (devices == units).sum(axis=1)
    return whole


def choose(workload: FragmentationMeasure, node: Nodes, ask: Ask, units: int) -> tuple[int, ...]:
    """Indices of the devices; there is room for the pod, which is not counted in `node`, one row.

    Of devices that are equally good for a share, the fullest; of those, the first. Whole devices are the first free ones.
    """
    free = node.devices[0]
    if ask.units > units:
        return tuple(np.flatnonzero(free == units)[: ask.units // units].tolist())
    useful = workload.useful_after(node, ask)[0]
    return (int(np.lexsort((free, -useful))[0]),)
