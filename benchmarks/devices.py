"""Measures decisions about pods with claims to devices, and the cost of these claims for pods without any."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from placewright.api.profile import default_profile
from placewright.cli.options import whole_number
from placewright.offline.kinds import Manifest
from placewright.plugins.catalog import in_tree
from placewright.profiles.resolve import resolve
from placewright_lab.bench.benchmark import MOST_NODES, MOST_PODS, ResultTable, row_of, table
from placewright_lab.bench.decisions import RUNS, WARM_UP, run_once
from placewright_lab.bench.madeup import mixed_nodes, plain_pods

SUMMARY: Final = "pods with claims to devices, beside pods without"
NODES: Final = 1523
#: The pods of the warm-up have devices on fewer nodes, too.
FEWEST_NODES: Final = 300
DEVICES_A_NODE: Final = 8
PODS: Final = 3000
WANTED: Final = 500
_COLUMNS: Final = {
    "each pod claims": "{claims}",
    "pods": "{pods:,}",
    "placed": "{placed:,}",
    "decisions/s": "{per_second:,.0f}",
    "wanted": "≥ {wanted:,}",
}
_DRIVER: Final = "gpu.example.com"
_BY_MODEL: Final = f'device.attributes["{_DRIVER}"].model == "a" && device.capacity["{_DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'


@dataclass(frozen=True, slots=True)
class DeviceMeasurement:
    """One line of the table.

    Attributes:
        claims: the claims of each pod, in words.
        wanted: decisions a second; None if nothing was set.
        seconds: processor time of each run.
    """

    claims: str
    nodes: int
    devices: int
    pods: int
    placed: int
    wanted: int | None
    seconds: tuple[float, ...]

    @property
    def per_second(self) -> float:
        """Decisions a second, by the median run."""
        return self.pods / statistics.median(self.seconds)


@dataclass(frozen=True, slots=True)
class _Case:
    """`most`: as many devices may a pod take."""

    claims: str
    devices: int
    request: Manifest | None
    wanted: int | None = None
    most: int = 1


_CASES: Final = (
    _Case("none, without devices around", 0, None),
    _Case("none, among devices", DEVICES_A_NODE, None),
    _Case("one device", DEVICES_A_NODE, {"exactly": {"deviceClassName": "gpu"}}, WANTED),
    _Case(
        "one device that an expression selects",
        DEVICES_A_NODE,
        {"exactly": {"deviceClassName": "gpu", "selectors": [{"cel": {"expression": _BY_MODEL}}]}},
        WANTED,
        2,
    ),
    _Case("two devices", DEVICES_A_NODE, {"exactly": {"deviceClassName": "gpu", "count": 2}}, most=2),
    _Case("all of a node's", DEVICES_A_NODE, {"exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}, most=DEVICES_A_NODE),
    _Case(
        "two, or one",
        DEVICES_A_NODE,
        {"firstAvailable": [{"name": "two", "deviceClassName": "gpu", "count": 2}, {"name": "one", "deviceClassName": "gpu"}]},
        most=2,
    ),
)


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--nodes", type=whole_number(FEWEST_NODES, MOST_NODES), default=NODES, help=f"default: {NODES}")
    parser.add_argument("--pods", type=whole_number(1, MOST_PODS), default=PODS, help=f"for each line (default: {PODS})")


def run(args: argparse.Namespace) -> Sequence[ResultTable]:
    """Measure each kind of claim."""
    title = f"claims to devices: {args.nodes} nodes with {DEVICES_A_NODE} devices each, processor time, median of {RUNS} runs in turns"
    return (table(title, [row_of(each, "per_second") for each in measure_devices(args.nodes, args.pods)], _COLUMNS),)


def measure_devices(nodes: int = NODES, pods: int = PODS) -> list[DeviceMeasurement]:
    """Measure each case on a fresh cluster, `RUNS` times, in turns. The devices suffice for all pods."""
    profile = resolve(default_profile(), in_tree())
    seconds: dict[str, list[float]] = {case.claims: [] for case in _CASES}
    counts: dict[str, tuple[int, int]] = {}
    for _ in range(RUNS):
        for case in _CASES:
            count = min(pods, max(nodes * case.devices // case.most - WARM_UP, 1)) if case.request is not None else pods
            before, pending = _cluster(nodes, case.devices), plain_pods(count + WARM_UP)
            if case.request is not None:
                before += [_claim(pod, case.request) for pod in pending]
                pending = [_claiming(pod) for pod in pending]
            took, done = run_once(before, pending, profile)
            seconds[case.claims].append(took)
            counts[case.claims] = (count, done)
    return [
        DeviceMeasurement(case.claims, nodes, case.devices, *counts[case.claims], case.wanted, tuple(seconds[case.claims]))
        for case in _CASES
    ]


def _cluster(nodes: int, devices: int) -> list[Manifest]:
    made = mixed_nodes(nodes)
    if not devices:
        return made
    names = [node["metadata"]["name"] for node in made]
    return [*made, {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}, *(_slice(name, devices) for name in names)]


def _slice(node: str, devices: int) -> Manifest:
    spec = {
        "driver": _DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {
                "name": f"gpu-{number}",
                "attributes": {"model": {"string": "ab"[number % 2]}, "index": {"int": number}},
                "capacity": {"memory": {"value": "80Gi"}},
            }
            for number in range(devices)
        ],
    }
    return {"kind": "ResourceSlice", "metadata": {"name": f"{node}-gpus"}, "spec": spec}


def _claim(pod: Manifest, request: Manifest) -> Manifest:
    meta = {"name": pod["metadata"]["name"], "namespace": pod["metadata"].get("namespace", "default")}
    return {"kind": "ResourceClaim", "metadata": meta, "spec": {"devices": {"requests": [{"name": "r", **request}]}}}


def _claiming(pod: Manifest) -> Manifest:
    claims = [{"name": "gpu", "resourceClaimName": pod["metadata"]["name"]}]
    return {**pod, "spec": {**pod["spec"], "resourceClaims": claims}}
