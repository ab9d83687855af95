"""Nothing that one person may create stops the others: beside each attack healthy pods are placed, and the operator keeps its bounds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import pytest

from .attacks import ATTACKS, Dice
from .siege import Waited, besieged

#: PLACEWRIGHT_HOSTILE_SEEDS: variants of each attack; PLACEWRIGHT_HOSTILE_NODES: of the cluster; PLACEWRIGHT_HOSTILE_REPORT: a file that
#: gets a line of JSON for each run.
SEEDS: Final = int(os.environ.get("PLACEWRIGHT_HOSTILE_SEEDS", "1"))
NODES: Final = int(os.environ.get("PLACEWRIGHT_HOSTILE_NODES", "100"))
REPORT: Final = os.environ.get("PLACEWRIGHT_HOSTILE_REPORT", "")
#: Healthy pods that are created, and placed, while the attack goes on.
PODS: Final = 4
#: Pods of 230 KB of JSON: so many that the memory that they take can be told from everything else.
LARGE_PODS: Final = 300
#: Measured bytes are so many times the counted bytes at most.
TOLERANCE: Final = 1.3
#: Memory that does not grow with an attack, MiB: buffers of new connections (TLS, HTTP), code that runs for the first time (first errors,
#: first preemption), and pages that the C library cannot give back because small live objects are on them.
BESIDE: Final = 30.0


@pytest.mark.parametrize("seed", range(1, 1 + SEEDS))
@pytest.mark.parametrize("name", ATTACKS)
async def test_healthy_pods_are_placed_beside_it(name: str, seed: int, tmp_path: Path) -> None:
    attack = ATTACKS[name]
    async with besieged(tmp_path, max(NODES, attack.nodes), attack.devices) as siege:
        before = await siege.memory()
        async with attack.begin(siege, Dice(name, seed)):
            await siege.tenant.until_placed(PODS)
            assert siege.exit_code is None, siege.words[-3000:]
            after = await siege.memory()
            waited, peak = list(siege.tenant.waited.values()), siege.peak
    grown, counted = after.resident - before.resident, after.counted - before.counted
    note(name, seed, waited, peak, {"grown MiB": round(grown), "counted MiB": round(counted)})
    slow = [each for each in waited if each.processor > attack.promised]
    assert slow == []
    assert peak <= attack.most
    assert grown <= TOLERANCE * counted + BESIDE


async def test_large_pods_take_what_the_operator_counts(tmp_path: Path) -> None:
    """Half of them are on nodes, half wait; each has hundreds of labels and annotations of its own."""
    async with besieged(tmp_path, NODES) as siege:
        nodes = await siege.node_names()
        before = await siege.memory()
        for number in range(LARGE_PODS):
            labels = {f"l{number}-{label}": "x" * 40 for label in range(300)}
            annotations = {f"example.test/{number}-{each}": "abcdefgh" * 500 for each in range(50)}
            place = {"nodeName": nodes[number % len(nodes)]} if number % 2 else {"nodeSelector": {"no": "node"}}
            await siege.pods([siege.pod("large", meta={"labels": labels, "annotations": annotations}, **place)])
        await siege.tenant.until_placed(PODS)
        after = await siege.memory()
        grown, counted = after.resident - before.resident, after.counted - before.counted
        waited, peak = list(siege.tenant.waited.values()), siege.peak
    note("large pods that stay", 1, waited, peak, {"grown MiB": round(grown), "counted MiB": round(counted)})
    assert grown > 30
    assert grown / TOLERANCE < counted < grown * TOLERANCE


def note(name: str, seed: int, waited: list[Waited], peak: float, memory: dict[str, int]) -> None:
    """Write down the outcome of a run."""
    if REPORT:
        slowest = max(waited, key=lambda each: each.processor)
        told = {"attack": name, "seed": seed, "seconds": round(max(each.seconds for each in waited), 2), "processor": slowest.processor}
        with Path(REPORT).open("a", encoding="utf-8") as file:
            file.write(json.dumps({**told, "pods": len(waited), "peak MiB": round(peak), **memory}) + "\n")
