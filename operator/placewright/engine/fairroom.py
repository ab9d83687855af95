"""Guests of a room that come from many peers, and which of them makes room, so that no peer takes the places of the others.

Whoever asks for a place beyond those there are gets the place of the peer that has most guests, which loses its oldest: a peer that has
one guest loses it only when all others have no more than one. Nobody is refused for the address that they come from, because addresses
are shared: behind a node's address there may be its kubelet and a tenant. How many places there are, and how long a guest keeps
theirs, is for the owner of the room to say.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Hashable, Iterator, KeysView
from typing import Final, Generic, TypeVar

G = TypeVar("G", bound=Hashable)

#: Bits of an IPv6 address that say who it is: whoever has a network of his own has all addresses below.
_IPV6_PREFIX: Final = 64


class FairRoom(Generic[G]):
    """Guests, each of some peer, in the order in which they came."""

    def __init__(self) -> None:
        self._guests: dict[G, str] = {}
        self._by_peer: dict[str, dict[G, None]] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def __contains__(self, guest: G) -> bool:
        return guest in self._guests

    def __iter__(self) -> Iterator[G]:
        """Over those who are there now, the oldest first."""
        return iter(tuple(self._guests))

    @property
    def peers(self) -> KeysView[str]:
        """Those that have a guest here."""
        return self._by_peer.keys()

    def guests_of(self, peer: str) -> int:
        """How many guests a peer has."""
        return len(self._by_peer.get(peer, ()))

    def oldest_of(self, peer: str) -> G | None:
        """A peer's guest that came first; None if it has none."""
        return next(iter(self._by_peer.get(peer, ())), None)

    def who_makes_room(self, newcomer: str | None = None) -> G | None:
        """The oldest guest of the peer that has most. None if nobody is here.

        Args:
            newcomer: the peer that gets the place, and counts as having one guest more; None if they are here already.
        """
        if not self._by_peer:
            return None
        return self.oldest_of(max(self._by_peer, key=lambda peer: self.guests_of(peer) + (peer == newcomer)))

    def next_into(self, room: FairRoom[G]) -> G | None:
        """Who is the next to go on into another room: the oldest guest of the peer that has fewest there. None if nobody is here."""
        if not self._guests:
            return None
        return self.oldest_of(min(self._by_peer, key=room.guests_of))

    def enter(self, guest: G, peer: str) -> None:
        """Take a guest in."""
        self._guests[guest] = peer
        self._by_peer.setdefault(peer, {})[guest] = None

    def leave(self, guest: G) -> None:
        """Let a guest go, if they are here."""
        peer = self._guests.pop(guest, None)
        if peer is None:
            return
        theirs = self._by_peer[peer]
        del theirs[guest]
        if not theirs:
            del self._by_peer[peer]


def peer_of(address: str) -> str:
    """What counts as one peer: an IPv4 address, in whichever way a socket spells it, or an IPv6 network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(found), _IPV6_PREFIX), strict=False))
