"""Which groups are declared, and which members stand on nodes, whatever happens to both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright import testing as kit
from placewright.api.decode import convert
from placewright.api.objects import NodeName, Pod
from placewright.api.podgroups import (
    FORM_OF,
    CompositePodGroup,
    CoschedulingPodGroup,
    Form,
    GroupRef,
    NativePodGroup,
    VolcanoPodGroup,
    Workload,
)
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.cluster.objects import GROUP_KINDS, GroupObjects
from randomcases import cases

TRAIN = GroupRef(Form.COSCHEDULING, "shop", "train")
N1, N2 = NodeName("n1"), NodeName("n2")


def member(uid: str, group: str = "train", node: str = "", phase: str = "", version: str = "1") -> PodInfo:
    made = kit.pod(uid, on=node).namespace("shop").uid(uid).phase(phase).version(version)
    return (made.in_coscheduling_group(group) if group else made).build()


def declare(cluster: Cluster, name: str = "train", minimum: int = 3, **metadata: Any) -> CoschedulingPodGroup:
    item = kit.coscheduling_group(name, minimum).namespace("shop").uid(f"uid-{name}").metadata(**metadata).build()
    cluster.objects.put(item)
    return item


def test_a_group_is_known_from_when_it_is_declared_to_when_it_is_deleted() -> None:
    cluster = Cluster()
    assert cluster.pod_groups.get(TRAIN) is None
    item = declare(cluster)
    found = cluster.pod_groups.get(TRAIN)
    assert found is not None and found.min_member == 3 and cluster.pod_groups.object_of(TRAIN) is item
    declare(cluster, minimum=5, resourceVersion="2")
    changed = cluster.pod_groups.get(TRAIN)
    assert changed is not None and changed.min_member == 5
    cluster.objects.remove(item)
    assert cluster.pod_groups.get(TRAIN) is None and cluster.pod_groups.object_of(TRAIN) is None


def test_forms_of_one_name_are_two_groups() -> None:
    cluster = Cluster()
    declare(cluster)
    native = {"metadata": {"name": "train", "namespace": "shop"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 9}}}}
    cluster.objects.put(convert(native, NativePodGroup))
    ours, theirs = cluster.pod_groups.get(TRAIN), cluster.pod_groups.get(TRAIN._replace(form=Form.NATIVE))
    assert ours is not None and theirs is not None and (ours.min_member, theirs.min_member) == (3, 9)


def test_a_member_stands_from_its_assumption_until_it_is_forgotten() -> None:
    cluster = Cluster()
    cluster.assume(member("a"), N1)
    assert cluster.pod_groups.placed(TRAIN) == {"a"}
    cluster.forget(member("a"), N1)
    assert not cluster.pod_groups.placed(TRAIN)


def test_an_assumed_member_that_is_confirmed_is_counted_once_and_gone_with_its_pod() -> None:
    cluster = Cluster()
    cluster.assume(member("a"), N1)
    cluster.set_pod(member("a", node="n1"))
    assert cluster.pod_groups.placed(TRAIN) == {"a"}
    cluster.remove_pod("a")
    assert not cluster.pod_groups.placed(TRAIN)


def test_a_member_that_turns_out_to_be_elsewhere_is_counted_once() -> None:
    cluster = Cluster()
    cluster.assume(member("a"), N1)
    cluster.set_pod(member("a", node="n2"))
    assert cluster.pod_groups.placed(TRAIN) == {"a"}
    cluster.remove_pod("a")
    assert not cluster.pod_groups.placed(TRAIN)


def test_a_member_whose_label_changes_changes_its_group() -> None:
    cluster = Cluster()
    cluster.set_pod(member("a", node="n1", phase="Running"))
    cluster.set_pod(member("a", group="other", node="n1", phase="Running", version="2"))
    other = TRAIN._replace(name="other")
    assert not cluster.pod_groups.placed(TRAIN) and cluster.pod_groups.placed(other) == {"a"}
    assert (cluster.pod_groups.running(TRAIN), cluster.pod_groups.running(other)) == (0, 1)


def test_a_pod_whose_volcano_annotation_changes_changes_its_group() -> None:
    """No column depends on annotations, so nothing else would tell."""
    cluster = Cluster()
    for name in ("one", "two"):
        meta = {"name": "a", "namespace": "shop", "uid": "a", "annotations": {"scheduling.k8s.io/group-name": name}}
        cluster.set_pod(PodInfo(convert({"metadata": meta, "spec": {"nodeName": "n1"}}, Pod)))
    placed = [cluster.pod_groups.placed(GroupRef(Form.VOLCANO, "shop", name)) for name in ("one", "two")]
    assert placed == [set(), {"a"}]


def test_the_version_grows_with_every_declaration_and_every_move_and_with_nothing_else() -> None:
    cluster = Cluster()
    seen = [cluster.pod_groups.version]

    def moved(act: Any) -> bool:
        act()
        seen.append(cluster.pod_groups.version)
        return seen[-1] > seen[-2]

    assert moved(lambda: declare(cluster))
    assert moved(lambda: cluster.assume(member("a"), N1))
    assert moved(lambda: cluster.forget(member("a"), N1))
    assert not moved(lambda: cluster.assume(member("single", group=""), N1))
    assert not moved(lambda: cluster.pod_groups.get(TRAIN))


def test_running_members_are_counted_and_their_groups_are_stirred_once() -> None:
    cluster = Cluster()
    cluster.set_pod(member("a", node="n1", phase="Pending"))
    assert (cluster.pod_groups.running(TRAIN), cluster.pod_groups.take_stirred()) == (0, set())
    cluster.set_pod(member("a", node="n1", phase="Running", version="2"))
    cluster.set_pod(member("b", node="n1", phase="Running"))
    assert (cluster.pod_groups.running(TRAIN), cluster.pod_groups.take_stirred(), cluster.pod_groups.take_stirred()) == (2, {TRAIN}, set())
    cluster.remove_pod("a")
    assert (cluster.pod_groups.running(TRAIN), cluster.pod_groups.take_stirred()) == (1, {TRAIN})


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["assume", "forget", "set", "remove"]),
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(["train", "other", ""]),
        st.sampled_from([N1, N2]),
        st.sampled_from(["Pending", "Running"]),
    ),
    max_size=40,
)


def by_hand(cluster: Cluster) -> tuple[Mapping[str, set[str]], Mapping[str, int]]:
    """Who stands, and how many run, from the placements alone."""
    placed: dict[str, set[str]] = {"train": set(), "other": set()}
    running = {"train": 0, "other": 0}
    for pod, _, _ in cluster.placements():
        group = pod.labels.get("scheduling.x-k8s.io/pod-group")
        if group:
            placed[group].add(pod.uid)
            running[group] += pod.pod.status.phase == "Running"
    return placed, running


@settings(max_examples=cases(200))
@given(acts=ACTS)
def test_whatever_happens_the_members_on_nodes_are_those_that_the_placements_show(acts: list[Any]) -> None:
    cluster = Cluster()
    for act, uid, group, node, phase in acts:
        known = cluster.placement(uid)
        if act == "assume" and known is None:
            cluster.assume(member(uid, group), node)
        elif act == "forget" and known is not None and known.assumed:
            cluster.forget(known.pod, known.node)
        elif act == "set":
            cluster.set_pod(member(uid, group, node, phase))
        elif act == "remove":
            cluster.remove_pod(uid)
        placed, running = by_hand(cluster)
        refs = {name: TRAIN._replace(name=name) for name in placed}
        assert {name: set(cluster.pod_groups.placed(ref)) for name, ref in refs.items()} == placed
        assert {name: cluster.pod_groups.running(ref) for name, ref in refs.items()} == running


@pytest.mark.parametrize("workload", ["train/workers", "train/workers/1"])
def test_a_workloads_groups_are_found_by_the_workloads_name(workload: str) -> None:
    cluster = Cluster()
    spec = {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 2}}}]}
    cluster.objects.put(convert({"metadata": {"name": "train", "namespace": "shop"}, "spec": spec}, Workload))
    found = cluster.pod_groups.get(GroupRef(Form.WORKLOAD, "shop", workload))
    assert found is not None and found.min_member == 2


# --- what is kept of a group -----------------------------------------------------------------------------------------------------------


def native(name: str, priority: int | None = None) -> NativePodGroup:
    return kit.pod_group(name, 2).namespace("shop").spec(priority=priority).build()


def test_every_form_has_its_table_and_is_read_from_it_alone() -> None:
    objects = GroupObjects()
    assert GROUP_KINDS == (CoschedulingPodGroup, NativePodGroup, Workload, VolcanoPodGroup, CompositePodGroup) == tuple(objects.tables)
    assert {FORM_OF[kind]: table for kind, table in objects.tables.items()} == dict(objects.by_form)


def test_a_group_is_read_once_for_as_long_as_its_object_stays_the_same() -> None:
    cluster = Cluster()
    declare(cluster)
    found = cluster.pod_groups.get(TRAIN)
    assert cluster.pod_groups.get(TRAIN) is found
    item = declare(cluster)
    assert cluster.pod_groups.get(TRAIN) is not found, "another object of the same words"
    cluster.objects.remove(item)
    assert cluster.pod_groups.get(TRAIN) is None
    assert not cluster.pod_groups._read, "of a group that is gone nothing is kept"


def test_the_lowest_priority_is_that_of_the_groups_that_have_one() -> None:
    cluster = Cluster()
    assert cluster.pod_groups.lowest_priority() is None
    cluster.objects.put(native("none"))
    assert cluster.pod_groups.lowest_priority() is None
    for name, priority, lowest in (("high", 9, 9), ("low", -3, -3), ("zero", 0, -3)):
        cluster.objects.put(native(name, priority))
        assert cluster.pod_groups.lowest_priority() == lowest
        assert cluster.pod_groups.lowest_priority() == lowest
    cluster.objects.put(native("low", 5))
    assert cluster.pod_groups.lowest_priority() == 0
    for name in ("low", "zero", "high"):
        cluster.objects.remove(native(name))
    assert cluster.pod_groups.lowest_priority() is None


def test_a_group_without_members_on_nodes_keeps_no_memory() -> None:
    cluster = Cluster()
    for uid in ("a", "b"):
        cluster.set_pod(member(uid, node="n1", phase="Running"))
    cluster.set_pod(member("c", group="other", node="n1"))
    cluster.set_pod(member("d", group="", node="n1", phase="Running"))
    assert cluster.pod_groups.placed_groups == 2
    assert cluster.pod_groups.take_stirred() == {TRAIN}, "a pod without a group stirs none"
    cluster.remove_pod("a")
    assert (cluster.pod_groups.placed_groups, cluster.pod_groups.placed(TRAIN), cluster.pod_groups.running(TRAIN)) == (2, {"b"}, 1)
    cluster.remove_pod("b")
    assert (cluster.pod_groups.placed_groups, cluster.pod_groups.running(TRAIN)) == (1, 0)
    cluster.remove_pod("c")
    cluster.remove_pod("d")
    assert cluster.pod_groups.placed_groups == 0
    assert not any((cluster.pod_groups._placed, cluster.pod_groups._running))


@pytest.mark.parametrize(
    ("before", "after", "stirred"),
    [("Pending", "Running", True), ("Running", "Succeeded", True), ("Pending", "Pending", False), ("Pending", "Failed", False)],
)
def test_a_group_is_stirred_when_a_member_begins_or_ceases_to_run(before: str, after: str, *, stirred: bool) -> None:
    cluster = Cluster()
    cluster.set_pod(member("a", node="n1", phase=before))
    cluster.pod_groups.take_stirred()
    version = cluster.pod_groups.version
    cluster.set_pod(member("a", node="n1", phase=after, version="2"))
    assert cluster.pod_groups.take_stirred() == ({TRAIN} if stirred else set())
    assert (cluster.pod_groups.version, cluster.pod_groups.running(TRAIN)) == (version, int(after == "Running"))


def test_the_version_of_groups_follows_every_kind_that_declares_them() -> None:
    cluster, seen = Cluster(), [0]
    metadata = {"metadata": {"name": "x", "namespace": "shop"}}
    for kind in GROUP_KINDS:
        for act in (cluster.objects.put, cluster.objects.put, cluster.objects.remove):
            act(convert(metadata, kind))
            seen.append(cluster.pod_groups.version)
    assert seen == list(range(3 * len(GROUP_KINDS) + 1))
    cluster.set_pod(member("a", node="n1"))
    cluster.set_pod(member("a", group="other", node="n1"))
    assert cluster.pod_groups.version == 3 * len(GROUP_KINDS) + 1 + 2, "a member that changes its group leaves one and enters another"
