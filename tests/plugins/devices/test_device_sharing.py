"""Devices that several claims share, by shares of their capacity or by counters of their pool."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from device_worlds import DRIVERS, a_claim, device, exactly, given, in_1_36, result, slice_of, world
from test_device_order import ask, message, names, one

from placewright.api.compatibility import Rule
from placewright.api.quantity import nano
from placewright.plugins.dynamicresources.devices import CANNOT_ALLOCATE, Allocated, Refusal
from seeds import seeds

Body = dict[str, Any]
GPU, _ = DRIVERS
VALUES = {"default": "5Gi", "validValues": ["5Gi", "10Gi", "20Gi"]}
RANGE = {"default": "1Gi", "validRange": {"min": "2Gi", "max": "16Gi", "step": "3Gi"}}


def shared(policy: Body | None = None, total: str = "40Gi", name: str = "a", **more: Any) -> Body:
    memory = {"value": total, **({} if policy is None else {"requestPolicy": policy})}
    return device(name, capacity={"memory": memory}, allowMultipleAllocations=True, **more)


def asking(memory: str | None, name: str = "r", **more: Any) -> Body:
    if memory is not None:
        more["capacity"] = {"requests": {"memory": memory}}
    return exactly(name, **more)


def consumed(answer: Allocated | Refusal) -> list[dict[str, str]]:
    return [each.consumed_capacity for each in one(answer).devices.results]


# --- shares ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "asked", "expected"),
    [
        (None, None, "40Gi"),
        (None, "3Gi", "3Gi"),
        (VALUES, None, "5Gi"),
        (VALUES, "5Gi", "5Gi"),
        (VALUES, "6Gi", "10Gi"),
        (VALUES, "20Gi", "20Gi"),
        (VALUES, "21Gi", None),
        (RANGE, None, "1Gi"),
        (RANGE, "1Gi", "2Gi"),
        (RANGE, "2Gi", "2Gi"),
        (RANGE, "3Gi", "5Gi"),
        (RANGE, "14Gi", "14Gi"),
        (RANGE, "15Gi", None),
        ({"default": "1Gi", "validRange": {"min": "1Gi"}}, "1500Mi", "1500Mi"),
        ({"default": "1Gi", "validRange": {"min": "1Gi"}}, "512Mi", "1Gi"),
        ({"default": "1Gi", "validRange": {"min": "1Gi", "step": "512Mi"}}, "1200Mi", "1536Mi"),
        (None, "41Gi", None),
    ],
)
def test_a_share_takes_what_is_asked_rounded_up_as_the_policy_says(policy: Body | None, asked: str | None, expected: str | None) -> None:
    answer = ask(world(slice_of(shared(policy))), a_claim(asking(asked)))
    assert (consumed(answer) if expected else message(answer)) == ([{"memory": expected}] if expected else CANNOT_ALLOCATE)


def test_each_share_has_an_id_of_its_own() -> None:
    answer = ask(world(slice_of(shared(VALUES))), a_claim(asking(None), asking(None, "s")))
    assert [each.share_id for each in one(answer).devices.results] == ["share-0", "share-1"]


def test_shares_are_had_until_the_capacity_is_used_up() -> None:
    made = world(slice_of(shared(VALUES, "12Gi"), shared(VALUES, "6Gi", "b")))
    assert names(ask(made, a_claim(*(asking("5Gi", name) for name in "rst")))) == [["r:a", "s:a", "t:b"]]
    assert message(ask(made, a_claim(*(asking("5Gi", name) for name in "rstu")))) == CANNOT_ALLOCATE


def test_shares_of_other_claims_count() -> None:
    held = [given(a_claim(name="x"), result("a", shareID="1", consumedCapacity={"memory": "30Gi"}))]
    made = world(slice_of(shared()), claims=held)
    assert names(ask(made, a_claim(asking("10Gi")))) == [["r:a"]]
    assert message(ask(made, a_claim(asking("11Gi")))) == CANNOT_ALLOCATE


def test_one_request_gets_one_share_of_a_device() -> None:
    made = world(slice_of(shared(VALUES), shared(VALUES, name="b")))
    assert names(ask(made, a_claim(asking("5Gi", count=2)))) == [["r:a", "r:b"]]


@pytest.mark.parametrize("share", [{}, {"shareID": "1", "consumedCapacity": {"memory": "1Gi"}}], ids=["for itself", "a share"])
def test_a_device_is_not_had_whole_while_a_share_is_out_nor_shared_while_somebody_has_it_whole(share: Body) -> None:
    held = [given(a_claim(name="x"), result("a", **share))]
    one_device = device("a", capacity={"memory": "40Gi"}) if share else shared()
    assert message(ask(world(slice_of(one_device), claims=held), a_claim(asking(None)))) == CANNOT_ALLOCATE


def test_a_capacity_that_the_device_does_not_have_cannot_be_asked_for() -> None:
    requests = exactly("r", capacity={"requests": {"cores": "1"}})
    made = world(slice_of(shared(), device("b", capacity={"cores": "2"})))
    assert names(ask(made, a_claim(requests))) == [["r:b"]]


def test_a_device_for_one_claim_serves_who_asks_no_more_than_it_has_and_says_nothing_of_consumption() -> None:
    made = world(slice_of(device("a", capacity={"memory": "10Gi"}), device("b", capacity={"memory": "20Gi"})))
    answer = ask(made, a_claim(asking("15Gi")))
    assert names(answer) == [["r:b"]]
    assert consumed(answer) == [None]


def test_a_share_given_back_in_the_search_can_be_had_again() -> None:
    """The first request tries `a` first, and the second can only have all of `a`."""
    made = world(slice_of(shared(total="10Gi"), shared(total="9Gi", name="b")))
    assert names(ask(made, a_claim(asking("1Gi"), asking("10Gi", "s")))) == [["r:b", "s:a"]]


# --- counters ----------------------------------------------------------------------------------------------------------------


def chip(*parts: Body, slots: int = 4, **more: Any) -> list[Body]:
    """Two slices of a pool: its counters, and devices that draw on them."""
    counters = slice_of(name="counters", count=2, sharedCounters=[{"name": "chip", "counters": {"slots": {"value": str(slots)}}}])
    return [counters, slice_of(*parts, name="parts", count=2, **more)]


def part(name: str, slots: int, **more: Any) -> Body:
    return device(name, consumesCounters=[{"counterSet": "chip", "counters": {"slots": {"value": str(slots)}}}], **more)


def test_partitions_are_had_as_long_as_counters_last() -> None:
    made = world(*chip(part("a", 3), part("b", 2), part("c", 1)))
    assert names(ask(made, a_claim(exactly("r", count=2)))) == [["r:a", "r:c"]]
    assert message(ask(made, a_claim(exactly("r", count=3)))) == CANNOT_ALLOCATE


def test_what_others_have_draws_on_counters_and_what_administrators_have_does_not() -> None:
    parts = chip(part("a", 3), part("b", 2), part("c", 4))
    held = [given(a_claim(name="x"), result("a"))]
    assert message(ask(world(*parts, claims=held), a_claim(exactly("r")))) == CANNOT_ALLOCATE
    held = [given(a_claim(name="x"), result("a", adminAccess=True))]
    assert names(ask(world(*parts, claims=held), a_claim(exactly("r")))) == [["r:a"]]


def test_devices_that_other_nodes_use_draw_on_the_same_counters() -> None:
    parts = [part("a", 3, nodeName="n0"), part("b", 3, nodeName="n1")]
    counters, devices = chip(*parts, perDeviceNodeSelection=True, pool="p")
    counters["spec"]["pool"]["name"] = "p"
    held = [given(a_claim(name="x"), result("b", pool="p"))]
    assert names(ask(world(counters, devices), a_claim(exactly("r")))) == [["r:a"]]
    assert message(ask(world(counters, devices, claims=held), a_claim(exactly("r")))) == CANNOT_ALLOCATE


def test_a_pool_whose_counters_are_overdrawn_serves_only_devices_without_counters() -> None:
    held = [given(a_claim(name="x"), result("a"), result("b"))]
    made = world(*chip(part("a", 3), part("b", 3), part("c", 0), device("d")), claims=held)
    assert names(ask(made, a_claim(exactly("r")))) == [["r:d"]]


def test_only_the_first_share_of_a_device_draws_on_counters() -> None:
    draws = [{"counterSet": "chip", "counters": {"slots": {"value": "3"}}}]
    made = world(*chip(shared(VALUES, consumesCounters=draws), part("b", 1)))
    assert names(ask(made, a_claim(asking("5Gi"), asking("5Gi", "s"), exactly("t", "any", "!device.allowMultipleAllocations")))) == [
        ["r:a", "s:a", "t:b"]
    ]


def test_counters_drawn_for_a_device_that_a_constraint_then_refuses_are_given_back() -> None:
    parts = [part("a", 1, attributes={"m": 1}), part("b", 3, attributes={"m": 2}), part("c", 3, attributes={"m": 1})]
    alike = a_claim(exactly("r", count=2), constraints=[{"matchAttribute": f"{GPU}/m"}])
    assert names(ask(world(*chip(*parts)), alike)) == [["r:a", "r:c"]]


def test_counters_drawn_for_a_device_that_leads_nowhere_are_given_back() -> None:
    made = world(*chip(part("a", 3), part("b", 2, attributes={"big": True}), part("c", 2)))
    big = exactly("s", "any", f'has(device.attributes["{GPU}"].big)')
    assert names(ask(made, a_claim(exactly("r"), big))) == [["r:c", "s:b"]]


def test_counters_of_pools_of_the_same_name_are_not_mixed_up() -> None:
    other = [{**each, "metadata": {"name": f"other-{i}"}} for i, each in enumerate(chip(part("a", 4)))]
    for each in other:
        each["spec"] = {**each["spec"], "driver": DRIVERS[1]}
    assert names(ask(world(*chip(part("a", 4)), *other), a_claim(exactly("r", count=2)))) == [["r:a", "r:a"]]


def test_counters_drawn_for_a_share_that_leads_nowhere_are_given_back() -> None:
    draws = [{"counterSet": "chip", "counters": {"slots": {"value": "3"}}}]
    made = world(*chip(shared(VALUES, consumesCounters=draws), device("b"), part("c", 4, attributes={"big": True})))
    big = exactly("s", "any", f'has(device.attributes["{GPU}"].big)')
    assert names(ask(made, a_claim(exactly("r"), big))) == [["r:b", "s:c"]]


DRAWS = (("a", "chip"), ("b", "chip"), ("c", "other"))


def test_any_overdrawn_counter_of_a_pool_keeps_all_that_draw_on_counters_as_kube_scheduler_does() -> None:
    sets = [{"name": name, "counters": {"slots": {"value": "1"}}} for name in ("chip", "other")]
    draws = [device(name, consumesCounters=[{"counterSet": of, "counters": {"slots": {"value": "1"}}}]) for name, of in DRAWS]
    slices = [slice_of(name="counters", count=2, sharedCounters=sets), slice_of(*draws, name="parts", count=2)]
    assert names(ask(world(*slices, claims=[given(a_claim(name="x"), result("a"))]), a_claim(exactly("r")))) == [["r:c"]]
    held = [given(a_claim(name="x"), result("a"), result("b"))]
    assert message(ask(world(*slices, claims=held), a_claim(exactly("r")))) == CANNOT_ALLOCATE


# --- thousandths, and names with a domain ----------------------------------------------------------------------------------------

TENTHS = {"default": "200m", "validRange": {"min": "200m", "max": "1", "step": "100m"}}
FINE = {"default": "1", "validRange": {"min": "1", "step": "1500u"}}


def in_1_37(rule: Rule) -> bool:
    return rule.since <= 37


def in_1_38(rule: Rule) -> bool:
    return rule.since <= 38


@pytest.mark.parametrize(
    ("policy", "asked", "from_1_37", "before"),
    [
        (TENTHS, None, "200m", "200m"),  # the default needs no rounding
        (TENTHS, "50m", "200m", "200m"),
        (TENTHS, "300m", "300m", "1"),  # before, amounts count in whole units, and each of these is rounded up to 1
        (TENTHS, "301m", "400m", "1"),
        (TENTHS, "1", "1", "1"),
        (TENTHS, "1001m", None, None),  # more than the largest
        (TENTHS, "300100u", None, "1"),  # finer than thousandths
        (FINE, "1001m", "2", "2"),  # the step is finer than thousandths
        ({"default": "1", "validRange": {"min": "1", "step": "2"}}, "1500m", "3", "3"),
        ({"default": "1", "validRange": {"min": "1", "step": "500m"}}, "1250m", "1500m", "2"),
    ],
)
def test_a_range_with_thousandths_is_rounded_up_in_thousandths_from_1_37_on(
    policy: Body, asked: str | None, from_1_37: str | None, before: str | None
) -> None:
    claim = a_claim(asking(asked))
    for in_force, expected in ((in_1_37, from_1_37), (in_1_36, before)):
        answer = ask(world(slice_of(shared(policy, "4"))), claim, in_force=in_force)
        assert (consumed(answer) if expected else message(answer)) == ([{"memory": expected}] if expected else CANNOT_ALLOCATE)


@seeds(range(300))
def test_random_ranges_are_rounded_up_as_a_walk_over_their_steps_says(seed: int) -> None:
    dice = random.Random(seed)
    least, step, asked = (dice.randrange(1, 4000, dice.choice([1, 50, 1000])) for _ in range(3))
    most = least + step * dice.randrange(4)
    policy = {"default": f"{least}m", "validRange": {"min": f"{least}m", "max": f"{most}m", "step": f"{step}m"}}
    for in_force, unit in ((in_1_37, 1), (in_1_36, 1000)):
        first, stride, wanted = (-(-each // unit) for each in (least, step, asked))
        steps = (number * unit for number in itertools.count(first, stride) if number >= wanted)
        expected = least if asked < least else next(steps)
        answer = ask(world(slice_of(shared(policy, "100"))), a_claim(asking(f"{asked}m")), in_force=in_force)
        if expected > most:
            assert message(answer) == CANNOT_ALLOCATE
        else:
            assert [nano(each["memory"]) for each in consumed(answer)] == [expected * 10**6]


SPELLINGS = ("memory", f"{GPU}/memory")


@pytest.mark.parametrize(("published", "asked"), list(itertools.product(SPELLINGS, SPELLINGS)))
def test_a_capacity_may_be_asked_for_with_the_drivers_domain_or_without_from_1_38_on(published: str, asked: str) -> None:
    offered = device("a", capacity={published: {"value": "40Gi"}}, allowMultipleAllocations=True)
    claim = a_claim(exactly("r", capacity={"requests": {asked: "3Gi"}}))
    assert consumed(ask(world(slice_of(offered)), claim, in_force=in_1_38)) == [{published: "3Gi"}]  # written as the driver publishes it
    earlier = ask(world(slice_of(offered)), claim, in_force=in_1_37)
    assert isinstance(earlier, Allocated) is (published == asked)


def test_a_capacity_of_another_domain_is_another_one_in_1_38_too() -> None:
    offered = device("a", capacity={"memory": {"value": "40Gi"}}, allowMultipleAllocations=True)
    claim = a_claim(exactly("r", capacity={"requests": {"other.example.com/memory": "3Gi"}}))
    assert message(ask(world(slice_of(offered)), claim, in_force=in_1_38)) == CANNOT_ALLOCATE


@pytest.mark.parametrize(("taken", "published"), list(itertools.product(SPELLINGS, SPELLINGS)))
def test_shares_count_when_the_driver_spells_the_capacity_another_way_than_before(taken: str, published: str) -> None:
    held = [given(a_claim(name="x"), result("a", shareID="1", consumedCapacity={taken: "30Gi"}))]
    offered = device("a", capacity={published: {"value": "40Gi"}}, allowMultipleAllocations=True)
    fits, too_much = (a_claim(exactly("r", capacity={"requests": {published: amount}})) for amount in ("10Gi", "11Gi"))
    assert names(ask(world(slice_of(offered), claims=held), fits)) == [["r:a"]]
    assert message(ask(world(slice_of(offered), claims=held), too_much)) == CANNOT_ALLOCATE


def test_of_two_spellings_the_one_with_the_domain_counts() -> None:
    offered = device("a", capacity={f"{GPU}/memory": {"value": "4Gi"}, "memory": {"value": "40Gi"}}, allowMultipleAllocations=True)
    both = a_claim(exactly("r", capacity={"requests": {f"{GPU}/memory": "1Gi", "memory": "5Gi"}}))
    assert consumed(ask(world(slice_of(offered)), both, in_force=in_1_38)) == [{f"{GPU}/memory": "1Gi"}]
    seen = a_claim(exactly("r", "any", f'device.capacity["{GPU}"].memory.compareTo(quantity("4Gi")) == 0'))
    assert names(ask(world(slice_of(offered)), seen)) == [["r:a"]]
