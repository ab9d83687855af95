"""Which pod the watchdog finds in the frames of a loop that hangs: whichever way the pod is decided."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress

from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, event_with_hint
from placewright.framework.interface import CycleState, Plugin, PreFilterPlugin, PreFilterResult, Reads
from placewright.framework.status import SUCCESS, unschedulable
from placewright.scheduler.podgroups.barrier import MEMBERS_A_TURN
from placewright.scheduler.underdecision import pod_under_decision
from scheduler.makers import World, node, pod

from .makers import group, members
from .test_with_extenders import asking


def watching(found: list[str], *, refuses: bool = False) -> type[Plugin]:
    """A plugin in which the loop would hang; who would be found there is noted each time."""

    def look() -> None:
        queued = pod_under_decision(sys._getframe())
        found.append("nobody" if queued is None else queued.pod.name)

    class Watching(PreFilterPlugin):
        name = "Watching"
        reads = Reads.CLUSTER

        def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Cluster) -> PreFilterResult:
            look()
            return PreFilterResult(unschedulable("no") if refuses else SUCCESS)

        def events(self) -> Sequence[ClusterEventWithHint]:
            def hint(_pod: PodInfo, _old: object, _new: object) -> QueueingHint:
                look()
                return QueueingHint.SKIP

            return [event_with_hint(EventResource.NODE, Action.ADD, hint)]

    return Watching


async def test_a_pod_that_is_decided_by_itself() -> None:
    found: list[str] = []
    world = World(watching(found)).nodes(node("a")).pods(pod("web"), pod("db"))
    world.scheduler.loop.decide_slice()
    assert found == ["web", "db"]
    await world.scheduler.drain(1)


async def test_a_pod_that_extenders_are_asked_about() -> None:
    found: list[str] = []
    world = World(watching(found)).nodes(node("a"), node("b")).pods(pod("web"))
    world.use_profile(asking=[asking()])
    world.scheduler.loop.decide_slice()
    await world.scheduler.drain(1)
    assert set(found) == {"web"}


async def test_a_group_whether_it_is_decided_at_once_in_turns_or_with_extenders() -> None:
    for count, extenders in ((3, []), (2 * MEMBERS_A_TURN, []), (3, [asking()])):
        found: list[str] = []
        world = World(watching(found)).nodes(node("a").offers(cpu="1000", pods="1000"))
        world.use_profile(asking=extenders)
        world.event_handlers.cluster_object(group("job", count))
        world.pods(*members("job", count))
        deciding = asyncio.create_task(world.scheduler.run())
        for _ in range(200 * count):
            if len(world.binder.bound) == count:
                break
            await asyncio.sleep(0)
        deciding.cancel()
        with suppress(asyncio.CancelledError):
            await deciding
        await world.scheduler.drain(1)
        assert len(found) >= count
        assert all(name.startswith("job-") for name in found)


async def test_a_pod_whose_queueing_hint_hangs() -> None:
    found: list[str] = []
    world = World(watching(found, refuses=True)).nodes(node("a")).pods(pod("web"))
    world.scheduler.loop.decide_slice()
    found.clear()
    world.nodes(node("b"))
    assert found == ["web"]


def test_nobody_where_no_pod_is_decided() -> None:
    assert pod_under_decision(sys._getframe()) is None
    assert pod_under_decision(None) is None
