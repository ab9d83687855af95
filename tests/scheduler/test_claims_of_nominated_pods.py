"""What a nominated pod claims beside its node is kept for it: a claim for one pod, devices, ports. No lower pod that waits takes it."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.testing import World, device_class, node, persistent_volume, persistent_volume_claim, pod, resource_claim, resource_slice
from placewright.testing.pods import PodMaker

#: Seconds that a victim takes to end; the preemptor's first backoff is one second.
GRACE = [0.0, 0.5, 3.0]


def of_one_pod(name: str = "c") -> list[Any]:
    claim = persistent_volume_claim(name).access_modes("ReadWriteOncePod").bound_to(f"of-{name}")
    return [claim, persistent_volume(f"of-{name}").csi("driver", name)]


def evicted(world: World) -> list[str]:
    return [victim for victim, _, _ in world.evictor.evicted]


def victims_end(world: World, grace: float) -> None:
    """Show that pods which were told to leave are gone, a while later."""
    world.advance(grace)
    for name in evicted(world):
        world.remove(name)
    world.advance(5)


@pytest.mark.parametrize("grace", GRACE)
@pytest.mark.parametrize("waiters", [1, 5])
def test_a_claim_for_one_pod_goes_to_the_preemptor_and_not_to_lower_pods_that_wait_for_it(grace: float, waiters: int) -> None:
    world = World(nodes=[node("a"), node("b"), node("c")], objects=of_one_pod(), watches=False)
    world.add(pod("holder").volume_claims("c").on("a"), *(pod(f"waiter-{i}").volume_claims("c") for i in range(waiters)))
    world.advance(40)
    world.add(pod("vip").volume_claims("c").priority(100))
    victims_end(world, grace)
    assert world.node_of("vip") == "a"
    assert evicted(world) == ["holder"]
    assert [world.node_of(f"waiter-{i}") for i in range(waiters)] == [None] * waiters


def test_a_pod_of_more_priority_takes_the_claim_all_the_same() -> None:
    world = World(nodes=[node("a"), node("b")], objects=of_one_pod(), watches=False)
    world.add(pod("holder").volume_claims("c").on("a"), pod("vip").volume_claims("c").priority(100))
    world.add(pod("king").volume_claims("c").priority(200).node_selector({"kubernetes.io/hostname": "b"}))
    victims_end(world, 0.0)
    assert world.node_of("king")
    assert not world.node_of("vip")


def test_a_claim_of_the_same_name_in_another_namespace_is_not_kept() -> None:
    world = World(nodes=[node("a")], objects=of_one_pod(), watches=False)
    claim = persistent_volume_claim("c").namespace("team").access_modes("ReadWriteOncePod").bound_to("theirs")
    world.show(claim, persistent_volume("theirs").csi("driver", "theirs"))
    world.add(pod("holder").volume_claims("c").on("a"), pod("vip").volume_claims("c").priority(100))
    world.add(pod("other").namespace("team").volume_claims("c"))
    assert [each.pod for each in world.binder.bound] == ["other"]


def test_when_the_nominated_pod_is_gone_the_next_one_gets_the_claim() -> None:
    world = World(nodes=[node("a"), node("b")], objects=of_one_pod(), watches=False)
    world.add(pod("holder").volume_claims("c").on("a"), pod("waiter").volume_claims("c"))
    world.advance(40)
    world.add(pod("vip").volume_claims("c").priority(100))
    world.remove("vip")
    world.remove("holder")
    world.advance(5)
    assert world.node_of("waiter")


def test_a_lower_pod_makes_no_room_for_a_claim_that_is_kept() -> None:
    """Its victim's end would free nothing: the claim is the nominated pod's."""
    world = World(nodes=[node("a"), node("b")], objects=of_one_pod(), watches=False)
    world.add(pod("holder").volume_claims("c").on("a"), pod("vip").volume_claims("c").priority(100))
    world.add(pod("middle").volume_claims("c").priority(50))
    assert evicted(world) == ["holder"]
    victims_end(world, 0.0)
    assert world.node_of("vip") == "a"
    assert evicted(world) == ["holder"]


@pytest.mark.parametrize("grace", GRACE)
def test_a_port_of_the_node_is_kept(grace: float) -> None:
    world = World(nodes=[node("a")], watches=False)
    world.add(pod("holder").host_port(80).on("a"), pod("waiter").host_port(80))
    world.advance(40)
    world.add(pod("vip").host_port(80).priority(100))
    victims_end(world, grace)
    assert world.node_of("vip") == "a"
    assert evicted(world) == ["holder"]


def device_world(devices: int = 1, nodes: int = 2) -> World:
    """Nodes of two CPUs with so many devices each; the first is full of a pod that has none."""
    names = [f"n{i}" for i in range(nodes)]
    slices = [resource_slice(name).devices(*(f"gpu-{i}" for i in range(devices))) for name in names]
    world = World(
        nodes=[node(name, cpu="2") for name in names], objects=[*slices, device_class("gpu").serves("example.com/gpu")], watches=False
    )
    return world.add(pod("holder").requests(cpu="2").on("n0"))


def wants_gpu(world: World, name: str, **how: Any) -> PodMaker:
    world.show(resource_claim(f"of-{name}").request("gpu", **how))
    return pod(name).resource_claims(f"of-{name}")


def at(maker: PodMaker, name: str) -> PodMaker:
    return maker.node_selector({"kubernetes.io/hostname": name})


@pytest.mark.parametrize("grace", GRACE)
def test_a_device_is_kept_on_the_node_where_the_preemptor_gets_its_room(grace: float) -> None:
    world = device_world()
    world.add(at(wants_gpu(world, "vip").priority(100).requests(cpu="1"), "n0"))
    assert evicted(world) == ["holder"]
    world.add(at(wants_gpu(world, "waiter"), "n0"))
    assert world.node_of("waiter") is None
    world.add(wants_gpu(world, "other"))  # another node's device is free
    victims_end(world, grace)
    assert world.node_of("vip") == "n0"
    assert (world.node_of("other"), world.node_of("waiter")) == ("n1", None)


def test_a_device_of_several_is_kept_and_the_others_are_free() -> None:
    world = device_world(devices=3)
    world.add(at(wants_gpu(world, "vip", count=2).priority(100).requests(cpu="1"), "n0"))
    world.add(*(at(wants_gpu(world, f"waiter-{i}"), "n0") for i in range(3)))
    victims_end(world, 0.0)
    assert world.node_of("vip") == "n0"
    assert [world.node_of(f"waiter-{i}") for i in range(3)].count("n0") == 1


def test_an_extended_resource_that_devices_serve_is_kept() -> None:
    world = device_world(nodes=1)
    world.add(pod("vip").priority(100).requests({"cpu": "1", "example.com/gpu": "1"}))
    assert evicted(world) == ["holder"]
    world.add(wants_gpu(world, "waiter"))
    victims_end(world, 0.0)
    assert (world.node_of("vip"), world.node_of("waiter")) == ("n0", None)


def test_a_device_that_every_node_reaches_is_kept_too() -> None:
    world = World(nodes=[node("n0", cpu="2"), node("n1", cpu="2")], watches=False)
    world.show(resource_slice("far").on_all_nodes().devices("gpu-0"), device_class("gpu"))
    world.add(pod("holder").requests(cpu="2").on("n0"))
    world.add(at(wants_gpu(world, "vip").priority(100).requests(cpu="1"), "n0"))
    world.add(at(wants_gpu(world, "waiter"), "n1"))
    victims_end(world, 0.0)
    assert (world.node_of("vip"), world.node_of("waiter")) == ("n0", None)


def test_a_claim_that_both_use_gets_its_devices_with_the_preemptor() -> None:
    world = device_world()
    world.show(resource_claim("shared").request("gpu"))
    world.add(at(pod("vip").resource_claims("shared").priority(100).requests(cpu="1"), "n0"))
    world.add(pod("waiter").resource_claims("shared"))
    assert world.node_of("waiter") is None
    victims_end(world, 0.0)
    assert world.node_of("vip") == "n0"


def test_a_device_is_free_again_when_the_nominated_pod_is_gone() -> None:
    world = device_world()
    world.add(at(wants_gpu(world, "vip").priority(100).requests(cpu="1"), "n0"))
    world.add(at(wants_gpu(world, "waiter"), "n0"))
    world.remove("vip")
    world.advance(5)
    assert world.node_of("waiter") == "n0"


def test_a_pod_of_more_priority_takes_the_device() -> None:
    world = device_world()
    world.add(at(wants_gpu(world, "vip").priority(100).requests(cpu="1"), "n0"))
    world.add(at(wants_gpu(world, "king").priority(200), "n0"))
    assert world.node_of("king") == "n0"
