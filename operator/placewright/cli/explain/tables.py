"""Prints an explanation as text and tables."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from rich.console import Console

from placewright.cli.profiles.output import print_table, say, table
from placewright.cli.terminal import plain
from placewright.explain.claimfacts import UNCOUNTED, ClaimFact, FreeDevices
from placewright.explain.explanation import Explanation, Now, Queued, Ranked, Tried, TurnFacts
from placewright.explain.groupshortage import Holder, Shortage
from placewright.explain.nearestmiss import Miss
from placewright.scheduler.decisiondetail import NodeRefusal

_MILLISECOND: Final = 1e-3
_MINUTE: Final = 60.0
_HOUR: Final = 3600.0


def show_explanation(console: Console, found: Explanation, now: float | None = None) -> None:
    """Print where the pod is, and why.

    Args:
        console: to print on.
        found: the explanation.
        now: seconds since 1970; None for the current time.
    """
    clock = time.time() if now is None else now
    profile = f", profile {found.profile} generation {found.generation}" if found.profile else ""
    say(console, f"pod {found.namespace}/{found.name}{profile}")
    say(console, *_standing(found))
    say(console, *_group(found), *(f"claim {_claim(each)}" for each in found.claims))
    if found.now is not None:
        _show_now(console, found.now, " by itself; its group does not fit" if _group_does_not_fit(found) else "")
    if found.decision is not None:
        _show_products(console, "its annotation has the decision", found.decision.plugins, found.decision.score, found.decision.runner_up)
    if found.tried:
        _show_tried(console, found.tried, clock)


def _standing(found: Explanation) -> Iterable[str]:
    if found.node:
        yield f"on node {found.node}" + (", as far as the scheduler goes: it is being bound" if found.assumed else "")
    elif found.pending:
        yield "pending: it is there, on no node, and in the queue of no operator that was asked"
        if found.profile:
            yield "  an operator places it as soon as one runs and leads: kubectl apply -k manifests/base, or placewright run"
    elif found.queue is None:
        yield "on no node" + (" that is known here, nor in the queue: deleted, finished, or of no profile" if found.tried else "")
    if found.queue is not None:
        yield _queued(found.queue, found.scheduler_name)


def _group(found: Explanation) -> Iterable[str]:
    """The group, in a few lines."""
    group = found.group
    if group is None:
        return
    said = ["its members are placed one by one" if group.singly else f"needs {group.needed} at once" if group.needed else "not declared"]
    said += [f"{group.placed} placed", f"{group.waiting} wait{'s' if group.waiting == 1 else ''}"]
    if group.missing:
        said.append(f"{group.missing} {'is' if group.missing == 1 else 'are'} not there yet")
    if group.waiting_seconds and group.waiting:
        said.append(f"since {_span(group.waiting_seconds)}")
    if group.failures:
        said.append(f"tried in vain {group.failures} time{'s' if group.failures > 1 else ''}")
    yield f"group {group.object}: {'; '.join(said)}"
    if group.topology:
        yield f"  all in one domain of {group.topology}{', if possible' if group.preferred else ''}"
    if group.complaint or group.lacks:
        yield f"  {group.complaint or group.lacks}"
    for each in group.shortages:
        yield from _shortage(each)
    if group.kept:
        yield f"  nodes are kept for it: {', '.join(f'{node} ({members})' for node, members in group.kept.items())}"
    together = max((each.together for each in found.tried if each.node), default=0)
    if found.node and together:
        yield f"  decided in one go with {together - 1} other{'' if together == 2 else 's'} of it"


def _group_does_not_fit(found: Explanation) -> bool:
    group = found.group
    return group is not None and not group.singly and not found.node and bool(group.lacks or group.shortages)


def _shortage(short: Shortage) -> Iterable[str]:
    """How much of a resource is there for the group, and which pods hold the rest."""
    free = f"{short.free} of {short.total} are free, "
    free += f"{short.short} too few" if short.short else f"in pieces that hold {short.fit} of the {short.members}"
    yield f"  {short.members} member{'' if short.members == 1 else 's'} want {short.wanted} of {short.resource}: {free}"
    if short.holders:
        more = f", {short.others} other{'' if short.others == 1 else 's'}" if short.others else ""
        yield f"    held by {', '.join(_holder(each) for each in short.holders)}{more}"


def _holder(each: Holder) -> str:
    pods = f"{each.pods} pod{'' if each.pods == 1 else 's'}, " if each.pods else ""
    return f"{'' if each.pods else 'pod '}{each.name}: {each.amount} ({pods}priority {each.priority})"


def _claim(fact: ClaimFact) -> str:
    name = " ".join(filter(None, (fact.claim, f"({fact.entry})" if fact.entry else "(for its extended resources)")))
    if fact.problem:
        return f"{name}: {fact.problem}"
    asked = f"asks for {', '.join(fact.asks)}" if fact.asks else "asks for nothing"
    if not fact.devices:
        return f"{name}: {asked}; has no devices yet"
    has = ", ".join(f"{each.driver}/{each.pool}/{each.device}" for each in fact.devices)
    return f"{name}: {asked}; has {has}" + ("; this is being written" if fact.writing else f"; pods that use it: {fact.users}")


def _turn(turn: TurnFacts) -> str:
    tenant = f"tenant {turn.tenant!r}" if turn.tenant else "the pods without a tenant"
    others = f", behind {turn.ahead} pods of higher priority" if turn.ahead else ""
    room = ", and waits for a place: as many of its pods as may be are on their way" if turn.no_room else ""
    return f"pod {turn.position} of {turn.pods} of {tenant}, whose turn is {turn.turn} of {turn.tenants}{others}{room}"


def _queued(queue: Queued, scheduler_name: str) -> str:
    said = [f"{queue.place} for {_span(queue.waiting_seconds)}"]
    if queue.attempts:
        said.append(f"{queue.attempts} attempt{'s' if queue.attempts > 1 else ''}")
    said += _next_attempt(queue)
    if queue.rejected_by:
        said.append(f"waits for an event that may help with {', '.join(queue.rejected_by)}")
    if queue.gated_by:
        said.append(f"gated by {queue.gated_by}")
    if queue.nominated_node:
        said.append(f"room is being made on {queue.nominated_node}")
    if queue.suspect:
        said.append(queue.suspect)
    if queue.turn is not None:
        said.append(_turn(queue.turn))
    if queue.profile == "missing":
        meant = f" (did you mean {queue.meant!r}?)" if queue.meant else ""
        held = f": {queue.held}" if queue.held else ""
        said.append(f"no profile takes pods of schedulerName {scheduler_name!r}{held or meant}")
    if queue.profile == "paused":
        said.append("its profile is paused")
    return "in the queue: " + "; ".join(said)


def _next_attempt(queue: Queued) -> Iterator[str]:
    """When the pod may be tried again, as far as time says it."""
    if queue.backoff_seconds:
        yield f"backs off for another {_span(queue.backoff_seconds)}"
    if queue.given_up_seconds is not None:
        yield f"given up {_span(queue.given_up_seconds)} ago, tried again only after an event that may help"
    if queue.retry_seconds:
        yield f"tried again in {_span(queue.retry_seconds)} at the latest"


def _show_now(console: Console, now: Now, but: str = "") -> None:
    say(console, "")
    if now.gated:
        say(console, f"now: it would not be tried: {now.gated}")
        return
    if now.error:
        say(console, f"now: something breaks: {now.error}")
        return
    said = f"now: {now.feasible} of {now.nodes} nodes can hold it"
    say(console, said + (but if now.feasible else "") + (f"; {now.message}" if not now.nodes else ""))
    if now.unasked:
        say(console, f"not asked: the extenders {', '.join(now.unasked)}")
    if now.refusals:
        _show_refusals(console, now.refusals)
    if now.devices is not None:
        _show_devices(console, now.devices)
    if now.misses:
        say(console, "", "what would have to change, the least first")
        say(console, *(f"  {_miss(miss)}" for miss in now.misses))
    if now.best:
        _show_ranked(console, "best now", now.best)


def _miss(miss: Miss) -> str:
    needed = " and ".join(change.text for change in miss.changes)
    more = "at least " if miss.at_least else ""
    if miss.told_only:
        said = "; ".join(f"{change.plugin}: {change.text}" for change in miss.changes)
        return f"{miss.node}: {said}" + (f" ({more}{miss.nodes} such nodes)" if miss.nodes > 1 else "")
    if miss.of_the_pod:
        return f"{needed}: opens {miss.nodes} node{'s' if miss.nodes > 1 else ''}, such as {miss.node}"
    others = f", or on any of {more}{miss.nodes - 1} other{'s' if miss.nodes > 2 else ''}" if miss.nodes > 1 else ""
    return f"{miss.node} needs {needed}" + others


def _show_refusals(console: Console, refusals: Iterable[NodeRefusal]) -> None:
    made = table("NODES", "REJECTED BY", "REASON", "SUCH AS", numbers=("NODES",))
    for each in refusals:
        more = each.nodes > len(each.examples)
        examples = ", ".join(each.examples) + (", …" if more and each.examples else "")
        made.add_row(str(each.nodes), plain(each.plugin), plain(each.reason), plain(examples))
    print_table(console, made)


def _show_devices(console: Console, found: FreeDevices) -> None:
    wanted = f": the pod wants {found.wanted} of class {found.device_class}" if found.device_class else ""
    say(console, "", f"devices on nodes{wanted}")
    made = table("NODES", "FREE", "ENOUGH", "BUT", "SUCH AS", numbers=("NODES", "FREE"))
    for each in found.groups:
        more = ", …" if each.nodes > len(each.examples) else ""
        free = "" if each.free == UNCOUNTED else str(each.free)
        made.add_row(str(each.nodes), free, "yes" if each.enough else "no", plain(each.reason), plain(", ".join(each.examples) + more))
    print_table(console, made)


def _show_tried(console: Console, attempts: Iterable[Tried], now: float) -> None:
    say(console, "", "last attempts")
    made = table("ATTEMPT", "AGO", "RESULT", "NODE", "FEASIBLE", "TOOK", "MOST OF IT", numbers=("ATTEMPT",))
    attempts = list(attempts)
    for each in attempts:
        feasible = f"{each.feasible} of {each.nodes}" if each.nodes else ""
        longest = max(each.steps.items(), key=lambda step: step[1], default=("", 0.0))
        spent = f"{longest[0]} {_span(longest[1])}" if longest[0] else ""
        ago = _span(max(now - each.at, 0.0))  # this machine's clock may be behind the operator's
        made.add_row(*(plain(t) for t in (each.attempt, ago, each.result, each.node, feasible, _span(each.seconds), spent)))
    print_table(console, made)
    _show_latest(console, attempts[0])


def _show_latest(console: Console, last: Tried) -> None:
    if last.message:
        say(console, "", f"attempt {last.attempt} said: {last.message}")
        if last.refusals:
            _show_refusals(console, last.refusals)
    if last.best:
        _show_ranked(console, f"scores of attempt {last.attempt}{_tie(last)}", last.best)
    elif last.plugins:
        _show_products(console, f"score of attempt {last.attempt}{_tie(last)}", last.plugins, last.score, last.runner_up)
    elif last.node and last.feasible == 1:
        say(console, f"{last.node} was the only node that could hold it, so nothing was scored")


def _tie(last: Tried) -> str:
    return f", chosen at random among {last.ties} nodes with that total" if last.ties > 1 else ""


def _show_ranked(console: Console, title: str, nodes: Iterable[Ranked]) -> None:
    say(console, "", title)
    numbers = ("RAW", "NORMALISED", "WEIGHT", "PRODUCT")
    made = table("NODE", "PLUGIN", *numbers, numbers=numbers)
    for node in nodes:
        name = node.node
        for plugin, part in node.parts.items():
            figures = (part.raw, part.normalised, part.weight, part.product)
            made.add_row(plain(name), plain(plugin), *(str(figure) for figure in figures))
            name = ""
        made.add_row(plain(name), plain("total", "bold"), "", "", "", plain(node.total, "bold"))
    print_table(console, made)


def _show_products(console: Console, title: str, plugins: Mapping[str, int], score: int, runner_up: int | None) -> None:
    others = "there was no other" if runner_up is None else f"the best other node had {runner_up}"
    say(console, "", f"{title}: {score}; {others}")
    if plugins:
        made = table("PLUGIN", "PRODUCT", numbers=("PRODUCT",))
        for plugin, product in plugins.items():
            made.add_row(plain(plugin), str(product))
        print_table(console, made)


def _span(seconds: float) -> str:
    """A duration in two or three digits."""
    if seconds < _MILLISECOND:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1.0:
        return f"{seconds * 1e3:.3g} ms"
    if seconds < 2 * _MINUTE:
        return f"{seconds:.3g} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.0f} h"
