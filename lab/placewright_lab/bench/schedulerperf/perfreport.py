"""Contests as tables for a terminal and for a page, and the exchange of the tables in a page. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from placewright.api.bad_input import InputError
from placewright_lab.bench.schedulerperf.throughput import Throughput
from placewright_lab.bench.schedulerperf.verdicts import Contest, PerfTurn

#: Lines of a page, between which the command writes its text.
BEGIN: Final = "<!-- made by placewright bench scheduler-perf: begin -->"
END: Final = "<!-- made by placewright bench scheduler-perf: end -->"
#: Share of the cores' time that other work may take before it is reported.
_OTHER_WORK: Final = 0.02
_SERVER: Final = ("api_server", "etcd")


def chosen(contests: Sequence[Contest]) -> list[Contest]:
    """Return one contest for each workload. One that ran goes before one that was left out with another version of kube-scheduler."""
    best: dict[str, Contest] = {}
    for contest in contests:
        known = best.get(contest.workload)
        if known is None or known.left_out or not contest.left_out:
            best[contest.workload] = contest
    return list(best.values())


def rows(contests: Sequence[Contest]) -> list[dict[str, str]]:
    """Return a row for each workload that ran."""
    return [_row(contest) for contest in contests if not contest.left_out]


def sampled_rows(contests: Sequence[Contest]) -> list[dict[str, str]]:
    """Return the rows of upstream's own report, with bindings sampled every second."""
    return [
        {"workload": contest.workload, "scheduler": turn.scheduler, **_samples(turn.sampled)}
        for contest in contests
        if not contest.left_out
        for turn in (contest.turn(label) for label in contest.labels)
    ]


def notes(contests: Sequence[Contest], not_run: Sequence[str] = ()) -> Iterator[str]:
    """Iterate over the notes beside the tables. `not_run` are workloads without figures."""
    run = [contest for contest in contests if not contest.left_out]
    yield _ratios_in_words(run, len(contests) + len(not_run))
    yield from _cpu_in_words(run)
    yield from _other_work_in_words(run)
    for contest in run:
        yield from (f"{contest.workload}: {turn.scheduler} did not end: {turn.ended}" for turn in contest.turns if turn.ended)
        if difference := contest.difference():
            yield f"{contest.workload}: the two left different pods behind: {difference}"
    yield from (f"{contest.workload} was left out: {contest.left_out}" for contest in contests if contest.left_out)
    if not_run:
        yield f"not run: {', '.join(not_run)}"


def _ratios_in_words(run: Sequence[Contest], of: int) -> str:
    ratios = [(contest.workload, ratio) for contest in run if (ratio := contest.ratio()) is not None]
    behind = [f"{workload} ({ratio:.2f})" for workload, ratio in ratios if ratio < 1]
    median = f", the median is {statistics.median(ratio for _, ratio in ratios):.2f}" if ratios else ""
    slower = f"; behind kube-scheduler: {', '.join(behind)}" if behind else ""
    return f"{len(run)} of {of} workloads were run; {len(ratios)} have a ratio{median}{slower}."


def _cpu_in_words(run: Sequence[Contest]) -> Iterator[str]:
    """Compare the CPU a pod in every row, because it does not depend on the machine's other work."""
    ended = [contest for contest in run if not any(turn.ended for turn in contest.turns)]
    both = [[contest.turn(label).cpu_ms("scheduler") for label in contest.labels] for contest in ended]
    times = [theirs / mine for mine, theirs in both if mine]
    if times:
        less = sum(each > 1 for each in times)
        median = f"kube-scheduler's by Placewright's is {statistics.median(times):.2f} at the median"
        yield f"CPU a pod: Placewright's is less in {less} of {len(times)} rows; {median}."


def _other_work_in_words(run: Sequence[Contest]) -> Iterator[str]:
    """Name the rows in which the machine did other work. Pods a second mean little there."""
    turns = [(turn, turn.seconds * contest.cores) for contest in run for turn in contest.turns if turn.seconds > 0]
    if turns and (taken := statistics.median(turn.elsewhere / had for turn, had in turns)) >= _OTHER_WORK:
        yield (
            f"Other work on the machine took {taken:.0%} of its cores' time meanwhile, at the median: "
            "pods a second would be more without it, and are not comparable from row to row."
        )


def markdown(contests: Sequence[Contest], not_run: Sequence[str] = ()) -> str:
    """Return machine and versions, both tables, and the notes. `not_run` are workloads without figures."""
    parts = [*(f"- {line}" for line in _made(contests)), ""]
    parts += [*_table(rows(contests)), ""] if rows(contests) else []
    parts += [f"- {line}" for line in notes(contests, not_run)]
    sampled = [row for row in sampled_rows(contests) if row["average"] != "-"]
    if sampled:
        parts += ["", "Pods a second in the samples of each second, as upstream's benchmark reports them:", "", *_table(sampled)]
    return "\n".join(parts) + "\n"


def exchanged(page: str, figures: str) -> str:
    """Return the page with these figures in place of its own. Raises `InputError` if it has none."""
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
    """Return machine and versions, each heading once with all its values."""
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
