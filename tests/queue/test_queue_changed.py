"""The pods that changed are noted for one reader, while it reads. That none is missed is shown by `test_queue_promise`."""

from __future__ import annotations

import pytest
from queue_makers import FakePolicy, World, pod


def test_nothing_is_noted_without_a_reader() -> None:
    world = World()
    world.add(pod("web"))
    world.pop()
    assert (world.queue.changed.uids, world.queue.changed.take(9)) == (None, [])


def test_a_pod_that_changed_often_is_noted_once_and_taken_in_parts() -> None:
    world = World()
    world.queue.changed.begin()
    world.add(pod("a"), pod("b"), pod("c"))
    world.pop()
    assert (world.queue.changed.take(2), world.queue.changed.take(9), world.queue.changed.take(9)) == (["uid-a", "uid-b"], ["uid-c"], [])


def test_a_reader_begins_with_the_pods_that_it_names() -> None:
    world = World()
    world.add(pod("a"))
    world.queue.changed.begin(world.queue.uids())
    world.add(pod("b"))
    assert world.queue.changed.take(9) == ["uid-a", "uid-b"]


def test_after_the_end_nothing_is_kept() -> None:
    world = World()
    world.queue.changed.begin()
    world.add(pod("web"))
    world.queue.changed.end()
    world.add(pod("other"))
    assert world.queue.changed.uids is None


def test_a_second_reader_is_refused() -> None:
    world = World()
    world.queue.changed.begin()
    with pytest.raises(RuntimeError, match="one reader"):
        world.queue.changed.begin()


def test_a_pod_that_is_given_up_and_one_that_is_taken_back_are_noted() -> None:
    world = World(FakePolicy(interests={"Fit": []}, give_up_after=10.0))
    world.rejected(pod("web"), "Fit")
    world.queue.changed.begin()
    world.now += 20
    world.queue.giving_up.step()
    assert world.queue.changed.take(9) == ["uid-web"]
    world.policy.give_up_after = 1000.0
    world.queue.reprioritise("default-scheduler")
    world.queue.changed.take(9)
    world.queue.giving_up.step()
    assert world.queue.changed.take(9) == ["uid-web"]


def test_a_pod_that_is_deleted_and_comes_back_while_it_is_tried_is_noted_twice() -> None:
    world = World()
    world.add(pod("web"))
    world.pop()
    world.queue.changed.begin()
    world.queue.delete("uid-web")
    assert world.queue.changed.take(9) == ["uid-web"]
    world.add(pod("web"))
    assert world.queue.changed.take(9) == ["uid-web"]
