"""Shares of places that no party can take alone, against a plain count of who holds what."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.api.fairshares import FairShares

PARTIES = "abcd"


@pytest.mark.parametrize(("places", "factor", "alone"), [(108, 2, 64), (512, 1, 224), (144, 6, 108), (1, 1, 1), (1, 7, 1), (3, 2, 2)])
def test_a_party_that_is_alone_gets_its_part_and_the_rest_is_kept(places: int, factor: int, alone: int) -> None:
    shares: FairShares[str] = FairShares(places, factor)
    while shares.may_take("a"):
        shares.take("a")
    assert (shares.held["a"], shares.most, shares.free) == (alone, alone, places - alone)


@given(st.integers(1, 40), st.integers(1, 8), st.lists(st.tuples(st.sampled_from(PARTIES), st.sampled_from("tfg")), max_size=120))
def test_places_are_counted_and_given_by_the_rule_whatever_is_taken_and_given_back(
    places: int, factor: int, steps: list[tuple[str, str]]
) -> None:
    shares: FairShares[str] = FairShares(places, factor)
    held: Counter[str] = Counter()
    for party, step in steps:
        free = places - sum(min(count, shares.most) for count in held.values())
        may = held[party] < factor * (free - places // 8) if held[party] else free > 0
        assert shares.free == free
        assert shares.may_take(party) == may
        if step == "g" and held[party]:
            shares.give_back(party)
            held[party] -= 1
        elif step == "f" or (step == "t" and may):
            shares.take(party)
            held[party] += 1
        assert dict(shares.held) == {name: count for name, count in held.items() if count}


@given(st.integers(1, 64), st.integers(1, 8), st.integers(1, 70))
def test_who_holds_nothing_gets_a_place_as_long_as_one_is_free_and_never_more_are_given_than_there_are(
    places: int, factor: int, parties: int
) -> None:
    shares: FairShares[int] = FairShares(places, factor)
    for party in range(parties):
        assert shares.may_take(party) == (shares.free > 0)
        while shares.may_take(party):
            shares.take(party)
    assert 0 <= shares.free == places - sum(shares.held.values())


@pytest.mark.parametrize(("places", "factor", "parties"), [(512, 1, 60), (108, 2, 15), (8_192, 1, 1000)])
def test_so_many_parties_that_give_nothing_back_still_leave_a_place_to_the_next(places: int, factor: int, parties: int) -> None:
    shares: FairShares[int] = FairShares(places, factor)
    for party in range(parties):
        while shares.may_take(party):
            shares.take(party)
    assert shares.may_take(-1)


@given(st.integers(2, 64), st.integers(1, 200))
def test_what_a_party_had_to_take_beyond_its_share_takes_nothing_from_others(places: int, forced: int) -> None:
    shares: FairShares[str] = FairShares(places, 1)
    for _ in range(forced):
        shares.take("gang")
    assert shares.may_take("other")
    for _ in range(forced):
        shares.give_back("gang")
    assert shares.free == places
