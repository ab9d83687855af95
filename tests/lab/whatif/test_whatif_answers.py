"""What-if answers held to plain recomputation: the same worlds built anew with the changed profile, and each pod evaluated by itself."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace

from console.makers import ZONE, Object, a_node, a_pod, claim_profile, file_of
from placewright.api.pods import PodInfo
from placewright.api.profile import ProfileStatus
from placewright.cluster.cluster import Cluster
from placewright.explain.explanation import CurrentVerdict, evaluated
from placewright.framework.registry import installed_plugins
from placewright.framework.runtime.evaluation import Evaluator
from placewright.offline.world import read_object
from placewright.plugins.catalog import in_tree
from placewright.testing import VirtualTime
from placewright.testing.devices import device_class, resource_claim, resource_slice
from placewright.testing.pods import pod as made_pod
from placewright.testing.workloads import pod_group
from placewright_console.local.seenworld import SeenWorld
from placewright_console.pages.pendingpods import unix_seconds
from placewright_lab.simulation.apiserver import waiting
from placewright_lab.simulation.evaluation import evaluate_pod
from placewright_lab.snapshots.playback import SeenFile, finished
from placewright_lab.whatif.whatif import WhatIf
from placewright_lab.whatif.whatifanswer import MOST_SECONDS, Answer
from seeds import seeds

Line = dict[str, Any]
#: Of 12 o'clock, one is within the last hour.
HOURS: Final = ("09", "11")
REGISTRY: Final = in_tree().with_installed(installed_plugins())
#: Changes that touch what fits, what scores, both, or neither.
CHANGES: Final[Sequence[Object]] = (
    {"weights": {"NodeResourcesFit": 9, "NodeResourcesBalancedAllocation": 0}},
    {"preset": "bin-packing"},
    {"plugins": {"multiPoint": {"disabled": [{"name": "NodeUnschedulable"}, {"name": "TaintToleration"}]}}},
    {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/gpu"]}}], "weights": {"ImageLocality": 0}},
    {"plugins": {"multiPoint": {"enabled": [{"name": "DomainLimit"}]}},
     "pluginConfig": [{"name": "DomainLimit", "args": {"limits": [{"selector": {}, "topologyKey": ZONE, "max": 3}]}}]},
    {"backoff": {"maxSeconds": 30}},
)  # fmt: skip


def bound(manifest: Object, at: str) -> Object:
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    return manifest | {"status": {"phase": "Running", "conditions": [condition]}}


def random_objects(dice: random.Random) -> list[Object]:
    """Make nodes of a few sizes, pods on them, many of them from the last hour, and pods that wait."""
    names = [f"n{number}" for number in range(dice.randint(3, 9))]
    nodes = [
        a_node(name, cpu=dice.choice([2, 4, 8]), gpu=dice.choice([0, 0, 2]), cordoned=dice.random() < 0.2,
             taint=dice.choice(["", "", "dedicated"]), zone=dice.choice("ab"))
        for name in names
    ]  # fmt: skip
    placed = [
        bound(
            a_pod(f"w{number}", dice.choice(names), cpu=dice.choice([100, 500, 1500])),
            f"2026-11-23T{dice.choice(HOURS)}:{number:02d}:00Z",
        )
        for number in range(dice.randint(0, 12))
    ]
    waits = [
        a_pod(f"q{number}", cpu=dice.choice([100, 900, 3000, 9000]), gpu=dice.choice([0, 0, 1, 3]), priority=dice.choice([0, 0, 7]),
            created=f"2026-11-23T11:{number:02d}:00Z")
        for number in range(dice.randint(1, 12))
    ]  # fmt: skip
    return [*nodes, *placed, *waits]


def world_of(path: Path, objects: Sequence[Object], **spec: Any) -> SeenWorld:
    profile = claim_profile()
    profile["spec"] |= spec
    seen = SeenFile(file_of(path, [*objects, profile]))
    finished(seen.reading())
    world = SeenWorld(REGISTRY, unix_seconds(seen.header.taken))
    finished(world.filling(seen))
    return world


def asked(what_if: WhatIf, world: SeenWorld, changes: Object) -> dict[str, Line]:
    """Return the last line of each part."""
    for _ in what_if.prepared(world):
        pass
    return {line["part"]: line for line in what_if.answer("default", changes) if line is not None}


def what_if() -> WhatIf:
    return WhatIf(REGISTRY, time.monotonic)


def queue_of(world: SeenWorld) -> list[PodInfo]:
    return sorted(world.pending.values(), key=lambda pod: (-pod.priority, pod.created, pod.key))


def evaluator_of(world: SeenWorld) -> Evaluator:
    return world.evaluators["default-scheduler"]


def best_nodes(world: SeenWorld, pod: PodInfo) -> tuple[str, ...]:
    """Return all nodes of the highest total, or none if the pod fits nowhere. The scheduler would choose one of them."""
    return evaluate_pod(evaluator_of(world), world.cluster, pod).best


@seeds(range(40))
def test_the_waiting_pods_that_would_fit_are_those_that_fit_under_the_changed_profile(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    objects, changes = random_objects(dice), dice.choice(CHANGES)
    before, after = world_of(tmp_path / "before", objects), world_of(tmp_path / "after", objects, **changes)
    told = asked(what_if(), before, changes)["waiting"]
    fits = [{pod.name for pod in world.pending.values() if best_nodes(world, pod)} for world in (before, after)]
    assert told["fits"] == [len(fits[0]), len(fits[1])]
    assert {name for *_, names in told["comesBy"] for name in names} == fits[1] - fits[0]
    assert {name for *_, names in told["goesBy"] for name in names} == fits[0] - fits[1]
    assert (told["comes"], told["goes"]) == (len(fits[1] - fits[0]), len(fits[0] - fits[1]))


@seeds(range(40))
def test_waiting_pods_are_placed_where_each_profile_would_put_them_one_after_the_other(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(seed)
    objects, changes = random_objects(dice), dice.choice(CHANGES)
    sides: list[Any] = []
    kept = Answer.lines

    def lines(self: Answer) -> Any:
        sides.extend([self._before, self._after])
        return kept(self)

    monkeypatch.setattr(Answer, "lines", lines)
    told = asked(what_if(), world_of(tmp_path / "asked", objects), changes)["placing"]
    for side, spec, part in zip(sides, ({}, changes), ("before", "after"), strict=True):
        plain = world_of(tmp_path / "plain", objects, **spec)
        placed = 0
        for each in queue_of(plain):
            best, node = best_nodes(plain, each), side.nodes[each.uid]
            assert (node in best) if best else node is None, each.key
            if node is not None:
                plain.cluster.assume(each, node)
                placed += 1
        assert told[part]["placed"] == placed
        uses = {resource: (requested, allocatable) for resource, requested, allocatable, *_ in told[part]["uses"]}
        column = plain.cluster.resources.column("cpu")
        rows = plain.cluster.rows()
        assert uses["cpu"] == (column.requested[rows].sum(), column.allocatable[rows].sum())
    moved = {uid for uid, node in sides[0].nodes.items() if sides[1].nodes[uid] != node}
    assert told["others"] == len(moved)


@seeds(range(40))
def test_placements_of_the_last_hour_are_tried_on_the_cluster_without_the_pod(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    objects, changes = random_objects(dice), dice.choice(CHANGES)
    before, after = world_of(tmp_path / "before", objects), world_of(tmp_path / "after", objects, **changes)
    told = asked(what_if(), before, changes)["recent"]
    recent = [each for each in before.cluster.placements() if "T11:" in each.pod.pod.status.conditions[0].last_transition_time]
    assert (told["of"], told["tried"]) == (len(recent), len(recent))
    others = {name: (now, changed) for _, name, _, now, changed, _ in told["named"]}
    for each in recent:
        best = []
        for world in (before, after):
            world.cluster.remove_pod(each.pod.uid)
            best.append(best_nodes(world, waiting(each.pod)))
            world.cluster.set_pod(each.pod)
        if each.pod.name in others:
            now, changed = others[each.pod.name]
            assert (now in best[0]) if best[0] else now is None
            assert (changed in best[1]) if best[1] else changed is None
            assert now not in best[1] or now is None, "chance makes no difference"
            assert each.node not in best[0] or now == each.node
        else:
            assert (set(best[0]) & set(best[1])) or not (best[0] or best[1])
    assert told["others"] == len(others)


def state_of(what_if: WhatIf) -> Any:
    cluster = what_if._trial.cluster  # type: ignore[union-attr]
    rows = cluster.rows()
    columns = {name: cluster.resources.column(name).requested[rows].tolist() for name in cluster.resources.names()}
    return columns, cluster.pod_count[rows].tolist(), {uid: each.node for uid, each in ((e.pod.uid, e) for e in cluster.placements())}


@seeds(range(10))
def test_an_answer_that_is_given_up_anywhere_leaves_the_copy_as_it_was(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    world, question = world_of(tmp_path / "w", random_objects(dice)), dice.choice(CHANGES)
    one = what_if()
    whole = asked(one, world, question)
    state = state_of(one)
    assert state == state_of_fresh(world)
    other = what_if()
    for _ in other.prepared(world):
        pass
    for end in sorted(dice.sample(range(60), 6)):
        answer = other.answer("default", question)
        for _ in zip(range(end), answer, strict=False):
            pass
        answer.close()
        assert state_of(other) == state, end
    again = asked(other, world, question)
    assert {part: line for part, line in again.items() if part != "end"} == {part: line for part, line in whole.items() if part != "end"}


def state_of_fresh(world: SeenWorld) -> Any:
    fresh = what_if()
    for _ in fresh.prepared(world):
        pass
    return state_of(fresh)


@seeds(range(6))
def test_a_copy_of_a_cluster_that_changed_answers_as_a_new_copy_does(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    clock = VirtualTime(0.0)
    kept, world = WhatIf(REGISTRY, clock), world_of(tmp_path / "w", random_objects(dice))
    for _ in range(4):
        for manifest in dice.sample(random_objects(dice), 4):
            item = read_object(manifest, "test")
            assert item is not None
            (world.put if dice.random() < 0.6 else world.remove)(item)
        clock.now += 60
        question, fresh = dice.choice(CHANGES), what_if()
        assert asked(kept, world, question)["waiting"] == asked(fresh, world, question)["waiting"]
        assert pods_of(kept) == pods_of(fresh)


def pods_of(what_if: WhatIf) -> dict[str, set[tuple[str, str]]]:
    assert what_if._trial is not None
    cluster = what_if._trial.cluster
    return {str(name): {(each.uid, each.name) for each in cluster.pods_on(name)} for name in cluster.names if name is not None}


def test_a_copy_stands_for_some_seconds_while_its_cluster_goes_on_so_that_changes_can_be_compared(tmp_path: Path) -> None:
    clock = VirtualTime(0.0)
    one, world = WhatIf(REGISTRY, clock), world_of(tmp_path / "w", [a_node("a"), a_pod("web")])
    assert asked(one, world, {})["waiting"]["of"] == 1
    item = read_object(a_pod("next"), "test")
    assert isinstance(item, PodInfo)
    world.put(item)
    clock.now += 5
    assert asked(one, world, {})["waiting"]["of"] == 1
    clock.now += 6
    assert asked(one, world, {})["waiting"]["of"] == 2


def test_two_waiting_pods_do_not_get_one_device(tmp_path: Path) -> None:
    world = world_of(tmp_path / "w", [a_node("a")])
    for item in (device_class("gpu").build(), resource_slice("a").on("a").devices("gpu-0").build()):
        world.put(item)
    for name in ("one", "two"):
        world.put(resource_claim(name).request("gpu").build())
        world.put(made_pod(name).resource_claims(name).build())
    clock = VirtualTime(0.0)
    one = WhatIf(REGISTRY, clock)
    told = asked(one, world, {})
    assert told["waiting"]["fits"] == [2, 2], "each by itself"
    assert told["placing"]["before"]["placed"] == 1
    assert asked(one, world, {"preset": "bin-packing"})["placing"]["after"]["placed"] == 1, "the device was given back"
    world.put(resource_slice("a").on("a").devices("gpu-0", "gpu-1").build())
    clock.now += 60
    assert asked(one, world, {})["placing"]["before"]["placed"] == 2, "a changed object counts once the copy is made anew"


def test_a_group_gets_nodes_as_a_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(tmp_path / "w", [a_node("a", cpu=2)])
    world.put(pod_group("train", 3).build())
    for number in range(3):
        world.put(made_pod(f"train-{number}").requests(cpu="1").in_group("train").build())
    assert asked(what_if(), world, {})["placing"]["before"]["placed"] == 0
    item = read_object(a_node("b", cpu=1), "test")
    assert item is not None
    world.put(item)
    one = what_if()
    whole = asked(one, world, {})
    assert whole["placing"]["before"]["placed"] == 3
    state, question = state_of(one), {"preset": "bin-packing"}
    unraisable: list[object] = []
    monkeypatch.setattr("sys.unraisablehook", unraisable.append)
    for end in range(20):
        answer = one.answer("default", question)
        for _ in zip(range(end), answer, strict=False):
            pass
        answer.close()
        assert state_of(one) == state, "also where it is given up between two members"
        assert unraisable == []


def test_a_profile_that_cannot_be_used_is_told_and_the_change_that_mends_it_is_tried(tmp_path: Path) -> None:
    world = world_of(tmp_path / "w", [a_node("a"), a_pod("web")], weights={"Nobody": 3})
    told = asked(what_if(), world, {"weights": {"Nobody": None}})
    assert "spec.weights.Nobody" in told["basis"]["problem"]
    assert (told["waiting"]["fits"], told["waiting"]["comes"]) == ([0, 1], 1)
    assert (told["placing"]["before"]["placed"], told["placing"]["after"]["placed"]) == (0, 1)


def test_a_plugin_that_raises_is_told_and_the_other_parts_are_answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a plugin's own fault")

    world = world_of(tmp_path / "w", [a_node("a"), a_pod("web")])
    monkeypatch.setattr("placewright_lab.whatif.whatifanswer.placed", broken)
    told = asked(what_if(), world, {})
    assert "ZeroDivisionError" in told["placing"]["error"]
    assert told["waiting"]["fits"] == [1, 1]
    assert told["end"]["cut"] is False


def test_an_answer_ends_after_its_time_and_says_so(tmp_path: Path) -> None:
    clock = VirtualTime(0.0)

    def later() -> float:
        clock.now += MOST_SECONDS / 10
        return clock.now

    world = world_of(tmp_path / "w", [a_node("a"), *(a_pod(f"w{number}", cpu=1) for number in range(40))])
    told = asked(WhatIf(REGISTRY, later), world, {"preset": "spread"})
    assert told["end"]["cut"] is True
    assert 0 < told["waiting"]["tried"] < 40
    assert "placing" not in told


def test_a_younger_profile_of_a_schedulername_has_no_pods(tmp_path: Path) -> None:
    world = world_of(tmp_path / "w", [a_node("a"), a_pod("web"), claim_profile("another")])
    one = what_if()
    for name, claims, pods in (("another", True, 1), ("default", False, 0)):
        for _ in one.prepared(world):
            pass
        told = {line["part"]: line for line in one.answer(name, {}) if line is not None}
        assert (told["basis"]["claims"], told["waiting"]["of"]) == (claims, pods)


def test_what_is_known_of_a_profile_outlives_a_new_status_and_no_new_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, one, evaluations = world_of(tmp_path / "w", [a_node("a"), a_pod("web")]), what_if(), list[str]()

    def counted(evaluator: Evaluator, cluster: Cluster, pod: PodInfo, **more: Any) -> CurrentVerdict:
        evaluations.append(pod.name)
        return evaluated(evaluator, cluster, pod, **more)

    monkeypatch.setattr("placewright_lab.whatif.whatifanswer.evaluated", counted)
    (profile,) = world.profiles
    asked(one, world, {})
    assert evaluations == ["web"]
    world.set_profiles([replace(profile, status=ProfileStatus(active_generation=7))])
    asked(one, world, {})
    assert evaluations == ["web"]
    world.set_profiles([replace(profile, spec=replace(profile.spec, preset="spread"))])
    asked(one, world, {})
    assert evaluations == ["web", "web"]
