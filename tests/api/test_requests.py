"""What a pod asks for: containers, the moments of its start, what it costs to run at all, and what is said of the pod as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.api.decode import convert
from placewright.api.objects import PodSpec
from placewright.api.quantity import QuantityError
from placewright.api.requests import (
    canonical,
    is_extended_resource,
    is_scalar_resource,
    pod_requests,
    scoring_requests,
    scoring_requests_of_containers,
)

MIB = 1024 * 1024


def asks(**requests: Any) -> dict[str, Any]:
    return {"resources": {"requests": requests}}


def sidecar(**requests: Any) -> dict[str, Any]:
    return {"restartPolicy": "Always", **asks(**requests)}


def spec(*containers: dict[str, Any], init: tuple[dict[str, Any], ...] = (), **rest: Any) -> PodSpec:
    return convert({"containers": list(containers), "initContainers": list(init), **rest}, PodSpec)


@pytest.mark.parametrize(
    ("found", "cpu"),
    [
        pytest.param(spec(asks(cpu="100m"), asks(cpu="0.2")), 300, id="containers run together"),
        pytest.param(spec(asks(cpu="1"), init=(asks(cpu="3"), asks(cpu="2"))), 3000, id="ordinary init containers run one by one"),
        pytest.param(spec(asks(cpu="1"), init=(sidecar(cpu="2"),)), 3000, id="a sidecar runs beside the containers"),
        pytest.param(spec(asks(cpu="1"), init=(sidecar(cpu="2"), asks(cpu="4"))), 6000, id="an init container after it runs beside it"),
        pytest.param(spec(asks(cpu="1"), init=(asks(cpu="4"), sidecar(cpu="2"))), 4000, id="one before it does not"),
        pytest.param(spec(asks(cpu="1"), overhead={"cpu": "250m"}), 1250, id="overhead is added"),
        pytest.param(spec(asks(cpu="1"), init=(asks(cpu="3"),), overhead={"cpu": "250m"}), 3250, id="overhead is added to the start too"),
        pytest.param(spec(asks(cpu="1"), resources={"requests": {"cpu": "5"}}), 5000, id="what the pod says replaces the sum"),
        pytest.param(spec(asks(cpu="1"), resources={"requests": {"cpu": "5"}}, overhead={"cpu": "1"}), 6000, id="but not the overhead"),
        pytest.param(spec(asks(cpu="1"), resources={"requests": {"memory": "5"}}), 1000, id="only where it says something"),
        pytest.param(spec(asks(cpu="0.3m"), asks(cpu="0.3m")), 1, id="sums are rounded, not what is summed"),
        pytest.param(spec(), 0, id="nothing"),
    ],
)
def test_cpu_of_a_pod(found: PodSpec, cpu: int) -> None:
    assert pod_requests(found).get("cpu", 0) == cpu


def test_each_resource_has_its_own_neediest_moment() -> None:
    found = pod_requests(spec(asks(cpu="1", memory="10"), init=(asks(cpu="2", memory="5"),)))
    assert found == {"cpu": 2000, "memory": 10}


def test_resources_that_no_node_counts_are_left_out() -> None:
    found = pod_requests(spec(asks(**{"pods": "1", "storage": "1Gi", "bananas": 1, "vendor.com/gpu": 2, "hugepages-2Mi": "4Mi"})))
    assert found == {"vendor.com/gpu": 2, "hugepages-2Mi": 4 * MIB}


def test_extended_resources_are_not_set_for_the_pod_as_a_whole() -> None:
    found = pod_requests(spec(asks(), resources={"requests": {"vendor.com/gpu": 3, "hugepages-2Mi": "2Mi"}}))
    assert found == {"hugepages-2Mi": 2 * MIB}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(spec({}, {}), (200, 400 * MIB), id="a default for each container that says nothing"),
        pytest.param(spec(asks(cpu="0", memory="0")), (0, 0), id="an explicit zero is a zero"),
        pytest.param(spec(asks(cpu="1")), (1000, 200 * MIB), id="only for what is missing"),
        pytest.param(spec(asks(cpu="50m", memory="1Mi"), init=({},)), (100, 200 * MIB), id="init containers have it too"),
        pytest.param(spec(asks(cpu="50m", memory="1Mi"), init=({"restartPolicy": "Always"},)), (150, 201 * MIB), id="and sidecars"),
        pytest.param(spec({}, resources={"requests": {"cpu": "2"}}), (2000, 200 * MIB), id="not where the pod says something"),
        pytest.param(spec({}, overhead={"cpu": "1"}), (1100, 200 * MIB), id="overhead is added"),
    ],
)
def test_scoring_counts_silent_containers_with_a_default(found: PodSpec, expected: tuple[int, int]) -> None:
    assert scoring_requests(found) == expected


def test_what_containers_alone_ask_for_knows_nothing_of_the_pod_as_a_whole() -> None:
    found = spec(asks(cpu="1"), {}, resources={"requests": {"cpu": "9", "memory": "1"}}, overhead={"cpu": "100m"})
    assert scoring_requests_of_containers(found) == {"cpu": 1200, "memory": 400 * MIB}


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        ("vendor.com/gpu", True, True),
        ("kubernetes.io/thing", False, True),
        ("x.kubernetes.io/thing", False, True),
        ("hugepages-1Gi", False, True),
        ("attachable-volumes-csi-x", False, True),
        ("cpu", False, False),
        ("ephemeral-storage", False, False),
        ("requests.vendor.com/gpu", False, False),
        ("bananas", False, False),
    ],
)
def test_resource_names_are_sorted_as_upstream_sorts_them(name: str, extended: bool, scalar: bool) -> None:
    assert is_extended_resource(name) is extended
    assert is_scalar_resource(name) is scalar


def test_a_resource_list_is_read_in_the_units_of_the_columns() -> None:
    assert canonical({"cpu": "1.5", "memory": "1Ki", "pods": 110}) == {"cpu": 1500, "memory": 1024, "pods": 110}


@pytest.mark.parametrize("found", [spec(asks(cpu="lots")), spec({}, overhead={"cpu": "?"}), spec({}, resources={"requests": {"cpu": ""}})])
def test_a_bad_quantity_anywhere_is_told(found: PodSpec) -> None:
    with pytest.raises(QuantityError):
        pod_requests(found)
