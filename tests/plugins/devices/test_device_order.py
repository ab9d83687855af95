"""Which devices are taken first, from which pools, and what is written of them: the allocator's features one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from device_worlds import (
    DRIVERS,
    a_claim,
    a_node,
    cluster_of,
    device,
    device_class,
    devices_of,
    exactly,
    given,
    in_1_36,
    read_claim,
    result,
    row_of,
    slice_of,
    wish,
    world,
    zone,
)

from placewright.api.compatibility import Rule
from placewright.plugins.dynamicresources.devices import CANNOT_ALLOCATE, INVALID_POOLS, Allocated, Refusal

Body = dict[str, Any]
GPU, NIC = DRIVERS
BINDING = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}


def ask(made: Body, *claims: Body, on: str = "n0", in_force: Callable[[Rule], bool] = in_1_36) -> Allocated | Refusal:
    cluster = cluster_of(made)
    return devices_of(cluster, in_force).allocate(row_of(cluster, on), [read_claim(each) for each in claims])


def names(answer: Allocated | Refusal) -> list[list[str]]:
    """`request:device`, by claim."""
    assert isinstance(answer, Allocated), answer
    return [[f"{one.request}:{one.device}" for one in each.devices.results or ()] for each in answer.allocations]


def one(answer: Allocated | Refusal) -> Any:
    assert isinstance(answer, Allocated), answer
    return answer.allocations[0]


def message(answer: Allocated | Refusal) -> str:
    assert isinstance(answer, Refusal), answer
    return f"{'error: ' if answer.error else ''}{answer.message}"


# --- order -------------------------------------------------------------------------------------------------------------------


def test_pools_are_tried_by_driver_and_name_slices_by_name_and_devices_as_listed() -> None:
    slices = [
        slice_of(device("z"), driver=NIC, pool="a", nodeName="n0"),
        slice_of(device("y"), pool="b", nodeName="n0"),
        slice_of(device("x"), pool="a", nodeName="n0", name="s2", count=2),
        slice_of(device("w"), device("v"), pool="a", nodeName="n0", name="s1", count=2),
    ]
    assert names(ask(world(*slices), a_claim(exactly("r", count=5)))) == [["r:w", "r:v", "r:x", "r:y", "r:z"]]


def test_pools_with_binding_conditions_come_last() -> None:
    slices = [slice_of(device("a"), device("b", **BINDING), pool="a", nodeName="n0"), slice_of(device("c"), pool="b", nodeName="n0")]
    assert names(ask(world(*slices), a_claim(exactly("r", count=2)))) == [["r:c", "r:a"]]


def test_claims_and_requests_are_served_as_they_are_listed() -> None:
    made = world(slice_of(*(device(name) for name in "abcd")))
    claims = [a_claim(exactly("x"), exactly("y"), name="one"), a_claim(exactly("x"), name="two")]
    assert names(ask(made, *claims)) == [["x:a", "y:b"], ["x:c"]]


def test_a_device_taken_first_is_given_back_when_only_another_order_serves_all() -> None:
    made = world(slice_of(device("a", attributes={"fast": True}), device("b", attributes={"fast": False})))
    picky = exactly("y", "any", f'device.attributes["{GPU}"].fast')
    assert names(ask(made, a_claim(exactly("x"), picky))) == [["x:b", "y:a"]]


def test_the_first_alternative_that_can_be_served_is_taken_and_named() -> None:
    made = world(slice_of(device("a"), device("b")))
    ways = [{"name": "many", **wish(count=3)}, {"name": "few", **wish(count=2)}, {"name": "one", **wish()}]
    assert names(ask(made, a_claim({"name": "r", "firstAvailable": ways}))) == [["r/few:a", "r/few:b"]]


def test_a_later_alternative_is_taken_when_the_first_leaves_nothing_for_another_request() -> None:
    made = world(slice_of(device("a"), device("b")))
    request = {"name": "r", "firstAvailable": [{"name": "two", **wish(count=2)}, {"name": "one", **wish()}]}
    assert names(ask(made, a_claim(request, exactly("s")))) == [["r/one:a", "s:b"]]


# --- pools -------------------------------------------------------------------------------------------------------------------

A, B = device("a"), device("b")


@pytest.mark.parametrize(
    ("slices", "said"),
    [
        ([slice_of(A, count=2)], CANNOT_ALLOCATE),
        ([slice_of(A, name="s1", generation=1), slice_of(name="s2", generation=2)], CANNOT_ALLOCATE),
        ([slice_of(A, A)], INVALID_POOLS),
        ([slice_of(A, name="s1", count=2), slice_of(A, name="s2", count=2)], INVALID_POOLS),
        ([slice_of(device("a", consumesCounters=[{"counterSet": "c", "counters": {"x": {"value": "1"}}}]))], INVALID_POOLS),
        ([slice_of(device("a", capacity={"memory": {"value": "much"}}))], INVALID_POOLS),
        ([slice_of(A, nodeName="n1")], CANNOT_ALLOCATE),
        ([slice_of(A, pool="p", nodeSelector=zone("b"))], CANNOT_ALLOCATE),
        ([{**slice_of(A, nodeName=""), "metadata": {"name": "future"}}], CANNOT_ALLOCATE),
    ],
    ids=["incomplete", "replaced", "twice in a slice", "twice in a pool", "no counter set", "no quantity", "node", "zone", "future"],
)
def test_nothing_is_had_from_a_pool_that_is_not_whole_or_not_in_reach(slices: list[Body], said: str) -> None:
    assert message(ask(world(*slices, nodes=[a_node("n0", zone="a")]), a_claim(exactly("r")))) == said


def test_a_pool_that_is_invalid_does_not_keep_others_from_serving() -> None:
    made = world(slice_of(A, A), slice_of(B, pool="p", nodeName="n0"))
    assert names(ask(made, a_claim(exactly("r")))) == [["r:b"]]


def test_devices_of_a_slice_can_each_be_reached_from_nodes_of_their_own() -> None:
    own = [device("a", nodeName="n1"), device("b", nodeSelector=zone("b")), device("c", nodeSelector=zone("a")), device("d", allNodes=True)]
    made = world(slice_of(*own, pool="p", perDeviceNodeSelection=True), nodes=[a_node("n0", zone="a"), a_node("n1", zone="b")])
    everything = a_claim(exactly("r", allocationMode="All"))
    assert names(ask(made, everything)) == [["r:c", "r:d"]]
    assert names(ask(made, everything, on="n1")) == [["r:a", "r:b", "r:d"]]


# --- what is in use ----------------------------------------------------------------------------------------------------------


def test_a_device_of_another_claim_is_not_free_but_one_held_for_an_administrator_is() -> None:
    held = [given(a_claim(exactly("r"), name="x"), result("a")), given(a_claim(exactly("r"), name="y"), result("b", adminAccess=True))]
    assert names(ask(world(slice_of(A, B), claims=held), a_claim(exactly("r")))) == [["r:b"]]


def test_an_administrator_gets_devices_that_are_in_use_but_none_twice_in_a_claim() -> None:
    held = [given(a_claim(exactly("r"), name="x"), result("a"))]
    made = world(slice_of(A, B), claims=held)
    assert names(ask(made, a_claim(exactly("r", adminAccess=True, count=2)))) == [["r:a", "r:b"]]
    assert one(ask(made, a_claim(exactly("r", adminAccess=True)))).devices.results[0].admin_access is True
    assert message(ask(made, a_claim(exactly("r", adminAccess=True, count=2), exactly("s", adminAccess=True)))) == CANNOT_ALLOCATE


def test_an_administrators_claims_may_have_the_same_device_each() -> None:
    claims = [a_claim(exactly("r", adminAccess=True), name=name) for name in "xy"]
    assert names(ask(world(slice_of(A)), *claims)) == [["r:a"], ["r:a"]]


# --- all devices -------------------------------------------------------------------------------------------------------------

ALL = a_claim(exactly("r", allocationMode="All"))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (world(), CANNOT_ALLOCATE),
        (world(slice_of(A, B), claims=[given(a_claim(name="x"), result("b"))]), CANNOT_ALLOCATE),
        (world(slice_of(A, device("b", taints=[{"key": "k", "effect": "NoSchedule"}]))), CANNOT_ALLOCATE),
        (
            world(slice_of(A, count=2)),
            f"error: claim default/c, request r: asks for all devices, but resource pool {GPU}/n0 is currently being updated",
        ),
        (
            world(slice_of(A, A)),
            f"error: claim default/c, request r: asks for all devices, but resource pool {GPU}/n0 is currently invalid",
        ),
        (
            world(slice_of(*(device(f"d{i}") for i in range(33)))),
            "error: claim default/c: number of requested devices 33 exceeds the claim limit of 32",
        ),
    ],
    ids=["none", "in use", "tainted", "incomplete", "invalid", "too many"],
)
def test_all_devices_are_had_or_none(made: Body, said: str) -> None:
    assert message(ask(made, ALL)) == said


def test_all_devices_that_match_are_had() -> None:
    made = world(slice_of(*(device(f"d{i}", attributes={"odd": i % 2}) for i in range(6))))
    odd = a_claim(exactly("r", "any", f'device.attributes["{GPU}"].odd == 1', allocationMode="All"))
    assert names(ask(made, odd)) == [["r:d1", "r:d3", "r:d5"]]


def test_a_constraint_that_keeps_from_having_all_devices_is_an_error() -> None:
    made = world(slice_of(device("a", attributes={"m": 1}), device("b", attributes={"m": 2})))
    all_alike = a_claim(exactly("r", allocationMode="All"), constraints=[{"matchAttribute": f"{GPU}/m"}])
    assert message(ask(made, all_alike)) == (
        f"error: claim default/c, request r: cannot add device {GPU}/n0/b because a claim constraint would not be satisfied"
    )


# --- constraints -------------------------------------------------------------------------------------------------------------

NUMA = [device(name, attributes={"numa": numa}) for name, numa in (("a", 0), ("b", 1), ("c", 0), ("d", 2), ("e", 1), ("f", 1))]
MATCH = {"matchAttribute": f"{GPU}/numa"}
DISTINCT = {"distinctAttribute": f"{GPU}/numa"}


@pytest.mark.parametrize(
    ("requests", "constraint", "expected"),
    [
        ([exactly("r", count=2)], MATCH, ["r:a", "r:c"]),
        ([exactly("r", count=3)], MATCH, ["r:b", "r:e", "r:f"]),
        ([exactly("r", count=4)], MATCH, None),
        ([exactly("r", count=2), exactly("s")], {**MATCH, "requests": ["r"]}, ["r:a", "r:c", "s:b"]),
        ([exactly("r", count=3)], DISTINCT, ["r:a", "r:b", "r:d"]),
        ([exactly("r", count=4)], DISTINCT, None),
        ([exactly("r"), exactly("s")], DISTINCT, ["r:a", "s:b"]),
    ],
)
def test_devices_are_alike_or_differ_as_constraints_say(requests: list[Body], constraint: Body, expected: list[str] | None) -> None:
    answer = ask(world(slice_of(*NUMA)), a_claim(*requests, constraints=[constraint]))
    assert (names(answer)[0] if expected else message(answer)) == (expected or CANNOT_ALLOCATE)


@pytest.mark.parametrize(("about", "expected"), [("r", ["r/x:a", "s:c"]), ("r/x", ["r/x:a", "s:c"]), ("r/other", ["r/x:a", "s:b"])])
def test_a_constraint_names_a_request_or_one_of_its_alternatives(about: str, expected: list[str]) -> None:
    requests = [{"name": "r", "firstAvailable": [{"name": "x", **wish()}]}, exactly("s")]
    made = world(slice_of(*NUMA))
    assert names(ask(made, a_claim(*requests, constraints=[{**MATCH, "requests": [about, "s"]}]))) == [expected]


def test_a_constraint_compares_types_too_and_refuses_devices_without_the_attribute() -> None:
    odd = [device("a", attributes={"m": 1}), device("b", attributes={"m": "1"}), device("c"), device("d", attributes={f"{GPU}/m": 1})]
    made = world(slice_of(*odd))
    assert names(ask(made, a_claim(exactly("r", count=2), constraints=[{"matchAttribute": f"{GPU}/m"}]))) == [["r:a", "r:d"]]
    assert message(ask(made, a_claim(exactly("r"), constraints=[{"matchAttribute": "else/m"}]))) == CANNOT_ALLOCATE


# --- taints ------------------------------------------------------------------------------------------------------------------


def taint(effect: str = "NoSchedule", **more: str) -> Body:
    return {"key": "k", "value": "v", "effect": effect, **more}


@pytest.mark.parametrize(
    ("tainted", "tolerations", "free"),
    [
        (taint(), [], False),
        (taint("NoExecute"), [], False),
        (taint("None"), [], True),
        (taint("Else"), [], True),
        (taint(), [{"operator": "Exists"}], True),
        (taint(), [{"key": "k", "value": "v"}], True),
        (taint(), [{"key": "k", "operator": "Equal", "value": "w"}], False),
        (taint(), [{"key": "l", "operator": "Exists"}], False),
        (taint(), [{"key": "k", "operator": "Exists", "effect": "NoExecute"}], False),
        (taint(), [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}], True),
        (taint(), [{"key": "k", "operator": "Odd", "value": "v"}], False),
    ],
)
@pytest.mark.parametrize("by_rule", [False, True])
def test_a_taint_keeps_away_who_does_not_tolerate_it(tainted: Body, tolerations: list[Body], free: bool, by_rule: bool) -> None:
    rule = {"metadata": {"name": "rule"}, "spec": {"deviceSelector": {"device": "a"}, "taint": tainted}}
    made = world(slice_of(device("a", **({} if by_rule else {"taints": [tainted]}))), rules=[rule] if by_rule else [])
    answer = ask(made, a_claim(exactly("r", tolerations=tolerations)))
    assert isinstance(answer, Allocated) == free
    if isinstance(answer, Allocated) and tolerations:
        assert len(one(answer).devices.results[0].tolerations) == len(tolerations)


@pytest.mark.parametrize(
    ("about", "tainted"),
    [({}, 1), (None, 0), ({"driver": GPU}, 1), ({"driver": NIC}, 0), ({"pool": "n0", "device": "a"}, 1), ({"pool": "x"}, 0)],
)
def test_a_taint_rule_is_about_the_devices_that_it_selects(about: Body | None, tainted: int) -> None:
    spec = {"taint": taint(), **({} if about is None else {"deviceSelector": about})}
    made = world(slice_of(A), rules=[{"metadata": {"name": "rule"}, "spec": spec}])
    assert isinstance(ask(made, a_claim(exactly("r"))), Refusal) == bool(tainted)


# --- what is written ---------------------------------------------------------------------------------------------------------


def selector_of(answer: Allocated | Refusal) -> list[tuple[str, tuple[str, ...]]] | None:
    selector = one(answer).node_selector
    if selector is None:
        return None
    (term,) = selector.node_selector_terms
    return [(each.key, each.values) for each in (*(term.match_fields or ()), *(term.match_expressions or ()))]


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        ([slice_of(A)], [("metadata.name", ("n0",))]),
        ([slice_of(A, pool="p", allNodes=True)], None),
        ([slice_of(A, pool="p", nodeSelector=zone("a"))], [("zone", ("a",))]),
        ([slice_of(A, pool="p", nodeSelector=zone("a")), slice_of(B, pool="q", nodeSelector=zone("a"))], [("zone", ("a",))]),
        ([slice_of(A, pool="p", allNodes=True), slice_of(B)], [("metadata.name", ("n0",))]),
        ([slice_of(device("a", bindsToNode=True), pool="p", allNodes=True)], [("metadata.name", ("n0",))]),
        ([slice_of(device("a", nodeSelector=zone("a")), pool="p", perDeviceNodeSelection=True)], [("zone", ("a",))]),
    ],
)
def test_the_allocation_says_from_where_its_devices_can_be_used(slices: list[Body], expected: list[Any] | None) -> None:
    count = sum(len(each["spec"]["devices"]) for each in slices)
    assert selector_of(ask(world(*slices, nodes=[a_node("n0", zone="a")]), a_claim(exactly("r", count=count)))) == expected


def test_binding_conditions_are_copied() -> None:
    (found,) = one(ask(world(slice_of(device("a", **BINDING))), a_claim(exactly("r")))).devices.results
    assert (found.binding_conditions, found.binding_failure_conditions) == (("ready",), ("broken",))


def config(answer: Allocated | Refusal) -> list[tuple[str, list[str], str]]:
    entries = [msgspec.json.decode(each) for each in one(answer).devices.config or ()]
    return [(each["source"], each.get("requests", []), each["opaque"]["parameters"]["of"]) for each in entries]


def opaque(of: str, *requests: str) -> Body:
    return {"opaque": {"driver": GPU, "parameters": {"of": of}}, **({"requests": list(requests)} if requests else {})}


@pytest.mark.parametrize(
    ("requests", "own", "expected"),
    [
        ([exactly("r", "gpu")], [], [("FromClass", [], "gpu")]),
        ([exactly("r", "gpu"), exactly("s")], [], [("FromClass", ["r"], "gpu")]),
        ([exactly("r", "gpu"), exactly("s"), exactly("t", "gpu")], [], [("FromClass", ["r", "t"], "gpu")]),
        ([exactly("r", "gpu")], [opaque("mine")], [("FromClass", [], "gpu"), ("FromClaim", [], "mine")]),
        ([exactly("r"), exactly("s")], [opaque("mine", "s")], [("FromClaim", ["s"], "mine")]),
        ([{"name": "r", "firstAvailable": [{"name": "x", **wish("gpu")}]}, exactly("s")], [], [("FromClass", ["r/x"], "gpu")]),
        (
            [{"name": "r", "firstAvailable": [{"name": "x", **wish()}, {"name": "y", **wish()}]}, exactly("s")],
            [opaque("x", "r/x"), opaque("y", "r/y"), opaque("r", "r")],
            [("FromClaim", ["r/x"], "x"), ("FromClaim", ["r"], "r")],
        ),
    ],
)
def test_configuration_is_copied_from_the_classes_and_the_claim(requests: list[Body], own: list[Body], expected: list[Any]) -> None:
    made = world(slice_of(*(device(name) for name in "abc")), classes=[device_class("gpu", config=[opaque("gpu")])])
    assert config(ask(made, a_claim(*requests, config=own))) == expected
