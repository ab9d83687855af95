"""Nodes and pods come, change, move and go in any order; the columns say what stands where, and nothing is counted twice."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from placewright.api.objects import ContainerImage, NodeName
from placewright.api.pods import PodInfo
from placewright.api.quantity import QuantityError
from placewright.cluster.cluster import AssumeError, Cluster, PodOnNode
from placewright.testing import node, pod

A, B = NodeName("a"), NodeName("b")
PORT = {"containers": [{"resources": {"requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}]}]}


def cluster(*names: str) -> Cluster:
    found = Cluster()
    for name in names or ("a", "b"):
        found.set_node(node(name).build())
    return found


def standing(pod: PodInfo, where: str) -> PodInfo:
    return pod.on(NodeName(where))


def row_of(found: Cluster, name: str) -> int:
    row = found.row(NodeName(name))
    assert row is not None
    return row


def counted(found: Cluster, name: str) -> tuple[int, int, int]:
    """(pods, milli-CPU requested, milli-CPU for scoring) on a node."""
    row = row_of(found, name)
    return int(found.pod_count[row]), int(found.resources.column("cpu").requested[row]), int(found.scoring_cpu[row])


def snapshot(found: Cluster) -> dict[str, Any]:
    """Everything that placement could see, by node name."""
    view: dict[str, Any] = {}
    for one in found.nodes():
        name = one.metadata.name
        row = row_of(found, name)
        columns = {resource: found.resources.column(resource) for resource in found.resources.names()}
        amounts = {resource: (int(c.requested[row]), int(c.allocatable[row])) for resource, c in columns.items()}
        view[name] = (
            counted(found, name),
            {resource: pair for resource, pair in amounts.items() if any(pair)},
            int(found.scoring_memory[row]),
            bool(found.ports.free(pod("x", **PORT).build().host_ports, np.array([row]))[0]),
            sorted((sorted(key.labels), count[row]) for key in found.pairwise_counts if row in (count := found.pairwise_counts.rows(key))),
            sorted(p.uid for p in found.pods_on(NodeName(name))),
        )
    return view


# --- assume, forget, confirm ---------------------------------------------------------------------------------------------------


def test_an_assumed_pod_counts_at_once_and_a_forgotten_one_no_more() -> None:
    found, before = cluster(), snapshot(cluster())
    found.assume(pod("p", labels={"app": "x"}, cpu="1", **PORT).build(), A)
    assert counted(found, "a") == (1, 1000, 1000)
    assert found.assumed_count == 1
    found.forget(pod("p").build(), A)
    assert snapshot(found) == before
    assert (found.assumed_count, found.pod_count_total, found.placement("uid-p")) == (0, 0, None)


def test_confirming_an_assumed_pod_changes_no_column() -> None:
    found = cluster()
    found.assume(pod("p", cpu="1").build(), A)
    journal, before = found.pod_journal.position, snapshot(found)
    known = found.set_pod(standing(pod("p", cpu="1").build(), "a"))
    assert known is not None
    assert (known.assumed, found.assumed_count) == (True, 0)
    assert snapshot(found) == before
    assert found.pod_journal.position == journal
    with pytest.raises(AssumeError, match="confirmed on node a, not assumed on a"):
        found.forget(pod("p").build(), A)


def test_a_pod_confirmed_on_another_node_moves_there() -> None:
    found = cluster()
    found.assume(pod("p", cpu="1").build(), A)
    found.set_pod(standing(pod("p", cpu="1").build(), "b"))
    assert counted(found, "a") == (0, 0, 0)
    assert counted(found, "b") == (1, 1000, 1000)
    assert found.placement("uid-p") == PodOnNode(next(iter(found.pods_on(B))), B, assumed=False)


def test_a_pod_is_assumed_once() -> None:
    found = cluster()
    found.assume(pod("p").build(), A)
    with pytest.raises(AssumeError, match="pod default/p is already on node a"):
        found.assume(pod("p").build(), B)
    assert counted(found, "b") == (0, 0, 0)


def test_forgetting_is_only_for_what_is_assumed_there() -> None:
    found = cluster()
    found.forget(pod("unknown").build(), A)
    found.assume(pod("p").build(), A)
    with pytest.raises(AssumeError, match="assumed on node a, not assumed on b"):
        found.forget(pod("p").build(), B)
    assert counted(found, "a")[0] == 1


def test_a_changed_request_replaces_the_old_one() -> None:
    found = cluster()
    found.set_pod(standing(pod("p", cpu="1").build(), "a"))
    journal = found.pod_journal.position
    found.set_pod(standing(pod("p", cpu="500m").build(), "a"))
    assert counted(found, "a") == (1, 500, 500)
    assert found.pod_journal.since(journal)


@pytest.mark.parametrize(
    "changed",
    [
        pod("p", cpu="2").build(),
        pod("p", labels={"a": "b"}, cpu="1").build(),
        pod("p", **PORT).build(),
        pod("p", cpu="1", overhead={"memory": "1"}).build(),
    ],
)
def test_a_change_that_a_column_shows_is_journalled(changed: PodInfo) -> None:
    found = cluster()
    found.set_pod(standing(pod("p", cpu="1").build(), "a"))
    journal = found.pod_journal.position
    found.set_pod(standing(changed, "a"))
    assert found.pod_journal.since(journal)
    found.remove_pod("uid-p")
    assert snapshot(found) == snapshot(cluster())


def test_a_change_that_no_column_shows_is_kept_and_not_journalled() -> None:
    found = cluster()
    found.set_pod(standing(pod("p", cpu="1").build(), "a"))
    journal = found.pod_journal.position
    found.set_pod(standing(pod("p", cpu="1", priority=9).build(), "a"))
    assert found.pod_journal.position == journal
    assert next(iter(found.pods_on(A))).priority == 9
    assert found.lowest_priority == 9


def test_removing_tells_where_the_pod_stood_and_a_stranger_is_no_error() -> None:
    found = cluster()
    found.assume(pod("p").build(), A)
    known = found.remove_pod("uid-p")
    assert known is not None
    assert known.node == "a"
    assert found.remove_pod("uid-p") is None
    assert found.assumed_count == 0


def test_the_lowest_priority_is_that_of_the_pods_that_are_left() -> None:
    found = cluster()
    assert found.lowest_priority is None
    for name, priority in (("p", 5), ("q", -3), ("r", -3)):
        found.assume(pod(name, priority=priority).build(), A)
    found.remove_pod("uid-q")
    assert found.lowest_priority == -3
    found.remove_pod("uid-r")
    assert found.lowest_priority == 5
    found.remove_pod("uid-p")
    assert found.lowest_priority is None


# --- nodes -------------------------------------------------------------------------------------------------------------------


def test_pods_of_a_node_that_nobody_has_shown_yet_are_counted_when_it_comes() -> None:
    found = cluster("a")
    found.set_pod(standing(pod("p", cpu="1").build(), "late"))
    assert [p.name for p in found.pods_on(NodeName("late"))] == ["p"]
    found.set_node(node("late").build())
    assert counted(found, "late") == (1, 1000, 1000)


def test_pods_outlive_their_node_and_are_counted_again_when_it_returns() -> None:
    found = cluster()
    found.set_pod(standing(pod("p", cpu="1").build(), "a"))
    found.set_pod(standing(pod("q", cpu="1").build(), "a"))
    assert found.remove_node(A) is not None
    assert found.node_count == 1
    found.remove_pod("uid-q")
    found.set_node(node("a").build())
    assert counted(found, "a") == (1, 1000, 1000)


def test_a_row_is_used_again_and_shows_nothing_of_the_node_before() -> None:
    found, images = Cluster(), (ContainerImage(names=("img",), size_bytes=1),)
    tainted = (
        node("old", labels={"zone": "z"}, spec={"taints": [{"key": "k", "effect": "NoSchedule"}]}, **{"vendor.com/gpu": "4"})
        .cordoned()
        .build()
    )
    found.set_node(msgspec.structs.replace(tainted, status=msgspec.structs.replace(tainted.status, images=images)))
    assert found.images.get("img") is not None
    found.label("zone")
    found.set_pod(standing(pod("p", cpu="1", **PORT).build(), "old"))
    found.remove_node(NodeName("old"))
    assert found.names == [None]
    assert not found.present.any()
    assert found.images.get("img") is None
    found.set_node(node("new").build())
    assert row_of(found, "new") == 0
    assert found.label("zone").get(0) is None
    assert found.taints.get(0) == ()
    assert not found.unschedulable[0]
    assert found.resources.column("vendor.com/gpu").allocatable[0] == 0
    fresh = Cluster()
    fresh.set_node(node("new").build())
    assert snapshot(found) == snapshot(fresh)


def test_a_free_row_has_no_node() -> None:
    found = cluster()
    found.remove_node(A)
    with pytest.raises(KeyError):
        found.node(0)
    assert found.row(A) is None
    assert found.remove_node(A) is None
    assert list(found.rows()) == [1]
    assert [one.metadata.name for one in found.nodes()] == ["b"]


def test_columns_grow_with_the_nodes_and_keep_what_they_say() -> None:
    found = Cluster()
    found.label("zone")
    for number in range(200):
        found.set_node(
            node(f"n{number}", labels={"zone": str(number % 3)}, spec={"unschedulable": number % 2 == 0}, cpu=str(number)).build()
        )
        found.assume(pod(f"p{number}", cpu="1", **PORT).build(), NodeName(f"n{number}"))
    assert found.size == found.node_count == 200
    assert list(found.resources.column("cpu").allocatable[:200]) == [1000 * number for number in range(200)]
    assert list(found.unschedulable[:4]) == [True, False, True, False]
    assert [found.label("zone").get(row) for row in range(4)] == ["0", "1", "2", "0"]
    assert (found.pod_count == 1).all()
    assert not found.ports.free(pod("x", **PORT).build().host_ports, found.rows()).any()


def test_a_node_with_a_bad_quantity_changes_nothing() -> None:
    found = cluster()
    before, journal = snapshot(found), found.node_journal.position
    with pytest.raises(QuantityError):
        found.set_node(node("a", cpu="plenty").build())
    with pytest.raises(QuantityError):
        found.set_node(node("new", memory="plenty").build())
    assert snapshot(found) == before
    assert found.node_journal.position == journal
    assert (found.node_count, found.size) == (2, 2)


def test_a_resource_that_a_node_no_longer_offers_is_gone() -> None:
    found = cluster()
    found.set_node(node("a", **{"vendor.com/gpu": "4"}).build())
    found.set_node(node("a").build())
    assert found.resources.column("vendor.com/gpu").allocatable[0] == 0
    assert found.resources.column("never-seen").allocatable[0] == 0


def test_a_label_column_made_late_knows_the_nodes_made_early() -> None:
    found = Cluster()
    found.set_node(node("a", labels={"zone": "z1"}).build())
    column = found.label("zone")
    assert column.get(0) == "z1"
    found.set_node(node("a", labels={"zone": "z2"}).build())
    assert column.get(0) == "z2"
    assert found.label("zone") is column


# --- what if ------------------------------------------------------------------------------------------------------------------


def test_what_is_only_supposed_shows_everywhere_and_is_undone_also_after_an_error() -> None:
    found = cluster()
    here, new = pod("here", labels={"app": "x"}, cpu="1", **PORT).build(), pod("new", cpu="2").build()
    found.assume(here, A)
    before, journal = snapshot(found), found.pod_journal.position

    def look_and_break() -> None:
        with found.dry_run_on_row(add=[new], remove=[here], row=0):
            assert counted(found, "a") == (1, 2000, 2000)
            assert [p.name for p in found.pods_on(A)] == ["new"]
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        look_and_break()
    assert snapshot(found) == before
    assert found.pod_journal.position == journal
    assert found.placement("uid-new") is None


def test_suppositions_nest_and_may_take_back_what_an_outer_one_took_away() -> None:
    found = cluster()
    one, two = pod("one", cpu="1").build(), pod("two", cpu="1").build()
    found.assume(one, A)
    found.assume(two, A)
    before = snapshot(found)
    with found.dry_run_on_row(remove=[one, two], row=0):
        assert list(found.pods_on(A)) == []
        with found.dry_run_on_row(add=[two], row=0):
            assert [p.name for p in found.pods_on(A)] == ["two"]
            assert counted(found, "a")[0] == 1
        assert list(found.pods_on(A)) == []
    assert snapshot(found) == before
    assert [p.name for p in found.pods_on(A)] == ["one", "two"]


@pytest.mark.parametrize("times", [1, 2])
def test_many_pods_supposed_together_count_as_each_of_them_does_and_all_are_forgotten(times: int) -> None:
    one_by_one, together = cluster(), cluster()
    pods = [pod(f"p{i}", labels={"app": str(i % 3)}, cpu=f"{i + 1}m", **(PORT if i % 4 else {})).build() for i in range(40)]
    moves = [(i % 2, each) for i, each in enumerate(pods)]
    before = snapshot(together)
    with together.dry_run() as dry_run, one_by_one.dry_run() as alone:
        for _ in range(times):
            dry_run.add(moves)
            for move in moves:
                alone.add([move])
        assert snapshot(together) == snapshot(one_by_one)
        dry_run.remove(moves[:20])
    assert snapshot(together) == before
    assert list(together.pods_on(A)) == []
