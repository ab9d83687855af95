"""How much a pod asks for is counted from its spec, and a pod beyond a limit is told which one, by how much, and where it says so."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from placewright import testing as kit
from placewright.api.decode import convert
from placewright.api.objects import Pod
from placewright.api.podextent import EXTENT_LIMITS, SMALL, ExtentLimit, PodExtent, estimated_work
from placewright.api.pods import PodInfo
from randomcases import cases

Body = dict[str, Any]


def a_pod(labels: dict[str, str] | None = None, **spec: Any) -> PodInfo:
    return kit.pod("p", labels=labels, **spec).build()


def terms(count: int, **term: Any) -> Body:
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", **term}] * count}}


def node_terms(count: int, *expressions: Body) -> Body:
    listed = [{"matchExpressions": list(expressions)}] * count
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}}


def requests(count: int) -> Body:
    return {"name": "c", "resources": {"requests": {f"example.com/r{i}": "1" for i in range(count)}}}


def expressions(count: int) -> list[Body]:
    return [{"key": f"k{i}", "operator": "Exists"} for i in range(count)]


def values(count: int) -> list[Body]:
    return [{"key": "k", "operator": "In", "values": [f"v{i}" for i in range(count)]}]


#: Bytes of metadata and spec of a pod that has a label and nothing else, without the label's value.
BARE = len('{"labels":{"l":""}}{}')
#: By count, a pod that has so many of it and hardly anything else.
WITH: dict[str, Callable[[int], PodInfo]] = {
    "constraints": lambda n: a_pod(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": f"k{i}"} for i in range(n)]),
    "pod_terms": lambda n: a_pod(affinity=terms(n)),
    "pod_requirements": lambda n: a_pod(affinity=terms(1, labelSelector={"matchExpressions": expressions(n)})),
    "pod_values": lambda n: a_pod(affinity=terms(1, namespaceSelector={"matchExpressions": values(n)})),
    "namespaces": lambda n: a_pod(affinity=terms(1, namespaces=[f"n{i}" for i in range(n)])),
    "node_terms": lambda n: a_pod(affinity=node_terms(n)),
    "node_requirements": lambda n: a_pod(nodeSelector={f"k{i}": "v" for i in range(n)}),
    "node_values": lambda n: a_pod(affinity=node_terms(1, *values(n))),
    "tolerations": lambda n: a_pod(tolerations=[{"key": f"k{i}", "operator": "Exists"} for i in range(n)]),
    "containers": lambda n: a_pod(containers=[{"name": "c"}], initContainers=[{"name": f"i{i}"} for i in range(n - 1)]),
    "claims": lambda n: a_pod(resourceClaims=[{"name": f"c{i}", "resourceClaimName": f"c{i}"} for i in range(n)]),
    "labels": lambda n: a_pod({f"k{i}": "v" for i in range(n)}),
    "resources": lambda n: a_pod(containers=[requests(n)]),
    "host_ports": lambda n: a_pod(containers=[{"name": "c", "ports": [{"hostPort": 1 + i} for i in range(n)]}]),
    "volumes": lambda n: a_pod(volumes=[{"name": f"v{i}", "persistentVolumeClaim": {"claimName": f"c{i}"}} for i in range(n)]),
    "nbytes": lambda n: PodInfo(convert({"metadata": {"labels": {"l": "x" * (n - BARE)}}}, Pod)),
}


def test_every_count_has_a_limit() -> None:
    assert {limit.counted for limit in EXTENT_LIMITS} == set(WITH) == {*PodExtent.__struct_fields__} - {"excess"}


@pytest.mark.parametrize("limit", EXTENT_LIMITS, ids=lambda limit: limit.counted)
def test_a_pod_at_a_limit_is_decided_and_one_beyond_it_is_told_field_number_and_limit(limit: ExtentLimit) -> None:
    made = WITH[limit.counted]
    at, beyond = made(limit.most), made(limit.most + 1)
    assert (getattr(at.extent, limit.counted), at.extent.excess) == (limit.most, "")
    assert getattr(beyond.extent, limit.counted) == limit.most + 1
    told = f"{limit.field}: {limit.most + 1} {limit.things}; this scheduler places pods with at most {limit.most}"
    assert beyond.extent.excess == told


@pytest.mark.parametrize("limit", EXTENT_LIMITS, ids=lambda limit: limit.counted)
def test_the_limits_are_written_where_people_look_for_them(limit: ExtentLimit) -> None:
    page = (Path(__file__).parents[2] / "docs" / "security-reference.md").read_text()
    assert f"| {limit.field} | {limit.most:,} {limit.things} |" in page


def test_a_selector_of_a_constraint_and_its_match_label_keys_count_as_requirements() -> None:
    selector = {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "In", "values": ["1", "2"]}]}
    one = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": selector, "matchLabelKeys": ["c", "d"]}
    extent = a_pod(topologySpreadConstraints=[one]).extent
    assert (extent.constraints, extent.pod_requirements, extent.pod_values) == (1, 4, 3)


def test_preferred_terms_count_as_required_ones() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "1"}}, "namespaces": ["x"]}
    side = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}] * 2}
    preference = {"weight": 1, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}}
    nodes = {"preferredDuringSchedulingIgnoredDuringExecution": [preference] * 3}
    extent = a_pod(affinity={"podAffinity": side, "podAntiAffinity": side, "nodeAffinity": nodes}).extent
    assert (extent.pod_terms, extent.pod_requirements, extent.namespaces) == (4, 4, 4)
    assert (extent.node_terms, extent.node_requirements, extent.node_values) == (3, 3, 3)


def test_ordinary_pods_are_not_counted_one_by_one() -> None:
    tolerations = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}] * 2
    ordinary = a_pod({"app": "web"}, tolerations=tolerations, nodeSelector={"disk": "ssd"}, containers=[requests(2)] * 3)
    assert ordinary.extent is SMALL


@pytest.mark.parametrize("limit", EXTENT_LIMITS, ids=lambda limit: limit.counted)
def test_the_estimated_work_grows_with_each_count_and_with_the_nodes_and_no_faster(limit: ExtentLimit) -> None:
    few, many = WITH[limit.counted](limit.most // 4), WITH[limit.counted](limit.most // 2)
    more = estimated_work(many.extent, 1000) - estimated_work(few.extent, 1000)
    assert 0 < more <= estimated_work(few.extent, 1000)
    assert estimated_work(few.extent, 1000) < estimated_work(few.extent, 2000) <= 2 * estimated_work(few.extent, 1000)


def test_the_work_of_an_ordinary_pod_is_some_columns_of_all_nodes() -> None:
    assert estimated_work(a_pod().extent, 5000) == 16 * 5000


def all_lists(value: Any) -> Iterator[tuple[str, int]]:
    """Every list and map of a manifest, by the field that holds it."""
    for key, each in value.items() if isinstance(value, dict) else ():
        if isinstance(each, (list, dict)):
            yield key, len(each)
        for inner in each if isinstance(each, list) else [each]:
            yield from all_lists(inner)


def random_affinity(rng: random.Random) -> Body:
    def selector() -> Body:
        listed = [{"key": "k", "operator": "In", "values": ["v"] * rng.randrange(1, 4)} for _ in range(rng.randrange(3))]
        return {"matchLabels": {f"l{i}": "v" for i in range(rng.randrange(3))}, "matchExpressions": listed}

    def term() -> Body:
        return {"topologyKey": "zone", "labelSelector": selector(), "namespaceSelector": selector(), "namespaces": ["n"] * rng.randrange(3)}

    def side() -> Body:
        weighted = [{"weight": 1, "podAffinityTerm": term()} for _ in range(rng.randrange(3))]
        required = [term() for _ in range(rng.randrange(3))]
        return {"requiredDuringSchedulingIgnoredDuringExecution": required, "preferredDuringSchedulingIgnoredDuringExecution": weighted}

    return {"podAffinity": side(), "podAntiAffinity": side()}


@pytest.mark.parametrize("seed", range(cases(50)))
def test_what_terms_demand_is_what_a_walk_through_the_manifest_finds(seed: int) -> None:
    affinity = random_affinity(random.Random(seed))
    found = list(all_lists(affinity))
    extent = a_pod(affinity=affinity).extent
    of = {name: sum(number for key, number in found if key == name) for name, _ in found}
    assert extent.pod_terms == sum(number for key, number in found if key.endswith("DuringExecution"))
    assert extent.namespaces == of.get("namespaces", 0)
    assert extent.pod_requirements == of.get("matchLabels", 0) + of.get("matchExpressions", 0)
    assert extent.pod_values == of.get("matchLabels", 0) + of.get("values", 0)
