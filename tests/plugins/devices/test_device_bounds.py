"""Searches that would take too long give up, with a line that says so; and simple claims are answered for all rows at once."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import hypothesis
import msgspec
import pytest
from device_worlds import (
    DRIVERS,
    a_claim,
    a_node,
    cluster_of,
    device,
    devices_of,
    exactly,
    given,
    read_claim,
    result,
    slice_of,
    table,
    wish,
    world,
)
from hypothesis import strategies as st

from placewright.api.devices import ResourceClaimStatus
from placewright.framework.status import Code
from placewright.plugins.dynamicresources.allocator import MOST_STEPS, DeviceSearch
from placewright.plugins.dynamicresources.answers import RowAnswers
from placewright.plugins.dynamicresources.claims import shapes
from placewright.plugins.dynamicresources.devices import (
    CANNOT_ALLOCATE,
    MOST_STEPS_IN_ALL,
    MOST_STEPS_TO_TELL,
    Allocated,
    ClusterDevices,
    Refusal,
    count_free,
)
from randomcases import cases

Body = dict[str, Any]
GPU = DRIVERS[0]


def puzzle(nodes: int = 1) -> Body:
    """Devices with a value of each of two attributes, eight values each; all values can be had, but not by eight devices at once.

    They are the edges of a graph between the two kinds of values in which five of the one kind know only four of the other.
    """
    edges = [(v, w) for v in range(8) for w in range(8) if v >= 5 or w < 4]
    made = [device(f"d{i}", attributes={"v": v, "w": w}) for i, (v, w) in enumerate(edges)]
    return world(*(slice_of(*made, pool=f"n{n}") for n in range(nodes)), nodes=[a_node(f"n{n}") for n in range(nodes)])


HARDEST = a_claim(exactly("r", count=8), constraints=[{"distinctAttribute": f"{GPU}/{name}"} for name in "vw"])


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
        a_claim(*EIGHT),
        a_claim(*EIGHT[:4], exactly("r", count=4)),
        a_claim(*EIGHT[:7], constraints=[{"distinctAttribute": f"{GPU}/v"}]),
        a_claim(exactly("r", count=7), constraints=[{"distinctAttribute": f"{GPU}/v"}]),
        a_claim(*EIGHT[:4], constraints=[{"matchAttribute": f"{GPU}/v"}]),
        a_claim(exactly("s", "any", f'device.attributes["{GPU}"].fast'), exactly("t", "any", f'device.attributes["{GPU}"].fast')),
        a_claim(exactly("s"), constraints=[{"matchAttribute": "else/v"}]),
    ],
)
def test_too_few_devices_or_values_are_seen_without_a_search(asked: Body, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewright.plugins.dynamicresources.devices.MOST_STEPS", 0)
    devices = devices_of(cluster_of(world(slice_of(*SEVEN))))
    assert devices.allocate(0, [read_claim(asked)]) == Refusal(CANNOT_ALLOCATE)


def test_what_is_just_enough_is_searched_and_found() -> None:
    devices = devices_of(cluster_of(world(slice_of(*SEVEN))))
    pairs = a_claim(*EIGHT[:2], constraints=[{"matchAttribute": f"{GPU}/v"}], name="pair")
    rest = a_claim(*EIGHT[:5], constraints=[{"distinctAttribute": f"{GPU}/v"}], name="rest")
    assert isinstance(devices.allocate(0, [read_claim(pairs), read_claim(rest)]), Allocated)
    assert isinstance(devices.allocate(0, [read_claim(a_claim(*EIGHT[:7]))]), Allocated)


def test_rows_together_may_take_no_more_than_ten_times_as_many_steps_in_one_decision() -> None:
    devices = devices_of(cluster_of(puzzle(12)))
    asked = [read_claim(HARDEST)]
    answers = [devices.allocate(row, asked) for row in range(12)]
    assert [each.error for each in answers if isinstance(each, Refusal)] == [False] * 9 + [True] * 3
    why = "the claims can be combined with devices in too many ways"
    assert answers[-1] == Refusal(f"gave up after {MOST_STEPS_IN_ALL} steps on several nodes: {why}", error=True, unfinished=True)
    assert isinstance(devices.allocate(0, [read_claim(a_claim(exactly("r")))]), Allocated)
    for begin in (lambda: devices.check(asked), lambda: devices.candidates([read_claim(a_claim(exactly("r")))])):
        begin()
        again = devices.allocate(0, asked)
        assert isinstance(again, Refusal)
        assert not again.error


def test_no_claim_gets_more_than_32_devices_and_alternatives_that_would_are_passed_over() -> None:
    devices = devices_of(cluster_of(world(slice_of(*(device(f"d{i}") for i in range(40))))))
    request = {"name": "r", "firstAvailable": [{"name": "many", **wish(count=20)}, {"name": "few", **wish(count=2)}]}
    answer = devices.allocate(0, [read_claim(a_claim(request, exactly("s", count=20)))])
    assert isinstance(answer, Allocated)
    results = answer.allocations[0].devices.results or ()
    assert {each.request for each in results} == {"r/few", "s"}


# --- all rows at once --------------------------------------------------------------------------------------------------------

PLAIN = device("a", attributes={"fast": True})


@pytest.mark.parametrize(
    ("one", "asked"),
    [
        (PLAIN, a_claim({"name": "r", "firstAvailable": [{"name": "s", **wish()}]})),
        (PLAIN, a_claim(exactly("r", allocationMode="All"))),
        (PLAIN, a_claim(exactly("r", adminAccess=True))),
        (PLAIN, a_claim(exactly("r"), constraints=[{"matchAttribute": f"{GPU}/fast"}])),
        (PLAIN, a_claim(exactly("r"), exactly("s", "any", "true"))),
        (PLAIN, a_claim(exactly("r", capacity={"requests": {"memory": "1"}}))),
        (PLAIN, a_claim(exactly("r", "any", f'device.attributes["{GPU}"].colour'))),
        (PLAIN, a_claim(exactly("r", "unknown"))),
        ({**PLAIN, "allowMultipleAllocations": True}, a_claim(exactly("r"))),
    ],
)
def test_claims_for_which_rows_have_to_be_searched_have_no_column(one: Body, asked: Body) -> None:
    devices = devices_of(cluster_of(world(slice_of(one))))
    assert devices.candidates([read_claim(asked)]) is None


def test_several_claims_of_one_pattern_are_counted_together() -> None:
    sizes = (1, 2, 3, 0)
    slices = [slice_of(*(device(f"d{i}") for i in range(size)), pool=f"n{n}") for n, size in enumerate(sizes)]
    cluster = cluster_of(world(*slices, nodes=[a_node(f"n{n}") for n in range(4)]))
    devices = devices_of(cluster)
    column = devices.candidates([read_claim(a_claim(exactly("r"), exactly("s"), name="x"))])
    assert column is not None
    assert column.tolist() == [False, True, True, False]
    column = devices.candidates([read_claim(a_claim(exactly("r"), name=name)) for name in "xyz"])
    assert column is not None
    assert column.tolist() == [False, False, True, False]


def test_a_column_follows_what_is_assumed_and_released() -> None:
    cluster = cluster_of(world(slice_of(PLAIN), slice_of(PLAIN, pool="n1"), nodes=[a_node("n0"), a_node("n1")]))
    devices, asked = devices_of(cluster), read_claim(a_claim(exactly("r")))
    table(cluster, "claims").put(asked)

    def column() -> list[bool]:
        devices.refresh()
        found = devices.candidates([read_claim(a_claim(exactly("r")))])
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
    cluster = cluster_of(world(*(slice_of(PLAIN, pool=name) for name in names), nodes=[a_node(name) for name in names]))
    devices, asked, counted = devices_of(cluster), read_claim(a_claim(exactly("r"))), []

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
    column = devices.candidates([read_claim(a_claim(exactly("other")))])
    assert len(counted) == 21
    assert column is not None
    assert [row for row in range(20) if not column[row]] == [7]


def test_a_node_that_joins_is_counted_and_one_that_left_is_not() -> None:
    cluster = cluster_of(world(slice_of(PLAIN), slice_of(PLAIN, pool="n1")))
    devices, asked = devices_of(cluster), [read_claim(a_claim(exactly("r")))]
    first = devices.candidates(asked)
    cluster.set_node(msgspec.convert(a_node("n1"), type(cluster.node(0))))
    devices.refresh()
    second = devices.candidates(asked)
    cluster.remove_node(cluster.names[0] or pytest.fail("no node"))
    devices.refresh()
    third = devices.candidates(asked)
    assert [each.tolist() for each in (first, second, third) if each is not None] == [[True], [True, True], [False, True]]


def test_a_claim_that_is_allocated_to_something_unknown_changes_nothing() -> None:
    held = [given(a_claim(name="x"), result("gone"), result("a", pool="gone"))]
    devices = devices_of(cluster_of(world(slice_of(PLAIN), claims=held)))
    assert isinstance(devices.allocate(0, [read_claim(a_claim(exactly("r")))]), Allocated)


def test_selectors_that_take_too_long_on_all_devices_together_get_further_with_each_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    slices = [slice_of(device("a", attributes={"fast": True, "serial": n}), pool=f"n{n}") for n in range(12)]
    devices = devices_of(cluster_of(world(*slices, nodes=[a_node(f"n{n}") for n in range(12)])))
    asked = [read_claim(a_claim(exactly("r", "any", f'device.attributes["{GPU}"].fast')))]
    assert devices.check(asked).ok  # compiled by now
    monkeypatch.setattr("placewright.plugins.dynamicresources.effort.MOST_STEPS_IN_ALL", 2_000)
    attempts = 0
    while devices.check(asked).ok and (column := devices.candidates(asked)) is None:
        attempts += 1
        why = "the search for devices takes more than 2000 steps on all nodes together; the rest is for the next attempt"
        assert devices.allocate(11, asked) == Refusal(why, error=True, unfinished=True)
    assert attempts == 1
    assert column is not None
    assert column.all()
    assert isinstance(devices.allocate(11, asked), Allocated)


# --- one budget for a decision -----------------------------------------------------------------------------------------------------


def spent(devices: ClusterDevices) -> int:
    """Steps of the decision at hand so far."""
    effort = devices._expressions.effort
    return effort._limit - effort._left


def calls_of(ask: Callable[[], object]) -> int:
    """Functions and methods of the plugin that are called meanwhile: a measure of work that nobody who counts steps has a hand in."""
    called = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal called
        called += event == "call" and "dynamicresources" in frame.f_code.co_filename

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        ask()
    finally:
        sys.setprofile(before)
    return called


def hard_question(seed: int) -> tuple[Body, Body]:
    """(world, claim): many devices, requests, alternatives and constraints, most of which cannot be served."""
    dice = random.Random(seed)
    count, values = dice.choice([1, 8, 40, 70]), dice.choice([1, 2, 7, 100])
    counted = dice.random() < 0.3

    def made(i: int) -> Body:
        more: Body = {"attributes": {name: dice.randrange(values) for name in "vw"}}
        if dice.random() < 0.2:
            more["taints"] = [{"key": f"t{j}", "effect": "NoSchedule"} for j in range(dice.randrange(8))]
        if dice.random() < 0.2:
            more |= {"allowMultipleAllocations": True, "capacity": {f"c{j}": "4" for j in range(dice.randrange(1, 8))}}
        if counted:
            more["consumesCounters"] = [{"counterSet": "chip", "counters": {"slots": {"value": "1"}}}]
        return device(f"d{i}", **more)

    nodes = [f"n{n}" for n in range(dice.choice([1, 3, 9]))]
    slices = [slice_of(*map(made, range(count)), pool=name, count=1 + counted) for name in nodes]
    if counted:
        sets = [{"name": "chip", "counters": {f"{word}": {"value": "40"} for word in ("slots", "a", "b", "c")}}]
        slices += [slice_of(name=f"{name}-chip", pool=name, count=2, sharedCounters=sets) for name in nodes]
    if dice.random() < 0.3:
        slices.append(slice_of(*map(made, range(20)), pool="net", allNodes=True))

    def wanted() -> Body:
        some = [f'device.attributes["{GPU}"].v == {dice.randrange(values)}'] if dice.random() < 0.3 else []
        more: Body = {"tolerations": [{"key": f"t{j}", "operator": "Exists"} for j in range(8)]} if dice.random() < 0.5 else {}
        return wish("any", *some, count=dice.choice([1, 1, 2]), **more)

    def request(i: int) -> Body:
        if dice.random() < 0.4:
            return {"name": f"r{i}", "firstAvailable": [{"name": f"s{j}", **wanted()} for j in range(dice.randrange(1, 8))]}
        return {"name": f"r{i}", "exactly": wanted()}

    kinds = ("matchAttribute", "distinctAttribute")
    constraints = [{dice.choice(kinds): f"{GPU}/{dice.choice('vwx')}"} for _ in range(dice.choice([0, 1, 4, 16]))]
    asked = a_claim(*map(request, range(dice.randrange(1, 14))), constraints=constraints)
    return world(*slices, nodes=[a_node(name) for name in nodes]), asked


HARD_QUESTIONS = st.integers(0, 2**32).map(hard_question)


@hypothesis.settings(max_examples=cases(40), deadline=None)
@hypothesis.given(question=HARD_QUESTIONS)
@hypothesis.example(question=hard_question(421))  # alternatives of many requests, and taints that are tolerated
def test_whatever_is_asked_all_work_of_the_search_is_counted(question: tuple[Body, Body]) -> None:
    cluster, asked = cluster_of(question[0]), [read_claim(question[1])]
    devices = devices_of(cluster)
    with pytest.MonkeyPatch.context() as patched:
        # A search that would go on says no more than its first part, and tracing it takes seconds.
        patched.setattr("placewright.plugins.dynamicresources.effort.MOST_STEPS_IN_ALL", 300_000)
        devices.check(asked)
        devices.candidates(asked)
        rows, before = cluster.rows().tolist(), spent(devices)
        called = calls_of(lambda: [devices.allocate(row, asked) for row in rows])
    assert called <= (spent(devices) - before) + 50 * len(rows) + 100


@hypothesis.settings(max_examples=cases(20), deadline=None)
@hypothesis.given(question=HARD_QUESTIONS, limit=st.integers(20_000, 200_000))  # the requests and one selector can always be read
def test_a_decision_that_runs_out_of_steps_gets_further_with_each_attempt_and_ends_with_the_same_answers(
    question: tuple[Body, Body], limit: int
) -> None:
    asked = [read_claim(question[1])]
    signature = shapes(asked)
    whole = RowAnswers(cluster_of(question[0]))
    whole.devices.refresh()
    whole.devices.check(asked)
    rows = whole._cluster.rows()
    expected = whole.fits(asked, signature, rows).tolist()
    hypothesis.assume(whole.unfinished(asked, signature, rows) is None)
    largest = 0
    for row in rows.tolist():  # what one node takes can always be had
        before = spent(whole.devices)
        whole.devices.allocate(row, asked)
        largest = max(largest, spent(whole.devices) - before)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("placewright.plugins.dynamicresources.effort.MOST_STEPS_IN_ALL", limit + 2 * largest)
        slow = RowAnswers(cluster_of(question[0]))
        for _ in range(200):
            slow.devices.refresh()
            slow.devices.check(asked)
            found = slow.fits(asked, signature, rows)
            assert spent(slow.devices) <= limit + 2 * largest
            if slow.unfinished(asked, signature, rows) is None and not slow._answers(signature).unfinished:
                break
        assert found.tolist() == expected


@pytest.mark.parametrize(
    "asked",
    [
        a_claim(*(exactly(f"r{i}") for i in range(24)), constraints=[{"matchAttribute": f"{GPU}/{name}"} for name in ("v", "uuid")]),
        a_claim(*({"name": f"r{i}", "firstAvailable": [{"name": f"s{j}", **wish()} for j in range(8)]} for i in range(32))),
        a_claim(*(exactly(f"r{i}") for i in range(32)), constraints=[{"distinctAttribute": f"{GPU}/v"}] * 32),
    ],
    ids=["attributes", "alternatives", "constraints"],
)
def test_the_steps_of_a_decision_are_bounded_by_the_nodes_that_there_are_and_the_pod_is_told(
    asked: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placewright.plugins.dynamicresources.effort.LEAST_STEPS_IN_ALL", 10_000)
    for nodes in (2, 8):
        names = [f"n{n}" for n in range(nodes)]
        made = [[device(f"d{i}", attributes={"v": i % 3, "uuid": f"{name}-{i}"}) for i in range(48)] for name in names]
        slices = [slice_of(*some, pool=name) for name, some in zip(names, made, strict=True)]
        devices = devices_of(cluster_of(world(*slices, nodes=[a_node(name) for name in names])))
        wanted = [read_claim(asked)]
        devices.check(wanted)
        answers = [devices.allocate(row, wanted) for row in range(nodes)]
        limit = 10_000 + 4_000 * nodes
        assert spent(devices) <= limit
        last = answers[-1]
        told = f"the search for devices takes more than {limit} steps on all nodes together; the rest is for the next attempt"
        assert last in (Refusal(CANNOT_ALLOCATE), Refusal(told, error=True, unfinished=True))


def test_a_pod_with_many_claims_that_take_long_to_read_gets_further_with_each_attempt() -> None:
    """Each claim is within its limits, and compiling all of them would take longer than any decision may."""
    devices = devices_of(cluster_of(world(slice_of(*(device(f"d{i}") for i in range(20))))))
    long = "y" * 900
    texts = [[f"true || 'x' == '{n}-{i}-{long}'" for i in range(32)] for n in range(20)]
    asked = [read_claim(a_claim(exactly("r", "any", *some), name=f"c{n}")) for n, some in enumerate(texts)]
    attempts = 1
    while not (status := devices.check(asked)).ok:
        assert "steps on all nodes together; the rest is for the next attempt" in status.message
        assert status.code is Code.ERROR
        assert (attempts := attempts + 1) < 12
    assert attempts > 2
    assert isinstance(devices.allocate(0, asked), Allocated)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (a_claim(*(exactly(f"r{i}", "any", *["true"] * 17) for i in range(16))), "has 272 selectors, this scheduler evaluates at most 256"),
        (
            a_claim(*(exactly(f"r{i}", "any", f"true || 'x' == '{'y' * 6_000}'") for i in range(11))),
            "characters of selectors, this scheduler reads at most 65536",
        ),
    ],
)
def test_a_claim_with_more_selectors_than_anybody_writes_is_refused_before_any_is_read(asked: Body, said: str) -> None:
    devices = devices_of(cluster_of(world(slice_of(PLAIN))))
    status = devices.check([read_claim(asked)])
    assert said in status.message
    assert not devices._expressions._known
