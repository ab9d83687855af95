"""The console holds still: what a person points at, presses or has selected stays, while the cluster changes fifty times a second."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from browser import Page
from placewright.offline.world import read_object
from placewright_console.local.localserver import ConsoleServer
from programs import needs

from .makers import a_node, a_pod, claim_profile, file_of
from .sights import Sight
from .visits import console, visit

pytestmark = needs("chromium")
#: Seconds between two changes of the cluster: fifty a second.
BEAT = 0.02
#: Ordinary clicks, and changes of the cluster from press to release: a tenth of a second.
CLICKS = 8
PRESSED = 5
QUEUE = Sight("queue", "#/queue", "document.querySelectorAll('#reasons > li').length > 3")
CLUSTER = Sight("cluster", "#/cluster", "document.querySelectorAll('#latest tbody tr').length === 12")


@asynccontextmanager
async def restless(server: ConsoleServer) -> AsyncIterator[None]:
    """Pods come, wait for reasons of their own, and get nodes, for as long as this is open."""
    world = server._source.world

    def happens(number: int) -> Iterator[object]:
        yield a_pod(f"late-{number}", namespace="shop", created="2026-11-23T11:59:50Z")
        yield a_pod(f"late-{number}", "a", namespace="shop", cpu=1)
        # The same thirty pods wait for one reason after another: rows come, go and change places.
        since = f"2026-11-23T0{number % 10}:00:00Z"
        yield a_pod(f"huge-{number % 30}", namespace="bank", schedulerName=f"s-{number}", created=since)

    async def change() -> None:
        for manifest in itertools.chain.from_iterable(happens(number) for number in itertools.count()):
            world.put(read_object(manifest, "test"))
            await asyncio.sleep(BEAT)

    changing = asyncio.create_task(change())
    try:
        yield
    finally:
        changing.cancel()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    waits = [a_pod(f"big-{i}", cpu=64_000, namespace=f"space-{i}", schedulingGates=[{"name": f"g{i}"}]) for i in range(4)]
    moves = [(0.001 * i, "MODIFIED", a_pod(f"first-{i}", "a", cpu=1)) for i in range(12)]
    firsts = [a_pod(f"first-{i}", cpu=1) for i in range(12)]
    return file_of(tmp_path / "s", [a_node("a", cpu=64), *waits, *firsts, claim_profile()], moves)


async def middle_of(page: Page, selector: str) -> tuple[float, float]:
    box = f"document.querySelector('{selector}').getBoundingClientRect()"
    left, top = await page.run(f"(({{ left, top, width, height }}) => [left + width / 2, top + height / 2])({box})")
    return left, top


async def aimed(page: Page, link: str) -> tuple[float, float]:
    """Go after a link with the pointer until it is there, as rows move until they are pointed at."""
    while True:
        await page.run("[...document.querySelectorAll('#reasons details')].map((each) => (each.open = true)).length")
        await page.run(f"document.querySelector('{link}').scrollIntoView({{ block: 'center' }})")
        left, top = await middle_of(page, link)
        await mouse(page, "mouseMoved", left, top)
        if await page.run(f"document.querySelector('{link}').matches(':hover')"):
            return left, top


async def meanwhile(server: ConsoleServer) -> None:
    """Let the cluster change, as it does while a hand presses."""
    world = server._source.world
    until = world.changes + PRESSED
    while world.changes < until:  # noqa: ASYNC110 - the changes are made in this loop
        await asyncio.sleep(BEAT)


async def mouse(page: Page, kind: str, left: float, top: float, **more: object) -> None:
    await page.ask("Input.dispatchMouseEvent", type=kind, x=left, y=top, **more)


BUTTON = {"button": "left", "clickCount": 1}


@pytest.mark.parametrize(("sight", "link"), [(CLUSTER, "#latest tbody tr:nth-child(5) a"), (QUEUE, "#reasons > li:nth-child(3) a")])
async def test_every_click_on_a_row_opens_what_the_person_saw(chromium: int, path: Path, sight: Sight, link: str) -> None:
    async with console(chromium, path, still=True) as (page, server), restless(server):
        for _ in range(CLICKS):
            await mouse(page, "mouseMoved", 2, 2)
            await visit(page, sight)
            left, top = await aimed(page, link)
            wanted = await page.run(f"document.querySelector('{link}').hash")
            await meanwhile(server)
            await mouse(page, "mousePressed", left, top, **BUTTON)
            await meanwhile(server)
            await mouse(page, "mouseReleased", left, top, **BUTTON)
            await page.until("location.hash.startsWith('#/pod/')")
            assert await page.run("location.hash") == wanted


@pytest.mark.parametrize(("sight", "row"), [(CLUSTER, "#latest tbody tr:nth-child(3)"), (QUEUE, "#reasons > li:nth-child(2)")])
async def test_selected_text_stays_and_the_rest_of_the_page_goes_on(chromium: int, path: Path, sight: Sight, row: str) -> None:
    async with console(chromium, path, still=True) as (page, server):
        await visit(page, sight)
        await page.run(f"getSelection().selectAllChildren(document.querySelector('{row}'))")
        selected = await page.run("getSelection().toString()")
        assert selected.strip()
        waiting = await page.run("document.getElementById('waiting').textContent")
        async with restless(server):
            await page.until(
                "!document.getElementById('held').hidden && / [1-9]\\d+ updates/.test(document.getElementById('held').textContent)"
            )
            assert await page.run("getSelection().toString()") == selected
            assert await page.run("document.getElementById('waiting').textContent") != waiting
            before = await page.run(f"document.querySelector('{row}').parentElement.textContent")
            await page.run("getSelection().removeAllRanges()")
            await page.until("document.getElementById('held').hidden")
            assert await page.run(f"document.querySelector('{row}').parentElement.textContent") != before


async def test_rows_stay_the_same_elements_while_others_come_and_go(chromium: int, path: Path) -> None:
    async with console(chromium, path, still=True) as (page, server):
        await visit(page, QUEUE)
        await page.run(
            "void (window.kept = [...document.querySelectorAll('#reasons > li')].find((each) => each.textContent.includes('big-0')))"
        )
        await page.run("kept.querySelector('summary').click()")
        await page.run("kept.querySelector('a').focus()")
        rows = await page.run("document.querySelectorAll('#reasons > li').length")
        async with restless(server):
            await page.until(f"document.querySelectorAll('#reasons > li').length > {rows + 5}")
        assert await page.run("kept.isConnected && kept.querySelector('details').open && kept.contains(document.activeElement)")
