"""Columns of the nodes that can serve claims. Each row and shape of demand is searched once, and again after a change.

Also the nodes that reach the devices of an allocated claim, and points for requests with alternatives. Source: kube-scheduler
`dynamicresources.go`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from placewright.api.boundedcache import forgets_unasked
from placewright.api.bytecount import bytes_of
from placewright.api.compatibility import Rule
from placewright.api.devices import DeviceRequest, ResourceClaim
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.selectors import compile_node_selector
from placewright.cluster.cluster import Cluster
from placewright.cluster.resources import grown
from placewright.framework.interface import BoolColumn, IntColumn, Rows
from placewright.framework.memory import NodeMemory
from placewright.plugins.dynamicresources.claims import NotReady, claims_of, extension_of
from placewright.plugins.dynamicresources.devices import Allocated, ClusterDevices, Refusal
from placewright.plugins.nodeaffinity import RequiredNodeAffinity

# --- where allocated claims can be used ------------------------------------------------------------------------------------------


_SELECTORS: Final = 256


class ClaimReach:
    """Columns of node selectors, kept until a node changes."""

    def __init__(self) -> None:
        self._memory = NodeMemory(_SELECTORS)

    def reaching(self, claim: ResourceClaim, cluster: Cluster) -> BoolColumn:
        """Return the rows from which the claim's devices can be used, all rows without a selector; shape (size,)."""
        allocation = claim.status.allocation
        selector = None if allocation is None else allocation.node_selector
        if selector is None:
            return cluster.present

        def reached() -> BoolColumn:
            return RequiredNodeAffinity(terms=compile_node_selector(selector)).column(cluster, cluster.all_rows)

        return self._memory.recall(cluster, selector, reached)


# --- requests with alternatives --------------------------------------------------------------------------------------------------


#: Most alternatives of a request. The first one scores 8 points, and each further one a point less.
MAX_WAYS: Final = 8


def has_preferences(claim: ResourceClaim) -> bool:
    """Return whether any request of the claim has alternatives."""
    return any(request.first_available for request in claim.spec.devices.requests or ())


def preference(claims: Sequence[ResourceClaim], answer: Allocated | Refusal | None) -> int:
    """Score an answer: 8 points for each request served by its first alternative, one less for each further one."""
    if not isinstance(answer, Allocated):
        return 0
    points = 0
    for claim, allocation in zip(claims, answer.allocations, strict=True):
        served = {result.request for result in allocation.devices.results or ()}
        points += sum(_points(request, served) for request in claim.spec.devices.requests or ())
    return points


def _points(request: DeviceRequest, served: set[str]) -> int:
    for position, way in enumerate(request.first_available or ()):
        if f"{request.name}/{way.name}" in served:
            return MAX_WAYS - position
    return 0


# --- answers by row --------------------------------------------------------------------------------------------------------------


#: Most shapes of demand whose answers are kept, and most bytes of all but the latest. An answer with devices takes some KB.
MAX_KEPT: Final = 64
MAX_KEPT_BYTES: Final = 64 * 2**20


class _ShapeAnswers:
    """Answers for one shape of demand: by row with the version of the row's devices, and as columns.

    Attributes:
        fits: rows that can serve the claims.
        points: scores of these rows; see `preference`.
        ending: rows whose answer ends the attempt.
        unfinished: rows whose search ran out of steps; `turn` says when.
        nbytes: bytes of all answers.
        asked: whether a pod asked since the last `forget_unasked`.
        position: position in the journal of changed rows for which the columns are right; -1 before they are filled.
        everywhere: count of changes of all rows for which the columns are right.
    """

    def __init__(self) -> None:
        self.found: dict[int, tuple[int, Allocated | Refusal]] = {}
        self.fits: BoolColumn = np.zeros(0, np.bool_)
        self.points: IntColumn = np.zeros(0, np.int64)
        self.ending: set[int] = set()
        self.unfinished: set[int] = set()
        self.nbytes = 0
        self.asked = True
        self.position = self.everywhere = self.turn = -1

    def note(self, row: int, answer: Allocated | Refusal | None, points: int) -> None:
        """Set the row's answer in all columns; None for a row without a node."""
        self.fits[row] = isinstance(answer, Allocated)
        self.points[row] = points
        refusal = answer if isinstance(answer, Refusal) else Refusal("")
        for rows, belongs in ((self.ending, refusal.ends_attempt), (self.unfinished, refusal.unfinished)):
            (rows.add if belongs else rows.discard)(row)


class RowAnswers:
    """Answers by row and shape of demand, so that the allocator searches only after a change.

    Attributes:
        gaps: counter of searches that ran out of steps or were continued; each makes earlier columns invalid.
        nbytes: bytes of all answers.
    """

    def __init__(self, cluster: Cluster, in_force: Callable[[Rule], bool] = lambda _: False) -> None:
        self.devices = ClusterDevices(cluster, in_force)
        self.gaps = 0
        self._cluster = cluster
        self._kept: OrderedDict[tuple[bytes, ...], _ShapeAnswers] = OrderedDict()
        self.nbytes = 0
        forgets_unasked(self)

    def forget_unasked(self) -> None:
        """Drop the shapes of claims that no pod asked for since the last call."""
        for signature, answers in list(self._kept.items()):
            if not answers.asked:
                self.nbytes -= self._kept.pop(signature).nbytes
            answers.asked = False

    def fits(self, claims: Sequence[ResourceClaim], signature: tuple[bytes, ...], rows: Rows) -> BoolColumn:
        """Return which rows can serve all claims; shape (len(rows),). `signature` has the shapes of the claims."""
        self.devices.refresh()
        column = self.devices.candidates(claims)
        if column is None:
            column = self._columns(claims, signature).fits
        fits: BoolColumn = column[rows]
        return fits

    def ending(self, claims: Sequence[ResourceClaim], signature: tuple[bytes, ...], rows: Rows) -> Refusal | None:
        """Find the first of these rows whose answer ends the attempt, and return its refusal; None if there is none."""
        return self._first(claims, signature, rows, lambda answers: answers.ending)

    def unfinished(self, claims: Sequence[ResourceClaim], signature: tuple[bytes, ...], rows: Rows) -> Refusal | None:
        """Return why no node can be chosen yet: no row serves the claims, and one of these ran out of steps. None otherwise."""
        return self._first(claims, signature, rows, lambda answers: set() if answers.fits.any() else answers.unfinished)

    def _first(
        self, claims: Sequence[ResourceClaim], signature: tuple[bytes, ...], rows: Rows, among: Callable[[_ShapeAnswers], set[int]]
    ) -> Refusal | None:
        self.devices.refresh()
        if self.devices.candidates(claims) is not None:  # then every selector has an answer everywhere
            return None
        answers = self._columns(claims, signature)
        found = among(answers)
        row = next((row for row in rows.tolist() if row in found), None) if found else None
        answer = None if row is None else self._answer(answers, row, claims)
        return answer if isinstance(answer, Refusal) else None

    def points(self, claims: Sequence[ResourceClaim], signature: tuple[bytes, ...], rows: Rows) -> IntColumn:
        """Return the points of these rows; shape (len(rows),)."""
        self.devices.refresh()
        points: IntColumn = self._columns(claims, signature).points[rows]
        return points

    def answer(self, claims: Sequence[ResourceClaim], signature: tuple[bytes, ...], row: int) -> Allocated | Refusal:
        """Return the devices that these claims get on a row, or why they get none."""
        self.devices.refresh()
        return self._answer(self._answers(signature), row, claims)

    def _answers(self, signature: tuple[bytes, ...]) -> _ShapeAnswers:
        answers = self._kept.get(signature)
        if answers is None:
            answers = self._kept[signature] = _ShapeAnswers()
        else:
            self._kept.move_to_end(signature)
            answers.asked = True
        while len(self._kept) > MAX_KEPT or (self.nbytes > MAX_KEPT_BYTES and len(self._kept) > 1):
            self.nbytes -= self._kept.popitem(last=False)[1].nbytes
        return answers

    def _columns(self, claims: Sequence[ResourceClaim], signature: tuple[bytes, ...]) -> _ShapeAnswers:
        """Return the answers with columns that are right for every row."""
        answers, size = self._answers(signature), self._cluster.size
        searched_on = bool(answers.unfinished) and answers.turn != self.devices.turn
        for row in self._stale(answers, size):
            answer = self._answer(answers, row, claims) if self._cluster.present[row] else None
            answers.note(row, answer, preference(claims, answer))
        answers.position, answers.everywhere = self.devices.inventory.changed_rows.position, self.devices.inventory.everywhere
        if searched_on or (answers.unfinished and answers.turn != self.devices.turn):
            self.gaps += 1
        answers.turn = self.devices.turn
        return answers

    def _stale(self, answers: _ShapeAnswers, size: int) -> Iterable[int]:
        """Find the rows that must be searched again."""
        journal, everywhere = self.devices.inventory.changed_rows, self.devices.inventory.everywhere
        changed = journal.since(answers.position) if answers.position >= 0 and answers.everywhere == everywhere else None
        before = len(answers.fits)
        if before < size:
            answers.fits, answers.points = grown(answers.fits, size), grown(answers.points, size)
        if changed is None:
            return range(size)
        unfinished = answers.unfinished if answers.turn != self.devices.turn else ()
        return {*(row for row in changed if row < size), *range(before, size), *unfinished}

    def _answer(self, answers: _ShapeAnswers, row: int, claims: Sequence[ResourceClaim]) -> Allocated | Refusal:
        version = self.devices.inventory.version(row)
        known = answers.found.get(row)
        if known is not None and known[0] == version:
            return known[1]
        answer = self.devices.allocate(row, claims)
        if isinstance(answer, Allocated) or not answer.error:  # errors name a claim, and other claims have this shape too
            answers.found[row] = (version, answer)
            grown_by = bytes_of(answer) - (0 if known is None else bytes_of(known[1]))
            answers.nbytes += grown_by
            self.nbytes += grown_by
        return answer


# --- devices of nominated pods ---------------------------------------------------------------------------------------------------
# Preemption made room for such a pod. Its claims get their devices with its Binding. Until then pods of no higher priority see these
# devices as taken. Otherwise a waiting pod would take them, and the victims would have left in vain. kube-scheduler keeps none for them.


#: Most nominated pods whose devices are kept, by importance: each costs a search on one node whenever anything changes.
MOST_PODS: Final = 16

#: Claims with the devices that they will get, by a key that no claim in the cluster has.
KeptClaims = Mapping[str, ResourceClaim]
NOTHING_KEPT: Final[KeptClaims] = {}


def devices_kept(nominated: Iterable[tuple[PodInfo, NodeName]], cluster: Cluster, devices: ClusterDevices) -> KeptClaims:
    """Find the devices that nominated pods, the most important first, will get, one pod after another.

    Return the pods' unallocated claims with these devices; afterwards `devices` counts them as taken. A pod that gets none now keeps none.
    """
    kept: dict[str, ResourceClaim] = {}
    devices.inventory.keep(kept)
    searched = 0
    for pod, node in nominated:
        row = cluster.row(node)
        claims = [] if row is None else _wanted(pod, cluster, row)
        if row is None or not claims or searched == MOST_PODS:
            continue
        searched += 1
        devices.refresh()
        found = devices.check(claims)
        answer = devices.allocate(row, claims) if found.ok else None
        if isinstance(answer, Allocated):
            for claim, allocation in zip(claims, answer.allocations, strict=True):
                kept[f"nominated/{claim.metadata.uid}"] = replace(claim, status=replace(claim.status, allocation=allocation))
            devices.inventory.keep(kept)
    return kept


def _wanted(pod: PodInfo, cluster: Cluster, row: int) -> list[ResourceClaim]:
    """Return the pod's claims that need devices on the node of a row."""
    try:
        wanted = [claim for claim in claims_of(pod, cluster.objects.devices.claims) if claim.status.allocation is None]
    except NotReady:
        return []
    extension = extension_of(pod, cluster)
    if extension is None or extension.stale is not None:
        return wanted
    code = extension.code_of(cluster, row)
    return [*wanted, extension.variant(code).claim] if code else wanted
