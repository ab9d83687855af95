"""The rules of `spec.preemption` hold for a whole group: it may preempt or not, and its victims are counted together."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from placewright.testing import World as KitWorld
from placewright.testing import assert_bound, assert_waiting, disruption_budget, profile
from scheduler.makers import PodMaker, node, pod
from seeds import seeds

from .makers import group, members

WEB = {"matchLabels": {"app": "web"}}


def important(count: int, cpu: str = "1", of: str = "job") -> list[PodMaker]:
    return [maker.priority(100) for maker in members(of, count, cpu)]


def low(name: str, on: str, cpu: str = "1", started: str = "2026-01-01T00:00:00Z", **labels: str) -> PodMaker:
    return pod(name, on=on, labels=labels).requests(cpu=cpu).status(startTime=started)


def world(*pods: PodMaker, nodes: int = 2, cpu: str = "2", **rules: Any) -> KitWorld:
    made = [node(name).offers(cpu=cpu) for name in "abcdef"[:nodes]]
    return KitWorld(nodes=made, pods=pods, profile=profile().spec(preemption=rules))


def evicted(stage: KitWorld) -> list[str]:
    return [victim for victim, _, _ in stage.evictor.evicted]


def full(**labels: str) -> list[PodMaker]:
    """Four pods that fill two nodes."""
    return [low(f"low-{n}", "ab"[n % 2], **labels) for n in range(4)]


def test_without_rules_the_group_displaces_as_many_as_it_needs() -> None:
    stage = world(*full()).add(group("job", 3), *important(3))
    assert len(evicted(stage)) == 3
    stage.advance(5)
    assert_bound(stage, "job-2")


def test_a_group_of_a_profile_that_never_preempts_displaces_nobody() -> None:
    stage = world(*full(), policy="Never").add(group("job", 3), *important(3))
    assert_waiting(stage, "job-0", because="preemption: not eligible due to spec.preemption.policy=Never")
    assert evicted(stage) == []


def test_a_group_displaces_others_when_it_has_waited_long_enough() -> None:
    stage = world(*full(), waitSeconds=40).add(group("job", 3), *important(3))
    assert_waiting(stage, "job-0", because="preemption: not eligible due to spec.preemption.waitSeconds=40")
    stage.advance(39)
    assert evicted(stage) == []
    stage.advance(10)
    assert len(evicted(stage)) == 3
    assert_bound(stage, "job-0")


def test_the_victims_of_a_whole_group_are_counted_together() -> None:
    assert evicted(world(*full(), maxVictims=3).add(group("job", 3), *important(3))) != []
    stage = world(*full(), maxVictims=2).add(group("job", 3), *important(3))
    assert evicted(stage) == []
    assert_waiting(stage, "job-0", because="preemption: More victims than spec.preemption.maxVictims=2")


def test_a_minutes_evictions_bound_the_group_and_it_is_placed_in_the_next() -> None:
    stage = world(*full(), maxEvictionsPerMinute=3).add(pod("vip").requests(cpu="1").priority(100))
    assert len(evicted(stage)) == 1
    stage.add(group("job", 3), *important(3))
    assert_waiting(stage, "job-0", because="preemption: More victims than spec.preemption.maxEvictionsPerMinute=3 allows")
    stage.advance(59)
    assert len(evicted(stage)) == 1
    stage.advance(15)
    assert len(evicted(stage)) == 4
    assert_bound(stage, "job-0")


def test_protected_pods_are_no_victims_of_any_member() -> None:
    pods = [low("web-0", "a", app="web"), low("web-1", "b", app="web"), low("batch-0", "a"), low("batch-1", "b")]
    stage = world(*pods, protect=WEB).add(group("job", 2), *important(2))
    assert sorted(evicted(stage)) == ["batch-0", "batch-1"]
    stage = world(*pods, protect=WEB).add(group("job", 3), *important(3))
    assert evicted(stage) == []
    assert_waiting(stage, "job-0", because="Victims are protected by spec.preemption.protect")


def test_a_group_that_leaves_as_a_whole_stays_when_one_member_is_protected() -> None:
    def running(*, keep: bool) -> KitWorld:
        stage = world(nodes=2, cpu="1", protect={"matchLabels": {"keep": "yes"}}).show(group("other", 2))
        for n, maker in enumerate(members("other", 2)):
            stage.show(maker.on("ab"[n]).labels(keep="yes" if keep and n == 0 else "no"))
        return stage.add(pod("vip").requests(cpu="1").priority(100))

    assert sorted(evicted(running(keep=False))) == ["other-0", "other-1"]
    stage = running(keep=True)
    assert evicted(stage) == []
    assert_waiting(stage, "vip", because="2 Victims are protected by spec.preemption.protect")


def test_a_group_waits_until_its_victims_have_run_long_enough() -> None:
    pods = [low("old", "a", "2"), low("young", "b", "2", "2026-01-01T00:01:00Z")]  # the world's clock begins at 00:01:40
    stage = world(*pods, minRunSeconds=100).add(group("job", 2), *important(2, "2"))
    assert_waiting(stage, "job-0", because="Victims have run less than spec.preemption.minRunSeconds=100")
    stage.advance(55)
    assert evicted(stage) == []
    stage.advance(15)
    assert sorted(evicted(stage)) == ["old", "young"]


def test_members_share_what_a_budget_allows() -> None:
    def allowed(disruptions: int) -> list[str]:
        budget = disruption_budget("web").spec(selector=WEB).allows(disruptions)
        stage = world(*full(app="web"), disruptionBudgets="Strict").add(budget, group("job", 3), *important(3))
        if not evicted(stage):
            assert_waiting(stage, "job-0", because="spec.preemption.disruptionBudgets=Strict")
        return evicted(stage)

    assert allowed(2) == []
    assert len(allowed(3)) == 3


def test_a_member_looks_elsewhere_when_an_earlier_one_used_the_budget_up() -> None:
    pods = [low("web-0", "a", app="web"), low("web-1", "b", app="web"), low("batch", "c").priority(1)]
    budget = disruption_budget("web").spec(selector=WEB).allows(1)
    stage = world(*pods, nodes=3, cpu="1", disruptionBudgets="Strict").add(budget, group("job", 2), *important(2))
    assert [name.rpartition("-")[0] or name for name in sorted(evicted(stage))] == ["batch", "web"]


def test_victims_of_one_group_use_up_the_budget_of_the_next() -> None:
    budget = disruption_budget("web").spec(selector=WEB).allows(3)
    stage = world(*full(app="web"), disruptionBudgets="Strict").add(budget, group("first", 2), *important(2, of="first"))
    assert len(evicted(stage)) == 2
    stage.add(group("second", 2), *important(2, of="second"))
    assert len(evicted(stage)) == 2, "one disruption is left, as the budget's status has not changed since"


@seeds(range(60))
def test_no_rule_is_broken_on_random_clusters(seed: int) -> None:
    """In a world whose budgets are never written anew, each allows as many victims in all as its status says."""
    rng = random.Random(seed)
    pods = [
        low(f"p{n}", "abcd"[n % 4], rng.choice(("500m", "1")), "2026-01-01T00:00:30Z" if rng.random() < 0.3 else "2026-01-01T00:00:00Z",
            app=rng.choice(("web", "db", "keep"))).priority(rng.randrange(3))
        for n in range(rng.randint(6, 16))
    ]  # fmt: skip
    most = rng.choice((1, 2, 4, 100))
    stage = world(
        *pods, nodes=4, cpu="4", disruptionBudgets="Strict", maxVictims=most, protect={"matchLabels": {"app": "keep"}}, minRunSeconds=100
    )
    allowed = {app: rng.randrange(4) for app in ("web", "db")}
    for app, disruptions in allowed.items():
        stage.show(disruption_budget(app).spec(selector={"matchLabels": {"app": app}}).allows(disruptions))
    made = {maker.build().name: maker.build() for maker in pods}
    batches: list[list[str]] = []
    for round_ in range(4):
        before = len(evicted(stage))
        if rng.random() < 0.6:
            stage.add(group(f"job{round_}", 2), *important(2, rng.choice(("1", "2")), of=f"job{round_}"))
        else:
            stage.add(pod(f"vip{round_}").requests(cpu=rng.choice(("1", "3"))).priority(50))
        batches.append(evicted(stage)[before:])
        stage.advance(rng.choice((1, 5)))
    left = Counter(made[name].labels["app"] for name in evicted(stage) if name in made)
    assert left["keep"] == 0
    assert all(left[app] <= disruptions for app, disruptions in allowed.items())
    assert all(len(batch) <= most for batch in batches)
    assert all(made[name].pod.status.start_time == "2026-01-01T00:00:00Z" for name in evicted(stage) if name in made)
