"""How many pods are handed out ahead of their ends, and whose: no namespace and no extender takes a profile's room."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from queue_makers import CheckedQueue, FakePolicy, PodMaker, World, pod

from placewright.queue.inflight import Lane, ProfileRoom, RoomPlace, RoomSizes
from placewright.queue.order import LanedHeap, Order, OrderTransition
from placewright.queue.queued import QueuedPod, SubQueue
from randomcases import cases

SIZES = RoomSizes(on_their_way=8, in_all=16, by_extender=4)


def within(namespace: str, name: str) -> PodMaker:
    """A pod of a namespace; names are unique here, and uids follow them."""
    return pod(name).namespace(namespace).uid(f"uid-{name}")


class SmallWorld(World):
    """Profiles have small rooms: a namespace that is alone gets four of eight places, and two of an extender's four."""

    def __init__(self, policy: FakePolicy | None = None) -> None:
        super().__init__(policy)
        self.queue = CheckedQueue(self.policies.get, lambda: self.now, None, sizes=SIZES)

    def crowd(self, namespace: str, count: int, scheduler: str = "default-scheduler") -> None:
        """So many pods of a namespace."""
        self.add(*(within(namespace, f"{namespace}-{number}").scheduler(scheduler) for number in range(count)))

    def handed_out(self) -> Counter[str]:
        """Pods that are handed out now, until there are no more, by namespace."""
        found: Counter[str] = Counter()
        while (queued := self.queue.pop()) is not None:
            found[queued.pod.namespace] += 1
        return found


def test_a_namespace_that_is_alone_gets_a_half_and_the_rest_is_there_for_whoever_comes() -> None:
    world = SmallWorld()
    world.crowd("stuck", 100)
    assert world.handed_out() == {"stuck": 4}
    world.crowd("late", 100)
    assert world.handed_out() == {"late": 2}
    world.crowd("later", 1)
    assert world.handed_out() == {"later": 1}


def test_a_profile_takes_no_room_of_another() -> None:
    world = SmallWorld()
    world.policies["other"] = FakePolicy()
    for number in range(9):
        world.crowd(f"stuck-{number}", 5)
    assert sum(world.handed_out().values()) == 8
    world.crowd("healthy", 5, "other")
    assert world.handed_out() == {"healthy": 4}


def test_a_pod_whose_attempt_ends_leaves_its_place_to_the_next_of_its_namespace() -> None:
    world = SmallWorld()
    world.crowd("busy", 12)
    first = [world.pop() for _ in range(4)]
    assert world.queue.pop() is None
    world.queue.done(first[0].uid)
    world.queue.return_unschedulable(first[1], {"Fit"})
    assert world.handed_out() == {"busy": 2}


async def test_who_waits_for_a_pod_hears_that_a_place_was_left() -> None:
    world = SmallWorld()
    world.crowd("busy", 5)
    taken = [world.pop() for _ in range(4)]
    waiting = asyncio.create_task(world.queue.wait_for_pod())
    await asyncio.sleep(0)
    assert not waiting.done()
    world.queue.in_flight.place(taken[0].uid).stand_aside()
    await asyncio.wait_for(waiting, 5)
    assert world.pop().pod.namespace == "busy"


def test_the_order_of_a_profile_holds_among_those_that_may_be_tried() -> None:
    world = SmallWorld()
    world.crowd("stuck", 4)
    world.handed_out()
    world.add(within("other", "low").priority(1), within("stuck", "passed-over").priority(9))
    world.add(within("another", "high").priority(5))
    assert world.popped_names() == ["high", "low"]
    assert world.place("passed-over") is SubQueue.ACTIVE


def test_pods_that_stand_aside_leave_their_places_and_have_a_bound_of_their_own() -> None:
    world = SmallWorld()
    world.crowd("slow", 100)
    handed_out = 0
    for _ in range(10):
        while (queued := world.queue.pop()) is not None:
            handed_out += 1
            world.queue.in_flight.place(queued.uid).stand_aside()
    assert handed_out == 7, "half of what is there for those that wait, but for what is kept"
    world.crowd("quick", 1)
    assert world.handed_out() == {"quick": 1}


def test_a_pod_that_goes_on_takes_its_place_again_though_there_is_none() -> None:
    world = SmallWorld()
    world.crowd("slow", 8)
    places = [world.queue.in_flight.place(world.pop().uid) for _ in range(3)]
    for place in places:
        place.stand_aside()
    assert world.handed_out() == {"slow": 4}, "four on their way, three beside"
    for place in places:
        place.go_on()
    world.crowd("other", 1)
    assert world.handed_out() == {"other": 1}, "a namespace that has more than its share takes nothing from others"


def test_who_waits_for_permission_is_not_counted() -> None:
    world = SmallWorld()
    world.crowd("gang", 100)
    for _ in range(100):
        world.queue.in_flight.place(world.pop().uid).await_permission()
    world.crowd("late", 9)
    assert world.handed_out() == {"late": 4}, "as many as if nobody waited"


def test_an_extender_that_does_not_answer_holds_up_only_the_pods_that_it_binds() -> None:
    world = SmallWorld()
    world.policy.extenders = {f"uid-a-{number}": "http://hangs" for number in range(10)}
    world.crowd("a", 10)
    assert world.handed_out() == {"a": 2}
    world.add(within("a", "plain"))
    assert world.popped_names() == ["plain"], "the same namespace, without the extender"


def test_pods_that_back_off_are_not_tried_early_where_their_namespace_has_no_room() -> None:
    world = SmallWorld()
    world.crowd("busy", 5)
    failed = world.pop()
    world.queue.return_unschedulable(failed, {"Fit"})
    world.handed_out()
    world.queue.retry(failed.uid)
    assert world.place("busy-0") is SubQueue.BACKOFF
    assert world.queue.pop() is None


def test_a_pod_that_is_deleted_while_it_is_tried_keeps_its_place_until_the_attempt_ends() -> None:
    world = SmallWorld()
    world.crowd("busy", 5)
    taken = [world.pop() for _ in range(4)]
    world.queue.delete(taken[0].uid)
    assert world.queue.pop() is None
    world.queue.return_unschedulable(taken[0])
    assert world.handed_out() == {"busy": 1}


def test_the_room_is_empty_when_all_attempts_have_ended() -> None:
    world = SmallWorld()
    for name in ("a", "b", "c"):
        world.crowd(name, 30)
    while (queued := world.queue.pop()) is not None:
        place = world.queue.in_flight.place(queued.uid)
        place.stand_aside()
        place.stand_aside()
        place.go_on()
        world.queue.done(queued.uid)
        place.stand_aside()
        place.leave()
    (queue,) = world.queue.profile_queues()
    assert (queue.room.on_their_way, queue.room.aside, len(world.queue)) == (0, 0, 0)


# --- the active pods, against a sorted list ------------------------------------------------------------------------------------------


class Counted(ProfileRoom):
    """Counts how often it is asked."""

    asked = 0

    def may_enter(self, lane: Lane) -> bool:
        self.asked += 1
        return super().may_enter(lane)


def queued(name: str, namespace: str) -> QueuedPod:
    return QueuedPod(within(namespace, name).build(), 0.0)


def test_of_thousands_of_pods_that_have_no_room_no_more_than_one_of_a_namespace_is_looked_at() -> None:
    room = Counted(SIZES)
    active = LanedHeap[QueuedPod, Lane](lambda queued: Lane(queued.pod.namespace), room.may_enter, lambda: room.full)
    for number in range(5000):
        active.push(f"uid-{number}", (number,), queued(f"{number}", f"stuck-{number % 2}"))
    active.push("uid-last", (9999,), queued("last", "healthy"))
    for _ in range(3):
        RoomPlace(room, Lane("stuck-0"))
        RoomPlace(room, Lane("stuck-1"))
    room.asked = 0
    found = active.pop()
    assert found is not None
    assert (found[0].uid, found[1]) == ("uid-last", Lane("healthy"))
    assert room.asked <= 3


class Line:
    """Active pods, and what they should be: a list of (key, arrival, uid), of which the first with room is next."""

    def __init__(self) -> None:
        self.room = ProfileRoom(RoomSizes(4, 4, 4), self.reopen)
        self.active: Order = self.empty()
        self.model: dict[str, tuple[int, int]] = {}
        self.places: list[RoomPlace] = []
        self.arrivals = 0

    def empty(self) -> LanedHeap[QueuedPod, Lane]:
        return LanedHeap(lambda queued: Lane(queued.pod.namespace), self.room.may_enter, lambda: self.room.full)

    def reopen(self) -> None:
        self.active.reopen()

    def next(self) -> str | None:
        in_order = sorted(self.model, key=self.model.__getitem__)
        return next((uid for uid in in_order if not self.room.full and self.room.may_enter(Lane(uid[4]))), None)

    def push(self, number: int, key: int) -> None:
        name = f"{'abc'[number % 3]}{number}"
        self.arrivals += 1
        self.active.push(f"uid-{name}", (key,), queued(name, name[0]))
        self.model[f"uid-{name}"] = (key, self.model.get(f"uid-{name}", (0, self.arrivals))[1])

    def remove(self, number: int, _key: int) -> None:
        uid = f"uid-{'abc'[number % 3]}{number}"
        found = self.active.remove(uid)
        assert (found is None) == (self.model.pop(uid, None) is None)

    def pop(self, _number: int, _key: int) -> None:
        expected, popped = self.next(), self.active.pop()
        assert (None if popped is None else popped[0].uid) == expected
        if popped is not None:
            taken, lane = popped
            assert lane == Lane(taken.pod.namespace)
            del self.model[taken.uid]
            self.places.append(RoomPlace(self.room, lane))

    def end(self, number: int, _key: int) -> None:
        if self.places:
            self.places[number % len(self.places)].leave()

    def aside(self, number: int, _key: int) -> None:
        if self.places:
            self.places[number % len(self.places)].stand_aside()

    def rekey(self, number: int, _key: int) -> None:
        def key_of(uid: str) -> int:
            return (int(uid[5:]) + number) % 5

        transition = OrderTransition(self.active, self.empty(), lambda queued: (key_of(queued.uid),))
        transition.move(None)
        self.active = transition.then
        self.model = {uid: (key_of(uid), arrival) for uid, (_, arrival) in self.model.items()}


_ACTS = ["push", "push", "push", "remove", "pop", "pop", "end", "aside", "rekey"]
_STEP = st.tuples(st.sampled_from(_ACTS), st.integers(0, 30), st.integers(0, 5))


@given(st.lists(_STEP, max_size=150))
@settings(max_examples=cases(300))
def test_the_first_pod_whose_namespace_has_room_is_handed_out_whatever_happened_before(steps: list[tuple[str, int, int]]) -> None:
    line = Line()
    for act, number, key in steps:
        getattr(line, act)(number, key)
        assert {queued.uid for queued in line.active} == line.model.keys()
        assert len(line.active) == len(line.model)
        first = line.next()
        assert line.active.first_key() == (None if first is None else (line.model[first][0],))
