"""The state of a file as the feed publishes it, and the pages of its nodes and pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from placewright.api.bad_input import InputError
from placewright.api.objects import NodeName
from placewright.console.nodepage import node_page
from placewright.console.noderows import ConsoleNodes
from placewright.console.podpage import BEST_NODES, pod_page
from placewright.console.rights import ALL_NAMESPACES, Rights
from placewright.console.statedelta import Sections
from placewright.console.waitingrows import waiting_rows
from placewright.explain.explanation import Explanation
from placewright.explain.observed import with_company, with_decision, with_verdicts, without_profile
from placewright_lab.console.seenworld import SeenWorld
from placewright_lab.console.verdicts import WaitingVerdicts
from placewright_lab.snapshots.playback import SeenChange

#: Seconds of evaluations between two looks at readers and time.
_SLICE: Final = 0.02
#: Remarks about the file that the pages show.
_MOST_NOTES: Final = 20


class FileSource:
    """A file's cluster, its changes at their times, and the verdicts about its waiting pods.

    Attributes:
        world: the cluster at the moment that is shown.
    """

    def __init__(
        self, world: SeenWorld, changes: Sequence[SeenChange], about: dict[str, Any], clock: Callable[[], float], speed: float = 1.0
    ) -> None:
        """Stand at the beginning.

        Args:
            world: at the beginning.
            changes: in order of time.
            about: rows of the section `about`: what the file is.
            clock: seconds, monotonic.
            speed: seconds of the recording that pass in a second.
        """
        self.world = world
        self._changes = changes
        self._applied = 0
        self._about = about
        self._clock = clock
        self._speed = speed
        self._started = clock()
        self._verdicts = WaitingVerdicts(world, clock)
        self._nodes = ConsoleNodes(world.cluster, world.scheduler_names)

    def advance(self) -> bool:
        """Apply the changes whose time has come, and evaluate waiting pods for a moment.

        Returns:
            Whether there is more to do at once.
        """
        position = (self._clock() - self._started) * self._speed
        while self._applied < len(self._changes) and self._changes[self._applied].at <= position:
            self._apply(self._changes[self._applied])
            self._applied += 1
        return self._verdicts.work(_SLICE)

    def sections(self, rights: Rights) -> Sections:
        """Return the state. Implements the feed's `StateSource`."""
        self._nodes.refresh()
        return {
            "about": {**self._about, **self._nodes.about(), **self._moment()},
            "nodes": self._nodes.nodes,
            "loads": self._nodes.loads,
            "queue": waiting_rows(self._verdicts.waiting(), rights),
            "decisions": self.world.placements.rows(rights),
        }

    def release(self) -> None:
        """Keep all: the console may be opened again at any moment. Implements the feed's `StateSource`."""

    def node(self, name: str, rights: Rights = ALL_NAMESPACES) -> dict[str, Any] | None:
        """Return what runs on a node; None for an unknown one.

        Args:
            name: of the node.
            rights: of the reader.
        """
        nominated = (pod for pod in self.world.pending.values() if pod.nominated_node == name)
        return node_page(self.world.cluster, NodeName(name), nominated, rights)

    def pod(self, namespace: str, name: str, rights: Rights = ALL_NAMESPACES) -> dict[str, Any] | None:
        """Explain a pod as `placewright explain` does.

        Args:
            namespace: of the pod.
            name: of the pod.
            rights: of the reader.

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
            return pod_page(with_decision(about, pod))
        evaluator = self.world.evaluators.get(pod.scheduler_name)
        if evaluator is None:
            return pod_page(without_profile(about, pod, seen))
        return pod_page(with_verdicts(about, pod, evaluator, seen, BEST_NODES), evaluator)

    def _apply(self, change: SeenChange) -> None:
        """Apply a change, or note that its object is not valid: the rest of the recording can still be looked at."""
        try:
            self.world.apply(change)
        except InputError as problem:
            if len(self.world.notes) < _MOST_NOTES:
                self.world.notes.append(f"left out, {change.at:.1f} s after the beginning: {problem}")

    def _moment(self) -> dict[str, Any]:
        return {
            "now": self.world.now,
            "notEvaluated": self._verdicts.unknown,
            "changes": [self._applied, len(self._changes)],
            "notes": list(self.world.notes),
        }
