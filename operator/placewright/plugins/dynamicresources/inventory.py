"""All devices of the cluster and their use, kept up to date with the tables, and what of that each row sees.

What a change costs: that of a claim, the rows that its devices can be reached from; that of a slice, its pool; that of a node, its row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from placewright.api.devices import DeviceTaintRule
from placewright.api.objects import NodeName
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import Journal
from placewright.cluster.storage import Table, key_of
from placewright.plugins.dynamicresources.outlook import Outlook, look_out
from placewright.plugins.dynamicresources.pools import DeviceId, Pool, PoolId, read_pool
from placewright.plugins.dynamicresources.selectors import DeviceShapes
from placewright.plugins.dynamicresources.usage import Usage

_NO_POOLS: Final[dict[PoolId, Pool]] = {}


class Inventory:
    """Pools, what is in use of them, and what rows see of them.

    Attributes:
        usage: which devices are in use.
        changed_rows: rows that see something else than before.
        everywhere: grows when all rows may.
        classes_changed: grows when a DeviceClass changes.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.changed_rows = Journal()
        self.everywhere = 0
        self.classes_changed = 0
        self._cluster = cluster
        self._tables = cluster.objects.devices
        self._shapes = DeviceShapes()
        self._row_versions: dict[int, int] = {}
        self._start_anew()

    def _start_anew(self) -> None:
        self.usage = Usage()
        self._positions: dict[Table[Any], int] = {}
        self._node_position = self._cluster.node_journal.position
        self._pools: dict[PoolId, Pool] = {}
        self._by_node: dict[str, dict[PoolId, Pool]] = {}
        self._of_many_nodes: dict[PoolId, Pool] = {}
        self._pool_of_slice: dict[str, PoolId] = {}
        self._rules: dict[str, DeviceTaintRule] = {}
        self._outlooks: dict[int, Outlook] = {}
        self.everywhere += 1

    def refresh(self) -> None:
        """Take in what changed since the last time."""
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

    def version(self, row: int) -> int:
        """Grows when what the row sees, or how it is used, may have changed."""
        return self._row_versions.get(row, 0) + self.everywhere

    def pools(self) -> Iterable[Pool]:
        """All that there are."""
        return self._pools.values()

    def outlook(self, row: int) -> Outlook:
        """What the node of a row has in reach."""
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
        """Returns the pools with devices that rules of these names are or were about."""
        pools: set[PoolId] = set()
        for key in keys:
            before, now = self._rules.pop(key, None), self._tables.taint_rules.get(key)
            if now is not None:
                self._rules[key] = now
            for rule in (before, now):
                pools.update(pool for pool in self._pools if rule is not None and _may_be_about(rule, pool))
        return pools

    def _take_slices(self, keys: Iterable[str]) -> set[PoolId]:
        """Returns the pools that slices of these names belong or belonged to."""
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
        now = read_pool(id_, self._tables.slices.where(str(id_)), list(self._rules.values()), self._shapes)
        if now is not None:
            self._pools[id_] = self._holder(now)[id_] = now
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
