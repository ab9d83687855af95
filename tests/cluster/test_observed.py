"""What a listener hears of a cluster: each change of the columns once, after it was made, in order, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.makers import NODES, Mirror, a_node, a_pod, filled
from placewright.api.objects import NodeName
from placewright.cluster.cluster import AssumeError, Cluster

A, B, _ = NODES


def observed(*nodes: str) -> tuple[Cluster, Mirror]:
    found = filled(Cluster(), *nodes or ("a", "b"))
    mirror = Mirror(found)
    found.report_to(mirror)
    for each in found.nodes():
        mirror.kept.set_node(each)
    return found, mirror


def test_nodes_are_told_with_what_they_are_now_and_a_stranger_that_goes_by_its_name() -> None:
    found, mirror = observed()
    old = found.set_node(a_node("a", cpu="8"))
    assert old is not None and old.status.allocatable != found.node(0).status.allocatable
    found.set_node(a_node("new"))
    assert found.remove_node(A) is not None
    assert found.remove_node(NodeName("stranger")) is None
    assert mirror.take_heard() == [("node set", "a"), ("node set", "new"), ("node removed", "a"), ("node removed", "stranger")]
    assert [each.metadata.name for each in mirror.kept.nodes()] == ["b", "new"]


def test_a_pod_is_told_when_it_comes_and_when_it_leaves_and_not_when_it_is_confirmed() -> None:
    found, mirror = observed()
    found.assume(a_pod("p").requests(cpu="1").build(), A)
    assert mirror.take_heard() == [("stands", "p")]
    found.set_pod(a_pod("p").requests(cpu="1").on("a").build())
    found.set_pod(a_pod("p").requests(cpu="1").priority(9).on("a").build())
    assert mirror.take_heard() == []
    assert found.remove_pod("p") is not None
    assert found.remove_pod("p") is None
    assert mirror.take_heard() == [("left", "p")]


@pytest.mark.parametrize(
    "changed",
    [
        a_pod("p").requests(cpu="2"),
        a_pod("p").labels(a="b"),
        a_pod("p").deleting(),
        a_pod("p").host_port(80),
        a_pod("p").volume_claims("c"),
    ],
)
def test_a_pod_that_counts_otherwise_now_is_told_to_stand_again(changed: Any) -> None:
    found, mirror = observed()
    found.set_pod(a_pod("p").on("a").build())
    mirror.take_heard()
    found.set_pod(changed.on("a").build())
    assert mirror.take_heard() == [("stands", "p")]
    assert next(iter(mirror.kept.pods_on(A))).pairwise_key == changed.build().pairwise_key


def test_a_pod_found_on_another_node_left_first() -> None:
    found, mirror = observed()
    found.assume(a_pod("p").build(), A)
    found.set_pod(a_pod("p").on("b").build())
    assert mirror.take_heard() == [("stands", "p"), ("left", "p"), ("stands", "p")]
    assert [each.uid for each in mirror.kept.pods_on(B)] == ["p"]


def test_a_forgotten_pod_left_and_what_failed_is_not_told() -> None:
    found, mirror = observed()
    found.assume(a_pod("p").build(), A)
    mirror.take_heard()
    with pytest.raises(AssumeError):
        found.assume(a_pod("p").build(), B)
    with pytest.raises(AssumeError):
        found.forget(a_pod("p").build(), B)
    found.forget(a_pod("stranger").build(), A)
    assert mirror.take_heard() == []
    found.forget(a_pod("p").build(), A)
    assert mirror.take_heard() == [("left", "p")]


def test_pods_on_nodes_that_nobody_has_shown_are_told_as_well() -> None:
    found, mirror = observed("a")
    found.set_pod(a_pod("p").on("late").build())
    found.set_node(a_node("late"))
    assert mirror.take_heard() == [("stands", "p"), ("node set", "late")]
    assert int(mirror.kept.pod_count[1]) == 1


def test_trials_annotations_and_words_to_leave_change_no_column_and_are_not_told() -> None:
    found, mirror = observed()
    found.assume(a_pod("p").build(), A)
    mirror.take_heard()
    with found.dry_run_on_row(add=[a_pod("new").build()], remove=[a_pod("p").build()], row=0), found.dry_run(journalled=True) as dry_run:
        dry_run.add([(1, a_pod("other").build())])
    found.annotate("p", {"x": "1"})
    found.told_to_leave("p")
    found.stays_after_all("p")
    assert mirror.take_heard() == []


def test_a_change_is_told_after_it_was_made() -> None:
    found, seen = Cluster(), list[tuple[str, int, int]]()

    class Looking(Mirror):
        """Looks at the cluster whenever it hears something."""

        def take(self, what: str) -> None:
            seen.append((what, found.node_count, found.pod_count_total))

        def node_set(self, node: Any) -> None:
            self.take("node set")

        def node_removed(self, name: NodeName) -> None:
            self.take("node removed")

        def pod_stands(self, pod: Any, node: NodeName) -> None:
            self.take("stands")

        def pod_left(self, uid: str) -> None:
            self.take("left")

    found.report_to(Looking(found))
    found.set_node(a_node("a"))
    found.set_pod(a_pod("p").on("a").build())
    found.remove_pod("p")
    found.remove_node(A)
    assert seen == [("node set", 1, 0), ("stands", 1, 1), ("left", 1, 0), ("node removed", 0, 0)]


def test_without_a_listener_it_is_a_cluster_like_any_other() -> None:
    found = filled(Cluster(), "a")
    assert found._listener is None
    found.assume(a_pod("p").build(), A)
    found.set_pod(a_pod("p").requests(cpu="1").on("a").build())
    found.remove_pod("p")
    found.remove_node(A)
    assert (found.node_count, found.pod_count_total) == (0, 0)
