"""The topology domains of a group with their numbers: what each has free, and for how many members that is enough.

The scheduler tries domains in the same order (`scheduler.podgroups.domains`). It skips a domain whose nodes together have less free than
the members request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from placewright.api.podgroups import PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.explain.groupfacts import or_logged, usable_rows
from placewright.framework.interface import IntColumn, Rows
from placewright.framework.runtime.evaluation import Evaluator
from placewright.scheduler.podgroups.domains import Domain, domains, free, joined_domain

#: Most domains that are told.
MOST_DOMAINS: Final = 50
_DIGITS: Final = 2


class DomainResource(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A resource in a domain.

    Attributes:
        resource: its name.
        wanted: the least that the members request together, in milli-CPU, bytes or a count.
        free: amount left on all nodes of the domain.
        fit: members that this resource alone leaves room for, node by node, on the nodes that a member may use.
    """

    resource: str
    wanted: int
    free: int
    fit: int


class DomainFact(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One domain of a group's topology.

    Attributes:
        value: value of the topology label.
        nodes: number of nodes in the domain.
        usable: nodes that a member could use, now or if other pods left.
        placed: members of the group on these nodes.
        room: the free resources in multiples of what the members request; below 1 the domain is not tried.
        tried: the scheduler would try to place members here: there is room, and no member stands in a domain that they must share.
        fit: members that the scarcest resource leaves room for.
        scarce: the scarcest resource; None if no member waits.
    """

    value: str
    nodes: int
    usable: int
    placed: int = 0
    room: float = 0.0
    tried: bool = False
    fit: int = 0
    scarce: DomainResource | None = None


class DomainFacts(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The domains of a group's topology in the order in which they are tried.

    Attributes:
        key: the label's.
        members: that are wanted: the fewest that are placed together, or all that are left to join the ones on nodes.
        found: the first `MOST_DOMAINS`.
        others: the number of further ones.
    """

    key: str
    members: int
    found: tuple[DomainFact, ...]
    others: int = 0


def domain_facts(cluster: Cluster, pod_group: PodGroup, waiting: Collection[PodInfo], evaluator: Evaluator | None) -> DomainFacts | None:
    """Collect the numbers of each domain.

    Args:
        cluster: cluster with the nodes.
        pod_group: group as its object declares it.
        waiting: its members without a node.
        evaluator: evaluator of the members' profile; None if no profile claims them, so that all nodes count as usable.

    Returns:
        None for a group without a topology.
    """
    key = pod_group.topology_key
    if not key or pod_group.basic:
        return None
    members = sorted((pod for pod in waiting if cluster.placement(pod.uid) is None), key=lambda pod: -pod.priority)
    placed = _placed(cluster, pod_group, key)
    # Once members stand, the others join them one by one, and none waits for the rest.
    needed = len(members) if placed else min(max(pod_group.min_member, 1), len(members))
    ordered = domains(cluster, key, members, needed)
    usable = _usable(cluster, members, evaluator)
    told, wanted = ordered[:MOST_DOMAINS], list(_wanted(cluster, members, needed))
    found = [_fact(cluster, each, wanted, usable, placed[each.value]) for each in told]
    if not members:
        found = [replace(fact, room=0.0, tried=False) for fact in found]
    elif placed:
        joined = joined_domain(cluster, pod_group) if pod_group.topology_required else None
        found = [replace(fact, tried=joined is None or domain.names == joined) for fact, domain in zip(found, told, strict=True)]
    return DomainFacts(key, needed, tuple(found), len(ordered) - len(told))


def _usable(cluster: Cluster, members: Collection[PodInfo], evaluator: Evaluator | None) -> Rows:
    """Select the rows that a member may use. A plugin that fails is logged, because the numbers of all nodes still stand."""
    member = next(iter(members), None)
    if evaluator is None or member is None:
        return cluster.rows()
    unknown = "the nodes that members of %s could use cannot be told"
    return or_logged(lambda: usable_rows(evaluator, cluster, member), cluster.rows(), unknown, member.pod_group)


def _placed(cluster: Cluster, pod_group: PodGroup, key: str) -> Counter[str | None]:
    column, found = cluster.label(key), Counter[str | None]()
    for uid in cluster.pod_groups.placed(pod_group.ref):
        placement = cluster.placement(uid)
        row = None if placement is None else cluster.row(placement.node)
        found[None if row is None else column.get(row)] += 1
    return found


class _Wanted(NamedTuple):
    """A resource that the members request: the least that one and that all of them do, and what each row has free."""

    resource: str
    least: int
    together: int
    left: IntColumn


def _wanted(cluster: Cluster, members: Collection[PodInfo], needed: int) -> Iterator[_Wanted]:
    for name in sorted({name for pod in members for name in pod.requests}):
        asked = sorted(pod.requests.get(name, 0) for pod in members)[:needed]
        if asked and asked[0] > 0:
            yield _Wanted(name, asked[0], sum(asked), free(cluster, name))


def _fact(cluster: Cluster, domain: Domain, wanted: Sequence[_Wanted], usable: Rows, placed: int) -> DomainFact:
    rows = np.array([row for name in domain.names if (row := cluster.row(name)) is not None], np.intp)
    open_rows = np.intersect1d(rows, usable)
    told = [DomainResource(each.resource, each.together, int(each.left[rows].sum()), _fit(each, open_rows)) for each in wanted]
    scarce = min(told, key=lambda each: each.fit, default=None)
    return DomainFact(
        domain.value,
        nodes=len(rows),
        usable=len(open_rows),
        placed=placed,
        room=round(domain.room, _DIGITS),
        tried=domain.room >= 1,
        fit=0 if scarce is None else scarce.fit,
        scarce=scarce,
    )


def _fit(wanted: _Wanted, rows: Rows) -> int:
    return int((wanted.left[rows] // wanted.least).sum())
