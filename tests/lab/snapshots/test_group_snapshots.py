"""Groups of pods outlive a snapshot, a recording and made-up names: who belonged together does so still, and asks for the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from placewright.api.decode import convert
from placewright.api.podgroups import GroupRef, PodGroup
from placewright.api.pods import PodInfo
from placewright.offline.world import OfflineCluster, struct_of, world_from
from placewright_console.local.prunedobjects import kind_of, manifest_line, pruned
from placewright_lab.snapshots.anonymiser import anonymised
from placewright_lab.snapshots.snapshot import RECORDING, SNAPSHOT, Header, read_recording, read_snapshot, write_snapshot

Manifest = dict[str, Any]
X, NATIVE, VOLCANO = "scheduling.x-k8s.io/v1alpha1", "scheduling.k8s.io/v1beta1", "scheduling.volcano.sh/v1beta1"
WORKLOAD = "scheduling.k8s.io/v1alpha1"
RACK = {"placewright.dev/topology-key": "example.com/rack", "placewright.dev/topology-mode": "preferred"}
GANG = {"gang": {"minCount": 2}}
#: All of one name: forms are told apart by their group.
OBJECTS: list[Manifest] = [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": {"example.com/rack": "r"}}},
    {
        "apiVersion": X,
        "kind": "PodGroup",
        "metadata": {"name": "secret-train", "namespace": "ml", "annotations": {**RACK, "mail": "a@b.example"}},
        "spec": {"minMember": 2, "scheduleTimeoutSeconds": 9, "minResources": {"cpu": "2"}},
        "status": {"phase": "Pending", "occupiedBy": "ml/secret-job"},
    },
    {
        "apiVersion": NATIVE,
        "kind": "PodGroup",
        "metadata": {"name": "secret-train", "namespace": "ml"},
        "spec": {"schedulingPolicy": GANG, "schedulingConstraints": {"topology": [{"key": "example.com/rack"}]}},
    },
    {"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"name": "secret-train", "namespace": "ml"}, "spec": {"minMember": 3}},
    {
        "apiVersion": WORKLOAD,
        "kind": "Workload",
        "metadata": {"name": "secret-train", "namespace": "ml"},
        "spec": {"podGroups": [{"name": "secret-workers", "policy": GANG}]},
    },
]


def member(name: str, metadata: Manifest, **spec: Any) -> Manifest:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "ml", "uid": name, **metadata}, "spec": spec}


MEMBERS = [
    member("a", {"labels": {"scheduling.x-k8s.io/pod-group": "secret-train", "tier": "x"}}),
    member("b", {}, schedulingGroup={"podGroupName": "secret-train"}),
    member("c", {"annotations": {"scheduling.k8s.io/group-name": "secret-train"}}),
    member("d", {}, workloadRef={"name": "secret-train", "podGroup": "secret-workers", "podGroupReplicaKey": "0"}),
]


def lines() -> list[bytes]:
    found = []
    for manifest in (*OBJECTS, *MEMBERS):
        struct = struct_of(manifest["apiVersion"], manifest["kind"])
        assert struct is not None
        found.append(manifest_line(pruned(convert(manifest, struct))))
    return found


def asked(world: OfflineCluster) -> list[tuple[Any, ...]]:
    """By member, what its group asks for: everything but names."""

    def of(ref: GroupRef | None) -> PodGroup:
        assert ref is not None
        pod_group = world.cluster.pod_groups.get(ref)
        assert pod_group is not None, ref
        return pod_group

    pod_groups = [of(pod.pod_group) for pod in sorted(world.pending.values(), key=lambda pod: pod.pod_group.form if pod.pod_group else "")]
    return [
        (group.ref.form, group.min_member, group.timeout_seconds, bool(group.topology_key), group.topology_required) for group in pod_groups
    ]


EXPECTED = asked(world_from([*OBJECTS, *MEMBERS], "test"))


def test_each_form_has_the_struct_of_its_group_and_is_called_as_its_kind_is() -> None:
    structs = [struct_of(each["apiVersion"], each["kind"]) for each in OBJECTS[1:]]
    assert len(set(structs)) == 4
    assert [kind_of(convert(each, struct)) for each, struct in zip(OBJECTS[1:], structs, strict=True) if struct] == [
        "PodGroup", "PodGroup", "PodGroup", "Workload",
    ]  # fmt: skip
    assert struct_of("example.com/v1", "PodGroup") is None and struct_of("", "PodGroup") is None


def test_a_snapshot_keeps_who_belongs_together_and_nothing_that_placement_does_not_read(tmp_path: Path) -> None:
    path = tmp_path / "s.gz"
    counts = {"PodGroup": 3, "Workload": 1, "Node": 1, "Pod": 4}
    header = Header(placewright=SNAPSHOT, version=1, taken="2030-01-01T00:00:00Z", counts=counts)
    write_snapshot(path, header, lines())
    assert asked(world_from(read_snapshot(path).objects, "test")) == EXPECTED
    text = b"".join(lines())
    assert not [word for word in (b"mail", b"secret-job", b"minResources", b"phase") if word in text]


@pytest.mark.parametrize("key", [b"1" * 32, b"2" * 32])
def test_made_up_names_leave_groups_together_and_tell_nothing(key: bytes) -> None:
    made = anonymised(lines(), key)
    objects = [msgspec.json.decode(line) for line in made]
    world = world_from(objects, "test")
    assert asked(world) == EXPECTED
    assert b"secret" not in b"".join(made) and b"example.com/rack" not in b"".join(made)
    (node,) = world.cluster.nodes()
    named = (pod.pod_group for pod in world.pending.values() if pod.pod_group)
    keys = {group.topology_key for ref in named if (group := world.cluster.pod_groups.get(ref))}
    assert keys - {""} == set(node.metadata.labels or ()), "the label that they ask for is one that nodes have"


def test_a_recording_tells_groups_of_one_name_apart(tmp_path: Path) -> None:
    path = tmp_path / "r"
    header = Header(placewright=RECORDING, version=1, taken="2030-01-01T00:00:00Z", counts={})
    group, native = lines()[1:3]
    changes = [b'{"at": %d, "act": "%s", "object": %s}' % change for change in enumerated(group, native)]
    path.write_bytes(b"\n".join([msgspec.json.encode(header), *changes]) + b"\n")
    happenings = read_recording(path).scenario.happenings
    assert [(each.act.value, each.manifest["apiVersion"].partition("/")[0]) for each in happenings] == [
        ("ADDED", "scheduling.x-k8s.io"), ("ADDED", "scheduling.k8s.io"), ("DELETED", "scheduling.x-k8s.io"),
    ]  # fmt: skip


def enumerated(group: bytes, native: bytes) -> list[tuple[int, bytes, bytes]]:
    return [(1, b"ADDED", group), (2, b"ADDED", native), (3, b"DELETED", group)]


def test_the_members_of_the_test_name_four_groups() -> None:
    assert len({PodInfo(convert(each, struct_of("v1", "Pod") or object)).pod_group for each in MEMBERS}) == 4
