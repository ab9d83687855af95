"""Groups of pods: who names which, and what each of the four ways to declare one means."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.decode import DecodeError, convert, decode
from placewright.api.objects import Pod
from placewright.api.podgroups import (
    CoschedulingPodGroup,
    Disruption,
    Form,
    Gang,
    GroupObject,
    GroupRef,
    NativePodGroup,
    VolcanoPodGroup,
    Workload,
    declares,
    gang_of,
    group_of,
)
from placewright.api.pods import PodInfo

CRD = GroupRef(Form.COSCHEDULING, "shop", "train")
NATIVE = GroupRef(Form.NATIVE, "shop", "train")
VOLCANO = GroupRef(Form.VOLCANO, "shop", "train")
LABEL = {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}
ANNOTATION = {"annotations": {"scheduling.k8s.io/group-name": "train"}}
FIELD = {"schedulingGroup": {"podGroupName": "train"}}


def pod(metadata: dict[str, Any] | None = None, **spec: Any) -> Pod:
    return convert({"metadata": {"name": "web", "namespace": "shop", **(metadata or {})}, "spec": spec}, Pod)


def declared(kind: type[GroupObject], spec: dict[str, Any], **metadata: Any) -> GroupObject:
    meta = {"name": "train", "namespace": "shop", "uid": "u", "resourceVersion": "5", "creationTimestamp": "2030-01-01T00:00:00Z"}
    item: GroupObject = convert({"metadata": meta | metadata, "spec": spec}, kind)
    return item


def gang(kind: type[GroupObject], spec: dict[str, Any], ref: GroupRef = CRD, **metadata: Any) -> Gang:
    found = gang_of(declared(kind, spec, **metadata), ref)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("member", "ref"),
    [
        (pod(), None),
        (pod(LABEL), CRD),
        (pod(ANNOTATION), VOLCANO),
        (pod(**FIELD), NATIVE),
        (pod(workloadRef={"name": "job", "podGroup": "workers"}), GroupRef(Form.WORKLOAD, "shop", "job/workers")),
        (
            pod(workloadRef={"name": "job", "podGroup": "workers", "podGroupReplicaKey": "2"}),
            GroupRef(Form.WORKLOAD, "shop", "job/workers/2"),
        ),
        (pod({"labels": {"scheduling.x-k8s.io/pod-group": ""}}), None),
        (pod({"annotations": {"scheduling.k8s.io/group-name": ""}}), None),
        (pod(schedulingGroup={}), None),
        (pod(schedulingGroup={"podGroupName": None}), None),
    ],
)
def test_a_pod_names_its_group_in_one_of_four_ways(member: Pod, ref: GroupRef | None) -> None:
    assert group_of(member) == ref
    assert PodInfo(member).gang == ref


def test_kubernetes_own_field_goes_before_the_label_and_the_label_before_the_annotation() -> None:
    assert group_of(pod(LABEL | ANNOTATION, **FIELD)) == NATIVE
    assert group_of(pod(LABEL | ANNOTATION)) == CRD


def test_a_group_of_scheduler_plugins_is_read_with_our_topology_annotations() -> None:
    annotations = {"placewright.dev/topology-key": "rack", "placewright.dev/topology-mode": "preferred"}
    read = gang(CoschedulingPodGroup, {"minMember": 3, "scheduleTimeoutSeconds": 0, "minResources": {"cpu": 3}}, annotations=annotations)
    assert read == Gang(
        CRD, "u", 3, 0, topology_key="rack", topology_required=False, created="2030-01-01T00:00:00Z", resource_version="5"
    )
    assert gang(CoschedulingPodGroup, {"minMember": 3}).timeout_seconds is None
    without_mode = gang(CoschedulingPodGroup, {"minMember": 3}, annotations={"placewright.dev/topology-key": "rack"})
    assert without_mode.topology_required


@pytest.mark.parametrize(
    "constraints", [{"topology": [{"key": "rack"}]}, {"topologyConstraints": [{"topologyKey": "rack"}]}], ids=["as released", "as before"]
)
def test_a_native_group_is_read_with_its_own_constraint(constraints: dict[str, Any]) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 4}}, "schedulingConstraints": constraints}
    read = gang(NativePodGroup, spec, NATIVE, annotations={"placewright.dev/topology-mode": "preferred"})
    assert (read.min_member, read.topology_key, read.topology_required, read.basic) == (4, "rack", True, False)


def test_a_basic_group_needs_nobody_but_the_pod_itself() -> None:
    read = gang(NativePodGroup, {"schedulingPolicy": {"basic": {}}}, NATIVE)
    assert (read.basic, read.min_member, read.topology_key) == (True, 1, "")


@pytest.mark.parametrize(
    ("mode", "means"),
    [
        (None, None),
        ("Pod", Disruption.POD),
        ("PodGroup", Disruption.POD_GROUP),
        ("Rack", None),
        ({"single": {}}, Disruption.POD),
        ({"all": {}}, Disruption.POD_GROUP),
        ({}, None),
    ],
)
def test_a_native_group_says_what_may_be_evicted_of_it(mode: object, means: Disruption | None) -> None:
    found = gang(NativePodGroup, {"schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": mode, "priority": 7}, NATIVE)
    assert (found.disruption, found.priority, found.min_member) == (means, 7, 4)


@pytest.mark.parametrize(
    ("minimum", "mode", "apart"),
    [(4, None, False), (1, None, True), (4, "Pod", True), (1, "PodGroup", False), (None, None, True), (None, "PodGroup", False)],
)
def test_members_are_evicted_one_by_one_where_the_group_says_so_or_cannot_be_broken(
    minimum: int | None, mode: str | None, *, apart: bool
) -> None:
    policy: dict[str, Any] = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    assert gang(NativePodGroup, {"schedulingPolicy": policy, "disruptionMode": mode}, NATIVE).goes_apart is apart


def test_a_native_group_without_a_policy_is_one_that_cannot_be() -> None:
    assert gang(NativePodGroup, {"schedulingPolicy": {}}, NATIVE).min_member == 0


def test_a_workload_holds_several_groups_each_of_which_may_have_replicas() -> None:
    spec = {"podGroups": [{"name": "drivers", "policy": {"basic": {}}}, {"name": "workers", "policy": {"gang": {"minCount": 4}}}]}
    item = declared(Workload, spec)
    workers = [GroupRef(Form.WORKLOAD, "shop", name) for name in ("train/workers", "train/workers/0", "train/workers/1")]
    assert [found.min_member for ref in workers if (found := gang_of(item, ref))] == [4, 4, 4]
    drivers = gang_of(item, GroupRef(Form.WORKLOAD, "shop", "train/drivers"))
    assert drivers is not None and drivers.basic
    assert gang_of(item, GroupRef(Form.WORKLOAD, "shop", "train/absent")) is None
    assert all(declares(item, ref) for ref in workers)


def test_volcanos_group_is_read_for_its_minimum() -> None:
    assert gang(VolcanoPodGroup, {"minMember": 2, "queue": "default"}, VOLCANO).min_member == 2


def test_an_object_declares_the_group_of_its_form_name_and_namespace_and_no_other() -> None:
    item = declared(CoschedulingPodGroup, {"minMember": 2})
    assert declares(item, CRD)
    others = (NATIVE, VOLCANO, CRD._replace(name="other"), CRD._replace(namespace="other"))
    assert not any(declares(item, ref) for ref in others)


@pytest.mark.parametrize("minimum", ['"3"', "2.5", "true", "[]", "{}"])
def test_a_minimum_that_is_no_whole_number_is_refused_with_the_field(minimum: str) -> None:
    with pytest.raises(DecodeError, match=r"spec\.minMember"):
        decode(b'{"spec": {"minMember": %s}}' % minimum.encode(), CoschedulingPodGroup)


def test_a_group_is_called_by_kind_namespace_and_name() -> None:
    assert str(CRD) == "PodGroup.scheduling.x-k8s.io shop/train"
    assert str(GroupRef(Form.WORKLOAD, "shop", "job/workers")) == "Workload.scheduling.k8s.io shop/job/workers"
