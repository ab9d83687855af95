"""A mass of waiting pods is told of events in slices: nothing is lost by that, nothing comes twice, and no slice is long."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from queue_makers import FakePolicy, PodMaker, World, pod

from placewright.api.pods import PodInfo
from placewright.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    Action,
    ClusterEvent,
    EventKeys,
    EventResource,
    QueueingHint,
    event_with_hint,
)
from placewright.queue import events
from placewright.queue.check import check_invariants
from placewright.queue.queued import QueuedPod, SubQueue

SHAPES = ("round", "square")
CLAIM_ADD = ClusterEvent(EventResource.RESOURCE_CLAIM, Action.ADD, "ResourceClaimAdd")


class Told:
    """A world whose pods are told in slices, with a profile of three plugins; hints are noted as they are asked.

    By Node and Gone a pod is helped by an event whose object has the pod's shape. Near is asked only about pods that are near enough.
    """

    def __init__(self, slices: int | None, *, seconds: float = 0.0, **interests: Any) -> None:
        self.asked: list[tuple[str, Any]] = []
        self.seconds = seconds
        table = interests or {
            "Node": [event_with_hint(EventResource.NODE, Action.ADD, self._fits)],
            "Gone": [event_with_hint(EventResource.NODE, Action.DELETE, self._fits)],
            "Near": [event_with_hint(EventResource.POD, Action.ADD, narrow=_near)],
        }
        self.world = World(FakePolicy(interests=table))
        self.queue = self.world.queue
        self.queue._slices = slices
        self.queue.sweeps.a_slice = slices

    def _fits(self, waiting: PodInfo, old: Any, new: Any) -> QueueingHint:
        self.asked.append((waiting.name, new or old))
        self.world.now += self.seconds  # what a hint takes
        return QueueingHint.QUEUE if waiting.labels["shape"] == (new or old) else QueueingHint.SKIP

    def waiting(self, count: int, *plugins: str, shape: str = "round") -> None:
        """So many pods that these plugins rejected."""
        for index in range(count):
            self.world.rejected(shaped(f"p{index}", shape), *plugins)

    def slices(self) -> list[int]:
        """Tell pods until all know everything; how many hints each slice asked."""
        counts = []
        while self.queue.sweeps.behind:
            before = len(self.asked)
            self.queue.sweeps.sweep_some()
            check_invariants(self.queue)
            counts.append(len(self.asked) - before)
        return counts


def _near(waiting: PodInfo, _old: Any, new: PodInfo) -> bool:
    return waiting.labels["shape"] == new.labels["shape"]


def shaped(name: str, shape: str) -> PodMaker:
    return pod(name).labels(shape=shape)


# --- slices ----------------------------------------------------------------------------------------------------------------------------


def test_a_mass_of_pods_is_told_in_slices_and_all_are_told() -> None:
    told = Told(4)
    told.waiting(21, "Node")
    assert told.queue.move(NODE_ADD, None, "round") == 0, "nobody before the first slice"
    assert max(told.slices()) == 4
    assert len(told.asked) == 21
    assert {told.world.place(f"p{index}") for index in range(21)} == {SubQueue.BACKOFF}


def test_few_pods_are_told_at_once() -> None:
    told = Told(4)
    told.waiting(4, "Node")
    assert told.queue.move(NODE_ADD, None, "round") == 4
    assert not told.queue.sweeps.behind


def test_an_event_that_concerns_few_of_many_is_told_at_once() -> None:
    told = Told(4)
    told.waiting(20, "Node")
    told.world.rejected(shaped("other", "round"), "Gone")
    assert told.queue.move(NODE_DELETE, "round", None) == 1
    assert [name for name, _ in told.asked] == ["other"]


def test_a_slice_ends_in_the_middle_of_a_pods_events_too() -> None:
    told = Told(4)
    told.waiting(5, "Node", shape="square")
    for _ in range(3):
        told.queue.move(NODE_ADD, None, "round")
    assert max(told.slices()) <= 4
    assert len(told.asked) == 15


def test_a_pod_is_told_of_events_in_their_order_and_before_its_own_change() -> None:
    told = Told(2)
    told.waiting(5, "Node", shape="square")
    for new in ("first", "second"):
        told.queue.move(NODE_ADD, None, new)
    told.queue.update(shaped("p4", "second").build())
    told.slices()
    assert told.world.place("p4") is SubQueue.UNSCHEDULABLE, "when it changed, both had happened"
    assert [what for name, what in told.asked if name == "p4"] == ["first", "second"]
    assert [what for name, what in told.asked if name == "p0"] == ["first", "second"]


def test_an_event_for_one_pod_does_not_overtake_one_that_it_is_still_to_hear() -> None:
    told = Told(2)
    told.waiting(5, "Node", shape="square")
    told.world.rejected(shaped("both", "square"), "Node", "Gone")
    told.queue.move(NODE_ADD, None, "round")
    told.queue.move(NODE_DELETE, "square", None)
    assert [what for name, what in told.asked if name == "both"] == ["round", "square"]
    assert told.world.place("both") is SubQueue.BACKOFF


def test_who_began_to_wait_after_an_event_is_not_told_of_it() -> None:
    told = Told(2)
    told.waiting(5, "Node")
    told.queue.move(NODE_ADD, None, "round")
    told.world.rejected(shaped("late", "round").priority(9), "Node")
    told.slices()
    assert told.world.place("late") is SubQueue.UNSCHEDULABLE
    assert "late" not in [name for name, _ in told.asked]


def test_a_pod_that_was_deleted_and_came_again_under_its_uid_is_not_told_of_what_was_before() -> None:
    told = Told(2)
    told.waiting(5, "Node")
    told.queue.move(NODE_ADD, None, "round")
    told.queue.sweeps.sweep_some()
    told.queue.delete("uid-p3")
    told.world.rejected(shaped("p3", "round").priority(9), "Node")
    told.slices()
    assert told.world.place("p3") is SubQueue.UNSCHEDULABLE
    assert told.world.place("p4") is SubQueue.BACKOFF


def test_a_profile_that_changes_is_asked_for_its_old_hints_about_what_happened_before() -> None:
    told = Told(2)
    told.waiting(5, "Node")
    told.queue.move(NODE_ADD, None, "square")
    told.queue.reprioritise("default-scheduler")
    assert not told.queue.sweeps.behind
    assert len(told.asked) == 5


def test_a_mass_of_pods_is_tried_again_in_slices_under_a_profile_that_changed() -> None:
    told = Told(4)
    told.waiting(21, "Node")
    told.queue.reprioritise("default-scheduler", None)
    places = []
    while told.queue.sweeps.behind:
        told.queue.sweeps.sweep_some()
        check_invariants(told.queue)
        places.append(sum(told.world.place(f"p{index}") is SubQueue.BACKOFF for index in range(21)))
    assert [after - before for before, after in zip([0, *places], places, strict=False)] == [4, 4, 4, 4, 4, 1]


def test_who_was_tried_under_the_changed_profile_already_is_not_tried_once_more_for_its_sake() -> None:
    told = Told(4)
    told.waiting(9, "Node")
    told.queue.reprioritise("default-scheduler", None)
    told.queue.activate([told.queue.get("uid-p8").pod])  # type: ignore[union-attr]
    popped = told.queue.pop()
    assert popped is not None and popped.pod.name == "p8"
    told.queue.return_unschedulable(popped, {"Node"})
    told.queue.delete("uid-p7")
    while told.queue.sweeps.behind:
        told.queue.sweeps.sweep_some()
        check_invariants(told.queue)
    assert told.world.place("p8") is SubQueue.UNSCHEDULABLE
    assert {told.world.place(f"p{index}") for index in range(7)} == {SubQueue.BACKOFF}


@pytest.mark.parametrize("slices", [None, 3, 100])
def test_no_pod_is_handed_out_before_all_that_a_changed_profile_keeps_out_are_gated(slices: int | None) -> None:
    world = World(slices=slices)
    world.add(*(pod(f"p{index}") for index in range(12)))
    in_flight = world.pop()
    world.policy.closed = {f"uid-p{index}" for index in range(9)}
    world.queue.sweeps.keep_out("default-scheduler", lambda pod: pod.uid in world.policy.closed)
    world.queue.delete("uid-p7")
    world.add(pod("p12"))
    rounds = 0
    while world.queue.sweeps.behind:
        assert world.queue.pop() is None
        world.queue.sweeps.sweep_some()
        check_invariants(world.queue)
        rounds += 1
    assert rounds == (3 if slices == 3 else 0)
    assert {world.place(f"p{index}") for index in (1, 2, 3, 4, 5, 6, 8)} == {SubQueue.GATED}
    assert world.popped_names() == ["p9", "p10", "p11", "p12"]
    world.queue.return_unschedulable(in_flight, {"Node"})
    assert world.queue.get(in_flight.uid) is in_flight


async def test_a_waiter_is_woken_when_all_that_are_kept_out_are_gated() -> None:
    world = World(slices=1)
    world.add(*(pod(f"p{index}") for index in range(4)))
    world.policy.closed = {f"uid-p{index}" for index in range(3)}
    world.queue.sweeps.keep_out("default-scheduler", lambda pod: pod.uid in world.policy.closed)
    sweeping = asyncio.create_task(world.queue.sweeps.run())
    await world.queue.wait_for_pod()
    assert world.popped_names() == ["p3"]
    sweeping.cancel()
    with suppress(asyncio.CancelledError):
        await sweeping


async def test_nobody_is_decided_before_those_that_a_changed_profile_may_help_are_back() -> None:
    told = Told(4)
    told.waiting(9, "Node")
    told.queue.reprioritise("default-scheduler", None)
    sweeping = asyncio.create_task(told.queue.sweeps.run())
    await told.queue.sweeps.caught_up()
    assert {told.world.place(f"p{index}") for index in range(9)} == {SubQueue.BACKOFF}
    sweeping.cancel()
    with suppress(asyncio.CancelledError):
        await sweeping


def test_pods_that_waited_too_long_are_tried_in_slices() -> None:
    told = Told(2)
    told.waiting(5, "Node")
    told.world.now += 400
    told.world.rejected(shaped("young", "round"), "Node")
    assert told.queue.flush_unschedulable() == 0
    told.slices()
    assert {told.world.place(f"p{index}") for index in range(5)} == {SubQueue.ACTIVE}
    assert told.world.place("young") is SubQueue.UNSCHEDULABLE
    assert all(queued.flushed for place, queued in told.queue.pods() if place is SubQueue.ACTIVE)


def test_backoff_ends_for_so_many_pods_as_are_asked_for_those_first_whose_turn_is_first() -> None:
    told = Told(None)
    for index in range(5):
        told.world.rejected(shaped(f"p{index}", "round").priority(index), *())
    told.world.now += 60
    assert told.queue.flush_backoff(2) == 2
    assert {queued.pod.name for place, queued in told.queue.pods() if place is SubQueue.ACTIVE} == {"p4", "p3"}
    assert told.queue.flush_backoff(9) == 3


def test_more_events_than_are_kept_count_as_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "EVENT_LIMIT", 3)
    told = Told(2)
    told.waiting(5, "Node", shape="square")
    for _ in range(4):
        told.queue.move(NODE_ADD, None, "round")
    told.slices()
    assert told.asked == []
    assert {told.world.place(f"p{index}") for index in range(5)} == {SubQueue.BACKOFF}


def test_events_about_more_bytes_than_are_kept_count_as_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "EVENT_BYTES", 100_000)
    told = Told(2)
    told.waiting(5, "Node", shape="square")
    for number in range(4):
        told.queue.move(NODE_ADD, None, pod(f"large-{number}").labels(**{f"label-{each}": "x" * 60 for each in range(100)}).build())
    told.slices()
    assert told.asked == []
    assert {told.world.place(f"p{index}") for index in range(5)} == {SubQueue.BACKOFF}


async def test_catching_up_ends_when_all_that_happened_before_is_told_and_does_not_wait_for_what_comes_later() -> None:
    told = Told(2)
    told.waiting(9, "Node", shape="square")
    told.queue.move(NODE_ADD, None, "first")
    telling = asyncio.create_task(told.queue.sweeps.run())
    catching_up = asyncio.create_task(told.queue.sweeps.caught_up())
    turns = 0
    while not catching_up.done():
        await asyncio.sleep(0)
        turns += 1
        told.queue.move(NODE_ADD, None, f"later-{turns}")
        assert turns < 40, "it waits for events without end"
    assert [what for name, what in told.asked if what == "first"] == ["first"] * 9
    assert told.queue.sweeps.behind
    telling.cancel()
    with suppress(asyncio.CancelledError):
        await telling


async def test_catching_up_ends_when_patience_does() -> None:
    told = Told(2, seconds=0.1)
    told.waiting(90, "Node", shape="square")
    told.queue.move(NODE_ADD, None, "round")
    telling = asyncio.create_task(told.queue.sweeps.run())
    began = told.world.now
    await told.queue.sweeps.caught_up(0.3)
    assert 0.3 <= told.world.now - began < 0.6
    assert told.queue.sweeps.behind
    telling.cancel()
    with suppress(asyncio.CancelledError):
        await telling


def test_hints_that_take_long_end_a_slice() -> None:
    told = Told(8, seconds=events.SLICE_SECONDS / 2)
    told.waiting(9, "Node", shape="square")
    told.queue.move(NODE_ADD, None, "round")
    assert max(told.slices()) <= 3


def test_pods_that_a_sweep_does_not_reach_in_its_time_are_tried_instead_and_none_is_forgotten() -> None:
    told = Told(2, seconds=events.SWEEP_SECONDS / 4)
    told.waiting(9, "Node", shape="square")
    for number in range(3):
        told.queue.move(NODE_ADD, None, f"new-{number}")
    told.slices()
    waiting = [name for name in (f"p{index}" for index in range(9)) if told.world.place(name) is SubQueue.UNSCHEDULABLE]
    assert [[what for name, what in told.asked if name == each] for each in waiting] == [["new-0", "new-1", "new-2"]] * len(waiting)
    assert len(waiting) < 3, "the others are tried: a decision takes less than so many hints"
    assert told.queue.sizes().backoff == 9 - len(waiting)


def test_few_pods_that_take_long_to_tell_are_told_the_rest_in_slices() -> None:
    told = Told(9, seconds=events.SLICE_SECONDS)
    told.waiting(9, "Node", shape="square")
    told.queue.move(NODE_ADD, None, "new")
    assert len(told.asked) <= 2
    assert told.queue.sweeps.behind
    told.slices()
    assert sorted(told.asked) == [(f"p{index}", "new") for index in range(9)], "each once"


def test_a_pod_that_would_hear_of_much_before_its_own_change_is_told_that_anything_may_have_happened() -> None:
    told = Told(2, seconds=events.SLICE_SECONDS)
    told.waiting(5, "Node", shape="square")
    for number in range(9):
        told.queue.move(NODE_ADD, None, f"new-{number}")
    told.queue.update(shaped("p0", "oblong").build())
    assert len(told.asked) <= 2
    assert told.world.place("p0") is SubQueue.BACKOFF


# --- keys ------------------------------------------------------------------------------------------------------------------------------


@dataclass
class Keyed:
    """Pods found by a key: their annotation; and an event's, its object."""

    broken: bool = False
    asked: list[str] = field(default_factory=list)

    def table(self) -> dict[str, Any]:
        keys = EventKeys(self._of_pod, lambda _old, new: None if new == "all" else (new,))
        return {"Claims": [event_with_hint(EventResource.RESOURCE_CLAIM, Action.ADD, self._asked, keys=keys)]}

    def _of_pod(self, waiting: PodInfo) -> Iterable[str]:
        if self.broken:
            raise RuntimeError("no keys")
        return (waiting.labels["claim"],)

    def _asked(self, waiting: PodInfo, _old: Any, _new: Any) -> QueueingHint:
        self.asked.append(waiting.name)
        return QueueingHint.SKIP


@pytest.mark.parametrize("broken", [False, True])
def test_an_event_with_a_key_asks_only_the_pods_that_have_it_and_those_whose_keys_nobody_can_tell(broken: bool) -> None:
    keyed = Keyed()
    told = Told(None, **keyed.table())
    keyed.broken = broken
    for index in range(50):
        told.world.rejected(pod(f"p{index}").labels(claim=f"c{index}"), "Claims")
    told.queue.move(CLAIM_ADD, None, "c7")
    assert keyed.asked == ([f"p{index}" for index in range(50)] if broken else ["p7"])


def test_an_event_without_a_key_asks_all_also_in_slices() -> None:
    keyed = Keyed()
    told = Told(2, **keyed.table())
    for index in range(5):
        told.world.rejected(pod(f"p{index}").labels(claim=f"c{index}"), "Claims")
    told.queue.move(CLAIM_ADD, None, "all")
    told.slices()
    assert keyed.asked == [f"p{index}" for index in range(5)]


def test_a_pod_that_changes_is_found_under_its_new_key_alone_also_when_it_is_gated() -> None:
    keyed = Keyed()
    told = Told(None, **keyed.table())
    told.world.rejected(pod("p").labels(claim="old"), "Claims")
    told.queue.update(pod("p").labels(claim="new").build())
    told.queue.move(CLAIM_ADD, None, "old")
    assert keyed.asked == []
    told.queue.move(CLAIM_ADD, None, "new")
    assert keyed.asked == ["p"]


def test_a_profile_that_changes_brings_its_own_keys() -> None:
    keyed, other = Keyed(), Keyed()
    told = Told(None, **keyed.table())
    told.world.rejected(pod("p").labels(claim="c"), "Claims")
    told.world.policies["default-scheduler"] = FakePolicy(interests=other.table())
    told.queue.reprioritise("default-scheduler")
    told.queue.move(CLAIM_ADD, None, "c")
    assert (keyed.asked, other.asked) == ([], ["p"])


# --- whatever interleaves --------------------------------------------------------------------------------------------------------------


@dataclass
class Expected:
    """What a pod is to be told, by a model that knows nothing of slices.

    Attributes:
        shape: its label now.
        plugins: who rejected it; None while it is in flight or was not tried yet.
        missed: what happened since it was handed out.
        owed: True when something happened since that is worth another try.
    """

    shape: str
    plugins: frozenset[str] | None = None
    missed: list[tuple[str, str]] = field(default_factory=list)
    owed: bool = False


CONCERNS = {"node": "Node", "gone": "Gone", "near": "Near"}


class Interleaved(RuleBasedStateMachine):
    """Pods come, change, are tried and rejected, and go, while events happen and slices are told."""

    @initialize(slices=st.sampled_from([1, 2, 3]))
    def begin(self, slices: int) -> None:
        self.told = Told(slices)
        self.queue = self.told.queue
        self.model: dict[str, Expected] = {}
        self.taken: dict[str, QueuedPod] = {}
        self.made = 0

    @rule(shape=st.sampled_from(SHAPES), count=st.integers(1, 4))
    def pods_come(self, shape: str, count: int) -> None:
        for _ in range(count):
            self.made += 1
            name = f"p{self.made}"
            self.queue.add(shaped(name, shape).build())
            self.model[name] = Expected(shape)

    @rule(plugins=st.sets(st.sampled_from(["Node", "Gone", "Near"]), min_size=1))
    def all_are_tried_and_rejected(self, plugins: set[str]) -> None:
        self.some_are_handed_out(100)
        for name in list(self.taken):
            self.one_is_rejected(name, plugins)

    @rule(count=st.integers(1, 3))
    def some_are_handed_out(self, count: int) -> None:
        for _ in range(count):
            queued = self.queue.pop()
            if queued is None:
                return
            self.taken[queued.pod.name] = queued
            expected = self.model[queued.pod.name]
            expected.plugins, expected.missed, expected.owed = None, [], False

    @precondition(lambda self: self.taken)
    @rule(plugins=st.sets(st.sampled_from(["Node", "Gone", "Near"]), min_size=1), data=st.data())
    def somebody_is_rejected(self, plugins: set[str], data: st.DataObject) -> None:
        self.one_is_rejected(data.draw(st.sampled_from(sorted(self.taken))), plugins)

    def one_is_rejected(self, name: str, plugins: set[str]) -> None:
        self.queue.return_unschedulable(self.taken.pop(name), plugins)
        if name in self.model:
            expected = self.model[name]
            expected.plugins = frozenset(plugins)
            # What a pod in flight missed is not narrowed.
            helps = [kind for kind, shape in expected.missed if kind == "near" or shape == expected.shape]
            expected.owed = any(CONCERNS[kind] in plugins for kind in helps)

    @rule(kind=st.sampled_from(["node", "gone", "near"]), shape=st.sampled_from(SHAPES))
    def something_happens(self, kind: str, shape: str) -> None:
        if kind == "node":
            self.queue.move(NODE_ADD, None, shape)
        elif kind == "gone":
            self.queue.move(NODE_DELETE, shape, None)
        else:
            self.queue.move(ASSIGNED_POD_ADD, None, shaped("somebody", shape).on("n").build())
        for expected in self.model.values():
            expected.missed.append((kind, shape))
            if expected.plugins is not None and CONCERNS[kind] in expected.plugins and shape == expected.shape:
                expected.owed = True

    @rule(shape=st.sampled_from(SHAPES), data=st.data())
    def a_pod_changes(self, shape: str, data: st.DataObject) -> None:
        if self.model:
            name = data.draw(st.sampled_from(sorted(self.model)))
            self.queue.update(shaped(name, shape).build())
            self.model[name].shape = shape

    @rule(data=st.data())
    def a_pod_goes(self, data: st.DataObject) -> None:
        if self.model:
            name = data.draw(st.sampled_from(sorted(self.model)))
            self.queue.delete(f"uid-{name}")
            del self.model[name]

    @rule()
    def a_slice_is_told(self) -> None:
        if self.queue.sweeps.behind:
            self.queue.sweeps.sweep_some()
            check_invariants(self.queue)

    @rule()
    def all_is_told(self) -> None:
        self.queue.sweeps.sweep_all()

    @rule()
    def somebody_leaves_and_helps_nobody(self) -> None:
        self.queue.move(ASSIGNED_POD_DELETE, shaped("somebody", "round").on("n").build(), None)

    @invariant()
    def who_waits_is_owed_nothing_once_all_is_told_and_who_does_not_was_owed_something(self) -> None:
        if not hasattr(self, "model"):
            return
        for name, expected in self.model.items():
            waits = self.told.world.place(name) is SubQueue.UNSCHEDULABLE
            if expected.plugins is None:
                continue
            if not waits:
                assert expected.owed, f"{name} was brought back by nothing"
            elif not self.queue.sweeps.behind:
                assert not expected.owed, f"{name} was not told of what helps it"

    def teardown(self) -> None:
        if hasattr(self, "model"):
            self.queue.sweeps.sweep_all()
            self.who_waits_is_owed_nothing_once_all_is_told_and_who_does_not_was_owed_something()


TestInterleaved = Interleaved.TestCase
TestInterleaved.settings = settings(stateful_step_count=40)
