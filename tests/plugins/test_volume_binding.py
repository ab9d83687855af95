"""VolumeBinding against the rules applied node by node on bare manifests, and where those say little: one rule at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np
import pytest

from placewright.api.decode import convert
from placewright.api.objects import LabelSelector, NodeName
from placewright.api.pods import PodInfo
from placewright.api.selectors import Selector, compile_label_selector
from placewright.api.storage import StorageClass
from placewright.cluster import objectselectors
from placewright.cluster.cluster import Cluster
from placewright.framework.interface import CycleState
from placewright.framework.status import Code, Status
from placewright.offline.world import world_from
from placewright.plugins.volumebinding.claims import PodVolumeClaims
from placewright.plugins.volumebinding.findings import find_volumes
from placewright.plugins.volumebinding.plugin import VolumeBinding, VolumeBindingArgs
from placewright.plugins.volumebinding.reach import StorageReach
from placewright.profiles.arguments import read_args
from placewright.profiles.problem import ProfileError
from placewright.testing import node, persistent_volume, persistent_volume_claim, pod, storage_class
from placewright.testing.objectmaker import ObjectMaker
from placewright.testing.pods import PodMaker
from plugins.pairwise import build, rejections
from plugins.volume_worlds import AFFINITY, GONE, HOST, NO_VOLUME, Judge, gibi, world
from randomcases import cases

Body = dict[str, Any]
#: An object as JSON, or its maker.
Shown = Body | ObjectMaker[Any]


def opened(objects: Iterable[Shown]) -> tuple[Cluster, PodInfo]:
    """The cluster, and the pod `web`."""
    made = world_from([each.manifest if isinstance(each, ObjectMaker) else {"apiVersion": "v1", **each} for each in objects], "test")
    return made.cluster, made.pending["default/web"]


def answers(plugin: VolumeBinding, cluster: Cluster, pod: PodInfo) -> dict[str, list[str]] | Status:
    """By node, what is wrong with it; or the refusal on all nodes."""
    state = CycleState()
    refusal = plugin.pre_filter(state, pod, cluster).status
    if not refusal.ok:
        return refusal
    found = rejections(plugin, state, cluster, pod)
    assert {status.code for status in found.values()} <= {Code.UNSCHEDULABLE_AND_UNRESOLVABLE}
    return {str(name): list(found[str(name)].reasons) if name in found else [] for name in cluster.names if name is not None}


def judged(objects: Iterable[Shown]) -> dict[str, list[str]] | Status:
    cluster, asked = opened(objects)
    return answers(build(VolumeBinding, cluster), cluster, asked)


def test_random_clusters_are_judged_as_the_rules_applied_node_by_node_judge_them() -> None:
    seen: Counter[str] = Counter()
    for seed in range(cases(1500)):
        objects = world(Random(seed))
        judge, found = Judge(objects), judged(objects)
        if judge.refusal():
            assert isinstance(found, Status), seed
            assert found.reasons == (judge.refusal(),), seed
            continue
        expected = {node: judge.reasons(node)[0] for node in judge.of["Node"]}
        assert found == expected, seed
        seen.update(reason for reasons in expected.values() for reason in reasons or ["fits"])
    assert min(seen.values()) > cases(100), seen


def test_under_the_rules_of_1_37_nodes_score_by_the_storage_that_the_pod_would_take() -> None:
    seen: Counter[int] = Counter()
    for seed in range(cases(1500)):
        objects = world(Random(seed))
        judge, (cluster, asked) = Judge(objects), opened(objects)
        feasible = [] if judge.refusal() else [node for node in judge.of["Node"] if not judge.reasons(node)[0]]
        plugin, state = build(VolumeBinding, cluster, compatibility="1.37"), CycleState()
        rows = np.array([cluster.row(NodeName(name)) for name in feasible], np.intp)
        if plugin.pre_filter(state, asked, cluster).status.ok and plugin.pre_score(state, asked, cluster, rows).ok:
            expected = [judge.score(node) for node in feasible]
            assert plugin.score(state, asked, cluster, rows).tolist() == expected, seed
            seen.update(expected)
    assert len(seen) > cases(1500) / 100, seen


def test_the_volumes_taken_are_as_small_as_the_rules_would_take_them() -> None:
    taken = 0
    for seed in range(cases(1500)):
        objects = world(Random(seed))
        judge = Judge(objects)
        cluster, asked = opened(objects)
        state = CycleState()
        if not build(VolumeBinding, cluster).pre_filter(state, asked, cluster).status.ok:
            continue
        findings = find_volumes(state.read("VolumeBinding", PodVolumeClaims), cluster, StorageReach())
        for row in cluster.rows()[findings.wrong[cluster.rows()] == 0]:
            sizes = [gibi(str((volume.spec.capacity or {})["storage"])) for _, volume in findings.bindings(int(row))]
            assert sizes == judge.reasons(str(cluster.names[row]))[1], seed
            taken += len(sizes)
    assert taken > cases(150)


# --- one rule at a time --------------------------------------------------------------------------------------------------------


NODE, CLASS, CLAIM = node("n1"), storage_class(), persistent_volume_claim("data")
SCRATCH = persistent_volume_claim("web-scratch")


def web(*claims: str) -> PodMaker:
    return pod("web").volume_claims(*claims)


OWN = web().spec(volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([web("data")], 'persistentvolumeclaim "data" not found'),
        ([OWN], 'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-scratch"'),
        ([OWN, SCRATCH], "PVC default/web-scratch was not created for pod default/web (pod is not owner)"),
        (
            [web("data"), CLAIM.spec(volumeName="gone").status(phase="Lost")],
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "gone"',
        ),
        ([web("data"), CLAIM.deleting()], 'persistentvolumeclaim "data" is being deleted'),
        ([web("data"), CLAIM.storage_class("")], "pod has unbound immediate PersistentVolumeClaims"),
        ([web("data"), CLAIM.storage_class("nobody-knows")], "pod has unbound immediate PersistentVolumeClaims"),
        ([web("data"), CLASS, CLAIM.spec(volumeName="a")], "pod has unbound immediate PersistentVolumeClaims"),
        ([web("data", "gone"), CLAIM.storage_class("")], 'persistentvolumeclaim "gone" not found'),
    ],
)
def test_a_pod_whose_claims_cannot_be_used_is_refused_with_the_words_of_kube_scheduler(objects: list[Shown], message: str) -> None:
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
    found = judged([web("data"), CLASS, CLAIM.spec(**spec)])
    assert isinstance(found, Status) and found.rejected
    assert f'persistentvolumeclaim "data": {field}' in found.message


def wanting(name: str, requirements: int) -> ObjectMaker[Any]:
    """A claim without a volume, with so many requirements on the labels of one."""
    expressions = [{"key": f"k{each}", "operator": "DoesNotExist"} for each in range(requirements)]
    return persistent_volume_claim(name).spec(selector={"matchExpressions": expressions})


def test_the_selectors_of_a_pods_claims_are_counted_together() -> None:
    claims = [wanting("a", 256), wanting("b", 256), wanting("c", 1)]
    at = judged([web("a", "b"), NODE, CLASS, *claims, persistent_volume("v").storage_class("standard")])
    assert not isinstance(at, Status)
    beyond = judged([web("a", "b", "c"), NODE, CLASS, *claims])
    assert isinstance(beyond, Status)
    told = "spec.volumes: 513 requirements on labels in the selectors of its claims; this scheduler places pods with at most 512"
    assert (beyond.code, beyond.reasons) == (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (told,))


def test_a_claim_that_has_its_volume_may_have_any_selector() -> None:
    claims = [wanting("a", 500).bound_to("v"), wanting("b", 500)]
    assert not isinstance(judged([web("a", "b"), NODE, CLASS, *claims, persistent_volume("v").bound_to("a")]), Status)


def test_a_claim_with_a_field_beyond_its_bound_is_named_with_field_number_and_limit() -> None:
    found = judged([web("data"), NODE, CLASS, wanting("data", 10_000)])
    assert isinstance(found, Status)
    [told] = found.reasons
    said = r'persistentvolumeclaim "data": spec\.selector: \d+ bytes of JSON; this scheduler reads at most 32768'
    assert re.fullmatch(said, told), told


def test_a_selector_is_compiled_once_for_a_version_of_the_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[LabelSelector] = []

    def noted(selector: LabelSelector) -> Selector:
        compiled.append(selector)
        return compile_label_selector(selector)

    monkeypatch.setattr(objectselectors, "compile_label_selector", noted)
    cluster, asked = opened([web("data"), NODE, CLASS, wanting("data", 3)])
    plugin = build(VolumeBinding, cluster)
    for _ in range(3):
        assert plugin.pre_filter(CycleState(), asked, cluster).status.ok
    assert len(compiled) == 1
    assert 0 < cluster.objects.storage.selectors.nbytes < 4096
    cluster.objects.put(wanting("data", 4).build())
    assert plugin.pre_filter(CycleState(), asked, cluster).status.ok
    assert [len(each.match_expressions or ()) for each in compiled] == [3, 4]
    cluster.objects.remove(wanting("data", 4).build())
    assert cluster.objects.storage.selectors.nbytes == 0


def test_a_volume_that_cannot_be_read_serves_nobody_and_harms_nobody() -> None:
    objects = [web("data"), CLASS, CLAIM, NODE, persistent_volume("bad", "lots")]
    assert judged(objects) == {"n1": [NO_VOLUME]}
    assert judged([*objects, persistent_volume("good")]) == {"n1": []}


def test_a_class_without_a_binding_mode_breaks_the_cycle() -> None:
    cluster, asked = opened([web("data"), CLAIM, NODE])
    cluster.objects.put(convert({"metadata": {"name": "standard"}}, StorageClass))  # no API server would show it like this
    found = answers(build(VolumeBinding, cluster), cluster, asked)
    assert isinstance(found, Status)
    assert (found.code, found.message) == (Code.ERROR, 'VolumeBindingMode not set for StorageClass "standard"')


def test_pods_without_claims_are_not_looked_at() -> None:
    found = judged([web().volume(emptyDir={})])
    assert isinstance(found, Status) and found.code is Code.SKIP


def test_an_ephemeral_volume_uses_the_claim_that_was_made_for_the_pod() -> None:
    objects = [OWN, CLASS, SCRATCH.owned_by("Pod", "web", api_version="v1"), NODE, node("n2"), persistent_volume("a").on("n2")]
    assert judged(objects) == {"n1": [NO_VOLUME], "n2": []}


def test_two_claims_need_two_volumes_on_the_node() -> None:
    claims = [persistent_volume_claim("one"), persistent_volume_claim("two")]
    volumes = [persistent_volume(name).on(host) for name, host in (("a", "n1"), ("b", "n2"), ("c", "n2"))]
    objects = [web("one", "two"), CLASS, *claims, NODE, node("n2"), *volumes]
    assert judged(objects) == {"n1": [NO_VOLUME], "n2": []}


def test_a_volume_pre_bound_to_the_claim_is_taken_even_where_another_would_fit() -> None:
    kept = persistent_volume("kept").on("n1").spec(claimRef={"namespace": "default", "name": "data"})
    objects = [web("data"), CLASS, CLAIM, NODE, node("n2"), kept, persistent_volume("other")]
    assert judged(objects) == {"n1": [], "n2": [NO_VOLUME]}


def test_volumes_of_a_node_selector_that_nobody_can_read_are_reached_from_nowhere() -> None:
    terms = [{"matchExpressions": [{"key": HOST, "operator": "Near", "values": ["n1"]}]}]
    volume = persistent_volume("a").spec(nodeAffinity={"required": {"nodeSelectorTerms": terms}})
    assert judged([web("data"), CLAIM.bound_to("a"), NODE, volume]) == {"n1": [AFFINITY]}


def test_the_first_claim_with_a_problem_speaks_for_all_that_are_bound() -> None:
    claims = [persistent_volume_claim("here").bound_to("a"), persistent_volume_claim("gone").bound_to("nothing")]
    objects = [web("here", "gone"), *claims, NODE, node("n2"), persistent_volume("a").on("n1")]
    assert judged(objects) == {"n1": [GONE], "n2": [AFFINITY]}


# --- what is kept ---------------------------------------------------------------------------------------------------------------


def test_every_change_that_matters_is_seen_by_a_plugin_that_remembers() -> None:
    cluster, asked = opened([web("data"), CLASS, CLAIM, NODE, node("n2")])
    plugin = build(VolumeBinding, cluster)
    assert answers(plugin, cluster, asked) == {"n1": [NO_VOLUME], "n2": [NO_VOLUME]}
    other = persistent_volume("a").on("n2").build()
    cluster.objects.put(other)
    assert answers(plugin, cluster, asked) == {"n1": [NO_VOLUME], "n2": []}
    cluster.set_node(NODE.labels({HOST: "n2"}).build())
    assert answers(plugin, cluster, asked) == {"n1": [], "n2": []}
    cluster.remove_node(NodeName("n2"))
    assert answers(plugin, cluster, asked) == {"n1": []}
    cluster.objects.remove(other)
    assert answers(plugin, cluster, asked) == {"n1": [NO_VOLUME]}


def test_fingerprints_tell_pods_with_other_claims_apart() -> None:
    cluster, first = opened([web("one"), CLASS, persistent_volume_claim("one"), persistent_volume_claim("two"), NODE])
    plugin = build(VolumeBinding, cluster)
    prints = set()
    for each in (first, web("two").build(), first):
        state = CycleState()
        plugin.pre_filter(state, each, cluster)
        prints.add(plugin.fingerprint(state, cluster))
    assert len(prints) == 2


def test_a_single_row_is_answered_as_all_rows_are() -> None:
    for seed in range(cases(100)):
        cluster, asked = opened(world(Random(seed)))
        plugin, state = build(VolumeBinding, cluster), CycleState()
        if plugin.pre_filter(state, asked, cluster).status.ok:
            alone = [bool(plugin.filter(state, asked, cluster, np.array([row]))[0]) for row in cluster.rows()]
            assert alone == plugin.filter(state, asked, cluster, cluster.rows()).tolist()


def test_arguments_out_of_range_are_refused_with_the_path() -> None:
    shape = [{"utilization": 50, "score": 11}, {"utilization": 50, "score": 0}]
    with pytest.raises(ProfileError) as refused:
        read_args(VolumeBinding, {"bindTimeoutSeconds": -1, "shape": shape})
    assert [problem.path for problem in refused.value.problems] == ["bindTimeoutSeconds", "shape[0].score", "shape[1].utilization"]
    assert read_args(VolumeBinding, {}) == VolumeBindingArgs()
