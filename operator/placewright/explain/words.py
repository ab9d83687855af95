"""An explanation in sentences, for the terminal and for the pages of the console."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from placewright.explain.explanation import ClaimFact, CurrentVerdict, Explanation, Queued, TurnFacts
from placewright.explain.groupfacts import GroupFacts, Holder, Shortage
from placewright.explain.nearestmiss import Miss

_MILLISECOND: Final = 1e-3
#: Seconds from which three digits of milliseconds would read `1e+03 ms`.
_LARGEST_IN_MILLISECONDS: Final = 0.9995
_MINUTE: Final = 60.0
_HOUR: Final = 3600.0


def headline(found: Explanation) -> str:
    """Name the pod, its profile and the profile's generation."""
    profile = f", profile {found.profile} generation {found.generation}" if found.profile else ""
    return f"pod {found.namespace}/{found.name}{profile}"


def standing(found: Explanation) -> Iterable[str]:
    """Say where the pod is, where its group is, and which devices its claims have.

    Yields:
        Lines; a line that belongs to the one before it is indented.
    """
    yield from _standing(found)
    yield from _group(found)
    yield from (claim_line(each) for each in found.claims)


def verdict(found: Explanation, now: CurrentVerdict) -> str:
    """Say how many nodes can hold the pod now, or why it would not be tried."""
    if now.gated:
        return f"now: it would not be tried: {now.gated}"
    if now.error:
        return f"now: something breaks: {now.error}"
    but = " by itself; its group does not fit" if now.feasible and _group_does_not_fit(found) else ""
    return f"now: {now.feasible:,} of {now.nodes:,} nodes can hold it{but}" + (f"; {now.message}" if not now.nodes else "")


def beyond_line(misses: Iterable[Miss]) -> str:
    """Say what the pod asks for that no node offers, however many pods left it.

    Returns:
        One line; empty if some node is large enough.
    """
    beyond = dict.fromkeys(change.beyond for miss in misses for change in miss.changes if change.beyond)
    return f"it asks for {'; and for '.join(beyond)}" if beyond else ""


def miss_line(miss: Miss) -> str:
    """Say which changes would let a node hold the pod.

    Args:
        miss: nodes, and the changes that they need.
    """
    needed = " and ".join(change.text for change in miss.changes)
    more = "at least " if miss.at_least else ""
    if miss.told_only:
        said = "; ".join(f"{change.plugin}: {change.text}" for change in miss.changes)
        return f"{miss.node}: {said}" + (f" ({more}{miss.nodes:,} such nodes)" if miss.nodes > 1 else "")
    if miss.of_the_pod:
        return f"{needed}: opens {miss.nodes:,} node{'s' if miss.nodes > 1 else ''}, such as {miss.node}"
    others = f", or on any of {more}{miss.nodes - 1:,} other{'s' if miss.nodes > 2 else ''}" if miss.nodes > 1 else ""
    return f"{miss.node} needs {needed}" + others


def time_span(seconds: float) -> str:
    """Write a duration in two or three digits."""
    if seconds < _MILLISECOND:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < _LARGEST_IN_MILLISECONDS:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 2 * _MINUTE:
        return f"{seconds:.3g} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.0f} h"


def _standing(found: Explanation) -> Iterable[str]:
    if found.node:
        yield f"on node {found.node}" + (", as far as the scheduler goes: it is being bound" if found.assumed else "")
    elif found.pending:
        asked = f"and {found.leader}, which leads, could not be asked" if found.leader else "and in the queue of no operator that was asked"
        yield f"pending: it is there, on no node, {asked}"
        if found.profile and not found.leader and not found.paused:
            yield "  an operator places it as soon as one runs and leads: kubectl apply --server-side -k manifests/base, or placewright run"
    elif found.queue is None:
        yield "on no node" + (" that is known here, nor in the queue: deleted, finished, or of no profile" if found.tried else "")
    if found.queue is not None:
        yield queue_line(found.queue, found.scheduler_name)
    if found.paused or (found.queue is not None and found.queue.profile == "paused"):
        yield f"  profile {found.profile} is paused: its pods wait until spec.paused is false"
        yield f"  who paused it: placewright profiles history {found.profile}"
        yield f'  to go on: kubectl patch schedprof {found.profile} --type merge -p \'{{"spec":{{"paused":false}}}}\''


def _group(found: Explanation) -> Iterable[str]:
    """Describe the group in a few lines."""
    if found.group is None:
        return
    yield from group_lines(found.group)
    together = max((each.together for each in found.tried if each.node), default=0)
    if found.node and together:
        yield f"  decided in one go with {together - 1} other{'' if together == 2 else 's'} of it"


def group_lines(group: GroupFacts) -> Iterable[str]:
    """Say where a group stands, what it lacks and what is kept for it.

    Yields:
        Lines; all but the first are indented.
    """
    said = ["its members are placed one by one" if group.singly else f"needs {group.needed:,} at once" if group.needed else "not declared"]
    said += [f"{group.placed:,} placed", f"{group.waiting:,} wait{'s' if group.waiting == 1 else ''}"]
    if group.missing:
        said.append(f"{group.missing:,} {'is' if group.missing == 1 else 'are'} not there yet")
    if group.waiting_seconds and group.waiting:
        said.append(f"since {time_span(group.waiting_seconds)}")
    if group.failures:
        said.append(f"tried in vain {group.failures:,} time{'s' if group.failures > 1 else ''}")
    yield f"group {group.object}: {'; '.join(said)}"
    if group.topology:
        yield f"  all in one domain of {group.topology}{', if possible' if group.preferred else ''}"
    for above in group.above:
        needs = f"needs {above.needed:,} child groups at once" if above.needed else "its child groups are placed one by one"
        yield f"  below {above.object}: {needs}; {above.placed:,} of {above.children:,} placed"
    if group.complaint or group.lacks:
        yield f"  {group.complaint or group.lacks}"
    for each in group.shortages:
        yield from _shortage(each)
    if group.kept:
        yield f"  nodes are kept for it: {', '.join(f'{node} ({members})' for node, members in group.kept.items())}"


def _group_does_not_fit(found: Explanation) -> bool:
    group = found.group
    return group is not None and not group.singly and not found.node and bool(group.lacks or group.shortages)


def _shortage(short: Shortage) -> Iterable[str]:
    """Say how much of a resource is there for the group, and which pods hold the rest."""
    free = f"{short.free} of {short.total} are free, "
    free += f"{short.short} too few" if short.short else f"in pieces that hold {short.fit} of the {short.members}"
    yield f"  {short.members} member{'' if short.members == 1 else 's'} want {short.wanted} of {short.resource}: {free}"
    if short.holders:
        more = f", {short.others} other{'' if short.others == 1 else 's'}" if short.others else ""
        yield f"    held by {', '.join(_holder(each) for each in short.holders)}{more}"


def _holder(each: Holder) -> str:
    pods = f"{each.pods} pod{'' if each.pods == 1 else 's'}, " if each.pods else ""
    return f"{'' if each.pods else 'pod '}{each.name}: {each.amount} ({pods}priority {each.priority})"


def claim_line(fact: ClaimFact) -> str:
    """Say what a claim asks for, and which devices it has."""
    name = " ".join(filter(None, ("claim", fact.claim, f"({fact.entry})" if fact.entry else "(for its extended resources)")))
    if fact.problem:
        return f"{name}: {fact.problem}"
    asked = f"asks for {', '.join(fact.asks)}" if fact.asks else "asks for nothing"
    if not fact.devices:
        return f"{name}: {asked}; has no devices yet"
    has = ", ".join(f"{each.driver}/{each.pool}/{each.device}" for each in fact.devices)
    return f"{name}: {asked}; has {has}" + ("; this is being written" if fact.writing else f"; pods that use it: {fact.users}")


def queue_line(queue: Queued, scheduler_name: str) -> str:
    """Say where in the queue a pod is, and why."""
    said = [f"{queue.place} for {time_span(queue.waiting_seconds)}"]
    if queue.attempts:
        said.append(f"{queue.attempts:,} attempt{'s' if queue.attempts > 1 else ''}")
    said += _next_attempt(queue)
    if queue.rejected_by:
        said.append(f"waits for an event that may help with {', '.join(queue.rejected_by)}")
    if queue.gated_by:
        said.append(f"gated by {queue.gated_by}")
    if queue.nominated_node:
        said.append(f"nominated to {queue.nominated_node}, which is tried first")
    if queue.suspect:
        said.append(queue.suspect)
    if queue.turn is not None:
        said.append(_turn(queue.turn))
    if queue.profile == "missing":
        meant = f" (did you mean {queue.meant!r}?)" if queue.meant else ""
        held = f": {queue.held}" if queue.held else ""
        said.append(f"no profile takes pods of schedulerName {scheduler_name!r}{held or meant}")
    return "in the queue: " + "; ".join(said)


def _turn(turn: TurnFacts) -> str:
    tenant = f"tenant {turn.tenant!r}" if turn.tenant else "the pods without a tenant"
    others = f", behind {turn.ahead:,} pods of higher priority" if turn.ahead else ""
    room = ", and waits for a place: as many of its pods as may be are on their way" if turn.no_room else ""
    return f"pod {turn.position:,} of {turn.pods:,} of {tenant}, whose turn is {turn.turn:,} of {turn.tenants:,}{others}{room}"


def _next_attempt(queue: Queued) -> Iterator[str]:
    """Say when the pod may be tried again, as far as time says it."""
    if queue.backoff_seconds:
        yield f"backs off for another {time_span(queue.backoff_seconds)}"
    if queue.given_up_seconds is not None:
        yield f"given up {time_span(queue.given_up_seconds)} ago, tried again only after an event that may help"
    if queue.retry_seconds:
        yield f"tried again in {time_span(queue.retry_seconds)} at the latest"
