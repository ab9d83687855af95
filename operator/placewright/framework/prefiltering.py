"""PreFilter: what the plugins make of the pod before any node is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError
from placewright.framework.interface import BoolColumn, CycleState
from placewright.framework.runtime.podcolumns import PodColumns
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.framework.status import Code, Status, unresolvable
from placewright.framework.steps import PRE_FILTER


class PreFiltered(NamedTuple):
    """The outcome of all PreFilter plugins.

    Attributes:
        refusal: set when the pod is refused on every node.
        candidates: the nodes to look at; None for all.
        narrowed_by: the plugins that named candidates, in run order.
    """

    refusal: Status | None
    candidates: frozenset[NodeName] | None
    narrowed_by: tuple[str, ...]


def pre_filter(runtime: ProfileRuntime, state: CycleState, pod: PodInfo, cluster: Cluster, columns: PodColumns) -> PreFiltered:
    """Run the plugins in order; what local ones say is kept in `columns` for pods that look alike. Raises `CycleError`."""
    candidates: frozenset[NodeName] | None = None
    narrowed_by: list[str] = []
    refusal: Status | None = None
    state.steps.plugin_begins()
    for plugin in runtime.pre_filter:
        result = columns.pre_filter_results.get(plugin.name)
        if result is None:
            told_once = plugin.name in runtime.told_once
            known = set(state.data) if told_once else set()
            result = plugin.pre_filter(state, pod, cluster)
            state.steps.plugin_ended(plugin.name, PRE_FILTER, result.status.code)
            if told_once and result.status.code is not Code.ERROR:  # what broke may be mended by the next pod
                columns.pre_filter_results[plugin.name] = result
                columns.data.update((key, state.data[key]) for key in state.data.keys() - known)
        code = result.status.code
        if code is Code.ERROR:
            raise CycleError(f'running PreFilter plugin "{plugin.name}": {result.status.message}')
        if code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            refusal = result.status.by(plugin.name)
            break
        if code is Code.SKIP:
            state.skip_filter.add(plugin.name)
        elif not result.status.ok:
            refusal = result.status.by(plugin.name)
        elif result.nodes is not None:
            narrowed_by.append(plugin.name)
            candidates = result.nodes if candidates is None else candidates & result.nodes
            if not candidates:
                return PreFiltered(_nothing_left(narrowed_by), candidates, tuple(narrowed_by))
    return PreFiltered(refusal, candidates, tuple(narrowed_by))


def rows_named(cluster: Cluster, names: Iterable[NodeName]) -> BoolColumn:
    """True in the rows of these nodes; shape (size,). Names of nodes that are not there are passed over."""
    mask = np.zeros(cluster.size, np.bool_)
    for name in names:
        row = cluster.row(name)
        if row is not None:
            mask[row] = True
    return mask


def outside(narrowed_by: Sequence[str]) -> Status:
    """The verdict on nodes that are no candidates."""
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}]")


def _nothing_left(narrowed_by: list[str]) -> Status:
    if len(narrowed_by) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {narrowed_by[0]}").by(narrowed_by[0])
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}] simultaneously").by(narrowed_by[0])
