"""The state of a world as the feed publishes it, and the pages of its nodes and pods. What differs is how the world goes on.

The time line of a world: refusals, pods that got their nodes, by profile, how long that took, and pods that waited.

A world has no attempts and no sub-queues, so it tells less than an operator does. Of attempts it has the conditions of refused pods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Final, Self

import numpy as np

from placewright.api.objects import NodeName
from placewright.explain.explanation import Explanation
from placewright.explain.observed import with_company, with_decision, with_verdicts, without_profile
from placewright.serving.rights import ALL_NAMESPACES, Rights
from placewright_console.local.seenworld import SeenWorld
from placewright_console.local.verdicts import LOCAL_SHARE, SeenPending, WaitingVerdicts
from placewright_console.pages.companypages import CompanyPages
from placewright_console.pages.marks import GenerationMarks, Marks
from placewright_console.pages.nodepage import node_page
from placewright_console.pages.noderows import ConsoleNodes
from placewright_console.pages.podpage import BEST_NODES, pod_page
from placewright_console.pages.shadowrows import shadow_rows, shadows_of
from placewright_console.pages.statedelta import Section, Sections
from placewright_console.pages.timeline import PlacementTally, Series, Spans, Timeline, Waiting
from placewright_console.pages.waitingpage import PodsAsked, pods_of_rows, waiting_page
from placewright_console.pages.waitingrows import waiting_rows

#: The figures that there are, for the pages.
FIGURES: Final = ("refusals", "bound", "waiting", "binding")
#: Seconds of a stretch of a world that goes on as it is looked at.
_STEP: Final = 5.0
_HOUR: Final = Spans()
#: Stretches that a recording is cut into, about.
_STRETCHES: Final = 240
#: Lengths of a stretch that people read easily, seconds.
_LENGTHS: Final = (1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)


class WorldTimeline:
    """Follows a world as changes are applied to it."""

    def __init__(self, world: SeenWorld, step: float = _STEP, spans: Spans = _HOUR) -> None:
        """Begin at the world's beginning.

        Args:
            world: world with no change applied yet.
            step: seconds of a stretch.
            spans: spans of the ring.
        """
        self._world = world
        self._step = step
        self._timeline = Timeline(spans)
        self._marks = Marks()
        self._generations = GenerationMarks(self._marks)
        self._last = 0.0
        world.take_placed()
        world.take_refused()
        self._timeline.tick(0.0, world.began, {}, {})
        self._generations.look(0.0, world.in_effect)

    @classmethod
    def of_recording(cls, world: SeenWorld, seconds: float) -> Self:
        """Make the time line of a whole recording.

        Args:
            world: world at its beginning.
            seconds: length of the recording.

        Returns:
            The time line, which drops nothing.
        """
        step = next((each for each in _LENGTHS if each * _STRETCHES >= seconds), seconds / _STRETCHES)
        whole = seconds + 2 * step
        return cls(world, step, Spans(step * 1.1, step * 1.1, whole, whole))

    def until(self, at: float) -> None:
        """End the stretches that are over at a moment. It is called before the changes of that moment are applied.

        Args:
            at: seconds after the beginning, not before the last call's.
        """
        if at >= self._last + self._step:
            self._tick(self._last + self._step)
        # Where nothing happened for long, the rest is one stretch, so that it does not thin out the stretch before.
        if at >= self._last + self._step:
            self._tick(self._last + self._step * ((at - self._last) // self._step))

    def finish(self, at: float) -> None:
        """End the last stretch.

        Args:
            at: the end of the recording, seconds after the beginning.
        """
        self.until(at)
        if at > self._last:
            self._tick(at)

    def changed(self, at: float) -> None:
        """Mark another generation of a profile. It is called after a change was applied.

        Args:
            at: seconds after the beginning.
        """
        self._generations.look(at, self._world.in_effect)

    def time(self) -> Section:
        """Return the section `time`."""
        return self._timeline.rows()

    def marks(self) -> Section:
        """Return the section `marks`."""
        return self._marks.rows(self._timeline.time_of_day)

    def _tick(self, at: float) -> None:
        self._last = at
        tally = PlacementTally()
        durations: dict[Series, list[float]] = defaultdict(list)
        for series, seconds in self._world.take_placed():
            durations[series].append(seconds)
        for (name, generation), each in durations.items():
            tally.placed(name, generation, np.array([]), np.array(each))
        for series in self._world.take_refused().elements():
            tally.failed(*series)
        waiting = Counter(self._world.series(pod.scheduler_name) for pod in self._world.pending.values())
        waits = {series: Waiting(active=pods) for series, pods in waiting.items()}
        self._timeline.tick(at, self._world.began + at, tally.take(), waits)


#: Seconds of evaluations between two looks at readers and time.
SLICE: Final = 0.02


class WorldSource:
    """A world, and the verdicts about its waiting pods.

    Attributes:
        world: the cluster at the moment that is shown.
        verdicts: verdicts about its waiting pods.
        timeline: timeline of the world; None for a world that stands still.
        can: words for the server's offers beyond the first pages, except for time and shadows, which depend on the world.
        company: the pages of groups and claims, and the verdicts about each node.
    """

    timeline: WorldTimeline | None = None

    def __init__(self, world: SeenWorld, about: dict[str, Any], clock: Callable[[], float], rest: float = 0.0) -> None:
        """Show a world.

        Args:
            world: world to show.
            about: rows of the section `about`: what the world is.
            clock: seconds, monotonic.
            rest: see `WaitingVerdicts`.
        """
        self.world = world
        self.verdicts = WaitingVerdicts(world, clock, rest)
        self.can: list[str] = []
        self.company = CompanyPages(world.cluster, SeenPending(world, self.verdicts), clock, LOCAL_SHARE)
        self._about = about
        self._nodes = ConsoleNodes(world.cluster, world.scheduler_names)
        self._names = world.scheduler_names

    def advance(self) -> bool:
        """Evaluate waiting pods for a moment.

        Returns:
            Whether there is more to do at once.
        """
        return self.verdicts.work(SLICE)

    def refresh(self, most: int | None = None) -> bool:
        """Bring the rows of nodes up to date.

        Args:
            most: rows at most; None for all.

        Returns:
            Whether there is more to do.
        """
        if self._names != self.world.scheduler_names:
            # A place in a row stands for a schedulerName, so all rows are made anew.
            self._names = self.world.scheduler_names
            self._nodes = ConsoleNodes(self.world.cluster, self._names)
        return self._nodes.refresh(most)

    def sections(self, rights: Rights) -> Sections:
        """Return the state. Implements the feed's `StateSource`."""
        self.refresh()
        about = {**self._about, **self._nodes.about(), **self.moment()}
        sections: dict[str, Section] = {
            "nodes": self._nodes.nodes,
            "loads": self._nodes.loads,
            "queue": waiting_rows(self.verdicts.waiting(), rights),
            "decisions": self.world.placements.rows(rights),
        }
        can = list(self.can)
        if self.timeline is not None:
            can.append("time")
            about["timeFigures"] = FIGURES
            sections |= {"time": self.timeline.time(), "marks": self.timeline.marks()}
        shadows = shadows_of(self.world.declared)
        if shadows:
            can.append("shadows")
            sections["shadows"] = shadow_rows(shadows, rights)
        return {"about": {**about, "can": can}, **sections}

    def moment(self) -> dict[str, Any]:
        """Return the rows of the section `about` that change."""
        return {"now": self.world.now, "notEvaluated": self.verdicts.unknown, "notes": list(self.world.remarks)}

    def release(self) -> None:
        """Keep all: the console may be opened again at any moment. Implements the feed's `StateSource`."""

    def node(self, name: str, rights: Rights = ALL_NAMESPACES) -> dict[str, Any] | None:
        """Return what runs on a node; None for an unknown one."""
        nominated = (pod for pod in self.world.pending.values() if pod.nominated_node == name)
        return node_page(self.world.cluster, NodeName(name), nominated, rights)

    def waiting(self, asked: PodsAsked, rights: Rights = ALL_NAMESPACES) -> dict[str, Any]:
        """Return a page of the pods of rows of the queue. O(waiting pods)."""
        return waiting_page(pods_of_rows(self.verdicts.waiting(), asked.rows, rights), asked.after)

    def pod(self, namespace: str, name: str, rights: Rights = ALL_NAMESPACES) -> dict[str, Any] | None:
        """Explain a pod as `placewright explain` does.

        Returns:
            The page; None for an unknown pod, and for one that may not be seen.
        """
        pod = self.world.pod(namespace, name) if rights.may_see(namespace) else None
        if pod is None:
            return None
        seen = self.world.observed()
        about = Explanation(pod.namespace, pod.name, pod.uid, pod.scheduler_name, node=pod.node_name or "")
        about = with_company(about, pod, seen)
        if pod.node_name:
            return pod_page(with_decision(about, pod), pod=pod)
        evaluator = self.world.evaluators.get(pod.scheduler_name)
        if evaluator is None:
            return pod_page(without_profile(about, pod, seen), pod=pod)
        return pod_page(with_verdicts(about, pod, evaluator, seen, BEST_NODES), evaluator, pod=pod)
