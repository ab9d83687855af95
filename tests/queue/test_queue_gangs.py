"""Members of a group in the queue: handed out together, and backing off together; none is lost or doubled, whatever happens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from queue_makers import FakePolicy, PodMaker, World, pod

from placewright.api.objects import ObjectMeta
from placewright.api.podgroups import GROUP_LABEL, CoschedulingPodGroup
from placewright.api.pods import PodInfo
from placewright.framework.events import ASSIGNED_POD_ADD, NODE_ADD, Action, ClusterEvent, EventResource, event_with_hint
from placewright.queue.check import check_invariants
from placewright.queue.queued import QueuedPod, SubQueue
from randomcases import cases

GROUP_ADD = ClusterEvent(EventResource.POD_GROUP, Action.ADD, "PodGroupAdd")


def member(name: str, of: str = "job") -> PodMaker:
    return pod(name).labels(**{GROUP_LABEL: of})


def declared(name: str) -> CoschedulingPodGroup:
    return CoschedulingPodGroup(metadata=ObjectMeta(name=name, namespace="default"))


def fit_world() -> World:
    """A profile whose plugin Fit waits for new nodes, and whose plugin GangScheduling for groups."""
    always = event_with_hint(EventResource.NODE, Action.ADD)
    return World(FakePolicy(interests={"Fit": [always], "GangScheduling": [event_with_hint(EventResource.POD_GROUP, Action.ADD)]}))


def fail(world: World, taken: list[QueuedPod], *plugins: str) -> None:
    pod_group = taken[0].pod.pod_group
    assert pod_group is not None
    world.queue.pod_group_failed(pod_group)
    for queued in taken:
        world.queue.return_unschedulable(queued, set(plugins))


def test_all_members_go_with_the_first_wherever_they_wait() -> None:
    world = fit_world()
    world.add(member("a"), member("b"), member("c"), pod("single"))
    taken = world.queue.take_pod_group(world.pop())
    assert [queued.pod.name for queued in taken] == ["a", "b", "c"]
    assert {world.place(name) for name in "abc"} == {SubQueue.IN_FLIGHT}
    assert world.popped_names() == ["single"]


def test_the_highest_priority_goes_first_and_sets_the_turn_of_all() -> None:
    world = fit_world()
    world.add(pod("between").priority(5), member("low"))
    world.now += 1
    world.add(member("high").priority(9))
    first = world.pop()
    assert [queued.pod.name for queued in world.queue.take_pod_group(first)] == ["high", "low"]


def test_a_group_that_failed_takes_its_turn_by_its_attempt_as_a_pod_does() -> None:
    world = fit_world()
    world.add(member("a"), pod("b"))
    world.now += 1
    world.add(pod("younger"))
    world.now += 1
    taken = world.queue.take_pod_group(world.pop())
    fail(world, taken, "Fit")
    fail_single = world.pop()
    assert fail_single.pod.name == "b"
    world.queue.return_unschedulable(fail_single, {"Fit"})
    world.queue.move(NODE_ADD)
    world.now += 10
    world.queue.flush_backoff()
    assert world.popped_names() == ["younger", "a", "b"]


def test_while_a_group_is_decided_other_pods_are_handed_out_and_other_groups_are_not() -> None:
    world = fit_world()
    world.add(member("a"), member("b", "other"), pod("single"))
    taken = world.queue.take_pod_group(world.pop())
    world.queue.hand_out_groups(go=False)
    assert world.popped_names() == ["single"]
    fail(world, taken, "Fit")
    world.queue.move(NODE_ADD)
    assert world.queue.pop() is None, "backing off members are not tried early either"
    world.queue.hand_out_groups(go=True)
    assert world.popped_names() == ["b", "a"]


def test_members_back_off_together_and_come_back_once() -> None:
    world = fit_world()
    world.add(member("a"), member("b"))
    taken = world.queue.take_pod_group(world.pop())
    world.now += 0.4
    fail(world, taken, "Fit")
    world.add(member("late"))
    assert world.place("late") is SubQueue.BACKOFF, "whoever joins waits with the others"
    world.queue.move(NODE_ADD)
    assert {world.place(name) for name in ("a", "b", "late")} == {SubQueue.BACKOFF}
    assert world.queue.next_backoff_expiry is not None
    world.now = world.queue.next_backoff_expiry
    world.queue.flush_backoff()
    assert {world.place(name) for name in ("a", "b", "late")} == {SubQueue.ACTIVE}
    assert len(world.queue.take_pod_group(world.pop())) == 3
    assert world.queue.pop() is None


def test_one_member_that_an_event_helps_brings_those_that_it_does_not_help() -> None:
    world = fit_world()
    world.add(member("a"), member("b"))
    taken = world.queue.take_pod_group(world.pop())
    world.queue.pod_group_failed(taken[0].pod.pod_group)  # type: ignore[arg-type]
    world.queue.return_unschedulable(taken[0], {"Fit"})
    world.queue.return_unschedulable(taken[1], {"GangScheduling"})
    assert world.queue.move(NODE_ADD) == 1
    world.now += 10
    world.queue.flush_backoff()
    assert [queued.pod.name for queued in world.queue.take_pod_group(world.pop())] == ["a", "b"]


def test_news_of_a_group_is_asked_of_its_members_alone() -> None:
    asked: list[str] = []

    def hint(rejected: PodInfo, _old: Any, _new: Any) -> Any:
        asked.append(rejected.name)

    world = World(FakePolicy(interests={"GangScheduling": [event_with_hint(EventResource.POD_GROUP, Action.ADD, hint)]}))
    world.add(member("a"))
    fail(world, world.queue.take_pod_group(world.pop()), "GangScheduling")
    world.add(member("x", "other"))
    fail(world, world.queue.take_pod_group(world.pop()), "GangScheduling")
    world.queue.move(GROUP_ADD, None, declared("other"))
    assert asked == ["x"]


def test_gated_members_are_looked_at_again_when_one_stands_on_a_node() -> None:
    world = fit_world()
    world.policy.closed = {"uid-a", "uid-b"}
    world.add(member("a"), member("b"))
    assert world.place("a") is SubQueue.GATED
    world.policy.closed.clear()
    world.queue.move(ASSIGNED_POD_ADD, None, member("standing").on("n").build())
    assert {world.place(name) for name in "ab"} == {SubQueue.ACTIVE}


def test_when_a_member_is_gone_the_others_are_tried_again() -> None:
    world = fit_world()
    world.add(member("a"), member("b"), member("c"))
    fail(world, world.queue.take_pod_group(world.pop()), "GangScheduling")
    world.queue.delete("uid-c")
    world.now += 10
    world.queue.flush_backoff()
    assert len(world.queue.take_pod_group(world.pop())) == 2


def test_a_pod_that_names_another_group_changes_over() -> None:
    world = fit_world()
    world.add(member("a"), member("b"))
    world.queue.update(member("b", "other").build())
    assert [queued.pod.name for queued in world.queue.take_pod_group(world.pop())] == ["a"]


@pytest.mark.parametrize("to", ["", "other"])
@pytest.mark.parametrize("waits", [SubQueue.GATED, SubQueue.UNSCHEDULABLE, SubQueue.IN_FLIGHT])
def test_a_waiting_pod_whose_group_changes_is_tried_as_if_it_came(waits: SubQueue, to: str) -> None:
    """Its rejection was about the group that it left, whose other members are tried again, too."""
    world = fit_world()
    world.policy.closed = {"uid-a"} if waits is SubQueue.GATED else set()
    world.add(member("a"), member("b"))
    taken = world.queue.take_pod_group(world.pop())
    if waits is not SubQueue.IN_FLIGHT:
        fail(world, taken, "GangScheduling")
    assert world.place("a") is waits
    world.policy.closed.clear()
    world.now += 60
    world.queue.update((member("a", to) if to else pod("a")).build())
    if waits is SubQueue.IN_FLIGHT:
        fail(world, taken, "GangScheduling")
        world.now += 60
        world.queue.flush_backoff()
    else:
        assert world.place("b") is SubQueue.ACTIVE
    assert world.place("a") is SubQueue.ACTIVE


class GangMachine(RuleBasedStateMachine):
    """Pods of two groups, and of none, with everything that can happen to them."""

    @initialize()
    def start(self) -> None:
        self.world = fit_world()
        self.queue = self.world.queue
        self.in_hand: list[list[QueuedPod]] = []
        self.alive: set[str] = set()

    @rule(name=st.sampled_from("abcdef"), of=st.sampled_from(("", "job", "other")), priority=st.integers(0, 2))
    def comes_or_changes(self, name: str, of: str, priority: int) -> None:
        self.alive.add(name)
        self.queue.add((member(name, of) if of else pod(name)).priority(priority).build())

    @rule(name=st.sampled_from("abcdef"))
    def goes(self, name: str) -> None:
        self.alive.discard(name)
        self.queue.delete(f"uid-{name}")

    @rule(name=st.sampled_from("abcdef"), closed=st.booleans())
    def the_door(self, name: str, *, closed: bool) -> None:
        (self.world.policy.closed.add if closed else self.world.policy.closed.discard)(f"uid-{name}")

    @rule()
    def is_tried(self) -> None:
        popped = self.queue.pop()
        if popped is not None:
            self.in_hand.append(self.queue.take_pod_group(popped))

    @precondition(lambda self: self.in_hand)
    @rule(why=st.sampled_from(("Fit", "GangScheduling", "error", "placed")), data=st.data())
    def ends(self, why: str, data: st.DataObject) -> None:
        taken = self.in_hand.pop(0)
        pod_group = taken[0].pod.pod_group
        if pod_group is not None:
            (self.queue.pod_group_placed if why == "placed" else self.queue.pod_group_failed)(pod_group)
        for queued in data.draw(st.permutations(taken)):
            if why == "placed":
                if self.queue.get(queued.uid) is not None:
                    self.alive.discard(queued.pod.name)
                self.queue.done(queued.uid)
            else:
                self.queue.return_unschedulable(queued, set() if why == "error" else {why})

    @rule(seconds=st.sampled_from((0.5, 11.0, 400.0)))
    def time_passes(self, seconds: float) -> None:
        self.world.now += seconds
        self.queue.flush_backoff()
        self.queue.flush_unschedulable()

    @rule(what=st.sampled_from(("node", "group", "other", "member stands")))
    def happens(self, what: str) -> None:
        if what == "node":
            self.queue.move(NODE_ADD)
        elif what == "member stands":
            self.queue.move(ASSIGNED_POD_ADD, None, member("standing").on("n").build())
        else:
            self.queue.move(GROUP_ADD, None, declared("job" if what == "group" else "other"))

    @invariant()
    def nobody_is_lost_or_doubled(self) -> None:
        check_invariants(self.queue)
        assert self.queue.uids() == {f"uid-{name}" for name in self.alive}

    def teardown(self) -> None:
        """With doors open, and time, everybody can be tried."""
        self.world.policy.closed.clear()
        while self.in_hand:
            for queued in self.in_hand.pop():
                self.queue.return_unschedulable(queued)
        self.queue.reprioritise("default-scheduler", None)
        self.world.now += 1000
        self.queue.flush_unschedulable()
        self.world.now += 1000
        self.queue.flush_backoff()
        tried: set[str] = set()
        while (popped := self.queue.pop()) is not None:
            tried |= {queued.pod.name for queued in self.queue.take_pod_group(popped)}
        assert tried == self.alive


TestMembersAreNeitherLostNorDoubled = GangMachine.TestCase
TestMembersAreNeitherLostNorDoubled.settings = settings(max_examples=cases(100), stateful_step_count=40)
