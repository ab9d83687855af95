"""Contests as tables: for a terminal, for a page, and the page with its tables exchanged. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from placewright.api.bad_input import InputError
from placewright_lab.bench.schedulerperf.throughput import Throughput
from placewright_lab.bench.schedulerperf.verdicts import OWN_SHARE, Contest, PerfTurn, median_ratio

#: What stands between these lines of a page is made by the command.
BEGIN: Final = "<!-- made by placewright bench scheduler-perf: begin -->"
END: Final = "<!-- made by placewright bench scheduler-perf: end -->"
_SERVER: Final = ("api_server", "etcd")


def chosen(contests: Sequence[Contest]) -> list[Contest]:
    """One for each workload: one that was run before one that was left out, as with another version of kube-scheduler it may be run."""
    best: dict[str, Contest] = {}
    for contest in contests:
        known = best.get(contest.workload)
        if known is None or known.left_out or not contest.left_out:
            best[contest.workload] = contest
    return list(best.values())


def rows(contests: Sequence[Contest]) -> list[dict[str, str]]:
    """A row for each workload that was run."""
    return [_row(contest) for contest in contests if not contest.left_out]


def sampled_rows(contests: Sequence[Contest]) -> list[dict[str, str]]:
    """What upstream's benchmark would report of each: bindings sampled every second."""
    return [
        {"workload": contest.workload, "scheduler": turn.scheduler, **_samples(turn.sampled)}
        for contest in contests
        if not contest.left_out
        for turn in (contest.turn(label) for label in contest.labels)
    ]


def notes(contests: Sequence[Contest]) -> Iterator[str]:
    """What the tables do not say, a line each."""
    run = [contest for contest in contests if not contest.left_out]
    with_ratio = [contest for contest in run if contest.ratio() is not None]
    median = median_ratio(run)
    yield (
        f"{len(run)} of {len(contests)} workloads were run; {len(with_ratio)} have a ratio"
        + ("" if median is None else f", the median is {median:.2f}")
        + f"; in the others kube-scheduler used less than {OWN_SHARE:.0%} of its cores' time."
    )
    for contest in run:
        yield from (f"{contest.workload}: {turn.scheduler} did not end: {turn.ended}" for turn in contest.turns if turn.ended)
        if difference := contest.difference():
            yield f"{contest.workload}: the two left different pods behind: {difference}"
    yield from (f"{contest.workload} was left out: {contest.left_out}" for contest in contests if contest.left_out)


def markdown(contests: Sequence[Contest]) -> str:
    """Machine and versions, both tables, and the notes."""
    parts = [*(f"- {line}" for line in _made(contests)), ""]
    parts += [*_table(rows(contests)), ""] if rows(contests) else []
    parts += [f"- {line}" for line in notes(contests)]
    sampled = [row for row in sampled_rows(contests) if row["average"] != "-"]
    if sampled:
        parts += ["", "Pods a second in the samples of each second, as upstream's benchmark reports them:", "", *_table(sampled)]
    return "\n".join(parts) + "\n"


def exchanged(page: str, figures: str) -> str:
    """The page with these figures in the place of its own. Raises `InputError` where it has none."""
    head, found, rest = page.partition(BEGIN)
    _, ended, tail = rest.partition(END)
    if not found or not ended:
        raise InputError(f"--page: the page has no lines {BEGIN} and {END}, between which the figures go")
    return f"{head}{BEGIN}\n\n{figures}\n{END}{tail}"


def _row(contest: Contest) -> dict[str, str]:
    mine, theirs = (contest.turn(label) for label in contest.labels)
    return {
        "workload": contest.workload,
        "nodes": f"{contest.nodes:,}",
        "pods, measured": f"{contest.pods:,}, {contest.measured:,}",
        "pods/s": _of_both(mine, theirs, lambda turn: f"{turn.per_second:,.0f}"),
        "ratio": contest.verdict(),
        "CPU ms/pod": _of_both(mine, theirs, lambda turn: f"{turn.cpu_ms('scheduler'):.2f}"),
        "API server and etcd": _of_both(mine, theirs, lambda turn: f"{turn.cpu_ms(*_SERVER):.2f}"),
        "peak MB": _of_both(mine, theirs, lambda turn: f"{turn.peak_bytes / 1e6:,.0f}"),
        "share of cores": _of_both(mine, theirs, lambda turn: f"{turn.share(contest.cores):.0%}"),
        "beside": contest.labels[1].removeprefix("kube-scheduler "),
    }


def _of_both(mine: PerfTurn, theirs: PerfTurn, shown: Callable[[PerfTurn], str]) -> str:
    return " / ".join("-" if turn.ended else shown(turn) for turn in (mine, theirs))


def _samples(sampled: Throughput | None) -> dict[str, str]:
    names = {"average": "average", "50 %": "perc50", "90 %": "perc90", "95 %": "perc95", "99 %": "perc99"}
    return {shown: "-" if sampled is None else f"{getattr(sampled, name):,.0f}" for shown, name in names.items()}


def _made(contests: Sequence[Contest]) -> list[str]:
    """Machine and versions; each heading once with all that was found under it."""
    found: dict[str, list[str]] = {}
    for contest in contests:
        for heading, value in contest.made.items():
            if value not in (values := found.setdefault(heading, [])):
                values.append(value)
    return [f"{heading}: {', '.join(values)}" for heading, values in found.items()]


def _table(found: Sequence[Mapping[str, str]]) -> list[str]:
    columns = list(found[0])
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return lines + [f"| {' | '.join(row[column] for column in columns)} |" for row in found]
