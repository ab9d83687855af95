from __future__ import annotations

import gc
import random
from datetime import UTC, datetime
from typing import Any

from placewright.api.objects import NodeName
from placewright.api.podstart import MIRROR
from placewright.cluster.cluster import Cluster
from placewright.plugins.nodestartrate import StartingPods
from placewright.testing import node, pod
from placewright.testing.pods import PodMaker

OURS = "default-scheduler"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
NOW = 1_800_000_000.0


def stamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def bound(moment: float) -> dict[str, Any]:
    return {"conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(moment)}]}


class Scene:
    """A cluster of two nodes, and its starting pods; a pod starts for 300 seconds at most."""

    def __init__(self) -> None:
        self.now = NOW
        self.cluster = Cluster()
        for name in ("a", "b"):
            self.cluster.set_node(node(name).build())
        self.starting = StartingPods(self.cluster, 300.0, lambda: self.now)

    def shown(self, maker: PodMaker) -> None:
        self.cluster.set_pod(maker.build())

    def counts(self) -> dict[str, int]:
        self.starting.expire()
        counts = self.starting.on_rows(OURS)
        return {str(name): int(counts[row]) for row, name in enumerate(self.cluster.names) if name is not None and counts[row]}


def test_a_pod_counts_from_its_assumption_until_it_is_ready() -> None:
    scene = Scene()
    assert scene.counts() == {}
    waiting = pod("p").build()
    scene.cluster.assume(waiting, NodeName("a"))
    assert scene.counts() == {"a": 1}
    scene.shown(pod("p").on("a"))
    assert scene.counts() == {"a": 1}, "confirmed, and counted once"
    scene.shown(pod("p").on("a").status(**READY))
    assert scene.counts() == {}


def test_a_pod_whose_binding_fails_or_that_ends_counts_no_longer() -> None:
    scene = Scene()
    scene.counts()
    waiting = pod("p").build()
    scene.cluster.assume(waiting, NodeName("a"))
    scene.cluster.forget(waiting, NodeName("a"))
    assert scene.counts() == {}
    scene.shown(pod("q").on("b"))
    scene.cluster.remove_pod("uid-q")
    assert scene.counts() == {}


def test_pods_that_stood_there_before_the_first_question_count_by_the_time_of_their_binding() -> None:
    scene = Scene()
    scene.shown(pod("long").on("a").status(**bound(NOW - 400)))
    scene.shown(pod("short").on("a").status(**bound(NOW - 100)))
    scene.shown(pod("ready").on("a").status(**READY))
    assert scene.counts() == {"a": 1}
    scene.now = NOW + 199
    assert scene.counts() == {"a": 1}
    scene.now = NOW + 200
    assert scene.counts() == {}


def test_pods_of_other_schedulers_mirror_pods_and_pods_that_are_being_deleted_do_not_count() -> None:
    scene = Scene()
    scene.counts()
    scene.shown(pod("other").scheduler("other").on("a"))
    scene.shown(pod("mirror").annotations({MIRROR: "x"}).on("a"))
    scene.shown(pod("going").on("a").deleting())
    assert scene.counts() == {}
    scene.shown(pod("soon").on("a"))
    scene.shown(pod("soon").on("a").deleting())
    assert scene.counts() == {}


def test_a_pod_that_never_becomes_ready_counts_for_its_time_and_its_row_is_journalled_then() -> None:
    scene = Scene()
    scene.counts()
    scene.shown(pod("p").on("a"))
    position = scene.cluster.pod_journal.position
    scene.now = NOW + 299
    assert (scene.counts(), scene.starting.next_end()) == ({"a": 1}, NOW + 300)
    assert scene.cluster.pod_journal.position == position
    scene.now = NOW + 300
    assert (scene.counts(), scene.starting.next_end()) == ({}, None)
    assert scene.cluster.pod_journal.since(position) == [scene.cluster.row(NodeName("a"))]


def test_nothing_expires_within_a_dry_run_and_its_undoing_restores_the_counts() -> None:
    scene = Scene()
    scene.counts()
    scene.shown(pod("p").on("a"))
    row = scene.cluster.row(NodeName("a"))
    assert row is not None
    with scene.cluster.dry_run() as dry_run:
        dry_run.remove([(row, pod("p").on("a").build())])
        assert scene.counts() == {}
        dry_run.add([(row, pod("q").build()), (row, pod("r").scheduler("other").build())])
        assert scene.counts() == {"a": 1}, "a pod that stands nowhere would start where it is put"
        scene.now = NOW + 400
        scene.starting.expire()
    assert scene.starting.on_rows(OURS)[row] == 1
    assert scene.counts() == {}


def test_a_node_that_goes_and_comes_again_has_its_starting_pods_again() -> None:
    scene = Scene()
    scene.counts()
    scene.shown(pod("p").on("a"))
    scene.cluster.remove_node(NodeName("a"))
    assert scene.counts() == {}
    scene.cluster.set_node(node("c").build())
    assert scene.counts() == {}, "the row of the node that went"
    scene.cluster.set_node(node("a").build())
    assert scene.counts() == {"a": 1}


def test_the_cluster_lets_go_of_a_follower_that_is_held_by_nothing_else() -> None:
    scene = Scene()
    assert len(scene.cluster.pod_followers.known) == 1
    del scene.starting
    gc.collect()
    assert scene.cluster.pod_followers.known == ()


def test_pods_that_became_ready_leave_nothing_behind() -> None:
    scene = Scene()
    scene.counts()
    for number in range(10_000):
        scene.shown(pod(f"p{number}").on("a"))
        scene.shown(pod(f"p{number}").on("a").status(**READY))
        scene.cluster.remove_pod(f"uid-p{number}")
    assert len(scene.starting._ends) < 200
    assert not scene.starting._since


class Plain:
    """Who is starting where, told pod by pod: (node, when it was bound, whether it may be starting)."""

    def __init__(self) -> None:
        self.pods: dict[str, tuple[str, float, bool]] = {}

    def counts(self, now: float, nodes: set[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, since, may in self.pods.values():
            if may and name in nodes and since + 300.0 > now:
                found[name] = found.get(name, 0) + 1
        return found


def test_the_counts_agree_with_a_plain_list_on_random_histories() -> None:
    for seed in range(12):
        dice = random.Random(seed)
        scene, plain, nodes = Scene(), Plain(), {"a", "b"}
        scene.counts()
        for step in range(400):
            _happens(dice, scene, plain, nodes, step)
            assert scene.counts() == plain.counts(scene.now, nodes), (seed, step)


def _happens(dice: random.Random, scene: Scene, plain: Plain, nodes: set[str], step: int) -> None:
    what, uid = dice.random(), dice.choice([*plain.pods, ""])
    if what < 0.35:
        name = dice.choice("abc")
        scene.shown(pod(f"p{step}").on(name))
        plain.pods[f"uid-p{step}"] = (name, scene.now, True)
    elif what < 0.6 and uid:
        name, since, _ = plain.pods[uid]
        ready = dice.random() < 0.7
        conditions = bound(since)["conditions"] + (READY["conditions"] if ready else [])
        scene.shown(pod(uid.removeprefix("uid-")).on(name).status(conditions=conditions))
        plain.pods[uid] = (name, since, not ready)
    elif what < 0.7 and uid:
        scene.cluster.remove_pod(uid)
        del plain.pods[uid]
    elif what < 0.9:
        scene.now += dice.choice((1.0, 20.0, 150.0))
    else:
        name = dice.choice("abc")
        if name in nodes:
            scene.cluster.remove_node(NodeName(name))
            nodes.remove(name)
        else:
            scene.cluster.set_node(node(name).build())
            nodes.add(name)
