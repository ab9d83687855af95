"""A world made from manifests: what stands, what waits, and what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.bad_input import InputError
from placewright.api.errors import BindError
from placewright.api.objects import NodeName
from placewright.framework.runtime.handle import NoBinder
from placewright.offline.world import world_from

NODE = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}


def a_pod(name: str, *, node: str = "", phase: str = "", **meta: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": name, **meta}, "spec": {"nodeName": node, "containers": [{}]}, "status": {"phase": phase}}


def test_pods_on_nodes_are_counted_and_the_others_wait_in_any_order_of_documents() -> None:
    world = world_from([a_pod("running", node="n", namespace="a"), a_pod("waiting", namespace="a"), NODE], "f")
    assert set(world.pending) == {"a/waiting"}
    assert [p.name for p in world.cluster.pods_on(NodeName("n"))] == ["running"]
    assert world.cluster.pod_count[0] == 1


def test_pods_without_uid_are_told_apart_by_their_names() -> None:
    world = world_from([NODE, *(a_pod(name, node="n", namespace=ns) for name in "xy" for ns in "ab")], "f")
    assert world.cluster.pod_count[0] == 4
    assert {p.uid for p in world.cluster.pods_on(NodeName("n"))} == {"a/x", "a/y", "b/x", "b/y"}


def test_a_pod_without_a_namespace_is_in_the_default_one_with_or_without_a_uid() -> None:
    world = world_from([a_pod("x"), a_pod("y", uid="u-7")], "f")
    assert {key: p.uid for key, p in world.pending.items()} == {"default/x": "default/x", "default/y": "u-7"}


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_are_nowhere(phase: str) -> None:
    world = world_from([NODE, a_pod("x", phase=phase), a_pod("y", node="n", phase=phase)], "f")
    assert not world.pending
    assert world.cluster.pod_count_total == 0


def test_kinds_that_placement_looks_at_are_kept_and_others_passed_over() -> None:
    world = world_from([{"kind": "Service", "metadata": {"name": "s", "namespace": "a"}}, {"kind": "ConfigMap"}, {}, {"kind": 7}], "f")
    assert set(world.cluster.objects.services) == {"a/s"}


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ({"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "x"}}}, "f: Node n: "),
        ({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"resources": {"requests": {"cpu": "x"}}}]}}, "f: Pod p: "),
        ({"kind": "Pod", "metadata": 7}, "f: Pod ?: "),
        ({"kind": "Pod", "spec": {"priority": "\x1b[2J\n"}}, "f: Pod ?: "),
        ({"kind": "Service", "metadata": {"name": "s"}, "spec": []}, "f: Service s: "),
        ({"kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": {"selector": 1}}, "f: PodDisruptionBudget b: "),
        (7, "f: found 7; allowed "),
        (None, "f: found nothing; allowed "),
    ],
)
def test_an_object_that_cannot_be_read_is_one_line(manifest: Any, said: str) -> None:
    with pytest.raises(InputError) as refused:
        world_from([manifest], "f")
    assert str(refused.value).startswith(said)
    assert str(refused.value).isprintable()


async def test_nothing_is_bound_where_there_is_no_api_server() -> None:
    world = world_from([a_pod("x")], "f")
    with pytest.raises(BindError, match="default/x cannot be bound to n: there is no API server"):
        await NoBinder().bind(world.pending["default/x"], NodeName("n"), {})


def test_volumes_and_classes_as_people_write_them_get_what_a_cluster_would_add() -> None:
    bodies: list[dict[str, Any]] = [
        {"kind": "PersistentVolume", "metadata": {"name": "free"}},
        {"kind": "PersistentVolume", "metadata": {"name": "taken"}, "spec": {"claimRef": {"name": "c", "namespace": "default"}}},
        {"kind": "PersistentVolume", "metadata": {"name": "old"}, "status": {"phase": "Released"}},
        {"kind": "StorageClass", "metadata": {"name": "s"}, "provisioner": "p"},
        {"kind": "StorageClass", "metadata": {"name": "w"}, "provisioner": "p", "volumeBindingMode": "WaitForFirstConsumer"},
    ]
    storage = world_from(bodies, "f").cluster.objects.storage
    assert {v.metadata.name: v.status.phase for v in storage.volumes.values()} == {"free": "Available", "taken": "Bound", "old": "Released"}
    assert {c.metadata.name: c.volume_binding_mode for c in storage.classes.values()} == {"s": "Immediate", "w": "WaitForFirstConsumer"}
