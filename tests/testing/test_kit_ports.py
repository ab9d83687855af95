"""The fakes of the ports record what they are asked, and fail, take long or answer late when they are told to."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from placewright.api.errors import BindError, ClaimError, EvictError, VolumeError
from placewright.api.extenders import ExtenderError
from placewright.framework import ports as framework_ports
from placewright.queue.queued import SubQueue
from placewright.scheduler import ports as scheduler_ports
from placewright.testing import (
    FakeExtender,
    World,
    assert_bound,
    assert_evicted,
    assert_placed,
    assert_waiting,
    device_class,
    node,
    persistent_volume,
    persistent_volume_claim,
    pod,
    resource_claim,
    resource_slice,
    storage_class,
)
from placewright.testing.claimport import FakeClaimWriter
from placewright.testing.ports import FakeBinder, FakeEvents, FakeEvictor, FakeGroupStatus, FakeStatus
from placewright.testing.world import FakeVolumeWriter

UNKNOWN = BindError("answer lost, and the pod could not be read", unknown=True)


@pytest.mark.parametrize(
    ("fake", "port"),
    [
        (FakeBinder, framework_ports.Binder),
        (FakeVolumeWriter, framework_ports.VolumeWriter),
        (FakeClaimWriter, framework_ports.ClaimWriter),
        (FakeExtender, framework_ports.Extender),
        (FakeEvents, scheduler_ports.EventRecorder),
        (FakeStatus, scheduler_ports.StatusWriter),
        (FakeGroupStatus, scheduler_ports.GroupStatusWriter),
        (FakeEvictor, scheduler_ports.Evictor),
    ],
)
def test_a_fake_has_every_method_of_its_port_with_the_same_parameters(fake: type[Any], port: type[Any]) -> None:
    methods = [name for name, each in vars(port).items() if inspect.isfunction(each) and not name.startswith("_")]
    assert methods
    for name in methods:
        asked, given = inspect.signature(getattr(port, name)), inspect.signature(getattr(fake, name))
        assert list(asked.parameters) == list(given.parameters), name
        assert inspect.iscoroutinefunction(getattr(port, name)) == inspect.iscoroutinefunction(getattr(fake, name)), name


def test_a_binding_that_fails_is_tried_again_and_recorded_both_times() -> None:
    world = World(nodes=[node("a")])
    world.binder.fail(BindError("given up: 500"), "web")
    world.add(pod("web"), pod("other"))
    assert_waiting(world, "web", because="given up: 500")
    assert_bound(world, "other")
    assert world.node_of("web") is None, "its room is free"
    world.advance(2)
    assert_bound(world, "web")
    assert world.binder.nodes_of("web") == ["a", "a"]


def test_a_binding_of_unknown_outcome_keeps_its_room_until_a_watch_tells() -> None:
    world = World(nodes=[node("a")])
    world.binder.fail(UNKNOWN, "web")
    world.add(pod("web").requests(cpu="1"))
    assert_placed(world, "web", on="a")
    assert world.place("web") is SubQueue.IN_FLIGHT
    world.add(pod("web").requests(cpu="1").on("a"))
    assert_bound(world, "web", on="a")


def test_all_bindings_fail_until_the_port_recovers() -> None:
    world = World(nodes=[node("a")])
    world.binder.fail(BindError("the API server is away"))
    world.add(pod("one"), pod("two")).advance(2)
    assert world.node_of("one") is None
    world.binder.recover()
    world.advance(30)
    assert_bound(world, "one")
    assert_bound(world, "two")


def test_calls_about_one_object_fail_until_the_port_recovers_and_others_succeed() -> None:
    world = World(nodes=[node("a")])
    world.binder.fail(BindError("refused"), "web", always=True)
    world.add(pod("web"), pod("other")).advance(10)
    assert_bound(world, "other")
    assert len(world.binder.nodes_of("web")) > 2
    world.binder.recover()
    world.advance(10)
    assert_bound(world, "web")


def test_a_port_that_is_paused_answers_nobody_until_it_goes_on() -> None:
    world = World(nodes=[node("a")])
    world.binder.pause()
    world.add(pod("one"), pod("two")).advance(1000)
    assert [world.place(name) for name in ("one", "two")] == [SubQueue.IN_FLIGHT] * 2
    world.binder.resume()
    world.settle()
    assert_bound(world, "one")
    assert_bound(world, "two")


def test_a_slow_binding_takes_the_seconds_it_is_told() -> None:
    world = World(nodes=[node("a")])
    world.binder.seconds = 3.0
    world.add(pod("web")).advance(2.5)
    assert world.place("web") is SubQueue.IN_FLIGHT
    world.advance(0.5)
    assert_bound(world, "web")
    assert world.now == 103.0


@pytest.mark.parametrize("problem", [None, BindError("refused")])
def test_an_answer_that_is_held_back_ends_the_call_when_it_is_given(problem: Exception | None) -> None:
    world = World(nodes=[node("a")])
    late = world.binder.hold("web")
    world.add(pod("web"), pod("other"))
    assert_bound(world, "other")
    assert world.place("web") is SubQueue.IN_FLIGHT
    late.give(problem)
    world.settle()
    if problem is None:
        assert_bound(world, "web")
    else:
        assert_waiting(world, "web", because="refused")


def test_a_victim_that_could_not_be_evicted_stays_and_is_told_again_with_the_next_attempt() -> None:
    world = World(nodes=[node("a", cpu="1")], pods=[pod("low").requests(cpu="1").on("a")])
    late = world.evictor.hold("low")
    world.add(pod("high").requests(cpu="1").priority(10))
    assert (world.node_of("low"), world.node_of("high")) == ("a", None)
    last = world.status.last_of("high")
    assert last is not None
    assert last.nominated_node == "a"
    late.give(EvictError("403"))
    world.settle()
    assert (world.node_of("low"), world.place("high")) == ("a", SubQueue.BACKOFF)
    world.advance(2)
    assert_evicted(world, "low", "low")
    assert_bound(world, "high", on="a")


def test_a_volume_that_cannot_be_written_to_gives_everything_back() -> None:
    storage = [storage_class("local"), persistent_volume("disk").storage_class("local").on("a")]
    world = World(nodes=[node("a")], objects=[*storage, persistent_volume_claim("data").storage_class("local")])
    world.volumes.fail(VolumeError("409: the volume changed"), "disk")
    world.add(pod("web").volume_claims("data"))
    assert_waiting(world, "web", because="409: the volume changed")
    world.advance(2)
    assert_bound(world, "web")


def test_a_claim_that_cannot_be_written_to_gives_its_devices_back() -> None:
    devices = [device_class("gpu"), resource_slice("a").devices("gpu-0"), resource_claim("c").request("gpu")]
    world = World(nodes=[node("a")], objects=devices)
    world.claims.fail(ClaimError("it is gone"), "c")
    world.add(pod("web").resource_claims("c"))
    assert_waiting(world, "web", because="it is gone")
    world.advance(2)
    assert_bound(world, "web")


def test_an_extender_that_fails_or_takes_long_holds_up_its_own_pod() -> None:
    slow = FakeExtender("http://slow", managed_resources=())
    world = World(nodes=[node("a"), node("b")], extenders=[slow])
    slow.fail(ExtenderError("no answer"), "filter")
    world.add(pod("web"))
    assert_waiting(world, "web", because="no answer")
    slow.seconds = 4.0
    world.advance(2)
    assert world.node_of("web") is None
    world.advance(8)
    assert_bound(world, "web")
    assert slow.verbs == ["filter", "filter", "prioritize"]


async def test_an_answer_may_be_anything_that_can_be_awaited() -> None:
    world = World(watches=False).show(node("a"), pod("web"))
    world.binder.answers["uid-web"] = answer = asyncio.get_running_loop().create_future()
    binding = asyncio.ensure_future(world.attempt())
    await asyncio.sleep(0)
    assert [bound.pod for bound in world.binder.bound] == ["web"]
    answer.set_result(None)
    assert await binding
