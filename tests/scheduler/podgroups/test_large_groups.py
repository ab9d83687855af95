"""A group of many members: other pods are decided meanwhile and see none of it; no member's cost grows with its group."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.api.pods import PodInfo
from placewright.queue.check import check_invariants
from placewright.queue.profilequeue import ProfileQueue
from placewright.queue.queued import QueuedPod, SubQueue
from placewright.scheduler.podgroups.barrier import MEMBERS_A_TURN
from placewright.scheduler.turns import TURN_SECONDS
from scheduler.makers import World, node, pod

from .makers import bound, group, member, members

COUNT = 3 * MEMBERS_A_TURN


class Busy:
    """A world with a large group, whose decisions take time: the clock goes on with each member that is placed."""

    def __init__(self, nodes: int = 1, *, minimum: int = COUNT, cpu: int = 1000) -> None:
        self.world = World().nodes(*(node(f"n{index}").offers(cpu=str(cpu), pods="1000") for index in range(nodes)))
        self.world.event_handlers.cluster_object(group("job", minimum))
        self.world.pods(*members("job", COUNT))
        #: What happens at each of the event loop's turns, by number, while members are placed.
        self.meanwhile: dict[int, Callable[[], Any]] = {}
        #: How many members were assumed at each turn.
        self.seen: list[int] = []
        assume = self.world.cluster.assume

        def slowly(decided: PodInfo, name: Any) -> None:
            self.world.now += TURN_SECONDS / 10
            assume(decided, name)

        self.world.cluster.assume = slowly  # type: ignore[method-assign]

    def others_see(self) -> list[tuple[str, int]]:
        """Note the name of each pod without a group as it is assumed, with the number of members that stand then."""
        seen: list[tuple[str, int]] = []
        cluster, assume = self.world.cluster, self.world.cluster.assume

        def noted(decided: PodInfo, name: Any) -> None:
            if decided.pod_group is None:
                seen.append((decided.name, sum(cluster.placement(f"uid-job-{index}") is not None for index in range(COUNT))))
            assume(decided, name)

        cluster.assume = noted  # type: ignore[method-assign]
        return seen

    async def run(self) -> None:
        """Decide for real, with somebody else on the event loop, until all members are bound or wait."""
        deciding = asyncio.create_task(self.world.scheduler.run())
        for turn in range(50 * COUNT):
            self.seen.append(self.world.cluster.assumed_count)
            self.meanwhile.get(turn, lambda: None)()
            await asyncio.sleep(0)
            if not len(self.world.queue.in_flight) and self.world.queue.sizes().active == 0:
                break
        deciding.cancel()
        with suppress(asyncio.CancelledError):
            await deciding


async def test_others_have_their_turns_between_the_members() -> None:
    busy = Busy()
    await busy.run()
    assert len(bound(busy.world)) == COUNT
    steps = [after - before for before, after in zip(busy.seen, busy.seen[1:], strict=False)]
    assert 0 < max(steps) <= 12, "a turn is worth ten members"


async def test_other_pods_are_decided_between_the_members_and_see_none_of_them() -> None:
    busy = Busy()
    seen = busy.others_see()
    for turn in (4, 9):
        busy.meanwhile[turn] = lambda turn=turn: busy.world.pods(pod(f"other-{turn}").requests(cpu="1"))
    await busy.run()
    assert seen == [("other-4", 0), ("other-9", 0)], "decided while the group was laid down"
    names = [attempt.pod.name for attempt in busy.world.log.attempts]
    assert names.index("other-4") < names.index("job-0"), "not after the group"
    assert len(bound(busy.world)) == COUNT + 2


def held_up() -> Busy:
    """A pod is handed out at the fourth turn, and has to wait for a more important group."""
    busy = Busy()
    busy.world.pods(*(maker.priority(10) for maker in members("job", COUNT)))
    busy.meanwhile[4] = lambda: busy.world.pods(pod("later").requests(cpu="1"))
    return busy


async def test_a_less_important_pod_waits_for_the_group() -> None:
    busy = held_up()
    seen = busy.others_see()
    await busy.run()
    assert seen == [("later", COUNT)]


async def test_a_pod_that_is_deleted_while_it_waits_for_a_group_is_not_decided() -> None:
    busy = held_up()
    busy.meanwhile[8] = lambda: busy.world.event_handlers.pod_gone("uid-later")
    await busy.run()
    assert len(bound(busy.world)) == COUNT
    assert busy.world.queue.in_flight.get("uid-later") is None, "or it could never come again"


async def test_a_pod_that_waits_for_a_group_when_the_lead_is_lost_returns_to_the_queue() -> None:
    busy = held_up()
    monkeypatch = pytest.MonkeyPatch()
    lead = busy.world.scheduler.attempts.failures.lead
    busy.meanwhile[8] = lambda: monkeypatch.setattr(type(lead), "active", property(lambda _self: False))
    try:
        await busy.run()
    finally:
        monkeypatch.undo()
    assert bound(busy.world) == []
    assert busy.world.place("later") is SubQueue.BACKOFF
    assert busy.world.events.recorded == [], "the next leader decides it"


@given(
    arrivals=st.lists(st.tuples(st.integers(1, 60), st.integers(1, 40)), max_size=8),
    nodes=st.integers(2, 4),
    spare=st.integers(0, 30),
)
async def test_whatever_comes_between_the_members_no_node_is_overfilled_and_the_group_is_placed_whole_or_not(
    arrivals: list[tuple[int, int]], nodes: int, spare: int
) -> None:
    busy = Busy(nodes, cpu=(COUNT + spare) // nodes + 1)
    for index, (turn, cpu) in enumerate(arrivals):
        busy.meanwhile[turn] = lambda index=index, cpu=cpu: busy.world.pods(pod(f"other-{index}").requests(cpu=str(cpu)))
    await busy.run()
    world = busy.world
    used: Counter[str] = Counter()
    for name, node_name, *_ in world.binder.bound:
        used[str(node_name)] += 1 if name.startswith("job-") else arrivals[int(name.removeprefix("other-"))][1]
    assert all(cpu <= (COUNT + spare) // nodes + 1 for cpu in used.values())
    placed = sum(name.startswith("job-") for name in bound(world))
    assert placed in (0, COUNT)
    check_invariants(world.queue)


async def test_a_member_that_is_deleted_meanwhile_is_left_out_and_the_rest_is_bound_where_it_may_be() -> None:
    busy = Busy(minimum=COUNT - 2)
    busy.meanwhile[3] = lambda: busy.world.event_handlers.pod_gone("uid-job-0")  # placed already
    busy.meanwhile[4] = lambda: busy.world.event_handlers.pod_gone(f"uid-job-{COUNT - 1}")  # yet to be tried
    await busy.run()
    assert sorted(bound(busy.world)) == sorted(f"job-{index}" for index in range(1, COUNT - 1))
    assert busy.world.cluster.placement("uid-job-0") is None


async def test_a_member_that_is_deleted_meanwhile_and_needed_takes_all_back() -> None:
    busy = Busy()
    busy.meanwhile[3] = lambda: busy.world.event_handlers.pod_gone("uid-job-0")
    await busy.run()
    assert bound(busy.world) == []
    assert busy.world.cluster.assumed_count == 0


async def test_a_node_that_goes_meanwhile_takes_all_back_and_they_are_tried_again() -> None:
    busy = Busy(2)
    busy.meanwhile[5] = lambda: busy.world.event_handlers.node_gone("n0")
    await busy.run()
    assert bound(busy.world) == []
    assert busy.world.cluster.assumed_count == 0
    assert {busy.world.place(f"job-{index}") for index in range(COUNT)} <= {SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF}


async def test_who_loses_the_lead_meanwhile_takes_all_back() -> None:
    busy = Busy()
    lead = busy.world.scheduler.attempts.failures.lead
    monkeypatch = pytest.MonkeyPatch()
    busy.meanwhile[3] = lambda: monkeypatch.setattr(type(lead), "active", property(lambda _self: False))
    try:
        await busy.run()
    finally:
        monkeypatch.undo()
    assert bound(busy.world) == []
    assert busy.world.cluster.assumed_count == 0


async def test_the_bindings_of_a_large_group_begin_and_go_on_in_turns() -> None:
    busy = Busy()
    sent: list[int] = []
    bind = busy.world.binder.bind

    async def counted(*args: Any) -> None:
        sent.append(len(busy.seen))
        await bind(*args)

    busy.world.binder.bind = counted  # type: ignore[method-assign]
    await busy.run()
    assert len(sent) == COUNT
    assert max(sent.count(turn) for turn in sent) <= 2 * MEMBERS_A_TURN


def looked_at(count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """How often members are asked whether they may be tried, and get another turn, until so many have come and been handed out."""
    asked, sorted_anew = [0], [0]
    may_be_tried, resort = PodInfo.may_be_tried.fget, ProfileQueue.resort  # type: ignore[attr-defined]

    def counting(asked_about: PodInfo) -> bool:
        asked[0] += 1
        answer: bool = may_be_tried(asked_about)
        return answer

    def resorting(queue: ProfileQueue, queued: QueuedPod) -> None:
        sorted_anew[0] += 1
        resort(queue, queued)

    with monkeypatch.context() as patch:
        patch.setattr(PodInfo, "may_be_tried", property(counting))
        patch.setattr(ProfileQueue, "resort", resorting)
        world = World().nodes(node("n").offers(cpu="1000", pods="1000"))
        world.event_handlers.cluster_object(group("job", count))
        world.pods(*members("job", count))
        popped = world.queue.pop()
        assert popped is not None
        assert len(world.queue.take_pod_group(popped)) == count
    return asked[0], sorted_anew[0]


def test_what_a_member_costs_in_the_queue_does_not_grow_with_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = looked_at(20, monkeypatch), looked_at(200, monkeypatch)
    assert few[0] > 0
    assert many[0] <= 10 * few[0]
    assert many[1] == few[1] == 0


#: What happens to a member: it comes or changes (with a gate, leaving, of another scheduler, of another priority), is handed out, or goes.
CHANGES = st.tuples(st.integers(0, 4), st.sampled_from(["plain", "gate", "other", "urgent", "pop", "back", "gone"]))


@given(st.lists(CHANGES, max_size=40))
def test_what_is_kept_of_a_group_is_what_its_members_say(changes: list[tuple[int, str]]) -> None:
    world = World().nodes(node("n"))
    world.event_handlers.cluster_object(group("job", 3))
    taken: list[QueuedPod] = []
    for index, what in changes:
        if what == "pop":
            popped = world.queue.pop()
            taken += [] if popped is None else world.queue.take_pod_group(popped)
        elif what == "back":
            for queued in taken:
                world.queue.return_unschedulable(queued, {"NodeResourcesFit"})
            taken = []
        elif what == "gone":
            world.event_handlers.pod_gone(f"uid-job-{index}")
        else:
            maker = member("job", index)
            if what == "gate":
                maker = maker.gates("g")
            if what == "other":
                maker = maker.scheduler("other")
            if what == "urgent":
                maker = maker.priority(5)
            world.pods(maker)
        for pod_group in world.queue.pod_groups:
            tried = [queued.pod for queued in pod_group.members.values() if queued.pod.may_be_tried]
            names = [each.scheduler_name for each in tried]
            assert dict(pod_group.ready) == {name: names.count(name) for name in names}
            assert pod_group.first.pod.priority == max(queued.pod.priority for queued in pod_group.members.values())
            assert set(pod_group.gated) == {uid for uid, queued in pod_group.members.items() if queued.gated}
