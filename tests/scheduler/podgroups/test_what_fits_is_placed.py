"""Whatever happens to a group, its members that fit are placed within a few attempts; a scalar count says how many fit.

Members come, go and are nominated, and their victims leave late. Nodes and pods of lower priority come and go. The minimum of the group
rises and falls. All members of the group request the same, so the count is exact: once every pod of lower priority has left, a node
holds as many as its CPUs allow.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from placewright.api.pods import PodInfo
from placewright.framework.steps import POST_FILTER
from placewright.queue.check import check_invariants
from placewright.testing import World, node, pod
from placewright.testing.pods import PodMaker
from randomcases import cases

from .makers import group, member

NODES = st.sampled_from(["n0", "n1", "n2"])
WHICH = st.integers(0, 9)
CPUS = st.integers(1, 6)
MOST_MEMBERS = 6
#: Seconds; more than the longest backoff, which is 10.
BACKOFF = 11.0
#: Rounds of leaving victims and ended backoffs. In each, members are tried, and pods that have to leave for them are told so.
ROUNDS = 4
#: Attempts of one pod in these rounds, at most: one for each end of a backoff, and one for each of the pods that leave.
MOST_ATTEMPTS = 12


class LateWorld(World):
    """A world whose victims stand on their nodes, being deleted, until the test lets them go."""

    def __init__(self, **given: Any) -> None:
        self.leaving: dict[str, PodMaker] = {}
        self.low: dict[str, PodMaker] = {}
        super().__init__(**given)

    def _has_left(self, victim: PodInfo) -> None:
        self.leaving[victim.name] = self.low[victim.name].on(str(victim.node_name)).deleting()
        self.time.loop.call_soon(self.show, self.leaving[victim.name])

    def let_go(self, name: str) -> None:
        del self.leaving[name], self.low[name]
        self.remove(name)


class GroupMachine(RuleBasedStateMachine):
    """One group beside pods of lower priority, in virtual time."""

    @initialize(needed=st.integers(1, 4), cpu=st.sampled_from([1, 1, 2]), offered=CPUS)
    def start(self, needed: int, cpu: int, offered: int) -> None:
        self.world, self.needed, self.cpu, self.made = LateWorld(), needed, cpu, 0
        self.offered: dict[str, int] = {}
        self.members: dict[str, PodMaker] = {}
        self.world.add(group("job", needed))
        self.node_comes("n0", offered)

    # --- the cluster ---------------------------------------------------------------------------------------------------------------

    @rule(name=NODES, cpu=CPUS)
    def node_comes(self, name: str, cpu: int) -> None:
        if name not in self.offered:
            self.offered[name] = cpu
            self.world.add(node(name).offers(cpu=str(cpu)))

    @rule(name=NODES)
    def node_goes(self, name: str) -> None:
        """With all pods on it."""
        if self.offered.pop(name, None) is None:
            return
        gone = [each for each in (*self.members, *self.world.low) if self.world.node_of(each) == name]
        for each in gone:
            self.members.pop(each, None)
            self.world.low.pop(each, None)
            self.world.leaving.pop(each, None)
        self.world.remove(*gone, node(name))

    @rule(name=NODES, cpu=st.integers(1, 3))
    def low_pod_runs(self, name: str, cpu: int) -> None:
        """Bound by another scheduler, which fills no node beyond what it offers."""
        if self.world.requested(name) // 1000 + cpu <= self.offered.get(name, 0):
            self.world.add(self.low_pod(cpu).on(name))

    @rule(cpu=st.integers(1, 3))
    def low_pod_waits(self, cpu: int) -> None:
        self.world.add(self.low_pod(cpu))

    def low_pod(self, cpu: int) -> PodMaker:
        self.made += 1
        maker = self.world.low[f"low-{self.made}"] = pod(f"low-{self.made}").requests(cpu=str(cpu)).priority(10)
        return maker

    @precondition(lambda self: self.world.low.keys() - self.world.leaving.keys())
    @rule(which=WHICH)
    def low_pod_goes(self, which: int) -> None:
        staying = [name for name in self.world.low if name not in self.world.leaving]
        name = staying[which % len(staying)]
        del self.world.low[name]
        self.world.remove(name)

    @precondition(lambda self: self.world.leaving)
    @rule(which=WHICH)
    def victim_leaves(self, which: int) -> None:
        self.world.let_go(list(self.world.leaving)[which % len(self.world.leaving)])

    # --- members -------------------------------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 5), nominated=st.sampled_from(["", "n0", "n1"]))
    def members_come(self, count: int, nominated: str) -> None:
        """Together, as of a Job; nominated already where the scheduler was started anew."""
        came = []
        for _ in range(min(count, MOST_MEMBERS - len(self.members))):
            self.made += 1
            maker = member("job", self.made, cpu=str(self.cpu)).priority(100)
            self.members[maker.name] = maker
            came.append(maker.nominated(nominated) if nominated else maker)
        self.world.add(*came)

    @precondition(lambda self: self.members)
    @rule(which=WHICH)
    def member_goes(self, which: int) -> None:
        name = list(self.members)[which % len(self.members)]
        del self.members[name]
        self.world.remove(name)

    @precondition(lambda self: self.waiting())
    @rule(which=WHICH, on=NODES)
    def member_is_nominated(self, which: int, on: str) -> None:
        """By an autoscaler, or by a preemption whose write is only shown now."""
        waiting = self.waiting()
        self.world.add(self.members[waiting[which % len(waiting)]].nominated(on))

    @rule(needed=st.integers(1, 5))
    def minimum_changes(self, needed: int) -> None:
        """The members wait, stand, or are nominated while their victims leave."""
        self.needed = needed
        self.world.add(group("job", needed))

    def waiting(self) -> list[str]:
        return [name for name in self.members if self.world.node_of(name) is None]

    # --- time ------------------------------------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1.0, BACKOFF]))
    def time_passes(self, seconds: float) -> None:
        self.world.advance(seconds)

    @rule()
    def comes_to_rest(self) -> None:
        """All victims leave and all backoffs end, a few times: then every member that fits has a node."""
        before = len(self.world.log.attempts)
        for _ in range(ROUNDS):
            for name in list(self.world.leaving):
                self.world.let_go(name)
            self.world.advance(BACKOFF)
        attempts = Counter(attempt.pod.name for attempt in self.world.log.attempts[before:])
        assert max(attempts.values(), default=0) <= MOST_ATTEMPTS, f"tried again and again: {attempts}"
        assert not self.world.leaving, "nobody needs what is still being freed"
        waiting, room = len(self.waiting()), self.room()
        if waiting < len(self.members):
            assert not (waiting and room), f"{waiting} members wait beside room for {room}; others have nodes"
        else:
            assert min(waiting, room) < self.needed, f"{waiting} members wait beside room for {room}, and {self.needed} are the fewest"

    def room(self) -> int:
        """How many more members there is room for once all pods of lower priority have left."""
        standing = Counter(self.world.node_of(name) for name in self.members)
        return sum((cpu - standing[name] * self.cpu) // self.cpu for name, cpu in self.offered.items())

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
            self.comes_to_rest()


TestWhatFitsIsPlaced = GroupMachine.TestCase
TestWhatFitsIsPlaced.settings = settings(max_examples=cases(150), stateful_step_count=30)


def beside_a_low_pod(*members: PodMaker) -> LateWorld:
    """A node of four CPUs, of which a pod of low priority takes one, and a group that needs three of these members."""
    world = LateWorld(nodes=[node("n0").offers(cpu="4")])
    world.low["low"] = pod("low").requests(cpu="1").priority(10)
    world.add(world.low["low"].on("n0"), *members, group("job", 3))
    return world


def four(nominated: str = "") -> list[PodMaker]:
    makers = [member("job", index).priority(100) for index in range(4)]
    return [maker.nominated(nominated) for maker in makers] if nominated else makers


def test_a_spare_member_preempts_as_a_single_pod_does() -> None:
    world = beside_a_low_pod(*four())
    assert list(world.leaving) == ["low"]
    [note] = [note for _, _, reason, _, note in world.events.recorded if reason == "Preempted"]
    assert note.startswith("Preempted by pod uid-job-") and note.endswith(" on node n0")
    world.let_go("low")
    world.advance(BACKOFF)
    assert [world.node_of(f"job-{index}") for index in range(4)] == ["n0"] * 4


def test_members_that_are_all_nominated_do_not_keep_each_other_out() -> None:
    world = beside_a_low_pod(*four(nominated="n0"))
    assert sum(world.node_of(f"job-{index}") == "n0" for index in range(4)) == 3
    assert list(world.leaving) == ["low"]


def test_a_group_that_was_tried_without_nodes_is_placed_soon_after_one_comes() -> None:
    world = World()
    world.add(group("job", 2), member("job", 0), member("job", 1))
    world.advance(BACKOFF)
    world.add(node("n0").offers(cpu="2"))
    world.advance(BACKOFF)
    assert [world.node_of("job-0"), world.node_of("job-1")] == ["n0", "n0"]


def test_a_group_that_preempts_counts_as_attempts_to_preempt() -> None:
    world = LateWorld(nodes=[node("n0").offers(cpu="2")])
    world.low["low"] = pod("low").requests(cpu="2").priority(10)
    world.add(world.low["low"].on("n0"), group("job", 2), *(each.priority(100) for each in (member("job", 0), member("job", 1))))
    assert list(world.leaving) == ["low"]
    asked = [attempt for attempt in world.log.attempts if any(step.name == POST_FILTER for step in attempt.steps.taken)]
    assert asked, "scheduler_preemption_attempts_total counts these"
