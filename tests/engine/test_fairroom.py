"""Places for guests from many peers: the bound, who makes room, and what counts as one peer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.engine.fairroom import FairRoom, peer_of

PEERS = "abcde"


def test_while_there_is_a_place_nobody_has_to_leave() -> None:
    room = FairRoom[int](3)
    assert [room.enter(guest, "a") for guest in range(3)] == [None, None, None]
    assert list(room) == [0, 1, 2]


def test_beyond_that_the_peer_that_has_most_loses_its_oldest() -> None:
    room = FairRoom[str](3)
    for guest in ("b1", "a1", "a2"):
        room.enter(guest, guest[0])
    assert room.enter("c1", "c") == "a1"
    assert room.enter("a3", "a") == "a2"


def test_a_peer_by_itself_makes_room_for_its_own_newest() -> None:
    room = FairRoom[int](2)
    assert [room.enter(guest, "a") for guest in range(4)] == [None, None, 0, 1]


def test_of_peers_that_have_one_guest_each_the_oldest_leaves() -> None:
    room = FairRoom[str](2)
    assert [room.enter(peer, peer) for peer in "abc"] == [None, None, "a"]


def test_who_left_has_no_place_to_lose() -> None:
    room = FairRoom[int](2)
    room.enter(1, "a")
    room.leave(1)
    room.leave(1)
    assert [room.enter(guest, "a") for guest in (2, 3)] == [None, None]
    assert 1 not in room


@given(st.integers(1, 6), st.lists(st.tuples(st.sampled_from(PEERS), st.booleans())))
def test_any_history_keeps_the_bound_and_everybodys_share(most: int, steps: list[tuple[str, bool]]) -> None:
    """Beside a plain list: whoever has fewer than their share of the places loses none, and no newcomer is turned away."""
    room = FairRoom[int](most)
    there: list[tuple[int, str]] = []
    for number, (peer, comes) in enumerate(steps):
        if comes:
            lost = room.enter(number, peer)
            there.append((number, peer))
            if lost is not None:
                loser = dict(there)[lost]
                counts = {each: sum(one == each for _, one in there) for each in PEERS}
                assert counts[loser] == max(counts.values())
                assert lost == min(guest for guest, one in there if one == loser)
                there = [(guest, one) for guest, one in there if guest != lost]
        elif there:
            guest, _ = there.pop(0)
            room.leave(guest)
        assert list(room) == [guest for guest, _ in there]
        assert len(room) <= most


@pytest.mark.parametrize(
    ("address", "peer"), [
        ("10.0.0.7", "10.0.0.7"), ("::ffff:10.0.0.7", "10.0.0.7"), ("::1", "::/64"), ("fd00:1:2:3:4:5:6:7", "fd00:1:2:3::/64"),
        ("fe80::1%eth0", "fe80::/64"), ("", ""),
    ],
)  # fmt: skip
def test_one_peer_is_an_address_of_ipv4_or_a_network_of_ipv6(address: str, peer: str) -> None:
    assert peer_of(address) == peer
