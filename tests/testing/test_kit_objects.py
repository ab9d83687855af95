"""The makers: each object is one that an API server takes, and one that the scheduler reads as the maker's words say."""

from __future__ import annotations

import functools
import importlib.util
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from placewright.api.decode import DecodeError
from placewright.api.quantity import QuantityError
from placewright.offline.world import read_object
from placewright.testing import (
    built,
    coscheduling_group,
    csi_driver,
    csi_node,
    device_class,
    device_taint_rule,
    disruption_budget,
    namespace,
    node,
    persistent_volume,
    persistent_volume_claim,
    pod,
    pod_group,
    profile,
    replica_set,
    resource_claim,
    resource_slice,
    service,
    stateful_set,
    storage_capacity,
    storage_class,
)
from placewright.testing.objectmaker import ObjectMaker

KUBERNETES = "v1.36.0-local-strict"
MIB = 1024 * 1024

#: Each kind, with every step of its maker taken.
MAKERS: tuple[ObjectMaker[Any], ...] = (
    pod("web")
    .labels({"app.kubernetes.io/name": "web"}, app="web").annotations(note="x").created("2026-01-01T00:00:00Z").deleting()
    .owned_by("ReplicaSet", "web").requests({"example.com/gpu": "1"}, cpu="500m").limits({"example.com/gpu": "1"}).image("web:1")
    .host_port(80, ip="10.0.0.1", protocol="UDP").container("log", cpu="10m").init_container("copy", cpu="1").sidecar("proxy", memory="1Mi")
    .overhead(cpu="10m").scheduler("packer").priority(5).never_preempts().gates("quota").in_group("train").in_coscheduling_group("train")
    .on("a").phase("Running").nominated("b").node_selector(disk="ssd").node_affinity("zone", "a", "b")
    .node_affinity("old", operator="DoesNotExist").node_affinity("cores", "8", operator="Gt", weight=7)
    .pod_affinity("zone", app="db").pod_affinity("zone", weight=3, app="cache").pod_anti_affinity("host", app="web")
    .spread("zone").spread("rack", {"app": "db"}, max_skew=2, hard=False, nodeTaintsPolicy="Honor").tolerates("gpu", effect="NoSchedule")
    .tolerates("team", "red").volume(emptyDir={}).volume_claims("data").resource_claims("gpu"),
    node("a", annotations={"note": "x"}, spec={"podCIDR": "10.0.0.0/24"}).offers({"example.com/gpu": "4"}, cpu="8").zone("z")
    .taint("gpu", "yes", effect="NoExecute").cordoned().image("web", "web:1", size=9).features("F")
    .condition("Ready", "True", since="2026-01-01T00:00:00Z"),
    resource_slice("a").pool("p", generation=2, slices=3).on("a").devices("gpu-0")
    .device("gpu-1", attributes={"model": "A", "numa": 1, "fast": True, "v": {"version": "1.2.3"}}, capacity={"memory": "40Gi"}),
    resource_slice("everywhere").pool("net").on_all_nodes().devices("nic-0"),
    resource_slice("some").on_nodes_with("zone", "a").devices("nic-0"),
    device_class("gpu").selects('device.driver == "d"').serves("example.com/gpu"),
    device_taint_rule("rule", "broken").devices(driver="d", pool="p", device="gpu-0"),
    resource_claim("c").request("gpu", count=2, cel=["true"]).request("gpu", allocationMode="All").request_first_of("big", "small")
    .alike("d/model", "request-0").alike("d/model").allocated("gpu-0", pool="a").reserved_for("web"),
    persistent_volume("v", "5Gi").on("a", "b").csi("d").bound_to("c"),
    persistent_volume("v").reachable("zone", "z").storage_class("fast").access_modes("ReadOnlyMany"),
    persistent_volume_claim("c", "5Gi").selector(disk="ssd").selected("a").bound_to("v"),
    storage_class("fast").provisioner("p").allowed("zone", "z"),
    storage_class().immediate(),
    csi_node("a").driver("d", count=3).driver("e"),
    csi_driver("d").tells_capacity(),
    storage_capacity("x", "fast", "5Gi").nodes(zone="z"),
    namespace("shop").labels(team="red"),
    service("web").selects(app="web"),
    replica_set("web").selects(app="web"),
    stateful_set("web").selects(app="web"),
    disruption_budget("b").selects(app="web").allows(1).disrupted("web"),
    pod_group("train", 8).topology("rack").disruption("PodGroup").priority(3),
    pod_group("train").basic(),
)  # fmt: skip


def named(maker: ObjectMaker[Any]) -> str:
    return f"{maker.manifest['kind']} {maker.name}"


@functools.cache
def schemas() -> Path:
    """Kubernetes' own schemas, which refuse unknown fields; read past kubernetes-validate's code, as tests/packaging does."""
    found = importlib.util.find_spec("kubernetes_validate")
    assert found is not None and found.submodule_search_locations is not None
    return Path(found.submodule_search_locations[0], "kubernetes-json-schema", KUBERNETES)


@functools.cache
def definitions() -> Registry[Any]:
    shared: Resource[Any] = Resource.from_contents(json.loads((schemas() / "_definitions.json").read_text()))
    return shared @ Registry()


@pytest.mark.parametrize("maker", MAKERS, ids=named)
def test_what_is_made_is_an_object_of_kubernetes(maker: ObjectMaker[Any]) -> None:
    manifest = maker.manifest
    group, _, version = manifest["apiVersion"].rpartition("/")
    name = "-".join(filter(None, (manifest["kind"].lower(), group.partition(".")[0], version)))
    schema = json.loads((schemas() / f"{name}.json").read_text())
    jsonschema.Draft202012Validator(schema, registry=definitions()).validate(manifest)


@pytest.mark.parametrize("maker", [*MAKERS, coscheduling_group("train", 3).timeout(9).topology("rack", required=False)], ids=named)
def test_an_object_is_decoded_as_one_of_a_manifest_is(maker: Any) -> None:
    built = maker.version("7").build()
    read = read_object(maker.version("7").manifest, "test")
    assert getattr(built, "pod", built) == getattr(read, "pod", read)


@pytest.mark.parametrize("maker", MAKERS, ids=named)
def test_a_step_leaves_the_maker_it_began_with_as_it_was(maker: ObjectMaker[Any]) -> None:
    before = json.dumps(maker.manifest)
    more = maker.labels(more="x").annotations(more="x").spec(more="x").status(more="x").namespace("shop").uid("other").version("1")
    assert json.dumps(maker.manifest) == before != json.dumps(more.manifest)


def test_the_scheduler_reads_a_pod_as_the_words_say() -> None:
    built = MAKERS[0].build()  # type: ignore[attr-defined]
    # kube-scheduler: the larger of init containers and all that runs together, sidecars in both, and the overhead on top.
    assert built.requests == {"cpu": 1010, "memory": MIB, "example.com/gpu": 1}
    assert (built.key, built.uid, built.node_name, built.scheduler_name, built.priority) == ("default/web", "uid-web", "a", "packer", 5)
    assert built.terminating
    assert built.host_ports == (("UDP", 80, "10.0.0.1"),)
    zone, rack = built.pod.spec.topology_spread_constraints
    assert zone.label_selector.match_labels == built.labels
    assert (rack.max_skew, rack.when_unsatisfiable, rack.label_selector.match_labels) == (2, "ScheduleAnyway", {"app": "db"})


def test_a_pod_spreads_with_the_labels_that_it_gets_later() -> None:
    (constraint,) = pod("web").spread("zone").labels(app="web").build().pod.spec.topology_spread_constraints or ()
    assert constraint.label_selector is not None
    assert constraint.label_selector.match_labels == {"app": "web"}


def test_a_plain_pod_asks_for_nothing_and_a_plain_node_offers_what_the_page_says() -> None:
    assert pod("web").build().requests == {}
    plain = node("a").build()
    assert plain.status.allocatable == {"cpu": "4", "memory": "16Gi", "pods": "110"}
    assert plain.metadata.labels == {"kubernetes.io/hostname": "a"}


def test_the_words_of_earlier_versions_say_the_same() -> None:
    before = pod("web", on="a", labels={"app": "web"}, annotations={"x": "y"}, cpu="1", memory="1Gi", nodeSelector={"disk": "ssd"})
    now = pod("web").on("a").labels(app="web").annotations(x="y").requests(cpu="1", memory="1Gi").node_selector(disk="ssd")
    assert before.manifest == now.manifest
    assert node("a", labels={"x": "y"}, cpu="8").manifest == node("a").labels(x="y").offers(cpu="8").manifest


def test_every_build_is_a_newer_version_unless_one_is_set() -> None:
    web = pod("web")
    first, second = (int(web.build().pod.metadata.resource_version) for _ in range(2))
    assert first < second
    assert web.version("7").build().pod.metadata.resource_version == "7"


def test_pods_of_one_name_in_two_namespaces_have_two_uids() -> None:
    assert pod("web").build().uid != pod("web").namespace("shop").build().uid


def test_what_cannot_be_decoded_names_the_field() -> None:
    with pytest.raises(DecodeError, match=r"Expected `bool`.*hostNetwork"):
        pod("web", hostNetwork="yes").build()
    with pytest.raises(QuantityError):
        pod("web").requests(cpu="much").build()


def test_a_profile_is_resolved_as_one_of_a_file_is() -> None:
    packed = (
        profile("packed").scheduler("packer").enable("DeviceFragmentation", weight=4).disable("ImageLocality").weights(TaintToleration=7)
    )
    packed = packed.args("NodeResourcesFit", scoringStrategy={"type": "MostAllocated"}).backoff(initial=2, longest=8)
    resolved = packed.generation(3).resolved()
    assert (resolved.name, resolved.scheduler_name, resolved.generation) == ("packed", "packer", 3)
    assert (resolved.settings.backoff.initial_seconds, resolved.settings.backoff.max_seconds) == (2, 8)
    assert "ImageLocality" not in resolved.weights
    assert (resolved.weights["DeviceFragmentation"], resolved.weights["TaintToleration"]) == (4, 7)


def test_a_profile_of_a_few_plugins_runs_these_and_what_no_profile_lacks() -> None:
    points = profile().only("NodeName").resolved().points
    assert {plugin for names in points.values() for plugin in names} == {"PrioritySort", "NodeName", "DefaultBinder"}


def test_built_builds_what_a_maker_makes_and_leaves_all_else_alone() -> None:
    web = pod("web").version("7")
    assert built(web).pod == web.build().pod
    assert built(node("a").version("7")) == node("a").version("7").build()
    for thing in (built(web), "web", None):
        assert built(thing) is thing
