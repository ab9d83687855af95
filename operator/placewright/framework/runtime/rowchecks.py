"""Single rows, as the columns stand now: for nodes with nominated pods, and for preemption's trials.

Unlike an evaluation this keeps no column: what is looked at may be hypothetical. What PreFilter says of the pod alone is kept.
`RowChecker` looks at one row, `RowwiseCheck` at hundreds that are changed at the same time, as preemption asks.

`KeptAnswers` keeps answers about single rows, for pods that look alike, for as long as nothing about the row changes.

A thousand pods that preempt on the same full cluster ask the same about the same nodes. An answer is kept only if it depends on nothing
but the pod's signature and priority, and on one node. The pods on that node, and nominated to it, belong to it. Every change of these is
in one of the logs that are read before answers are handed out. So nothing is kept for pods of groups, and for pods about which a filter
looks at other nodes. Nothing is kept while such a filter would read the terms of nominated pods, either.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar, cast

import numpy as np

from placewright.api.boundedcache import BoundedCache
from placewright.api.bytecount import bytes_of
from placewright.api.objects import NodeName
from placewright.api.podgroups import GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.journal import Log
from placewright.framework.interface import CycleState, FilterPlugin, Reads, Rejection, RowChecks, Rows
from placewright.framework.ports import KeptFor, NominationChanges, Nominations
from placewright.framework.rowwise import NodeVerdict, PlainRowVerdict, RowVerdict, RowwiseFilter
from placewright.framework.runtime.podcolumns import PodColumns, PreFiltered, pre_filter, rows_named
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.framework.runtime.rowrejections import BesideNominated, RowRejections, outside
from placewright.framework.status import SUCCESS, Status

#: Answers kept at most, over all kinds of pods; each is some hundred bytes.
MAX_ANSWERS: Final = 200_000
#: Bytes of the keys that tell kinds of pods apart: of all of them, and of one.
MAX_KEY_BYTES: Final = 8 * 2**20
LARGEST_KEY_BYTES: Final = 64 * 1024


class AnswersOfRows(Protocol):
    """Notes about rows that are dropped when something about the row changed."""

    def forget(self, rows: Iterable[int]) -> None:
        """Drop the notes about rows that changed."""

    def clear(self) -> None:
        """Drop all notes, because anything may have changed."""


A = TypeVar("A", bound=AnswersOfRows)


class AnswerByRow(dict[int, Any]):
    """Notes by row."""

    def forget(self, rows: Iterable[int]) -> None:
        """Drop the notes about rows that changed."""
        for row in rows:
            self.pop(row, None)


@dataclass(slots=True)
class _Kept:
    positions: tuple[int, ...]
    answers: AnswersOfRows


class KeptAnswers:
    """The kept answers of one profile on one cluster."""

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster, nominations: Nominations) -> None:
        self._runtime = runtime
        self._cluster = cluster
        self._nominations = nominations
        self._kept: BoundedCache[Hashable, _Kept] = BoundedCache(MAX_KEY_BYTES, largest=LARGEST_KEY_BYTES)

    def of(self, purpose: Hashable, state: CycleState, pod: PodInfo, none_yet: Callable[[], A]) -> A | None:
        """Return the answers that still hold, to be added to. No caller keeps the object over a change of the cluster.

        Add nothing about the row that the pod itself is nominated to, and believe nothing about it: other pods are told otherwise.

        Args:
            purpose: the question that is answered, with everything that the answers depend on besides pod and row.
            state: the state that PreFilter left; it tells whether a filter that looks at other rows has a say.
            pod: the pod that is asked about.
            none_yet: makes an empty object; one purpose is kept by one class.

        Returns:
            The kept object; None if nothing can be kept.
        """
        if pod.pod_group is not None or self._nominations.with_terms or self._cluster.dry_run_rows() or self._looks_around(state):
            return None
        signature = self._runtime.sign(pod)
        if signature is None:
            return None
        # The priority decides which pods may be evicted, and which nominated pods count.
        key = (purpose, signature, pod.priority)
        kept = self._kept.get(key)
        if kept is None:
            kept = _Kept(self._positions(), none_yet())
            if not self._kept.put(key, kept, bytes_of(key, LARGEST_KEY_BYTES)):
                return None
            self._bound()
        else:
            self._forget_changed(kept)
        return cast(A, kept.answers)

    def own_row(self, pod: PodInfo) -> int | None:
        """Return the row that a pod is nominated to.

        Returns:
            None if it is nominated to no node that is there.
        """
        node = self._nominations.node_of(pod.uid)
        return None if node is None else self._cluster.row(node)

    def _looks_around(self, state: CycleState) -> bool:
        return any(plugin.reads is Reads.CLUSTER and plugin.name not in state.skip_filter for plugin in self._runtime.filter)

    def _logs(self) -> Iterator[Log[int]]:
        cluster = self._cluster
        yield from (cluster.node_journal, cluster.pod_journal, cluster.version_journal)

    def _positions(self) -> tuple[int, ...]:
        return (*(log.position for log in self._logs()), self._nominations.changes.position)

    def _forget_changed(self, kept: _Kept) -> None:
        now = self._positions()
        if now == kept.positions:
            return
        changed = [log.since(position) for log, position in zip(self._logs(), kept.positions, strict=False)]
        nodes = self._nominations.changes.since(kept.positions[-1])
        kept.positions = now
        # A log that has forgotten the time since then may have held any row.
        if nodes is None or any(rows is None for rows in changed):
            kept.answers.clear()
            return
        for rows in changed:
            kept.answers.forget(rows or ())
        kept.answers.forget([row for node in nodes if (row := self._cluster.row(node)) is not None])

    def _bound(self) -> None:
        while len(self._kept) > 1 and len(self._kept) * max(self._cluster.size, 1) > MAX_ANSWERS:
            self._kept.drop_oldest()


#: Purpose of kept answers: the verdicts of rows that refuse the pod, None for the others.
_WITH_NOMINATED_PODS: Final = "with nominated pods"
#: Number of rows from which on it pays to ask for all of them together.
_WORTH_TRIALS: Final = 4


class NoNominations(Nominations):
    """No nominated pods, for evaluations outside a running scheduler. Nothing can be nominated here."""

    changes = NominationChanges()
    with_terms = 0
    making_room_for: Container[str] = ()
    kept_for: Mapping[str, KeptFor] = MappingProxyType({})
    together: Container[GroupRef] = ()

    def node_of(self, uid: str) -> NodeName | None:
        """Return None."""
        return None

    def nodes(self) -> Collection[NodeName]:
        """Return no node."""
        return ()

    def pods_on(self, node: NodeName) -> Collection[PodInfo]:
        """Return no pod."""
        return ()

    def add(self, pod: PodInfo, node: NodeName) -> None:
        """Nominate no pod."""
        return

    def delete(self, uid: str) -> object:
        """Return None: no pod is nominated."""
        return None

    def claimants(self) -> Iterable[tuple[PodInfo, NodeName]]:
        """Return no pod."""
        return ()


class RowChecker:
    """Runs one profile's PreFilter and Filter on rows.

    Attributes:
        kept: answers about rows, for pods that look alike.
    """

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster, nominations: Nominations) -> None:
        self.nominations = nominations
        self._runtime = runtime
        self._cluster = cluster
        self._checked: tuple[PodInfo, PodColumns] | None = None
        self.kept = KeptAnswers(runtime, cluster, nominations)

    def check_row(self, pod: PodInfo, row: int) -> Status:
        """Run PreFilter and Filter on one row, with and without the pods nominated there; see `Handle.check_row`.

        Returns:
            SUCCESS, or the first rejection with the plugin's name.

        Raises:
            CycleError: a plugin broke.
        """
        status = self.with_nominated_pods(pod, row)
        if status is not None and not status.ok:
            return status
        # Also without them: the pod must not rely on a nominated pod that may never come (affinity to it, say).
        return self._check_as_it_stands(pod, row)

    def with_nominated_pods(self, pod: PodInfo, row: int) -> Status | None:
        """Judge a row with the nominated pods of at least this priority added.

        Returns:
            The verdict; None if no such pod is nominated there.

        Raises:
            CycleError: a plugin broke.
        """
        name = self._cluster.names[row]
        if name is None:
            return None
        others = self._in_the_way(pod, name)
        if not others:
            return None
        with self._cluster.dry_run_on_row(add=others, row=row):
            return self._check_as_it_stands(pod, row)

    def _in_the_way(self, pod: PodInfo, node: NodeName) -> list[PodInfo]:
        """Pods nominated to this node, beside which the pod must fit."""
        fellows = self.nominations.together if pod.pod_group in self.nominations.together else ()
        return [other for other in self.nominations.pods_on(node) if self._comes_before(other, pod) and other.pod_group not in fellows]

    def kept_for(self, pod: PodInfo, row: int) -> KeptFor | None:
        """Find the group that a row is kept for, as far as that concerns a pod.

        Returns:
            The group; None for a row that is not kept, or not from this pod.
        """
        name, kept_for = self._cluster.names[row], self.nominations.kept_for
        if name is None or not kept_for:
            return None
        return next((kept_for[other.uid] for other in self._in_the_way(pod, name) if other.uid in kept_for), None)

    def _comes_before(self, nominated: PodInfo, pod: PodInfo) -> bool:
        """Return True for another pod of at least this priority. A pod that is assumed by now counts on its node already."""
        return nominated.priority >= pod.priority and nominated.uid != pod.uid and self._cluster.placement(nominated.uid) is None

    def nominated_before(self, pod: PodInfo) -> list[tuple[PodInfo, NodeName]]:
        """Find the nominated pods whose claims come before the pod's; see `Handle.nominated_before`.

        Returns:
            The pods with their nodes, highest priority first.
        """
        own = pod.pod_group
        fellows = self.nominations.together if own in self.nominations.together else (own,)
        found = self.nominations.claimants()
        before = [each for each in found if self._comes_before(each[0], pod) and (own is None or each[0].pod_group not in fellows)]
        return sorted(before, key=lambda each: -each[0].priority)

    def _checked_columns(self, pod: PodInfo) -> PodColumns:
        """Return kept answers of local plugins about the pod, because preemption checks thousands of rows for one pod."""
        # By identity: preemption asks row after row with the same object, and a newer version of the pod is another one.
        if self._checked is None or self._checked[0] is not pod:
            self._checked = (pod, PodColumns(self._runtime))
        return self._checked[1]

    def _check_as_it_stands(self, pod: PodInfo, row: int) -> Status:
        columns = self._checked_columns(pod)
        state = CycleState(dict(columns.data))
        refusal, candidates, narrowed_by = pre_filter(self._runtime, state, pod, self._cluster, columns)
        if refusal is not None:
            return refusal
        if candidates is not None and self._cluster.names[row] not in candidates:
            return outside(narrowed_by)
        rows = np.array([row], np.intp)
        for plugin in self._runtime.filter:
            if plugin.name in state.skip_filter or plugin.filter(state, pod, self._cluster, rows)[0]:
                continue
            return plugin.explain(state, pod, self._cluster, rows)[0].status.by(plugin.name)
        return SUCCESS

    def trials(self, pod: PodInfo, rows: Iterable[int] | None = None) -> RowwiseCheck:
        """Return `check_row` for many rows at once; see `Handle.trials`.

        Args:
            pod: any.
            rows: the rows that will be asked about; None: any.

        Raises:
            CycleError: a plugin broke.
        """
        rows = self._nominated_rows() if rows is None else rows
        return RowwiseCheck(self._runtime, self._cluster, pod, self._nominated_beside(pod, rows))

    def rejected_with_nominated_pods(
        self, pod: PodInfo, among: frozenset[NodeName] | None, state: CycleState | None = None
    ) -> RowRejections:
        """Find the rows where the pod does not fit beside the pods nominated there.

        Args:
            pod: the pod of the attempt.
            among: names of the only nodes to look at; None: all.
            state: the state that PreFilter left; None: nothing is kept.

        Raises:
            CycleError: a plugin broke.
        """
        size, names = self._cluster.size, self._cluster.names
        kept = None if state is None else self.kept.of(_WITH_NOMINATED_PODS, state, pod, BesideNominated)
        if kept is None:
            rows = [row for row in self._nominated_rows() if among is None or names[row] in among]
            return RowRejections(size).put(self._rejected_beside(pod, self._nominated_rows(), rows).items())
        own = self.kept.own_row(pod)
        self._look_again(kept, pod, among, own)
        rejections = kept.rejections
        if among is not None:
            rejections = rejections.only(rows_named(self._cluster, among))
        if own is not None and (among is None or names[own] in among):
            rejections = rejections.but(own, self._rejected_beside(pod, [own], [own]).get(own))
        return rejections

    def _look_again(self, kept: BesideNominated, pod: PodInfo, among: Container[NodeName] | None, own: int | None) -> None:
        """Bring up to date the verdicts on these nodes, except the row that the pod itself is nominated to."""
        names, nominations = self._cluster.names, self.nominations
        stale = kept.begin(self._cluster.size, self._nominated_rows)
        looked_at = [row for row in stale if row != own and (among is None or names[row] in among)]
        nominated = [row for row in looked_at if (name := names[row]) is not None and nominations.pods_on(name)]
        found = self._rejected_beside(pod, nominated, nominated)
        kept.rejections.put((row, found.get(row)) for row in looked_at)
        stale.difference_update(looked_at)

    def _rejected_beside(self, pod: PodInfo, nominated_rows: Iterable[int], among: Iterable[int]) -> dict[int, Status]:
        """Judge some of the rows to which pods are nominated."""
        nominated = self._nominated_beside(pod, nominated_rows)
        rows = [row for row in among if row in nominated]
        verdicts: dict[int, Status] = {}
        if len(rows) >= _WORTH_TRIALS:
            together = RowwiseCheck(self._runtime, self._cluster, pod, nominated)
            rejections, unsettled = together.check_with_nominated_pods(np.array(rows, np.intp))
            verdicts = {row: status for status, rejected in rejections for row in rejected.tolist()}
            rows = unsettled.tolist()
        for row in rows:
            status = self.with_nominated_pods(pod, row)
            if status is not None and not status.ok:
                verdicts[row] = status
        return verdicts

    def _nominated_rows(self) -> list[int]:
        return [row for name in self.nominations.nodes() if (row := self._cluster.row(name)) is not None]

    def _nominated_beside(self, pod: PodInfo, rows: Iterable[int]) -> dict[int, list[PodInfo]]:
        """By row, of these, the nominated pods beside which the pod must fit.

        Terms that nominated pods carry reach other rows, so if any pod carries some, all rows count.
        """
        rows, names = self._nominated_rows() if self.nominations.with_terms else rows, self._cluster.names
        named = ((row, name) for row in rows if (name := names[row]) is not None)
        return {row: others for row, name in named if (others := self._in_the_way(pod, name))}


_NO_ROWS: Final[Rows] = np.zeros(0, np.intp)


class RowwiseCheck:
    """Implements `interface.RowTrials` for one pod. As upstream, PreFilter is run once, before anything is changed.

    A filter that reads the cluster and cannot judge rows apart is left out, with all filters after it: then no row is settled that passes
    those before it.
    """

    def __init__(self, runtime: ProfileRuntime, cluster: Cluster, pod: PodInfo, nominated: Mapping[int, Sequence[PodInfo]]) -> None:
        """`nominated`: by row, pods of at least this pod's priority that are nominated to that node. Raises `CycleError`."""
        self._runtime = runtime
        self._cluster = cluster
        self._pod = pod
        self._nominated = nominated
        with_nominated_pods = self._filters_with_nominated_pods() if nominated else None  # first, so that what these pods carry is known
        state = CycleState()
        refusal, candidates, self._narrowed_by = self._pre_filter(state)
        self._candidates = None if candidates is None else rows_named(cluster, candidates)
        filters = [] if refusal is not None else self._filters(state)
        self._judges = list(self._willing(filters, state))
        self.rows_are_apart = all(plugin.reads is not Reads.CLUSTER for plugin in filters)
        self._complete = refusal is None and len(self._judges) == len(filters)
        self._with_nominated_pods = self._complete and with_nominated_pods == filters
        self._carriers_version = cluster.pairwise_counts.carriers_version

    def check(self, rows: Rows) -> RowChecks:
        """Judge rows as the columns stand now; see `RowTrials.check`.

        Args:
            rows: shape (k,).

        Raises:
            CycleError: a plugin broke.
        """
        inside = rows if self._candidates is None else rows[self._candidates[rows]]
        rejections = [] if len(inside) == len(rows) else [Rejection(outside(self._narrowed_by), np.setdiff1d(rows, inside))]
        beside = RowChecks([], _NO_ROWS)
        if self._nominated:
            beside = self.check_with_nominated_pods(np.array([row for row in inside.tolist() if row in self._nominated], np.intp))
            inside = np.setdiff1d(inside, np.concatenate([beside.unsettled, *(rejected for _, rejected in beside.rejections)]))
        passing, rejected = self._check(inside)
        unsettled = beside.unsettled if self._complete else np.concatenate([beside.unsettled, passing])
        return RowChecks([*rejections, *beside.rejections, *rejected], unsettled)

    def check_with_nominated_pods(self, rows: Rows) -> RowChecks:
        """Judge rows with the pods that are nominated to them.

        Args:
            rows: shape (k,), each with nominated pods.

        Raises:
            CycleError: a plugin broke.
        """
        if not self._with_nominated_pods or not len(rows):
            return RowChecks([], rows)
        with self._cluster.dry_run() as dry_run:
            dry_run.add([(row, pod) for row in rows.tolist() for pod in self._nominated[row]])
            # The judges were made without some of these pods' terms.
            if self._cluster.pairwise_counts.carriers_version != self._carriers_version:
                return RowChecks([], rows)
            return RowChecks(self._check(rows)[1], _NO_ROWS)

    def _check(self, rows: Rows) -> tuple[Rows, list[Rejection]]:
        """Return the rows that no judge rejects, and the rejections of the others."""
        rejections: list[Rejection] = []
        for plugin, judge in self._judges:
            passes = judge.passes(rows)
            if not passes.all():
                rejections += [Rejection(status.by(plugin), rejected) for status, rejected in judge.explain(rows[~passes])]
                rows = rows[passes]
        return rows, rejections

    # --- before anything is changed --------------------------------------------------------------------------------------------

    def _pre_filter(self, state: CycleState) -> PreFiltered:
        return pre_filter(self._runtime, state, self._pod, self._cluster, PodColumns(self._runtime))

    def _filters(self, state: CycleState) -> list[FilterPlugin]:
        return [plugin for plugin in self._runtime.filter if plugin.name not in state.skip_filter]

    def _willing(self, filters: Sequence[FilterPlugin], state: CycleState) -> Iterator[tuple[str, RowVerdict]]:
        """Yield the judges of these filters, each with the filter's name, up to the first filter without one."""
        for plugin in filters:
            judge = self._judge(plugin, state)
            if judge is None:
                return
            yield plugin.name, judge

    def _judge(self, plugin: FilterPlugin, state: CycleState) -> RowVerdict | None:
        if plugin.reads is not Reads.CLUSTER:
            verdict = NodeVerdict if plugin.reads is Reads.NODE else PlainRowVerdict
            return verdict(plugin, state, self._pod, self._cluster)
        return plugin.judge(state, self._pod, self._cluster) if isinstance(plugin, RowwiseFilter) else None

    def _filters_with_nominated_pods(self) -> list[FilterPlugin] | None:
        """Return the filters that judge the pod beside the nominated pods; None if PreFilter refuses it there."""
        with self._cluster.dry_run() as dry_run:
            dry_run.add([(row, pod) for row, pods in self._nominated.items() for pod in pods])
            state = CycleState()
            return self._filters(state) if self._pre_filter(state).refusal is None else None
