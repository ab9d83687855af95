"""Zones as kube-scheduler up to 1.22 knew them: a region and a zone together, by the labels of today or by those before 1.17.

If a node has a label of before 1.17, today's label does not count, as in `GetZoneKey` of component-helpers. Public: plugins of other
packages that rebuild rules of that time need the same zones.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from placewright.cluster.cluster import Cluster
from placewright.framework.memory import NodeMemory
from placewright.framework.topology import Domains

#: Code of rows without a zone.
NO_ZONE: Final = 0
_ZONE: Final = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION: Final = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")

_Name = tuple[str, str]


def zones(memory: NodeMemory, cluster: Cluster) -> Domains:
    """Return the zone of each row.

    Returns:
        Codes by row; `NO_ZONE` for a node without region and zone.
    """
    return memory.recall(cluster, ("zones",), lambda: _zones(cluster))


def _zones(cluster: Cluster) -> Domains:
    zone_codes, zone_names = _either(cluster, *_ZONE)
    region_codes, region_names = _either(cluster, *_REGION)
    pairs, rows = np.unique(region_codes * len(zone_names) + zone_codes, return_inverse=True)
    codes_of: dict[_Name, int] = {("", ""): NO_ZONE}
    named = ((region_names[pair // len(zone_names)], zone_names[pair % len(zone_names)]) for pair in pairs.tolist())
    codes = np.array([codes_of.setdefault(name, len(codes_of)) for name in named], np.intp)
    return Domains(codes[rows], len(codes_of)) if len(rows) else Domains(np.zeros(0, np.intp), 1)


def _either(cluster: Cluster, old: str, new: str) -> tuple[NDArray[np.int64], list[str]]:
    """Codes by row into the values of the old label, if a node has it, or of the new one; a missing label is the value ""."""
    rows = np.arange(cluster.size)
    before, now = cluster.label(old), cluster.label(new)
    had = before.codes(rows)
    codes = np.where(had != 0, had.astype(np.int64) + len(now.values), now.codes(rows))
    return codes, [value or "" for value in (*now.values, *before.values)]
