"""A small cluster and its changes as data, so that an example can be made smaller and printed.

A scenario is told to the scheduler's own event handlers (`scheduler/eventhandlers.py`), change by change, as the watches would tell it.

Random scenarios: a small cluster with pods that wait, and its changes. Equal seeds give equal scenarios.

The pods that wait come with variants that differ in one field. So a signature that leaves the field out is found.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.api.quantity import QuantityError
from placewright.cluster.objects import ClusterObject
from placewright.framework.runtime.snapshot import named
from placewright.scheduler.eventhandlers import ClusterEventHandlers
from placewright.testing.objectfields import Path, copied, shown, simpler, with_field_of, with_one_field_of
from placewright.testing.objectmaker import HOSTNAME
from placewright.testing.plugincase import AnyNode, AnyObject, AnyPod, built
from placewright.testing.randomobjects import NODE_NAMES, random_node, random_object, random_pod

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


K = TypeVar("K")

#: Functions that a caller of `check_plugin` hands in; they are called again and again with the dice of the scenario.
PodSource = Callable[[random.Random], AnyPod]
NodeSource = Callable[[random.Random], AnyNode]
ObjectSource = Callable[[random.Random], AnyObject]

_CHANGES: Final = 12
#: Fields of a node that change by themselves in a live cluster.
_NODE_FIELDS: Final[tuple[Path, ...]] = (
    ("metadata", "labels"), ("metadata", "annotations"), ("spec", "taints"), ("spec", "unschedulable"), ("status", "allocatable"),
    ("status", "images"), ("status", "conditions"), ("status", "declared_features"),
)  # fmt: skip
#: Fields of a pod on a node that an API server lets change, and that columns follow.
_POD_FIELDS: Final[tuple[Path, ...]] = (("metadata", "labels"), ("spec", "containers", "resources"))
#: Fields of a pod that waits.
_WAITING_FIELDS: Final[tuple[Path, ...]] = (("metadata", "labels"), ("metadata", "annotations"), ("status", "resource_claim_statuses"))


@dataclass(frozen=True)
class Sources:
    """Where the objects of random clusters come from."""

    pods: PodSource = random_pod
    nodes: NodeSource = random_node
    objects: ObjectSource = random_object

    def pod(self, dice: random.Random) -> PodInfo:
        """Draw a pod that waits."""
        made = built(self.pods(dice))
        return PodInfo(_unversioned(made.pod)) if made.pod.metadata.resource_version else made

    def node(self, dice: random.Random, name: str) -> Node:
        """Draw a node, and name it.

        Args:
            dice: handed to `nodes`.
            name: replaces the drawn node's name and uid, and its hostname label if it has one.

        Returns:
            A node without a resourceVersion.
        """
        made = self.nodes(dice)
        return _node_named(_unversioned(built(made)), name)

    def object(self, dice: random.Random) -> ClusterObject:
        """Draw an object that is neither pod nor node."""
        made = self.objects(dice)
        item: ClusterObject = built(made)
        return _unversioned(item)


def _unversioned(item: K) -> K:
    """Return the object without a resourceVersion.

    A change is drawn from two objects and keeps the metadata of one; the event handlers would take an equal version for the same news.
    """
    if not isinstance(item, msgspec.Struct):
        return item
    meta: Any = getattr(item, "metadata")  # noqa: B009 - a struct of any kind
    return msgspec.structs.replace(item, metadata=msgspec.structs.replace(meta, resource_version=""))


def _node_named(node: Node, name: str) -> Node:
    labels = dict(node.metadata.labels or {})
    if HOSTNAME in labels:
        labels[HOSTNAME] = name
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, name=name, uid=name, labels=labels))


def random_scenario(seed: int, number: int, sources: Sources) -> Scenario:
    """Draw a scenario: 2 to 5 nodes, 3 to 10 pods on them, about 10 pods that wait, up to 12 changes.

    Args:
        seed: seed of the whole check.
        number: number of the scenario in that check. Each draws from dice of its own, so that it can be drawn without the earlier ones.
        sources: make the objects.

    Returns:
        The scenario. Equal arguments give equal scenarios if the sources draw from the dice alone.
    """
    # Text seeds `random.Random` alike in every process; a tuple's hash would not.
    return _Draw(random.Random(f"{seed}/{number}"), sources).scenario()


class _Draw:
    """Draws one scenario, and keeps what is there so that changes concern it."""

    def __init__(self, dice: random.Random, sources: Sources) -> None:
        self._dice = dice
        self._sources = sources
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, PodInfo] = {}
        self._objects: dict[str, ClusterObject] = {}
        self._waiting: dict[str, PodInfo] = {}
        self._pod_number = itertools.count()
        self._object_number = itertools.count()

    def scenario(self) -> Scenario:
        """All changes, in their order."""
        dice = self._dice
        setup = [self._object_comes() for _ in range(dice.randint(4, 16))]
        setup += [self._node_shown(name) for name in NODE_NAMES[: dice.randint(2, 5)]]
        setup += [self._pod_comes() for _ in range(dice.randint(3, 10))]
        waiting = tuple(self._pods_that_wait())
        self._waiting = {pod.uid: pod for pod in waiting}
        changes = [change for _ in range(_CHANGES) if (change := self._change()) is not None]
        return Scenario(tuple(setup), tuple(changes), waiting)

    def _pods_that_wait(self) -> Iterator[PodInfo]:
        """Three pods and a twin of the first, which differs in its name alone; of each, up to two variants that differ in one field."""
        first, *others = [self._sources.pod(self._dice) for _ in range(3)]
        made = [first, first, *self._variants(first), *(like for other in others for like in (other, *self._variants(other)))]
        return (renamed(pod, f"w{number}") for number, pod in enumerate(made))

    def _variants(self, base: PodInfo) -> Iterator[PodInfo]:
        for _ in range(2):
            pod = with_one_field_of(base.pod, self._sources.pod(self._dice).pod, self._dice)
            if pod is not None:
                yield PodInfo(pod)

    # --- what happens ----------------------------------------------------------------------------------------------------------------

    def _change(self) -> Change | None:
        kinds: dict[Callable[[], Change | None], int] = {
            self._any_node_shown: 3,
            self._node_changes_a_little: 4,
            partial(self._goes, NODE_GONE, self._nodes): 1,
            self._pod_comes: 4,
            self._pod_changes: 2,
            partial(self._goes, POD_GONE, self._pods): 4,
            self._object_comes: 3,
            partial(self._goes, OBJECT_GONE, self._objects): 2,
            self._waiting_pod_changes: 2,
        }
        return self._dice.choices(list(kinds), list(kinds.values()))[0]()

    def _any_node_shown(self) -> Change:
        # A new node, or a wholly different version of a node that is there.
        return self._node_shown(self._dice.choice(NODE_NAMES))

    def _node_shown(self, name: str) -> Change:
        self._nodes[name] = self._sources.node(self._dice, name)
        return Change(NODE_SHOWN, self._nodes[name])

    def _node_changes_a_little(self) -> Change | None:
        name = self._one_of(self._nodes)
        if name is None:
            return None
        other = self._sources.node(self._dice, name)
        fields = [path for path in _NODE_FIELDS if with_field_of(self._nodes[name], other, path) != self._nodes[name]]
        if not fields:
            return None
        self._nodes[name] = with_field_of(self._nodes[name], other, self._dice.choice(fields))
        return Change(NODE_SHOWN, self._nodes[name])

    def _pod_comes(self) -> Change:
        name = f"s{next(self._pod_number)}"
        # With no node left the pod names an absent one: watches may show a pod before its node.
        self._pods[name] = renamed(self._sources.pod(self._dice), name, self._dice.choice(list(self._nodes) or NODE_NAMES))
        return Change(POD_SHOWN, self._pods[name])

    def _pod_changes(self) -> Change | None:
        uid = self._one_of(self._pods)
        if uid is None:
            return None
        pod, other = self._pods[uid].pod, self._sources.pod(self._dice).pod
        # Resources are a field of the first container, which both pods must have.
        fields = _POD_FIELDS if pod.spec.containers and other.spec.containers else _POD_FIELDS[:1]
        self._pods[uid] = PodInfo(with_field_of(pod, other, self._dice.choice(fields)))
        return Change(POD_SHOWN, self._pods[uid])

    def _object_comes(self) -> Change:
        item = self._sources.object(self._dice)
        self._objects[str(next(self._object_number))] = item
        return Change(OBJECT_SHOWN, item)

    def _goes(self, kind: ChangeKind, there: dict[str, Any]) -> Change | None:
        name = self._one_of(there)
        return None if name is None else Change(kind, there.pop(name))

    def _waiting_pod_changes(self) -> Change | None:
        """Another label, annotation or claim; a toleration more; no gate any longer."""
        uid = self._one_of(self._waiting)
        if uid is None or self._waiting[uid].node_name:
            return None
        pod, other = self._waiting[uid].pod, self._sources.pod(self._dice).pod
        kind = self._dice.randrange(3)
        if kind == 0:
            pod = with_field_of(pod, other, self._dice.choice(_WAITING_FIELDS))
        else:
            # An API server lets a waiting pod gain tolerations and lose gates; the rest of its spec stays.
            tolerations = (*(pod.spec.tolerations or ()), *(other.spec.tolerations or ()))
            changed: dict[str, Any] = {"tolerations": tolerations} if kind == 1 else {"scheduling_gates": None}
            pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, **changed))
        if pod == self._waiting[uid].pod:
            return None
        self._waiting[uid] = PodInfo(pod)
        return Change(WAITING_POD_CHANGED, self._waiting[uid])

    def _one_of(self, there: dict[str, K]) -> str | None:
        return self._dice.choice(list(there)) if there else None
