"""What is told of a pod that no node can hold is true: with the change made to the objects, the pod fits where it was said to."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placewright import testing as kit
from placewright.api.profile import default_profile
from placewright.explain.explanation import CurrentVerdict, evaluated
from placewright.explain.nearestmiss import Miss
from placewright.explain.words import beyond_line
from placewright.framework.remedies import Remedy, RemedyKind
from placewright.offline.world import OfflineCluster, offline_evaluator, world_from
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright_lab.simulation.evaluation import evaluate_pod
from randomcases import cases

Object = dict[str, Any]
PROFILE = resolve(default_profile(), in_tree())
ZONE = "topology.kubernetes.io/zone"


def a_node(
    name: str, *, cpu: int = 4000, pods: int = 10, taints: list[Object] | None = None, cordoned: bool = False, **labels: str
) -> Object:
    made = kit.node(name, cpu=f"{cpu}m", memory="8Gi", pods=str(pods)).spec(taints=taints or [], unschedulable=cordoned)
    made = made.labels({key.replace("zone", ZONE): value for key, value in labels.items()})
    return (made.taint("node.kubernetes.io/unschedulable") if cordoned else made).manifest


def a_pod(name: str, on: str = "", *, cpu: int = 100, port: int = 0, labels: Object | None = None, **spec: Any) -> Object:
    made = kit.pod(name, on=on, labels=labels, cpu=f"{cpu}m", **spec).uid(name)
    return (made.host_port(port) if port else made).manifest


def now(objects: list[Object], pending: str = "p") -> CurrentVerdict:
    world = world_from(objects, "test")
    return evaluated(evaluator(world), world.cluster, world.pending[f"default/{pending}"])


def evaluator(world: OfflineCluster) -> Any:
    return offline_evaluator(PROFILE, in_tree(), world.cluster)


def fitting(objects: list[Object]) -> set[str]:
    """Nodes that can hold the pod `p`, by the command `evaluate`, on a cluster made anew."""
    world = world_from(objects, "test")
    verdict = evaluate_pod(evaluator(world), world.cluster, world.pending["default/p"])
    assert not verdict.error
    return {each.node for each in verdict.nodes if each.fits}


def with_changes(objects: list[Object], miss: Miss) -> list[Object]:
    """The objects as the miss wants them."""
    after = copy.deepcopy(objects)
    for change in miss.changes:
        after = apply(after, miss.node, change)
    return after


def apply(objects: list[Object], name: str, change: Remedy) -> list[Object]:  # noqa: C901 - a case for each kind
    (the_node,) = [each for each in objects if each["kind"] == "Node" and each["metadata"]["name"] == name]
    (the_pod,) = [each for each in objects if each["kind"] == "Pod" and each["metadata"]["name"] == "p"]
    allocatable, labels = the_node["status"]["allocatable"], the_node["metadata"]["labels"]
    match change.kind:
        case RemedyKind.MORE_RESOURCES:
            assert change.resources.keys() <= {"cpu"}
            allocatable["cpu"] = f"{int(allocatable['cpu'][:-1]) + change.resources['cpu']}m"
        case RemedyKind.FEWER_PODS:
            allocatable["pods"] = str(int(allocatable["pods"]) + change.resources["pods"])
        case RemedyKind.TOLERATION:
            more = [{"key": t.key, "operator": "Equal", "value": t.value, "effect": t.effect} for t in change.tolerations]
            the_pod["spec"]["tolerations"] = [*the_pod["spec"].get("tolerations", []), *more]
        case RemedyKind.UNCORDON:
            the_node["spec"]["unschedulable"] = False
            the_node["spec"]["taints"] = [t for t in the_node["spec"]["taints"] if t["key"] != "node.kubernetes.io/unschedulable"]
        case RemedyKind.LABELS:
            labels.update({key: value for key, value in change.labels.items() if value is not None})
            for key in [key for key, value in change.labels.items() if value is None]:
                del labels[key]
        case RemedyKind.REMOVE_PODS:
            keys = [key.partition("/")[2] for key in change.pods]
            assert keys
            objects = [each for each in objects if each["kind"] != "Pod" or each["metadata"]["name"] not in keys]
        case RemedyKind.MAX_SKEW:
            for constraint in the_pod["spec"]["topologySpreadConstraints"]:
                if constraint["topologyKey"] == change.topology_key:
                    constraint["maxSkew"] = max(constraint["maxSkew"], change.max_skew)
        case RemedyKind.ADD_POD:
            extra = a_pod(f"added-{len(objects)}", name, cpu=0, labels=dict(change.labels))
            extra["metadata"]["namespace"] = change.namespace
            objects.append(extra)
        case RemedyKind.TOLD:
            pytest.fail("a change that is only told cannot be made")
    return objects


def _is_number_or_absent(value: str | None) -> bool:
    return not value or value.isdigit()


def hold_to_it(objects: list[Object]) -> tuple[Miss, ...]:
    found = now(objects)
    assert sum(each.nodes for each in found.refusals) + found.feasible == found.nodes
    assert fitting(objects) == set() if found.misses else True
    there = {pair for each in objects if each["kind"] == "Node" for pair in each["metadata"]["labels"].items()}
    for miss in found.misses:
        for change in miss.changes:
            if change.kind is RemedyKind.LABELS and len(change.labels) == 1 and not any(map(_is_number_or_absent, change.labels.values())):
                assert ("no node has" in change.text) == there.isdisjoint(change.labels.items())
        if miss.told_only:
            continue
        opened = fitting(with_changes(objects, miss))
        assert miss.node in opened, (miss, opened)
        if miss.of_the_pod:
            assert len(opened) == miss.nodes
    return found.misses


# --- each filter -------------------------------------------------------------------------------------------------------------------


def test_the_smallest_deficit_is_told_and_by_how_much() -> None:
    objects = [a_node("n-0", cpu=1000), a_node("n-1", cpu=2000), a_pod("a", "n-1", cpu=300), a_pod("p", cpu=2000)]
    first, second = hold_to_it(objects)
    assert (first.node, first.changes[0].resources, first.changes[0].text) == ("n-1", {"cpu": 300}, "300m more cpu")
    assert (second.node, second.changes[0].resources) == ("n-0", {"cpu": 1000})


def test_a_toleration_is_told_with_the_number_of_nodes_that_it_opens() -> None:
    gpu = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    objects = [*(a_node(f"n-{i}", taints=gpu) for i in range(12)), a_node("full", cpu=50), a_pod("p")]
    misses = hold_to_it(objects)
    assert any((miss.nodes, miss.changes[0].text) == (12, "a toleration for taint gpu=yes:NoSchedule") for miss in misses)


def test_a_cordoned_node_needs_one_change_though_two_filters_reject_it() -> None:
    (miss,) = hold_to_it([a_node("n-0", cordoned=True), a_pod("p")])
    assert [change.kind for change in miss.changes] == [RemedyKind.UNCORDON]


def test_missing_labels_are_told() -> None:
    wanted = [{"key": "disk", "operator": "In", "values": ["ssd"]}, {"key": "age", "operator": "Lt", "values": ["3"]}]
    terms = [{"matchExpressions": wanted}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    objects = [a_node("n-0", disk="hdd"), a_node("n-1", age="2"), a_pod("p", affinity=affinity, nodeSelector={"pool": "a"})]
    misses = hold_to_it(objects)
    assert {miss.node: miss.changes[0].labels for miss in misses} == {
        "n-0": {"pool": "a", "disk": "ssd", "age": "2"},
        "n-1": {"pool": "a", "disk": "ssd"},
    }


ZONES = [a_node(f"n-{i}", zone=f"zone-{i % 3}", disk="ssd") for i in range(9)]


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ({ZONE: "zone-9"}, f"label {ZONE}=zone-9 (no node has that label; there is {ZONE}=zone-2)"),
        ({ZONE: "mars"}, f"label {ZONE}=mars (no node has that label; there is {ZONE}=zone-0, zone-1, zone-2)"),
        ({"kubernetes.io/hostname": "n5"}, "label kubernetes.io/hostname=n5 (no node has that label; there is kubernetes.io/hostname=n-5)"),
        ({"kubernetes.io/hostname": "x"}, "kubernetes.io/hostname=n-0, n-1, n-2 and 6 more)"),
        ({"disk": "sdd"}, "label disk=sdd (no node has that label; there is disk=ssd)"),
        ({"dsk": "ssd"}, "label dsk=ssd (no node has a label dsk; there is disk)"),
        ({"quite": "another"}, "label quite=another (no node has a label quite)"),
    ],
)
def test_a_label_that_no_node_has_is_told_with_the_one_that_was_likely_meant(selector: dict[str, str], told: str) -> None:
    (miss,) = hold_to_it([*ZONES, a_pod("p", nodeSelector=selector)])
    assert miss.changes[0].text.endswith(told) and miss.nodes == 9


def test_zone_and_host_labels_are_told_where_other_things_keep_the_pod_off_the_nodes_that_have_them() -> None:
    full = [a_node(f"n-{i}", cpu=100 if i == 1 else 4000, zone=f"zone-{i}") for i in range(3)]
    misses = hold_to_it([*full, a_pod("p", cpu=500, nodeSelector={ZONE: "zone-1"})])
    assert misses[0].changes[0].text == "400m more cpu", "n-0 is large enough"
    assert {change.text for miss in misses for change in miss.changes if change.plugin == "NodeAffinity"} == {f"needs label {ZONE}=zone-1"}


def test_of_several_values_that_would_do_one_that_a_node_has_is_told() -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["hdd", "nvme", "ssd"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    objects = [a_node("n-0"), a_node("n-1", cpu=50, disk="ssd"), a_pod("p", affinity=affinity)]
    assert "label disk=ssd" in {change.text for miss in hold_to_it(objects) for change in miss.changes}


@pytest.mark.parametrize(
    ("requests", "lead", "told"),
    [
        ({"cpu": "17"}, "more cpu than any node has (the largest has 16000m)", "1000m more cpu"),
        ({"memory": "9Gi"}, "more memory than any node has (the largest has 8192Mi)", "1024Mi more memory"),
        ({"nvidia.com/gpu": "2"}, "nvidia.com/gpu, which no node has", "2 more nvidia.com/gpu"),
    ],
)
def test_a_pod_that_is_larger_than_every_node_is_told_so_before_all_else(requests: dict[str, str], lead: str, told: str) -> None:
    large = a_pod("p")
    large["spec"]["containers"][0]["resources"]["requests"] = requests
    found = now([a_node("n-0", cpu=16000), a_node("n-1", cpu=8000), a_pod("busy", "n-0", cpu=0), large])
    assert found.misses[0].changes[0].text == told
    assert beyond_line(found.misses) == f"it asks for {lead}"


def test_a_pod_that_some_node_could_hold_if_it_were_empty_is_not_told_that_it_is_too_large() -> None:
    misses = hold_to_it([a_node("n-0", cpu=1000), a_node("n-1", cpu=2000), a_pod("a", "n-1", cpu=300), a_pod("p", cpu=2000)])
    assert beyond_line(misses) == ""


def test_the_pod_that_holds_a_host_port_is_named() -> None:
    (miss,) = hold_to_it([a_node("n-0"), a_pod("x", "n-0", port=8080), a_pod("p", port=8080)])
    assert miss.changes[0].pods == ("default/x",)
    assert miss.changes[0].text == "host port 8080/TCP free, which pod default/x holds"


def test_the_skew_is_told_with_the_domain() -> None:
    spread = [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "a"}}}]
    placed = [a_pod(f"a-{i}", "n-0", labels={"app": "a"}) for i in range(3)]
    objects = [a_node("n-0", zone="z0"), a_node("n-1", zone="z1", cpu=10), *placed]
    misses = hold_to_it([*objects, a_pod("p", labels={"app": "a"}, topologySpreadConstraints=spread)])
    (wider,) = [miss for miss in misses if miss.changes[0].kind is RemedyKind.MAX_SKEW]
    assert (wider.node, wider.changes[0].max_skew) == ("n-0", 4)
    assert "z0 has 3 matching pods, the emptiest domain 0" in wider.changes[0].text


def test_affinity_tells_which_pods_are_wanted_or_in_the_way() -> None:
    def terms(kind: str, app: str) -> Object:
        term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": app}}}
        return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    objects = [a_node("n-0", zone="z0"), a_node("n-1", zone="z1")]
    (wanted,) = hold_to_it([*objects, a_pod("p", affinity=terms("podAffinity", "db"))])[:1]
    assert (wanted.changes[0].kind, wanted.changes[0].labels) == (RemedyKind.ADD_POD, {"app": "db"})
    others = [a_pod(f"db-{i}", f"n-{i}", labels={"app": "db"}) for i in range(2)]
    misses = hold_to_it([*objects, *others, a_pod("p", affinity=terms("podAntiAffinity", "db"))])
    assert {miss.changes[0].pods for miss in misses} == {("default/db-0",), ("default/db-1",)}
    shy = [a_pod(f"shy-{i}", f"n-{i}", affinity=terms("podAntiAffinity", "p")) for i in range(2)]
    misses = hold_to_it([*objects, *shy, a_pod("p", labels={"app": "p"})])
    assert {miss.changes[0].pods for miss in misses} == {("default/shy-0",), ("default/shy-1",)}


def test_a_claim_that_does_not_exist_leaves_nothing_to_change_on_nodes() -> None:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "none"}}]
    found = now([a_node("n-0"), a_node("n-1"), a_pod("p", volumes=volumes)])
    assert found.misses == ()
    assert [(each.nodes, "none" in each.reason) for each in found.refusals] == [(2, True)]


def test_a_pod_that_fits_somewhere_misses_nothing() -> None:
    found = now([a_node("n-0"), a_node("n-1", cpu=10), a_pod("p")])
    assert (found.misses, found.feasible, [best.node for best in found.best]) == ((), 1, ["n-0"])


# --- any cluster -------------------------------------------------------------------------------------------------------------------

APPS = st.sampled_from(["a", "b"])
TAINTS = st.sampled_from([[], [], [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}], [{"key": "old", "effect": "NoExecute"}]])
NODES = st.lists(
    st.fixed_dictionaries(
        {"cpu": st.sampled_from([200, 1000, 4000]), "pods": st.sampled_from([1, 2, 10]), "taints": TAINTS, "cordoned": st.booleans()},
        optional={"zone": st.sampled_from(["z0", "z1", "z2"]), "disk": st.sampled_from(["ssd", "hdd"])},
    ),
    min_size=1,
    max_size=6,
)


def affinity_terms(key: str, app: str) -> Object:
    return {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}]}


@pytest.mark.parametrize(("crowded", "told"), [(False, ["n-0"]), (True, [])])
def test_labels_that_would_make_a_nodes_own_pods_count_are_no_near_miss_where_these_crowd_it(crowded: bool, told: list[str]) -> None:
    hostname = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    spread = [{**hostname, "labelSelector": {"matchLabels": {"app": "a"}}}]
    standing = a_pod("x", "n-0", labels={"app": "a" if crowded else "b"})
    pending = a_pod("p", labels={"app": "a"}, nodeSelector={"disk": "ssd"}, topologySpreadConstraints=spread)
    misses = hold_to_it([a_node("n-0"), a_node("n-1", cpu=50, disk="ssd", cordoned=True), standing, pending])
    assert [miss.node for miss in misses if miss.changes[0].kind is RemedyKind.LABELS] == told


KEYS = st.sampled_from([ZONE, "kubernetes.io/hostname"])
AFFINITY = st.fixed_dictionaries({}, optional={
    "podAffinity": st.builds(affinity_terms, KEYS, APPS), "podAntiAffinity": st.builds(affinity_terms, KEYS, APPS),
})  # fmt: skip
SPREAD = st.lists(
    st.builds(
        lambda key, app: {
            "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": app}}
        },
        KEYS, APPS,
    ), max_size=2, unique_by=lambda each: each["topologyKey"],
)  # fmt: skip
PENDING = st.fixed_dictionaries(
    {"cpu": st.sampled_from([100, 900, 5000])},
    optional={
        "port": st.just(80),
        "labels": st.builds(lambda app: {"app": app}, APPS),
        "affinity": AFFINITY,
        "topologySpreadConstraints": SPREAD,
        "nodeSelector": st.just({"disk": "ssd"}),
        "tolerations": st.just([{"key": "old", "operator": "Exists"}]),
    },
)
PLACED = st.lists(
    st.tuples(st.integers(0, 5), st.fixed_dictionaries(
        {"cpu": st.sampled_from([0, 300, 3000])},
        optional={"port": st.just(80), "labels": st.builds(lambda app: {"app": app}, APPS), "affinity": AFFINITY},
    )), max_size=8,
)  # fmt: skip


@settings(max_examples=cases(300))
@given(NODES, PLACED, PENDING)
def test_what_is_told_is_true_of_any_cluster(nodes: list[Object], placed: list[tuple[int, Object]], pending: Object) -> None:
    objects = [a_node(f"n-{i}", **each) for i, each in enumerate(nodes)]
    objects += [a_pod(f"x-{i}", f"n-{where % len(nodes)}", **each) for i, (where, each) in enumerate(placed)]
    misses = hold_to_it([*objects, a_pod("p", **pending)])
    assert len(misses) <= 5
