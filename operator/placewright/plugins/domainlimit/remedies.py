"""Remedies of DomainLimit: the full domain, its pods by name, and how many of them must go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from placewright.api.pods import NO_LABELS
from placewright.cluster.cluster import Cluster
from placewright.framework.remedies import MOST_PODS, Remedy, RemedyKind, keys, standing_pods
from placewright.framework.topology import MISSING, Domains, tally_of
from placewright.plugins.domainlimit.limits import Limit


def fewer_pods(plugin: str, limits: Iterable[tuple[Limit, Domains]], cluster: Cluster, row: int) -> Iterator[Remedy]:
    """Propose for each limit that rejects the row fewer pods in its domain, or the label that the node lacks.

    At most `MOST_PODS` pods are named.
    """
    labels = cluster.node(row).metadata.labels or NO_LABELS
    for limit, place in limits:
        code = int(place.codes[row])
        if code == MISSING:
            yield Remedy(plugin, RemedyKind.TOLD, f"label {limit.key}, by whose values pods are limited")
            continue
        count = int(place.pods(tally_of(cluster, limit.pods))[code])
        surplus = count + 1 - limit.most
        if surplus > 0:
            value = labels.get(limit.key, "")
            named = keys(islice(standing_pods(cluster, limit.pods, limit.key, value), MOST_PODS))
            others = f" and {count - len(named)} more" if count > len(named) else ""
            fewer = f"{surplus} pod{'s' if surplus > 1 else ''} fewer"
            text = f"{fewer} in {limit.key}={value}, which has {count} of at most {limit.most} pods: {', '.join(named)}{others}"
            kind = RemedyKind.REMOVE_PODS if surplus <= len(named) else RemedyKind.TOLD
            yield Remedy(plugin, kind, text, pods=named[:surplus] if kind is RemedyKind.REMOVE_PODS else ())
