"""The page of a pod group: its members by state, its needs, the domains of its topology, its shortage, and its kept nodes.

The facts and their sentences are those of `placewright explain`. All members are of the group's own namespace. Pods and groups of other
namespaces may hold a scarce resource. They are named to readers who may see them, and counted for all others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from placewright.api.podgroups import Form, GroupRef
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster
from placewright.explain.groupfacts import GroupFacts, Holder, Shortage, group_facts, shortages
from placewright.explain.words import group_lines
from placewright.framework.runtime.evaluation import Evaluator
from placewright.scheduler.cycle import cut
from placewright.serving.rights import Rights
from placewright_console.pages.groupdomains import DomainFacts, domain_facts
from placewright_console.pages.pendingpods import PendingPods

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
