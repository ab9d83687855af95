"""How the figures that the README and the docs quote are written there: a function for each region, from data to Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any, Final

from benchmarks.quoteddata import PERCENTAGE, QUOTED, QuotedFigures, Row

Figures = Mapping[str, QuotedFigures]


@dataclass(frozen=True, slots=True)
class QuotedRegion:
    """Text between two markers of a page.

    Attributes:
        uses: names of the data that it needs.
        text: function from the data to Markdown.
        stamped: whether the circumstances stand below; the page of figures has them once for all of its regions.
    """

    uses: Sequence[str]
    text: Callable[[Figures], str]
    stamped: bool = False

    def written(self, figures: Figures) -> str:
        """Return the region's lines."""
        text = self.text(figures).rstrip("\n")
        return f"{text}\n\n{_stamps(figures, self.uses)}" if self.stamped else text


def about(value: float, digits: int = 2) -> str:
    """Round to two significant digits: 6,187 becomes 6,200. More digits would claim more than was measured."""
    if not value:
        return "0"
    decimals = digits - 1 - floor(log10(abs(value)))
    return f"{round(value, decimals):,.{max(decimals, 0)}f}"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(head)
    lines = [heads, ["---"] * len(heads), *(list(row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _unique(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _by(rows: Iterable[Row], *columns: str) -> dict[Any, Row]:
    return {tuple(row[column] for column in columns) if len(columns) > 1 else row[columns[0]]: row for row in rows}


_WORKLOADS: Final = {"plain": "pods that are all alike", "openb-mix": "pods of 154 shapes with GPU shares"}
_KINDS: Final = {
    "deployments-plain": "requests only",
    "deployments-soft": "soft zone spread and preferred anti-affinity to its own app",
    "deployments-hard": "hard zone and host spread",
    "deployments-anti": "required anti-affinity to its own app",
}
_PAIRWISE: Final = {
    "hard-spread": "hard spread",
    "soft-spread": "soft spread",
    "required-anti-affinity": "required anti-affinity",
    "required-affinity": "required affinity",
}
_PREEMPTION: Final = {
    "preemption": "",
    "preemption-hard-spread": " with hard spread",
    "preemption-anti-affinity": " with required anti-affinity",
    "preemption-affinity": " with required affinity",
    "preemption-claims": " where every pod has a claim",
}


def _decisions(figures: Figures) -> str:
    rows = figures["decisions"].rows
    return _rates(rows, _WORKLOADS, "nodes", f"`bench decisions`, {rows[0]['pods']:,} pods, every node evaluated, processor time", " nodes")


def _rates(rows: Sequence[Row], names: Mapping[str, str], column: str, head: str, unit: str = "") -> str:
    """Decisions a second: a row for each workload, a column for each value of `column`."""
    values, found = _unique(row[column] for row in rows), _by(rows, "workload", column)
    lines = [[text, *(f"{about(found[name, value]['per_second'])}/s" for value in values)] for name, text in names.items()]
    return _table([head, *(f"{value:,}{unit}" for value in values)], lines)


def _summary(figures: Figures) -> str:
    """Five lines for readers who want one number each."""
    decisions, against = _by(figures["decisions"].rows, "workload", "nodes"), _by(figures["against"].rows, "nodes")
    most, largest = against[max(against)], max(nodes for _, nodes in decisions)
    ours, theirs = most["schedulers"]
    mine, other = most["schedulers"][ours], most["schedulers"][theirs]
    busiest = max(figures["end-to-end"].rows, key=lambda row: float(row["operator_bytes"]))
    waits = f"{1e-3 * mine['p99_ms']:.1f} s; {theirs} {1e-3 * other['p99_ms']:.1f} s"
    reload = about(1000 * figures["reload"].rows[0]["p50"])
    return (
        f"- Decisions on {largest:,} nodes, all evaluated: {about(decisions['plain', largest]['per_second'])} a second.\n"
        f"- Bound on {max(against):,} nodes, one real API server: {mine['per_second']:,.0f} pods a second; "
        f"{theirs} {other['per_second']:,.0f}.\n"
        f"- Created to bound there, p99 of a burst: {waits}.\n"
        f"- From the patch of a profile to the first pod bound under it: {reload} ms, median.\n"
        f"- Memory with {busiest['nodes']:,} nodes and {busiest['assigned'] + busiest['pods']:,} pods: "
        f"{about(busiest['operator_bytes'] / 1e6, 3)} MB.\n"
    )


def _deployments(figures: Figures) -> str:
    rows = figures["deployments"].rows
    head = f"{rows[0]['nodes']:,} nodes, {rows[0]['running']:,} pods on them; arriving at random from so many Deployments"
    return _rates(rows, _KINDS, "deployments", head)


def _sizes(figures: Figures) -> str:
    """Large clusters, and pods that all differ. Sizes without a measurement are left out."""
    return " ".join(part for part in (_large(figures["sizes"].rows), _different(figures)) if part)


def _large(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    shapes = next(row for row in rows if row["workload"] == "openb-mix")
    many = [row for row in rows if row["deployments"]]
    rates = ", ".join(f"{about(row['per_second'])}/s on {row['nodes']:,} nodes" for row in many)
    first = f"pods of 154 shapes {about(shapes['per_second'])}/s on {shapes['nodes']:,} nodes"
    return f"Large clusters: {first}; pods of {many[0]['deployments']:,} Deployments {rates}."


def _different(figures: Figures) -> str:
    row = figures["all-different"].rows[0]
    told = f"Pods that are all different: {about(row['per_second'])}/s on {row['nodes']:,} nodes, all of them evaluated"
    for part in figures["percentage"].rows:
        told += f", and {about(part['per_second'])}/s on {part['nodes']:,} nodes with `percentageOfNodesToScore: {PERCENTAGE}`"
    return f"{told}."


def _masses(figures: Figures) -> str:
    """Describe large groups, and events that concern thousands of pods."""
    groups = figures["large-groups"].rows
    took = ", ".join(f"{about(1 / row['per_second'])} s for {row['members']:,} members" for row in groups)
    longest = max(figures["moves"].rows, key=lambda row: float(row["hold"]))
    return (
        f"A group on {groups[0]['nodes']:,} nodes is decided as a whole: {took}. While {longest['waiting']:,} pods wait, no event "
        f"holds the event loop for more than {about(1000 * longest['hold'])} ms (`python -m benchmarks moves`)."
    )


def _others(figures: Figures) -> str:
    """Say in sentences what single benchmarks found."""
    groups, shares, reload = (figures[name].rows[0] for name in ("groups", "shares", "reload"))
    claiming = _by(figures["devices"].rows, "claims")["one device"]
    pairwise, preemption = (_by(figures[name].rows, "workload") for name in ("pairwise", "preemption"))
    spread, first = pairwise["hard-spread"], preemption["preemption"]
    rates = ", ".join(f"{text} {about(pairwise[name]['per_second'])}/s" for name, text in _PAIRWISE.items())
    took = ", ".join(f"{about(row['median'])} ms{_PREEMPTION[name]}" for name, row in preemption.items())
    return (
        f"On {groups['nodes']:,} nodes, a second:\n\n"
        f"- {about(groups['per_second'])} groups of {groups['members']} pods (`python -m benchmarks gangs`)\n"
        f"- {about(claiming['per_second'])} pods that claim one device of {claiming['devices']} a node (`python -m benchmarks devices`)\n"
        f"- {about(shares['per_second'])} pods with shares of GPUs by how much they would strand\n\n"
        f"On {spread['nodes']:,} nodes with {spread['running']:,} pods on them: {rates}. "
        f"An attempt to preempt among {first['running']:,} pods there takes {took}.\n"
        f"From the patch of a profile to the first pod bound under it, while {reload['rate']} pods/s arrive "
        "(`python -m benchmarks reload`): "
        f"median {about(1000 * reload['p50'])} ms, p99 {about(1000 * reload['p99'])} ms."
    )


def _end_to_end(figures: Figures) -> str:
    rows = figures["end-to-end"].rows
    return _table(
        ["`bench end-to-end`, a burst, events included", *map(_burst, rows)],
        [
            ["created to bound", *(f"{about(row['per_second'])} pods/s" for row in rows)],
            *([["CPU of the operator a pod", *map(_cpu_a_pod, rows)]] if all(row["operator_cpu"] for row in rows) else []),
            ["memory of the operator", *(f"{about(row['operator_bytes'] / 1e6, 3)} MB" for row in rows)],
        ],
    )


def _memory(figures: Figures) -> str:
    return _table(
        ["nodes", "pods on them", "memory of the operator"],
        (
            [f"{row['nodes']:,}", f"{row['assigned'] + row['pods']:,}", f"{about(row['operator_bytes'] / 1e6, 3)} MB"]
            for row in figures["memory"].rows
        ),
    )


def _burst(row: Row) -> str:
    if row["assigned"]:
        return f"{row['nodes']:,} nodes with {row['assigned']:,} pods on them, {row['pods']:,} more"
    return f"{row['nodes']:,} nodes, {row['pods']:,} pods"


def _cpu_a_pod(row: Row) -> str:
    return f"{about(1000 * row['operator_cpu'] / row['pods'])} ms"


#: Figure of `bench against`: its name, its unit, its factor, and decimals.
_AGAINST: Final = (
    ("per_second", "pods/s, until the last binding", "", 1.0, 0),
    ("settled_per_second", "pods/s, until the last event is written, too", "", 1.0, 0),
    ("p99_ms", "created to bound, p99", " s", 0.001, 2),
    ("scheduler_cpu_ms", "CPU of the scheduler a pod", " ms", 1.0, 2),
    ("peak_mb", "its peak memory", " MB", 1.0, 0),
)


def _against(figures: Figures) -> str:
    rows = figures["against"].rows
    ours, theirs = rows[0]["schedulers"]
    lines = []
    for figure, text, unit, factor, decimals in _AGAINST:
        cells = (tuple(row["schedulers"][label][figure] * factor for label in (ours, theirs)) for row in rows)
        lines.append([text, *(f"{mine:,.{decimals}f} / {other:,.{decimals}f}{unit}" for mine, other in cells)])
    most = max(row["pods"] for row in rows)
    fewer = ", ".join(f"{row['pods']:,} at {row['nodes']:,} nodes" for row in rows if row["pods"] < most)
    waves = f"{most:,} pods a wave ({fewer})" if fewer else f"{most:,} pods a wave"
    machine = "in turns on one real API server, with etcd, API server and the feed on the same cores"
    return f"Against {theirs}, {machine}; `bench against`, {waves}:\n\n" + _table(
        [f"ours / {theirs}'s", *(f"{row['nodes']:,} nodes" for row in rows)], lines
    )


def _devices(figures: Figures) -> str:
    rows = figures["devices"].rows
    head = f"{rows[0]['nodes']:,} nodes, {max(row['devices'] for row in rows)} devices each; each pod claims"
    return _table(
        [head, "decisions/s", "wanted"],
        ([row["claims"], about(row["per_second"]), f"≥ {row['wanted']:,}" if row["wanted"] else ""] for row in rows),
    )


def _shares(figures: Figures) -> str:
    row = figures["shares"].rows[0]
    rate = f"{about(row['per_second'])} decisions a second (wanted: {row['wanted']:,})"
    return f"`placewright bench decisions --workloads gpu-shares`: {row['nodes']:,} nodes, pods in some 150 kinds, processor time: {rate}."


def _reload(figures: Figures) -> str:
    head = ("nodes", "changes", "pods/s", "p50 ms", "p99 ms", "pods", "lost", "twice")
    return _table(head, (_reload_row(row) for row in figures["reload"].rows))


def _reload_row(row: Row) -> Iterator[str]:
    yield from (f"{row[name]:,}" for name in ("nodes", "reloads", "rate"))
    yield from (about(1000 * row[name]) for name in ("p50", "p99"))
    yield from (f"{count:,}" for count in (row["pods"], row["pods"] - row["bound"], row["twice"]))


def _stamps(figures: Figures, names: Iterable[str]) -> str:
    """Return the circumstances, each once, with the figures measured under them where they differ."""
    under: dict[str, list[str]] = {}
    for name in names:
        if not figures[name].rows:
            continue
        under.setdefault(figures[name].stamp.sentence(), []).append(name)
    if len(under) == 1:
        return next(iter(under))
    return "\n".join(f"- {', '.join(several)}: {sentence}" for sentence, several in under.items())


_OTHERS: Final = ("groups", "devices", "shares", "pairwise", "preemption", "reload")
_SIZES: Final = ("sizes", "all-different", "percentage")
_MASSES: Final = ("large-groups", "moves")
_ON_ONE_PAGE: Final = ("decisions", "deployments", *_SIZES, *_OTHERS, *_MASSES, "end-to-end", "against")

#: Regions by the name in the marker.
REGIONS: Final[Mapping[str, QuotedRegion]] = {
    "summary": QuotedRegion(("decisions", "against", "reload", "end-to-end"), _summary),
    "decisions": QuotedRegion(("decisions",), _decisions),
    "deployments": QuotedRegion(("deployments",), _deployments),
    "sizes": QuotedRegion(_SIZES, _sizes),
    "masses": QuotedRegion(_MASSES, _masses),
    "others": QuotedRegion(_OTHERS, _others),
    "end-to-end": QuotedRegion(("end-to-end",), _end_to_end),
    "against": QuotedRegion(("against",), _against),
    "memory": QuotedRegion(("memory",), _memory, stamped=True),
    "stamps": QuotedRegion(_ON_ONE_PAGE, lambda figures: _stamps(figures, _ON_ONE_PAGE)),
    "devices": QuotedRegion(("devices",), _devices, stamped=True),
    "shares": QuotedRegion(("shares",), _shares, stamped=True),
    "reload": QuotedRegion(("reload",), _reload, stamped=True),
}

assert {name for region in REGIONS.values() for name in region.uses} == set(QUOTED)
