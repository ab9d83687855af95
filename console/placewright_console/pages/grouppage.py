"""The page of a pod group: its members by state, its needs, the domains of its topology, its shortage, and its kept nodes.

The facts and their sentences are those of `placewright explain`. All members are of the group's own namespace. Pods and groups of other
namespaces may hold a scarce resource. They are named to readers who may see them, and counted for all others.

The topology domains of a group with their numbers: what each has free, and for how many members that is enough.

They come in the order of `scheduler.podgroups.domains`. The scheduler skips a domain whose nodes together have less free than the members
request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from placewright.api.podgroups import Form, GroupRef, PodGroup
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.explain.groupfacts import GroupFacts, Holder, Shortage, group_facts, or_logged, shortages, usable_rows
from placewright.explain.words import group_lines
from placewright.framework.interface import IntColumn, Rows
from placewright.framework.runtime.evaluation import Evaluator
from placewright.scheduler.cycle import cut
from placewright.scheduler.podgroups.domains import Domain, domains, free, joined_domain
from placewright.serving.rights import Rights
from placewright_console.pages.pendingpods import PendingPods

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


#: Members that a page names: first the waiting ones, the oldest of them first.
MOST_MEMBERS: Final = 500
_RUNNING: Final = "Running"


class _Member(NamedTuple):
    """A member as the page shows it; `since` is 0 for members on nodes."""

    name: str
    state: str
    node: str
    since: float


def group_page(cluster: Cluster, pending: PendingPods, namespace: str, name: str, rights: Rights) -> dict[str, Any] | None:
    """Make the page of a group.

    Args:
        cluster: only read.
        pending: the pods without a node.
        namespace: namespace of the group.
        name: name of the group; of a Workload `workload/group` or `workload/group/replica`.
        rights: rights of the reader.

    Returns:
        None for a group that nothing is known of, and for one that the reader may not see.
    """
    refs = list(_known(cluster, pending, namespace, name)) if rights.may_see(namespace) else []
    if not refs:
        return None
    ref, waiting = refs[0], list(pending.members(refs[0]))
    evaluator = _evaluator(pending, waiting)
    facts, domains = _facts(cluster, pending, ref, waiting, evaluator if not isinstance(evaluator, str) else None)
    hidden = [_without_hidden(each, rights) for each in facts.shortages]
    facts = replace(facts, shortages=tuple(hidden))
    members = sorted(_members(cluster, pending, ref, waiting), key=lambda each: (bool(each.node), each.since, each.name))
    named = sorted(members[:MOST_MEMBERS], key=lambda each: (bool(each.node), natural(each.name)))
    notes = [f"there is a {each.form} of this name, too" for each in refs[1:]]
    if isinstance(evaluator, str):
        notes.append(evaluator)
    return {
        "namespace": namespace,
        "name": name,
        "kind": str(ref.form),
        "headline": headline(facts, domains),
        "lines": list(group_lines(facts)),
        "facts": {**msgspec.to_builtins(facts), "shortages": [_shortage(each) for each in facts.shortages]},
        "states": sorted(Counter(each.state for each in members).items(), key=lambda state: (-state[1], state[0])),
        "members": [list(each) for each in named],
        "more": max(len(members) - MOST_MEMBERS, 0),
        "domains": None if domains is None else msgspec.to_builtins(domains),
        "notes": notes,
    }


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts names as people count: `llm-2` comes before `llm-10`."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def headline(facts: GroupFacts, domains: DomainFacts | None) -> str:
    """Say in a line whether the group has its nodes, where it would go, or why it waits.

    Args:
        facts: facts of the group.
        domains: domains of its topology, if it has one.

    Returns:
        The line. Room is counted for members one by one, as in the table of domains.
    """
    if not facts.waiting and not facts.missing:
        return f"All {facts.placed:,} members have nodes" if facts.placed else "No member is there"
    if facts.complaint:
        return f"It is not tried: {facts.complaint}"
    if facts.missing:
        return f"It waits for {facts.missing:,} more member{'' if facts.missing == 1 else 's'} to be created"
    wanting = ", ".join(f"{each.short} of {each.resource}" for each in facts.shortages if each.short)
    why = (
        f"It waits: {wanting} too few"
        if wanting
        else f"It waits: {facts.lacks}"
        if facts.lacks
        else f"{facts.waiting:,} of its members wait"
    )
    return _place(facts, domains) or why


def _place(facts: GroupFacts, domains: DomainFacts | None) -> str:
    """Return the domain that has room for the group, or that none has; empty if it needs none."""
    if domains is None or not domains.members:
        return ""
    fits = next((each for each in domains.found if each.tried and each.fit >= domains.members), None)
    if fits is not None:
        return f"It would go to {domains.key} {fits.value}, which has room for all {domains.members:,} members"
    most = max(domains.found, key=lambda each: each.fit, default=None)
    room = f": {most.value} has room for {most.fit:,}" if most is not None and most.fit else ""
    return "" if facts.preferred else f"It waits: no {domains.key} has room for all {domains.members:,} members{room}"


def _known(cluster: Cluster, pending: PendingPods, namespace: str, name: str) -> Iterator[GroupRef]:
    """Iterate over the groups of this name, of any kind: groups with waiting members, then groups with placed members."""
    refs = [GroupRef(form, namespace, name) for form in Form]
    waits, stands = ([ref for ref in refs if has(ref)] for has in (pending.members, cluster.pod_groups.placed))
    declared = [ref for ref in refs if cluster.pod_groups.get(ref) is not None]
    yield from dict.fromkeys((*waits, *stands, *declared))


def _evaluator(pending: PendingPods, waiting: Collection[PodInfo]) -> Evaluator | str | None:
    """Return the evaluator of the member that is tried first, as for the shortages; None without a waiting member."""
    first = max(waiting, key=lambda pod: pod.priority, default=None)
    return None if first is None else pending.evaluator(first)


def _facts(
    cluster: Cluster, pending: PendingPods, ref: GroupRef, waiting: Collection[PodInfo], evaluator: Evaluator | None
) -> tuple[GroupFacts, DomainFacts | None]:
    pod_group, turn = cluster.pod_groups.get(ref), pending.turn_of(ref)
    facts = group_facts(cluster.pod_groups, ref, waiting)
    facts = replace(
        facts, waiting_seconds=turn.waiting_seconds, failures=turn.failures, lacks=cut(turn.lacks), kept=dict(turn.kept)
    )  # fmt: skip
    if pod_group is None or facts.complaint:
        return facts, None
    if evaluator is not None:
        facts = replace(facts, shortages=shortages(evaluator, cluster, pod_group, waiting))
    return facts, domain_facts(cluster, pod_group, waiting, evaluator)


def _members(cluster: Cluster, pending: PendingPods, ref: GroupRef, waiting: Collection[PodInfo]) -> Iterator[_Member]:
    placed = cluster.pod_groups.placed(ref)
    for pod in waiting:
        if pod.uid not in placed:
            place, since = pending.standing(pod)
            yield _Member(pod.name, place or "in no sub-queue", "", since)
    for uid in placed:
        placement = cluster.placement(uid)
        if placement is not None:
            pod = placement.pod
            state = "leaving" if cluster.leaves(pod) else "assumed" if placement.assumed else _phase(pod)
            yield _Member(pod.name, state, placement.node, 0.0)


def _phase(pod: PodInfo) -> str:
    return "running" if pod.pod.status.phase == _RUNNING else "bound"


def _without_hidden(short: Shortage, rights: Rights) -> Shortage:
    """Return the shortage with holders that the reader may see, and count the others."""
    seen = tuple(each for each in short.holders if rights.may_see(holder_key(each)[0]))
    return replace(short, holders=seen, others=short.others + len(short.holders) - len(seen))


def holder_key(holder: Holder) -> tuple[str, str]:
    """Return the namespace and the name of a pod or group that holds some of a resource.

    Args:
        holder: pod or group as `explain` names it; a group's name has its kind before it.
    """
    namespace, _, name = (holder.name.partition(" ")[2] if holder.pods else holder.name).partition("/")
    return namespace, name


def _shortage(short: Shortage) -> dict[str, Any]:
    holders = [
        {"group": bool(each.pods), "namespace": holder_key(each)[0], "name": holder_key(each)[1], "amount": each.amount,
         "priority": each.priority, "pods": each.pods or 1}
        for each in short.holders
    ]  # fmt: skip
    return {**msgspec.to_builtins(short), "holders": holders, "others": short.others}
