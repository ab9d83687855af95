"""A small cluster and its changes as data, so that an example can be made smaller and printed.

A scenario is told to the scheduler's own event handlers (`scheduler/eventhandlers.py`), change by change, as the watches would tell it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.api.quantity import QuantityError
from placewright.framework.runtime.snapshot import named
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from placewright.testing.objectfields import copied, shown, simpler

E = TypeVar("E")
#: So many smaller scenarios are tried for one example. Each attempt runs a whole scenario, and a failing test shall end soon.
_MOST_ATTEMPTS: Final = 300


class ChangeKind(NamedTuple):
    """A kind of change.

    Attributes:
        tell: tells the event handlers of the object.
        words: the change in words; `name` is the object's kind and name.
        gone: whether the object is no longer there. Then nothing in the object matters but its name.
    """

    tell: Callable[[ClusterEventHandlers, Any], object]
    words: str
    gone: bool = False


NODE_SHOWN: Final = ChangeKind(ClusterEventHandlers.node, "{name} is there")
#: The pods of the node stay known, as in a live cluster, until they are deleted.
NODE_GONE: Final = ChangeKind(lambda handlers, node: handlers.node_gone(NodeName(node.metadata.name)), "{name} goes", gone=True)
POD_SHOWN: Final = ChangeKind(ClusterEventHandlers.assigned_pod, "{name} stands on node {item.node_name}")
POD_GONE: Final = ChangeKind(lambda handlers, pod: handlers.assigned_pod_gone(pod.uid), "{name} is deleted", gone=True)
OBJECT_SHOWN: Final = ChangeKind(ClusterEventHandlers.cluster_object, "{name} is there")
OBJECT_GONE: Final = ChangeKind(ClusterEventHandlers.cluster_object_gone, "{name} is deleted", gone=True)
WAITING_POD_CHANGED: Final = ChangeKind(ClusterEventHandlers.unscheduled_pod, "{name}, which waits, changes")


@dataclass(frozen=True)
class Change:
    """A change in the cluster.

    Attributes:
        kind: the kind of change.
        item: the object after the change, or the object that is gone: a node, a `PodInfo` or a `ClusterObject`.
    """

    kind: ChangeKind
    item: Any

    def tell(self, handlers: ClusterEventHandlers) -> None:
        """Tell the event handlers, as a watch would."""
        self.kind.tell(handlers, self.item)

    def copied(self) -> Change:
        """Copy the change, with an object of its own."""
        return replace(self, item=own(self.item))

    def simpler(self) -> Iterator[Change]:
        """Yield the change with less in its object."""
        return (replace(self, item=less) for less in _simpler(self.item)) if not self.kind.gone else iter(())

    @property
    def words(self) -> str:
        """The change without the content of its object, such as `node n1 is there`."""
        return self.kind.words.format(name=named(self.item), item=self.item)

    def __str__(self) -> str:
        return self.words if self.kind.gone else f"{self.words}: {_shown(self.item)}"


def _shown(item: Any) -> str:
    item = item.pod if isinstance(item, PodInfo) else item
    return shown(item) if isinstance(item, msgspec.Struct) else str(item)


def own(item: Any) -> Any:
    """Return an equal object that shares nothing with this one."""
    if isinstance(item, PodInfo):
        return PodInfo(copied(item.pod))
    return copied(item) if isinstance(item, msgspec.Struct) else item


def _simpler(item: Any) -> Iterator[Any]:
    """Yield the object with less in it, as long as it can be decoded."""
    if not isinstance(item, PodInfo):
        yield from simpler(item) if isinstance(item, msgspec.Struct) else ()
        return
    for less in simpler(item.pod):
        try:
            yield PodInfo(less)
        except QuantityError:
            continue


@dataclass(frozen=True)
class Scenario:
    """A cluster, its changes, and the pods that wait meanwhile.

    Attributes:
        setup: changes that are told before the plugin is asked first, in this order.
        changes: the changes afterwards; the plugin is asked after each.
        waiting: the pods that the plugin is asked about.
    """

    setup: tuple[Change, ...]
    changes: tuple[Change, ...]
    waiting: tuple[PodInfo, ...]

    def copied(self) -> Scenario:
        """Return an equal scenario with objects of its own, for one run: a plugin may write into an object that it is shown."""
        setup, changes = (tuple(change.copied() for change in each) for each in (self.setup, self.changes))
        return Scenario(setup, changes, tuple(own(pod) for pod in self.waiting))

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
        if not self._left or not any(each.kind is NODE_SHOWN for each in scenario.setup):
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
    return entry.simpler() if isinstance(entry, Change) else _simpler(entry)


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
