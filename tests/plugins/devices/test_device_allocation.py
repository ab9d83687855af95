"""What the allocator hands out at random, against rules from the API's plain meaning; what it refuses, against trying everything."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from device_rules import NoAnswer, broken_rules, devices_of_the_node, every_choice, selected, wishes
from device_worlds import (
    DRIVERS,
    Dice,
    a_claim,
    as_json,
    cluster_of,
    device,
    devices_of,
    exactly,
    read_claim,
    row_of,
    slice_of,
    world,
)

from placewright.plugins.dynamicresources.devices import Allocated, Refusal
from seeds import seeds

Body = dict[str, Any]
GPU = DRIVERS[0]
WORLDS = 400
#: More combinations than this are not tried.
MOST_CHOICES = 3_000


def chosen(allocated: Allocated) -> list[list[tuple[str, tuple[str, str, str]]]]:
    results = [as_json(each.devices).get("results", []) for each in allocated.allocations]
    return [[(each["request"], (each["driver"], each["pool"], each["device"])) for each in claim] for claim in results]


def served_another_way(world: Body, node: Body, claims: list[Body]) -> bool:
    """Whether any choice of devices breaks no rule, as far as that can be tried. A selector without an answer says nothing."""
    try:
        choices = every_choice(world, node, claims, MOST_CHOICES)
        return choices is not None and any(not broken_rules(world, node, claims, each) for each in choices)
    except NoAnswer:
        return False


def some_selector_has_no_answer(world: Body, node: Body, claims: list[Body]) -> bool:
    requests = [request for claim in claims for request in claim["spec"]["devices"]["requests"]]
    try:
        for wish in (wish for request in requests for wish in wishes(request)):
            for found in devices_of_the_node(world, node):
                selected(world, wish.body, found)
    except NoAnswer:
        return True
    return False


@seeds(range(WORLDS))
def test_every_allocation_keeps_the_rules_and_every_refusal_is_one_for_all_choices(seed: int) -> None:
    dice = Dice(seed)
    world = dice.world()
    claims = [dice.claim(f"new-{i}") for i in range(dice.random.choice([1, 1, 2]))]
    cluster = cluster_of(world)
    devices = devices_of(cluster)
    asked = [read_claim(each) for each in claims]
    column = devices.candidates(asked)
    for node in world["nodes"]:
        row = row_of(cluster, node["metadata"]["name"])
        answer = devices.allocate(row, asked)
        if isinstance(answer, Allocated):
            assert broken_rules(world, node, claims, chosen(answer)) == []
        elif not answer.error:
            assert not served_another_way(world, node, claims), answer
        elif "no such key" in answer.message:
            assert some_selector_has_no_answer(world, node, claims)
        if column is not None:
            assert bool(column[row]) == isinstance(answer, Allocated)


def test_the_worlds_at_random_see_every_kind_of_answer() -> None:
    """Otherwise the test above says little."""
    seen: dict[str, int] = {"allocated": 0, "refused": 0, "error": 0, "column": 0, "tried": 0}
    for seed in range(0, WORLDS, 3):
        dice = Dice(seed)
        world = dice.world()
        claims = [dice.claim(f"new-{i}") for i in range(dice.random.choice([1, 1, 2]))]
        devices = devices_of(cluster_of(world))
        asked = [read_claim(each) for each in claims]
        answer = devices.allocate(0, asked)
        refused = isinstance(answer, Refusal) and not answer.error
        seen["allocated"] += isinstance(answer, Allocated)
        seen["error"] += isinstance(answer, Refusal) and answer.error
        seen["refused"] += refused
        seen["column"] += devices.candidates(asked) is not None
        try:
            seen["tried"] += refused and every_choice(world, world["nodes"][0], claims, MOST_CHOICES) is not None
        except NoAnswer:
            continue
    assert min(seen.values()) > 5, seen


PARAMETERS = (
    b'{"b": 1}', b'{"b":1.0,"c":1e3,"d":-0.0}', b'{"n":123456789012345678901234567890}', b'{"a":1,"a":2}', b'{"z":1,"a":2}',
    rb'{"a":"\u0041\/\u003c"}', b'{"a":"<&>"}', b'{ "a" :\n[1 , 2 ] }', '{"a":"\u00e9\u2028"}'.encode(),
)  # fmt: skip


@pytest.mark.parametrize("parameters", PARAMETERS)
@pytest.mark.parametrize("source", ["FromClass", "FromClaim"])
def test_parameters_of_drivers_are_copied_as_the_text_that_they_are(source: str, parameters: bytes) -> None:
    config = [{"opaque": {"driver": "d", "parameters": msgspec.Raw(parameters)}}]
    special = {"metadata": {"name": "special"}, "spec": {"config": config if source == "FromClass" else []}}
    asked = a_claim(exactly("r", "special"), exactly("s"), config=[{"requests": ["r"], **config[0]}] if source == "FromClaim" else [])
    there = world(slice_of(device("d0"), device("d1")), classes=[special])
    answer = devices_of(cluster_of(there)).allocate(0, [read_claim(asked)])
    assert isinstance(answer, Allocated)
    written = b'{"source":"' + source.encode() + b'","requests":["r"],"opaque":{"driver":"d","parameters":' + parameters + b"}}"
    assert [bytes(each) for each in answer.allocations[0].devices.config or ()] == [written]
    assert written in msgspec.json.encode(answer.allocations[0])


@pytest.mark.parametrize(
    ("attribute", "others", "fits"),
    [
        ({"ints": [1, 2]}, [{"ints": [2, 3]}], True),
        ({"ints": [1, 2]}, [{"int": 2}], True),
        ({"ints": [1, 2]}, [{"ints": [2, 3]}, {"ints": [3, 1]}], False),  # each two have a value in common, all three have none
        ({"ints": [1]}, [{"strings": ["1"]}], False),
        ({"strings": ["a", "b"]}, [{"strings": ["b"]}, {"string": "b"}], True),
        ({"bools": [True, False]}, [{"bool": False}], True),
        ({"bools": [True]}, [{"ints": [1]}], False),
        ({"versions": ["1.0.0", "2.0.0"]}, [{"versions": ["2.0.0"]}], True),
        ({"versions": ["1.0.0"]}, [{"strings": ["1.0.0"]}], False),
    ],
)
def test_devices_match_by_the_values_that_their_lists_have_in_common(attribute: Body, others: list[Body], fits: bool) -> None:
    made = [device(f"d{i}", attributes={"v": each}) for i, each in enumerate([attribute, *others])]
    devices = devices_of(cluster_of(world(slice_of(*made))))
    asked = a_claim(exactly("r", count=len(made)), constraints=[{"matchAttribute": f"{GPU}/v"}])
    assert isinstance(devices.allocate(0, [read_claim(asked)]), Allocated) is fits


@pytest.mark.parametrize(
    ("other", "fits"),
    [({"ints": [3]}, True), ({"ints": [2, 3]}, False), ({"int": 1}, False), ({"int": 3}, True), ({"strings": ["1", "2"]}, True)],
)
def test_devices_differ_by_lists_without_a_value_in_common(other: Body, fits: bool) -> None:
    made = [device("d0", attributes={"v": {"ints": [1, 2]}}), device("d1", attributes={"v": other})]
    devices = devices_of(cluster_of(world(slice_of(*made))))
    asked = a_claim(exactly("r", count=2), constraints=[{"distinctAttribute": f"{GPU}/v"}])
    assert isinstance(devices.allocate(0, [read_claim(asked)]), Allocated) is fits
