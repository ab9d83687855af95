"""Pods that we placed and nobody has confirmed: taken back, confirmed, lost, and who among namesakes is the older one."""

from __future__ import annotations

import itertools

import pytest

from cluster.makers import NODES, PodMaker, a_node, a_pod, cluster, placed, plain_node
from placewright.api.objects import NodeName
from placewright.cluster.cluster import AssumeError, Cluster, PodOnNode

A, B, C = NODES


def rows_since(found: Cluster, position: int) -> list[int]:
    return list(found.pod_journal.since(position) or ())


# --- assume, confirm, forget ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", list(itertools.permutations(["confirm", "forget", "remove"])))
def test_whatever_comes_first_of_confirmation_forgetting_and_deletion_nothing_is_counted_twice(order: tuple[str, ...]) -> None:
    found, counts = cluster(), []
    found.assume(a_pod("p").requests(cpu="1").build(), A)
    for act in order:
        if act == "confirm":
            found.set_pod(a_pod("p").requests(cpu="1").on("a").build())
        elif act == "remove":
            found.remove_pod("p")
        else:
            placement = found.placement("p")
            if placement is None or placement.assumed:
                found.forget(a_pod("p").build(), A)
            else:
                with pytest.raises(AssumeError, match=r"^pod default/p is confirmed on node a, not assumed on a$"):
                    found.forget(a_pod("p").build(), A)
        counts.append((int(found.pod_count[0]), int(found.resources.column("cpu").requested[0]), found.assumed_count))
    stands = order.index("confirm") > order.index("remove")
    assert counts[-1] == ((1, 1000, 0) if stands else (0, 0, 0))
    assert all(each in ((0, 0, 0), (1, 1000, 0), (1, 1000, 1)) for each in counts)
    assert found.pod_count_total == int(stands)


def test_what_cannot_be_assumed_or_forgotten_is_told_with_both_nodes_and_changes_nothing() -> None:
    found = cluster()
    found.assume(a_pod("p").build(), A)
    for again in (A, B):
        with pytest.raises(AssumeError, match=r"^pod default/p is already on node a$"):
            found.assume(a_pod("p").build(), again)
    with pytest.raises(AssumeError, match=r"^pod default/p is assumed on node a, not assumed on b$"):
        found.forget(a_pod("p").build(), B)
    found.set_pod(a_pod("p").on("a").build())
    with pytest.raises(AssumeError, match=r"^pod default/p is confirmed on node a, not assumed on b$"):
        found.forget(a_pod("p").build(), B)
    with pytest.raises(AssumeError, match=r"^pod default/p is already on node a$"):
        found.assume(a_pod("p").build(), A)
    assert (placed(found), list(found.pod_count)) == ({"p": PodOnNode(*placed(found)["p"][:2], assumed=False)}, [1, 0])


def test_forgetting_twice_is_forgetting_once() -> None:
    found = cluster()
    found.assume(a_pod("p").build(), A)
    found.forget(a_pod("p").build(), A)
    position = found.pod_journal.position
    found.forget(a_pod("p").build(), A)
    assert (found.pod_count_total, found.assumed_count, found.pod_journal.position) == (0, 0, position)


def test_a_pod_may_be_assumed_where_no_node_is_shown_and_counts_once_it_is() -> None:
    found = cluster("a")
    found.assume(a_pod("p").requests(cpu="1").build(), C)
    assert (found.assumed_count, list(found.pod_count), found.pod_journal.position) == (1, [0], 0)
    found.annotate("p", {"x": "1"})
    found.set_node(a_node("c"))
    assert list(found.pod_count) == [0, 1]
    found.remove_node(C)
    found.set_pod(a_pod("p").requests(cpu="2").on("c").build())
    found.set_node(a_node("c"))
    assert (list(found.pod_count), int(found.resources.column("cpu").requested[1])) == ([0, 1], 2000)


def test_confirmed_elsewhere_both_rows_are_journalled_and_the_pod_that_was_known_is_told() -> None:
    found = cluster()
    assumed = a_pod("p").build()
    found.assume(assumed, A)
    position = found.pod_journal.position
    assert found.set_pod(a_pod("p").on("b").build()) == PodOnNode(assumed, A, assumed=True)
    assert rows_since(found, position) == [0, 1]
    known = found.set_pod(a_pod("p").on("b").build())
    assert known is not None and (known.node, known.assumed) == (B, False)
    assert found.set_pod(a_pod("new").on("b").build()) is None
    assert rows_since(found, position) == [0, 1, 1]


def test_setting_a_node_tells_what_was_known_of_it_and_journals_its_row() -> None:
    found = cluster("a")
    position = found.node_journal.position
    first, second = a_node("b"), a_node("b", cpu="8")
    assert found.set_node(first) is None
    assert found.set_node(second) is first
    assert found.remove_node(B) is second
    assert found.remove_node(B) is None
    assert found.node_journal.since(position) == [1, 1, 1]
    found.set_node(a_node("c"))
    assert (found.names, found.row(C), found.node(1).metadata.name) == (["a", "c"], 1, "c")


def test_a_priority_that_changes_on_the_node_is_the_one_that_counts() -> None:
    found = cluster()
    found.set_pod(a_pod("p").priority(5).on("a").build())
    found.set_pod(a_pod("q").priority(7).on("a").build())
    found.set_pod(a_pod("p").priority(9).on("a").build())
    assert found.lowest_priority == 7
    found.set_pod(a_pod("p").priority(9).on("a").build())
    found.remove_pod("q")
    assert found.lowest_priority == 9
    found.remove_pod("p")
    assert found.lowest_priority is None


@pytest.mark.parametrize(
    "changed",
    [
        a_pod("p").requests(cpu="1"), a_pod("p").requests(memory="1Mi"), a_pod("p").host_port(80), a_pod("p").volume_claims("c"),
        a_pod("p").labels(a="b"), a_pod("p").deleting(), a_pod("p").annotations({"scheduling.k8s.io/group-name": "train"}),
    ],
)  # fmt: skip
def test_whatever_a_column_could_show_of_a_pod_that_changes_its_row_is_journalled(changed: PodMaker) -> None:
    found = cluster()
    found.set_pod(a_pod("p").on("a").build())
    position = found.pod_journal.position
    found.set_pod(changed.on("a").build())
    assert rows_since(found, position) == [0]
    found.set_pod(changed.on("a").build())
    found.set_pod(changed.phase("Running").priority(3).on("a").build())
    assert rows_since(found, position) == [0]


def test_devices_that_somebody_notes_on_a_pod_later_are_not_believed() -> None:
    found = cluster()
    found.set_pod(a_pod("p").on("a").build())
    position = found.pod_journal.position
    found.set_pod(a_pod("p").metadata(annotations={"placewright.dev/devices": '{"example.com/gpu": [1]}'}).on("a").build())
    assert rows_since(found, position) == []


# --- namesakes -----------------------------------------------------------------------------------------------------------------------


def uids(found: Cluster, of: str, name: str = "web", created: str = "2026-01-01T00:00:00Z") -> list[str]:
    return [each.pod.uid for each in found.assumed_predecessors(a_pod(name).uid(of).created(created).build())]


def test_assumed_pods_of_the_same_name_are_gone_where_a_newer_one_exists() -> None:
    found = cluster()
    for uid, when in (("one", "2026-01-01T00:00:00Z"), ("two", "2026-01-01T00:00:01Z"), ("three", "2026-01-01T00:00:01Z")):
        found.assume(a_pod("web").uid(uid).created(when).build(), A)
    assert uids(found, "new", created="2026-01-01T00:00:02Z") == ["one", "two", "three"]
    assert uids(found, "new", created="2026-01-01T00:00:01Z") == ["one", "two", "three"], "made in the same second"
    assert uids(found, "new", created="2026-01-01T00:00:00Z") == ["one"], "news of a pod that is older than they are"
    assert uids(found, "new", created="") == []
    assert uids(found, "new", name="other", created="2030-01-01T00:00:00Z") == []


def test_of_namesakes_made_in_the_same_second_those_assumed_before_are_the_older_ones() -> None:
    found = cluster()
    for uid in ("one", "two", "three"):
        found.assume(a_pod("web").uid(uid).created("2026-01-01T00:00:00Z").build(), A)
    assert [uids(found, each) for each in ("one", "two", "three")] == [[], ["one"], ["one", "two"]]


@pytest.mark.parametrize("end", ["forgotten", "confirmed", "confirmed elsewhere", "removed"])
def test_who_is_assumed_no_longer_is_nobodys_predecessor(end: str) -> None:
    found = cluster()
    for uid in ("one", "two"):
        found.assume(a_pod("web").uid(uid).created("2026-01-01T00:00:00Z").build(), A)
    if end == "forgotten":
        found.forget(a_pod("one").build(), A)
    elif end == "removed":
        found.remove_pod("one")
    else:
        found.set_pod(a_pod("web").uid("one").created("2026-01-01T00:00:00Z").on("a" if end == "confirmed" else "b").build())
    assert uids(found, "new") == ["two"]
    found.remove_pod("two")
    assert uids(found, "new") == []
    assert not found._assumed_as


# --- pods that are to leave ------------------------------------------------------------------------------------------------------------


def test_a_pod_leaves_that_is_being_deleted_or_has_been_told_to() -> None:
    found = cluster()
    found.set_pod(a_pod("p").on("a").build())
    found.set_pod(a_pod("q").deleting().on("a").build())
    assert (found.leaves(a_pod("p").build()), found.leaves(a_pod("q").deleting().build())) == (False, True)
    found.told_to_leave("p")
    found.told_to_leave("p")
    assert found.leaves(a_pod("p").build())
    assert int(found.pod_count[0]) == 2, "it counts until it is gone"
    found.stays_after_all("p")
    found.stays_after_all("p")
    assert not found.leaves(a_pod("p").build())


def test_a_pod_on_no_node_cannot_be_told_to_leave() -> None:
    found = cluster()
    found.told_to_leave("p")
    found.set_pod(a_pod("p").on("a").build())
    assert not found.leaves(a_pod("p").build())


@pytest.mark.parametrize("end", ["shown as being deleted", "gone", "moved"])
def test_what_a_pod_was_told_is_forgotten_once_the_api_server_shows_it(end: str) -> None:
    found = cluster()
    found.set_pod(a_pod("p").on("a").build())
    found.told_to_leave("p")
    found.set_pod(a_pod("p").labels(news="of another kind").on("a").build())
    assert found.leaves(a_pod("p").build())
    if end == "shown as being deleted":
        found.set_pod(a_pod("p").deleting().on("a").build())
    elif end == "gone":
        found.remove_pod("p")
    else:
        found.set_pod(a_pod("p").on("b").build())
    assert not found.leaves(a_pod("p").build())
    assert not found._told_to_leave


# --- what a row says of its node -------------------------------------------------------------------------------------------------------


def test_every_column_follows_a_node_that_changes() -> None:
    found = Cluster()
    found.set_node(a_node("a", {"zone": "x"}))
    assert (list(found.pod_limit), list(found.label_keys), list(found.unschedulable[:1])) == ([10], ["zone"], [False])
    assert (found.taints.get(0), found.declared_features.get(0)) == ((), frozenset())
    body = {"allocatable": {"cpu": "1", "bananas": "5", "pods": "3"}, "declaredFeatures": ["F"]}
    spec = {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True}
    found.set_node(plain_node("a", spec, body))
    assert (list(found.pod_limit), list(found.label_keys), list(found.unschedulable[:1])) == ([3], [], [True])
    assert ([taint.key for taint in found.taints.get(0)], found.declared_features.get(0)) == (["k"], frozenset({"F"}))
    assert found.resources.names() == ("cpu",), "nobody counts bananas; pods have a column of their own"
    found.set_node(plain_node("a", {}, {}))
    assert (list(found.pod_limit), found.resources.names()) == ([0], ())
    assert (found.taints.get(0), found.declared_features.get(0)) == ((), frozenset())


@pytest.mark.parametrize("count", [64, 65, 128, 129])
def test_rows_are_added_as_nodes_come_and_every_column_is_long_enough(count: int) -> None:
    found = Cluster()
    for number in range(count):
        found.set_node(a_node(f"n{number}", {"n": str(number)}, pods=str(number)))
    assert found.size == count == found.node_count
    for column in (found.present, found.pod_count, found.pod_limit, found.scoring_cpu, found.scoring_memory):
        assert len(column) == count
    assert list(found.pod_limit) == list(range(count))
    assert found.label("n").get(count - 1) == str(count - 1)
    assert len(found.unschedulable) >= count
    assert found._capacity == {64: 64, 65: 128, 128: 128, 129: 256}[count], "room doubles, so that growing costs little"


def test_a_freed_row_is_taken_again_before_a_new_one_is_made() -> None:
    found = cluster("a", "b", "c")
    found.remove_node(NodeName("a"))
    found.remove_node(NodeName("c"))
    for name in ("x", "y", "z"):
        found.set_node(a_node(name))
    assert sorted(found.row(NodeName(name)) for name in ("x", "y", "b", "z")) == [0, 1, 2, 3]  # type: ignore[type-var]
    assert found.row(NodeName("z")) == 3
    assert found.names.count(None) == 0
