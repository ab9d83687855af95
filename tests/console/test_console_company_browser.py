"""The pages of groups and claims and the map of verdicts in a real browser: by keyboard, with hostile names, and at any width."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from browser import Page
from looks import looks
from programs import needs

from .companymakers import laboratory
from .makers import HOSTILE
from .visits import console as opened
from .visits import faults_of_layout, violations

pytestmark = needs("chromium")
PAGES = {
    "#/group/ml/train": "#domains", "#/claim/ml/wish": "#why", "#/claim/ml/mine": "#devices", "#/group/ml/gone": ".empty",
    f"#/group/ml/{quote(HOSTILE, safe='')}": "#members", f"#/claim/ml/{quote(HOSTILE, safe='')}": "#why", "#/group": ".empty",
    f"#/cluster?pod={quote('ml/' + HOSTILE, safe='')}": "#verdicts button", "#/queue": ".reason",
}  # fmt: skip
ANSWERED = "document.querySelector('#verdicts button') && !document.querySelector('#verdicts').innerText.includes('asking')"


@asynccontextmanager
async def console(chromium: int, path: Path) -> AsyncIterator[Page]:
    async with opened(chromium, laboratory(path), still=True) as (page, _):
        yield page


async def visit(page: Page, address: str, ready: str) -> None:
    await page.run(f"void (location.hash = {address!r})")
    await page.until(f"document.querySelector({ready!r})")


async def text(page: Page, selector: str) -> str:
    return str(await page.run(f"document.querySelector({selector!r})?.innerText ?? ''"))


async def follow(page: Page, link: str, ready: str) -> None:
    """Go along a link by keyboard."""
    await page.until(f"document.querySelector({link!r})")
    await page.run(f"document.querySelector({link!r}).focus()")
    await page.press("Enter")
    await page.until(ready)


async def test_from_the_queue_to_a_group_to_its_pod_and_to_the_map_by_keyboard(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, tmp_path / "s") as page:
        await visit(page, "#/queue", ".reason")
        await follow(page, "a[href='#/group/ml/train']", "document.querySelector('#domains')")
        shown = await text(page, "#group")
        assert "needs 3 at once; 0 placed; 3 wait" in shown
        assert "2 of 3" in await text(page, "#domains tbody tr") and "16 of 15 cpu" in await text(page, "#domains tbody tr")
        await follow(page, "#members a[href='#/pod/ml/train-1']", "document.querySelector('#company')")
        await follow(page, "#company a[href^='#/cluster']", ANSWERED)
        assert await page.run("location.hash") == "#/cluster?pod=ml%2Ftrain-1"
        assert "3 of 4 nodes can hold it" in await text(page, "#verdicts")
        assert "NodeResourcesFit: 1" in await text(page, ".legend")
        await page.run("document.getElementById('map').focus()")
        await page.press("ArrowRight")
        heard = await page.run("document.getElementById('heard').textContent")
        assert heard == "n0: rejected by NodeResourcesFit: Insufficient cpu; lacks over 50 % of a request; 76 % of CPU requested"
        await page.press("ArrowRight")
        await page.press("Enter")
        await page.until("document.querySelector('#meets')?.textContent.includes('fits, rank 1 of 3')")
        await page.run("void (document.getElementById('nodes').open = true)")
        await page.until("document.querySelectorAll('#nodes tbody tr').length === 4")
        assert "fits, rank 3 of 3" in await text(page, "#nodes table")


async def test_nodes_have_the_look_of_their_verdict_and_another_pod_can_be_chosen(chromium: int, tmp_path: Path) -> None:
    pixel = """((at) => { const it = document.querySelector('.map canvas'), size = it.width / it.clientWidth;
        return [...it.getContext('2d').getImageData((at * 112 + 8) * size, 62 * size, 1, 1).data.slice(0, 3)]; })"""
    choose = """(([at, value]) => { const it = document.querySelectorAll('.bar select')[at];
        it.focus(); it.value = value; it.dispatchEvent(new Event('change')); })"""
    async with console(chromium, tmp_path / "s") as page:
        await visit(page, "#/cluster?pod=ml%2Ftrain-0", "#verdicts button")
        await page.until(ANSWERED)
        await page.run(f"{choose}([0, ''])")
        cell, best = [0xE3, 0xE8, 0xEE], [0x00, 0x70, 0x4F]
        assert [await page.run(f"{pixel}({at})") for at in range(3)] == [cell, best, best], "a node that rejects is coloured in its middle"
        await page.run(f"{choose}([3, 'ml/wisher'])")
        await page.until(ANSWERED)
        await page.until("document.querySelector('.legend').innerText.includes('DynamicResources: 4')")
        assert await page.run("location.hash") == "#/cluster?pod=ml%2Fwisher"
        assert await page.run("document.activeElement.tagName") == "SELECT", "the choice keeps the focus"
        await page.run("void (document.querySelector('#verdicts details').open = true)")
        assert "cannot allocate all claims" in await text(page, "#verdicts table")
        await page.run("document.querySelector('#verdicts button').focus()")
        await page.press("Enter")
        await page.until("document.activeElement.tagName === 'BUTTON'")
        await page.run(f"{choose}([2, 'room'])")
        assert await page.run("location.hash") == "#/cluster"
        await page.run(f"{choose}([1, 'devices:gpu.example.com'])")
        assert "all nodes\t4\t3\t1\t33 %" in await text(page, "#groups")
        await visit(page, "#/cluster?node=n1", ".facts")
        await page.until("document.querySelector('#node h2')?.textContent === 'n1'")


async def test_names_are_text_and_no_page_is_wider_than_its_window(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, tmp_path / "s") as page:
        for number, (address, ready) in enumerate(PAGES.items()):
            for width, dark in looks(number):
                await page.look(width=width, dark=dark)
                await visit(page, address, ready)
                assert await faults_of_layout(page) == [], (width, address)
                assert await violations(page) == [], (width, address)
                assert await page.run("document.querySelectorAll('img, iframe, object, script:not([src])').length") == 0
                if "img" in address:
                    assert HOSTILE in await page.run("document.getElementById('page').textContent")
        assert [each for each in page.complaints if "404" not in each] == []
