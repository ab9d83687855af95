"""What a pod asks for: containers, the moments of its start, what it costs to run at all, and what is said of the pod as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.api.decode import convert
from placewright.api.objects import Pod, PodSpec
from placewright.api.pods import PodInfo
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
        pytest.param(
            spec(asks(cpu="1"), {}, resources={"requests": {"memory": "5Mi"}}), (1000, 5 * MIB), id="nor where a container does, then"
        ),
        pytest.param(
            spec({}, {}, resources={"requests": {"memory": "5Mi"}}), (200, 5 * MIB), id="but for what neither says, container by container"
        ),
        pytest.param(
            spec({}, resources={"requests": {"memory": "5Mi"}}, overhead={"cpu": "1"}), (1000, 5 * MIB), id="overhead says something too"
        ),
        pytest.param(
            spec({}, resources={"requests": {"vendor.com/gpu": "1"}}), (100, 200 * MIB), id="what cannot be said of the pod is not said"
        ),
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


# --- resize in place ---------------------------------------------------------------------------------------------------------------

INFEASIBLE = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}
DEFERRED = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]}
IN_PROGRESS = {"conditions": [{"type": "PodResizeInProgress", "status": "True", "reason": "Infeasible"}]}


def says(name: str, allocated: dict[str, Any] | None = None, **running: Any) -> dict[str, Any]:
    """A container's status: what it runs with, and what the node has set aside."""
    return {"name": name, "resources": {"requests": running}} | ({"allocatedResources": allocated} if allocated is not None else {})


def named(name: str, container: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, **container}


def main(**requests: Any) -> dict[str, Any]:
    return named("main", asks(**requests))


def running(*containers: dict[str, Any], status: dict[str, Any], node: str = "n", **rest: Any) -> PodInfo:
    body = {"containers": list(containers), "nodeName": node} | rest
    return PodInfo(convert({"metadata": {"name": "p"}, "spec": body, "status": status}, Pod))


def reports(*containers: dict[str, Any], **rest: Any) -> dict[str, Any]:
    return {"containerStatuses": list(containers), **rest}


@pytest.mark.parametrize(
    ("found", "cpu"),
    [
        pytest.param(running(main(cpu="2"), status={}), 2000, id="nothing reported"),
        pytest.param(running(main(cpu="2"), status=reports({"name": "main"})), 2000, id="a status without resources"),
        pytest.param(running(main(cpu="2"), status=reports(says("main", {"cpu": "2"}, cpu="2"))), 2000, id="all is as wished"),
        pytest.param(running(main(cpu="2"), status=reports(says("main", {"cpu": "1"}, cpu="1"))), 2000, id="growing: the wish"),
        pytest.param(running(main(cpu="1"), status=reports(says("main", {"cpu": "1"}, cpu="2"))), 2000, id="shrinking: what it runs with"),
        pytest.param(running(main(cpu="1"), status=reports(says("main", {"cpu": "3"}, cpu="2"))), 3000, id="what is set aside"),
        pytest.param(running(main(cpu="1000m"), status=reports(says("main", {"cpu": "1"}, cpu="1"))), 1000, id="other words for the same"),
        pytest.param(running(main(cpu="2"), status=reports(says("main", cpu="1"))), 2000, id="nothing set aside"),
        pytest.param(running(main(cpu="1"), status=reports({"name": "main", "allocatedResources": {"cpu": "3"}})), 1000, id="set aside"),
        pytest.param(running(main(), status=reports(says("main", {"cpu": "1"}, cpu="2"))), 2000, id="a wish for nothing"),
        pytest.param(running(main(cpu="1"), status=reports(says("other", {"cpu": "9"}, cpu="9"))), 1000, id="of another container"),
        pytest.param(
            running(main(cpu="9"), status=reports(says("main", {"cpu": "1"}, cpu="2"), **INFEASIBLE)), 2000, id="a wish that cannot be"
        ),
        pytest.param(running(main(cpu="9"), status=INFEASIBLE), 9000, id="a wish that cannot be, and nothing known"),
        pytest.param(running(main(cpu="9"), status=reports(says("main", {"cpu": "1"}, cpu="1"), **DEFERRED)), 9000, id="a wish put off"),
        pytest.param(
            running(main(cpu="9"), status=reports(says("main", {"cpu": "1"}, cpu="1"), **IN_PROGRESS)), 9000, id="a wish being fulfilled"
        ),
        pytest.param(
            running(main(cpu="9"), status=reports(says("main", {"cpu": "5"}, cpu="5")), node=""), 9000, id="not of a pod on no node"
        ),
        pytest.param(running(main(cpu="1"), asks(cpu="1"), status=reports(says("main", cpu="3"))), 4000, id="each container for itself"),
        pytest.param(
            running(main(cpu="1"), status={"initContainerStatuses": [says("s", cpu="5")]}, initContainers=[named("s", sidecar(cpu="1"))]),
            6000,
            id="a sidecar's status counts",
        ),
        pytest.param(
            running(main(cpu="1"), status={"initContainerStatuses": [says("i", cpu="5")]}, initContainers=[named("i", asks(cpu="2"))]),
            2000,
            id="an ordinary init container's does not",
        ),
        pytest.param(running(main(cpu="1"), status=reports(says("main", cpu="3")), overhead={"cpu": "1"}), 4000, id="overhead is added"),
    ],
)
def test_cpu_of_a_pod_that_is_resized_in_place(found: PodInfo, cpu: int) -> None:
    assert found.requests.get("cpu", 0) == cpu


@pytest.mark.parametrize(
    ("wished", "status", "cpu"),
    [
        pytest.param("4", {}, 4000, id="nothing reported"),
        pytest.param("4", {"allocatedResources": {"cpu": "9"}}, 4000, id="only set aside: not told"),
        pytest.param("4", {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "2"}}, 4000, id="growing: the wish"),
        pytest.param("2", {"resources": {"requests": {"cpu": "4"}}, "allocatedResources": {"cpu": "2"}}, 4000, id="shrinking"),
        pytest.param("2", {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "4"}}, 4000, id="what is set aside"),
        pytest.param("9", {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "4"}, **INFEASIBLE}, 4000, id="no way"),
        pytest.param("9", {"resources": {}, **INFEASIBLE}, 0, id="impossible, and nothing known"),
        pytest.param(None, {"resources": {"requests": {"cpu": "7"}}}, 1000, id="what the spec does not say, the status does not either"),
    ],
)
def test_cpu_of_a_pod_that_is_resized_as_a_whole(wished: str | None, status: dict[str, Any], cpu: int) -> None:
    whole = {"requests": {"cpu": wished} if wished else {"memory": "1Gi"}}
    assert running(main(cpu="1"), status=status, resources=whole).requests["cpu"] == cpu


def test_a_silent_container_counts_with_the_default_only_where_its_status_is_silent_too() -> None:
    found = running(main(), status=reports(says("main", {"cpu": "1"}, cpu="1")))
    assert (found.scoring_cpu, found.scoring_memory) == (1000, 200 * MIB)


def test_a_status_that_says_the_same_changes_nothing_else() -> None:
    """Also the resources that only one of the three lists names."""
    found = running(main(cpu="1", memory="1Mi"), status=reports(says("main", {"vendor.com/gpu": "1"}, cpu="1", memory="1Mi")))
    assert found.requests == {"cpu": 1000, "memory": MIB, "vendor.com/gpu": 1}


def test_a_bad_quantity_in_the_status_is_told() -> None:
    with pytest.raises(QuantityError):
        running(main(cpu="1"), status=reports(says("main", cpu="lots")))


AMOUNTS = st.fixed_dictionaries({}, optional={"cpu": st.integers(0, 4), "memory": st.integers(0, 4)})
SAID = st.fixed_dictionaries(
    {"wished": AMOUNTS, "runs": st.none() | AMOUNTS, "allocated": st.none() | AMOUNTS, "kind": st.sampled_from(["main", "sidecar", "init"])}
)


def plain_total(containers: list[dict[str, Any]], infeasible: bool, name: str) -> int:
    """The rule again, a resource at a time, on plain numbers."""

    def counts(one: dict[str, Any]) -> int:
        if one["runs"] is None or one["kind"] == "init":
            return int(one["wished"].get(name, 0))
        wish = 0 if infeasible else one["wished"].get(name, 0)
        return max(wish, one["runs"].get(name, 0), (one["allocated"] or {}).get(name, 0))

    sidecars = need = 0
    for one in containers:
        if one["kind"] == "sidecar":
            sidecars += counts(one)
        need = max(need, sidecars + (counts(one) if one["kind"] == "init" else 0))
    return max(need, sidecars + sum(counts(one) for one in containers if one["kind"] == "main"))


@given(st.lists(SAID, max_size=5), st.booleans())
def test_the_arithmetic_agrees_with_the_rule_written_plainly(containers: list[dict[str, Any]], infeasible: bool) -> None:
    body: dict[str, Any] = {"containers": [], "initContainers": []}
    status: dict[str, Any] = {"containerStatuses": [], "initContainerStatuses": [], **(INFEASIBLE if infeasible else {})}
    for i, one in enumerate(containers):
        shape = {"resources": {"requests": one["wished"]}, **({"restartPolicy": "Always"} if one["kind"] == "sidecar" else {})}
        report = {"name": f"c{i}", "allocatedResources": one["allocated"]}
        report |= {} if one["runs"] is None else {"resources": {"requests": one["runs"]}}
        body["containers" if one["kind"] == "main" else "initContainers"].append({"name": f"c{i}", **shape})
        status["containerStatuses" if one["kind"] == "main" else "initContainerStatuses"].append(report)
    found = running(status=status, containers=body["containers"], initContainers=body["initContainers"]).requests
    assert found.get("cpu", 0) == 1000 * plain_total(containers, infeasible, "cpu")
    assert found.get("memory", 0) == plain_total(containers, infeasible, "memory")
