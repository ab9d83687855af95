"""The plugins in the tree do the same under any other names: nothing around them knows them by name, or as ours.

They are registered as subclasses from here, which the framework guards as it guards plugins of other packages. Each answer has to be that
of the plugins in the tree, but for the names in it.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any, Final

import msgspec
import pytest
from hints.rows import Row
from hints.test_hint_table import ROWS
from hints.waiting_room import WaitingRoom

import placewright_lab.readers.goldencases
from explain.test_nearest_miss import ZONE, a_node, a_pod, affinity_terms
from framework.makers import Scene
from placewright.api.profile import default_profile
from placewright.explain.explanation import evaluated
from placewright.framework.interface import Plugin
from placewright.framework.registry import Registry
from placewright.framework.runtime import guard
from placewright.framework.runtime.handle import ProfileHandle
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.offline.world import offline_evaluator, world_from
from placewright.plugins.catalog import in_tree
from placewright.plugins.nodestartrate import NodeStartRate
from placewright.plugins.prioritysort import PrioritySort
from placewright.profiles.resolve import resolve
from placewright.testing import World, profile, random_node_maker, random_pod_maker
from placewright.testing import node as node_maker
from placewright.testing import pod as pod_maker
from placewright_lab.readers.goldencases import answer
from randomcases import cases, some
from vectors.golden import Golden, golden_cases

#: Put before every name, so that lists of names sort as before.
ACME: Final = "Acme"


def renamed(kind: type[Plugin]) -> type[Plugin]:
    return type(kind)(f"{ACME}{kind.__name__}", (kind,), {"name": f"{ACME}{kind.name}", "__module__": __name__})


OTHERS: Final = Registry(renamed(kind) for kind in in_tree().values())


def under_other_names(profile: ResolvedProfile) -> ResolvedProfile:
    return replace(
        profile,
        points={point: tuple(f"{ACME}{name}" for name in names) for point, names in profile.points.items()},
        weights={f"{ACME}{name}": weight for name, weight in profile.weights.items()},
        args={f"{ACME}{name}": args for name, args in profile.args.items()},
    )


def without_names(found: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(found).replace(ACME.encode(), b""))


# --- decisions and messages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("golden", some(golden_cases()), ids=lambda golden: golden.id)
def test_golden_cases_are_answered_alike(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    case = golden.read()
    ours = answer(case, in_tree())
    monkeypatch.setattr(
        placewright_lab.readers.goldencases, "resolve", lambda profile, _registry: under_other_names(resolve(profile, in_tree()))
    )
    theirs = answer(case, OTHERS)
    assert without_names(theirs) == without_names(ours)


# --- histories ------------------------------------------------------------------------------------------------------------------------


def told_in(seed: int) -> list[Any]:
    """What a scheduler does and says in a random history, in order."""
    dice = random.Random(seed)
    world = World(
        nodes=[random_node_maker(dice) for _ in range(4)], profile=profile().enable(NodeStartRate).args(NodeStartRate, maxStarting=2)
    )
    for number in range(12):
        maker = random_pod_maker(dice).metadata(name=f"p{number}").uid(f"p{number}").priority(dice.choice([0, 0, 10, 100]))
        world.add(maker if dice.random() < 0.8 else maker.gates("wait"))
        if dice.random() < 0.3:
            world.advance(dice.choice([1.0, 10.0, 100.0]))
    attempts = [(each.pod.key, each.failure and each.failure.message) for each in world.log.attempts]
    return [attempts, world.log.entered, world.events.recorded, world.status.written, world.binder.bound, world.evictor.evicted]


def test_a_history_is_the_same_whether_or_not_the_calls_of_our_plugins_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = 0
    for seed in range(cases(20)):
        with monkeypatch.context() as patched:
            patched.setattr(guard, "is_ours", lambda _plugin: False)
            guarded = told_in(seed)
        expected = told_in(seed)
        assert guarded == expected
        seen += len(expected[0])
    assert seen > cases(20)


@pytest.mark.parametrize("ours", [True, False])
def test_a_sort_key_that_raises_comes_last_whoever_wrote_the_plugin(ours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def sort_key(self: Any, pod: Any, timestamp: float) -> tuple[float, ...]:
        return (1 // (pod.priority - 5), timestamp)

    monkeypatch.setattr(guard, "is_ours", lambda _plugin: ours)
    monkeypatch.setattr(PrioritySort, "sort_key", sort_key)
    world = World(nodes=[node_maker("a")])
    world.add(pod_maker("fails").priority(5), pod_maker("last").priority(5), pod_maker("first").priority(9))
    assert [each.pod.name for each in world.log.attempts] == ["first", "fails", "last"]
    assert world.profiles["default-scheduler"].runtime.failures.counts == {("PrioritySort", "QueueSort"): 2}


# --- remedies -------------------------------------------------------------------------------------------------------------------------


def random_world(seed: int) -> list[dict[str, Any]]:
    """A few nodes that each want something else, pods on them, and the pod `p`."""
    rng = random.Random(seed)
    taints = [[], [], [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}], [{"key": "old", "effect": "NoExecute"}]]
    objects = [
        a_node(
            f"n-{i}", cpu=rng.choice([200, 1000, 4000]), pods=rng.choice([1, 2, 10]), taints=rng.choice(taints),
            cordoned=rng.random() < 0.4, zone=rng.choice(["z0", "z1"]), disk=rng.choice(["ssd", "hdd"]),
        )
        for i in range(4)
    ]  # fmt: skip
    near = {"podAffinity": affinity_terms(ZONE, "a")}, {"podAntiAffinity": affinity_terms(ZONE, "a")}, {}
    for i in range(rng.randrange(6)):
        labels, port = {"app": rng.choice("ab")}, rng.choice([0, 80])
        objects.append(a_pod(f"x-{i}", f"n-{rng.randrange(4)}", cpu=300, port=port, labels=labels, affinity=rng.choice(near)))
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "a"}}}
    wishes = rng.choice([{"nodeSelector": {"disk": "ssd"}}, {"topologySpreadConstraints": [spread]}, {"affinity": rng.choice(near)}])
    cpu, port = rng.choice([100, 900, 5000]), rng.choice([0, 80])
    return [*objects, a_pod("p", cpu=cpu, port=port, labels={"app": "a"}, **wishes)]


def test_what_would_let_a_pod_in_is_told_alike() -> None:
    ours = resolve(default_profile(), in_tree())
    kinds = set()
    for seed in range(cases(150)):
        world = world_from(random_world(seed), "test")
        waiting = world.pending["default/p"]
        expected = evaluated(offline_evaluator(ours, in_tree(), world.cluster), world.cluster, waiting)
        found = evaluated(offline_evaluator(under_other_names(ours), OTHERS, world.cluster), world.cluster, waiting)
        assert without_names(found) == without_names(expected)
        kinds |= {change.kind.value for miss in found.misses for change in miss.changes}
    assert kinds >= {"more-resources", "fewer-pods", "toleration", "uncordon", "labels", "remove-pods", "max-skew", "add-pod"}


# --- wake-ups -------------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def _others_in_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    build = ProfileHandle.evaluator
    monkeypatch.setattr(ProfileHandle, "evaluator", lambda handle, profile, _registry: build(handle, under_other_names(profile), OTHERS))


@pytest.mark.usefixtures("_others_in_the_room")
@pytest.mark.parametrize("row", some(ROWS), ids=str)
def test_the_same_events_wake_rejected_pods(row: Row) -> None:
    room = WaitingRoom(row.of)
    room.reject(row.rejected, f"{ACME}{row.plugin}")
    room.happens(row)
    assert room.tried_again(row.rejected) is row.wakes


@pytest.mark.usefixtures("_others_in_the_room")
def test_groups_are_decided_as_one_under_a_plugin_of_another_name() -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "GangScheduling"}]}}
    runtime = Scene(spec={"plugins": plugins}).evaluator().runtime
    assert runtime.pod_groups is not None
    assert runtime.pod_groups.name == f"{ACME}GangScheduling"
    assert runtime.run_pre_enqueue(pod_maker("p").build()).ok
