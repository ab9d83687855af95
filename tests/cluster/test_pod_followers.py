from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.podfollowers import PodFollower
from placewright.shadow.chooser import ShadowCluster
from placewright.testing import node, pod

READY: dict[str, Any] = {"conditions": [{"type": "Ready", "status": "True"}]}


class Hearing(PodFollower):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def pod_enters(self, pod: PodInfo, row: int | None) -> None:
        self.heard.append(("enters", pod.name, row))

    def pod_changes(self, old: PodInfo, new: PodInfo, row: int | None) -> None:
        self.heard.append(("changes", new.name, row))

    def pod_confirmed(self, pod: PodInfo, row: int | None) -> None:
        self.heard.append(("confirmed", pod.name, row))

    def pod_leaves(self, pod: PodInfo, row: int | None) -> None:
        self.heard.append(("leaves", pod.name, row))


class Deaf(Hearing):
    """Hears nothing of readiness."""

    follows_readiness = False


def with_nodes() -> Cluster:
    cluster = Cluster()
    for name in ("a", "b"):
        cluster.set_node(node(name).build())
    return cluster


def history(cluster: Cluster) -> None:
    """A pod is assumed, shown, becomes Ready, changes without counting otherwise, and goes."""
    waiting = pod("p").build()
    cluster.assume(waiting, NodeName("b"))
    cluster.set_pod(pod("p").on("b").build())
    cluster.set_pod(pod("p").on("b").status(**READY).build())
    cluster.set_pod(pod("p").on("b").status(**READY).annotations(seen="yes").build())
    with cluster.dry_run_on_row(remove=[pod("p").on("b").build()], row=1):
        pass
    cluster.remove_pod("uid-p")


def test_a_follower_hears_of_each_pod_that_comes_is_bound_becomes_ready_and_goes_and_of_no_other_change() -> None:
    cluster, follower = with_nodes(), Hearing()
    cluster.pod_followers.add(follower)
    history(cluster)
    assert follower.heard == [("enters", "p", 1), ("confirmed", "p", 1), ("changes", "p", 1), ("leaves", "p", 1)]


def test_a_pod_that_becomes_ready_is_a_change_of_its_row_only_while_the_cluster_has_a_follower_of_readiness() -> None:
    moved = []
    for follower in (None, Deaf(), Hearing()):
        cluster = with_nodes()
        if follower is not None:
            cluster.pod_followers.add(follower)
        cluster.set_pod(pod("p").on("a").build())
        position = cluster.pod_journal.position
        cluster.set_pod(pod("p").on("a").status(**READY).build())
        moved.append(cluster.pod_journal.position - position)
    assert moved == [0, 0, 1]


def test_a_follower_that_is_dropped_hears_nothing_more() -> None:
    cluster, follower = with_nodes(), Hearing()
    cluster.pod_followers.add(follower)
    cluster.pod_followers.drop(follower)
    history(cluster)
    assert (follower.heard, cluster.pod_followers.known) == ([], ())


def test_a_follower_that_raises_is_told_nothing_more_and_keeps_no_other_from_hearing(caplog: pytest.LogCaptureFixture) -> None:
    class Raising(Hearing):
        def pod_enters(self, pod: PodInfo, row: int | None) -> None:
            raise ValueError(f"no room for {pod.name}")

    cluster, raising, follower = with_nodes(), Raising(), Hearing()
    cluster.pod_followers.add(raising)
    cluster.pod_followers.add(follower)
    history(cluster)
    assert (raising.heard, len(follower.heard)) == ([], 4)
    (said,) = caplog.messages
    assert said == "a plugin or a shadow failed to follow the pods, and is told of no further changes"


def test_a_follower_hears_of_a_node_that_goes_by_row_and_name() -> None:
    class HearingOfNodes(Hearing):
        def row_ends(self, row: int, node: NodeName) -> None:
            self.heard.append(("ends", row, node))

    cluster, follower = with_nodes(), HearingOfNodes()
    cluster.pod_followers.add(follower)
    cluster.remove_node(NodeName("b"))
    assert follower.heard == [("ends", 1, "b")]


def test_an_extension_is_made_once_and_every_reader_gets_it() -> None:
    cluster, made = with_nodes(), list[Hearing]()

    def make() -> Hearing:
        made.append(Hearing())
        return made[-1]

    first = cluster.extension("Seats", make)
    assert (cluster.extension("Seats", make), made) == (first, [first])
    assert cluster.extension("Racks", make) is not first
    assert with_nodes().extension("Seats", make) is not first, "each cluster has its own"


def test_a_shadow_has_the_extensions_of_the_cluster_that_it_follows_whoever_asks_first() -> None:
    live = with_nodes()
    before = live.extension("before", Hearing)
    shadow = ShadowCluster(live).cluster
    assert shadow.extension("before", Hearing) is before
    assert shadow.extension("after", Hearing) is live.extension("after", Hearing)


def test_without_a_follower_no_pod_costs_a_call_more() -> None:
    cluster, calls = with_nodes(), list[str]()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.endswith(
            ("podfollowers.py", "nodestartrate.py", "podstart.py", "noderejections.py")
        ):
            calls.append(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        history(cluster)
    finally:
        sys.setprofile(None)
    assert calls == []
