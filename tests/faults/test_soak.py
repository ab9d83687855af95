"""Replicas under churn, and memory. `make soak` lets it go on for ten minutes at 200 pods a second; here it is seconds, at a walk."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hostilepods import KINDS, Dice, hostile_pod
from limited import GIBI, MEBI, LimitedOperator, limited_operator

from .api import Api, api_of
from .audit import OURS
from .churn import Churn, Memory, slope
from .stage import CRDS, OWN_PODS, PROFILES, Stage, now
from .warm import api_server

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
#: A pod of the usual kind must find its node while the others are there, seconds. It is generous: several of these share a machine.
PATIENCE = 60.0
#: Hostile pods that are there at the same time, and one in so many that stands on a node already.
AT_ONCE, ASSIGNED = 3, 3


async def test_an_operator_with_a_gibibyte_at_5000_nodes_outlives_whatever_pods_look_like(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    seconds: float = request.config.getoption("soak_seconds", 4.0)
    definitions = [word for each in CRDS for word in ("--crds", str(each))]
    async with api_server(tmp_path, ["--nodes", str(NODES), *definitions]) as kubeconfig, api_of(kubeconfig) as api:
        content = {"schedulerName": OURS, "backoff": {"maxSeconds": 1}}
        kind = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile"}
        await api.create(PROFILES, kind | {"metadata": {"name": "default"}, "spec": content})
        async with limited_operator(kubeconfig, tmp_path, GIBI) as operator:
            await _placed(api, operator, "first")
            before = operator.resident
            made = await _come_and_go(api, operator, Dice(1), seconds)
            await _placed(api, operator, "last")
            sizes = {"before": before, "after": operator.resident, "most": operator.peak, "against the limit": operator.data}
            figures = {"nodes": NODES, "pods": made, "MiB": {name: round(size / MEBI) for name, size in sizes.items()}}
            print(json.dumps(figures))  # noqa: T201 - the figures are what `make soak` is for
            assert operator.said("MemoryError") == []
            assert operator.peak < GIBI * 3 / 4
            assert operator.resident < before + GIBI / 4, "what was kept of them is bounded, and they are gone"


async def _come_and_go(api: Api, operator: LimitedOperator, dice: Dice, seconds: float) -> int:
    """Hostile pods, a few at a time, until each kind has come, and the time is over; how many. Pods as usual come in between."""
    there: list[dict[str, Any]] = []
    began, number = now(), 0
    while number < 2 * len(KINDS) or now() < began + seconds:
        pod = hostile_pod(dice, number, OURS, node=f"node-{number % NODES}" if number % ASSIGNED == 0 else "")
        namespace = pod["metadata"]["namespace"]
        if namespace != "default":
            await api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        await api.create(f"/api/v1/namespaces/{namespace}/pods", pod)
        there.append(pod)
        if len(there) > AT_ONCE:
            await _remove(api, there.pop(0))
        if number % 10 == 0:
            await _placed(api, operator, f"usual-{number}")
        number += 1
    for pod in there:
        await _remove(api, pod)
    return number


async def _remove(api: Api, pod: dict[str, Any]) -> None:
    meta = pod["metadata"]
    await api.delete(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}")


async def _placed(api: Api, operator: LimitedOperator, name: str) -> None:
    """A pod of the usual kind comes and gets a node."""
    requests = {"cpu": "100m", "memory": "64Mi"}
    spec = {"schedulerName": OURS, "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    await api.create(OWN_PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec})
    async with asyncio.timeout(PATIENCE):
        while not (await api.get(f"{OWN_PODS}/{name}"))["spec"].get("nodeName"):
            assert operator.alive, operator.process.last_words()
            await asyncio.sleep(0.05)


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
