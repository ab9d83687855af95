"""Nominations: one node a pod, kept through updates that do not speak of it."""

from __future__ import annotations

from queue_makers import World, pod

from placewright.api.objects import NodeName
from placewright.queue.nominator import Nominator

N1, N2 = NodeName("n1"), NodeName("n2")


def names(nominator: Nominator, node: NodeName) -> list[str]:
    return [nominated.name for nominated in nominator.pods_on(node)]


def test_a_pod_is_nominated_to_the_node_that_its_status_names() -> None:
    nominator = Nominator()
    nominator.add(pod("web").nominated("n1").build())
    assert names(nominator, N1) == ["web"]
    assert nominator.node_of("uid-web") == N1


def test_a_given_node_goes_before_the_status() -> None:
    nominator = Nominator()
    nominator.add(pod("web").nominated("n1").build(), N2)
    assert (names(nominator, N1), names(nominator, N2)) == ([], ["web"])


def test_an_empty_node_withdraws_the_nomination() -> None:
    nominator = Nominator()
    nominator.add(pod("web").nominated("n1").build())
    nominator.add(pod("web").nominated("n1").build(), NodeName(""))
    assert nominator.node_of("uid-web") is None
    assert list(nominator.nodes()) == []


def test_a_pod_that_is_on_a_node_is_not_nominated() -> None:
    nominator = Nominator()
    nominator.add(pod("web").on("n2").build(), N1)
    assert len(nominator) == 0


def test_an_update_that_says_nothing_keeps_a_nomination_made_here() -> None:
    nominator = Nominator()
    old, new = pod("web").build(), pod("web").labels(app="x").build()
    nominator.add(old, N1)
    nominator.update(old, new)
    assert list(nominator.pods_on(N1)) == [new]


def test_an_update_that_removes_the_nomination_from_the_status_ends_it() -> None:
    nominator = Nominator()
    old = pod("web").nominated("n1").build()
    nominator.add(old)
    nominator.update(old, pod("web").build())
    assert nominator.node_of("uid-web") is None


def test_an_update_moves_a_nomination_with_the_status() -> None:
    nominator = Nominator()
    old = pod("web").nominated("n1").build()
    nominator.add(old)
    nominator.update(old, pod("web").nominated("n2").build())
    assert (names(nominator, N1), names(nominator, N2)) == ([], ["web"])


def test_deleting_a_pod_that_is_not_nominated_is_no_error() -> None:
    nominator = Nominator()
    nominator.add(pod("web").nominated("n1").build())
    nominator.delete("nobody")
    assert names(nominator, N1) == ["web"]


def test_the_queue_keeps_nominations_in_step_with_its_pods() -> None:
    world = World()
    world.add(pod("web").nominated("n1"), pod("db"), pod("gone").nominated("n1"))
    world.queue.nominate(pod("db").build(), N2)
    world.queue.update(pod("web").nominated("n2").build())
    world.queue.delete("uid-gone")
    assert (names(world.queue.nominator, N1), names(world.queue.nominator, N2)) == ([], ["db", "web"])
    world.pop()
    world.queue.done("uid-web")
    assert names(world.queue.nominator, N2) == ["db"]


def test_a_pod_that_left_the_queue_is_not_nominated() -> None:
    world = World()
    world.add(pod("web"))
    queued = world.pop()
    world.queue.delete("uid-web")
    world.queue.nominate(queued.pod, N1)
    assert len(world.queue.nominator) == 0
