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
from collections.abc import Iterable, Iterator, Sequence
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


class Pod(NamedTuple):
    """A line of the list of pods, without its name."""

    size: Size
    accepts: str
    qos: str
    phase: str
    created: int
    deleted: int
    scheduled: int | None


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
POD_COLUMNS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip


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
    pods = _pods(Random(SEED))
    nodes = [kind for kind in NODE_KINDS for _ in range(kind.count)]
    have = [sum(of) for of in zip(*((kind.cpu_milli, kind.memory_mib, kind.gpus * 1000) for kind in nodes), strict=True)]
    want = [sum(of) for of in zip(*(_wanted(pod.size) for pod in pods), strict=True)]
    cpu, memory, gpus = (round(100 * asked / there) for asked, there in zip(want, have, strict=True))
    return Trace(
        _text(NODE_COLUMNS, ((f"rack-{number:03}", *kind[1:]) for number, kind in enumerate(nodes))),
        _text(POD_COLUMNS, (_row(number, pod._replace(accepts="")) for number, pod in enumerate(pods))),
        _text(POD_COLUMNS, (_row(number, pod) for number, pod in enumerate(pods))),
        Figures(
            len(nodes), len(pods), (cpu, memory, gpus),
            sum(pod.accepts != "" for pod in pods), sum(pod.scheduled is None for pod in pods),
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


def _pods(dice: Random) -> list[Pod]:
    """Every size once, and more of them by their weight until the GPUs are spoken for; in the order in which they came."""
    gpus = 1000 * sum(kind.count * kind.gpus for kind in NODE_KINDS)
    sizes = list(SIZES)
    while sum(_wanted(size)[2] for size in sizes) < WANTED * gpus:
        sizes += dice.choices(SIZES, [size.of_thousand for size in SIZES])
    dice.shuffle(sizes)
    return [_pod(size, created, dice) for size, created in zip(sizes, _arrivals(dice), strict=False)]


def _arrivals(dice: Random) -> Iterator[int]:
    """A pod in days at first, then one in seconds or minutes."""
    now, come = 0.0, 0
    while True:
        yield int(now)
        come += 1
        now += dice.expovariate(1 / (5 * DAY if come < 10 else 90))


def _pod(size: Size, created: int, dice: Random) -> Pod:
    waits = 0 if dice.random() < 0.6 else int(dice.lognormvariate(2, 2))
    lives = 3 + int(dice.lognormvariate(6.4, 2))
    phase = dice.choices(["Running", "Failed", "Pending", "Succeeded"], [63, 23, 11, 3])[0]
    qos = dice.choices(["LS", "BE", "Burstable", "Guaranteed"], [57, 41, 1.5, 0.5])[0]
    accepts = dice.choice(ACCEPTED) if size.gpus and dice.random() < 1 / 3 else ""
    scheduled = None if phase == "Pending" else created + waits
    return Pod(size, accepts, qos, phase, created, created + waits + lives, scheduled)


def _row(number: int, pod: Pod) -> tuple[Any, ...]:
    scheduled = "" if pod.scheduled is None else pod.scheduled
    return (f"task-{number:04}", *pod.size[1:], pod.accepts, pod.qos, pod.phase, pod.created, pod.deleted, scheduled)


def _text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([columns, *rows])
    return written.getvalue()
