"""The cluster's nodes as rows of the console's state.

The section `nodes` has, by name, what a node is: `[values of labels, offered amounts, cordoned]`. The section `loads` has, by name, what is
on it: `[requested amounts, pods by profile]`. Amounts are in the units of the columns (milli-CPU, bytes, counts). The section `about`
says to which labels, resources and profiles the places of these lists belong. Devices of ResourceSlices are resources,
too. Two sections, because loads change all the time and nodes seldom.

The devices of ResourceSlices by node, counted as resources: existing ones, used ones, and shares of capacities.

A driver is a resource `devices:DRIVER`: the devices of its slices at the node, and as taken the devices that no claim can get any more.
These are devices that a claim owns or uses up, and partitions whose shared counters no longer suffice. A capacity of shared devices is a
resource `devices:DRIVER/CAPACITY`, in whole units: the total, and the part that shares consume. Devices in reach of several nodes are at
none and are not counted.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from placewright.api.devices import Device, ResourceSlice
from placewright.api.objects import NodeName, RawQuantity
from placewright.api.quantity import NANO, QuantityError, nano
from placewright.api.requests import CPU, MEMORY, PODS, is_extended_resource
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import distinct
from placewright.cluster.storage import Table, key_of
from placewright.plugins.dynamicresources.inventory import Usage
from placewright.plugins.dynamicresources.pools import DeviceId, PoolId, qualified
from placewright_console.pages.devicehomes import devices_at, latest
from placewright_console.pages.grouplabels import LabelCounts

#: Before the name of each resource here; no name of a resource of Kubernetes has a colon.
PREFIX: Final = "devices:"
#: Resources that are told; cluster-wide few drivers publish devices.
MOST_KINDS: Final = 8

#: Offered and taken, by resource.
_Amounts = dict[str, list[int]]


class NodeDevices(NamedTuple):
    """The devices at a node.

    Attributes:
        offered: amounts by resource.
        taken: amounts by resource, of what is offered.
    """

    offered: Mapping[str, int]
    taken: Mapping[str, int]


NO_DEVICES: Final = NodeDevices({}, {})


class DeviceTallies:
    """Counts the devices at each node, and counts again where a slice or a claim changed.

    Example:
        tallies.look()
        while tallies.left:
            tallies.step()              # others may have their turn in between
        changed = tallies.take()        # names of nodes, None for all
        tallies.at("node-7").offered    # {"devices:gpu.example.com": 8}
    """

    def __init__(self, cluster: Cluster) -> None:
        """Count nothing yet.

        Args:
            cluster: only read.
        """
        self._tables = cluster.objects.devices
        self._positions: dict[Table[Any], int] = {}
        self._start_anew()

    def _start_anew(self) -> None:
        self._usage = Usage()
        self._pool_of_slice: dict[str, PoolId] = {}
        self._by_pool: dict[PoolId, dict[str, _Amounts]] = {}
        self._at: dict[str, dict[PoolId, _Amounts]] = {}
        self._nodes_with: dict[str, int] = defaultdict(int)
        #: Keys of slices and of claims to be read, and pools to be counted.
        self._slices: list[str] = []
        self._claims: list[str] = []
        self._pools: dict[PoolId, None] = {}
        self._changed: set[str] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The resources that some node has: drivers first, then capacities, each sorted by name."""
        return tuple(sorted(self._nodes_with, key=lambda name: ("/" in name, name)))

    def at(self, node: str) -> NodeDevices:
        """Return the devices at a node.

        Args:
            node: name of a node, which may be unknown.

        Returns:
            The sums over all its pools.
        """
        pools = self._at.get(node)
        if pools is None:
            return NO_DEVICES
        offered: dict[str, int] = defaultdict(int)
        taken: dict[str, int] = defaultdict(int)
        for amounts in pools.values():
            for name, (all_, used) in amounts.items():
                offered[name] += all_
                taken[name] += used
        return NodeDevices(offered, taken)

    def look(self) -> None:
        """Find what changed since the last look. It is counted by `step`."""
        slices, claims = self._since(self._tables.slices), self._since(self._tables.claims)
        if slices is None or claims is None:
            self._start_anew()
            slices = [key_of(each.metadata) for each in self._tables.slices.values()]
            claims = [key_of(each.metadata) for each in self._tables.claims.values()]
        self._slices += set(slices)
        self._claims += set(claims)

    @property
    def left(self) -> int:
        """Number of steps that are known to be left."""
        return len(self._slices) + len(self._claims) + len(self._pools)

    def step(self) -> None:
        """Read a slice or a claim, or count a pool."""
        if self._slices:
            self._read_slice(self._slices.pop())
        elif self._claims:
            key = self._claims.pop()
            for device in self._usage.set_claim(key, self._tables.claims.get(key)):
                self._pools[PoolId(device.driver, device.pool)] = None
        elif self._pools:
            pool, _ = self._pools.popitem()
            for node in self._count(pool):
                if self._changed is not None:
                    self._changed.add(node)

    def take(self) -> Collection[str] | None:
        """Return the nodes whose devices changed since the last call; None if that may be all.

        Returns:
            Names of nodes. Some may be unknown.
        """
        taken, self._changed = self._changed, set()
        return taken

    def _since(self, table: Table[Any]) -> Collection[str] | None:
        position = self._positions.get(table)
        self._positions[table] = table.changes.position
        return None if position is None else table.changes.since(position)

    def _read_slice(self, key: str) -> None:
        """Have the pools counted that a slice of this name belongs or belonged to."""
        before, now = self._pool_of_slice.pop(key, None), self._tables.slices.get(key)
        if before is not None:
            self._pools[before] = None
        if now is not None:
            pool = self._pool_of_slice[key] = PoolId(now.spec.driver, now.spec.pool.name)
            self._pools[pool] = None

    def _count(self, pool: PoolId) -> Iterator[str]:
        """Count a pool anew. Yield the nodes at which it was or is."""
        for node, amounts in self._by_pool.pop(pool, {}).items():
            yield node
            del self._at[node][pool]
            if not self._at[node]:
                del self._at[node]
            for name in amounts:
                self._nodes_with[name] -= 1
                if not self._nodes_with[name]:
                    del self._nodes_with[name]
        now = self._counted(pool)
        if now:
            self._by_pool[pool] = now
        for node, amounts in now.items():
            yield node
            self._at.setdefault(node, {})[pool] = amounts
            for name in amounts:
                self._nodes_with[name] += 1

    def _counted(self, pool: PoolId) -> dict[str, _Amounts]:
        slices = latest(self._tables.slices.where(str(pool)))
        counters = _CountersLeft(slices, lambda name: self._usage.in_use(DeviceId(*pool, name)))
        found: dict[str, _Amounts] = {}
        names = set()
        for device, node in devices_at(slices):
            if not node or device.name in names:
                continue
            names.add(device.name)
            amounts = found.setdefault(node, {})
            self._add(amounts, DeviceId(*pool, device.name), device, counters)
        return found

    def _add(self, amounts: _Amounts, id_: DeviceId, device: Device, counters: _CountersLeft) -> None:
        kind = f"{PREFIX}{id_.driver}"
        whole = amounts.setdefault(kind, [0, 0])
        whole[0] += 1
        shared, used_up = bool(device.allow_multiple_allocations), False
        if shared:
            taken = self._usage.of(id_).taken
            for name, capacity in (device.capacity or {}).items():
                has, used = _nano(capacity.value), taken.get(qualified(name, id_.driver), 0)
                share = amounts.setdefault(f"{kind}/{name}", [0, 0])
                share[0] += has // NANO
                share[1] += -(-used // NANO)
                used_up = used_up or 0 < has <= used
        if not self._usage.in_use(id_):
            used_up = used_up or not counters.suffice_for(device)
        whole[1] += self._usage.of(id_).owners > 0 or used_up


class _CountersLeft:
    """The rest of the counters that partitions of a pool share."""

    def __init__(self, slices: Iterable[ResourceSlice], in_use: Callable[[str], bool]) -> None:
        self._left: dict[tuple[str, str], int] = {}
        known = list(slices)
        for each in known:
            for counters in each.spec.shared_counters or ():
                for name, amount in (counters.counters or {}).items():
                    self._left[counters.name, name] = _nano(amount.value)
        if self._left:
            for device, _ in devices_at(known):
                if in_use(device.name):
                    for counter, consumed in _consumed(device):
                        self._left[counter] = self._left.get(counter, 0) - consumed

    def suffice_for(self, device: Device) -> bool:
        """Tell whether the device could be had by what is left."""
        return all(amount <= self._left.get(counter, 0) for counter, amount in _consumed(device))


def _consumed(device: Device) -> Iterator[tuple[tuple[str, str], int]]:
    for consumption in device.consumes_counters or ():
        for name, counter in (consumption.counters or {}).items():
            yield (consumption.counter_set, name), _nano(counter.value)


def _nano(amount: RawQuantity) -> int:
    """Parse a quantity. The API server rejects invalid ones; if one arrives anyway, count it as zero."""
    try:
        return nano(amount)
    except QuantityError:
        return 0


#: Extended resources in a row. Nodes of one cluster offer few kinds of devices; the rest is left out and `about` says how many.
MOST_DEVICES: Final = 8
#: The place of pods whose profile is not in `about`.
NO_PROFILE: Final = -1


class _Table:
    """The rows of nodes for one choice of labels, resources and profiles.

    Attributes:
        nodes: the section `nodes`.
        loads: the section `loads`.
        places: the rows of `about` that name the places in the lists.
    """

    def __init__(
        self, cluster: Cluster, devices: DeviceTallies, labels: tuple[str, ...], resources: tuple[str, ...], left_out: int,
        profiles: tuple[str, ...],
    ) -> None:  # fmt: skip
        self.nodes: dict[str, Any] = {}
        self.loads: dict[str, Any] = {}
        self.places = {"labels": labels, "resources": resources, "resourcesLeftOut": left_out, "profiles": profiles}
        self._cluster = cluster
        self._devices = devices
        self._labels = labels
        self._resources = resources
        self._place = {name: place for place, name in enumerate(profiles)}
        self._names: dict[int, NodeName] = {}

    def write(self, row: int) -> None:
        """Make a row anew. A row may hold another node than before."""
        before, name = self._names.pop(row, None), self._cluster.names[row]
        if before is not None and before != name and self._cluster.row(before) is None:
            self.nodes.pop(before, None)
            self.loads.pop(before, None)
        if name is not None:
            self._names[row] = name
            self.nodes[name] = self._node(row, name)
            self.loads[name] = self._load(row, name)

    def _node(self, row: int, name: NodeName) -> list[Any]:
        labels = self._cluster.node(row).metadata.labels or {}
        return [[labels.get(key) for key in self._labels], self._amounts(row, name, offered=True), bool(self._cluster.unschedulable[row])]

    def _load(self, row: int, name: NodeName) -> list[Any]:
        pods = Counter([self._place.get(pod.scheduler_name, NO_PROFILE) for pod in self._cluster.pods_on(name)])
        return [self._amounts(row, name, offered=False), sorted(pods.items())]

    def _amounts(self, row: int, node: NodeName, *, offered: bool) -> list[int]:
        cluster, devices = self._cluster, self._devices.at(node)
        published = devices.offered if offered else devices.taken
        amounts = []
        for name in self._resources:
            if name == PODS:
                column = cluster.pod_limit if offered else cluster.pod_count
            elif name.startswith(PREFIX):
                amounts.append(published.get(name, 0))
                continue
            else:
                resource = cluster.resources.column(name)
                column = resource.allocatable if offered else resource.requested
            amounts.append(int(column[row]))
        return amounts


class ConsoleNodes:
    """Keeps the rows of all nodes, and makes anew only the rows that the cluster's journals name.

    If labels, resources or profiles come or go, all rows are made anew, aside. Readers have the former rows until that is done. So places
    in rows and their names in `about` always belong together.

    Example:
        while nodes.refresh(100):
            ...                     # others have their turn
    """

    def __init__(self, cluster: Cluster, profiles: Sequence[str]) -> None:
        """Make no rows yet.

        Args:
            cluster: only read.
            profiles: the schedulerNames of known profiles. Pods of other names are counted together, because a name in a pod is
                its owner's own text.
        """
        self.profiles = tuple(profiles)
        self._cluster = cluster
        self._counts = LabelCounts()
        self._devices = DeviceTallies(cluster)
        self._shown = self._table((), (), 0)
        #: Becomes `_shown` when all rows are made.
        self._aside: _Table | None = None
        #: Rows whose labels are to be counted, and rows to be made.
        self._to_count: list[int] = []
        self._to_make: list[int] = []
        self._read: tuple[int, int] | None = None
        #: The journals did not have all changes: rows may be gone.
        self._lost = True

    @property
    def nodes(self) -> dict[str, Any]:
        """The section `nodes`."""
        return self._shown.nodes

    @property
    def loads(self) -> dict[str, Any]:
        """The section `loads`."""
        return self._shown.loads

    @property
    def left(self) -> int:
        """Number of rows that are known to be out of date."""
        return len(self._to_make) + len(self._to_count) + self._devices.left

    def about(self) -> dict[str, Any]:
        """Return the rows of the section `about` that name the places in the lists."""
        return dict(self._shown.places)

    def refresh(self, most: int | None = None) -> bool:
        """Bring the rows up to date. O(changed rows); all rows where labels, resources or profiles came or went.

        Args:
            most: steps at most, each of a row, or of a pool of devices; None for all that is needed.

        Returns:
            Whether there is more to do.
        """
        left = sys.maxsize if most is None else most
        while left > 0:
            if self._devices.left:
                self._devices.step()
            elif self._to_count:
                row = self._to_count.pop()
                name = self._cluster.names[row]
                self._counts.set_row(row, None if name is None else self._cluster.node(row).metadata.labels or {})
                if not self._to_count:
                    self._choose()
            elif self._to_make:
                (self._aside or self._shown).write(self._to_make.pop())
            elif self._aside is not None:
                self._shown, self._aside = self._aside, None
            elif not self._look():
                return False
            left -= 1
        return bool(self.left or self._aside)

    def _look(self) -> bool:
        """Read the journals. Returns whether there is anything to do."""
        cluster = self._cluster
        position = cluster.node_journal.position, cluster.pod_journal.position
        self._devices.look()
        if self._devices.left:
            return True
        devices = self._devices.take()
        if position == self._read and self.profiles == self._shown.places["profiles"] and devices is not None and not devices:
            return False
        nodes = pods = None
        if self._read is not None:
            nodes, pods = cluster.node_journal.since(self._read[0]), cluster.pod_journal.since(self._read[1])
        self._read = position
        if nodes is None or pods is None or devices is None:
            self._counts, self._lost = LabelCounts(), True
            self._to_count, self._to_make = list(range(cluster.size)), list(range(cluster.size))
        else:
            self._to_count = distinct(nodes).tolist()
            self._to_make = distinct(nodes, pods, self._rows_of(devices)).tolist()
        if not self._to_count:
            self._choose()
        return True

    def _rows_of(self, names: Collection[str]) -> list[int]:
        rows = (self._cluster.row(NodeName(name)) for name in names)
        return [row for row in rows if row is not None]

    def _choose(self) -> None:
        """Have all rows made anew where they would have other places than now."""
        devices = sorted(name for name in self._cluster.resources.names() if is_extended_resource(name))
        published = self._devices.kinds
        resources = (CPU, MEMORY, PODS, *devices[:MOST_DEVICES], *published[:MOST_KINDS])
        left_out = max(len(devices) - MOST_DEVICES, 0) + max(len(published) - MOST_KINDS, 0)
        table = self._table(self._counts.chosen(), resources, left_out)
        if self._lost or table.places != self._shown.places:
            self._aside, self._lost = table, False
            self._to_make = list(range(self._cluster.size))

    def _table(self, labels: tuple[str, ...], resources: tuple[str, ...], left_out: int) -> _Table:
        return _Table(self._cluster, self._devices, labels, resources, left_out, self.profiles)
