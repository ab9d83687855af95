from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.leadership.peers import TAIL_BITS, Replica, junior_to, make_replica, priority_of

MOMENT = 1_900_000_000_000
moments = st.integers(1_700_000_000_000, 8_000_000_000_000)
tails = st.integers(0, 2**TAIL_BITS - 1)


@given(moments, moments, tails, tails)
def test_the_older_outranks_the_younger_whatever_their_random_tails(first: int, second: int, one: int, other: int) -> None:
    if first != second:
        assert (priority_of(first, one) > priority_of(second, other)) == (first < second)


@given(moments, tails, tails)
def test_replicas_of_the_same_millisecond_differ_by_their_tails(moment: int, one: int, other: int) -> None:
    assert (priority_of(moment, one) == priority_of(moment, other)) == (one == other)


@given(moments, tails)
def test_a_priority_fits_int64_and_lies_below_a_persons_freeze(moment: int, tail: int) -> None:
    assert -(2**63) <= priority_of(moment, tail) < 100


@pytest.mark.parametrize(("moment", "tail"), [(-1, 0), (2**60, 0), (MOMENT, 2**TAIL_BITS)])
def test_what_does_not_fit_is_refused(moment: int, tail: int) -> None:
    with pytest.raises(ValueError, match="does not fit"):
        priority_of(moment, tail)


def test_the_pods_name_leads_the_identity() -> None:
    replica = make_replica(MOMENT, Random(1), {"POD_NAME": "placewright-0"})
    assert replica.identity.startswith(f"placewright-0/{MOMENT}/")
    assert make_replica(MOMENT, Random(1), {"POD_NAME": "a", "POD_ID": "b"}).identity.startswith("b/")


def test_two_replicas_on_one_host_have_different_identities_and_priorities() -> None:
    random = Random(1)
    one, other = make_replica(MOMENT, random, {}), make_replica(MOMENT, random, {})
    assert one.identity != other.identity and one.priority != other.priority


# --- whatever the clock says -------------------------------------------------------------------------------------------------------

priorities = st.builds(priority_of, moments, tails) | st.integers(-(2**63), 2**63 - 1)


@given(moments, tails, st.lists(priorities, max_size=5))
def test_a_newcomer_outranks_no_replica_that_is_there_however_far_its_clock_is_behind(moment: int, tail: int, there: list[int]) -> None:
    newcomer = junior_to(Replica("us", priority_of(moment, tail)), there)
    assert newcomer.identity == "us" and -(2**63) < newcomer.priority < 0
    possible = [each for each in there if -(2**62) < each < 0]  # there is room below these
    if all(each in possible for each in there if each < 0):
        assert all(newcomer.priority < each for each in possible)


def test_who_is_the_youngest_by_its_own_clock_keeps_its_priority() -> None:
    ours = priority_of(MOMENT, 7)
    assert junior_to(Replica("us", ours), [priority_of(MOMENT - 1, 0), 100, 0]).priority == ours
    assert junior_to(Replica("us", ours), []).priority == ours


def test_two_newcomers_behind_the_same_replica_differ_by_their_tails() -> None:
    there = [priority_of(MOMENT + 600_000, 0)]
    one, other = (junior_to(Replica("us", priority_of(MOMENT, tail)), there).priority for tail in (1, 2))
    assert one != other and max(one, other) < there[0]


def test_the_smallest_number_there_is_keeps_nobody_from_starting() -> None:
    ours = priority_of(MOMENT, 7)
    assert junior_to(Replica("us", ours), [-(2**63), 1 - 2**63]).priority == ours
