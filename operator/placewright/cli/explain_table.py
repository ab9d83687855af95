"""An explanation as text and tables that a person can read."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Final

from rich.console import Console

from placewright.cli.profiles.output import print_table, say, table
from placewright.cli.terminal import plain
from placewright.scheduler.explanation import Explanation, Now, Queued, Ranked, Tried
from placewright.scheduler.insight import Refusal
from placewright.scheduler.nearestmiss import Miss

_MILLISECOND: Final = 1e-3
_MINUTE: Final = 60.0
_HOUR: Final = 3600.0


def show_explanation(console: Console, found: Explanation, now: float | None = None) -> None:
    """Print where the pod is and why. `now`: seconds since 1970."""
    clock = time.time() if now is None else now
    profile = f", profile {found.profile} generation {found.generation}" if found.profile else ""
    say(console, f"pod {found.namespace}/{found.name}{profile}")
    say(console, *_standing(found))
    if found.now is not None:
        _show_now(console, found.now)
    if found.decision is not None:
        _show_products(console, "its annotation has the decision", found.decision.plugins, found.decision.score, found.decision.runner_up)
    if found.tried:
        _show_tried(console, found.tried, clock)


def _standing(found: Explanation) -> Iterable[str]:
    if found.node:
        yield f"on node {found.node}" + (", as far as the scheduler goes: it is being bound" if found.assumed else "")
    elif found.queue is None:
        yield "gone, or on no node" if found.now is None else "on no node"
    if found.queue is not None:
        yield _queued(found.queue)


def _queued(queue: Queued) -> str:
    said = [f"{queue.place} for {_span(queue.waiting_seconds)}"]
    if queue.attempts:
        said.append(f"{queue.attempts} attempt{'s' if queue.attempts > 1 else ''}")
    if queue.backoff_seconds:
        said.append(f"backs off for another {_span(queue.backoff_seconds)}")
    if queue.rejected_by:
        said.append(f"waits for what may help with {', '.join(queue.rejected_by)}")
    if queue.gated_by:
        said.append(f"gated by {queue.gated_by}")
    if queue.nominated_node:
        said.append(f"room is being made on {queue.nominated_node}")
    if queue.profile == "missing":
        said.append("no profile takes pods of its schedulerName")
    if queue.profile == "paused":
        said.append("its profile is paused")
    return "in the queue: " + "; ".join(said)


def _show_now(console: Console, now: Now) -> None:
    say(console, "")
    if now.gated:
        say(console, f"now: it would not be tried: {now.gated}")
        return
    if now.error:
        say(console, f"now: something breaks: {now.error}")
        return
    say(console, f"now: {now.feasible} of {now.nodes} nodes can hold it" + (f"; {now.message}" if not now.nodes else ""))
    if now.unasked:
        say(console, f"not asked: the extenders {', '.join(now.unasked)}")
    if now.refusals:
        _show_refusals(console, now.refusals)
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


def _show_refusals(console: Console, refusals: Iterable[Refusal]) -> None:
    made = table("NODES", "REJECTED BY", "REASON", "SUCH AS", numbers=("NODES",))
    for each in refusals:
        more = each.nodes > len(each.examples)
        examples = ", ".join(each.examples) + (", …" if more and each.examples else "")
        made.add_row(str(each.nodes), plain(each.plugin), plain(each.reason), plain(examples))
    print_table(console, made)


def _show_tried(console: Console, attempts: Iterable[Tried], now: float) -> None:
    say(console, "", "last attempts")
    made = table("ATTEMPT", "AGO", "RESULT", "NODE", "FEASIBLE", "TOOK", "MOST OF IT", numbers=("ATTEMPT",))
    attempts = list(attempts)
    for each in attempts:
        feasible = f"{each.feasible} of {each.nodes}" if each.nodes else ""
        longest = max(each.steps.items(), key=lambda step: step[1], default=("", 0.0))
        spent = f"{longest[0]} {_span(longest[1])}" if longest[0] else ""
        ago = _span(max(now - each.at, 0.0))
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
