"""A verdict as tables for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from placewright.api.pods import PodInfo
from placewright.api.profile import SchedulingProfile
from placewright.cli.terminal import lines, plain
from placewright_lab.simulation.evaluation import NodeVerdict, Verdict

#: Number of nodes with all their scores. A line sums up the rest.
MOST_NODES: Final = 20
_NUMBER_COLUMNS: Final = ("RAW", "NORMALISED", "WEIGHT", "PRODUCT")


def show_verdict(console: Console, pod: PodInfo, profile: SchedulingProfile, verdict: Verdict) -> None:
    """Print which nodes fit and how well, the reasons of the others, and the result of preemption."""
    name = profile.metadata.name or profile.spec.scheduler_name
    console.print(plain(f"pod {pod.key}, profile {name}"))
    for told in (verdict.gated and f"gated: {verdict.gated}", verdict.error and f"error: {verdict.error}"):
        if told:
            console.print(plain(told))
    fitting = sorted((node for node in verdict.nodes if node.fits), key=lambda node: (-node.total, node.node))
    rejected = [node for node in verdict.nodes if not node.fits]
    if fitting:
        console.print(_scores(fitting[:MOST_NODES], verdict.best))
        _say_hidden(console, fitting, "more nodes fit, with totals no higher")
    if rejected:
        console.print(_rejections(rejected[:MOST_NODES]))
        _say_hidden(console, rejected, "more nodes do not fit")
    console.print(lines(_outcome(verdict)))


def _say_hidden(console: Console, nodes: list[NodeVerdict], what: str) -> None:
    if len(nodes) > MOST_NODES:
        console.print(plain(f"{len(nodes) - MOST_NODES} {what}; all of them with -o json"))


def _scores(nodes: Iterable[NodeVerdict], best: tuple[str, ...]) -> Table:
    table = _table("NODE", "VERDICT", "PLUGIN")
    for column in _NUMBER_COLUMNS:
        table.add_column(column, justify="right")
    for node in nodes:
        verdict = "fits, best" if node.node in best else "fits"
        names = (plain(node.node), plain(verdict))
        for plugin, score in node.scores.items():
            numbers = (score.raw, score.normalised, score.weight, score.product)
            table.add_row(*names, plain(plugin), *(str(number) for number in numbers))
            names = (Text(), Text())
        table.add_row(*names, Text("total", style="bold"), "", "", "", Text(str(node.total), style="bold"), end_section=True)
    return table


def _table(*columns: str) -> Table:
    """Return a table that wraps long text, because a cut name is no name."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _rejections(nodes: Iterable[NodeVerdict]) -> Table:
    table = _table("NODE", "VERDICT", "PLUGIN", "REASON")
    for node in nodes:
        table.add_row(*(plain(text) for text in (node.node, node.code.value, node.plugin, ", ".join(node.reasons))))
    return table


def _outcome(verdict: Verdict) -> list[str]:
    if verdict.best:
        others = f" or {len(verdict.best) - 1} others with the same total, chosen at random" if len(verdict.best) > 1 else ""
        return [f"goes to {verdict.best[0]}{others}"]
    if verdict.nominated_node:
        room = f"preemption would make room on {verdict.nominated_node} by evicting {', '.join(sorted(verdict.leaving or verdict.victims))}"
        return [verdict.message, room]
    return [verdict.message or "stays pending"]
