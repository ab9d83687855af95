"""A small cluster and its changes, as data, so that a scenario which breaks a promise can be made smaller and printed.

A scenario is told to the scheduler's own event handlers (`scheduler/eventhandlers.py`), change by change, as the watches would tell it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import msgspec

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.quantity import QuantityError
from placewright.cluster.objects import ClusterObject
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from placewright.testing.objectfields import copied, shown, simpler

E = TypeVar("E")
#: So many smaller scenarios are tried for one example. Each attempt runs a whole scenario, and a failing test shall end soon.
_MOST_ATTEMPTS: Final = 300


class Change(ABC):
    """A change in the cluster."""

    @abstractmethod
    def tell(self, handlers: ClusterEventHandlers) -> None:
        """Tell the event handlers, as a watch would."""

    def copied(self) -> Change:
        """Copy the change, with an object of its own."""
        return self

    @abstractmethod
    def simpler(self) -> Iterator[Change]:
        """Yield the change with less in its object."""


@dataclass(frozen=True)
class NodeShown(Change):
    """A node comes or changes."""

    node: Node

    def tell(self, handlers: ClusterEventHandlers) -> None:
        """Tell of the node."""
        handlers.node(self.node)

    def copied(self) -> Change:
        """Copy the change, with a node of its own."""
        return NodeShown(copied(self.node))

    def simpler(self) -> Iterator[Change]:
        """Yield the change with less in the node."""
        return (NodeShown(node) for node in simpler(self.node))

    def __str__(self) -> str:
        return f"node {self.node.metadata.name} is there: {shown(self.node)}"


@dataclass(frozen=True)
class NodeGone(Change):
    """A node goes. Its pods stay known, as in a live cluster, until they are deleted."""

    name: NodeName

    def tell(self, handlers: ClusterEventHandlers) -> None:
        """Tell that the node is gone."""
        handlers.node_gone(self.name)

    def simpler(self) -> Iterator[Change]:
        """No simpler change is known."""
        return iter(())

    def __str__(self) -> str:
        return f"node {self.name} goes"


@dataclass(frozen=True)
class PodShown(Change):
    """A pod comes to a node, or changes there."""

    pod: PodInfo

    def tell(self, handlers: ClusterEventHandlers) -> None:
        """Tell of the pod."""
        handlers.assigned_pod(self.pod)

    def copied(self) -> Change:
        """Copy the change, with a pod of its own."""
        return PodShown(PodInfo(copied(self.pod.pod)))

    def simpler(self) -> Iterator[Change]:
        """Yield the change with less in the pod."""
        return (PodShown(pod) for pod in simpler_pods(self.pod))

    def __str__(self) -> str:
        return f"pod {self.pod.key} stands on node {self.pod.node_name}: {shown(self.pod.pod)}"


@dataclass(frozen=True)
class PodGone(Change):
    """A pod on a node is deleted."""

    pod: PodInfo

    def tell(self, handlers: ClusterEventHandlers) -> None:
        """Tell that the pod is gone."""
        handlers.assigned_pod_gone(self.pod.uid)

    def simpler(self) -> Iterator[Change]:
        """No simpler change is known."""
        return iter(())

    def __str__(self) -> str:
        return f"pod {self.pod.key} is deleted"


@dataclass(frozen=True)
class ObjectShown(Change):
    """An object that is neither node nor pod comes or changes."""

    item: ClusterObject

    def tell(self, handlers: ClusterEventHandlers) -> None:
        """Tell of the object."""
        handlers.cluster_object(self.item)

    def copied(self) -> Change:
        """Copy the change, with an object of its own."""
        return ObjectShown(copied(self.item)) if isinstance(self.item, msgspec.Struct) else self

    def simpler(self) -> Iterator[Change]:
        """Yield the change with less in the object."""
        return (ObjectShown(item) for item in simpler(self.item)) if isinstance(self.item, msgspec.Struct) else iter(())

    def __str__(self) -> str:
        return f"{_named(self.item)} is there: {shown(self.item) if isinstance(self.item, msgspec.Struct) else self.item}"


@dataclass(frozen=True)
class ObjectGone(Change):
    """Such an object is deleted."""

    item: ClusterObject

    def tell(self, handlers: ClusterEventHandlers) -> None:
        """Tell that the object is gone."""
        handlers.cluster_object_gone(self.item)

    def simpler(self) -> Iterator[Change]:
        """No simpler change is known."""
        return iter(())

    def __str__(self) -> str:
        return f"{_named(self.item)} is deleted"


@dataclass(frozen=True)
class WaitingPodChanged(Change):
    """A pod that waits changes itself."""

    pod: PodInfo

    def tell(self, handlers: ClusterEventHandlers) -> None:
        """Tell of the pod."""
        handlers.unscheduled_pod(self.pod)

    def copied(self) -> Change:
        """Copy the change, with a pod of its own."""
        return WaitingPodChanged(PodInfo(copied(self.pod.pod)))

    def simpler(self) -> Iterator[Change]:
        """Yield the change with less in the pod."""
        return (WaitingPodChanged(pod) for pod in simpler_pods(self.pod))

    def __str__(self) -> str:
        return f"pod {self.pod.key}, which waits, changes: {shown(self.pod.pod)}"


def _named(item: ClusterObject) -> str:
    meta = item.metadata
    return f"{type(item).__name__} {meta.namespace + '/' if meta.namespace else ''}{meta.name}"


def simpler_pods(pod: PodInfo) -> Iterator[PodInfo]:
    """Yield the pod with less in it, as far as it stays a pod that can be decoded."""
    for less in simpler(pod.pod):
        try:
            yield PodInfo(less)
        except QuantityError:
            continue


@dataclass(frozen=True)
class Scenario:
    """A cluster, its changes, and the pods that wait meanwhile.

    Attributes:
        setup: what is told before the plugin is asked first, in this order.
        changes: the changes afterwards; the plugin is asked after each.
        waiting: the pods that the plugin is asked about.
    """

    setup: tuple[Change, ...]
    changes: tuple[Change, ...]
    waiting: tuple[PodInfo, ...]

    def copied(self) -> Scenario:
        """Return an equal scenario with objects of its own, for one run: a plugin may write into an object that it is shown."""
        setup, changes = (tuple(change.copied() for change in each) for each in (self.setup, self.changes))
        return Scenario(setup, changes, tuple(PodInfo(copied(pod.pod)) for pod in self.waiting))

    def __str__(self) -> str:
        lines = [f"pod {pod.key} waits: {shown(pod.pod)}" for pod in self.waiting]
        lines += map(str, self.setup)
        lines += [f"then {change}" for change in self.changes]
        return "\n".join(f"  {line}" for line in lines)


class Reducer:
    """Makes a scenario smaller for as long as it shows the same.

    Args:
        scenario: shows it.
        shows: whether a scenario shows the same; called at most 300 times.
    """

    def __init__(self, scenario: Scenario, shows: Callable[[Scenario], bool]) -> None:
        self._scenario = scenario
        self._shows = shows
        self._left = _MOST_ATTEMPTS

    def smallest(self) -> Scenario:
        """Return the smallest scenario that was found; nothing can be taken from it, unless all attempts were used."""
        before = None
        while self._scenario != before and self._left:
            before = self._scenario
            # Whole entries first: an entry that is dropped takes all its fields with it.
            for part in ("changes", "waiting", "setup"):
                self._drop_entries(part)
            for part in ("waiting", "setup", "changes"):
                self._simplify_entries(part)
        return self._scenario

    def _try(self, scenario: Scenario) -> bool:
        if not self._left or not any(isinstance(each, NodeShown) for each in scenario.setup):
            return False  # without a node nothing is said that could be looked at
        self._left -= 1
        if self._shows(scenario):
            self._scenario = scenario
            return True
        return False

    def _drop_entries(self, part: str) -> None:
        """Half of them at a time, then quarters, down to single ones: most have nothing to do with the broken promise."""
        size = len(self._entries(part))
        while size:
            for at in reversed(range(0, len(self._entries(part)), size)):
                entries = self._entries(part)
                self._try(self._with(part, (*entries[:at], *entries[at + size :])))
            size //= 2

    def _simplify_entries(self, part: str) -> None:
        for at in range(len(self._entries(part))):
            while self._simplify_entry(part, at):
                pass

    def _simplify_entry(self, part: str, at: int) -> bool:
        entries = self._entries(part)
        return any(self._try(self._with(part, _put(entries, at, less))) for less in _simpler_entries(entries[at]))

    def _with(self, part: str, entries: tuple[Change | PodInfo, ...]) -> Scenario:
        fields: dict[str, Any] = {part: entries}
        return replace(self._scenario, **fields)

    def _entries(self, part: str) -> tuple[Change | PodInfo, ...]:
        entries: tuple[Change | PodInfo, ...] = getattr(self._scenario, part)
        return entries


def _simpler_entries(entry: Change | PodInfo) -> Iterator[Change | PodInfo]:
    return entry.simpler() if isinstance(entry, Change) else simpler_pods(entry)


def _put(entries: Sequence[E], at: int, entry: E) -> tuple[E, ...]:
    return (*entries[:at], entry, *entries[at + 1 :])


def renamed(pod: PodInfo, name: str, node: str | None = None) -> PodInfo:
    """Return the pod under another name, which is its uid, too.

    Args:
        pod: its namespace stays.
        name: the new name and uid.
        node: that the pod stands on; None: the node that the pod itself names, if any.
    """
    meta = msgspec.structs.replace(pod.pod.metadata, name=name, uid=name)
    spec = pod.pod.spec if node is None else msgspec.structs.replace(pod.pod.spec, node_name=node)
    return PodInfo(msgspec.structs.replace(pod.pod, metadata=meta, spec=spec))
