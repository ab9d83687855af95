"""Dictionaries that hold nothing empty: counts without zeros, and groups without empty groups. Tenants choose many of their keys."""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)


def add_count(counts: MutableMapping[K, int], key: K, delta: int) -> int:
    """Add to a count, and drop a count that is 0."""
    count = counts.pop(key, 0) + delta
    if count:
        counts[key] = count
    return count


def take_out(groups: MutableMapping[K, Any], key: K, item: Hashable) -> bool:
    """Take an item out of its group, and drop a group that is empty.

    Args:
        groups: dictionaries by key; one has the item as a key.
        key: key of the group.
        item: item in the group.

    Returns:
        True if the group was dropped.
    """
    group = groups[key]
    del group[item]
    if not group:
        del groups[key]
    return not group
