"""A trace in the openb format, made up: small, and the same in every run.

What it keeps of the form of the published trace of a production GPU cluster:

- files and columns: nodes; pods in the order in which they came; the same pods once more, of which a third of those that want GPUs name the
  models they accept;
- nodes: most GPUs are in nodes of eight, the others in nodes of two, four and one; a node in seven has none, and no model;
- pods: one in eight wants no GPU, three in eight share one, half want one to themselves, one in a hundred wants two, four or eight; few
  sizes are frequent; together they want nearly all GPUs, and about two thirds of the CPUs;
- times: the first pods are days apart; half of the pods live for ten minutes, one in a hundred for a day; most are scheduled at once;
- what is odd: pods that were never scheduled, and deleted all the same; failed pods; a model that a pod names twice.

Names, models, sizes and times are of our own making.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, NamedTuple

from .real import DATA, also_real

SEED = 1
#: Of the cluster's GPUs, as much as the pods want at least.
WANTED = 0.97
DAY = 86_400


class NodeKind(NamedTuple):
    """How many nodes the trace has of a kind, and its columns."""

    count: int
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


class Size(NamedTuple):
    """How many of a thousand pods want this much, and its columns."""

    of_thousand: int
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int


NODE_KINDS = (
    NodeKind(22, 112_000, 458_752, 8, "H20"),
    NodeKind(16, 80_000, 409_600, 2, "L4"),
    NodeKind(6, 24_000, 98_304, 2, "A2"),
    NodeKind(2, 120_000, 917_504, 8, "H200"),
    NodeKind(3, 40_000, 163_840, 4, "A30"),
    NodeKind(1, 12_000, 49_152, 1, "A30"),
    NodeKind(6, 48_000, 196_608, 0, ""),
    NodeKind(3, 112_000, 458_752, 0, ""),
)
SIZES = (
    Size(60, 2_000, 4_096, 0, 0),
    Size(50, 16_000, 65_536, 0, 0),
    Size(20, 64_000, 262_144, 0, 0),
    Size(140, 3_000, 6_144, 1, 450),
    Size(120, 10_000, 40_960, 1, 800),
    Size(60, 2_500, 5_120, 1, 300),
    Size(40, 6_000, 24_576, 1, 650),
    Size(15, 1_500, 3_072, 1, 150),
    Size(205, 11_000, 45_056, 1, 1000),
    Size(150, 8_000, 32_768, 1, 1000),
    Size(90, 14_000, 57_344, 1, 1000),
    Size(40, 4_000, 16_384, 1, 1000),
    Size(4, 22_000, 90_112, 2, 1000),
    Size(2, 44_000, 180_224, 4, 1000),
    Size(4, 90_000, 327_680, 8, 1000),
)
ACCEPTED = ("L4", "H20", "A30", "A2|L4", "H20|H200", "A30|H20|H20", "A2|A30|H20|L4")
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")


class Figures(NamedTuple):
    """What is known of a trace before it is read: `shares` is how much of the CPUs, memory and GPUs the pods want, in percent."""

    nodes: int
    pods: int
    shares: tuple[int, int, int]
    pinned: int
    never_scheduled: int


@dataclass(frozen=True)
class Trace:
    """Its files (`pinned` is the list of pods with models), and what is known of it."""

    nodes: str
    pods: str
    pinned: str
    figures: Figures


@cache
def made_up() -> Trace:
    """The trace of this module; its figures come of the rows before they are written."""
    sizes = _sizes(dice := Random(SEED))
    pods = [_pod(number, size, created, dice) for number, (size, created) in enumerate(zip(sizes, _arrivals(dice), strict=False))]
    nodes = [kind for kind in NODE_KINDS for _ in range(kind.count)]
    have = [sum(of) for of in zip(*((kind.cpu_milli, kind.memory_mib, kind.gpus * 1000) for kind in nodes), strict=True)]
    want = [sum(of) for of in zip(*map(_wanted, sizes), strict=True)]
    cpu, memory, gpus = (round(100 * asked / there) for asked, there in zip(want, have, strict=True))
    return Trace(
        _text([
            {"sn": f"rack-{number:03}", "cpu_milli": kind.cpu_milli, "memory_mib": kind.memory_mib, "gpu": kind.gpus, "model": kind.model}
            for number, kind in enumerate(nodes)
        ]),
        _text([pod | {"gpu_spec": ""} for pod in pods]),
        _text(pods),
        Figures(
            len(nodes), len(pods), (cpu, memory, gpus),
            sum(pod["gpu_spec"] != "" for pod in pods), sum(pod["scheduled_time"] == "" for pod in pods),
        ),
    )  # fmt: skip


def real() -> Trace:
    """The published one; its figures are those that its description states, or were counted by another reader of its columns."""
    folder = DATA / "openb"
    lists = ("openb_node_list_all_node", "openb_pod_list_default", "openb_pod_list_gpuspec33")
    nodes, pods, pinned = ((folder / f"{name}.csv").read_text() for name in lists)
    return Trace(nodes, pods, pinned, Figures(1523, 8152, (68, 50, 98), 2388, 897))


TRACES = also_real(made_up, real)


def _wanted(size: Size) -> tuple[int, int, int]:
    return size.cpu_milli, size.memory_mib, size.gpus * size.gpu_milli


def _sizes(dice: Random) -> list[Size]:
    """Every size once, and more of them by their weight until the GPUs are spoken for; in the order in which they came."""
    gpus = 1000 * sum(kind.count * kind.gpus for kind in NODE_KINDS)
    sizes = list(SIZES)
    while sum(_wanted(size)[2] for size in sizes) < WANTED * gpus:
        sizes += dice.choices(SIZES, [size.of_thousand for size in SIZES])
    dice.shuffle(sizes)
    return sizes


def _arrivals(dice: Random) -> Iterator[int]:
    """A pod in days at first, then one in seconds or minutes."""
    now, come = 0.0, 0
    while True:
        yield int(now)
        come += 1
        now += dice.expovariate(1 / (5 * DAY if come < 10 else 90))


def _pod(number: int, size: Size, created: int, dice: Random) -> dict[str, Any]:
    """A line of the list of pods, by column."""
    waits = 0 if dice.random() < 0.6 else int(dice.lognormvariate(2, 2))
    lives = 3 + int(dice.lognormvariate(6.4, 2))
    phase = dice.choices(["Running", "Failed", "Pending", "Succeeded"], [63, 23, 11, 3])[0]
    qos = dice.choices(["LS", "BE", "Burstable", "Guaranteed"], [57, 41, 1.5, 0.5])[0]
    accepts = dice.choice(ACCEPTED) if size.gpus and dice.random() < 1 / 3 else ""
    return {
        "name": f"task-{number:04}", "cpu_milli": size.cpu_milli, "memory_mib": size.memory_mib, "num_gpu": size.gpus,
        "gpu_milli": size.gpu_milli, "gpu_spec": accepts, "qos": qos, "pod_phase": phase, "creation_time": created,
        "deletion_time": created + waits + lives, "scheduled_time": "" if phase == "Pending" else created + waits,
    }  # fmt: skip


def _text(rows: Sequence[dict[str, Any]]) -> str:
    written = io.StringIO()
    table = csv.DictWriter(written, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    return written.getvalue()
