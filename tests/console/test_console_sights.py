"""All pages of the console in a real browser: for everybody, on every screen, by keyboard, and with names that are meant to do harm."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from browser import Page, tab
from looks import LAPTOP, LARGE, PHONE, looks
from placewright.framework.registry import installed_plugins
from placewright.http.listener import bind
from placewright.offline.world import read_object
from placewright.plugins.catalog import in_tree
from placewright_console.local.localserver import LOOPBACK, ConsoleServer
from placewright_lab.consolefiles.openedfile import OpenedFile
from programs import needs

from .makers import a_node, a_pod, claim_profile, file_of
from .sights import HOSTILE, ROGUES, TOWN, Sight, rogues, town
from .visits import console, faults_of_layout, keep_picture, violations, visit

pytestmark = [needs("chromium"), pytest.mark.asyncio(loop_scope="module")]
EACH = pytest.mark.parametrize("sight", TOWN, ids=[each.name for each in TOWN])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def opened(chromium: int, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    """The console of a town, in one tab for all tests that change nothing."""
    async with console(chromium, town(tmp_path_factory.mktemp("town") / "town.recording"), still=True) as (page, _):
        await page.until("document.querySelector('#latest')?.textContent.includes('late-7')")
        await visit(page, TOWN[1])
        await page.until("!document.querySelector('[role=status].small').textContent.includes('not evaluated')")
        yield page


@EACH
async def test_axe_finds_nothing_on_any_page(opened: Page, sight: Sight) -> None:
    for dark in {look.dark for look in looks(TOWN.index(sight))}:
        await visit(opened, sight, dark=dark)
        assert await violations(opened) == [], dark


@EACH
async def test_every_page_fits_a_phone_a_laptop_and_a_large_screen(opened: Page, sight: Sight) -> None:
    for width, dark in looks(TOWN.index(sight)):
        await visit(opened, sight, width=width, dark=dark)
        await keep_picture(opened, f"{sight.name}-{width}-{'dark' if dark else 'light'}")
        assert await faults_of_layout(opened) == [], (width, dark)


@EACH
async def test_a_large_screen_is_used(opened: Page, sight: Sight) -> None:
    await visit(opened, sight, width=LARGE)
    boxes = "[...document.querySelectorAll('main .panel')].map((each) => each.getBoundingClientRect())"
    left, *_, right = sorted(await opened.run(f"{boxes}.flatMap((each) => [each.left, each.right])"))
    assert right - left > 0.9 * LARGE


@EACH
async def test_each_page_has_a_title_of_its_own_and_one_heading_of_the_first_order(opened: Page, sight: Sight) -> None:
    await visit(opened, sight)
    title = await opened.run("document.title")
    assert title.endswith(" · Placewright console")
    assert await opened.run("document.querySelectorAll('h1').length") == 1
    await visit(opened, TOWN[2] if sight == TOWN[1] else TOWN[1])
    assert await opened.run("document.title") != title


FOCUS = """(() => { const it = document.activeElement; if (it === document.body) return null;
    const { left, right, top, bottom } = it.getBoundingClientRect(), { outlineStyle, outlineWidth } = getComputedStyle(it);
    const known = passed.has(it); passed.add(it);
    const within = bottom > 0 && top < innerHeight && right > 0 && left < innerWidth;
    return { known, seen: within && outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2, what: it.outerHTML.slice(0, 80) }; })()"""
UNREACHED = """[...document.querySelectorAll("a[href], button:not(:disabled), select, input, summary, [tabindex='0']")]
    .filter((each) => each.checkVisibility() && !passed.has(each)).map((each) => each.outerHTML.slice(0, 80))"""


@EACH
async def test_the_tab_key_reaches_everything_and_gets_stuck_nowhere(opened: Page, sight: Sight) -> None:
    await visit(opened, sight._replace(steps=sight.steps[:1] if sight.name == "cluster" else ()))
    await opened.press("Escape")
    await opened.run("(() => { window.passed = new Set(); document.querySelector('.skip').focus(); })()")
    for _ in range(200):  # more than there are places to stop at, unless one of them holds the focus
        focus = await opened.run(FOCUS)
        if focus is None or focus["known"]:
            break
        assert focus["seen"], focus["what"]
        await opened.press("Tab")
    else:
        pytest.fail("the focus does not come back to the window")
    assert await opened.run(UNREACHED) == []


async def test_a_pod_is_found_and_left_by_keyboard_alone(opened: Page) -> None:
    await visit(opened, TOWN[2])
    await opened.run("document.querySelector('.skip').focus()")
    await opened.press("Enter")
    assert await opened.run("document.activeElement.id") == "page", "the first link leads past the navigation"
    assert await opened.run("location.hash") == "#/pod", "and to no other page"
    await opened.run("document.getElementById('to-queue').focus()")
    await opened.press("Enter")
    await opened.until("document.querySelector('#reasons > li summary')")
    await opened.run("document.querySelector('#reasons > li summary').focus()")
    await opened.press("Enter")
    await opened.until("document.querySelector('#reasons > li details').open")
    for _ in ("the table, which may scroll", "its first pod"):
        await opened.press("Tab")
    await opened.press("Enter")
    await opened.until("document.getElementById('funnel')")
    assert await opened.run("document.getElementById('page').contains(document.activeElement)"), "the focus goes on in the new page"


async def test_the_focus_and_what_is_unfolded_outlive_news(chromium: int, tmp_path: Path) -> None:
    waits = [a_pod(f"big-{i}", cpu=64000) for i in range(3)]
    async with console(chromium, file_of(tmp_path / "s", [a_node("a"), *waits, claim_profile()])) as (page, server):
        await visit(page, TOWN[1]._replace(steps=()))
        await page.until("document.querySelector('#reasons .count')?.textContent.startsWith('3')")
        await page.until("document.querySelector('#reasons').textContent.includes('Insufficient')")
        await page.run("document.querySelector('#reasons summary').click()")
        await page.until("document.querySelector('#reasons details').open")
        await page.run("document.querySelector('#reasons a[href$=big-1]').focus()")
        server._source.world.put(read_object(a_pod("gated", schedulingGates=[{"name": "g"}]), "test"))
        await page.until("document.querySelectorAll('#reasons > li').length === 2")
        assert str(await page.run("document.activeElement.hash")).endswith("big-1")
        assert await page.run("document.activeElement.closest('details').open")


async def test_names_that_are_meant_to_do_harm_are_text_that_fits(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, rogues(tmp_path)) as (page, server):
        for sight in ROGUES[:-1]:
            for width in (PHONE, LAPTOP):
                await visit(page, sight, width=width)
                await keep_picture(page, f"rogues-{sight.name}-{width}")
                assert await faults_of_layout(page) == [], (sight.name, width)
                assert await page.run("document.querySelectorAll('img, iframe, object, script:not([src])').length") == 0
                assert not await page.run(r"/[\u202e\u2066\u200b]/.test(document.body.innerText)"), "nothing turns the text around"
        await visit(page, ROGUES[1])
        assert HOSTILE in await page.run("document.getElementById('page').textContent")
        assert [each for each in page.complaints if "the feed ended" not in each] == []
        assert [each for each in page.requested if not each.startswith(server.url.partition("#")[0])] == []


@pytest.mark.parametrize("nodes", [0, 1])
async def test_a_cluster_of_nothing_and_of_one_node(chromium: int, tmp_path: Path, nodes: int) -> None:
    path = file_of(tmp_path / "small.snapshot", [*[a_node("only")][:nodes], claim_profile()])
    async with console(chromium, path) as (page, _):
        for number, address in enumerate(("#/cluster", "#/queue", "#/pod")):
            for width, dark in looks(number):
                await visit(page, Sight(address, address, "document.querySelector('#page .panel')"), width=width, dark=dark)
                await keep_picture(page, f"nodes-{nodes}-{address[2:]}-{width}-{'dark' if dark else 'light'}")
                assert await faults_of_layout(page) == [], (address, width)
        await visit(page, Sight("cluster", "#/cluster", "document.querySelector('#page .panel')"))
        assert ("No nodes" in await page.run("document.getElementById('page').innerText")) == (nodes == 0)
        assert await violations(page) == []
        await page.run("document.getElementById('map')?.focus()")
        for key in ("ArrowRight", "ArrowDown", "End", "Enter", "Escape"):
            await page.press(key)
        assert page.complaints == []


COUNTING = "window.asked = 0; const ask = requestAnimationFrame; window.requestAnimationFrame = (it) => { asked++; return ask(it); };"


@pytest.mark.parametrize("still", [True, False], ids=["still", "moving"])
async def test_people_who_ask_for_less_motion_see_none(chromium: int, tmp_path: Path, still: bool) -> None:
    path = file_of(tmp_path / "s", [a_node("a"), a_node("b"), claim_profile()])
    async with console(chromium, path, still=still, before=COUNTING) as (page, server):
        server._source.world.put(read_object(a_pod("web", "a"), "test"))
        await page.until("document.querySelector('.facts').textContent.includes('13 %')")
        await page.run("new Promise((done) => { let left = 60; const step = () => (left-- ? ask(step) : done()); step(); })")
        assert (await page.run("asked") < 5) == still
        each = "[...document.querySelectorAll('*')].flatMap((each) => getComputedStyle(each).transitionDuration.split(', '))"
        durations = await page.run(each)
        assert not still or set(durations) <= {"0s"}
        assert not still or await page.run("document.getAnimations().length") == 0


async def test_a_file_that_is_being_read_is_shown_as_such_and_then_its_pages(chromium: int, tmp_path: Path) -> None:
    source = OpenedFile(town(tmp_path / "town.recording"), 2**24, in_tree().with_installed(installed_plugins()), time.monotonic)
    reading, source.advance = source.advance, lambda: False  # type: ignore[method-assign]
    server = ConsoleServer(source, bind(LOOPBACK, 0, "--port"))
    async with server.serving(), tab(chromium) as page:
        await page.look(width=LAPTOP, still=True)
        await page.ask("Page.navigate", url=server.url)
        await page.until("document.querySelector('#opening progress')")
        assert await page.run("document.querySelector('#opening h1').textContent") == "Reading town.recording"
        await page.run("document.getElementById('to-queue').click()")
        await keep_picture(page, "opening-1400")
        assert await violations(page) == []
        assert await faults_of_layout(page) == []
        source.advance = reading  # type: ignore[method-assign]
        await page.until("document.querySelector('#reasons > li')")
        assert page.complaints == []
