"""The results of two schedulers on one workload, and the verdict: a ratio, or the reason for none. Pure.

They are kept in lines of JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import msgspec

from placewright_lab.bench.schedulerperf.throughput import Throughput
from placewright_lab.bench.wavecomparison import Spent

API_BOUND: Final = "API-bound"
#: Share of the available CPU time that kube-scheduler must have used. With less, it waited for the API server.
OWN_SHARE: Final = 0.5
_NOTHING: Final = Spent(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class PerfTurn:
    """A run of one workload with one scheduler.

    Attributes:
        scheduler: label of the scheduler.
        pods: number of measured pods with an observed binding.
        seconds: seconds from the first measured creation to the last binding.
        cpu: CPU seconds of each process in this time.
        settled_cpu: CPU seconds of each process until the last event.
        elsewhere: CPU seconds of other work on the machine in this time.
        peak_bytes: highest memory of the scheduler.
        sampled: bindings in each second, counted like upstream; None if it was over before the first sample.
        bound, pending, deleted: pods at the end, by namespace.
        ended: reason of an early end; empty if the turn came to its end.
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
        """Return the scheduler's part of the CPU time that other work left on these cores."""
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
        workload: name of the workload.
        nodes, pods, measured: numbers of nodes, of pods, and of measured pods.
        gates: feature gates of the programs.
        cores: number of cores that all processes shared.
        labels: labels of the schedulers, ours first.
        turns: turns in the order in which they ran.
        left_out: reason why it did not run; empty if it ran.
        threshold: upstream's published floor; 0 if there is none.
        made: notes about machine and versions, by heading.
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
        """Return the scheduler's turn, of several the one with the median rate. A turn with an early end comes before all others."""
        mine = [turn for turn in self.turns if turn.scheduler == label]
        broken = [turn for turn in mine if turn.ended]
        return broken[0] if broken else sorted(mine, key=lambda turn: turn.per_second)[(len(mine) - 1) // 2]

    def own_share(self) -> float:
        """Return the part of the CPU time that kube-scheduler used while it bound the measured pods."""
        return self.turn(self.labels[1]).share(self.cores)

    def ratio(self) -> float | None:
        """Our pods a second by theirs. None if a turn ended early, or if kube-scheduler waited for the API server."""
        if self.left_out or any(turn.ended for turn in self.turns) or self.own_share() < OWN_SHARE:
            return None
        mine, theirs = (self.turn(label) for label in self.labels)
        return mine.per_second / theirs.per_second if theirs.per_second else None

    def verdict(self) -> str:
        """Return the ratio for a table, or the reason for none."""
        if self.left_out:
            return "left out"
        if any(turn.ended for turn in self.turns):
            return "did not end"
        ratio = self.ratio()
        return API_BOUND if ratio is None else f"{ratio:.2f}"

    def difference(self) -> str:
        """Pods that only one of the two left unbound, in words; empty if there are none."""
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
    """Read the output of `write_contest`. The last line of each workload and kube-scheduler counts. Raises `msgspec.MsgspecError`."""
    found = [msgspec.json.decode(line, type=Contest) for line in lines if line.strip()]
    return list({(contest.workload, contest.labels): contest for contest in found}.values())


def write_contest(contest: Contest) -> bytes:
    """Return the contest in one line of JSON."""
    return msgspec.json.encode(contest) + b"\n"


def _counted(pods: Mapping[str, int]) -> dict[str, int]:
    return {namespace: count for namespace, count in pods.items() if count}


def _shown(pods: Mapping[str, int]) -> str:
    return ", ".join(f"{count} in {namespace}" for namespace, count in sorted(pods.items())) or "none"
