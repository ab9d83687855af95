"""Groups on random clusters in virtual time, judged by their rules' plain meaning (see `judge`)."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from lab.simulation.scenarios import a_node, a_pod, comes, goes
from placewright.offline.kinds import Manifest
from placewright_lab.simulation.scenario import Happening, Scenario
from randomcases import cases

from .stage import Play, in_group, pod_group

ZONES = ("east", "west", "north")


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    return Play(monkeypatch)


def random_scenario(seed: int, deletions: float = 0.05) -> Scenario:
    """Some nodes in zones, pods that run and pods that come, and groups of all kinds that come among them."""
    rng = random.Random(seed)
    nodes = [a_node(f"n{n}", cpu=str(rng.randint(2, 8)), zone=rng.choice(ZONES)) for n in range(rng.randint(3, 10))]
    objects: list[Manifest] = list(nodes)
    happenings: list[Happening] = []
    durations: dict[str, float] = {}
    for index in range(rng.randint(0, 40)):
        single = a_pod(f"single-{index}", cpu=rng.choice(("500m", "1", "2")), priority=rng.choice((0, 0, 5)))
        happenings.append(comes(rng.uniform(0, 600), single))
        durations[f"uid-single-{index}"] = rng.uniform(30, 300)
    for index in range(rng.randint(1, 6)):
        happenings.extend(random_group(rng, f"job{index}", durations, deletions))
    return Scenario("random", objects, sorted(happenings, key=lambda happening: happening.at), durations)


def random_group(rng: random.Random, name: str, durations: dict[str, float], deletions: float) -> Iterator[Happening]:
    count = rng.randint(1, 8)
    minimum = rng.randint(1, count)
    began = rng.uniform(0, 500)
    topology = rng.choice(("", "", "zone"))
    declared = began + rng.uniform(-5, 5) if began > 5 else began
    yield comes(declared, pod_group(name, minimum, topology=topology, mode=rng.choice(("required", "preferred"))))
    cpu, priority = rng.choice(("500m", "1", "2", "3")), rng.choice((0, 0, 5, 10))
    for index in range(count):
        at = began + rng.choice((0.0, 0.0, rng.uniform(0, 60)))
        mine = a_pod(f"{name}-{index}", cpu=rng.choice((cpu, cpu, "1")), priority=priority, meta=in_group(name))
        yield comes(at, mine)
        durations[f"uid-{name}-{index}"] = rng.uniform(20, 400)
        if rng.random() < deletions:
            yield goes(at + rng.uniform(0, 100), mine)


@pytest.mark.parametrize("seed", range(cases(60)))
def test_members_are_bound_all_or_none_within_what_nodes_offer_and_in_one_domain(play: Play, seed: int) -> None:
    scenario = random_scenario(seed)
    play.run(scenario, seed=seed)
    assert play.judged(scenario).breaches == []


@pytest.mark.parametrize("seed", range(200, 200 + cases(30)))
def test_the_rules_hold_although_every_fifth_binding_is_refused(play: Play, seed: int) -> None:
    scenario = random_scenario(seed, deletions=0.0)
    rng = random.Random(seed)
    play.refuses = lambda: rng.random() < 0.2
    play.run(scenario, seed=seed)
    judge = play.judged(scenario)
    assert judge.breaches == []
    done = {deed.pod for deed in play.deeds if deed.what == "bind"}
    left = {group: [name for name in judge.pods if judge.group_of(name) == group and name not in done] for group in judge.groups}
    whole = [group for group, names in left.items() if len(names) >= judge.minimum(group) and judge.could_ever_stand(group)]
    assert whole == [], "what was refused is tried again, until fewer are left than a group needs: the others ran and ended"


@pytest.mark.parametrize("seed", range(100, 100 + cases(40)))
def test_whoever_could_stand_on_the_empty_cluster_stands_one_day(play: Play, seed: int) -> None:
    """All pods end some day, so no group may wait for ever: not for single pods, and not for another group."""
    scenario = random_scenario(seed, deletions=0.0)
    play.run(scenario, seed=seed)
    judge = play.judged(scenario)
    never = [group for group in judge.groups if group not in judge.placed_at and judge.could_ever_stand(group)]
    assert never == []


def test_groups_that_each_need_most_of_the_cluster_are_placed_one_after_the_other(play: Play) -> None:
    """Half of each would fit: two that were half placed would wait for each other for ever."""
    objects: list[Manifest] = [a_node(f"n{n}") for n in range(4)]
    happenings, durations = [], {}
    for index in range(5):
        name = f"job{index}"
        happenings.append(comes(0, pod_group(name, 12)))
        for each in range(12):
            happenings.append(comes(each * 0.5, a_pod(f"{name}-{each}", meta=in_group(name))))
            durations[f"uid-{name}-{each}"] = 100.0 + each
    scenario = Scenario("large groups", objects, sorted(happenings, key=lambda happening: happening.at), durations)
    play.run(scenario)
    judge = play.judged(scenario)
    assert judge.breaches == []
    assert len(judge.placed_at) == 5


def small_pods(rng: random.Random, seconds: float, every: float, lives: float) -> Iterator[tuple[Happening, float]]:
    """A stream of pods of one CPU, each with the seconds that it runs."""
    at, count = 0.0, 0
    while at < seconds:
        yield comes(at, a_pod(f"small-{count}", restartPolicy="Never")), rng.uniform(0.5, 1.5) * lives
        at += rng.expovariate(1 / every)
        count += 1


def crowded(seconds: float) -> tuple[Scenario, dict[str, float]]:
    """Sixteen CPUs, a stream of pods that keeps fifteen busy, and now and then a group of three that needs most of three nodes.

    With it, when each group comes.
    """
    rng = random.Random(1)
    stream = list(small_pods(rng, seconds, 280, 3_600))
    objects: list[Manifest] = [a_node(f"n{n}") for n in range(4)]
    happenings = [happening for happening, _ in stream]
    durations = {happening.manifest["metadata"]["uid"]: life for happening, life in stream}
    came: dict[str, float] = {}
    for index in range(int(seconds / 10_000)):
        name, began = f"job{index}", 10_000.0 * index + 1_000
        came[name] = began
        happenings.append(comes(began, pod_group(name, 3)))
        for member in range(3):
            happenings.append(comes(began, a_pod(f"{name}-{member}", cpu="3", meta=in_group(name))))
            durations[f"uid-{name}-{member}"] = 900.0
    return Scenario("stream", objects, sorted(happenings, key=lambda happening: happening.at), durations), came


def test_no_group_starves_in_three_thousand_minutes_of_small_pods(play: Play) -> None:
    scenario, came = crowded(180_000)
    bounds = {"reservationPercent": 100, "reservationPercentOfNamespace": 100, "reservationSeconds": 7_200}
    play.run(scenario, pluginConfig=[{"name": "GangScheduling", "args": {"reservations": 1, **bounds}}])
    judge = play.judged(scenario)
    assert judge.breaches == []
    waited = {name: judge.placed_at.get(name, 1e9) - began for name, began in came.items()}
    assert max(waited.values()) < 7_200, f"the longest waits: {sorted(waited.items(), key=lambda each: -each[1])[:5]}"
