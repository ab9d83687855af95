"""No half of a tree of groups is ever bound, in any order of events. A tree is placed if a scalar model finds room for it.

Groups and members of several levels come, change and go, nodes come and go with their pods, members cannot be prepared, and decisions take
time. The judge reads the bound pods alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from placewright.api.objects import NodeName
from placewright.api.podgroups import Form, GroupRef
from placewright.api.pods import PodInfo
from placewright.framework.interface import CycleState, Plugin, PreBindPlugin
from placewright.framework.status import SUCCESS, Status, error
from placewright.queue.check import check_invariants
from placewright.testing import World, node
from placewright.testing.pods import PodMaker
from randomcases import cases

from .makers import child, composite, native_member

#: Each group's parent: four levels, and leaves on three of them.
PARENTS = {"root": None, "mid": "root", "sub": "mid", "a": "root", "b": "root", "c": "mid", "d": "mid", "e": "sub", "f": "sub"}
LEAVES = ("a", "b", "c", "d", "e", "f")
NAMES = st.sampled_from(sorted(PARENTS))
LEAF = st.sampled_from(LEAVES)
NODES = st.sampled_from(["n0", "n1", "n2"])
#: The least number of members or child groups; None for the policy `basic`.
LEAST = st.sampled_from([None, 1, 2, 2, 3])
WHICH = st.integers(0, 9)
#: Seconds; more than the longest backoff, which is 10.
BACKOFF = 11.0
#: Backoffs until everything that has room is placed: a branch may be decided only after the one above it is bound.
ROUNDS = 5
MOST_MEMBERS = 4


class Preparing(PreBindPlugin):
    """Takes a second for each pod, and fails for the pods that the test names."""

    name = "Preparing"
    failing: set[str]

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        await asyncio.sleep(1)
        return error("no volume") if pod.name in self.failing else SUCCESS


@dataclass(frozen=True)
class Model:
    """A tree of groups in plain words.

    Attributes:
        least: what each group that exists needs: members or child groups; None for the policy `basic`.
        counts: members of each leaf.
        bound: leaves with a bound member.
    """

    least: dict[str, int | None]
    counts: Counter[str]
    bound: frozenset[str] = frozenset()

    def stands(self, name: str) -> bool:
        if name not in self.least or not self.is_sound(name):
            return False
        if self.has_bound(name):
            return True
        below = [each for each, parent in PARENTS.items() if parent == name]
        number = self.counts[name] if name in LEAVES else sum(self.stands(each) for each in below)
        return number >= (self.least[name] or 1)

    def has_bound(self, name: str) -> bool:
        return any(name in path(leaf) and self.is_sound(leaf) for leaf in self.bound)

    def is_sound(self, name: str) -> bool:
        return all(each in self.least for each in path(name))

    def places(self, leaf: str) -> bool:
        """Whether members of a leaf get nodes if there is room for every pod. Children of a `basic` group wait for no other."""
        return all(self.stands(each) for each in path(leaf))


def ref(leaf: str) -> GroupRef:
    return GroupRef(Form.NATIVE, "default", leaf)


def path(name: str) -> list[str]:
    parent = PARENTS[name]
    return [name] if parent is None else [name, *path(parent)]


class LiveWorld(World):
    """A world whose objects go inside its event loop, because a pod may go in the middle of being bound. It is not seen again."""

    def __init__(self, *plugins: type[Plugin]) -> None:
        self.gone: set[str] = set()
        super().__init__(*plugins)

    def _remove(self, item: Any) -> None:
        self.gone |= {item} if isinstance(item, str) else set()
        self.time.loop.call_soon(super()._remove, item)

    def _is_bound(self, pod: PodInfo) -> None:
        if pod.name not in self.gone:
            super()._is_bound(pod)


class TreeMachine(RuleBasedStateMachine):
    """A tree of up to nine groups, in virtual time."""

    @initialize(cpu=st.integers(1, 8), least=st.fixed_dictionaries(dict.fromkeys(PARENTS, LEAST)), later=st.sets(NAMES, max_size=2))
    def start(self, cpu: int, least: dict[str, int | None], later: set[str]) -> None:
        """Most groups are declared at first, because only whole trees are placed."""
        self.failing: set[str] = set()
        preparing = type("Prepares", (Preparing,), {"failing": self.failing})
        self.world, self.made = LiveWorld(preparing), 0
        self.members: dict[str, PodMaker] = {}
        self.least: dict[str, int | None] = {}
        self.offered: dict[str, int] = {}
        self.begun: set[str] = set()
        self.node_comes("n0", cpu)
        for name in PARENTS:
            if name not in later:
                self.declare(name, least[name])

    # --- the cluster ---------------------------------------------------------------------------------------------------------------

    @rule(name=NODES, cpu=st.integers(1, 6))
    def node_comes(self, name: str, cpu: int) -> None:
        if name not in self.offered:
            self.offered[name] = cpu
            self.world.add(node(name).offers(cpu=str(cpu)))

    @rule(name=NODES)
    def node_goes(self, name: str) -> None:
        """With all pods on it."""
        if self.offered.pop(name, None) is None:
            return
        gone = [each for each in self.members if self.world.node_of(each) == name]
        for each in gone:
            del self.members[each]
        self.note()
        self.world.remove(*gone, node(name))

    # --- groups ----------------------------------------------------------------------------------------------------------------------

    @rule(name=NAMES, least=LEAST)
    def group_comes_or_changes(self, name: str, least: int | None) -> None:
        self.settle()
        self.declare(name, least)

    def settle(self) -> None:
        """Let the members be bound that are being bound. They were decided by the groups as they were."""
        while self.world.queue.in_flight:
            self.world.advance(0.5)
        self.no_half_is_bound()

    def declare(self, name: str, least: int | None) -> None:
        self.least[name] = least
        parent = PARENTS[name]
        self.world.add(child(name, least, parent or "") if name in LEAVES else composite(name, least, parent))

    @precondition(lambda self: self.least)
    @rule(which=WHICH)
    def group_goes(self, which: int) -> None:
        self.settle()
        name = list(self.least)[which % len(self.least)]
        least = self.least.pop(name)
        self.world.remove(child(name, least, PARENTS[name] or "") if name in LEAVES else composite(name, least, PARENTS[name]))

    # --- members -------------------------------------------------------------------------------------------------------------------

    @rule(counts=st.dictionaries(LEAF, st.integers(1, 3), min_size=1), fails=st.sampled_from([-1, -1, 0, 1, 2]))
    def members_come(self, counts: dict[str, int], fails: int) -> None:
        """Of some groups at once; and one of them may be a member that cannot be prepared."""
        came = []
        for leaf, count in counts.items():
            for _ in range(min(count, MOST_MEMBERS - len(self.of(leaf)))):
                self.made += 1
                maker = self.members[f"{leaf}-{self.made}"] = native_member(leaf, f"{leaf}-{self.made}")
                came.append(maker)
        self.failing |= {came[fails].name} if 0 <= fails < len(came) else set()
        self.world.add(*came)

    @precondition(lambda self: self.members)
    @rule(which=WHICH)
    def member_goes(self, which: int) -> None:
        name = list(self.members)[which % len(self.members)]
        del self.members[name]
        self.note()
        self.world.remove(name)

    @rule()
    def all_can_be_prepared(self) -> None:
        self.failing.clear()

    def of(self, leaf: str) -> list[str]:
        return [name for name in self.members if name.startswith(f"{leaf}-")]

    # --- time ------------------------------------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([0.5, 1.5, BACKOFF]))
    def time_passes(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule()
    def comes_to_rest_beside_a_large_node(self) -> None:
        self.failing.clear()
        for _ in range(ROUNDS):
            self.world.advance(BACKOFF)
        self.no_half_is_bound()
        if "large" not in self.offered:
            self.offered["large"] = 100
            self.world.add(node("large").offers(cpu="100"))
        model = Model(dict(self.least), Counter(name.split("-")[0] for name in self.members), frozenset(self.bound()))
        for _ in range(ROUNDS):
            self.world.advance(BACKOFF)
        waiting = [name for name in self.members.keys() - self.bound_names() if model.places(name.split("-")[0])]
        assert not waiting, f"{waiting} wait beside a large node: {self.least}"

    # --- the judge -------------------------------------------------------------------------------------------------------------------

    def bound(self) -> Counter[str]:
        """Bound members of each leaf, as the API server has them."""
        return Counter(name.split("-")[0] for name in self.bound_names() & self.members.keys())

    def bound_names(self) -> set[str]:
        return {name for name, _, _, _ in self.world.binder.bound}

    def note(self) -> None:
        """Note the leaves with bound members. Members that were decided beside them join them, also if the bound ones go meanwhile."""
        self.begun = {*self.bound(), *(leaf for leaf in self.begun if self.world.cluster.pod_groups.placed(ref(leaf)))}

    @invariant()
    def no_half_is_bound(self) -> None:
        if not hasattr(self, "world"):
            return
        bound = self.bound()
        now = Model(self.least, bound)
        for leaf in bound:
            for name in path(leaf):
                if not any(name in path(each) for each in self.begun):
                    assert now.stands(name), f"{name} was begun, but does not stand with {dict(bound)}: {self.least}"
        self.note()

    @invariant()
    def no_node_is_overfilled(self) -> None:
        for name, cpu in getattr(self, "offered", {}).items():
            assert self.world.requested(name) <= 1000 * cpu

    @invariant()
    def the_queue_is_whole(self) -> None:
        if hasattr(self, "world"):
            check_invariants(self.world.queue)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.comes_to_rest_beside_a_large_node()


TestNoHalfTrees = TreeMachine.TestCase
TestNoHalfTrees.settings = settings(max_examples=cases(100), stateful_step_count=20)
