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
        if not any(reach.includes(name, labels) for reach in pool.reaches):
            continue
        if not pool.usable:
            unusable.append(pool)
            continue
        offers = [offer for offer in pool.offers.values() if offer.reach.includes(name, labels)]
        usable.append((_has_binding_conditions(pool, offers), pool, offers))
    usable.sort(key=lambda each: (each[0], each[1].id))
    unusable.sort(key=lambda pool: pool.id)
    return Outlook(tuple((pool, offer) for _, pool, offers in usable for offer in offers), tuple(unusable))


def _has_binding_conditions(pool: Pool, offers: Iterable[Offer]) -> bool:
    """Asked of all devices of the slices that are in reach, also of those that are not."""
    slices = {offer.slice for offer in offers}
    return any(offer.device.binding_conditions is not None for offer in pool.offers.values() if offer.slice in slices)
