"""The audit at the end of each run: made of what the API server did, and not of anything that the scheduler says about itself.

Plain arithmetic on JSON; no code is shared with the scheduler. The rules:

- **Once.** A pod has one node, ever, and at most one Binding of it was answered with success. Each pod of ours that got a node got it by a
  Binding that passed one of the proxies, unless the test knows who else bound it.
- **Room.** The API server's history is replayed. When a pod of ours gets its node, all that we put there before, all that others put there
  more than `GRACE` seconds before, and this pod fit the node as it was at its best in the last `GRACE` seconds: nobody can know of what
  happened while a decision was under way. Nor is the node gone, or cordoned, for longer than that.
- **Accounted for.** Each pod that was created is gone, or has a node, or is said to be unschedulable, with a message that counts the nodes
  rightly, and fits no node in fact.
- **Led.** Each Binding that a replica sent arrived while the Lease named that replica.
- **True.** Each event `Scheduled` names the node that its pod is on. PodScheduled is True for pods with a node, and for no others.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from .history import Amounts, Change, History, NodeView, PodView
from .proxy import BindingRequest

OURS: Final = "placewright"
#: Seconds that a decision may take to become a Binding at the API server, on a loaded machine.
GRACE: Final = 2.0
#: Seconds by which what we hear of the Lease and what we hear of a Binding may be in the wrong order.
SLACK: Final = 0.5
_REFUSAL: Final = re.compile(r"0/(?P<nodes>\d+) nodes are available(?:: (?P<reasons>.*?))?(?:\. |\.$|$)")
_COUNTED: Final = re.compile(r"(?:^|, )(\d+) ")
_PLACED: Final = re.compile(r"Successfully assigned (?P<pod>\S+) to (?P<node>\S+)$")


@dataclass
class Findings:
    """What the audit found.

    Attributes:
        pods: of ours that were ever created.
        bound: of these, how many got a node.
        doubly_bound, lost, overcommitted: what must not be: a line each.
        terms: how often a replica took the Lease.
        unled: Bindings that were sent without the lead.
        untrue: events and conditions that say what is not so.
        untold: pods of ours with a node and without an event that says so. No fault where a replica was killed.
        groups, claims: how many there were; None where there could be none.
        halfway: how many groups have fewer members on nodes than they need, for a reason that is known.
        split: what must not be of groups (`groupaudit`).
        astray: what must not be of devices (`deviceaudit`).
    """

    pods: int = 0
    bound: int = 0
    terms: int = 0
    doubly_bound: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    overcommitted: list[str] = field(default_factory=list)
    unled: list[str] = field(default_factory=list)
    untrue: list[str] = field(default_factory=list)
    untold: list[str] = field(default_factory=list)
    groups: int | None = None
    claims: int | None = None
    halfway: int = 0
    split: list[str] = field(default_factory=list)
    astray: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        """Everything that must not be."""
        return self.doubly_bound + self.lost + self.overcommitted + self.unled + self.untrue + self.split + self.astray


def audit(
    history: History,
    requests: Sequence[BindingRequest],
    created: Collection[str],
    foreign: Collection[str] = (),
    special: Mapping[str, str] = MappingProxyType({}),
) -> Findings:
    """`created`: uids that the API server gave to whoever created pods. `foreign`: uids that somebody else bound, as the test knows.

    `special`: what is wrong, or nothing, with pods that wait and that have more to account for than amounts, by uid.
    """
    found = Findings()
    changes = sorted(history.changes, key=lambda change: change.version)
    ours = {uid: pod for uid, pod in history.last.items() if pod.scheduler == OURS and not history.first[uid].node}
    found.pods, found.bound = len(ours), sum(bool(pod.node) for pod in ours.values())
    found.doubly_bound = [*_moved(changes), *_bound_again(requests), *_unexplained(ours, requests, foreign)]
    found.overcommitted = Replay(frozenset(ours) - frozenset(foreign)).run(changes)
    found.lost = [*_lost(history, changes, special), *(f"{uid} was created and never seen" for uid in created if uid not in history.first)]
    found.terms = sum(bool(identity) for _, identity in history.holders)
    found.unled = _unled(history.holders, requests)
    found.untrue = [*_untrue_events(history), *_untrue_conditions(history)]
    told = {one.uid for one in history.said.values() if one.reason == "Scheduled"}
    found.untold = [pod.key for uid, pod in ours.items() if pod.node and uid not in told and uid not in foreign]
    return found


# --- once ---


def _moved(changes: Iterable[Change]) -> list[str]:
    nodes: dict[str, str] = {}
    faults = []
    for change in changes:
        pod = change.view
        if isinstance(pod, PodView):
            before = nodes.get(pod.uid)
            if before and pod.node != before:
                faults.append(f"{pod.key} went from {before} to {pod.node or 'nowhere'}")
            nodes[pod.uid] = pod.node
    return faults


def _bound_again(requests: Iterable[BindingRequest]) -> list[str]:
    granted = Counter(each.uid for each in requests if each.code is not None and each.code < 300)
    return [f"{uid}: {times} Bindings succeeded" for uid, times in granted.items() if times > 1]


def _unexplained(ours: dict[str, PodView], requests: Sequence[BindingRequest], foreign: Collection[str]) -> list[str]:
    asked: dict[str, set[str]] = defaultdict(set)
    for each in requests:
        if each.passed is not None and (each.code is None or each.code < 300):
            asked[each.uid].add(each.node)
    known = set(foreign)
    return [
        f"{pod.key} is on {pod.node}, which no Binding that passed explains"
        for uid, pod in ours.items() if pod.node and uid not in known and pod.node not in asked[uid]
    ]  # fmt: skip


# --- led ---


def _unled(holders: Sequence[tuple[float, str]], requests: Iterable[BindingRequest]) -> list[str]:
    until = [began for began, _ in holders[1:]] + [float("inf")]
    terms = [(identity, began, end) for (began, identity), end in zip(holders, until, strict=True)]

    def led(request: BindingRequest) -> bool:
        return any(
            identity.startswith(f"{request.replica}/") and began - SLACK <= request.at <= end + SLACK for identity, began, end in terms
        )

    return [f"{each.replica} sent a Binding of {each.pod} at {each.at:.2f} s without the lead" for each in requests if not led(each)]


# --- room ---


@dataclass(slots=True)
class _Placed:
    node: str
    asks: Amounts
    ours: bool
    at: float


class Replay:
    """The cluster's history once more, asking at each Binding of ours whether there was room."""

    def __init__(self, ours: Collection[str]) -> None:
        self._ours = ours
        #: By node, its states with the time since when; None: it did not exist.
        self._nodes: dict[str, list[tuple[float, NodeView | None]]] = defaultdict(list)
        self._placed: dict[str, dict[str, _Placed]] = defaultdict(dict)
        self._where: dict[str, str] = {}
        self._faults: list[str] = []

    def run(self, changes: Iterable[Change]) -> list[str]:
        """Changes in order; a line for each Binding without room."""
        for change in changes:
            view = change.view
            if isinstance(view, NodeView):
                self._nodes[view.name].append((change.at, None if change.gone else view))
            elif isinstance(view, PodView):
                self._pod(view, change)
        return self._faults

    def _pod(self, pod: PodView, change: Change) -> None:
        occupies = bool(pod.node) and not pod.over and not change.gone
        if occupies and pod.uid not in self._where:
            placed = _Placed(pod.node, pod.asks, pod.uid in self._ours, change.at)
            if placed.ours:
                self._check(pod, placed)
            self._where[pod.uid] = pod.node
            self._placed[pod.node][pod.uid] = placed
        elif not occupies and pod.uid in self._where:
            del self._placed[self._where.pop(pod.uid)][pod.uid]

    def _check(self, pod: PodView, new: _Placed) -> None:
        states = self._lately(new.node, new.at)
        open_states = [state for state in states if not state.cordoned]
        if not open_states:
            self._faults.append(f"{pod.key} came to {new.node}, which was {'cordoned' if states else 'gone'} for {GRACE:g} s and more")
            return
        best = Amounts()
        for state in open_states:
            best = best | state.room
        used = new.asks
        for each in self._placed[new.node].values():
            if each.ours or each.at < new.at - GRACE:
                used = used + each.asks
        if not used <= best:
            self._faults.append(f"{pod.key} came to {new.node}: {dict(used)} are then used of {dict(best)}")

    def _lately(self, node: str, at: float) -> list[NodeView]:
        """The states in which the node was in the last `GRACE` seconds."""
        states = self._nodes[node]
        until = [began for began, _ in states[1:]] + [float("inf")]
        # A node's change may be heard of a little later than a pod's that came after it: the order is the server's, times are ours.
        return [state for (_, state), end in zip(states, until, strict=True) if state is not None and end >= at - GRACE]


# --- accounted for ---


def _lost(history: History, changes: Iterable[Change], special: Mapping[str, str]) -> list[str]:
    counts = node_counts(changes)
    waiting = [pod for pod in history.pods.values() if pod.scheduler == OURS and not (pod.node or pod.over or pod.leaving)]
    judged = [(pod, special[pod.uid] if pod.uid in special else not_accounted_for(pod, history, counts)) for pod in waiting]
    return [f"{pod.key}: {why}" for pod, why in judged if why]


def not_accounted_for(pod: PodView, history: History, counts: Collection[int]) -> str:
    """What is wrong with a pod that waits; empty where it says why, rightly, and fits nowhere."""
    status, reason, message = pod.condition
    if (status, reason) != ("False", "Unschedulable"):
        return "has no node, and nothing says why"
    if wrong := _wrong_message(message, counts):
        return wrong
    fits = [node for node, room in room_for(history, pod.asks).items() if room]
    return f"has no node, and fits {', '.join(fits[:3])}" if fits else ""


def _wrong_message(message: str, counts: Collection[int]) -> str:
    found = _REFUSAL.match(message)
    if found is None:
        return "" if message.startswith("no nodes available") and 0 in counts else f"does not say how many nodes there are: {message!r}"
    nodes = int(found["nodes"])
    if nodes not in counts:
        return f"speaks of {nodes} nodes, of which there never were so many: {message!r}"
    told = sum(int(number) for number in _COUNTED.findall(found["reasons"] or ""))
    return f"tells of {told} nodes and not of all: {message!r}" if told < nodes else ""


def room_for(history: History, asks: Amounts) -> dict[str, int]:
    """How many pods that ask for so much each node could take."""
    found: dict[str, int] = {}
    for node in history.nodes.values():
        used = Amounts()
        for pod in history.pods.values():
            if pod.node == node.name and not pod.over:
                used = used + pod.asks
        found[node.name] = 0
        while not node.cordoned and (used := used + asks) <= node.room:
            found[node.name] += 1
    return found


def node_counts(changes: Iterable[Change]) -> set[int]:
    """How many nodes there were, at any time."""
    names: set[str] = set()
    counts = {0}
    for change in changes:
        if isinstance(change.view, NodeView):
            (names.discard if change.gone else names.add)(change.view.name)
            counts.add(len(names))
    return counts


# --- true ---


def _untrue_events(history: History) -> list[str]:
    faults = []
    for said in history.said.values():
        pod = history.last.get(said.uid)
        if said.reason != "Scheduled" or pod is None:
            continue
        found = _PLACED.match(said.note)
        if found is None or (found["pod"], found["node"]) != (pod.key, pod.node):
            faults.append(f"an event says {said.note!r} of {pod.key}, which is on {pod.node or 'no node'}")
    return faults


def _untrue_conditions(history: History) -> list[str]:
    return [
        f"{pod.key} is on {pod.node or 'no node'}, and its condition PodScheduled is {pod.condition}"
        for uid, pod in history.pods.items()
        if not history.first[uid].node and (pod.condition[0] == "True") is not bool(pod.node)
    ]  # fmt: skip
