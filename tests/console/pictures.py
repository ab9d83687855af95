"""Takes the pictures of the documentation from real pages: `cd tests && ../.venv/bin/python -m console.pictures ../docs/images`."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from pathlib import Path
from typing import Final

from browser import running

from .companymakers import group, member
from .makers import Object, a_node, a_pod, claim_profile, file_of
from .sights import Sight, pod_address, shadow
from .visits import console, visit

_NAMES: Final = ("checkout", "search", "catalog", "ledger", "mail", "fraud", "images", "video", "ads", "reports", "batch", "etl")
_POINT: Final = """(() => { const map = document.getElementById('map'); map.focus();
    for (const key of ['Home', 'Enter']) map.dispatchEvent(new KeyboardEvent('keydown', { key, cancelable: true }));
    map.blur(); return document.querySelector('#node .meter'); })()"""
#: The pages, each with the height of its window.
SHOTS: Final = (
    (Sight("cluster", "#/cluster", "document.querySelector('#groups tbody tr')", (_POINT,)), 940),
    (Sight("queue", "#/queue", "document.querySelectorAll('#reasons > li').length > 4"), 860),
    (Sight("pod", pod_address("ml", "train-0"), "document.getElementById('changes')"), 640),
    (Sight("fits", pod_address("web", "checkout-new-0"), "document.getElementById('scores')"), 820),
    (Sight("time", "#/time", "document.querySelector('#charts svg, #charts canvas')"), 960),
)


def city(path: Path) -> Path:
    """A recording of 5,000 nodes in three zones, with pods of a dozen teams. Some of the pods come within a quarter of an hour."""
    draw = random.Random(7)
    nodes, placed = list[Object](), list[Object]()
    tolerates = [{"key": "example.com/gpu", "operator": "Exists"}]
    for i in range(5000):
        pool = "gpu" if i % 12 == 0 else ("web", "batch", "memory")[i * 7 % 3]
        name = f"ip-10-{i // 250}-{i % 250}-11"
        taint = "example.com/gpu" if pool == "gpu" else ""
        zone = f"eu-west-1{'aaabbc'[i % 6]}"
        nodes.append(a_node(name, cpu=8, gpu=8 if taint else 0, cordoned=i % 131 == 5, taint=taint, zone=zone, pool=pool))
        nodes[-1]["status"]["allocatable"] |= {"pods": "110", "memory": "32Gi"}
        left = draw.triangular(0.2, 8.2, {"web": 5.5, "batch": 8, "memory": 3, "gpu": 7}[pool])
        while (cpu := draw.choice((250, 500, 1000, 2000)) / 1000) <= left:
            left -= cpu
            team = draw.choice(_NAMES)
            space, number = ("ml" if taint else "web", len(placed))
            scheduler = draw.choice(("default-scheduler", "default-scheduler", "batch-scheduler"))
            more = {"gpu": 1, "tolerations": tolerates} if taint and draw.random() < 0.7 else {}
            placed.append(a_pod(f"{team}-{number:05d}", name, namespace=space, cpu=int(cpu * 1000), schedulerName=scheduler, **more))
    train = [
        a_pod(f"train-{i}", namespace="ml", gpu=16, tolerations=tolerates, created=f"2026-11-23T{8 + i // 60:02d}:{i % 60:02d}:00Z")
        for i in range(212)
    ]  # fmt: skip
    waits = [*train, *(a_pod(f"reports-{i}", namespace="bank", cpu=12_000, created="2026-11-23T10:20:00Z") for i in range(37))]
    changed = claim_profile()
    changed["metadata"]["generation"] = 2
    changed["spec"]["weights"] = {"NodeResourcesFit": 5}
    held = [{"name": "example.com/quota"}]
    waits += [a_pod(f"etl-{i}", namespace="data", schedulingGates=held, created="2026-11-23T11:02:00Z") for i in range(64)]
    waits += [a_pod("mail-old", namespace="web", schedulerName="defualt-scheduler", created="2026-11-23T09:40:00Z")]
    waits += [a_pod(f"checkout-new-{i}", namespace="web", cpu=500, created="2026-11-23T11:59:40Z") for i in range(9)]
    waits += [member("llm", f"llm-{i}", cpu=6000, created="2026-11-23T11:31:00Z") for i in range(24)]
    changes = [(420.0, "MODIFIED", changed)]
    for i in range(1800):
        name = nodes[draw.randrange(5000)]["metadata"]["name"]
        at = int(0.5 * i if i % 3 else 300 + 60 * draw.random())
        born = f"2026-11-23T12:{at // 60:02d}:{at % 60:02d}Z"
        after = draw.expovariate(0.6 if at < 420 else 1.6) + 0.1
        changes.append((float(at), "ADDED", a_pod(f"search-{i}", namespace="web", cpu=100, created=born)))
        changes.append((at + after, "MODIFIED", a_pod(f"search-{i}", name, namespace="web", cpu=100, created=born)))
    profiles = [claim_profile(), claim_profile("batch", "batch-scheduler"), shadow("greener", "default")]
    objects = [*nodes, group("llm", 24, topology="pool"), *placed, *waits, *profiles]
    return file_of(path, objects, sorted(changes, key=lambda each: each[0]))


async def main(folder: Path) -> None:
    """Write all pictures into a folder."""
    with tempfile.TemporaryDirectory() as home, running(Path(home) / "chromium") as port:
        path = city(Path(home) / "eu-west-1.recording")
        async with console(port, path, still=True, speed=3600) as (page, _):
            await page.ask("Emulation.setScrollbarsHidden", hidden=True)
            await page.until("document.getElementById('moment').textContent.includes('3,601 of 3,601')")
            await page.run("void (location.hash = '#/queue')")
            said = "document.querySelector('main [role=status]')?.textContent"
            await page.until(f"{said} && !{said}.includes('not evaluated')")
            for sight, height in SHOTS:
                for dark in (False, True) if sight.name == "cluster" else (False,):
                    await visit(page, sight, height=height, dark=dark)
                    (folder / f"console-{sight.name}{'-dark' if dark else ''}.png").write_bytes(await page.picture())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
