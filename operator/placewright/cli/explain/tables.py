"""Prints an explanation as text and tables."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console

from placewright.cli.terminal import plain, print_table, say, table
from placewright.explain.explanation import UNCOUNTED, AttemptSummary, CurrentVerdict, Explanation, FreeDevices, FreeGroup, RankedNode
from placewright.explain.words import beyond_line, headline, miss_line, standing, time_span, verdict
from placewright.scheduler.cycle import NodeRefusal


def show_explanation(console: Console, found: Explanation, now: float | None = None) -> None:
    """Print where the pod is, and why.

    Args:
        console: to print on.
        found: the explanation.
        now: seconds since 1970; None for the current time.
    """
    clock = time.time() if now is None else now
    say(console, headline(found))
    say(console, *standing(found))
    if found.now is not None:
        _show_now(console, found, found.now)
    if found.decision is not None:
        _show_products(console, "its annotation has the decision", found.decision.plugins, found.decision.score, found.decision.runner_up)
    if found.tried:
        _show_tried(console, found.tried, clock)


def _show_now(console: Console, found: Explanation, now: CurrentVerdict) -> None:
    say(console, "", verdict(found, now))
    if now.gated or now.error:
        return
    if now.unasked:
        say(console, f"not asked: the extenders {', '.join(now.unasked)}")
    if now.refusals:
        _show_refusals(console, now.refusals)
    if now.devices is not None:
        _show_devices(console, now.devices)
    if now.misses:
        say(console, *filter(None, [beyond_line(now.misses)]), "", "what would have to change, the least first")
        say(console, *(f"  {miss_line(miss)}" for miss in now.misses))
    if now.best:
        _show_ranked(console, "best now", now.best)


def _show_refusals(console: Console, refusals: Iterable[NodeRefusal]) -> None:
    rows = ((each.nodes, each.plugin, each.reason, _examples(each) if each.examples else "") for each in refusals)
    print_table(console, table("NODES", "REJECTED BY", "REASON", "SUCH AS", numbers=("NODES",), rows=rows))


def _examples(found: NodeRefusal | FreeGroup) -> str:
    return ", ".join(found.examples) + (", …" if found.nodes > len(found.examples) else "")


def _show_devices(console: Console, found: FreeDevices) -> None:
    wanted = f": the pod wants {found.wanted} of class {found.device_class}" if found.device_class else ""
    say(console, "", f"devices on nodes{wanted}")
    rows = (
        (each.nodes, "" if each.free == UNCOUNTED else each.free, "yes" if each.enough else "no", each.reason, _examples(each))
        for each in found.groups
    )
    print_table(console, table("NODES", "FREE", "ENOUGH", "BUT", "SUCH AS", numbers=("NODES", "FREE"), rows=rows))


def _show_tried(console: Console, attempts: Sequence[AttemptSummary], now: float) -> None:
    say(console, "", "last attempts")
    columns = ("ATTEMPT", "AGO", "RESULT", "NODE", "FEASIBLE", "TOOK", "MOST OF IT")
    print_table(console, table(*columns, numbers=("ATTEMPT",), rows=(_attempt(each, now) for each in attempts)))
    last = attempts[0]
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


def _attempt(each: AttemptSummary, now: float) -> Iterator[object]:
    longest = max(each.steps.items(), key=lambda step: step[1], default=None)
    yield each.attempt
    yield time_span(max(now - each.at, 0.0))  # this machine's clock may be behind the operator's
    yield from (each.result, each.node, f"{each.feasible} of {each.nodes}" if each.nodes else "", time_span(each.seconds))
    yield "" if longest is None else f"{longest[0]} {time_span(longest[1])}"


def _tie(last: AttemptSummary) -> str:
    return f", chosen at random among {last.ties} nodes with that total" if last.ties > 1 else ""


def _show_ranked(console: Console, title: str, nodes: Iterable[RankedNode]) -> None:
    say(console, "", title)
    numbers = ("RAW", "NORMALISED", "WEIGHT", "PRODUCT")
    print_table(console, table("NODE", "PLUGIN", *numbers, numbers=numbers, rows=(row for node in nodes for row in _scores(node))))


def _scores(node: RankedNode) -> Iterator[tuple[object, ...]]:
    name = node.node
    for plugin, part in node.parts.items():
        yield name, plugin, part.raw, part.normalised, part.weight, part.product
        name = ""
    yield name, plain("total", "bold"), "", "", "", plain(node.total, "bold")


def _show_products(console: Console, title: str, plugins: Mapping[str, int], score: int, runner_up: int | None) -> None:
    others = "there was no other" if runner_up is None else f"the best other node had {runner_up}"
    say(console, "", f"{title}: {score}; {others}")
    if plugins:
        print_table(console, table("PLUGIN", "PRODUCT", numbers=("PRODUCT",), rows=plugins.items()))
