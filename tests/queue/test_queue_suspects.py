"""Pods whose like ended a process: whom a mark speaks for, how long they wait, and that they come last and are never lost."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from queue_makers import PodMaker, World, affinity_term, near, pod

from placewright.api.decisionmarks import HEAVY_WORK, DecisionMark, heavy_work, keys_of, marked
from placewright.queue.check import check_invariants
from placewright.queue.queued import SubQueue
from placewright.queue.suspects import FIRST_WAIT, LONG_WAIT, LONGEST_QUIET, LONGEST_WAIT, DeathMarks, wait_after

#: So many terms make a decision heavy.
MANY_TERMS = tuple(affinity_term(app=f"a-{number}") for number in range(HEAVY_WORK // 10))


def heavy(name: str) -> PodMaker:
    return near(pod(name), *MANY_TERMS)


def other_heavy(name: str) -> PodMaker:
    return near(pod(name), *MANY_TERMS, affinity_term(app=name))


def owned(maker: PodMaker, uid: str) -> PodMaker:
    return maker.metadata(ownerReferences=[]).owned_by("ReplicaSet", uid)


def with_image(maker: PodMaker, image: str) -> PodMaker:
    return maker.image(image)


def death_of(maker: PodMaker, deaths: int = 1, *, hung: bool = False) -> DecisionMark:
    return DecisionMark(marked(maker.build(), heavy=not hung), deaths)


def knowing(*marks: DecisionMark, at: float = 0.0) -> DeathMarks:
    suspects = DeathMarks()
    suspects.adopt((mark, at) for mark in marks)
    return suspects


def deaths(suspects: DeathMarks, maker: PodMaker) -> int:
    found = suspects.of(maker.build())
    return 0 if found is None else found.deaths


# --- whom a mark speaks for ------------------------------------------------------------------------------------------------------


def test_an_ordinary_pod_is_not_heavy_and_one_with_very_many_terms_is() -> None:
    assert heavy_work(pod("web").build()) == 0
    assert heavy_work(near(pod("web"), *MANY_TERMS[:4]).build()) == 0
    assert heavy_work(heavy("poison").build()) >= HEAVY_WORK


def test_a_pod_made_again_under_another_name_uid_priority_image_and_controller_is_spoken_for() -> None:
    suspects = knowing(death_of(with_image(heavy("poison"), "poison")))
    again = owned(with_image(heavy("innocuous"), "other").uid("new").priority(1_000_000), "controller-2")
    assert deaths(suspects, again) == 1


def test_another_spec_of_the_namespace_is_not_spoken_for_after_one_death() -> None:
    suspects = knowing(death_of(heavy("poison")))
    assert deaths(suspects, other_heavy("other")) == 0
    assert deaths(suspects, pod("web")) == 0


def test_the_same_spec_in_another_namespace_is_somebody_elses() -> None:
    assert deaths(knowing(death_of(heavy("poison"))), heavy("poison").namespace("innocent")) == 0


def test_a_heavy_pod_of_the_same_controller_is_spoken_for_and_its_ordinary_pods_are_not() -> None:
    suspects = knowing(death_of(owned(heavy("poison"), "job-1")))
    assert deaths(suspects, owned(other_heavy("changed"), "job-1")) == 1
    assert deaths(suspects, owned(pod("sidecar"), "job-1")) == 0


def test_a_namespace_that_varies_its_heavy_pods_is_found_out_after_the_second_death_and_its_ordinary_pods_go_on() -> None:
    suspects = knowing(death_of(other_heavy("one")), death_of(other_heavy("two")), death_of(other_heavy("three")))
    assert deaths(suspects, other_heavy("four")) == 2
    assert deaths(suspects, pod("web")) == 0
    assert deaths(suspects, other_heavy("four").namespace("innocent")) == 0


def test_an_ordinary_pod_that_hung_speaks_for_its_own_spec_alone() -> None:
    suspects = knowing(death_of(owned(pod("bug").requests(cpu="3"), "rs-1"), hung=True))
    assert deaths(suspects, owned(pod("bug-2").requests(cpu="3"), "rs-2")) == 1
    assert deaths(suspects, owned(pod("web").requests(cpu="1"), "rs-1")) == 0
    assert deaths(suspects, owned(other_heavy("job"), "rs-1")) == 0


def test_an_ordinary_pod_with_another_image_is_somebody_elses() -> None:
    suspects = knowing(death_of(with_image(pod("bug"), "bug"), hung=True))
    assert deaths(suspects, with_image(pod("web"), "web")) == 0
    assert deaths(suspects, with_image(pod("bug-2"), "bug")) == 1


def test_what_a_mark_keeps_of_a_pod_is_bounded_however_large_the_pod_is() -> None:
    huge = heavy("x" * 253).node_selector({f"k{number}": "v" * 63 for number in range(5_000)}).annotations(a="b" * 100_000)
    assert len(msgspec.json.encode(marked(huge.build()))) < 1_000


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 4), st.integers(1, 5)), max_size=12), st.integers(0, 4))
def test_deaths_are_counted_as_a_plain_reading_of_the_rule_counts_them(history: list[tuple[str, int, int]], asked: int) -> None:
    """By namespace and spec, without controllers: the spec's own deaths, or all of its namespace's but one."""
    marks = {(namespace, spec): count for namespace, spec, count in history}
    suspects = knowing(*(death_of(other_heavy(f"p{spec}").namespace(namespace), count) for (namespace, spec), count in marks.items()))
    in_namespace = sum(count for (namespace, _), count in marks.items() if namespace == "a")
    assert deaths(suspects, other_heavy(f"p{asked}").namespace("a")) == max(marks.get(("a", asked), 0), in_namespace - 1, 0)


def test_the_digest_of_a_stateful_sets_pods_is_the_same() -> None:
    assert keys_of(heavy("db-0").build()) == keys_of(heavy("db-1").labels(pod="db-1").build())


# --- how long they wait ----------------------------------------------------------------------------------------------------------


def test_waits_double_from_ten_minutes_to_an_hour_and_end_there() -> None:
    assert [wait_after(count) for count in (1, 2, 3, 4, 5, 1000)] == [
        FIRST_WAIT, LONG_WAIT, 2 * LONG_WAIT, 4 * LONG_WAIT, LONGEST_WAIT, LONGEST_WAIT,
    ]  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_suspect_waits_from_its_last_death(count: int) -> None:
    found = knowing(death_of(heavy("poison"), count), at=50.0).of(heavy("poison").build())
    assert found is not None
    assert found.not_before == 50.0 + wait_after(count)


# --- in the queue ----------------------------------------------------------------------------------------------------------------


def accused(world: World, *marks: DecisionMark) -> None:
    """A new leader read these marks now."""
    world.queue.suspects.marks.adopt((mark, world.now) for mark in marks)
    world.queue.suspects.anew()
    check_invariants(world.queue)


def let_in(world: World) -> bool:
    found = world.queue.suspects.let_in()
    check_invariants(world.queue)
    return found


def test_a_suspect_of_the_highest_priority_comes_after_all_others() -> None:
    world = World()
    world.add(heavy("poison").priority(10), pod("web"), pod("db").priority(-5))
    accused(world, death_of(heavy("poison")))
    world.now += FIRST_WAIT
    assert not let_in(world), "others are active"
    assert world.popped_names() == ["web", "db"]
    assert not let_in(world), "others are being decided, or bound"
    for name in ("web", "db"):
        world.queue.done(f"uid-{name}")
    assert let_in(world)
    assert world.popped_names() == ["poison"]


def test_a_suspect_that_comes_later_is_set_apart_as_it_comes() -> None:
    world = World()
    accused(world, death_of(heavy("poison")))
    world.add(heavy("poison").uid("another"))
    assert world.queue.locate("another") is SubQueue.BACKOFF
    assert world.queue.pop() is None


def test_a_suspect_waits_even_when_nothing_else_is_to_be_done() -> None:
    world = World()
    world.add(heavy("poison"))
    accused(world, death_of(heavy("poison"), 2))
    world.now += LONG_WAIT - 1
    assert not let_in(world)
    world.now += 1
    assert let_in(world)


def test_a_suspect_is_not_kept_for_ever_by_others_that_always_come() -> None:
    world = World()
    world.add(heavy("poison"), pod("web"))
    accused(world, death_of(heavy("poison")))
    world.now += FIRST_WAIT + LONGEST_QUIET - 1
    assert not let_in(world)
    world.now += 1
    assert let_in(world)
    assert set(world.popped_names()) == {"web", "poison"}


def test_suspects_are_let_in_one_at_a_time() -> None:
    world = World()
    world.add(heavy("one"), heavy("two"))
    accused(world, death_of(heavy("one")))
    world.now += FIRST_WAIT
    assert let_in(world)
    assert not let_in(world)
    world.pop()
    assert not let_in(world), "the first is being decided"


def test_a_pod_whose_mark_went_is_tried_like_any_other() -> None:
    world = World()
    world.add(heavy("one"), heavy("two"))
    accused(world, death_of(heavy("one"), 5))
    assert world.queue.pop() is None
    mark = death_of(heavy("one"))
    assert world.queue.suspects.marks.clear(mark.pod.namespace, mark.pod.name)
    world.queue.suspects.anew()
    assert world.popped_names() == ["one", "two"]


def test_a_suspect_among_its_members_sets_a_whole_group_apart() -> None:
    world = World()
    members = [grouped(pod("a")), grouped(heavy("b")), grouped(pod("c"))]
    accused(world, death_of(heavy("b")))
    world.add(*members, pod("web"))
    assert world.popped_names() == ["web"]
    world.queue.done("uid-web")
    world.now += FIRST_WAIT
    assert let_in(world)
    popped = world.pop()
    assert {queued.pod.name for queued in world.queue.take_pod_group(popped)} == {"a", "b", "c"}


def test_a_group_is_spoken_for_by_its_name_when_it_is_made_again() -> None:
    suspects = knowing(death_of(grouped(pod("a"))))
    assert deaths(suspects, grouped(pod("b").requests(cpu="7"))) == 1


def grouped(maker: PodMaker) -> PodMaker:
    return maker.labels(**{"scheduling.x-k8s.io/pod-group": "train"})


@given(
    specs=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    history=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=4),
    beats=st.lists(st.floats(0.5, 500.0), max_size=30),
)
def test_under_any_history_no_suspect_passes_another_pod_and_none_is_lost(
    specs: list[int], history: list[tuple[int, int]], beats: Iterable[float]
) -> None:
    world = World()
    accused(world, *(death_of(pod(f"s{spec}").requests(cpu=f"{spec + 1}"), count, hung=True) for spec, count in history))
    suspected = {spec for spec, _ in history}
    for number, spec in enumerate(specs):
        world.add(pod(f"p{number}").requests(cpu=f"{spec + 1}"))
    tried: list[str] = []
    for seconds in beats:
        while (queued := world.queue.pop()) is not None:
            tried.append(queued.pod.name)
            world.queue.done(queued.uid)
        world.now += seconds
        let_in(world)
        assert world.queue.sizes().active <= 1
    world.now += LONGEST_WAIT
    for _ in specs:
        let_in(world)
        tried += world.popped_names()
        for name in tried:
            world.queue.done(f"uid-{name}")
    ordinary = [f"p{number}" for number, spec in enumerate(specs) if spec not in suspected]
    assert sorted(tried) == sorted(f"p{number}" for number in range(len(specs)))
    assert tried[: len(ordinary)] == ordinary
