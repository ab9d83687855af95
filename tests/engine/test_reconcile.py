from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, cast

import pytest

from placewright.api.decode import convert
from placewright.api.objects import Node, NodeName
from placewright.engine.reconcile.loop import ReconcileLoop
from placewright.queue.check import check_invariants
from placewright.queue.queued import SubQueue
from placewright.scheduler.ports import AlwaysLead
from placewright.scheduler.repairs import Repairs
from scheduler.makers import UNKNOWN, PodMaker, World, node, pod


@pytest.fixture
def world() -> World:
    return World().nodes(node("a"))


class Looking:
    """A comparison that has begun; `sees` is its list, then what each second look shows."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._before = copy(world.reconciler.repairs)
        self._noting = world.reconciler.watching()
        self._noting.__enter__()
        self.comparison = world.reconciler.unscheduled()

    def sees(self, *listed: PodMaker, later: Sequence[PodMaker] | None = None, between: Callable[[], object] = lambda: None) -> Repairs:
        """The comparison to its end; `between` happens before the second look, at which there is `later` (None: what was listed)."""
        shown = [maker.build().pod for maker in listed]
        for item in shown:
            self.comparison.shown(item)
        self.comparison.listed()
        between()
        exists = {one.metadata.uid: one for one in (shown if later is None else [maker.build().pod for maker in later])}
        for _ in range(3):
            for uid in list(self.comparison.suspects):
                self.comparison.looked(uid, exists.get(uid))
        self._noting.__exit__(None, None, None)
        check_invariants(self._world.queue)
        return self._world.reconciler.repairs.since(self._before)


class Loop(ReconcileLoop):
    """Notes that it compares, and waits without a clock; ends with its first comparison."""

    def __init__(self, world: World, lead: Lead | AlwaysLead) -> None:
        super().__init__(cast(Any, self), 3600.0, lead, cast(Any, None), sleep=self._pause)
        self.reconciler = world.reconciler
        self.did: list[str] = []
        self.compared = asyncio.Event()

    async def _pause(self, _seconds: float) -> None:
        self.did.append("is quiet")

    async def compare(self, *, cache: bool = True, queue: bool = True) -> Repairs:
        self.did.append("compares")
        self.compared.set()
        await asyncio.Event().wait()
        return Repairs()


class Lead:
    """A lead that the test gives."""

    def __init__(self) -> None:
        self.active = False
        self.awaited, self.given = asyncio.Event(), asyncio.Event()

    async def wait_active(self) -> None:
        self.awaited.set()
        await self.given.wait()


def compare(world: World, *listed: PodMaker) -> tuple[int, int, int]:
    """One comparison with this list; how many were missed, vanished, unbound."""
    repairs = Looking(world).sees(*listed)
    return repairs.missed, repairs.vanished, repairs.unbound


def test_what_is_listed_and_queued_needs_no_repair(world: World) -> None:
    world.pods(pod("web").version("1"))
    assert compare(world, pod("web").version("1")) == (0, 0, 0)
    assert world.reconciler.repairs.total == 0


def test_a_pod_that_no_event_told_of_is_queued(world: World) -> None:
    assert compare(world, pod("web")) == (1, 0, 0)
    assert world.place("web") is SubQueue.ACTIVE


def test_a_pod_whose_deletion_no_event_told_of_leaves(world: World) -> None:
    world.pods(pod("web"), pod("api"))
    assert compare(world, pod("api")) == (0, 1, 0)
    assert world.queue.uids() == {"uid-api"}


def test_a_pod_that_changed_and_no_event_told_is_taken_as_it_is(world: World) -> None:
    world.pods(pod("web").gates("later"))
    repairs = Looking(world).sees(pod("web"))
    assert (repairs.outdated, repairs.total) == (1, 1)
    assert world.place("web") is SubQueue.ACTIVE


def test_news_that_comes_before_the_second_look_clears_a_suspicion(world: World) -> None:
    missed, changed = pod("missed").version("1"), pod("changed").version("2")
    world.pods(pod("changed").version("1"), pod("vanished"))

    def news() -> None:
        world.pods(missed, changed)
        world.event_handlers.unscheduled_pod_gone(pod("vanished").build())

    assert Looking(world).sees(missed, changed, between=news).total == 0


def test_a_list_older_than_what_the_watch_told_repairs_nothing(world: World) -> None:
    world.pods(pod("web").version("2"))
    assert Looking(world).sees(pod("web").version("1"), later=[pod("web").version("2")]).total == 0


def test_a_comparison_repairs_no_queue_once_the_lead_has_changed_and_the_next_one_does(world: World) -> None:
    world.pods(pod("vanished"))
    loop = Loop(world, AlwaysLead())

    def lapse() -> None:
        loop.lead_changed(False)
        loop.lead_changed(True)

    assert Looking(world).sees(pod("missed"), between=lapse).total == 0
    assert compare(world, pod("missed")) == (1, 1, 0)


async def test_a_replica_that_takes_the_lead_waits_for_kopf_s_list_before_it_compares(world: World) -> None:
    lead = Lead()
    loop = Loop(world, lead)
    loop.pods_listed()
    task = asyncio.create_task(loop.run())
    await lead.awaited.wait()
    lead.active = True
    loop.lead_changed(True)
    lead.given.set()
    await loop.compared.wait()
    task.cancel()
    assert loop.did == ["is quiet", "is quiet", "compares"]


def test_a_pod_that_changes_between_the_looks_is_looked_at_once_more(world: World) -> None:
    repairs = Looking(world).sees(pod("web").version("1"), later=[pod("web").version("2").priority(7)])
    assert repairs.missed == 1
    assert world.queue.get("uid-web").pod.priority == 7  # type: ignore[union-attr]


def test_a_pod_listed_and_gone_at_the_second_look_is_no_repair(world: World) -> None:
    assert Looking(world).sees(pod("web"), later=[]).total == 0
    assert len(world.queue) == 0


def test_a_pod_that_cannot_be_read_is_left_alone(world: World) -> None:
    world.pods(pod("known").version("1"))
    looking = Looking(world)
    looking.comparison.unreadable(pod("known").build().pod.metadata)
    assert looking.sees().total == 0
    assert world.place("known") is SubQueue.ACTIVE


def test_a_namesake_is_one_missed_and_the_old_one_is_gone(world: World) -> None:
    world.pods(pod("web"))
    compare(world, pod("web").uid("second"))
    assert world.queue.uids() == {"second"}


def test_repairs_are_counted_since_the_start(world: World) -> None:
    compare(world, pod("web"))
    compare(world)
    compare(world, pod("web"))
    assert (world.reconciler.repairs.missed, world.reconciler.repairs.vanished) == (2, 1)


async def test_a_binding_that_does_not_exist_is_taken_back(world: World) -> None:
    world.pods(pod("web").requests(cpu="1"))
    world.binder.answers["uid-web"] = UNKNOWN
    await world.attempt()
    assert compare(world, pod("web")) == (0, 0, 1)
    assert world.place("web") is SubQueue.BACKOFF
    assert world.requested("a") == 0


async def test_a_binding_that_may_exist_is_not_taken_for_a_vanished_pod(world: World) -> None:
    world.pods(pod("web"))
    world.binder.answers["uid-web"] = UNKNOWN
    await world.attempt()
    assert compare(world) == (0, 0, 0)
    assert world.place("web") is SubQueue.IN_FLIGHT
    assert world.node_of("web") == "a"


async def test_a_pod_that_is_being_bound_is_judged_by_nobody_but_its_binding(world: World) -> None:
    """The list may show it or not: the Binding may or may not have been written when the list was read."""
    world.pods(pod("web"))
    world.binder.answers["uid-web"] = answer = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(world.attempt())
    await asyncio.sleep(0)
    assert compare(world) == (0, 0, 0)
    assert compare(world, pod("web")) == (0, 0, 0)
    assert world.place("web") is SubQueue.IN_FLIGHT
    answer.set_result(None)
    assert await task is True


async def test_a_bound_pod_that_an_old_list_shows_unscheduled_stays_bound(world: World) -> None:
    world.pods(pod("web"))
    looking = Looking(world)
    await world.attempt()
    assert looking.sees(pod("web")).total == 0
    assert len(world.queue) == 0


def test_a_pod_that_came_while_the_list_was_under_way_is_not_taken_for_vanished(world: World) -> None:
    looking = Looking(world)
    world.pods(pod("web"))
    assert looking.sees().total == 0
    assert world.place("web") is SubQueue.ACTIVE


def test_a_pod_deleted_while_the_list_was_under_way_is_not_brought_back(world: World) -> None:
    world.pods(pod("web"))
    looking = Looking(world)
    world.event_handlers.unscheduled_pod_gone(pod("web").build())
    assert looking.sees(pod("web")).total == 0
    assert len(world.queue) == 0


def test_a_pod_that_ran_and_ended_while_the_list_was_under_way_is_not_brought_back(world: World) -> None:
    looking = Looking(world)
    world.pods(pod("job").on("a"))
    world.event_handlers.assigned_pod_gone("uid-job")
    assert looking.sees(pod("job")).total == 0
    assert len(world.queue) == 0


async def test_an_attempt_that_became_unknown_after_the_list_was_asked_for_is_not_judged_by_it(world: World) -> None:
    world.pods(pod("web"))
    looking = Looking(world)
    world.binder.answers["uid-web"] = UNKNOWN
    await world.attempt()
    assert looking.sees(pod("web")).total == 0
    assert world.place("web") is SubQueue.IN_FLIGHT


# --- room that is held for nobody --------------------------------------------------------------------------------------------------


def doubtful(world: World) -> list[str]:
    return [info.name for info in world.reconciler.doubtful()]


async def test_a_pod_of_unknown_outcome_that_is_not_listed_is_asked_for_at_once(world: World) -> None:
    world.pods(pod("web").requests(cpu="1"))
    world.binder.answers["uid-web"] = UNKNOWN
    await world.attempt()
    compare(world)
    (asked,) = world.reconciler.doubtful()
    world.reconciler.looked(asked, None)
    assert world.requested("a") == 0
    assert len(world.queue) == 0
    assert not world.binding.unresolved
    assert world.reconciler.repairs.forgotten == 1
    compare(world)
    assert doubtful(world) == []


async def test_a_pod_of_unknown_outcome_that_turns_out_bound_is_bound(world: World) -> None:
    world.pods(pod("web").requests(cpu="1"))
    world.binder.answers["uid-web"] = UNKNOWN
    await world.attempt()
    compare(world)
    (asked,) = world.reconciler.doubtful()
    world.reconciler.looked(asked, pod("web").requests(cpu="1").on("a").build())
    assert world.events.reasons("web") == ["Scheduled"]
    assert world.requested("a") == 1000
    assert len(world.queue) == 0


async def test_a_bound_pod_that_no_watch_ever_showed_is_asked_for_after_a_while(world: World) -> None:
    """Deleted while the watch of assigned pods was broken: nobody would ever free its room."""
    world.pods(pod("web").requests(cpu="1"))
    await world.attempt()
    compare(world)
    assert doubtful(world) == []
    (asked,) = world.reconciler.unconfirmed()
    world.reconciler.looked(asked, pod("web").uid("a namesake").build())
    assert world.requested("a") == 0


async def test_a_bound_pod_that_a_watch_has_shown_is_not_asked_for(world: World) -> None:
    world.pods(pod("web"))
    await world.attempt()
    compare(world)
    world.pods(pod("web").on("a"))
    assert world.reconciler.unconfirmed() == []
    assert doubtful(world) == []


async def test_a_pod_bound_after_the_list_was_asked_for_is_not_judged_by_it(world: World) -> None:
    world.pods(pod("web"))
    looking = Looking(world)
    await world.attempt()
    looking.sees()
    assert world.reconciler.unconfirmed() == []
    assert doubtful(world) == []


async def test_a_pod_that_was_read_before_its_binding_shows_is_left_for_later(world: World) -> None:
    world.pods(pod("web").requests(cpu="1"))
    world.binder.answers["uid-web"] = UNKNOWN
    await world.attempt()
    compare(world)
    (asked,) = world.reconciler.doubtful()
    world.reconciler.looked(asked, pod("web").build())
    assert world.place("web") is SubQueue.IN_FLIGHT
    assert world.node_of("web") == "a"


# --- nodes, looked at twice ----------------------------------------------------------------------------------------------------------


def test_a_watch_that_is_late_but_moves_is_left_to_itself(world: World) -> None:
    """It told of something since the first look, if not of the newest yet: it is not deaf."""
    with world.reconciler.watching():
        comparison = world.reconciler.nodes()
        newest = node("a").labels(step="3").build()
        comparison.shown(newest)
        comparison.listed()
        assert list(comparison.suspects) == ["a"]
        world.nodes(node("a").labels(step="2"))
        comparison.looked("a", newest)
    assert comparison.suspects == {}
    assert world.reconciler.repairs.total == 0


def test_a_node_that_came_and_went_between_the_looks_is_not_brought_back_by_an_answer_on_its_way(world: World) -> None:
    with world.reconciler.watching():
        comparison = world.reconciler.nodes()
        short_lived = node("b").build()
        comparison.shown(short_lived)
        world.nodes(node("b"))
        world.event_handlers.node_gone(NodeName("b"))
        comparison.looked("b", short_lived)
    assert world.cluster.row(NodeName("b")) is None
    assert world.reconciler.repairs.total == 0


def test_a_node_of_the_same_name_and_another_uid_takes_the_place_of_the_first(world: World) -> None:
    with world.reconciler.watching():
        comparison = world.reconciler.nodes()
        other = convert({"metadata": {"name": "a", "uid": "second"}, "status": {"allocatable": {"cpu": "8"}}}, Node)
        comparison.shown(other)
        comparison.listed()
        comparison.looked("a", other)
    assert list(world.cluster.nodes()) == [other]
    assert world.reconciler.repairs.nodes_stale == 1


def test_a_node_that_cannot_be_read_keeps_its_last_good_state_and_is_no_difference(world: World) -> None:
    with world.reconciler.watching():
        comparison = world.reconciler.nodes()
        comparison.shown(node("a").offers(cpu="much").build())
        comparison.listed()
        assert comparison.suspects == {}
