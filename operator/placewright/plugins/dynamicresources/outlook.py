"""The devices that can be reached from one node, in the order in which they are tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placewright.plugins.dynamicresources.pools import Offer, Pool


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """What one node has in reach.

    Attributes:
        offers: devices of usable pools, by driver and pool, in the order of the pool; pools with binding conditions come last.
        unusable: pools in reach that are incomplete or invalid.
    """

    offers: tuple[tuple[Pool, Offer], ...]
    unusable: tuple[Pool, ...]


def look_out(pools: Iterable[Pool], name: str, labels: Mapping[str, str]) -> Outlook:
    """What a node of this name and with these labels has in reach."""
    usable: list[tuple[bool, Pool, list[Offer]]] = []
    unusable = []
    for pool in pools:
        if not pool.includes(name, labels):
            continue
        if not pool.usable:
            unusable.append(pool)
            continue
        offers = pool.offers_to(name, labels)
        # binding conditions of all devices of slices in reach count, also of devices that are not
        usable.append((any(offer.slice in pool.binding for offer in offers), pool, offers))
    usable.sort(key=lambda each: (each[0], each[1].id))
    unusable.sort(key=lambda pool: pool.id)
    return Outlook(tuple((pool, offer) for _, pool, offers in usable for offer in offers), tuple(unusable))
