"""What a pod asks for, against the rule written out again on fractions: containers, the start, overhead, and the pod as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.api.objects import PodSpec, PodStatus
from placewright.api.quantity import QuantityError
from placewright.api.requests import (
    canonical,
    in_column_units,
    is_native_or_scalar,
    pod_requests,
    scoring_requests,
    scoring_requests_of_containers,
    spec_in_effect,
)
from placewright.testing import pod
from placewright.testing.pods import PodMaker

MIB = 1024 * 1024
BARE, ONE = pod("p").spec(containers=[]), pod("p").requests(cpu="1")

WORTH = {
    "0": Fraction(0), "0.4m": Fraction(4, 10000), "1": Fraction(1), "1500m": Fraction(3, 2), "1Ki": Fraction(1024), "2k": Fraction(2000),
}  # fmt: skip
COUNTED = ("cpu", "memory", "ephemeral-storage", "vendor.com/gpu", "hugepages-2Mi")
LISTS = st.dictionaries(st.sampled_from([*COUNTED, "pods", "bananas"]), st.sampled_from(sorted(WORTH)), max_size=3)
PODS = st.fixed_dictionaries(
    {
        "containers": st.lists(LISTS, max_size=2),
        "starts": st.lists(st.tuples(st.booleans(), LISTS), max_size=3),
        "whole": st.none() | LISTS,
        "overhead": st.none() | LISTS,
    }
)


def spec_of(maker: PodMaker) -> PodSpec:
    return maker.decoded().spec


def requesting(requests: Mapping[str, str], **more: str) -> dict[str, Any]:
    return {"resources": {"requests": requests}, **more}


def made(said: Mapping[str, Any]) -> PodSpec:
    starts = [requesting(requests, **({"restartPolicy": "Always"} if sidecar else {})) for sidecar, requests in said["starts"]]
    whole = {} if said["whole"] is None else requesting(said["whole"])
    containers = [requesting(requests) for requests in said["containers"]]
    return spec_of(BARE.spec(containers=containers, initContainers=starts, overhead=said["overhead"], **whole))


def neediest_moment(name: str, containers: Iterable[Fraction], starts: Iterable[tuple[bool, Fraction]]) -> Fraction:
    """Moment by moment: each ordinary init container beside the sidecars before it; then all containers beside all sidecars."""
    beside, moments = Fraction(), []
    for is_sidecar, amount in starts:
        if is_sidecar:
            beside += amount
        moments.append(beside if is_sidecar else beside + amount)
    return max([*moments, beside + sum(containers)])


def by_hand(said: Mapping[str, Any], name: str, default: Fraction | None = None) -> Fraction:
    """What the pod asks for of one resource; `default` for containers that do not say."""

    def worth(requests: Mapping[str, str]) -> Fraction:
        return WORTH[requests[name]] if name in requests else default or Fraction()

    whole = (said["whole"] or {}).get(name)
    for_the_pod = whole is not None and (name in ("cpu", "memory") or name.startswith("hugepages-"))
    starts = [(is_sidecar, worth(requests)) for is_sidecar, requests in said["starts"]]
    moment = WORTH[whole] if for_the_pod else neediest_moment(name, map(worth, said["containers"]), starts)
    return moment + WORTH[(said["overhead"] or {}).get(name, "0")]


def in_units(name: str, amount: Fraction) -> int:
    return math.ceil(amount * 1000 if name == "cpu" else amount)


@given(PODS)
def test_requests_are_those_of_the_neediest_moment_rounded_up_once(said: dict[str, Any]) -> None:
    found = pod_requests(made(said))
    assert set(found) <= set(COUNTED), "nobody counts pods or bananas"
    assert {name: found.get(name, 0) for name in COUNTED} == {name: in_units(name, by_hand(said, name)) for name in COUNTED}


@given(PODS)
def test_scoring_counts_silence_as_a_default_unless_somebody_speaks_of_the_pod(said: dict[str, Any]) -> None:
    """Where anything is said of the whole pod, a default is only for what then nobody says anything of."""
    everybody = [*said["containers"], *(requests for _, requests in said["starts"]), said["overhead"] or {}, said["whole"] or {}]
    whole = any(name in ("cpu", "memory", "hugepages-2Mi") for name in said["whole"] or {})
    defaults = {"cpu": Fraction(1, 10), "memory": Fraction(200 * MIB)}
    expected = []
    for name, default in defaults.items():
        spoken = whole and any(name in requests for requests in everybody)
        expected.append(in_units(name, by_hand(said, name, None if spoken else default)))
    assert list(scoring_requests(made(said))) == expected


@given(PODS)
def test_what_containers_ask_for_does_not_depend_on_what_is_said_of_the_pod(said: dict[str, Any]) -> None:
    alone = said | {"whole": None}
    assert scoring_requests_of_containers(made(said)) == scoring_requests_of_containers(made(alone))
    found = scoring_requests_of_containers(made(said))
    assert found.get("cpu", 0) == in_units("cpu", by_hand(alone, "cpu", Fraction(1, 10)))
    assert found.get("vendor.com/gpu", 0) == in_units("vendor.com/gpu", by_hand(alone, "vendor.com/gpu"))


# --- one thing at a time -----------------------------------------------------------------------------------------------------------


def test_a_pod_without_containers_asks_for_its_overhead_alone() -> None:
    bare = spec_of(BARE.overhead(**{"cpu": "250m", "vendor.com/gpu": "1"}))
    assert pod_requests(bare) == {"cpu": 250, "vendor.com/gpu": 1}
    assert scoring_requests(bare) == (250, 0)
    assert (pod_requests(spec_of(BARE)), scoring_requests(spec_of(BARE))) == ({}, (0, 0))


def test_a_pod_level_request_of_zero_replaces_what_containers_ask_for() -> None:
    found = spec_of(pod("p").requests(cpu="4").spec(**requesting({"cpu": "0"})))
    assert (pod_requests(found), scoring_requests(found)) == ({"cpu": 0}, (0, 200 * MIB))


def test_limits_alone_request_nothing() -> None:
    """The API server makes requests of limits when a pod is created; who was created without one has none."""
    found = spec_of(pod("p").limits(cpu="4").spec(resources={"limits": {"cpu": "8"}}))
    assert (pod_requests(found), scoring_requests(found)) == ({}, (100, 200 * MIB))


def test_a_sidecar_started_late_is_not_beside_what_started_before_it() -> None:
    found = ONE.init_container("a", cpu="10").sidecar("b", cpu="2").init_container("c", cpu="5").sidecar("d", cpu="3")
    assert pod_requests(spec_of(found.init_container("e", cpu="4"))) == {"cpu": 10_000}
    assert pod_requests(spec_of(found.init_container("e", cpu="6"))) == {"cpu": 11_000}


def test_only_the_restart_policy_always_makes_a_sidecar() -> None:
    for policy, cpu in (("Always", 3000), ("OnFailure", 2000), ("Never", 2000), (None, 2000)):
        starting = {"resources": {"requests": {"cpu": "2"}}, "restartPolicy": policy}
        assert pod_requests(spec_of(ONE.spec(initContainers=[starting]))) == {"cpu": cpu}


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("cpu", True), ("memory", True), ("ephemeral-storage", True), ("hugepages-", True), ("hugepages-1Gi", True),
        ("attachable-volumes-x", True), ("v.com/gpu", True), ("kubernetes.io/x", True), ("x.kubernetes.io/x", True),
        ("requests.kubernetes.io/x", True),
        ("pods", False), ("storage", False), ("requests.v.com/gpu", False), ("hugepages", False), ("CPU", False), ("", False),
    ],
)  # fmt: skip
def test_the_resources_that_nodes_have_columns_for(name: str, *, counted: bool) -> None:
    assert is_native_or_scalar(name) is counted


def test_cpu_is_counted_in_thousandths_and_all_else_in_whole_units() -> None:
    assert [in_column_units(name, 10**6) for name in ("cpu", "memory", "cpus", "v.com/cpu")] == [1, 1, 1, 1]
    assert [in_column_units(name, 5 * 10**9 + 1) for name in ("cpu", "memory")] == [5001, 6]
    assert canonical({}) == {}
    assert canonical({"cpu": 0.5, "pods": "110", "bananas": 3}) == {"cpu": 500, "pods": 110, "bananas": 3}
    with pytest.raises(QuantityError, match="'x' is not a quantity"):
        canonical({"cpu": "1", "memory": "x"})


@pytest.mark.parametrize(
    "broken",
    [
        pod("p").init_container("i", cpu="x"), pod("p").sidecar("s", memory="x"), pod("p").container("c", **{"v.com/gpu": "x"}),
        pod("p").spec(**requesting({"memory": "x"})), pod("p").overhead(bananas="x"), pod("p").requests(bananas="x"),
    ],
)  # fmt: skip
def test_a_bad_quantity_is_told_wherever_it_stands_also_of_what_nobody_counts(broken: PodMaker) -> None:
    for read in (pod_requests, scoring_requests):
        with pytest.raises(QuantityError, match="'x' is not a quantity"):
            read(spec_of(broken))
    with pytest.raises(QuantityError):
        broken.build()


# --- resize in place: when the spec itself is in effect ----------------------------------------------------------------------------


def report(name: str, allocated: Any = None, **runs: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"requests": runs}, "allocatedResources": allocated}


@pytest.mark.parametrize(
    "settled",
    [
        ONE,
        ONE.status(phase="Running", containerStatuses=[]),
        ONE.status(containerStatuses=[report("main", {"cpu": "1"}, cpu="1")]),
        ONE.status(containerStatuses=[report("main", cpu="1")]),
        ONE.status(containerStatuses=[report("other", {"cpu": "9"}, cpu="9")]),
        ONE.init_container("i", cpu="1").status(initContainerStatuses=[report("i", {"cpu": "9"}, cpu="9")]),
        ONE.status(resources={"requests": {"cpu": "9"}}),
        ONE.status(allocatedResources={"cpu": "9"}).spec(**requesting({"cpu": "2"})),
        BARE.status(containerStatuses=[report("main")]),
    ],
)
def test_a_pod_that_is_not_being_resized_counts_by_its_very_spec(settled: PodMaker) -> None:
    found = settled.decoded()
    assert spec_in_effect(found.spec, found.status) is found.spec


def test_what_is_in_effect_of_a_resized_container_is_the_most_of_each_resource() -> None:
    reports = [report("main", {"cpu": "1500m", "memory": "1"}, cpu="1", memory="2"), report("d", cpu="1")]
    resized = ONE.requests(memory="3").container("d", cpu="1").status(containerStatuses=reports).decoded()
    found = spec_in_effect(resized.spec, resized.status)
    assert found is not resized.spec
    first, second = found.containers or ()
    assert (first.name, first.resources.requests) == ("main", {"cpu": "1500m", "memory": "3"})
    assert second == (resized.spec.containers or ())[1]


def test_more_that_is_set_aside_counts_also_where_the_container_runs_with_what_was_wished() -> None:
    for runs, allocated, cpu in (("1", "3", 3000), ("2", "1", 2000), ("1", "1", 1000), ("1000m", "1", 1000)):
        found = ONE.on("n").status(containerStatuses=[report("main", {"cpu": allocated}, cpu=runs)])
        assert found.build().requests == {"cpu": cpu}


def test_what_is_said_of_the_pod_as_a_whole_stands_while_a_container_is_resized() -> None:
    found = ONE.on("n").spec(**requesting({"cpu": "5"}))
    assert found.status(containerStatuses=[report("main", cpu="9")]).build().requests == {"cpu": 5000}


def test_limits_stay_on_a_container_that_is_not_resized() -> None:
    found = ONE.limits(cpu="2").status(containerStatuses=[report("main", {"cpu": "1"}, cpu="1")]).decoded()
    assert spec_in_effect(found.spec, found.status) is found.spec


def test_the_first_condition_that_speaks_of_a_resize_decides() -> None:
    def asked(*reasons: str, kind: str = "PodResizePending") -> int:
        conditions = [{"type": "Ready", "reason": "Infeasible"}, *({"type": kind, "reason": reason} for reason in reasons)]
        found = pod("p", on="n").requests(cpu="9")
        return found.status(conditions=conditions, containerStatuses=[report("main", cpu="1")]).build().requests["cpu"]

    assert asked() == 9000
    assert asked("Infeasible") == asked("Infeasible", "Deferred") == 1000
    assert asked("Deferred", "Infeasible") == asked("infeasible") == 9000
    assert asked("Infeasible", kind="PodResizeInProgress") == 9000


def test_a_wish_for_the_whole_pod_that_can_never_be_counts_as_what_is_set_aside_and_only_for_what_it_names() -> None:
    found = ONE.on("n").spec(**requesting({"cpu": "9", "memory": "9"}))
    found = found.status(resources={"requests": {"cpu": "2", "vendor.com/gpu": "5"}}, allocatedResources={"cpu": "3"})
    assert found.build().requests == {"cpu": 9000, "memory": 9}
    found = found.status(conditions=[{"type": "PodResizePending", "reason": "Infeasible"}])
    assert found.build().requests == {"cpu": 3000, "memory": 0}


def test_a_status_of_nothing_is_no_status() -> None:
    spec = spec_of(ONE)
    assert spec_in_effect(spec, PodStatus()) is spec
