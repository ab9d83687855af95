"""What keeps a group from ever being placed is one line that names the object and the field."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.decode import convert
from placewright.api.podgroups import (
    CoschedulingPodGroup,
    Form,
    GroupObject,
    GroupRef,
    NativePodGroup,
    PodGroup,
    VolcanoPodGroup,
    Workload,
)
from placewright.cluster.cluster import Cluster
from placewright.cluster.podgrouprules import declaration_complaint, members_complaint

CRD = GroupRef(Form.COSCHEDULING, "shop", "train")
NATIVE = CRD._replace(form=Form.NATIVE)
VOLCANO = CRD._replace(form=Form.VOLCANO)
WORKERS = GroupRef(Form.WORKLOAD, "shop", "train/workers/0")


def complaint(ref: GroupRef, kind: type[GroupObject] | None = None, spec: dict[str, Any] | None = None, **annotations: str) -> str:
    cluster = Cluster()
    if kind is not None:
        keys = {f"placewright.dev/topology-{key}": value for key, value in annotations.items()}
        cluster.objects.put(convert({"metadata": {"name": "train", "namespace": "shop", "annotations": keys}, "spec": spec}, kind))
    return declaration_complaint(cluster.pod_groups, ref)


def workload(minimum: int, name: str = "workers") -> dict[str, Any]:
    return {"podGroups": [{"name": name, "policy": {"gang": {"minCount": minimum}}}]}


@pytest.mark.parametrize(
    ("ref", "kind", "spec"),
    [
        (CRD, CoschedulingPodGroup, {"minMember": 1}),
        (CRD, CoschedulingPodGroup, {"minMember": 2**31 - 1, "scheduleTimeoutSeconds": 0}),
        (NATIVE, NativePodGroup, {"schedulingPolicy": {"gang": {"minCount": 1}}}),
        (NATIVE, NativePodGroup, {"schedulingPolicy": {"basic": {}}}),
        (WORKERS, Workload, workload(4)),
        (VOLCANO, VolcanoPodGroup, {"minMember": 1}),
    ],
)
def test_nothing_is_said_of_a_group_that_is_well_declared(ref: GroupRef, kind: type[GroupObject], spec: dict[str, Any]) -> None:
    assert complaint(ref, kind, spec) == ""


@pytest.mark.parametrize(
    ("ref", "line"),
    [
        (CRD, "PodGroup.scheduling.x-k8s.io shop/train does not exist (the pod's label scheduling.x-k8s.io/pod-group names it)"),
        (NATIVE, "PodGroup.scheduling.k8s.io shop/train does not exist (the pod's spec.schedulingGroup.podGroupName names it)"),
        (WORKERS, "Workload.scheduling.k8s.io shop/train does not exist (the pod's spec.workloadRef names it)"),
        (VOLCANO, "PodGroup.scheduling.volcano.sh shop/train does not exist (the pod's annotation scheduling.k8s.io/group-name names it)"),
    ],
)
def test_a_group_that_does_not_exist_is_named_with_who_names_it(ref: GroupRef, line: str) -> None:
    assert complaint(ref) == line


@pytest.mark.parametrize("minimum", [0, -1, -(2**40)])
@pytest.mark.parametrize(
    ("ref", "kind", "spec", "field"),
    [
        (CRD, CoschedulingPodGroup, lambda n: {"minMember": n}, "spec.minMember"),
        (VOLCANO, VolcanoPodGroup, lambda n: {"minMember": n}, "spec.minMember"),
        (NATIVE, NativePodGroup, lambda n: {"schedulingPolicy": {"gang": {"minCount": n}}}, "spec.schedulingPolicy.gang.minCount"),
        (WORKERS, Workload, workload, "spec.podGroups[workers].policy.gang.minCount"),
    ],
)
def test_a_minimum_below_one_is_named_with_its_field(ref: GroupRef, kind: Any, spec: Any, field: str, minimum: int) -> None:
    assert complaint(ref, kind, spec(minimum)) == f"{ref}: {field} is {minimum}, at least 1 is allowed"


def test_a_workload_that_lacks_the_group_says_which() -> None:
    said = complaint(WORKERS, Workload, workload(2, name="drivers"))
    assert said == 'Workload.scheduling.k8s.io shop/train: spec.podGroups has no "workers" (the pod\'s spec.workloadRef names it)'


def test_a_timeout_below_zero_is_named() -> None:
    said = complaint(CRD, CoschedulingPodGroup, {"minMember": 2, "scheduleTimeoutSeconds": -5})
    assert said == f"{CRD}: spec.scheduleTimeoutSeconds is -5, at least 0 is allowed"


@pytest.mark.parametrize("key", ["rack/", "/rack", "a b", "-rack", "r" * 64, "example.com/rack/row", "\x1b[2J", "UPPER.example.com/x"])
def test_a_topology_that_is_no_label_key_is_named_and_cut(key: str) -> None:
    said = complaint(CRD, CoschedulingPodGroup, {"minMember": 2}, key=key)
    assert said.startswith(f"{CRD}: the topology {key[:20]!r}"[:-1]) and said.endswith("is no key of a node label") and len(said) < 300


@pytest.mark.parametrize("key", ["rack", "topology.kubernetes.io/rack", "r" * 63, "example.com/Row_1.b"])
def test_any_label_key_may_be_a_topology(key: str) -> None:
    assert complaint(CRD, CoschedulingPodGroup, {"minMember": 2}, key=key, mode="preferred") == ""


def test_a_mode_that_is_neither_required_nor_preferred_is_named_and_cut() -> None:
    said = complaint(CRD, CoschedulingPodGroup, {"minMember": 2}, key="rack", mode="soft" * 100)
    assert said.startswith(f"{CRD}: metadata.annotations[placewright.dev/topology-mode] is 'softsoft")
    assert said.endswith("required or preferred is allowed") and len(said) < 300


def test_a_group_over_two_schedulers_is_named_with_how_many_each_has() -> None:
    said = members_complaint(PodGroup(CRD, min_member=2), {"one": 3, "two": 5})
    assert said == f"{CRD}: spec.schedulerName must be the same in all members, found 3 of 'one', 5 of 'two'"


@pytest.mark.parametrize(("members", "rest"), [(0, "there is no pod"), (1, "there is 1 pod"), (3, "there are 3 pods")])
def test_a_group_with_too_few_members_says_how_many_there_are(members: int, rest: str) -> None:
    counted = {"one": members} if members else {}
    assert members_complaint(PodGroup(CRD, min_member=4), counted) == f"{CRD}: spec.minMember is 4, but {rest} of it"


def test_a_group_with_just_enough_members_has_nothing_to_complain_of() -> None:
    assert members_complaint(PodGroup(CRD, min_member=4), {"one": 4}) == ""


def test_control_characters_of_a_name_do_not_reach_a_terminal() -> None:
    assert "\x1b" not in complaint(CRD, CoschedulingPodGroup, {"minMember": 2}, key="\x1b[2J")
    assert "\x1b" not in complaint(VOLCANO._replace(name="a\x1b[2J"))
    assert "\x1b" not in members_complaint(PodGroup(CRD), {"a\x1b[2J": 1, "b": 1})
