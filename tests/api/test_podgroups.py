"""Groups of pods: who names which, and what each of the four ways to declare one means."""

from __future__ import annotations

from typing import Any

import pytest

from placewright import testing as kit
from placewright.api.decode import DecodeError, convert, decode
from placewright.api.objects import Pod
from placewright.api.podgroups import (
    FORM_OF,
    POD_GROUPS,
    CompositePodGroup,
    CoschedulingPodGroup,
    Disruption,
    Form,
    GroupObject,
    GroupRef,
    NativePodGroup,
    PodGroup,
    VolcanoPodGroup,
    Workload,
    declares,
    group_of,
    pod_group_of,
)
from placewright.api.pods import PodInfo

CRD = GroupRef(Form.COSCHEDULING, "shop", "train")
NATIVE = GroupRef(Form.NATIVE, "shop", "train")
VOLCANO = GroupRef(Form.VOLCANO, "shop", "train")
LABEL = {"labels": {"scheduling.x-k8s.io/pod-group": "train"}}
ANNOTATION = {"annotations": {"scheduling.k8s.io/group-name": "train"}}
FIELD = {"schedulingGroup": {"podGroupName": "train"}}


def a_pod(metadata: dict[str, Any] | None = None, **spec: Any) -> Pod:
    return kit.pod("web", **spec).namespace("shop").metadata(**(metadata or {})).decoded()


def declared(kind: type[GroupObject], spec: dict[str, Any], **metadata: Any) -> GroupObject:
    meta = {"name": "train", "namespace": "shop", "uid": "u", "resourceVersion": "5", "creationTimestamp": "2030-01-01T00:00:00Z"}
    item: GroupObject = convert({"metadata": meta | metadata, "spec": spec}, kind)
    return item


def pod_group(kind: type[GroupObject], spec: dict[str, Any], ref: GroupRef = CRD, **metadata: Any) -> PodGroup:
    found = pod_group_of(declared(kind, spec, **metadata), ref)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("member", "ref"),
    [
        (a_pod(), None),
        (a_pod(LABEL), CRD),
        (a_pod(ANNOTATION), VOLCANO),
        (a_pod(**FIELD), NATIVE),
        (a_pod(workloadRef={"name": "job", "podGroup": "workers"}), GroupRef(Form.WORKLOAD, "shop", "job/workers")),
        (
            a_pod(workloadRef={"name": "job", "podGroup": "workers", "podGroupReplicaKey": "2"}),
            GroupRef(Form.WORKLOAD, "shop", "job/workers/2"),
        ),
        (a_pod({"labels": {"scheduling.x-k8s.io/pod-group": ""}}), None),
        (a_pod({"annotations": {"scheduling.k8s.io/group-name": ""}}), None),
        (a_pod(schedulingGroup={}), None),
        (a_pod(schedulingGroup={"podGroupName": None}), None),
    ],
)
def test_a_pod_names_its_group_in_one_of_four_ways(member: Pod, ref: GroupRef | None) -> None:
    assert group_of(member) == ref
    assert PodInfo(member).pod_group == ref


def test_kubernetes_own_field_goes_before_the_label_and_the_label_before_the_annotation() -> None:
    assert group_of(a_pod(LABEL | ANNOTATION, **FIELD)) == NATIVE
    assert group_of(a_pod(LABEL | ANNOTATION)) == CRD


def test_a_group_of_scheduler_plugins_is_read_with_our_topology_annotations() -> None:
    annotations = {"placewright.dev/topology-key": "rack", "placewright.dev/topology-mode": "preferred"}
    spec = {"minMember": 3, "scheduleTimeoutSeconds": 0, "minResources": {"cpu": 3}}
    read = pod_group(CoschedulingPodGroup, spec, annotations=annotations)
    assert read == PodGroup(
        CRD, "u", 3, 0, topology_key="rack", topology_required=False, created="2030-01-01T00:00:00Z", resource_version="5"
    )
    assert pod_group(CoschedulingPodGroup, {"minMember": 3}).timeout_seconds is None
    without_mode = pod_group(CoschedulingPodGroup, {"minMember": 3}, annotations={"placewright.dev/topology-key": "rack"})
    assert without_mode.topology_required


@pytest.mark.parametrize(
    "constraints", [{"topology": [{"key": "rack"}]}, {"topologyConstraints": [{"topologyKey": "rack"}]}], ids=["as released", "as before"]
)
def test_a_native_group_is_read_with_its_own_constraint(constraints: dict[str, Any]) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 4}}, "schedulingConstraints": constraints}
    read = pod_group(NativePodGroup, spec, NATIVE, annotations={"placewright.dev/topology-mode": "preferred"})
    assert (read.min_member, read.topology_key, read.topology_required, read.placement_scored) == (4, "rack", True, True)
    annotated = {"placewright.dev/topology-key": "rack"}
    assert not pod_group(NativePodGroup, {"schedulingPolicy": {"basic": {}}}, NATIVE, annotations=annotated).placement_scored


def test_a_basic_group_with_a_constraint_is_a_gang_of_one() -> None:
    spec = {"schedulingPolicy": {"basic": {}}, "schedulingConstraints": {"topology": [{"key": "rack"}]}}
    read = pod_group(NativePodGroup, spec, NATIVE)
    assert (read.basic, read.min_member, read.goes_apart) == (False, 1, True)


@pytest.mark.parametrize(("policy", "means"), [(None, ""), ("Never", "Never"), ("PreemptLowerPriority", "PreemptLowerPriority")])
def test_a_native_group_says_whether_it_preempts(policy: str | None, means: str) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 4}}, "preemptionPolicy": policy}
    assert pod_group(NativePodGroup, spec, NATIVE).preemption_policy == means


def test_a_basic_group_needs_nobody_but_the_pod_itself() -> None:
    read = pod_group(NativePodGroup, {"schedulingPolicy": {"basic": {}}}, NATIVE)
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
    found = pod_group(NativePodGroup, {"schedulingPolicy": {"gang": {"minCount": 4}}, "disruptionMode": mode, "priority": 7}, NATIVE)
    assert (found.disruption, found.priority, found.min_member) == (means, 7, 4)


@pytest.mark.parametrize(
    ("minimum", "mode", "apart"),
    [(4, None, False), (1, None, True), (4, "Pod", True), (1, "PodGroup", False), (None, None, True), (None, "PodGroup", False)],
)
def test_members_are_evicted_one_by_one_where_the_group_says_so_or_cannot_be_broken(
    minimum: int | None, mode: str | None, *, apart: bool
) -> None:
    policy: dict[str, Any] = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    assert pod_group(NativePodGroup, {"schedulingPolicy": policy, "disruptionMode": mode}, NATIVE).goes_apart is apart


def test_a_native_group_without_a_policy_is_one_that_cannot_be() -> None:
    assert pod_group(NativePodGroup, {"schedulingPolicy": {}}, NATIVE).min_member == 0


def test_a_workload_holds_several_groups_each_of_which_may_have_replicas() -> None:
    spec = {"podGroups": [{"name": "drivers", "policy": {"basic": {}}}, {"name": "workers", "policy": {"gang": {"minCount": 4}}}]}
    item = declared(Workload, spec)
    workers = [GroupRef(Form.WORKLOAD, "shop", name) for name in ("train/workers", "train/workers/0", "train/workers/1")]
    assert [found.min_member for ref in workers if (found := pod_group_of(item, ref))] == [4, 4, 4]
    drivers = pod_group_of(item, GroupRef(Form.WORKLOAD, "shop", "train/drivers"))
    assert drivers is not None and drivers.basic
    assert pod_group_of(item, GroupRef(Form.WORKLOAD, "shop", "train/absent")) is None
    assert all(declares(item, ref) for ref in workers)


def test_volcanos_group_is_read_for_its_minimum() -> None:
    assert pod_group(VolcanoPodGroup, {"minMember": 2, "queue": "default"}, VOLCANO).min_member == 2


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


# --- names that are no names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown_as"),
    [
        ("train", "train"), ("n" * 253, "n" * 253), ("n" * 254, "'" + "n" * 79 + "... (254 characters)"), ("a\nb", r"'a\nb'"),
        ("\x1b[2J", r"'\x1b[2J'"), ("\u202egnp", r"'\u202egnp'"),
    ],
)  # fmt: skip
def test_a_name_that_an_annotation_made_up_is_one_printable_piece_of_a_message(name: str, shown_as: str) -> None:
    ref = group_of(a_pod({"annotations": {"scheduling.k8s.io/group-name": name}}))
    assert ref is not None
    assert str(ref) == ref.object_in_words == f"PodGroup.scheduling.volcano.sh shop/{shown_as}"
    assert ref.name == name


@pytest.mark.parametrize(
    ("form", "name", "of_object"),
    [
        (Form.WORKLOAD, "job/workers/2", "job"), (Form.WORKLOAD, "job", "job"), (Form.WORKLOAD, "", ""),
        (Form.VOLCANO, "a/b", "a/b"), (Form.NATIVE, "train", "train"), (Form.COSCHEDULING, "a/b", "a/b"),
    ],
)  # fmt: skip
def test_only_a_workload_holds_groups_of_other_names_than_its_own(form: Form, name: str, of_object: str) -> None:
    ref = GroupRef(form, "shop", name)
    assert ref.object_name == of_object
    assert ref.object_in_words == f"{form} shop/{of_object}"


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ({}, ""), ({"name": "job"}, "job"), ({"name": "job", "podGroup": ""}, "job"), ({"podGroup": "g"}, "g"),
        ({"name": "job", "podGroup": "g", "podGroupReplicaKey": ""}, "job/g"), ({"name": "job", "podGroupReplicaKey": "1"}, "job/1"),
    ],
)  # fmt: skip
def test_what_a_reference_to_a_workload_leaves_out_is_left_out_of_the_name(reference: dict[str, Any], name: str) -> None:
    assert group_of(a_pod(LABEL | ANNOTATION, workloadRef=reference)) == GroupRef(Form.WORKLOAD, "shop", name)


def test_an_empty_name_in_a_better_place_leaves_the_word_to_the_next() -> None:
    empty = {"labels": {"scheduling.x-k8s.io/pod-group": ""}}
    assert group_of(a_pod(LABEL | ANNOTATION, schedulingGroup={"podGroupName": ""})) == CRD
    assert group_of(a_pod(empty | ANNOTATION)) == VOLCANO
    assert group_of(a_pod(LABEL | ANNOTATION, schedulingGroup={"podGroupName": "train"}, workloadRef={"name": "job"})) == NATIVE


def test_members_of_one_group_hold_equal_references() -> None:
    assert group_of(a_pod(LABEL)) == group_of(a_pod(LABEL | {"name": "other"}))
    assert len({group_of(a_pod(LABEL)), group_of(a_pod(LABEL)), group_of(a_pod(LABEL | {"namespace": "else"}))}) == 2


# --- what objects say --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "form", "spec"),
    [
        (CoschedulingPodGroup, Form.COSCHEDULING, {"minMember": 2}), (VolcanoPodGroup, Form.VOLCANO, {"minMember": 2}),
        (NativePodGroup, Form.NATIVE, {"schedulingPolicy": {"gang": {"minCount": 2}}}),
        (Workload, Form.WORKLOAD, {"podGroups": [{"name": "g", "policy": {"gang": {"minCount": 2}}}]}),
    ],
)  # fmt: skip
def test_every_form_takes_our_topology_and_tells_who_it_is(kind: type[GroupObject], form: Form, spec: dict[str, Any]) -> None:
    ref = GroupRef(form, "shop", "train/g" if form is Form.WORKLOAD else "train")
    assert pod_group(kind, spec, ref) == PodGroup(ref, "u", 2, created="2030-01-01T00:00:00Z", resource_version="5")
    preferred = {"placewright.dev/topology-key": "rack", "placewright.dev/topology-mode": "preferred"}
    asked = pod_group(kind, spec, ref, annotations=preferred)
    assert (asked.topology_key, asked.topology_required, asked.timeout_seconds, asked.basic) == ("rack", False, None, False)
    for mode in ("required", "Preferred", "", "sideways"):
        assert pod_group(kind, spec, ref, annotations=preferred | {"placewright.dev/topology-mode": mode}).topology_required
    assert FORM_OF[kind] is form
    assert (kind in POD_GROUPS.values()) is (form is not Form.WORKLOAD)
    assert kind is Workload or POD_GROUPS[form.removeprefix("PodGroup.")] is kind


@pytest.mark.parametrize("constraints", [None, {}, {"topology": []}, {"topology": None, "topologyConstraints": []}])
def test_a_native_group_without_a_constraint_of_its_own_takes_our_annotation(constraints: dict[str, Any] | None) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "schedulingConstraints": constraints}
    annotations = {"placewright.dev/topology-key": "rack", "placewright.dev/topology-mode": "preferred"}
    asked = pod_group(NativePodGroup, spec, NATIVE, annotations=annotations)
    assert (asked.topology_key, asked.topology_required) == ("rack", False)


def test_of_both_spellings_of_a_constraint_the_one_that_was_released_is_read() -> None:
    both = {"topology": [{"key": "rack", "topologyKey": "x"}], "topologyConstraints": [{"topologyKey": "zone"}]}
    assert pod_group(NativePodGroup, {"schedulingConstraints": both}, NATIVE).topology_key == "rack"
    assert pod_group(NativePodGroup, {"schedulingConstraints": {"topology": [{"topologyKey": "zone"}]}}, NATIVE).topology_key == "zone"


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"schedulingPolicy": {"gang": {"minGroupCount": 2}}}, (2, False, None, None)),
        ({"schedulingPolicy": {"basic": {}}, "priority": 7}, (1, True, None, 7)),
        ({"schedulingPolicy": {"basic": {}, "gang": {"minGroupCount": 3}}}, (3, False, None, None)),
        ({"disruptionMode": {"all": {}}}, (0, False, Disruption.POD_GROUP, None)),
    ],
)
def test_a_group_of_groups_is_read_with_its_policy_mode_and_priority(spec: dict[str, Any], found: tuple[Any, ...]) -> None:
    read = pod_group(CompositePodGroup, spec, GroupRef(Form.COMPOSITE, "shop", "train"))
    assert (read.min_member, read.basic, read.disruption, read.priority) == found


@pytest.mark.parametrize("kind", [NativePodGroup, CompositePodGroup])
def test_a_group_names_the_group_above_it(kind: Any) -> None:
    ref = GroupRef(Form.NATIVE if kind is NativePodGroup else Form.COMPOSITE, "shop", "train")
    assert pod_group(kind, {"parentCompositePodGroupName": "job"}, ref).parent == GroupRef(Form.COMPOSITE, "shop", "job")
    assert [pod_group(kind, {"parentCompositePodGroupName": name}, ref).parent for name in (None, "")] == [None, None]
    item = declared(kind, {"schedulingConstraints": {"topology": [{"key": "rack"}]}})
    asked = pod_group_of(item, ref)
    assert asked is not None and (asked.topology_key, asked.topology_required) == ("rack", True)


def test_a_group_with_both_policies_is_a_gang() -> None:
    """No API server takes it; what would be placed too early could not be taken back."""
    read = pod_group(NativePodGroup, {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 3}}}, NATIVE)
    assert (read.min_member, read.basic, read.goes_apart) == (3, False, False)


@pytest.mark.parametrize("mode", [{"single": {}, "all": {}}, {"all": {"x": 1}}])
def test_all_goes_before_single(mode: dict[str, Any]) -> None:
    assert pod_group(NativePodGroup, {"disruptionMode": mode}, NATIVE).disruption is Disruption.POD_GROUP


@pytest.mark.parametrize("name", ["train/", "train", "train/workers2", "other/absent"])
def test_a_workload_has_no_group_that_it_does_not_name(name: str) -> None:
    item = declared(Workload, {"podGroups": [{"name": "workers", "policy": {"gang": {"minCount": 4}}}]})
    assert pod_group_of(item, GroupRef(Form.WORKLOAD, "shop", name)) is None
    assert pod_group_of(declared(Workload, {}), GroupRef(Form.WORKLOAD, "shop", "train/workers")) is None


def test_of_groups_of_one_name_in_a_workload_the_first_counts() -> None:
    policies = [{"name": "g", "policy": {"gang": {"minCount": minimum}}} for minimum in (2, 9)]
    found = pod_group_of(declared(Workload, {"podGroups": policies}), GroupRef(Form.WORKLOAD, "shop", "train/g"))
    assert found is not None and found.min_member == 2
