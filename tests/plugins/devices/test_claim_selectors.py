"""Selectors of claims and of device classes: what is wrong with one is said with its object and its field."""

from __future__ import annotations

from typing import Any

import pytest
from device_worlds import (
    a_claim,
    cluster_of,
    device,
    device_class,
    devices_of,
    exactly,
    given,
    read,
    read_claim,
    result,
    slice_of,
    table,
    wish,
    world,
)
from selector_verdicts import A100, MINE
from test_device_order import ask, message, names

from placewright.framework.status import Code

Body = dict[str, Any]


def said_of(claim_: Body, **more: Any) -> str:
    devices = devices_of(cluster_of(world(slice_of(A100), **more)))
    status = devices.check([read_claim(claim_)])
    assert status.code is (Code.UNSCHEDULABLE_AND_UNRESOLVABLE if status.reasons else Code.SUCCESS)
    return status.message


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (a_claim(exactly("r")), ""),
        (a_claim(exactly("r", "none")), "request r: device class none does not exist"),
        (a_claim({"name": "r", "firstAvailable": [wish(), {**wish("X"), "name": "s1"}]}), "request r/s1: device class X does not exist"),
        (a_claim(exactly("r", "")), "resource claim default/c, request r: missing device class name (unsupported request type?)"),
        (a_claim({"name": "r"}), "resource claim default/c, request r: unknown request type"),
        (
            a_claim(exactly("r"), exactly("s", "any", "true", "foo == 1")),
            "resource claim default/c: spec.devices.requests[1].exactly.selectors[1].cel.expression: "
            "does not compile: undeclared reference to foo",
        ),
        (a_claim(exactly("r", "bad")), "device class bad: spec.selectors[0].cel.expression: does not compile: undeclared reference to bar"),
        (
            a_claim(
                {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "any", "selectors": [{"cel": {"expression": "x"}}]}]}
            ),
            "resource claim default/c: spec.devices.requests[0].firstAvailable[0].selectors[0].cel.expression: "
            "does not compile: undeclared reference to x",
        ),
        (
            a_claim({"name": "r", "exactly": {"deviceClassName": "any", "selectors": [{"wasm": {}}]}}),
            "resource claim default/c: spec.devices.requests[0].exactly.selectors[0] is of a kind that is not supported",
        ),
        (
            a_claim(exactly("r", allocationMode="Most")),
            "resource claim default/c, request r: spec.devices.requests[0].exactly.allocationMode Most is not supported",
        ),
        (
            a_claim(exactly("r", count=0)),
            "resource claim default/c, request r: spec.devices.requests[0].exactly.count is 0, must be at least 1",
        ),
        (
            a_claim(exactly("r", capacity={"requests": {"memory": "much"}})),
            "resource claim default/c, request r: spec.devices.requests[0].exactly.capacity.requests: 'much' is not a quantity; "
            "expected a number with an optional suffix such as 250m, 2, 1.5Gi or 1e3",
        ),
        (
            a_claim(exactly("r"), constraints=[{"sameRack": True}]),
            "resource claim default/c: spec.devices.constraints[0] is of a kind that is not supported",
        ),
        (
            a_claim(exactly("r", count=20), exactly("s", count=13)),
            "claim default/c: number of requested devices 33 exceeds the claim limit of 32",
        ),
    ],
)
def test_what_is_wrong_with_a_claim_is_said_with_the_object_and_the_field(asked: Body, said: str) -> None:
    assert said_of(asked, classes=[device_class("bad", "bar")]) == said


def test_a_class_that_comes_later_is_found() -> None:
    cluster = cluster_of(world(slice_of(A100)))
    devices, asked = devices_of(cluster), [read_claim(a_claim(exactly("r", "late")))]
    assert not devices.check(asked).ok
    table(cluster, "classes").put(read("classes", device_class("late", "true")))
    devices.refresh()
    assert devices.check(asked).ok
    table(cluster, "classes").put(read("classes", {**device_class("late", "false"), "metadata": {"name": "late", "resourceVersion": "2"}}))
    devices.refresh()
    assert message(devices.allocate(0, asked)) == "cannot allocate all claims"


@pytest.mark.parametrize(
    ("asked", "where"),
    [
        (a_claim(exactly("r", "any", f"{MINE}.colour")), "claim default/c: selector #0"),
        (a_claim(exactly("r", "any", "true", f"{MINE}.colour")), "claim default/c: selector #1"),
        (a_claim(exactly("r", "picky")), "class picky: selector #0"),
    ],
)
def test_a_selector_without_an_answer_is_an_error_in_the_words_of_kube_scheduler(asked: Body, where: str) -> None:
    made = world(slice_of(A100), classes=[device_class("picky", f"{MINE}.colour")])
    assert message(ask(made, asked)) == f"error: {where}: CEL runtime error: no such key: colour"


def test_a_selector_is_not_asked_about_devices_after_the_one_that_is_taken_nor_of_those_in_use() -> None:
    plain, picky = device("b", attributes={"fast": True}), a_claim(exactly("r", "any", f"{MINE}.fast"))
    assert names(ask(world(slice_of(plain, device("c"))), picky)) == [["r:b"]]
    held = [given(a_claim(name="x"), result("a"))]
    assert names(ask(world(slice_of(device("a"), plain), claims=held), picky)) == [["r:b"]]
    assert "no such key" in message(ask(world(slice_of(device("a"), plain)), picky))


def test_a_selector_without_an_answer_comes_before_a_later_request_that_cannot_be_served() -> None:
    asked = a_claim(exactly("r", "any", f"{MINE}.fast"), exactly("s", count=9))
    assert "no such key: fast" in message(ask(world(slice_of(device("a"))), asked))
