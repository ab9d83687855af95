"""Places for guests from many peers: the bound, who makes room, and what counts as one peer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placewright.serving.fairroom import FairRoom, peer_of

PEERS = "abcde"


def room_of(*guests: str) -> FairRoom[str]:
    """A room with guests whose first letter is their peer."""
    room = FairRoom[str]()
    for guest in guests:
        room.enter(guest, guest[0])
    return room


def test_guests_are_told_in_the_order_in_which_they_came() -> None:
    room = room_of("b1", "a1", "b2")
    assert list(room) == ["b1", "a1", "b2"]
    assert [room.guests_of(peer) for peer in "abc"] == [1, 2, 0]
    assert [room.oldest_of(peer) for peer in "abc"] == ["a1", "b1", None]


def test_the_peer_that_has_most_makes_room_with_its_oldest() -> None:
    assert room_of("b1", "a1", "a2").who_makes_room() == "a1"


def test_of_peers_that_have_one_guest_each_the_oldest_makes_room() -> None:
    assert room_of("a1", "b1").who_makes_room() == "a1"
    assert room_of().who_makes_room() is None


def test_a_peer_makes_room_for_another_only_where_it_then_has_as_many() -> None:
    room = room_of("b1", "a1", "a2")
    assert [room.who_makes_room_for(peer) for peer in "abc"] == [None, None, "a1"]
    assert room_of("a1", "b1").who_makes_room_for("c") is None


def test_the_next_into_another_room_is_of_the_peer_that_has_fewest_there() -> None:
    line = room_of("a1", "a2", "b1")
    assert line.next_into(room_of("a8", "a9", "b9")) == "b1"
    assert line.next_into(room_of()) == "a1"
    assert room_of().next_into(line) is None


def test_who_left_has_no_place_to_lose() -> None:
    room = room_of("a1", "a2")
    room.leave("a1")
    room.leave("a1")
    assert "a1" not in room
    assert room.who_makes_room() == "a2"


@given(st.integers(1, 6), st.lists(st.tuples(st.sampled_from(PEERS), st.booleans())))
def test_any_history_keeps_everybodys_share(most: int, steps: list[tuple[str, bool]]) -> None:
    """Beside a plain list: whoever has fewer than their share of the places loses none."""
    room = FairRoom[int]()
    there: list[tuple[int, str]] = []
    for number, (peer, comes) in enumerate(steps):
        if comes:
            if len(there) == most:
                lost = room.who_makes_room()
                assert lost is not None
                loser = dict(there)[lost]
                counts = {each: sum(one == each for _, one in there) for each in PEERS}
                assert counts[loser] == max(counts.values())
                assert lost == min(guest for guest, one in there if one == loser)
                there = [(guest, one) for guest, one in there if guest != lost]
                room.leave(lost)
            there.append((number, peer))
            room.enter(number, peer)
        elif there:
            guest, _ = there.pop(0)
            room.leave(guest)
        assert list(room) == [guest for guest, _ in there]
        assert {each: room.guests_of(each) for each in PEERS} == {each: sum(one == each for _, one in there) for each in PEERS}


@pytest.mark.parametrize(
    ("address", "peer"), [
        ("10.0.0.7", "10.0.0.7"), ("::ffff:10.0.0.7", "10.0.0.7"), ("::1", "::/64"), ("fd00:1:2:3:4:5:6:7", "fd00:1:2:3::/64"),
        ("fe80::1%eth0", "fe80::/64"), ("", ""),
    ],
)  # fmt: skip
def test_one_peer_is_an_address_of_ipv4_or_a_network_of_ipv6(address: str, peer: str) -> None:
    assert peer_of(address) == peer
