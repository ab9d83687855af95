"""The map of very many nodes: frames while hundreds of them change, which are recorded and never asserted, and 100,000 boxes."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from browser import Page, tab
from looks import LAPTOP
from placewright.framework.registry import installed_plugins
from placewright.http.listener import bind
from placewright.plugins.catalog import in_tree
from placewright.serving.rights import Rights
from placewright_console.local.localserver import LOOPBACK, ConsoleServer
from placewright_console.pages.statedelta import Section, Sections
from placewright_lab.consolefiles.openedfile import OpenedFile
from programs import needs

from .makers import ZONE, a_node, a_pod, claim_profile, file_of, shop
from .visits import console, faults_of_layout, keep_picture

pytestmark = needs("chromium")
NODES = 5000
CHANGES_A_SECOND = 600
SECONDS = 3
#: The lengths of all frames of some seconds, in milliseconds, in the order of length, and the changes that were seen meanwhile.
FRAMES = f"""new Promise((done) => {{
    const times = [], seen = () => Number(document.getElementById('moment').textContent.match(/([\\d,]+) of/)[1].replace(',', ''));
    const begun = performance.now(), before = seen();
    const step = (now) => (times.push(now), now - begun < {SECONDS * 1000} ? requestAnimationFrame(step)
        : done([times.slice(1).map((each, at) => each - times[at]).sort((one, other) => one - other), seen() - before]));
    requestAnimationFrame(step);
}})"""


async def test_the_map_of_five_thousand_nodes_is_drawn_while_it_changes(
    chromium: int, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    nodes = [a_node(f"n{i:04d}", cpu=64, zone="abc"[i % 3]) for i in range(NODES)]
    pods = [a_pod(f"p{i}", f"n{i * 7 % NODES:04d}") for i in range(CHANGES_A_SECOND * 60)]
    changes = [(i / CHANGES_A_SECOND, "ADDED", each) for i, each in enumerate(pods)]
    async with console(chromium, file_of(tmp_path / "r", [*nodes, claim_profile()], changes)) as (page, _):
        await page.until("document.getElementById('moment').textContent.includes(' of 36,000')")
        frames, changed = await page.run(FRAMES)
    assert changed > 0
    assert frames
    told = {"nodes": NODES, "changes": changed, "frames a second": round(1000 * len(frames) / sum(frames), 1)}
    told |= {"median, ms": round(frames[len(frames) // 2], 1), "99th percentile, ms": round(frames[len(frames) * 99 // 100], 1)}
    report: Path | None = request.config.getoption("--report")
    if report is not None:
        with report.open("a") as file:
            file.write(json.dumps(told) + "\n")


@cache
def hundred_thousand() -> tuple[Section, Section]:
    """Nodes and their loads, made for the first test that asks: making them takes a second."""
    nodes: Section = {f"n{i:06d}": [["abc"[i % 3]], [8000, 1 << 34, 110], i % 50 == 0] for i in range(100_000)}
    return nodes, {name: [[at * 37 % 8001, 0, at % 110], [[0, at % 110]]] for at, name in enumerate(nodes)}


class Metropolis(OpenedFile):
    """A file's pages with a hundred thousand nodes on the map, which no test waits to be read."""

    def sections(self, rights: Rights) -> Sections:
        """The state, with other nodes."""
        found = super().sections(rights)
        about = {**found["about"], "labels": [ZONE], "resources": ["cpu", "memory", "pods"]}
        nodes, loads = hundred_thousand()
        return {**found, "about": about, "nodes": nodes, "loads": loads}

    def node(self, name: str, rights: Rights) -> dict[str, Any] | None:
        """The page of a node: for all of them that of one which the file has."""
        return super().node("a-1", rights)


#: Choose something in the first field of a name and count the turns of the loop until the table of groups says so; the longest wait too.
CHOOSING = """((name, value, seen) => new Promise((done) => {
    const field = document.querySelector(`[data-key="${name}"] select`), { port1, port2 } = new MessageChannel();
    let turns = 0, last = performance.now(), longest = 0;
    port1.onmessage = () => {
        const now = performance.now(); longest = Math.max(longest, now - last); last = now; turns += 1;
        if (document.querySelector('#groups').textContent.includes(seen)) done([turns, Math.round(longest)]); else port2.postMessage(0);
    };
    field.value = value; field.dispatchEvent(new Event('change')); port2.postMessage(0);
}))"""


@asynccontextmanager
async def metropolis(chromium: int, folder: Path) -> AsyncIterator[Page]:
    """The map of a hundred thousand nodes, once it is shown."""
    source = Metropolis(shop(folder / "s"), 2**24, in_tree().with_installed(installed_plugins()), time.monotonic).whole()
    server = ConsoleServer(source, bind(LOOPBACK, 0, "--port"))
    async with server.serving(), tab(chromium) as page:
        await page.look(width=LAPTOP, still=True)
        await page.ask("Page.navigate", url=server.url)
        await page.until("document.querySelector('#groups tbody tr')")
        yield page


@pytest.mark.parametrize(("field", "value", "seen"), [("Group by", "", "all nodes"), ("Fill by", "pods", "Groups of nodes, pods")])
async def test_a_choice_on_a_hundred_thousand_nodes_leaves_the_page_to_the_person(
    chromium: int, tmp_path: Path, field: str, value: str, seen: str, record_property: Callable[[str, object], None]
) -> None:
    async with metropolis(chromium, tmp_path) as page:
        turns, longest = await page.run(f"{CHOOSING}({field!r}, {value!r}, {seen!r})")
        record_property("longest wait, ms", longest)
        assert turns > 10, "others have their turn while the map is made anew"


async def test_a_hundred_thousand_nodes_are_on_the_map_and_reached_by_keyboard(chromium: int, tmp_path: Path) -> None:
    async with metropolis(chromium, tmp_path) as page:
        assert "100,000nodes" in await page.run("document.querySelector('.facts').textContent")
        await keep_picture(page, "nodes-100000")
        assert await faults_of_layout(page) == []
        drawn = """(() => { const it = document.querySelector('.map canvas');
            const { data } = it.getContext('2d').getImageData(0, 0, it.width, it.height); let filled = 0;
            for (let at = 3; at < data.length; at += 4) filled += data[at] > 0;
            return filled; })()"""
        assert await page.run(drawn) > 100_000, "each box has a pixel and more"
        await page.run("document.getElementById('map').focus()")
        await page.press("End")
        await page.until("document.getElementById('heard').textContent.includes('of CPU requested')")
        assert page.complaints == []
