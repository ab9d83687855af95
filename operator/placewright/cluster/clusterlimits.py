"""Limits of the whole cluster for explanations: a label that no node has, or an amount that no node offers.

Without this, a misspelt zone reads like a hundred nodes that happen to be in other zones.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection
from typing import Final

import numpy as np

from placewright.api.requests import CPU, MEMORY
from placewright.cluster.cluster import Cluster

_MEBI: Final = 2**20
_IN_BYTES: Final = (MEMORY, "ephemeral-storage")
#: Names that are shown of many.
_SHOWN: Final = 3
#: Names that are compared letter by letter with a misspelt one: about 20 microseconds each, in the scheduler's own process.
_COMPARED: Final = 200


def label_nowhere(cluster: Cluster, key: str, values: Collection[str]) -> str:
    """Say that no node has the label with one of these values, and which label comes close.

    Args:
        cluster: only read.
        key: the label's key.
        values: values that would do; empty when any value would do.

    Returns:
        A phrase; "" when some node has the label with such a value.
    """
    present = _values(cluster, key)
    if not present:
        keys = cluster.label_keys
        close = _closest(key, keys)
        return f"no node has a label {key}" + (f"; there is {close}" if close else "")
    if not values or not present.isdisjoint(values):
        return ""
    close = _closest(min(values), present)
    others = [close] if close else sorted(present)[:_SHOWN]
    more = "" if close or len(present) <= _SHOWN else f" and {len(present) - _SHOWN} more"
    return f"no node has that label; there is {key}={', '.join(others)}{more}"


def too_large(cluster: Cluster, resource: str, units: int) -> str:
    """Say that no node offers so much of a resource, even when it is empty.

    Returns:
        A phrase for what is asked for; "" when some node offers that much.
    """
    rows = cluster.rows()
    largest = int(cluster.resources.column(resource).allocatable[rows].max(initial=0))
    if units <= largest:
        return ""
    return (
        f"more {resource} than any node has (the largest has {amount(resource, largest)})" if largest else f"{resource}, which no node has"
    )


def amount(resource: str, units: int) -> str:
    """Write an amount as people do: milli-CPU as `250m`, bytes in whole Mi rounded up, and counts as they are."""
    if resource == CPU:
        return f"{units}m"
    return f"{-(-units // _MEBI)}Mi" if resource in _IN_BYTES or resource.startswith("hugepages-") else str(units)


def _values(cluster: Cluster, key: str) -> set[str]:
    """Return the values that nodes have of a label."""
    column = cluster.label(key)
    return {value for code in np.unique(column.codes(cluster.rows())).tolist() if (value := column.values[code]) is not None}


def _closest(name: str, known: Collection[str]) -> str:
    """Return the known name that was likely meant, or ""."""
    alike = sorted(known, key=lambda each: (each[:2] != name[:2], abs(len(each) - len(name)), each))[:_COMPARED]
    return next(iter(difflib.get_close_matches(name, alike, n=1, cutoff=0.7)), "")
