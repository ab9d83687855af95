"""Tenants take turns: against a plain model, against a bound, and with lanes that have no room."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from queue_makers import FakePolicy, FakeTenants, World, pod
from turns_model import TurnsModel, WaitingPod

from placewright.queue.fairheap import MOST_DEBTORS, FairHeap, Tenant, TenantTurns
from placewright.queue.inflight import Lane
from placewright.queue.queued import QueuedPod, SubQueue
from randomcases import cases

TENANTS = st.sampled_from("abcde")


def fair(**policy: Any) -> World:
    return World(FakePolicy(tenants=FakeTenants(**policy), interests={"Fit": []}))


def order(world: World, count: int) -> str:
    """The namespaces of the next pods."""
    return "".join(world.pop().pod.namespace for _ in range(count))


def heap_of(policy: FakeTenants, has_room: Callable[[Lane], bool] = lambda _: True) -> FairHeap:
    return FairHeap(policy, lambda queued: Lane(queued.pod.namespace), has_room, lambda: False, lambda: 0.0)


def queued_pod(uid: str, tenant: str, priority: int = 0, cpu: int = 1, namespace: str = "default") -> QueuedPod:
    """A pod as far as an order reads it: properties of thousands of pods need not decode each."""
    shown = SimpleNamespace(metadata=SimpleNamespace(labels={"team": tenant}))
    read: Any = SimpleNamespace(uid=uid, namespace=namespace, priority=priority, requests={"cpu": cpu}, pod=shown)
    return QueuedPod(read, 0.0)


# --- the order ---------------------------------------------------------------------------------------------------------------------------


def test_tenants_take_turns_and_each_keeps_its_own_order() -> None:
    world = fair()
    for number in range(3):
        world.add(pod(f"a{number}").namespace("a"))
    for number in range(3):
        world.add(pod(f"b{number}").namespace("b"))
    assert world.popped_names() == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_a_burst_delays_a_single_pod_of_another_tenant_by_one_pod() -> None:
    heap = heap_of(FakeTenants(label="team"))
    for number in range(10_000):
        heap.push(f"burst-{number}", (0, number), queued_pod(f"burst-{number}", "noisy"))
    for _ in range(1_000):
        assert heap.pop() is not None
    heap.push("single", (0, 1_000_000), queued_pod("single", "quiet"))
    before = 0
    while (found := heap.pop()) is not None and found[0].uid != "single":
        before += 1
    assert before <= 1


def test_a_higher_priority_goes_first_whoever_it_belongs_to() -> None:
    world = fair()
    world.add(pod("a0").namespace("a"), pod("b0").namespace("b"))
    world.add(pod("a1").namespace("a").priority(9), pod("a2").namespace("a").priority(9))
    assert world.popped_names() == ["a1", "a2", "a0", "b0"]


def test_weights_are_proportions() -> None:
    world = fair(weights={"a": 3})
    for number in range(12):
        world.add(pod(f"a{number}").namespace("a"), pod(f"b{number}").namespace("b"))
    assert Counter(order(world, 12)) == {"a": 9, "b": 3}


def test_profiles_compete_with_the_pods_whose_turn_it_is() -> None:
    world = fair()
    world.policies["other"] = FakePolicy()
    for name in ("a0", "a1", "b0"):
        world.add(pod(name).namespace(name[0]))
        world.now += 1
    world.add(pod("x").scheduler("other"), pod("urgent").scheduler("other").priority(3))
    world.now += 1
    world.add(pod("c0").namespace("c"))
    assert world.popped_names() == ["urgent", "a0", "b0", "x", "c0", "a1"]


def test_large_pods_are_charged_by_their_share() -> None:
    world = fair()
    for number in range(12):
        world.add(pod(f"a{number}").namespace("a").requests(cpu="4"), pod(f"b{number}").namespace("b").requests(cpu="1"))
    assert Counter(order(world, 10)) == {"a": 2, "b": 8}


def test_pods_without_the_label_are_one_tenant() -> None:
    world = fair(label="team")
    world.add(pod("x0"), pod("x1").namespace("other"), pod("y").labels(team="y"))
    assert world.popped_names() == ["x0", "y", "x1"]


def test_an_idle_tenant_gathers_no_credit() -> None:
    world = fair()
    world.add(*(pod(f"a{number}").namespace("a") for number in range(20)))
    assert order(world, 10) == "a" * 10
    world.add(*(pod(f"b{number}").namespace("b") for number in range(10)))
    assert Counter(order(world, 10)) == {"a": 5, "b": 5}


def test_a_tenant_whose_pods_come_one_at_a_time_gains_nothing() -> None:
    world = fair()
    world.add(*(pod(f"a{number}").namespace("a") for number in range(30)), *(pod(f"b{number}").namespace("b") for number in range(30)))
    popped = []
    for number in range(30):
        world.add(pod(f"c{number}").namespace("c"))  # one pod waits at any time
        popped.append(world.pop().pod.namespace)
    shares = Counter(popped)
    assert max(shares.values()) - min(shares.values()) <= 2, shares


def test_a_tenant_gains_nothing_by_failing_pods() -> None:
    world = fair()
    world.add(*(pod(f"a{number}").namespace("a") for number in range(40)))
    world.add(*(pod(f"b{number}").namespace("b") for number in range(40)))
    attempts: Counter[str] = Counter()
    for _ in range(40):
        queued = world.pop()
        attempts[queued.pod.namespace] += 1
        if queued.pod.namespace == "b":  # fails, and is tried again at once
            world.queue.return_unschedulable(queued, {"Fit"})
            world.queue.activate([queued.pod])
    assert abs(attempts["a"] - attempts["b"]) <= 1, attempts


def test_rejected_pods_do_not_count_among_those_that_wait_for_a_turn() -> None:
    world = fair()
    for number in range(5):
        world.rejected(pod(f"a{number}").namespace("a"), "Fit")
    assert world.queue.sizes().unschedulable == 5
    world.add(pod("b0").namespace("b"), pod("b1").namespace("b"))
    assert order(world, 2) == "bb"
    (queue,) = world.queue.profile_queues()
    assert queue.fair is not None
    assert [*queue.fair.turns()] == [], "nothing is kept of tenants without waiting pods"


def test_a_group_comes_as_one_and_counts_with_its_size() -> None:
    world = fair()
    world.add(*(pod(f"g{number}").namespace("a").in_group("gang") for number in range(4)))
    world.add(*(pod(f"b{number}").namespace("b") for number in range(8)), pod("late").namespace("a"))
    first = world.pop()
    assert first.pod.pod_group is not None
    assert len(world.queue.take_pod_group(first)) == 4
    assert order(world, 5) in ("bbbba", "bbbab"), "four pods of the other tenant stand against the group's four"


def test_a_pod_taken_out_of_backoff_early_is_charged_while_others_wait_for_room() -> None:
    places = {"full": 0, "b": 9}
    heap = heap_of(FakeTenants(label="team"), lambda lane: places[lane.namespace] > 0)
    for number in range(4):
        heap.push(f"x{number}", (number,), queued_pod(f"x{number}", "x", namespace="full"))
    assert heap.pop() is None
    heap.charge(queued_pod("early", "y", cpu=2, namespace="b"))
    for number in range(4):
        heap.push(f"y{number}", (number,), queued_pod(f"y{number}", "y", namespace="b"))
    places["full"] = 9
    for _ in range(9):
        heap.reopen()
    assert "".join(found[0].uid[0] for _ in range(4) if (found := heap.pop()) is not None) == "xxyx"


def test_the_members_of_a_group_wait_at_the_priority_of_the_first() -> None:
    world = fair()
    world.add(pod("low").namespace("a").in_group("gang"), pod("other").namespace("b").priority(5))
    world.add(pod("high").namespace("a").in_group("gang").priority(9))
    assert {world.pop().pod.name, world.pop().pod.name} == {"low", "high"}


def test_a_pod_that_changes_its_label_waits_with_its_new_tenant() -> None:
    world = fair(label="team")
    world.add(*(pod(f"a{number}").labels(team="a") for number in range(3)), pod("b").labels(team="b"))
    world.queue.update(pod("a2").labels(team="c").build())
    assert world.popped_names() == ["a0", "b", "a2", "a1"]


# --- the model ---------------------------------------------------------------------------------------------------------------------------

steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), TENANTS, st.integers(0, 1), st.integers(1, 9), st.integers(0, 3)),
        st.tuples(st.just("pop")),
        st.tuples(st.just("remove"), st.integers(0, 99)),
        st.tuples(st.just("weigh"), TENANTS, st.integers(1, 4)),
    ),
    max_size=80,
)


@given(steps)
def test_a_plain_model_hands_out_the_same_pods(steps: list[tuple[Any, ...]]) -> None:
    weights: dict[str, int] = {}
    policy = FakeTenants(label="team", weights=weights)
    heap, model, made = heap_of(policy), TurnsModel(weights), 0
    for step, *rest in steps:
        if step == "push":
            tenant, priority, cpu, key = rest
            made += 1
            uid = f"{tenant}{made}"
            queued = queued_pod(uid, tenant, priority, cpu)
            heap.push(uid, (key,), queued)
            model.push(WaitingPod(uid, tenant, priority, key, policy.charge(queued.pod)))
        elif step == "pop":
            found = heap.pop()
            assert (None if found is None else found[0].uid) == model.pop()
        elif step == "remove" and model.pods:
            uid = model.pods[rest[0] % len(model.pods)].uid
            assert heap.remove(uid) is not None
            model.remove(uid)
        elif step == "weigh":
            weights[rest[0]] = rest[1]
        assert len(heap) == len(model.pods)
    while (found := heap.pop()) is not None:
        assert found[0].uid == model.pop()
    assert model.pop() is None
    assert [*heap.turns()] == []


# --- the bound ---------------------------------------------------------------------------------------------------------------------------

#: One move of an adversary between two decisions: old tenants' pods, new tenants with a pod or two, and how large they are.
kinds = st.sampled_from(["old", "new", "new pair", "back", "nothing"])
moves = st.lists(st.tuples(kinds, st.integers(0, 5), st.integers(1, 20)), min_size=1, max_size=12)


def longest_wait(moves: list[tuple[str, int, int]], *, same_size: bool, weights: dict[str, int], others: int) -> tuple[int, int]:
    """(pods handed out before the second pod of a tenant that came first, most tenants that waited meanwhile)."""
    policy = FakeTenants(label="team", weights=weights)
    heap, made = heap_of(policy), 0

    def push(tenant: str, cpu: int) -> None:
        nonlocal made
        made += 1
        uid = f"{tenant}-{made}"
        heap.push(uid, (made,), queued_pod(uid, tenant, cpu=1 if same_size else cpu))

    for number in range(others):
        push(f"old{number}", 1)
        push(f"old{number}", 1)
    push("ours", 5)
    push("ours", 5)
    handed_out: list[str] = []
    ours, before, most, back = 0, 0, 0, 0
    while ours < 2:
        for kind, which, cpu in moves:
            if kind == "old" and len(heap) < 60:
                push(f"old{which}", cpu)
            elif kind.startswith("new") and len(heap) < 60:
                for _ in range(2 if kind == "new pair" else 1):
                    push(f"new{made}", cpu)
            elif kind == "back" and handed_out and len(heap) < 60:  # a tenant that had a pod comes back, as with a pod that failed
                back += 1
                push(handed_out[-1 - back % len(handed_out)], cpu)
        (turns,) = heap.turns()
        most = max(most, len(turns.tenants))
        found = heap.pop()
        assert found is not None
        tenant = policy.tenant_of(found[0].pod)
        if tenant == "ours":
            ours += 1
        else:
            handed_out.append(tenant)
            before += ours
        assert before < 2_000, "our pod starves"
    return before, most


@settings(max_examples=cases(100), deadline=None)
@given(moves, st.integers(0, 6))
def test_no_flood_delays_a_pod_by_more_than_three_pods_for_each_tenant(moves: list[tuple[str, int, int]], others: int) -> None:
    before, most = longest_wait(moves, same_size=True, weights={}, others=others)
    assert before <= 3 * most


@settings(max_examples=cases(100), deadline=None)
@given(moves, st.integers(0, 6))
def test_where_pods_differ_in_size_the_bound_grows_with_the_size_of_the_pod_before(moves: list[tuple[str, int, int]], others: int) -> None:
    before, most = longest_wait(moves, same_size=False, weights={}, others=others)
    assert before <= (5 + 2) * most  # the tenant's pod before cost five times as much as the smallest


@settings(max_examples=60, deadline=None)
@given(moves, st.integers(0, 6), st.integers(1, 5))
def test_weights_of_other_tenants_lengthen_the_wait_in_proportion(moves: list[tuple[str, int, int]], others: int, weight: int) -> None:
    heavy = {f"old{number}": weight for number in range(6)}
    before, most = longest_wait(moves, same_size=True, weights=heavy, others=others)
    assert before <= 3 * weight * most  # each tenant counts with its weight


# --- lanes without room ------------------------------------------------------------------------------------------------------------------

room_steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), TENANTS, st.sampled_from(["n", "m"]), st.integers(0, 1)),
        st.tuples(st.just("pop")),
        st.tuples(st.just("remove"), st.integers(0, 99)),
        st.tuples(st.just("fill"), st.sampled_from(["n", "m"])),
        st.tuples(st.just("free"), st.sampled_from(["n", "m"]), st.integers(1, 2)),
        st.tuples(st.just("look")),
    ),
    max_size=80,
)


@given(room_steps)
def test_a_pod_is_handed_out_exactly_when_a_lane_with_room_has_one(steps: list[tuple[Any, ...]]) -> None:
    places = {"n": 1, "m": 1}
    heap = heap_of(FakeTenants(label="team"), lambda lane: places[lane.namespace] > 0)
    there: dict[str, QueuedPod] = {}
    for number, (step, *rest) in enumerate(steps):
        eligible = [each for each in there.values() if places[each.pod.namespace] > 0]
        if step == "push":
            tenant, namespace, priority = rest
            queued = there[f"{number}"] = queued_pod(f"{number}", tenant, priority, namespace=namespace)
            heap.push(queued.uid, (number,), queued)
        elif step in ("pop", "look"):
            assert (heap.first_key() is not None) == bool(eligible)
            if step == "pop" and eligible:
                found = heap.pop()
                assert found is not None
                assert found[0].pod.priority == max(each.pod.priority for each in eligible)
                assert places[found[1].namespace] > 0
                places[found[1].namespace] -= 1
                del there[found[0].uid]
        elif step == "remove" and there:
            uid = list(there)[rest[0] % len(there)]
            assert heap.remove(uid) is there.pop(uid)
        elif step == "fill":
            places[rest[0]] = 0
        elif step == "free":
            places[rest[0]] += rest[1]
            for _ in range(rest[1]):
                heap.reopen()
        assert len(heap) == len(there)


def test_a_full_lane_costs_one_tenant_for_each_place_that_is_left() -> None:
    asked = 0

    def has_room(_: Lane) -> bool:
        nonlocal asked
        asked += 1
        return places > 0

    places = 1
    heap = heap_of(FakeTenants(label="team"), has_room)
    for number in range(2_000):
        heap.push(f"{number}", (number,), queued_pod(f"{number}", f"t{number}"))
    assert heap.pop() is not None
    places = 0
    assert heap.pop() is None
    asked = 0
    for _ in range(100):
        places = 1
        heap.reopen()
        assert heap.pop() is not None
        places = 0
        assert heap.pop() is None
    assert asked < 100 * 20


# --- what is kept ------------------------------------------------------------------------------------------------------------------------


def test_what_is_kept_of_a_tenant_goes_with_its_last_pod() -> None:
    heap = heap_of(FakeTenants(label="team"))
    for number in range(20_000):
        heap.push("always", (0,), queued_pod("always", "always"))
        heap.push(f"{number}", (number,), queued_pod(f"{number}", f"tenant-{number}"))
        (turns,) = heap.turns()
        while len(heap) > 3:
            assert heap.pop() is not None
        assert len(turns.tenants) <= 4
        assert len(turns._debts) <= 10
    while heap.pop() is not None:
        pass
    assert [*heap.turns()] == []
    assert len(list(heap.waits)) <= 51


def test_the_debts_of_tenants_that_left_are_bounded() -> None:
    turns = TenantTurns(0)
    heap = heap_of(FakeTenants())
    turns.begin(Tenant("waits", turns, heap._tenant("waits", 0).lanes), 1_000_000)
    for number in range(3 * MOST_DEBTORS):
        turns.charge_absent(f"{number}", 10**6, 1)
    assert len(turns._debts) <= MOST_DEBTORS


# --- while a profile runs ----------------------------------------------------------------------------------------------------------------


def test_fairness_is_switched_on_and_off_between_two_decisions() -> None:
    world = World(FakePolicy())
    for number in range(4):
        world.add(pod(f"a{number}").namespace("a"))
    for number in range(4):
        world.add(pod(f"b{number}").namespace("b"))
    assert world.pop().pod.name == "a0"
    world.policy.tenants = FakeTenants()
    world.queue.reprioritise("default-scheduler")
    assert [world.pop().pod.name for _ in range(4)] == ["a1", "b0", "a2", "b1"]
    world.policy.tenants = None
    world.queue.reprioritise("default-scheduler")
    assert world.popped_names() == ["a3", "b2", "b3"]


def test_a_change_of_order_moves_pods_in_slices_and_loses_none() -> None:
    world = World(FakePolicy(), slices=10)
    world.add(*(pod(f"p{number}").namespace(f"n{number % 5}") for number in range(95)))
    world.policy.tenants = FakeTenants()
    world.queue.reprioritise("default-scheduler")
    (queue,) = world.queue.profile_queues()
    assert queue.fair is not None
    slices = 0
    while world.queue.sweeps.behind:
        before = len(queue.fair)
        world.queue.sweeps.sweep_some()
        assert len(queue.fair) - before <= 10
        assert len(queue.active) == 95
        slices += 1
    assert slices == 10
    assert order(world, 5) == "".join(f"n{number}" for number in range(5))


def test_pods_come_and_go_while_the_order_changes_and_it_changes_back() -> None:
    world = World(FakePolicy(), slices=10)
    world.add(*(pod(f"p{number}").namespace(f"n{number % 5}") for number in range(60)))
    world.policy.tenants = FakeTenants()
    world.queue.reprioritise("default-scheduler")
    world.queue.sweeps.sweep_some()
    world.add(pod("new").namespace("n7"))
    world.queue.delete("uid-n1-p1")
    world.queue.delete("uid-n0-p55")
    assert world.pop().pod.name == "p10", "in the former order, until all have moved"
    world.policy.tenants = None
    world.queue.reprioritise("default-scheduler")
    world.queue.sweeps.sweep_some()
    assert world.queue.sizes().active == 58
    while world.queue.sweeps.behind:
        world.queue.sweeps.sweep_some()
    names = world.popped_names()
    assert len(names) == 58
    assert world.queue.locate("uid-n7-new") is SubQueue.IN_FLIGHT


def test_other_weights_take_effect_without_sorting_anything() -> None:
    world = fair()
    for number in range(16):
        world.add(pod(f"a{number}").namespace("a"), pod(f"b{number}").namespace("b"))
    (queue,) = world.queue.profile_queues()
    before = queue.active
    world.policy.tenants = FakeTenants(weights={"b": 3})
    world.queue.reprioritise("default-scheduler")
    assert queue.active is before
    assert Counter(order(world, 16))["b"] >= 11


# --- what people are told ----------------------------------------------------------------------------------------------------------------


def test_a_waiting_pod_is_told_its_turn_and_its_position() -> None:
    world = fair()
    world.add(*(pod(f"a{number}").namespace("a") for number in range(3)), pod("b0").namespace("b"), pod("first").priority(5))
    (queue,) = world.queue.profile_queues()
    assert queue.fair is not None
    assert queue.fair.turn_of("uid-a-a2") == ("a", 1, 2, 3, 3, 1, False)
    assert queue.fair.turn_of("uid-b-b0") == ("b", 2, 2, 1, 1, 1, False)
    assert queue.fair.turn_of("nobody") is None


def test_the_waits_of_few_tenants_are_counted_by_name() -> None:
    heap = heap_of(FakeTenants(label="team"))
    for number in range(200):
        heap.push(f"{number}", (number,), queued_pod(f"{number}", f"tenant-{number:03}"))
        assert heap.pop() is not None
    named = dict(heap.waits)
    assert len(named) == 51
    assert named["tenant-000"].pods == 1
    assert sum(wait.pods for wait in named.values()) == 200
    assert named["(other)"].pods == 150


# --- between two orders ------------------------------------------------------------------------------------------------------------------


async def test_no_pod_is_decided_before_all_are_in_their_new_order() -> None:
    world = World(FakePolicy(), slices=10)
    world.add(*(pod(f"p{number}").namespace(f"n{number % 5}") for number in range(60)))
    sweeping = asyncio.create_task(world.queue.sweeps.run())
    world.policy.tenants = FakeTenants()
    world.queue.reprioritise("default-scheduler")
    assert world.queue.sweeps.behind
    await world.queue.sweeps.caught_up()
    (queue,) = world.queue.profile_queues()
    assert queue.active is queue.fair
    assert len(queue.active) == 60
    sweeping.cancel()


def test_a_profile_may_go_and_come_back_while_its_pods_are_between_two_orders() -> None:
    world = World(FakePolicy(), slices=10)
    world.add(*(pod(f"p{number}").namespace(f"n{number % 5}") for number in range(60)))
    world.policy.tenants = FakeTenants()
    world.queue.reprioritise("default-scheduler")
    world.queue.sweeps.sweep_some()
    policy = world.policies.pop("default-scheduler")
    world.queue.reprioritise("default-scheduler")
    assert world.queue.sizes() == (0, 0, 60, 0, 0)
    world.policies["default-scheduler"] = policy
    world.queue._queues["default-scheduler"].adopt(policy)
    for uid in tuple(world.queue.uids()):
        world.queue.retry(uid)
    while world.queue.sweeps.behind:
        world.queue.sweeps.sweep_some()
    assert order(world, 60) == "".join(f"n{number % 5}" for number in range(60))
