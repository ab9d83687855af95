"""Places for a bounded number of guests that come from many peers, so that no peer takes the places of the others.

While there is a place, everybody gets one. Beyond that, whoever comes gets one all the same, and the peer that has most guests loses its
oldest: a peer that has one guest loses it only when all others have no more than one. Nobody is refused for the address that they come
from, because addresses are shared: behind a node's address there may be its kubelet and a tenant.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

G = TypeVar("G", bound=Hashable)

#: Bits of an IPv6 address that say who it is: whoever has a network of his own has all addresses below.
_IPV6_PREFIX: Final = 64


class FairRoom(Generic[G]):
    """At most `most` guests, each of some peer."""

    def __init__(self, most: int) -> None:
        self._most = most
        #: In the order in which they came.
        self._guests: dict[G, str] = {}
        self._by_peer: dict[str, dict[G, None]] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def __contains__(self, guest: G) -> bool:
        return guest in self._guests

    def __iter__(self) -> Iterator[G]:
        """Over those who are there now, the oldest first."""
        return iter(tuple(self._guests))

    def enter(self, guest: G, peer: str) -> G | None:
        """Give a guest a place; who lost theirs for it, None while there was one free."""
        self._guests[guest] = peer
        self._by_peer.setdefault(peer, {})[guest] = None
        if len(self._guests) <= self._most:
            return None
        most = max(self._by_peer.values(), key=len)
        oldest = next(iter(most))
        self.leave(oldest)
        return oldest

    def leave(self, guest: G) -> None:
        """Free a guest's place, if they have one."""
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
