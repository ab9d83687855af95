"""A room of guests (requests, streams) from many peers. A guest leaves for another, so that no peer fills the room.

A newcomer to a full room takes a place of the peer with the most guests, whose oldest guest leaves. So a peer with one guest loses it only
when no other peer has more than one. No peer is refused for its address, because addresses are shared: a node's address may be that of
its kubelet and of a tenant. The owner of the room decides how many places there are and how long a guest stays.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Hashable, Iterator
from typing import Final, Generic, TypeVar

G = TypeVar("G", bound=Hashable)

#: Bits of an IPv6 address that tell peers apart: a host can take any address of its /64 network.
_IPV6_PREFIX: Final = 64


class FairRoom(Generic[G]):
    """The guests of a room, each with its peer, in the order in which they came."""

    def __init__(self) -> None:
        self._guests: dict[G, str] = {}
        self._by_peer: dict[str, dict[G, None]] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def __contains__(self, guest: G) -> bool:
        return guest in self._guests

    def __iter__(self) -> Iterator[G]:
        """Iterate over a copy of the guests, the oldest first: callers let guests leave meanwhile."""
        return iter(tuple(self._guests))

    def peer(self, guest: G) -> str | None:
        """Return the peer of a guest; None if the guest is not here."""
        return self._guests.get(guest)

    def guests_of(self, peer: str) -> int:
        """Return the number of a peer's guests."""
        return len(self._by_peer.get(peer, ()))

    def oldest_of(self, peer: str) -> G | None:
        """Return the guest of a peer that came first; None if the peer has no guest."""
        return next(iter(self._by_peer.get(peer, ())), None)

    def who_makes_room(self) -> G | None:
        """Find the guest that leaves: the oldest one of the peer with the most guests; None if the room is empty."""
        return self.oldest_of(max(self._by_peer, key=self.guests_of)) if self._by_peer else None

    def who_makes_room_for(self, newcomer: str) -> G | None:
        """Find the guest that leaves for a newcomer whose party may also be refused.

        Args:
            newcomer: the peer that wants the place.

        Returns:
            The oldest guest of the peer with the most guests; None if that peer would have fewer than the newcomer then.
        """
        loser = self.who_makes_room()
        return loser if loser is not None and self.guests_of(self._guests[loser]) > self.guests_of(newcomer) + 1 else None

    def next_into(self, room: FairRoom[G]) -> G | None:
        """Find the guest that moves on into another room.

        Args:
            room: the other room.

        Returns:
            The oldest guest of the peer with the fewest guests in the other room; None if this room is empty.
        """
        if not self._guests:
            return None
        return self.oldest_of(min(self._by_peer, key=room.guests_of))

    def enter(self, guest: G, peer: str) -> None:
        """Add a guest. O(1).

        Args:
            guest: not in the room yet.
            peer: peer of the guest.
        """
        self._guests[guest] = peer
        self._by_peer.setdefault(peer, {})[guest] = None

    def leave(self, guest: G) -> None:
        """Remove a guest; nothing if it is not here. O(1)."""
        peer = self._guests.pop(guest, None)
        if peer is None:
            return
        theirs = self._by_peer[peer]
        del theirs[guest]
        if not theirs:
            del self._by_peer[peer]


def ip_of(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Read an IP address as a socket spells it, perhaps with an IPv6 zone. An IPv4 address that is mapped into IPv6 is read as IPv4."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return (found.ipv4_mapped or found) if isinstance(found, ipaddress.IPv6Address) else found


def peer_of(address: str) -> str:
    """Find the peer that an address belongs to.

    Args:
        address: the address, as a socket spells it, perhaps with an IPv6 zone.

    Returns:
        An IPv4 address, also for one mapped into IPv6; an IPv6 /64 network; the text itself where it is no IP address.

    Example:
        >>> peer_of("::ffff:10.0.0.1"), peer_of("2001:db8::1")
        ('10.0.0.1', '2001:db8::/64')
    """
    found = ip_of(address)
    if isinstance(found, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((int(found), _IPV6_PREFIX), strict=False))
    return address if found is None else str(found)
