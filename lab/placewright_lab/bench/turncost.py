"""Measures the cost of turns: two schedulers decide the same pods of many namespaces, and one of them lets the namespaces take turns.

All pods wait from the beginning, in as many lanes on both sides. They are decided in slices, each side in its turn, as in `recordcost`.
"""

from __future__ import annotations

import asyncio
import statistics
from dataclasses import dataclass
from typing import Final

from placewright.api.fairness import NAMESPACE, Fairness
from placewright.api.profile import default_profile
from placewright.framework.runtime.resolvedprofile import ResolvedProfile
from placewright.offline.kinds import Manifest
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright_lab.bench.decisions import WARM_UP
from placewright_lab.bench.recordcost import SLICE, Side, in_turns
from placewright_lab.bench.workloads import WORKLOADS

WAITING: Final = 20_000
NAMESPACES: Final = 500
#: Its pods are alike, so both sides decide equal pods, although in another order.
_WORKLOAD: Final = WORKLOADS["plain"]


@dataclass(frozen=True, slots=True)
class TurnCost:
    """The result of the measurement.

    Attributes:
        waiting: pods that still wait at the end.
        namespaces: the tenants.
        without, with_turns: seconds of processor time of each slice, in the order of slices.
    """

    nodes: int
    waiting: int
    namespaces: int
    without: tuple[float, ...]
    with_turns: tuple[float, ...]

    @property
    def microseconds_without(self) -> float:
        """The time of one decision without turns, by the median slice."""
        return statistics.median(self.without) / SLICE * 1e6

    @property
    def ratio(self) -> float:
        """How many times as long as without turns a decision takes: of the median slices."""
        return statistics.median(self.with_turns) / statistics.median(self.without)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The first and the third quartile of the ratios of neighbouring slices."""
        ratios = [one / other for one, other in zip(self.with_turns, self.without, strict=True)]
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
        return low, high


def measure_turns(nodes: int, waiting: int, namespaces: int, slices: int) -> TurnCost:
    """Decide so many slices of pods, at least two, while others wait.

    Args:
        nodes: of each cluster.
        waiting: pods that still wait after the last slice.
        namespaces: that the pods are spread over.
        slices: of `SLICE` pods, on each side.

    Returns:
        The measurement.
    """
    before = _WORKLOAD.cluster(nodes)
    pods = [_in_namespace(pod, number % namespaces) for number, pod in enumerate(_WORKLOAD.pods(waiting + slices * SLICE + WARM_UP))]
    sides = [Side(before, pods, _profile(None)), Side(before, pods, _profile(Fairness(by=NAMESPACE)))]
    plain, fair = asyncio.run(in_turns(sides, slices))
    return TurnCost(nodes, waiting, len({pod["metadata"]["namespace"] for pod in pods}), tuple(plain), tuple(fair))


def _profile(fairness: Fairness | None) -> ResolvedProfile:
    return resolve(default_profile(preset=_WORKLOAD.preset, fairness=fairness), in_tree())


def _in_namespace(pod: Manifest, number: int) -> Manifest:
    pod["metadata"]["namespace"] = f"tenant-{number:04d}"
    return pod
