"""Replicas under churn, and memory. `make soak` lets it go on for ten minutes at 200 pods a second; here it is seconds, at a walk."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hostile.siege import NAMESPACES, PODS, Siege, besieged
from hostilepods import KINDS, Dice, hostile_pod
from manifest import manifest

from .audit import OURS
from .churn import Churn, Memory, slope
from .stage import Stage, now

REPLICAS = 2
#: Memory grows while caches fill; its slope is taken from then on, seconds.
SETTLED_AFTER = 120.0
SAMPLE_SECONDS = 10.0


async def test_soak_with_churn(stage: Stage, request: pytest.FixtureRequest) -> None:
    seconds: float = request.config.getoption("soak_seconds", 4.0)
    rate: float = request.config.getoption("soak_rate", 40.0)
    await stage.replicas_at_work(REPLICAS, probe=False)
    stage.every_event_is_due = False
    churn, memory = Churn(stage, rate), Memory(stage)
    began = now()
    async with memory.sampled(min(SAMPLE_SECONDS, seconds / 4)), churn.going_on():
        await stage.until(lambda: now() > began + seconds, "the soak is over", seconds * 2)
    took = now() - began
    await stage.until_settled()
    grows = {name: round(slope(samples, min(SETTLED_AFTER, seconds / 5)), 2) for name, samples in memory.samples.items()}
    sizes = {name: [round(size) for _, size in samples] for name, samples in memory.samples.items()}
    figures = {
        "seconds": round(took), "pods": churn.created, "pods a second": round(churn.created / took, 1), "changes": churn.changes,
        "MiB": sizes, "MiB a minute": grows, "came late by, s": round(churn.behind, 2),
    }  # fmt: skip
    (stage.folder / "soak.json").write_text(json.dumps(figures))
    print(json.dumps(figures))  # noqa: T201 - the figures are what `make soak` is for
    assert stage.history.bound > 0.9 * churn.created
    assert all(each.alive for each in stage.replicas)


NODES = 5000
#: Hostile pods that are there at the same time, and one in so many that stands on a node already.
AT_ONCE, ASSIGNED = 3, 3


async def test_an_operator_with_a_gibibyte_at_5000_nodes_outlives_whatever_pods_look_like(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seconds: float = request.config.getoption("soak_seconds", 4.0)
    async with besieged(tmp_path, NODES) as siege:
        before = siege.resident
        made = await _come_and_go(siege, Dice(1), seconds)
        await siege.tenant.until_placed(2)
        sizes = {"before": before, "after": siege.resident, "most": siege.peak}
        print(json.dumps({"nodes": NODES, "pods": made, "MiB": sizes}))  # noqa: T201 - the figures are what `make soak` is for
        assert siege.exit_code is None
        assert "MemoryError" not in siege.words
        assert siege.peak < 1024 * 3 / 4
        assert siege.resident < before + 1024 / 4, "what was kept of them is bounded, and they are gone"


async def _come_and_go(siege: Siege, dice: Dice, seconds: float) -> int:
    """Hostile pods, a few at a time, until each kind has come, and the time is over; how many. Healthy pods are placed in between."""
    there: list[str] = []
    began, number = now(), 0
    while number < 2 * len(KINDS) or now() < began + seconds:
        pod = hostile_pod(dice, number, OURS, node=f"node-{number % NODES}" if number % ASSIGNED == 0 else "")
        namespace = pod["metadata"]["namespace"]
        if namespace != "default":
            await siege.api.create(NAMESPACES, manifest("v1", "Namespace", namespace))
        await siege.api.create(PODS.format(namespace), pod)
        there.append(f"{PODS.format(namespace)}/{pod['metadata']['name']}")
        if len(there) > AT_ONCE:
            await siege.api.delete(there.pop(0))
        if number % 10 == 0:
            await siege.tenant.until_placed(1)
        number += 1
    for path in there:
        await siege.api.delete(path)
    return number


#: Large buffers with small ones behind them, freed but for the small ones: what is resident afterwards, MiB.
_BUFFERS = """
import ctypes
import sys
from placewright.engine.freedmemory import map_large_pieces, trim_heap
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
def buffer(size):
    at = libc.malloc(size)
    ctypes.memset(at, 1, size)
    return at
if sys.argv[1] == "mapped":
    assert map_large_pieces()
libc.free(buffer(300_000))  # from here on the heap is where pieces as large as that come from
kept, freed = [], []
for _ in range(200):
    freed.append(buffer(256 * 1024))
    kept.append(buffer(2000))
for at in freed:
    libc.free(at)
if sys.argv[1] == "trimmed":
    assert trim_heap()
print(int(open("/proc/self/statm").read().split()[1]) * 4096 // 2**20)
"""


@pytest.mark.parametrize("how", ["trimmed", "mapped"])
def test_buffers_that_were_freed_are_not_resident_any_more(how: str) -> None:
    def resident(how: str) -> int:
        return int(subprocess.run([sys.executable, "-c", _BUFFERS, how], check=True, capture_output=True, text=True).stdout)

    assert resident(how) < resident("untouched") - 30


def test_the_slope_of_what_grows_steadily_is_its_growth() -> None:
    assert slope([(0.0, 500.0), (60.0, 10.0), (120.0, 12.0), (180.0, 14.0)], 60.0) == pytest.approx(2.0)
    assert slope([(0.0, 1.0)], 0.0) == 0.0
