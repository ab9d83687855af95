"""One shadow: replays its tape in a world of its own, decides what the live profile decided, and compares."""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.profile import ShadowStatus
from placewright.cluster.cluster import Cluster
from placewright.framework.evaluation import Evaluation, Evaluator
from placewright.framework.interface import IntColumn
from placewright.framework.resolved import ResolvedProfile
from placewright.queue.nominator import Nominator
from placewright.scheduler.cycle import NoPlacement, SchedulingCycle
from placewright.scheduler.ports import Clock
from placewright.scheduler.selection import choose
from placewright.scheduler.shadow.figures import Figures
from placewright.scheduler.shadow.pace import Pace
from placewright.scheduler.shadow.tape import Decided, Entry, Kind, LiveChoice, Tape
from placewright.scheduler.shadow.utilisation import empty, uses
from placewright.scheduler.shadow.world import World

_logger = logging.getLogger(__name__)

#: How long a shadow works before others get their turn, in seconds; a single decision may take longer.
PIECE_SECONDS: Final = 0.001
#: Between two reports, in seconds: they walk over all nodes.
REPORT_SECONDS: Final = 2.0
_MAX_ERROR: Final = 500

Build = Callable[[ResolvedProfile, Cluster], Evaluator]


class _Found(NamedTuple):
    """The shadow's choice; `totals` None where a single node fits, which is not scored."""

    row: int
    evaluation: Evaluation
    totals: IntColumn | None


class Shadow:
    """Made for one generation of a profile; nothing that goes wrong in it leaves it.

    Attributes:
        profile: that generation.
        tape: where others note what happens.
        pace: when it may work on.
        figures: what it has counted.
        errors, last_error: what broke in it.
        restarts: how often it began anew, because too much news waited.
    """

    def __init__(self, profile: ResolvedProfile, live: Cluster, build: Build, clock: Clock, now: Callable[[], datetime], seed: int) -> None:
        """`build` makes the plugins of a profile around a cluster; `now` is for people, `clock` in seconds."""
        self.profile = profile
        self.tape = Tape()
        self.pace = Pace(profile.shadow_budget, clock)
        self.errors = 0
        self.last_error = ""
        self.restarts = 0
        self._live = live
        self._build = build
        self._clock = clock
        self._now = now
        self._rng = random.Random(seed)
        self._began = clock()
        self._reported = self._began
        self._changed = True
        self._to_begin = True
        self._world: World
        self._cycle: SchedulingCycle
        self._evaluator: Evaluator | None
        self._picture: Iterator[Entry]
        self._filling: bool
        self._retries: deque[str]
        self._anew()
        self.figures = self._new_figures(0)
        self._report = self._status()

    @property
    def report(self) -> ShadowStatus:
        """How it compares, as of a moment ago."""
        return self._report

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do before more happens."""
        return not (self._behind or self._retries or self._retry_due or self._report_due)

    @property
    def _behind(self) -> bool:
        return self._to_begin or self._filling or self.tape.torn or len(self.tape) > 0

    # --- work ----------------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """A piece of what there is to do; to be called when `pace` says so. Never raises."""
        until = self._clock() + PIECE_SECONDS
        with self.pace.piece():
            try:
                if self._to_begin or self.tape.torn:
                    self._begin()
                while self._step() and self._clock() < until:
                    pass
                if self._report_due:
                    self._tell()
            except Exception as problem:  # noqa: BLE001 - its plugins are anybody's code, and it must not hurt anybody
                self._broke(problem)

    def _begin(self) -> None:
        """With the cluster as it is now, and nothing that was decided before."""
        self.restarts += self.tape.torn
        self._to_begin = False
        self.tape.mend()
        self._anew()
        self._picture = _picture(self._live)
        self._filling = True
        self._evaluator = self._build(self.profile, self._world.cluster)

    def _anew(self) -> None:
        """An empty world."""
        self._world = World()
        self._cycle = SchedulingCycle(self._world.cluster, Nominator(), self._rng)
        self._evaluator = None
        self._picture = iter(())
        self._filling = False
        self._retries = deque()

    def _step(self) -> bool:
        """One entry, the picture of the beginning first; or one pod that waits. False where there was nothing."""
        entry = next(self._picture, None) if self._filling else self.tape.take()
        if entry is not None:
            self._take(entry)
            return True
        if self._filling:
            self._filling = False
            return True
        if self._retry_due:
            self._world.roomier = False
            self._retries = deque(self._world.waiting)
        if not self._retries:
            return False
        self._retry(self._retries.popleft())
        return True

    @property
    def _retry_due(self) -> bool:
        return self._world.roomier and bool(self._world.waiting) and not self._retries

    def _take(self, entry: Entry) -> None:
        kind, subject, where = entry
        world = self._world
        self._changed = True
        try:
            if kind is Kind.DECISION:
                self._decided(subject)
            elif kind is Kind.POD_STANDS:
                world.pod_stands(subject, where)
            elif kind is Kind.POD_LEFT:
                world.pod_left(subject)
            elif kind is Kind.NODE_SET:
                world.node_set(subject)
            elif kind is Kind.NODE_REMOVED:
                world.node_removed(subject)
            elif kind is Kind.OBJECT_PUT:
                world.object_put(subject)
            else:
                world.object_removed(subject)
        except Exception as problem:  # noqa: BLE001 - as above
            self._broke(problem)

    def _broke(self, problem: Exception) -> None:
        self.errors += 1
        self.last_error = f"{type(problem).__name__}: {problem}"[:_MAX_ERROR]
        self._changed = True
        level = logging.WARNING if self.errors == 1 else logging.DEBUG
        _logger.log(level, "shadow %s: %s", self.profile.name, self.last_error, exc_info=problem if self.errors == 1 else None)

    # --- decisions -----------------------------------------------------------------------------------------------------------

    def _decided(self, decided: Decided) -> None:
        """Decide, too; without a decision of its own the pod is where it really is."""
        try:
            self._decide(decided)
        finally:
            if decided.choice is not None and not self._world.knows(decided.pod.uid):
                self._world.pod_stands(decided.pod, decided.choice.node)

    def _decide(self, decided: Decided) -> None:
        pod, live = decided.pod, decided.choice
        if not self.figures.live_generation:
            self.figures.live_generation = decided.generation
        elif decided.generation != self.figures.live_generation:
            self.figures = self._new_figures(decided.generation)
        if self._world.knows(pod.uid):
            return  # it was decided at an earlier attempt of the live profile
        found = self._find(pod, live)
        node = None if found is None else self._name(found.row)
        if node is not None:
            self._world.choose(pod, node)
        elif live is not None:
            self._world.wait(pod)
        self.figures.count(node, None if live is None else live.node)
        if found is not None and node is not None and live is not None:
            self._compare(found, node, live)

    def _find(self, pod: PodInfo, live: LiveChoice | None = None) -> _Found | None:
        """The best node in this world; among equally good ones that of the live profile, so that chance alone makes no difference."""
        evaluator = self._evaluator
        if evaluator is None:
            raise RuntimeError("its plugins could not be built")
        try:
            evaluation = self._cycle.evaluate(evaluator, pod)
        except NoPlacement as failure:
            if failure.internal:
                raise
            return None
        if evaluation.count == 0:
            return None
        if evaluation.count > 1:
            self._cycle.sample(evaluator.runtime, evaluation)
        if evaluation.count == 1:
            return _Found(int(np.flatnonzero(evaluation.feasible)[0]), evaluation, None)
        totals = evaluator.score(evaluation)
        row = None if live is None else self._world.cluster.row(live.node)
        if row is None or totals[row] != totals.max():
            row = choose(totals, self._rng).row
        return _Found(row, evaluation, totals)

    def _compare(self, found: _Found, node: NodeName, live: LiveChoice) -> None:
        """How much worse each one's node is by the other's totals, as far as can be told."""
        row = self._world.cluster.row(live.node)
        if row is None or not found.evaluation.feasible[row]:
            self.figures.not_feasible += 1
        elif found.totals is not None:
            self.figures.regret.add(int(found.totals[found.row]), int(found.totals[row]))
        best, other = live.total(live.node), live.total(node)
        if best is not None and other is not None:
            self.figures.live_regret.add(best, other)

    def _retry(self, uid: str) -> None:
        """Something made room: perhaps for a pod that waits. This is no decision to be counted."""
        pod = self._world.waiting.get(uid)
        if pod is None:
            return
        self._changed = True
        try:
            found = self._find(pod)
            if found is not None:
                self._world.choose(pod, self._name(found.row))
        except Exception as problem:  # noqa: BLE001 - as above
            self._broke(problem)

    def _name(self, row: int) -> NodeName:
        name = self._world.cluster.names[row]
        assert name is not None
        return name

    # --- figures -------------------------------------------------------------------------------------------------------------

    def _new_figures(self, live_generation: int) -> Figures:
        self.tape.passed_over = 0
        return Figures(self._now().strftime("%Y-%m-%dT%H:%M:%SZ"), live_generation)

    @property
    def _report_due(self) -> bool:
        return (self._changed or self.tape.passed_over > 0) and self._clock() - self._reported >= REPORT_SECONDS

    def _tell(self) -> None:
        self.figures.passed_over += self.tape.passed_over
        self.tape.passed_over = 0
        self._changed = False
        self._reported = self._clock()
        self._report = self._status()

    def _status(self) -> ShadowStatus:
        figures, agreement = self.figures, self.figures.agreement
        alive = self._clock() - self._began
        return ShadowStatus(
            since=figures.since,
            live_generation=figures.live_generation,
            pods=figures.decided + figures.passed_over,
            decided=figures.decided,
            sampled_percent=round(100 * figures.sampled, 1),
            agreement_percent=None if agreement is None else round(100 * agreement, 1),
            same=figures.same,
            other=figures.other,
            live_only=figures.live_only,
            shadow_only=figures.shadow_only,
            neither=figures.neither,
            not_feasible=figures.not_feasible,
            regret=figures.regret.told,
            live_regret=figures.live_regret.told,
            empty_nodes=empty(self._world.cluster, self._live),
            resources=uses(self._world.cluster, self._live),
            pending=len(self._world.waiting),
            backlog=len(self.tape),
            restarts=self.restarts,
            time_percent=round(100 * self.pace.spent / alive, 2) if alive > 0 else 0.0,
            errors=self.errors,
            last_error=self.last_error,
        )


def _picture(live: Cluster) -> Iterator[Entry]:
    """The cluster as it is at this moment, as news: what is taken from it later has not changed since."""
    objects, nodes, placements = tuple(live.objects.shown()), tuple(live.nodes()), tuple(live.placements())
    return chain(
        ((Kind.OBJECT_PUT, item, None) for item in objects),
        ((Kind.NODE_SET, node, None) for node in nodes),
        ((Kind.POD_STANDS, pod, node) for pod, node, _ in placements),
    )
