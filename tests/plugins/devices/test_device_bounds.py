"""Searches that would take too long give up, with a line that says so; and simple claims are answered for all rows at once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from device_worlds import (
    DRIVERS,
    claim,
    cluster_of,
    device,
    devices_of,
    exactly,
    given,
    node,
    read_claim,
    result,
    slice_of,
    table,
    wish,
    world,
)

from placewright.api.devices import ResourceClaimStatus
from placewright.plugins.dynamicresources.allocator import MOST_STEPS, DeviceSearch
from placewright.plugins.dynamicresources.devices import (
    CANNOT_ALLOCATE,
    MOST_STEPS_IN_ALL,
    MOST_STEPS_TO_TELL,
    Allocated,
    Refusal,
    count_free,
)

Body = dict[str, Any]
GPU = DRIVERS[0]


def puzzle(nodes: int = 1) -> Body:
    """Devices with a value of each of two attributes, eight values each; all values can be had, but not by eight devices at once.

    They are the edges of a graph between the two kinds of values in which five of the one kind know only four of the other.
    """
    edges = [(v, w) for v in range(8) for w in range(8) if v >= 5 or w < 4]
    made = [device(f"d{i}", attributes={"v": v, "w": w}) for i, (v, w) in enumerate(edges)]
    return world(*(slice_of(*made, pool=f"n{n}") for n in range(nodes)), nodes=[node(f"n{n}") for n in range(nodes)])


HARDEST = claim(exactly("r", count=8), constraints=[{"distinctAttribute": f"{GPU}/{name}"} for name in "vw"])


def test_a_search_gives_up_after_so_many_steps_and_says_so() -> None:
    devices = devices_of(cluster_of(puzzle()))
    answer = devices.allocate(0, [read_claim(HARDEST)])
    assert answer == Refusal(f"gave up after {MOST_STEPS} steps: the claims can be combined with devices in too many ways")


def test_how_many_devices_a_node_lacks_is_not_told_where_the_search_for_that_takes_too_many_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[int] = []
    run = DeviceSearch.run

    def counted(self: DeviceSearch) -> bool:
        try:
            return run(self)
        finally:
            steps.append(self.steps)

    monkeypatch.setattr(DeviceSearch, "run", counted)
    devices = devices_of(cluster_of(puzzle(3)))
    hardest = [read_claim(HARDEST)]
    assert [devices.shortage(row, hardest) for row in range(3)] == [None] * 3
    assert sum(steps) == MOST_STEPS_TO_TELL


SEVEN = [device(f"d{i}", attributes={"v": i % 6, "fast": i == 0}) for i in range(7)]
EIGHT = [exactly(f"r{i}") for i in range(8)]


@pytest.mark.parametrize(
    "asked",
    [
        claim(*EIGHT),
        claim(*EIGHT[:4], exactly("r", count=4)),
        claim(*EIGHT[:7], constraints=[{"distinctAttribute": f"{GPU}/v"}]),
        claim(exactly("r", count=7), constraints=[{"distinctAttribute": f"{GPU}/v"}]),
        claim(*EIGHT[:4], constraints=[{"matchAttribute": f"{GPU}/v"}]),
        claim(exactly("s", "any", f'device.attributes["{GPU}"].fast'), exactly("t", "any", f'device.attributes["{GPU}"].fast')),
        claim(exactly("s"), constraints=[{"matchAttribute": "else/v"}]),
    ],
)
def test_too_few_devices_or_values_are_seen_without_a_search(asked: Body, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewright.plugins.dynamicresources.devices.MOST_STEPS", 0)
    devices = devices_of(cluster_of(world(slice_of(*SEVEN))))
    assert devices.allocate(0, [read_claim(asked)]) == Refusal(CANNOT_ALLOCATE)


def test_what_is_just_enough_is_searched_and_found() -> None:
    devices = devices_of(cluster_of(world(slice_of(*SEVEN))))
    pairs = claim(*EIGHT[:2], constraints=[{"matchAttribute": f"{GPU}/v"}], name="pair")
    rest = claim(*EIGHT[:5], constraints=[{"distinctAttribute": f"{GPU}/v"}], name="rest")
    assert isinstance(devices.allocate(0, [read_claim(pairs), read_claim(rest)]), Allocated)
    assert isinstance(devices.allocate(0, [read_claim(claim(*EIGHT[:7]))]), Allocated)


def test_rows_together_may_take_no_more_than_ten_times_as_many_steps_in_one_decision() -> None:
    devices = devices_of(cluster_of(puzzle(12)))
    asked = [read_claim(HARDEST)]
    answers = [devices.allocate(row, asked) for row in range(12)]
    assert [each.error for each in answers if isinstance(each, Refusal)] == [False] * 9 + [True] * 3
    why = "the claims can be combined with devices in too many ways"
    assert answers[-1] == Refusal(f"gave up after {MOST_STEPS_IN_ALL} steps on several nodes: {why}", error=True)
    assert isinstance(devices.allocate(0, [read_claim(claim(exactly("r")))]), Allocated)
    for begin in (lambda: devices.check(asked), lambda: devices.candidates([read_claim(claim(exactly("r")))])):
        begin()
        again = devices.allocate(0, asked)
        assert isinstance(again, Refusal)
        assert not again.error


def test_no_claim_gets_more_than_32_devices_and_alternatives_that_would_are_passed_over() -> None:
    devices = devices_of(cluster_of(world(slice_of(*(device(f"d{i}") for i in range(40))))))
    request = {"name": "r", "firstAvailable": [{"name": "many", **wish(count=20)}, {"name": "few", **wish(count=2)}]}
    answer = devices.allocate(0, [read_claim(claim(request, exactly("s", count=20)))])
    assert isinstance(answer, Allocated)
    results = answer.allocations[0].devices.results or ()
    assert {each.request for each in results} == {"r/few", "s"}


# --- all rows at once --------------------------------------------------------------------------------------------------------

PLAIN = device("a", attributes={"fast": True})


@pytest.mark.parametrize(
    ("one", "asked"),
    [
        (PLAIN, claim({"name": "r", "firstAvailable": [{"name": "s", **wish()}]})),
        (PLAIN, claim(exactly("r", allocationMode="All"))),
        (PLAIN, claim(exactly("r", adminAccess=True))),
        (PLAIN, claim(exactly("r"), constraints=[{"matchAttribute": f"{GPU}/fast"}])),
        (PLAIN, claim(exactly("r"), exactly("s", "any", "true"))),
        (PLAIN, claim(exactly("r", capacity={"requests": {"memory": "1"}}))),
        (PLAIN, claim(exactly("r", "any", f'device.attributes["{GPU}"].colour'))),
        (PLAIN, claim(exactly("r", "unknown"))),
        ({**PLAIN, "allowMultipleAllocations": True}, claim(exactly("r"))),
    ],
)
def test_claims_for_which_rows_have_to_be_searched_have_no_column(one: Body, asked: Body) -> None:
    devices = devices_of(cluster_of(world(slice_of(one))))
    assert devices.candidates([read_claim(asked)]) is None


def test_several_claims_of_one_pattern_are_counted_together() -> None:
    sizes = (1, 2, 3, 0)
    slices = [slice_of(*(device(f"d{i}") for i in range(size)), pool=f"n{n}") for n, size in enumerate(sizes)]
    cluster = cluster_of(world(*slices, nodes=[node(f"n{n}") for n in range(4)]))
    devices = devices_of(cluster)
    column = devices.candidates([read_claim(claim(exactly("r"), exactly("s"), name="x"))])
    assert column is not None
    assert column.tolist() == [False, True, True, False]
    column = devices.candidates([read_claim(claim(exactly("r"), name=name)) for name in "xyz"])
    assert column is not None
    assert column.tolist() == [False, False, True, False]


def test_a_column_follows_what_is_assumed_and_released() -> None:
    cluster = cluster_of(world(slice_of(PLAIN), slice_of(PLAIN, pool="n1"), nodes=[node("n0"), node("n1")]))
    devices, asked = devices_of(cluster), read_claim(claim(exactly("r")))
    table(cluster, "claims").put(asked)

    def column() -> list[bool]:
        devices.refresh()
        found = devices.candidates([read_claim(claim(exactly("r")))])
        assert found is not None
        return [bool(each) for each in found]

    assert column() == [True, True]
    answer = devices.allocate(1, [asked])
    assert isinstance(answer, Allocated)
    table(cluster, "claims").assume(msgspec.structs.replace(asked, status=ResourceClaimStatus(answer.allocations[0])))
    assert column() == [True, False]
    table(cluster, "claims").restore(asked)
    assert column() == [True, True]


def test_only_rows_that_changed_are_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"n{n}" for n in range(20)]
    cluster = cluster_of(world(*(slice_of(PLAIN, pool=name) for name in names), nodes=[node(name) for name in names]))
    devices, asked, counted = devices_of(cluster), read_claim(claim(exactly("r"))), []

    def counting(demand: Any, outlook: Any, usage: Any) -> int:
        counted.append(outlook)
        return count_free(demand, outlook, usage)

    monkeypatch.setattr("placewright.plugins.dynamicresources.devices.count_free", counting)
    devices.candidates([asked])
    assert len(counted) == 20
    answer = devices.allocate(7, [asked])
    assert isinstance(answer, Allocated)
    table(cluster, "claims").put(asked)
    table(cluster, "claims").assume(msgspec.structs.replace(asked, status=ResourceClaimStatus(answer.allocations[0])))
    devices.refresh()
    column = devices.candidates([read_claim(claim(exactly("other")))])
    assert len(counted) == 21
    assert column is not None
    assert [row for row in range(20) if not column[row]] == [7]


def test_a_node_that_joins_is_counted_and_one_that_left_is_not() -> None:
    cluster = cluster_of(world(slice_of(PLAIN), slice_of(PLAIN, pool="n1")))
    devices, asked = devices_of(cluster), [read_claim(claim(exactly("r")))]
    first = devices.candidates(asked)
    cluster.set_node(msgspec.convert(node("n1"), type(cluster.node(0))))
    devices.refresh()
    second = devices.candidates(asked)
    cluster.remove_node(cluster.names[0] or pytest.fail("no node"))
    devices.refresh()
    third = devices.candidates(asked)
    assert [each.tolist() for each in (first, second, third) if each is not None] == [[True], [True, True], [False, True]]


def test_a_claim_that_is_allocated_to_something_unknown_changes_nothing() -> None:
    held = [given(claim(name="x"), result("gone"), result("a", pool="gone"))]
    devices = devices_of(cluster_of(world(slice_of(PLAIN), claims=held)))
    assert isinstance(devices.allocate(0, [read_claim(claim(exactly("r")))]), Allocated)


def test_selectors_that_take_too_long_on_all_devices_together_get_further_with_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewright.plugins.dynamicresources.selectors.MOST_STEPS_IN_ALL", 2_000)
    slices = [slice_of(device("a", attributes={"fast": True, "serial": n}), pool=f"n{n}") for n in range(12)]
    devices = devices_of(cluster_of(world(*slices, nodes=[node(f"n{n}") for n in range(12)])))
    asked = [read_claim(claim(exactly("r", "any", f'device.attributes["{GPU}"].fast')))]
    attempts = 0
    while devices.check(asked).ok and (column := devices.candidates(asked)) is None:
        attempts += 1
        why = "selectors take more than 2000 steps on all devices together; the rest is for the next attempt"
        assert devices.allocate(11, asked) == Refusal(why, error=True)
    assert attempts == 1
    assert column is not None
    assert column.all()
    assert isinstance(devices.allocate(11, asked), Allocated)
