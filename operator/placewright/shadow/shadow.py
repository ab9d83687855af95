"""A shadow replays its tape in a world of its own. It decides the pods that the live profile decided, and compares the decisions."""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from typing import Final

from placewright.api.pods import PodInfo
from placewright.api.profile import ShadowStatus
from placewright.cluster.cluster import Cluster
from placewright.cluster.podfollowers import PodFollower
from placewright.framework.runtime.evaluation import Evaluator
from placewright.framework.runtime.guard import why
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.scheduler.ports import Clock
from placewright.shadow.chooser import Chooser, Found, ShadowCluster
from placewright.shadow.figures import Disagreement, Figures, empty, uses
from placewright.shadow.pace import ShadowPace
from placewright.shadow.podgroups import together
from placewright.shadow.tape import Decided, Entry, EntryKind, Tape

_logger = logging.getLogger(__name__)

#: Seconds for which a shadow works in one turn of the event loop; a single decision may take longer.
PIECE_SECONDS: Final = 0.001
#: Least seconds between two reports, because a report walks over all nodes.
REPORT_SECONDS: Final = 2.0
_MAX_ERROR: Final = 500

Build = Callable[[ResolvedProfile, Cluster], Evaluator]


class Shadow:
    """The shadow of one generation of a profile. Its errors are counted and logged, and it raises none.

    Attributes:
        profile: that generation.
        tape: events and decisions that it has not replayed yet.
        pace: decides when it may work.
        figures: its counts.
        report: the last report, some seconds old at most.
        errors: number of its errors.
        last_error: text of the last error.
        restarts: number of times that it began anew because its tape was full.
    """

    def __init__(self, profile: ResolvedProfile, live: Cluster, build: Build, clock: Clock, now: Callable[[], datetime], seed: int) -> None:
        """Begin at the first `work`.

        Args:
            profile: profile whose plugins decide.
            live: the live cluster.
            build: makes the plugins of a profile around a cluster.
            clock: seconds.
            now: time of day, for reports.
            seed: seed of the choices among nodes of equal totals.
        """
        self.profile = profile
        self.tape = Tape()
        self.pace = ShadowPace(profile.shadow_budget, clock)
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
        self._follower: PodFollower | None = None
        self._anew()
        self.figures = self._new_figures(0)
        self.report = self._status()

    @property
    def idle(self) -> bool:
        """True while there is no work until the next entry on the tape."""
        return not (self._behind or self._retries or self._retry_due or self._report_due)

    @property
    def _behind(self) -> bool:
        return self._to_begin or self._filling or self.tape.torn or self._decision is not None or len(self.tape) > 0

    # --- work ----------------------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Do a piece of the work. It is called when `pace` allows it, and logs errors instead of raising them."""
        until = self._clock() + PIECE_SECONDS
        with self.pace.piece(), self._logging():
            if self._to_begin or self.tape.torn:
                self._begin()
            while self._step() and self._clock() < until:
                pass
            if self._report_due:
                self._tell()

    @contextmanager
    def _logging(self) -> Iterator[None]:
        """Count and log an exception of the block, because an error of a shadow's plugin must not end the scheduler."""
        try:
            yield
        except MemoryError:
            raise
        except Exception as problem:
            self.errors += 1
            self.last_error = why(problem)[:_MAX_ERROR]
            self._changed = True
            level = logging.WARNING if self.errors == 1 else logging.DEBUG
            _logger.log(level, "shadow %s: %s", self.profile.name, self.last_error, exc_info=problem if self.errors == 1 else None)

    def _anew(self) -> None:
        """Begin with an empty world."""
        #: The decision under way. It ends in the world in which it began.
        self._decision: Generator[None, None, object] | None = None
        self._world = ShadowCluster(self._live)
        self._chooser: Chooser | None = None
        self._picture: Iterator[Entry] = iter(())
        self._filling = False
        self._retries: deque[str] = deque()

    def _begin(self) -> None:
        """Begin anew with the live cluster as it is now, without earlier decisions."""
        self.restarts += self.tape.torn
        self._to_begin = False
        self.tape.mend()
        self._anew()
        self._picture = _picture(self._live)
        self._filling = True
        self._chooser = Chooser(self._world, self._build(self.profile, self._world.cluster), self._rng)
        self._listen_for_readiness()

    def _listen_for_readiness(self) -> None:
        """Let the live cluster report pods that become Ready, if a plugin of the shadow counts pods that are not."""
        follower = PodFollower() if self._world.cluster.pod_followers.follow_readiness else None
        if follower is not None:
            self._live.pod_followers.add(follower)
        self._follower = follower

    def _step(self) -> bool:
        """Go on with the decision under way, replay an entry, or retry a waiting pod. Return False if there is nothing to do."""
        if self._decision is not None:
            self._changed = True  # at each step: a report may have come since the last one
            with self._logging():
                if next(self._decision, self) is not self:
                    return True
            self._decision = None
            return True
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
        self._decision = self._retry(self._retries.popleft())
        return True

    @property
    def _retry_due(self) -> bool:
        return self._world.roomier and bool(self._world.waiting) and not self._retries

    def _take(self, entry: Entry) -> None:
        kind, subject, where = entry
        world = self._world
        self._changed = True
        with self._logging():
            if kind is EntryKind.DECISION:
                self._decision = self._decide(subject)
            elif kind is EntryKind.POD_STANDS:
                world.pod_stands(subject, where)
            else:
                getattr(world, kind.name.lower())(subject)

    # --- decisions -----------------------------------------------------------------------------------------------------------

    def _decide(self, members: Sequence[Decided]) -> Generator[None]:
        """Decide what the live profile decided: a pod, or members of a group with its waiting members. Yield after each.

        A pod for which the shadow chooses no node is on its real node.
        """
        try:
            fresh = [member for member in members if self._fresh(member)]
            pod = members[0].pod
            if fresh:
                found = yield from together(self._world, self._ready, pod.pod_group, (*self._waiting_with(pod), *fresh))
                for member in fresh:
                    self._conclude(member, found.get(member.pod.uid))
        finally:
            for member in members:
                self._settle(member)

    @property
    def _ready(self) -> Chooser:
        if self._chooser is None:
            raise RuntimeError("its plugins could not be built")
        return self._chooser

    def _fresh(self, decided: Decided) -> bool:
        """Return whether a pod was not decided before. Figures begin anew with another generation of the live profile."""
        if not self.figures.live_generation:
            self.figures.live_generation = decided.generation
        elif decided.generation != self.figures.live_generation:
            self.figures = self._new_figures(decided.generation)
        return not self._world.knows(decided.pod.uid)

    def _settle(self, decided: Decided) -> None:
        if decided.choice is not None and not self._world.knows(decided.pod.uid):
            self._world.pod_stands(decided.pod, decided.choice.node)

    def _conclude(self, decided: Decided, found: Found | None) -> None:
        """Count a decision, with the regret of each node by the other profile's totals, if they are known."""
        live, figures = decided.choice, self.figures
        if found is None and live is not None:
            self._world.wait(decided.pod)
        here, there = None if found is None else found.node, None if live is None else live.node
        figures.count(here, there)
        if here != there:
            totals = None if found is None else found.totals
            points = None if totals is None else totals[0] - totals[1]
            figures.differences.append(Disagreement(decided.pod.namespace, decided.pod.name, here, there, points))
        if found is None or live is None:
            return
        if not found.feasible:
            figures.not_feasible += 1
        elif found.totals is not None:
            figures.regret.add(*found.totals)
        best, other = live.total(live.node), live.total(found.node)
        if best is not None and other is not None:
            figures.live_regret.add(best, other)

    def _retry(self, uid: str) -> Generator[None]:
        """Try a waiting pod again after a change that may have made room, with the waiting members of its group. It is no decision."""
        pod = self._world.waiting.get(uid)
        if pod is None:
            return
        members = self._waiting_with(pod)
        if members:
            uids = {member.pod.uid for member in members}
            self._retries = deque(uid for uid in self._retries if uid not in uids)
        yield from together(self._world, self._ready, pod.pod_group, members or [Decided(pod, 0, None)])

    def _waiting_with(self, pod: PodInfo) -> list[Decided]:
        """Return the waiting members of a pod's group; none for a pod without a group."""
        ref = pod.pod_group
        return [] if ref is None else [Decided(each, 0, None) for each in self._world.waiting.values() if each.pod_group == ref]

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
        self.report = self._status()

    def _status(self) -> ShadowStatus:
        alive = self._clock() - self._began
        return ShadowStatus(
            **self.figures.told(),
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
    """Return entries that describe the live cluster at this moment. Later changes do not show in them."""
    objects, nodes, placements = tuple(live.objects.shown()), tuple(live.nodes()), tuple(live.placements())
    return chain(
        ((EntryKind.OBJECT_PUT, item, None) for item in objects),
        ((EntryKind.NODE_SET, node, None) for node in nodes),
        ((EntryKind.POD_STANDS, pod, node) for pod, node, _ in placements),
    )
