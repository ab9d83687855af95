"""A snapshot places pods as the cluster did that it was taken of, with real names and with made-up ones; and it holds no secrets."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.snapshots.anyworld import REGISTRY, SECRET, World, verdicts
from lab.snapshots.masking import Body, RememberingMask, as_saved, in_no_order
from placewright import testing as kit
from placewright.api.objects import Pod
from placewright.api.pods import PodInfo
from placewright.api.podstart import MIRROR, bound_at, may_be_starting
from placewright.offline.world import STRUCTS
from placewright_console.local.prunedobjects import manifest_line, pruned
from placewright_lab.readers.goldencases import answer
from placewright_lab.snapshots.anonymiser import anonymised
from plugins.volume_worlds import COMPLETED
from plugins.volume_worlds import world as volume_world
from randomcases import some
from vectors.golden import Golden, golden_cases

SEEDS = st.integers(0, 2**32)


def saved(objects: list[Body]) -> list[Body]:
    return [msgspec.json.decode(line) for line in as_saved(objects)]


def masked(objects: list[Body]) -> tuple[list[Body], RememberingMask]:
    mask = RememberingMask(objects)
    return [mask.manifest(each) for each in objects], mask


@settings(max_examples=60)
@given(seed=SEEDS)
def test_every_verdict_on_a_cluster_is_the_same_on_its_snapshot_and_but_for_names_on_an_anonymised_one(seed: int) -> None:
    before = World(seed).objects()
    objects = saved(before)
    found = verdicts(objects, REGISTRY)
    assert found == verdicts(before, REGISTRY)
    made, mask = masked(objects)
    assert mask.put_back(verdicts(made, REGISTRY)) == in_no_order(found)


@settings(max_examples=60)
@given(seed=SEEDS)
def test_volumes_are_found_chosen_and_refused_under_made_up_names_as_under_real_ones(seed: int) -> None:
    objects = saved(volume_world(random.Random(seed)))
    made, mask = masked(objects)
    assert mask.put_back(verdicts(made, REGISTRY)) == in_no_order(verdicts(objects, REGISTRY))


def test_the_random_clusters_are_worth_comparing() -> None:
    """Pods that fit and pods that do not, for many reasons; else the comparisons above would compare nothing."""
    said = [one for seed in range(80) for one in verdicts(World(seed).objects(), REGISTRY).values()]
    blamed = Counter(node.get("plugin", "") for one in said for node in one["nodes"].values())
    scored = Counter(name for one in said for node in one["nodes"].values() for name, score in node.get("scores", {}).items() if score)
    rejecting = {"NodeResourcesFit", "TaintToleration", "NodeAffinity", "InterPodAffinity", "PodTopologySpread", "VolumeBinding"}
    assert rejecting | {"DomainLimit"} <= set(blamed)
    assert {"ImageLocality", "NodePreferAvoidPods", "SelectorSpread", "InterPodAffinity", "NodeAffinity"} <= set(scored)
    assert sum("best" in one for one in said) > 40
    assert sum("nominatedNode" in one for one in said) > 3


def a_node(name: str, **labels: str) -> Body:
    return kit.node(name, labels=labels, cpu="1", pods="9").manifest


def a_pod(name: str, on: str = "", **spec: Any) -> Body:
    return kit.pod(name, on=on, cpu="1", **spec).namespace("home").manifest


@pytest.mark.parametrize("key", [bytes([number]) * 32 for number in range(6)])
def test_victims_that_cost_the_same_leave_the_same_node_under_made_up_names(key: bytes) -> None:
    """Preemption takes the first such node by name; hashes alone would mix the order up."""
    running = [a_pod(f"run-{letter}", on=f"node-{letter}") for letter in "bcaed"]
    objects = saved([*(a_node(f"node-{letter}") for letter in "dceab"), *running, a_pod("urgent", priority=9)])
    mask = RememberingMask(objects, key)
    found = mask.put_back(verdicts([mask.manifest(each) for each in objects], REGISTRY))
    assert found["home/urgent"]["nominatedNode"] == "node-a"
    assert verdicts(objects, REGISTRY)["home/urgent"]["nominatedNode"] == "node-a"


def test_a_volume_in_two_zones_is_in_both_under_made_up_names() -> None:
    zone = "topology.kubernetes.io/zone"
    labels = {zone: "eu-west1-a__eu-west1-b"}
    spec = {"claimRef": {"namespace": "home", "name": "c"}}
    volume = {"kind": "PersistentVolume", "metadata": {"name": "pv", "labels": labels}, "spec": spec}
    claim = {"kind": "PersistentVolumeClaim", "metadata": {"name": "c", "namespace": "home", "annotations": {COMPLETED: "yes"}}}
    uses = a_pod("web", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    nodes = [a_node(f"in-{letter}", **{zone: f"eu-west1-{letter}"}) for letter in "abc"]
    made, mask = masked(saved([*nodes, volume, claim | {"spec": {"volumeName": "pv"}}, uses]))
    assert mask.put_back(verdicts(made, REGISTRY))["home/web"]["best"] == ["in-a", "in-b"]


@pytest.mark.parametrize("golden", some(golden_cases()), ids=lambda golden: golden.id)
def test_a_golden_case_is_answered_the_same_from_a_snapshot_of_it_and_but_for_names_from_an_anonymised_one(golden: Golden) -> None:
    case = golden.read()
    objects = saved(case["objects"])
    found = answer(case | {"objects": objects}, REGISTRY)
    assert found == answer(case, REGISTRY)
    if case.get("config"):
        return  # a case's profile has the real names of labels
    made, mask = masked(objects)
    there = answer(case | {"objects": made, "namespace": mask.name(case["namespace"]), "pod": mask.name(case["pod"])}, REGISTRY)
    assert mask.put_back(there) == in_no_order(found)


@settings(max_examples=30)
@given(seed=SEEDS)
def test_no_secret_of_a_cluster_is_in_its_snapshot(seed: int) -> None:
    objects = World(seed).objects()
    text = b"\n".join(as_saved(objects)).decode()
    assert SECRET in str(objects)
    assert SECRET not in text


@settings(max_examples=30)
@given(seed=SEEDS)
def test_no_name_of_a_cluster_is_in_its_anonymised_snapshot(seed: int) -> None:
    objects = World(seed).objects()
    text = b"\n".join(anonymised(as_saved(objects))).decode()
    names = {each["metadata"]["name"] for each in objects}
    others = {"acme.com", "eu-west1", "registry.internal", '"web', '"ssd', "tier", "front", "uid-", "disk-1", "share", "vol-1"}
    assert [name for name in sorted(names | others) if name in text] == []


OWN_FINALIZERS = ["kubernetes", "orphan", "foregroundDeletion", "kubernetes.io/pvc-protection", "batch.kubernetes.io/job-tracking",
                  "x.k8s.io/y", "resource.kubernetes.io/delete-protection"]  # fmt: skip
OTHERS_FINALIZERS = ["acme.com/claims", "k8s.io.acme.com/x", "acmek8s.io/x", "kubernetes.acme/x", "acme", "acme.com/kubernetes.io/x"]


@pytest.mark.parametrize("kind", ["Pod", "ResourceClaim", "PersistentVolumeClaim", "Node"])
@given(some=st.lists(st.sampled_from(OWN_FINALIZERS + OTHERS_FINALIZERS), max_size=6))
def test_who_holds_an_object_back_stays_secret_unless_it_is_kubernetes(kind: str, some: list[str]) -> None:
    line = msgspec.json.encode({"kind": kind, "metadata": {"name": "x", "namespace": "y", "uid": "z", "finalizers": some}})
    (masked_line,) = anonymised([line])
    found = msgspec.json.decode(masked_line)["metadata"]["finalizers"]
    assert [one == other for one, other in zip(some, found, strict=True)] == [one in OWN_FINALIZERS for one in some]
    assert "acme" not in masked_line.decode()
    assert len(set(found)) == len(set(some))


def test_made_up_names_differ_from_snapshot_to_snapshot_and_not_within_one() -> None:
    lines = as_saved(World(7).objects())
    key = b"1" * 32
    assert anonymised(lines, key) == anonymised(lines, key)
    assert anonymised(lines) != anonymised(lines)


@settings(max_examples=40)
@given(seed=SEEDS)
def test_pruning_twice_is_pruning_once_and_a_line_holds_all_of_it(seed: int) -> None:
    for body in World(seed).objects():
        kind: Any = STRUCTS[body["kind"]]
        once = pruned(msgspec.convert(body, kind))
        assert pruned(once) == once
        assert msgspec.json.decode(manifest_line(once), type=kind) == once


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("ready", ["True", "False"])
def test_a_snapshot_tells_when_a_pod_was_bound_and_whether_it_is_ready(ready: str, masks: bool) -> None:
    """Of pods that started before, NodeStartRate would count all for minutes, and what-if would know no placement of the last hour."""
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-23T10:00:00Z"}
    manifest = kit.pod("web").on("a").manifest
    conditions = [bound, {"type": "Ready", "status": ready}, {"type": "Initialized", "status": "True"}]
    manifest["status"] = {"phase": "Running", "conditions": conditions}
    mirror = kit.pod("proxy").on("a").manifest
    mirror["metadata"]["annotations"] = {MIRROR: "0123456789abcdef"}
    objects = saved([manifest, mirror])
    web, proxy = [PodInfo(msgspec.convert(each, Pod)) for each in (masked(objects)[0] if masks else objects)]
    assert bound_at(web) == 1_795_428_000
    assert may_be_starting(web) == (ready == "False")
    assert [condition.type for condition in web.pod.status.conditions or ()] == ["PodScheduled", "Ready"]
    assert not may_be_starting(proxy)
