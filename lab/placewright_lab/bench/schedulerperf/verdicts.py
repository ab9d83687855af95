"""The results of two schedulers on one workload, and the verdict: a ratio, or the reason why there is none. Pure; kept as JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import msgspec

from placewright_lab.bench.schedulerperf.throughput import Throughput
from placewright_lab.bench.wavecomparison import Spent

API_BOUND: Final = "API-bound"
#: Of the CPU time that it could have got, what kube-scheduler must have used for its speed to be its own.
OWN_SHARE: Final = 0.5
_NOTHING: Final = Spent(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class PerfTurn:
    """One scheduler, one workload.

    Attributes:
        scheduler: its label.
        pods: measured ones that were seen on a node.
        seconds: from the first creation that is measured to the last binding.
        cpu: of each process in these seconds.
        settled_cpu: the same until the last event was written.
        elsewhere: CPU seconds that other work on the machine took in these seconds.
        peak_bytes: the most memory that the scheduler ever had.
        sampled: bindings in each second, as upstream counts them; None where it was over too soon for a sample.
        bound, pending, deleted: pods at the end, by namespace.
        ended: why it did not come to its end; empty where it did.
    """

    scheduler: str
    pods: int = 0
    seconds: float = 0.0
    cpu: Spent = _NOTHING
    settled_cpu: Spent = _NOTHING
    peak_bytes: int = 0
    elsewhere: float = 0.0
    sampled: Throughput | None = None
    bound: Mapping[str, int] = field(default_factory=dict)
    pending: Mapping[str, int] = field(default_factory=dict)
    deleted: Mapping[str, int] = field(default_factory=dict)
    ended: str = ""

    @property
    def per_second(self) -> float:
        """Measured pods a second."""
        return self.pods / self.seconds if self.seconds > 0 else 0.0

    def share(self, cores: int) -> float:
        """Return the part of the CPU time left by other work on these cores that the scheduler used itself."""
        left = self.seconds * cores - self.elsewhere
        return self.cpu.scheduler / left if left > 0 else 0.0

    def cpu_ms(self, *processes: str) -> float:
        """Milliseconds of CPU for each measured pod, its events included."""
        spent = asdict(self.settled_cpu)
        return sum(spent[process] for process in processes) * 1000 / self.pods if self.pods else 0.0


@dataclass(frozen=True, slots=True)
class Contest:
    """All turns of one workload.

    Attributes:
        workload: its name.
        nodes, pods: that it creates; `measured` of the pods are measured.
        gates: feature gates that were set.
        cores: that all processes shared.
        labels: of the schedulers, ours first.
        turns: in the order in which they ran.
        left_out: why it was not run; empty where it was.
        threshold: upstream's published floor; 0 without.
        made: where and with what it was measured, in words, by heading.
    """

    workload: str
    nodes: int = 0
    pods: int = 0
    measured: int = 0
    gates: Mapping[str, bool] = field(default_factory=dict)
    cores: int = 1
    labels: tuple[str, str] = ("", "")
    turns: Sequence[PerfTurn] = ()
    left_out: str = ""
    threshold: float = 0.0
    made: Mapping[str, str] = field(default_factory=dict)

    def turn(self, label: str) -> PerfTurn:
        """Return the scheduler's turn; of several the one with the median rate. One that did not end goes before all others."""
        mine = [turn for turn in self.turns if turn.scheduler == label]
        broken = [turn for turn in mine if turn.ended]
        return broken[0] if broken else sorted(mine, key=lambda turn: turn.per_second)[(len(mine) - 1) // 2]

    def own_share(self) -> float:
        """Return the share of kube-scheduler while it bound the measured pods."""
        return self.turn(self.labels[1]).share(self.cores)

    def ratio(self) -> float | None:
        """Our pods a second by theirs; None where either did not end, or where kube-scheduler waited for the API server."""
        if self.left_out or any(turn.ended for turn in self.turns) or self.own_share() < OWN_SHARE:
            return None
        mine, theirs = (self.turn(label) for label in self.labels)
        return mine.per_second / theirs.per_second if theirs.per_second else None

    def verdict(self) -> str:
        """For a table: the ratio, or why there is none."""
        if self.left_out:
            return "left out"
        if any(turn.ended for turn in self.turns):
            return "did not end"
        ratio = self.ratio()
        return API_BOUND if ratio is None else f"{ratio:.2f}"

    def difference(self) -> str:
        """Where the two left other pods behind them, in words; empty where they did not."""
        if self.left_out or any(turn.ended for turn in self.turns):
            return ""
        mine, theirs = (self.turn(label) for label in self.labels)
        for what in ("bound", "pending", "deleted"):
            ours, others = _counted(getattr(mine, what)), _counted(getattr(theirs, what))
            if ours != others:
                return f"{what} at the end: {_shown(ours)}; {self.labels[1]}: {_shown(others)}"
        return ""

    def to_json(self) -> dict[str, Any]:
        """Return the results, and the figures computed from them."""
        return {**asdict(self), "verdict": self.verdict(), "ratio": self.ratio(), "difference": self.difference()}


def read_contests(lines: Iterable[bytes]) -> list[Contest]:
    """Read the output of `write_contest`; the last line of each workload and kube-scheduler counts. Raises `msgspec.MsgspecError`."""
    found = [msgspec.json.decode(line, type=Contest) for line in lines if line.strip()]
    return list({(contest.workload, contest.labels): contest for contest in found}.values())


def write_contest(contest: Contest) -> bytes:
    """One line."""
    return msgspec.json.encode(contest) + b"\n"


def _counted(pods: Mapping[str, int]) -> dict[str, int]:
    return {namespace: count for namespace, count in pods.items() if count}


def _shown(pods: Mapping[str, int]) -> str:
    return ", ".join(f"{count} in {namespace}" for namespace, count in sorted(pods.items())) or "none"
