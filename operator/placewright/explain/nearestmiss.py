"""Finds the nearest misses of a pod that no node can hold: nodes that few filters reject, and the changes that would make them fit.

Every filter is asked about every node, not just the first that rejects it. Nodes that the fewest filters reject come first, and among nodes
that lack resources, the nodes that lack least. A change of pods is shown only if it helps in a dry run on the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

import msgspec
import numpy as np
from msgspec.structs import replace

from placewright.api import objects as kube
from placewright.api.objects import NodeName, ObjectMeta, Pod, PodSpec
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.errors import CycleError
from placewright.framework.interface import BoolColumn, CycleState, FilterPlugin, Rows
from placewright.framework.remedies import OF_THE_NODE, OF_THE_POD, Remedy, RemedyKind, RemedyPlugin
from placewright.framework.runtime.evaluation import Evaluation, Evaluator
from placewright.framework.runtime.podcolumns import PodColumns, pre_filter
from placewright.scheduler.cycle import cut

#: Most misses in an explanation.
MOST_MISSES: Final = 5
#: Numbers of rejecting filters that are examined, the lowest first, and combinations of filters for each number.
_LEVELS: Final = 3
_COMBINATIONS: Final = 8
#: Rows of a combination of filters that are examined; the second number is for costly remedies.
_ROWS: Final = 500
_FEW_ROWS: Final = 20
#: Groups of such rows that are told apart.
_TOLD_APART: Final = 2
#: Most changes that are tried out on all nodes: each costs as much as a decision.
_TRIALS: Final = 12


class Miss(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Nodes that could hold the pod if all of these changes were made.

    Attributes:
        node: one of them.
        nodes: their number. With changes of nodes, each of them would have to be changed.
        changes: all that are needed.
        at_least: not all nodes were counted.
    """

    node: str
    nodes: int
    changes: tuple[Remedy, ...]
    at_least: bool = False

    @property
    def of_the_pod(self) -> bool:
        """Whether only the pod would have to change."""
        return all(change.kind in OF_THE_POD for change in self.changes)

    @property
    def told_only(self) -> bool:
        """Whether a filter offers its reason in words and no remedy that can be tried out."""
        return any(change.kind is RemedyKind.TOLD for change in self.changes)


def nearest_misses(evaluator: Evaluator, cluster: Cluster, evaluation: Evaluation) -> tuple[Miss, ...]:
    """Find the nearest misses of a pod.

    Returns:
        The misses, the nearest first; none if a node can hold the pod, or if it was rejected before any node was examined.
    """
    if evaluation.count or evaluation.refusal is not None:
        return ()
    search = _Search(evaluator, cluster, evaluation)
    found: list[Miss] = []
    for level in search.levels():
        found += sorted(level, key=lambda miss: (miss.told_only, len(miss.changes)))
        if sum(not miss.told_only for miss in found) >= MOST_MISSES:
            break
    found.sort(key=lambda miss: miss.told_only)  # stable: the nearest stay first
    return tuple(found[:MOST_MISSES])


class _Search:
    def __init__(self, evaluator: Evaluator, cluster: Cluster, evaluation: Evaluation) -> None:
        self._evaluator = evaluator
        self._cluster = cluster
        self._evaluation = evaluation
        self._pod = evaluation.pod
        self._trials = _TRIALS
        skipped = evaluation.state.skip_filter
        self._filters = [plugin for plugin in evaluator.runtime.filter if plugin.name not in skipped]
        self._rejects = self._rejected()
        #: The places of pods by name, filled when the first remedy that names a pod is tried.
        self._places: dict[str, list[tuple[int, PodInfo]]] = {}

    def _rejected(self) -> list[BoolColumn]:
        """Return the rows that each filter rejects, except rows that it would accept after the remedy of another filter."""
        evaluation, cluster, pod = self._evaluation, self._cluster, self._pod
        rejects = [cluster.present & ~evaluation.columns.passes(plugin, evaluation.state, pod, cluster) for plugin in self._filters]
        settling = [(plugin, there) for plugin, there in zip(self._filters, rejects, strict=True) if _settles(plugin)]
        for plugin, column in zip(self._filters, rejects, strict=True):
            for other, there in settling:
                if other is not plugin and isinstance(plugin, RemedyPlugin):
                    rows = np.flatnonzero(column & there)
                    column[rows] = ~plugin.passes_after(evaluation.state, pod, cluster, _settles(other), rows)
        return rejects

    def levels(self) -> Iterator[list[Miss]]:
        """Yield the misses by number of rejecting filters, the fewest first."""
        if not self._rejects:
            return
        counts = np.sum(self._rejects, axis=0)
        among = self._cluster.present.copy()
        if self._evaluation.candidates is not None:
            among[:] = False
            among[[row for name in self._evaluation.candidates if (row := self._cluster.row(name)) is not None]] = True
        for number in np.unique(counts[among & (counts > 0)])[:_LEVELS].tolist():
            yield list(chain.from_iterable(self._misses(rows) for rows in self._combinations(np.flatnonzero(among & (counts == number)))))

    def _combinations(self, rows: Rows) -> Iterator[Rows]:
        """Yield the rows of each combination of rejecting filters, the most frequent combinations first."""
        packed = np.packbits(np.array([rejects[rows] for rejects in self._rejects]), axis=0).T
        _, which, sizes = np.unique(packed, axis=0, return_inverse=True, return_counts=True)
        for code in np.argsort(-sizes, kind="stable")[:_COMBINATIONS].tolist():
            yield rows[which.reshape(-1) == code]

    def _misses(self, rows: Rows) -> list[Miss]:
        """Return the misses of rows that the same filters reject."""
        filters = [plugin for plugin, rejects in zip(self._filters, self._rejects, strict=True) if rejects[rows[0]]]
        nearest = self._nearest_first(filters, rows)
        cheap = nearest is None and all(isinstance(plugin, RemedyPlugin) and plugin.remedies_are_cheap for plugin in filters)
        looked_at = (rows if nearest is None else nearest)[: _ROWS if cheap else _FEW_ROWS]
        groups: dict[bytes, tuple[tuple[Remedy, ...], list[int]]] = {}
        for row in looked_at.tolist():
            changes = tuple([change for plugin in filters for change in self._remedies(plugin, row)])
            groups.setdefault(msgspec.json.encode(changes), (changes, []))[1].append(row)
        ordered = list(groups.values())
        if nearest is None:
            ordered.sort(key=lambda group: -len(group[1]))
        misses = [self._tried(changes, alike, at_least=len(looked_at) < len(rows)) for changes, alike in ordered[:_TOLD_APART]]
        return [miss for miss in misses if miss is not None]

    def _nearest_first(self, filters: Iterable[FilterPlugin], rows: Rows) -> Rows | None:
        """Return the rows in the order of the first filter that has an order; None if no filter has."""
        state, pod, cluster = self._evaluation.state, self._pod, self._cluster
        asked = (each.nearest_first(state, pod, cluster, rows) for each in filters if isinstance(each, RemedyPlugin))
        return next((ordered for ordered in asked if ordered is not None), None)

    def _remedies(self, plugin: FilterPlugin, row: int) -> Sequence[Remedy]:
        """Return the remedies of a filter that rejects a row: its own, or one with its reason in words. Never empty."""
        asked = self._evaluation.state, self._pod, self._cluster
        known = plugin.remedies(*asked, row) if isinstance(plugin, RemedyPlugin) else ()
        if known:
            return known
        reasons = "; ".join(rejection.status.message for rejection in plugin.explain(*asked, np.array([row], np.intp)))
        return [Remedy(plugin.name, RemedyKind.TOLD, cut(reasons))]

    # --- whether a miss is true --------------------------------------------------------------------------------------------------

    def _tried(self, changes: tuple[Remedy, ...], rows: list[int], *, at_least: bool) -> Miss | None:
        """Return the miss of these changes; None if a trial shows that they do not help."""
        row = rows[0]
        miss = Miss(str(self._cluster.names[row]), len(rows), changes, at_least)
        if miss.told_only or not self._trials:
            return miss if miss.told_only else None
        self._trials -= 1
        try:
            if miss.of_the_pod:
                opened = self._evaluator.evaluate(changed_pod(self._pod, changes)).feasible
                return replace(miss, nodes=int(np.count_nonzero(opened)), at_least=False) if opened[row] else None
            return miss if self._helps(changes, row) else None
        except CycleError:
            return None

    def _helps(self, changes: tuple[Remedy, ...], row: int) -> bool:
        """Whether the row would fit after all changes of pods. Changes of the node cannot be tried out."""
        pod = changed_pod(self._pod, changes)
        gone = {key for change in changes for key in change.pods}
        nominated = [other for other in self._evaluator.checker.nominations.pods_on(self._name(row)) if other.priority >= pod.priority]
        with self._cluster.dry_run() as dry_run:
            dry_run.remove([place for key in gone for place in self._places_of(key)])
            dry_run.add([(row, added_pod(change)) for change in changes if change.kind is RemedyKind.ADD_POD])
            dry_run.add([(row, other) for other in nominated if other.uid != pod.uid])
            return self._only_promises_left(pod, changes, row)

    def _only_promises_left(self, pod: PodInfo, changes: tuple[Remedy, ...], row: int) -> bool:
        runtime, cluster = self._evaluator.runtime, self._cluster
        columns, state, rows = PodColumns(runtime), CycleState(), np.array([row], np.intp)
        refusal, candidates, _ = pre_filter(runtime, state, pod, cluster, columns)
        if refusal is not None or (candidates is not None and self._name(row) not in candidates):
            return False
        promised = {change.plugin for change in changes if change.kind in OF_THE_NODE}
        kinds = {change.kind for change in changes if change.kind in OF_THE_NODE}
        given = {name: units for change in changes for name, units in change.resources.items()}
        for plugin in runtime.filter:
            if plugin.name in state.skip_filter:
                continue
            if not isinstance(plugin, RemedyPlugin):
                if not plugin.filter(state, pod, cluster, rows)[0]:
                    return False
            elif not plugin.passes_after(state, pod, cluster, kinds, rows)[0]:
                if plugin.name not in promised:
                    return False
                left = plugin.remedies(state, pod, cluster, row) if given else ()
                if any(units > given.get(name, 0) for each in left for name, units in each.resources.items()):
                    return False
        return True

    def _places_of(self, key: str) -> list[tuple[int, PodInfo]]:
        """Return the pods of this `namespace/name`, with their rows."""
        if not self._places:
            for placement in self._cluster.placements():
                row = self._cluster.row(placement.node)
                if row is not None:
                    self._places.setdefault(placement.pod.key, []).append((row, placement.pod))
        return self._places[key]

    def _name(self, row: int) -> NodeName:
        return NodeName(str(self._cluster.names[row]))


def _settles(plugin: FilterPlugin) -> frozenset[RemedyKind]:
    return plugin.settles if isinstance(plugin, RemedyPlugin) else frozenset()


def changed_pod(pod: PodInfo, changes: Iterable[Remedy]) -> PodInfo:
    """Apply changes to a pod.

    Args:
        pod: left as it is.
        changes: changes of other objects are passed over.

    Returns:
        The changed pod, or the same if no change concerns it.
    """
    spec = pod.pod.spec
    for change in changes:
        if change.kind is RemedyKind.TOLERATION:
            more = [kube.Toleration(key=each.key, operator="Equal", value=each.value, effect=each.effect) for each in change.tolerations]
            spec = replace(spec, tolerations=[*(spec.tolerations or ()), *more])
        elif change.kind is RemedyKind.MAX_SKEW:
            spec = replace(spec, topology_spread_constraints=[_wider(each, change) for each in spec.topology_spread_constraints or ()])
    return pod if spec is pod.pod.spec else PodInfo(replace(pod.pod, spec=spec))


def _wider(constraint: kube.TopologySpreadConstraint, change: Remedy) -> kube.TopologySpreadConstraint:
    if constraint.topology_key != change.topology_key or constraint.max_skew >= change.max_skew:
        return constraint
    return replace(constraint, max_skew=change.max_skew)


def added_pod(change: Remedy) -> PodInfo:
    """Make the pod that a remedy of `RemedyKind.ADD_POD` stands for, without any requests."""
    labels = {key: value for key, value in change.labels.items() if value is not None}
    return PodInfo(Pod(metadata=ObjectMeta(name="added", namespace=change.namespace, uid="added", labels=labels), spec=PodSpec()))
