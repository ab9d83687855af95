"""The result of a check of a plugin: a broken promise, or the scope by cases, answers and the time of calls.

`check_plugin` knows the promises of a plugin one by one. Each is a sentence of the plugin contract, the package
`placewright/framework/interface`. So an author who reads the error knows where to read on.
"""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from placewright.framework.interface import (
    FilterPlugin,
    Plugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    Reads,
    ReservePlugin,
    ScorePlugin,
)

_MAKERS: Final = "hand in `pods`, `nodes` or `objects`"


class Promise(enum.StrEnum):
    """The promises that `check_plugin` looks at; the value is the sentence that an error quotes."""

    ANSWERS = "every extension point answers in the shape and with the statuses that it allows"
    RETURNS = "every call returns within the limit of the check"
    REPEATS = "asked again, at any time of day, a plugin answers the same"
    RANGE = "scores lie between 0 and 100 once they are normalised"
    ROWS = "the answer for a node is the same, whichever nodes are asked about with it"
    EXPLAIN = "explain names each row that filter rejected, once, and no other row"
    READS = "reads says all that a column depends on beside the pod, so that a kept column equals a fresh one"
    FINGERPRINT = "equal fingerprints mean equal columns"
    MEMORY = "a plugin that has seen the cluster change answers as one that was built just now"
    SIGN = "pods with equal signatures get equal columns"
    HINTS = "an event with its hint wakes a rejected pod when a change makes the plugin accept it"
    UNTOUCHED = "objects and columns are read, never written"
    UNRESERVE = "Unreserve gives back all that Reserve took, and does nothing where Reserve was never called"


@dataclass(frozen=True)
class Breach:
    """One broken promise.

    Attributes:
        promise: the promise.
        point: the extension point, in kube-scheduler's spelling: `Filter`, `Score`, `Sign`, `QueueingHint`.
        says: the finding, as one sentence in plain words.
    """

    promise: Promise
    point: str
    says: str


class BreachError(Exception):
    """Ends the run of one scenario at the first broken promise. `check_plugin` turns it into a `BrokenPromiseError`.

    Attributes:
        breach: the broken promise.
        told: number of the scenario's changes that were told by then.
    """

    def __init__(self, promise: Promise, point: str, says: str) -> None:
        super().__init__(says)
        self.told = 0
        self.breach = Breach(promise, point, says)


class BrokenPromiseError(AssertionError):
    """A plugin breaks a promise of the contract.

    Attributes:
        plugin: its name.
        promise: the broken promise.
        point: the extension point at which it shows.
        seed: `check_plugin` with this seed finds it again.
        example: the smallest example that was found: pods, nodes and their changes, one a line.
    """

    def __init__(self, plugin: str, breach: Breach, seed: int, example: str) -> None:
        self.plugin = plugin
        self.promise = breach.promise
        self.point = breach.point
        self.seed = seed
        self.example = example
        super().__init__(
            f"{plugin} breaks a promise at {breach.point}: {breach.promise.value}.\n"
            f"Found with seed {seed}: {breach.says}.\n"
            f"The smallest example found:\n{example}"
        )


# --- the report ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CallTime:
    """How long calls of one extension point took, about all nodes at once.

    Attributes:
        calls: number of calls that were timed.
        mean: seconds a call, guard included.
        mean_on_many: seconds a call on a cluster of 500 nodes; None if that was not measured.
    """

    calls: int
    mean: float
    mean_on_many: float | None = None


@dataclass
class CaseCounts:
    """Counts while a plugin is asked.

    Attributes:
        rejected, accepted: pairs of pod and node.
        scored: pods whose accepted nodes were scored.
        told_apart: those of them whose nodes got different scores.
        gated: pods that PreEnqueue kept out of the queue.
        nominated: pods for which PostFilter named a node.
        cases: number of times that a promise could have been broken and was looked at, by promise.
        seconds: time of each call, by extension point.
    """

    rejected: int = 0
    accepted: int = 0
    scored: int = 0
    told_apart: int = 0
    gated: int = 0
    nominated: int = 0
    cases: Counter[Promise] = field(default_factory=Counter)
    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def saw(self, promise: Promise) -> None:
        """Count a case of this promise."""
        self.cases[promise] += 1

    def took(self, point: str, seconds: float) -> None:
        """Note the time of a call.

        Args:
            point: the extension point, in kube-scheduler's spelling.
            seconds: that the call took, guard included.
        """
        self.seconds[point].append(seconds)

    def mean(self, point: str) -> float:
        """Return the mean time of this point's calls, in seconds; at least one was noted."""
        times = self.seconds[point]
        return sum(times) / len(times)


@dataclass(frozen=True)
class PluginReport:
    """The scope of a `check_plugin` that found nothing wrong.

    Attributes:
        plugin: the plugin's name.
        seed: seed of the random clusters.
        clusters: number of random clusters.
        rejected, accepted: pairs of pod and node that the plugin was asked about.
        scored: pods whose accepted nodes were scored.
        told_apart: those of them whose nodes got different scores.
        gated: pods that PreEnqueue kept out of the queue.
        nominated: pods for which PostFilter named a node.
        cases: number of times that a promise could have been broken and was not, by promise.
        times: time that a call took, by extension point.
        unreached: sentences that name what the random clusters never led to, so that it was not looked at.
    """

    plugin: str
    seed: int
    clusters: int
    rejected: int
    accepted: int
    scored: int
    told_apart: int
    gated: int
    nominated: int
    cases: Mapping[Promise, int]
    times: Mapping[str, CallTime]
    unreached: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"{self.plugin}: {self.clusters} random clusters, seed {self.seed}"]
        lines.append(f"  it rejected {self.rejected:,} and accepted {self.accepted:,} pairs of pod and node")
        if self.scored:
            lines.append(f"  it scored the nodes of {self.scored:,} pods, {self.told_apart:,} times not all alike")
        lines += [f"  {self.cases.get(promise, 0):>9,} cases: {promise.value}" for promise in Promise if self.cases.get(promise)]
        lines += [f"  {point}: {_in_words(time)}" for point, time in self.times.items()]
        lines += [f"  not looked at: {sentence}" for sentence in self.unreached]
        return "\n".join(lines)


def _in_words(time: CallTime) -> str:
    many = "" if time.mean_on_many is None else f", {time.mean_on_many * 1e6:,.0f} µs on 500 nodes"
    return f"{time.mean * 1e6:,.0f} µs a call on a few nodes{many}"


def report_of(plugin: type[Plugin], seed: int, clusters: int, tally: CaseCounts, on_many: CaseCounts) -> PluginReport:
    """Make the report of a check that found nothing wrong.

    Args:
        plugin: the class, which decides the promises that could have been looked at.
        seed: seed of the random clusters.
        clusters: number of random clusters.
        tally: counts of these clusters.
        on_many: the times of calls on one large cluster; points that were not called there get no `mean_on_many`.

    Returns:
        The report, with a sentence for each promise that no case looked at.
    """
    times = {
        point: CallTime(len(seconds), tally.mean(point), on_many.mean(point) if point in on_many.seconds else None)
        for point, seconds in tally.seconds.items()
    }
    return PluginReport(
        plugin.name, seed, clusters, tally.rejected, tally.accepted, tally.scored, tally.told_apart, tally.gated,
        tally.nominated, dict(tally.cases), times,
        tuple(_unreached(plugin, tally)),
    )  # fmt: skip


def _unreached(plugin: type[Plugin], tally: CaseCounts) -> list[str]:
    """Return the promises that the plugin makes and that no case looked at."""
    found = []
    rejects = issubclass(plugin, FilterPlugin | PreFilterPlugin)
    asked = tally.rejected + tally.accepted
    if rejects and not tally.rejected:
        asked_about = f"{asked:,} pairs of pod and node"
        found.append(f"filter never rejected any of {asked_about}, so its reasons and events were not looked at: {_MAKERS} that it rejects")
    elif rejects and not tally.accepted:
        found.append(f"filter never accepted any of {asked:,} pairs of pod and node: {_MAKERS} that it accepts")
    if issubclass(plugin, PreEnqueuePlugin) and not tally.gated:
        found.append(f"PreEnqueue never rejected a pod: {_MAKERS} that it rejects")
    if (tally.rejected or tally.gated) and not tally.cases[Promise.HINTS]:
        found.append(f"no change ever made the plugin accept a pod it had rejected, so its events were not looked at: {_MAKERS} that help")
    if issubclass(plugin, ScorePlugin) and not tally.told_apart:
        found.append(f"score never told the nodes of {tally.scored:,} pods apart: {_MAKERS} that it tells apart")
    # With Reads.CLUSTER two pods share a column only if fingerprints are equal, too, which may never be the case.
    shares = issubclass(plugin, FilterPlugin | ScorePlugin) and plugin.reads is not Reads.CLUSTER
    if shares and not tally.cases[Promise.SIGN]:
        found.append("no two pods had equal signatures, so sign was not looked at")
    if issubclass(plugin, PostFilterPlugin) and not tally.nominated:
        found.append(f"PostFilter never named a node: {_MAKERS} where it can, and `beside` plugins that reject pods")
    if issubclass(plugin, ReservePlugin) and not tally.cases[Promise.UNRESERVE]:
        found.append(f"Reserve never succeeded: {_MAKERS} that it can reserve for")
    return found
