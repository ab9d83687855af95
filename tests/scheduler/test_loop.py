from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from placewright.api.objects import Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.tallies import Tallies
from placewright.framework.events import NODE_ADD, Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.interface import CycleState, PermitResult, PreBindPlugin
from placewright.framework.runtime import evaluation
from placewright.framework.scalar import ScalarFilter
from placewright.framework.status import SUCCESS, Code, Status, unschedulable
from placewright.queue.inflight import RoomSizes
from placewright.queue.queued import SubQueue
from placewright.scheduler import loop
from placewright.scheduler import loop as module
from placewright.scheduler.turns import TURN_SECONDS

from .makers import DEADLINE, REFUSED, PodMaker, World, node, pod
from .podgroups.makers import group, members
from .scripted import late


class Switch:
    """A lead that a test gives and takes."""

    def __init__(self) -> None:
        self.active = False
        self._turned = asyncio.Event()

    def give(self) -> None:
        self.active = True
        self._turned.set()

    async def wait_active(self) -> None:
        while not self.active:
            self._turned.clear()
            await self._turned.wait()


@asynccontextmanager
async def running(world: World) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.ensure_future(world.scheduler.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await world.scheduler.drain(0)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until the condition holds."""
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110 - the condition is anything
            await asyncio.sleep(0)


async def turns(count: int = 50) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def test_pods_are_placed_as_they_come() -> None:
    world = World().nodes(node("a"))
    async with running(world):
        world.pods(pod("one"), pod("two"))
        await until(lambda: len(world.binder.bound) == 2)
        world.pods(pod("three"))
        await until(lambda: world.scheduler.counts.bound == 3)
    assert world.scheduler.counts.scheduled == 3


async def test_nothing_is_decided_without_the_lead() -> None:
    lead = Switch()
    world = World(lead=lead).nodes(node("a")).pods(pod("web"))
    async with running(world):
        await turns()
        assert world.place("web") is SubQueue.ACTIVE
        lead.give()
        await until(lambda: world.scheduler.counts.bound == 1)


async def test_a_lost_lead_stops_decisions_between_two_pods() -> None:
    lead = Switch()
    lead.give()

    def permit(*_: object) -> PermitResult:
        lead.active = False
        return PermitResult(SUCCESS)

    world = World(late("P", permit=permit).kind, lead=lead).nodes(node("a")).pods(pod("one"), pod("two"))
    async with running(world):
        await until(lambda: world.scheduler.counts.bound == 1)
        await turns()
        assert world.place("two") is SubQueue.ACTIVE


async def test_a_replica_that_lost_the_lead_takes_back_what_it_was_binding_without_a_word() -> None:
    """The next one may be binding that very pod: a condition from us would be about nothing."""
    lead = Switch()
    lead.give()
    world = World(lead=lead).nodes(node("a")).pods(pod("web").requests(cpu="1"))
    world.binder.answers["uid-web"] = answer = asyncio.get_running_loop().create_future()
    async with running(world):
        await until(lambda: len(world.binder.bound) == 1)
        lead.active = False
        answer.set_exception(REFUSED)
        await until(lambda: world.place("web") is SubQueue.BACKOFF)
    assert world.requested("a") == 0
    assert world.events.recorded == []
    assert world.status.written == []


async def test_no_more_bindings_are_begun_than_the_api_server_can_take() -> None:
    world = World(sizes=RoomSizes(on_their_way=6)).nodes(node("a")).pods(*(pod(f"web-{number}") for number in range(5)))
    answers = {f"uid-web-{number}": asyncio.get_running_loop().create_future() for number in range(5)}
    world.binder.answers.update(answers)
    async with running(world):
        await turns()
        assert len(world.binder.bound) == 3
        assert world.queue.sizes().active == 2, "the others can still be updated, deleted or overtaken"
        answers[world.binder.bound[0][1]].set_result(None)
        await until(lambda: len(world.binder.bound) == 4)
        for answer in answers.values():
            if not answer.done():
                answer.set_result(None)
        await until(lambda: world.scheduler.counts.bound == 5)


async def test_pods_that_wait_for_permission_do_not_keep_others_from_being_placed() -> None:
    """A gang larger than the number of bindings under way must still come together."""
    gang = late("Gang", permit=PermitResult(Status(Code.WAIT), 900)).kind
    world = World(gang, sizes=RoomSizes(4, 4)).nodes(node("a")).pods(*(pod(f"web-{number}") for number in range(6)))
    async with running(world):
        await until(lambda: len(world.scheduler.waiting) == 6)
        for waiting in world.scheduler.waiting:
            waiting.allow("Gang")
        await until(lambda: world.scheduler.counts.bound == 6)
    assert {name for name, _, _, _ in world.binder.bound} == {f"web-{number}" for number in range(6)}


async def test_pods_that_wait_for_their_volumes_do_not_keep_others_from_being_placed() -> None:
    made = asyncio.Event()

    class Provisioner(PreBindPlugin):
        name = "Provisioner"

        async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
            if pod.name != "plain":
                await made.wait()
            return SUCCESS

    claiming = [pod(f"web-{number}").priority(1) for number in range(4)]
    world = World(Provisioner, sizes=RoomSizes(on_their_way=4)).nodes(node("a")).pods(*claiming, pod("plain"))
    async with running(world):
        await until(lambda: world.scheduler.counts.bound == 1)
        assert [name for name, *_ in world.binder.bound] == ["plain"]
        made.set()
        await until(lambda: world.scheduler.counts.bound == 5)


async def test_others_get_their_turn_between_slices() -> None:
    """Every decision takes as long as a slice."""
    world = World(late("Slow", reserve=lambda *_: _takes_a_slice(world)).kind).nodes(node("a"))
    world.pods(*(pod(f"web-{number}") for number in range(20)))
    seen: list[int] = []
    async with running(world):
        async with asyncio.timeout(DEADLINE):
            while not seen or seen[-1]:
                await asyncio.sleep(0)
                seen.append(world.queue.sizes().active)
    assert sorted(set(seen), reverse=True) == list(range(seen[0], -1, -1)), "one at a time, others in between"


async def test_events_that_come_faster_than_pods_are_told_of_them_stop_no_decision() -> None:
    class Slow(ScalarFilter):
        name = "Slow"

        def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
            return unschedulable("never") if pod.name.startswith("hard") else SUCCESS

        def sign(self, pod: PodInfo) -> bool:
            return pod.name.startswith("hard")

        def events(self) -> Sequence[ClusterEventWithHint]:
            return (event_with_hint(EventResource.NODE, Action.ADD, self._asked),)

        def _asked(self, pod: PodInfo, old: object, new: object) -> QueueingHint:
            world.now += 0.05
            return QueueingHint.SKIP

    world = World(Slow, slices=2).nodes(node("a")).pods(*(pod(f"hard-{number}") for number in range(10)))

    async def more() -> None:
        while True:
            world.queue.move(NODE_ADD, None, "new")
            await asyncio.sleep(0)

    async with running(world):
        await until(lambda: world.queue.sizes().unschedulable == 10)
        storm, telling = asyncio.create_task(more()), asyncio.create_task(world.queue.sweeps.run())
        for number in range(5):
            world.pods(pod(f"easy-{number}"))
            asked_for = world.now
            await until(lambda number=number: world.scheduler.counts.bound == number + 1)
            assert world.now - asked_for < module.PATIENCE_SECONDS + 0.5
        for task in (storm, telling):
            task.cancel()
        await asyncio.gather(storm, telling, return_exceptions=True)


def _takes_a_slice(world: World) -> Status:
    world.now += module.SLICE_SECONDS
    return SUCCESS


async def test_draining_waits_for_bindings_under_way() -> None:
    world = World().nodes(node("a")).pods(pod("web"))
    world.binder.answers["uid-web"] = answer = asyncio.get_running_loop().create_future()
    async with running(world) as loop:
        await until(lambda: len(world.binder.bound) == 1)
        loop.cancel()
        draining = asyncio.ensure_future(world.scheduler.drain())
        await turns()
        assert not draining.done()
        answer.set_result(None)
        await draining
    assert world.scheduler.counts.bound == 1


async def test_draining_gives_up_what_takes_too_long() -> None:
    world = World().nodes(node("a")).pods(pod("web"))
    world.binder.answers["uid-web"] = asyncio.get_running_loop().create_future()
    async with running(world) as loop:
        await until(lambda: len(world.binder.bound) == 1)
        loop.cancel()
        async with asyncio.timeout(DEADLINE):
            await world.scheduler.drain(0.01)
    assert world.scheduler.counts.bound == 0


async def test_draining_does_not_wait_for_permissions_that_nobody_can_give_any_more() -> None:
    gang = late("Gang", permit=PermitResult(Status(Code.WAIT), 900)).kind
    world = World(gang).nodes(node("a")).pods(pod("web"))
    async with running(world) as loop:
        await until(lambda: len(world.scheduler.waiting) == 1)
        loop.cancel()
        async with asyncio.timeout(DEADLINE):
            await world.scheduler.drain()
    assert world.binder.bound == []
    assert world.events.recorded == []


# --- pods that ask for much ----------------------------------------------------------------------------------------------------------


def demanding(name: str) -> PodMaker:
    """A pod within all limits whose decision looks at many things."""
    term = {"topologyKey": "kubernetes.io/hostname", "namespaceSelector": {}}
    terms = [{**term, "labelSelector": {"matchExpressions": [{"key": f"k{i}", "operator": "DoesNotExist"}]}} for i in range(60)]
    preferred = [{"weight": 1 + index, "podAffinityTerm": each} for index, each in enumerate(terms)]
    maker = pod(name).spec(affinity={"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}})
    return maker.spread("kubernetes.io/hostname", {"a": "b"}, max_skew=5)


def slow_counting(world: World, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Have each count of pods that is made take longer than a turn; when each began."""
    begun: list[float] = []
    start = Tallies._start

    def slowly(tallies: Tallies, *args: Any) -> Any:
        begun.append(world.now)
        world.now += 2 * TURN_SECONDS
        return start(tallies, *args)

    monkeypatch.setattr(Tallies, "_start", slowly)
    monkeypatch.setattr(evaluation, "_LONG_WORK", 100)
    return begun


def peopled() -> World:
    world = World().nodes(*(node(f"n{i}") for i in range(4)))
    return world.pods(*(pod(f"standing-{i}").labels(app=f"a{i}").on(f"n{i % 3}") for i in range(12)))


async def test_what_a_long_decision_counts_is_counted_between_turns_of_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    world = peopled()
    begun = slow_counting(world, monkeypatch)
    world.pods(demanding("large"))
    others = 0
    async with running(world):
        async with asyncio.timeout(DEADLINE):
            while not world.binder.bound:
                await asyncio.sleep(0)
                others += 1
    assert len(begun) >= 60
    assert others >= 60, "each count left others a turn"


async def test_it_is_decided_as_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = peopled().pods(demanding("large"))
    binding = at_once.decide()
    assert binding is not None
    binding.close()
    world = peopled()
    slow_counting(world, monkeypatch)
    world.pods(demanding("large"))
    async with running(world):
        await until(lambda: bool(world.binder.bound))
    assert world.node_of("large") == at_once.node_of("large") == "n3"


async def test_it_is_decided_on_what_is_true_once_it_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    world = peopled()
    begun = slow_counting(world, monkeypatch)
    world.pods(demanding("large"))
    async with running(world):
        await until(lambda: len(begun) > 20)
        world.pods(*(pod(f"late-{i}").labels(app="late").on("n3") for i in range(9)))
        world.nodes(node("n9"))
        await until(lambda: bool(world.binder.bound))
    assert world.node_of("large") == "n9"


async def test_a_pod_that_is_deleted_while_it_is_prepared_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    world = peopled()
    begun = slow_counting(world, monkeypatch)
    large = demanding("large")
    world.pods(large)
    async with running(world):
        await until(lambda: len(begun) > 20)
        world.event_handlers.pod_gone("uid-large")
        world.pods(pod("next"))
        await until(lambda: bool(world.binder.bound) and not len(world.queue.in_flight))
    assert [name for name, _, _, _ in world.binder.bound] == ["next"]
    assert world.node_of("large") is None
    assert len(begun) < 40, "and not prepared to the end"


async def test_others_as_important_are_placed_while_it_is_prepared_and_lesser_ones_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    world = peopled()
    begun = slow_counting(world, monkeypatch)
    world.pods(demanding("large").priority(5))
    async with running(world):
        await until(lambda: len(begun) > 10)
        world.pods(pod("less").priority(4), pod("as-much").priority(5), pod("more").priority(6))
        await until(lambda: len(world.binder.bound) == 4)
    assert [name for name, _, _, _ in world.binder.bound] == ["more", "as-much", "large", "less"]


async def test_a_group_that_is_less_important_waits_for_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world = peopled()
    begun = slow_counting(world, monkeypatch)
    world.pods(demanding("large").priority(5))
    async with running(world):
        await until(lambda: len(begun) > 10)
        world.event_handlers.cluster_object(group("job", 2))
        world.pods(*members("job", 2))
        await until(lambda: len(world.binder.bound) == 3)
    assert world.binder.bound[0][0] == "large"


async def test_of_a_crowd_that_asks_for_much_some_go_back_to_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "MOST_WAITING", 3)
    world = peopled()
    begun = slow_counting(world, monkeypatch)
    world.pods(*(demanding(f"large-{index}") for index in range(9)))
    async with running(world):
        await until(lambda: len(begun) > 10)
        assert len(world.queue.in_flight) == 3
        world.pods(pod("healthy"))
        await until(lambda: "healthy" in [name for name, _, _, _ in world.binder.bound])
        assert world.queue.sizes().backoff == 6


async def test_a_pod_that_is_being_prepared_when_the_lead_is_lost_is_not_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    lead = Switch()
    lead.give()
    world = World(lead=lead).nodes(node("a")).pods(pod("standing").on("a"))
    begun = slow_counting(world, monkeypatch)
    world.pods(demanding("large"))
    async with running(world):
        await until(lambda: len(begun) > 3)
        lead.active = False
        await turns(200)
        assert world.binder.bound == []
        assert world.place("large") in (SubQueue.ACTIVE, SubQueue.BACKOFF)
