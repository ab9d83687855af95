"""All devices of the cluster, their use, and the part that each row sees. They follow the cluster's tables.

Devices are in use by the allocations of claims, written and assumed. A changed claim costs the rows that reach its devices. A changed slice
costs its pool, and a changed node its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from placewright.api.compatibility import Rule
from placewright.api.devices import AllocatedDevice, DeviceTaintRule, ResourceClaim
from placewright.api.objects import NodeName
from placewright.api.quantity import QuantityError, nano
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import Journal
from placewright.cluster.storage import Table, key_of
from placewright.plugins.dynamicresources.effort import DRAW
from placewright.plugins.dynamicresources.pools import (
    DeviceId,
    Pool,
    PoolDevice,
    PoolId,
    PoolReading,
    ReachableDevices,
    look_out,
    qualified,
    read_pool,
)
from placewright.plugins.dynamicresources.selectors import DeviceShapes

# --- devices in use --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Use:
    """How a device is used.

    Attributes:
        owners: number of claims that have it exclusively; more than one only after another writer's mistake.
        shares: number of allocated shares.
        taken: capacities that all shares use together, by qualified name, in nano-units.
    """

    owners: int = 0
    shares: int = 0
    taken: dict[str, int] = field(default_factory=dict)


_UNUSED: Final = Use()


class Usage:
    """Devices in use. Access for administrators uses none."""

    def __init__(self) -> None:
        self._uses: dict[DeviceId, Use] = {}
        self._by_claim: dict[str, tuple[AllocatedDevice, ...]] = {}

    def of(self, device: DeviceId) -> Use:
        """Return the use of a device; not to be written."""
        return self._uses.get(device, _UNUSED)

    def in_use(self, device: DeviceId) -> bool:
        """Return whether a claim has this device, or a share of it."""
        return device in self._uses

    def prevents(self, offer: PoolDevice) -> bool:
        """Return whether no further claim may have this device: a claim has it exclusively, or it was shared and no longer is."""
        use = self.of(offer.id)
        return use.owners > 0 or (use.shares > 0 and not offer.shared)

    def set_claim(self, key: str, claim: ResourceClaim | None) -> Iterable[DeviceId]:
        """Record a claim as it is now, None if deleted. Return the devices whose use that changed."""
        allocation = None if claim is None else claim.status.allocation
        now = () if allocation is None else tuple(each for each in allocation.devices.results or () if not each.admin_access)
        before = self._by_claim.pop(key, ())
        if now:
            self._by_claim[key] = now
        if now == before:
            return ()
        for result in before:
            self._count(result, -1)
        for result in now:
            self._count(result, 1)
        return {device_of(result) for result in (*before, *now)}

    def _count(self, result: AllocatedDevice, sign: int) -> None:
        device = device_of(result)
        use = self._uses.setdefault(device, Use())
        if result.share_id is None:
            use.owners += sign
        else:
            use.shares += sign
            for named, amount in (result.consumed_capacity or {}).items():
                name = qualified(named, result.driver)
                use.taken[name] = use.taken.get(name, 0) + sign * _nanos(amount)
        if not use.owners and not use.shares:
            del self._uses[device]


def device_of(result: AllocatedDevice) -> DeviceId:
    """Return the id of an allocated device."""
    return DeviceId(result.driver, result.pool, result.device)


def _nanos(amount: str | float) -> int:
    """Parse a quantity. The API server rejects invalid ones; if one arrives anyway, count it as zero."""
    try:
        return nano(amount)
    except QuantityError:
        return 0


# --- all devices -----------------------------------------------------------------------------------------------------------------


_NO_POOLS: Final[dict[PoolId, Pool]] = {}


class Inventory:
    """Pools, their use, and what rows see of them.

    Attributes:
        usage: use of devices.
        changed_rows: rows that see a change.
        everywhere: number that grows when all rows may have changed.
        classes_changed: number that grows when a DeviceClass changes.
    """

    def __init__(self, cluster: Cluster, in_force: Callable[[Rule], bool]) -> None:
        self.changed_rows = Journal()
        self.everywhere = 0
        self.classes_changed = 0
        self._cluster = cluster
        self._in_force = in_force
        self._tables = cluster.objects.devices
        self._shapes = DeviceShapes()
        self._row_versions: dict[int, int] = {}
        self._kept: dict[str, ResourceClaim] = {}
        self._start_anew()

    def _start_anew(self) -> None:
        self.usage = Usage()
        for key, claim in self._kept.items():
            self.usage.set_claim(key, claim)
        self._positions: dict[Table[Any], int] = {}
        self._node_position = self._cluster.node_journal.position
        self._pools: dict[PoolId, Pool] = {}
        #: Pools with devices that take resources of their node.
        self._mapping: set[PoolId] = set()
        self._by_node: dict[str, dict[PoolId, Pool]] = {}
        self._of_many_nodes: dict[PoolId, Pool] = {}
        self._pool_of_slice: dict[str, PoolId] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._outlooks: dict[int, ReachableDevices] = {}
        self.everywhere += 1

    def refresh(self) -> None:
        """Take in the changes since the last call."""
        tables = self._tables
        rows = self._cluster.node_journal.since(self._node_position)
        changes = [self._since(table) for table in (tables.taint_rules, tables.slices, tables.claims, tables.classes)]
        if rows is None or any(keys is None for keys in changes):
            self._start_anew()
            self._positions = {table: table.changes.position for table in tables.tables.values()}
            rows, changes = (), [list(each) for each in (_keys(tables.taint_rules), _keys(tables.slices), _keys(tables.claims), ())]
        self._node_position = self._cluster.node_journal.position
        rules, slices, claims, classes = (set(keys or ()) for keys in changes)
        self._row_changed(rows)
        for pool in self._take_rules(rules) | self._take_slices(slices):
            self._read(pool)
        for key in claims:
            for device in self.usage.set_claim(key, tables.claims.get(key)):
                self._use_changed(device)
        if classes:
            self.classes_changed += 1
            self.everywhere += 1

    def keep(self, kept: Mapping[str, ResourceClaim]) -> None:
        """Count the devices of these claims as in use, and no longer the devices of claims from the previous call."""
        before = self._kept
        if kept == before:
            return
        self._kept = dict(kept)
        for key in before.keys() | kept.keys():
            for device in self.usage.set_claim(key, kept.get(key)):
                self._use_changed(device)

    def version(self, row: int) -> int:
        """Return a number that grows when the row's devices, or their use, may have changed."""
        return self._row_versions.get(row, 0) + self.everywhere

    def pools(self) -> Iterable[Pool]:
        """Return all pools."""
        return self._pools.values()

    def device(self, result: AllocatedDevice) -> PoolDevice | None:
        """Return an allocated device as its driver publishes it now."""
        pool = self._pools.get(PoolId(result.driver, result.pool))
        return None if pool is None else pool.offers.get(result.device)

    def maps(self, row: int | None = None) -> bool:
        """Return whether any device in reach of a row's node, or any at all, takes resources of its node."""
        return bool(self._mapping) and (row is None or self.outlook(row).maps)

    def steps_to_look_out(self, row: int) -> int:
        """Return the steps that the next `outlook` of a row takes (see `effort`): 0 if it is kept."""
        if row in self._outlooks:
            return 0
        return sum(DRAW * (1 + len(pool.reaches) + len(pool.general)) for pool in self._of_many_nodes.values())

    def outlook(self, row: int) -> ReachableDevices:
        """Return the devices in reach of a row's node."""
        known = self._outlooks.get(row)
        if known is None:
            node = self._cluster.node(row)
            name = node.metadata.name
            pools = (*self._by_node.get(name, _NO_POOLS).values(), *self._of_many_nodes.values())
            known = self._outlooks[row] = look_out(pools, name, node.metadata.labels or {})
        return known

    def _since(self, table: Table[Any]) -> Sequence[str] | None:
        position = self._positions.get(table)
        self._positions[table] = table.changes.position
        return None if position is None else table.changes.since(position)

    # --- what changed ----------------------------------------------------------------------------------------------------

    def _take_rules(self, keys: Iterable[str]) -> set[PoolId]:
        """Take in the rules of these names. Return the pools whose devices they concern or concerned."""
        pools: set[PoolId] = set()
        for key in keys:
            before, now = self._rules.pop(key, None), self._tables.taint_rules.get(key)
            if now is not None:
                self._rules[key] = now
            for rule in (before, now):
                pools.update(pool for pool in self._pools if rule is not None and _may_be_about(rule, pool))
        return pools

    def _take_slices(self, keys: Iterable[str]) -> set[PoolId]:
        """Take in the slices of these names. Return the pools that they belong or belonged to."""
        pools: set[PoolId] = set()
        for key in keys:
            before, now = self._pool_of_slice.pop(key, None), self._tables.slices.get(key)
            if before is not None:
                pools.add(before)
            if now is not None:
                pool = self._pool_of_slice[key] = PoolId(now.spec.driver, now.spec.pool.name)
                pools.add(pool)
        return pools

    def _read(self, id_: PoolId) -> None:
        before = self._pools.pop(id_, None)
        if before is not None:
            self._holder(before).pop(id_, None)
            if before.node and not self._by_node[before.node]:
                del self._by_node[before.node]
        reading = PoolReading(list(self._rules.values()), self._shapes, self._in_force)
        now = read_pool(id_, self._tables.slices.where(str(id_)), reading, before)
        if now is not None:
            self._pools[id_] = self._holder(now)[id_] = now
        (self._mapping.add if now is not None and now.maps else self._mapping.discard)(id_)
        for pool in (before, now):
            if pool is not None:
                self._pool_changed(pool)

    def _holder(self, pool: Pool) -> dict[PoolId, Pool]:
        return self._by_node.setdefault(pool.node, {}) if pool.node else self._of_many_nodes

    def _pool_changed(self, pool: Pool) -> None:
        if pool.node:
            self._row_changed(self._rows_of(pool.node))
        else:
            self._outlooks.clear()
            self.everywhere += 1

    def _use_changed(self, device: DeviceId) -> None:
        pool = self._pools.get(PoolId(device.driver, device.pool))
        if pool is None:
            return
        offer = pool.offers.get(device.device)
        alone = offer.reach.node if offer is not None and not offer.counters else ""
        if pool.node or alone:
            self._bump(self._rows_of(pool.node or alone))
        else:
            self.everywhere += 1

    def _rows_of(self, node: str) -> tuple[int, ...]:
        row = self._cluster.row(NodeName(node))
        return () if row is None else (row,)

    def _row_changed(self, rows: Iterable[int]) -> None:
        for row in rows:
            self._outlooks.pop(row, None)
            self._bump((row,))

    def _bump(self, rows: Iterable[int]) -> None:
        for row in rows:
            self._row_versions[row] = self._row_versions.get(row, 0) + 1
            self.changed_rows.append(row)


def _may_be_about(rule: DeviceTaintRule, pool: PoolId) -> bool:
    selector = rule.spec.device_selector
    return selector is not None and selector.driver in (None, pool.driver) and selector.pool in (None, pool.pool)


def _keys(table: Table[Any]) -> Iterable[str]:
    return [key_of(each.metadata) for each in table.values()]
