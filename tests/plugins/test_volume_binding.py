"""VolumeBinding against the rules applied node by node on bare manifests, and where those say little: one rule at a time."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest

from placewright.api.decode import convert
from placewright.api.objects import NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.api.storage import StorageClass
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState
from placewright.framework.status import Code, Status
from placewright.offline.world import world_from
from placewright.plugins.volumebinding import VolumeBinding
from placewright.plugins.volumebinding.claims import PodVolumeClaims
from placewright.plugins.volumebinding.findings import find_volumes
from placewright.plugins.volumebinding.plugin import VolumeBindingArgs
from placewright.plugins.volumebinding.reach import StorageReach
from placewright.profiles.arguments import read_args
from placewright.profiles.problem import ProfileError
from plugins.pairwise import build
from plugins.volume_worlds import AFFINITY, COMPLETED, GONE, HOST, NO_VOLUME, ZONE, Judge, gibi, world

Body = dict[str, Any]
WAITS = "WaitForFirstConsumer"


def opened(objects: list[Body]) -> tuple[Cluster, PodInfo]:
    """The cluster, and the pod `web`."""
    made = world_from([{"apiVersion": "v1", **each} for each in objects], "test")
    return made.cluster, made.pending["default/web"]


def answers(plugin: VolumeBinding, cluster: Cluster, pod: PodInfo) -> dict[str, list[str]] | Status:
    """By node, what is wrong with it; or the refusal on all nodes."""
    state = CycleState()
    refusal = plugin.pre_filter(state, pod, cluster).status
    if not refusal.ok:
        return refusal
    rows = cluster.rows()
    fits = plugin.filter(state, pod, cluster, rows)
    found: dict[str, list[str]] = {str(cluster.names[row]): [] for row in rows[fits]}
    for status, rejected in plugin.explain(state, pod, cluster, rows[~fits]):
        assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        found |= {str(cluster.names[row]): list(status.reasons) for row in rejected}
    return found


def judged(objects: list[Body]) -> dict[str, list[str]] | Status:
    cluster, pod = opened(objects)
    return answers(build(VolumeBinding, cluster), cluster, pod)


def test_random_clusters_are_judged_as_the_rules_applied_node_by_node_judge_them() -> None:
    seen: Counter[str] = Counter()
    for seed in range(1500):
        objects = world(Random(seed))
        judge, found = Judge(objects), judged(objects)
        if judge.refusal():
            assert isinstance(found, Status), seed
            assert found.reasons == (judge.refusal(),), seed
            continue
        expected = {node: judge.reasons(node)[0] for node in judge.of["Node"]}
        assert found == expected, seed
        seen.update(reason for reasons in expected.values() for reason in reasons or ["fits"])
    assert min(seen.values()) > 100, seen


def test_the_volumes_taken_are_as_small_as_the_rules_would_take_them() -> None:
    taken = 0
    for seed in range(1500):
        objects = world(Random(seed))
        judge = Judge(objects)
        cluster, pod = opened(objects)
        state = CycleState()
        if not build(VolumeBinding, cluster).pre_filter(state, pod, cluster).status.ok:
            continue
        findings = find_volumes(state.read("VolumeBinding", PodVolumeClaims), cluster, StorageReach())
        for row in cluster.rows()[findings.wrong[cluster.rows()] == 0]:
            sizes = [gibi(str((volume.spec.capacity or {})["storage"])) for _, volume in findings.bindings(int(row))]
            assert sizes == judge.reasons(str(cluster.names[row]))[1], seed
            taken += len(sizes)
    assert taken > 150


# --- one rule at a time --------------------------------------------------------------------------------------------------------


def claim(name: str, *, storage_class: str = "static", **more: Any) -> Body:
    spec = {"storageClassName": storage_class, "resources": {"requests": {"storage": "1Gi"}}, **more.pop("spec", {})}
    meta = {"name": name, "namespace": "default", "uid": name, **more.pop("metadata", {})}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec, **more}


def volume(name: str, host: str = "", **spec: Any) -> Body:
    if host:
        terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [host]}]}]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    body = {"capacity": {"storage": "1Gi"}, "storageClassName": "static"} | spec
    return {"kind": "PersistentVolume", "metadata": {"name": name}, "spec": body, "status": {"phase": "Available"}}


def static_class(**more: Any) -> Body:
    body = {"kind": "StorageClass", "metadata": {"name": "static"}, "provisioner": "kubernetes.io/no-provisioner"}
    return body | {"volumeBindingMode": WAITS} | more


def node(name: str, **labels: str) -> Body:
    labels = {HOST: name} | {ZONE if key == "zone" else key: value for key, value in labels.items()}
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}}


def web(*claims: str, volumes: list[Body] | None = None) -> Body:
    used = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims] + (volumes or [])
    return {"kind": "Pod", "metadata": {"name": "web", "namespace": "default", "uid": "web-uid"}, "spec": {"volumes": used}}


OWN = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]


def bound_to(name: str) -> Body:
    return {"spec": {"volumeName": name}, "metadata": {"annotations": {COMPLETED: "yes"}}}


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([web("data")], 'persistentvolumeclaim "data" not found'),
        ([web(volumes=OWN)], 'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-scratch"'),
        (
            [web(volumes=OWN), claim("web-scratch")],
            "PVC default/web-scratch was not created for pod default/web (pod is not owner)",
        ),
        (
            [web("data"), claim("data", status={"phase": "Lost"}, spec={"volumeName": "gone"})],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"',
        ),
        (
            [web("data"), claim("data", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'persistentvolumeclaim "data" is being deleted',
        ),
        ([web("data"), claim("data", storage_class="")], "pod has unbound immediate PersistentVolumeClaims"),
        ([web("data"), claim("data", storage_class="nobody-knows")], "pod has unbound immediate PersistentVolumeClaims"),
        ([web("data"), static_class(), claim("data", spec={"volumeName": "a"})], "pod has unbound immediate PersistentVolumeClaims"),
        ([web("data", "gone"), claim("data", storage_class="")], 'persistentvolumeclaim "gone" not found'),
    ],
)
def test_a_pod_whose_claims_cannot_be_used_is_refused_with_the_words_of_kube_scheduler(objects: list[Body], message: str) -> None:
    found = judged(objects)
    assert isinstance(found, Status)
    assert (found.code, found.message) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, message)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"resources": {"requests": {"storage": "lots"}}}, "spec.resources.requests.storage"),
        ({"selector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}, "spec.selector"),
    ],
)
def test_a_claim_that_cannot_be_read_is_named_with_its_field(spec: Body, field: str) -> None:
    found = judged([web("data"), static_class(), claim("data", spec=spec)])
    assert isinstance(found, Status) and found.rejected
    assert f'persistentvolumeclaim "data": {field}' in found.message


def test_a_volume_that_cannot_be_read_serves_nobody_and_harms_nobody() -> None:
    objects = [web("data"), static_class(), claim("data"), node("n1"), volume("bad", capacity={"storage": "lots"})]
    assert judged(objects) == {"n1": [NO_VOLUME]}
    assert judged([*objects, volume("good")]) == {"n1": []}


def test_a_class_without_a_binding_mode_breaks_the_cycle() -> None:
    cluster, pod = opened([web("data"), claim("data"), node("n1")])
    cluster.objects.put(convert({"metadata": {"name": "static"}}, StorageClass))  # no API server would show it like this
    found = answers(build(VolumeBinding, cluster), cluster, pod)
    assert isinstance(found, Status)
    assert (found.code, found.message) == (Code.ERROR, 'VolumeBindingMode not set for StorageClass "static"')


def test_pods_without_claims_are_not_looked_at() -> None:
    found = judged([web(volumes=[{"name": "tmp", "emptyDir": {}}])])
    assert isinstance(found, Status) and found.code is Code.SKIP


def test_an_ephemeral_volume_uses_the_claim_that_was_made_for_the_pod() -> None:
    owner = {"ownerReferences": [{"kind": "Pod", "name": "web", "uid": "web-uid", "controller": True}]}
    objects = [web(volumes=OWN), static_class(), claim("web-scratch", metadata=owner), node("n1"), node("n2"), volume("a", "n2")]
    assert judged(objects) == {"n1": [NO_VOLUME], "n2": []}


def test_two_claims_need_two_volumes_on_the_node() -> None:
    objects = [web("one", "two"), static_class(), claim("one"), claim("two"), node("n1"), node("n2")]
    objects += [volume("a", "n1"), volume("b", "n2"), volume("c", "n2")]
    assert judged(objects) == {"n1": [NO_VOLUME], "n2": []}


def test_a_volume_pre_bound_to_the_claim_is_taken_even_where_another_would_fit() -> None:
    kept = {"claimRef": {"namespace": "default", "name": "data"}}
    objects = [web("data"), static_class(), claim("data"), node("n1"), node("n2"), volume("kept", "n1", **kept), volume("other")]
    assert judged(objects) == {"n1": [], "n2": [NO_VOLUME]}


def test_volumes_of_a_node_selector_that_nobody_can_read_are_reached_from_nowhere() -> None:
    terms = [{"matchExpressions": [{"key": HOST, "operator": "Near", "values": ["n1"]}]}]
    affinity = {"required": {"nodeSelectorTerms": terms}}
    objects = [web("data"), claim("data", **bound_to("a")), node("n1"), volume("a", nodeAffinity=affinity)]
    assert judged(objects) == {"n1": [AFFINITY]}


def test_the_first_claim_with_a_problem_speaks_for_all_that_are_bound() -> None:
    claims = [claim("here", **bound_to("a")), claim("gone", **bound_to("nothing"))]
    objects = [web("here", "gone"), *claims, node("n1"), node("n2"), volume("a", "n1")]
    assert judged(objects) == {"n1": [GONE], "n2": [AFFINITY]}


# --- what is kept ---------------------------------------------------------------------------------------------------------------


def test_every_change_that_matters_is_seen_by_a_plugin_that_remembers() -> None:
    objects = [web("data"), static_class(), claim("data"), node("n1"), node("n2")]
    cluster, pod = opened(objects)
    plugin = build(VolumeBinding, cluster)
    assert answers(plugin, cluster, pod) == {"n1": [NO_VOLUME], "n2": [NO_VOLUME]}
    other = world_from([volume("a", "n2")], "test").cluster.objects.storage.volumes.get("a")
    assert other is not None
    cluster.objects.put(other)
    assert answers(plugin, cluster, pod) == {"n1": [NO_VOLUME], "n2": []}
    renamed = node("n1") | {"metadata": {"name": "n1", "labels": {HOST: "n2"}}}
    cluster.set_node(world_from([renamed], "test").cluster.node(0))
    assert answers(plugin, cluster, pod) == {"n1": [], "n2": []}
    cluster.remove_node(NodeName("n2"))
    assert answers(plugin, cluster, pod) == {"n1": []}
    cluster.objects.remove(other)
    assert answers(plugin, cluster, pod) == {"n1": [NO_VOLUME]}


def test_fingerprints_tell_pods_with_other_claims_apart() -> None:
    objects = [web("one"), static_class(), claim("one"), claim("two"), node("n1")]
    cluster, pod = opened(objects)
    other = PodInfo(convert(web("two"), Pod))
    plugin = build(VolumeBinding, cluster)
    prints = set()
    for each in (pod, other, pod):
        state = CycleState()
        plugin.pre_filter(state, each, cluster)
        prints.add(plugin.fingerprint(state, cluster))
    assert len(prints) == 2


def test_a_single_row_is_answered_as_all_rows_are() -> None:
    for seed in range(100):
        cluster, pod = opened(world(Random(seed)))
        plugin, state = build(VolumeBinding, cluster), CycleState()
        if plugin.pre_filter(state, pod, cluster).status.ok:
            alone = [bool(plugin.filter(state, pod, cluster, np.array([row]))[0]) for row in cluster.rows()]
            assert alone == plugin.filter(state, pod, cluster, cluster.rows()).tolist()


def test_arguments_out_of_range_are_refused_with_the_path() -> None:
    shape = [{"utilization": 50, "score": 11}, {"utilization": 50, "score": 0}]
    with pytest.raises(ProfileError) as refused:
        read_args(VolumeBinding, {"bindTimeoutSeconds": -1, "shape": shape})
    assert [problem.path for problem in refused.value.problems] == ["bindTimeoutSeconds", "shape[0].score", "shape[1].utilization"]
    assert read_args(VolumeBinding, {}) == VolumeBindingArgs()
