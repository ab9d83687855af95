"""The page of the cluster in a real browser: boxes by capacity, decisions that wait for a person, and what changed lately."""

from __future__ import annotations

from pathlib import Path

from browser import Page
from placewright.offline.world import read_object
from placewright_console.local.localserver import ConsoleServer
from placewright_console.pages.decisionrows import SeenDecision
from programs import needs

from .makers import Object, a_node, claim_profile, file_of
from .visits import console, keep_picture

pytestmark = needs("chromium")
#: Widths of the boxes of a map with one group, from columns of pixels that are not empty.
SIDES = """(() => { const it = document.querySelector('.map canvas'); const { data, width, height } =
    it.getContext('2d').getImageData(0, 18, it.width, it.height - 18); const sides = []; let run = 0;
    for (let x = 0; x < width; x++) { let full = false; for (let y = 0; y < height; y++) full ||= data[(y * width + x) * 4 + 3] > 0;
        if (full) run++; else { if (run) sides.push(run); run = 0; } }
    return sides; })()"""


async def choose(page: Page, label: str, value: str) -> None:
    change = "it.dispatchEvent(new Event('change'))"
    await page.run(f"(() => {{ const it = document.querySelector('[data-key=\"{label}\"] select'); it.value = {value!r}; {change}; }})()")


async def test_the_area_of_a_box_is_the_capacity_of_its_node_if_a_person_wants_it(chromium: int, tmp_path: Path) -> None:
    nodes = [a_node("a", cpu=4), a_node("b", cpu=16, gpu=1), a_node("c", cpu=64, gpu=9), a_node("d", cpu=4), a_node("e", cpu=4)]
    async with console(chromium, file_of(tmp_path / "s", [*nodes, claim_profile()])) as (page, _):
        equal = await page.run(SIDES)
        assert len(equal) == 5
        assert len(set(equal)) == 1, "boxes of one size, unless a person chooses"
        await choose(page, "Area by", "capacity")
        await page.until(f"{SIDES}.length === 4")
        small, middle, large, two = await page.run(SIDES)
        assert abs(large / small - 4) < 0.3, "sixteen times the area"
        assert abs(middle / small - 2) < 0.2
        assert abs(two - small) < 2, "one above the other, as there is room"
        assert "offered CPU" in await page.run("document.querySelector('[data-key=\"Area by\"]').innerText")
        await keep_picture(page, "area")
        # Pointer and keyboard find the boxes where they are drawn.
        left, top = await page.run("(({ left, top }) => [left, top])(document.getElementById('map').getBoundingClientRect())")
        await page.click(left + small + 4 + middle + 4 + large / 2, top + 18 + large / 2)
        await page.until("document.querySelector('#node h2')?.textContent === 'c'")
        for key, name in (("ArrowRight", "d"), ("ArrowDown", "e"), ("ArrowUp", "d"), ("ArrowUp", "d")):
            await page.press(key)
            assert (await page.run("document.getElementById('heard').textContent")).startswith(f"{name}: ")
        # A resource that nodes do not offer leaves them the smallest box, and the choice outlives the page.
        await choose(page, "Fill by", "example.com/gpu")
        await page.until(f"{SIDES}.some((each) => each < 7)")
        await page.run("void (location.hash = '#/queue')")
        await page.until("document.querySelector('#reasons > li')")
        await page.run("void (location.hash = '#/cluster')")
        await page.until("document.querySelector('[data-key=\"Area by\"] select')?.value === 'capacity'")


def decide(server: ConsoleServer, name: str) -> None:
    """The pod gets its node."""
    world = server._source.world
    world.placements.add(SeenDecision(f"u-{name}", "shop", name, "a", "default-scheduler", world.now))
    world.changes += 1


async def press_pause(page: Page) -> None:
    """By keyboard: a button hears the Enter key as a character."""
    await page.run("document.getElementById('pause').focus()")
    await page.ask("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    await page.ask("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter", windowsVirtualKeyCode=13)


async def test_decisions_stand_still_on_a_pause_and_are_counted(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, file_of(tmp_path / "s", [a_node("a"), claim_profile()])) as (page, server):
        decide(server, "first")
        rows = "[...document.querySelectorAll('#latest tbody td:first-child')].map((each) => each.textContent)"
        pressed = "document.getElementById('pause').getAttribute('aria-pressed')"
        await page.until(f"{rows}.join() === 'shop/first'")
        assert await page.run(pressed) == "false"
        await press_pause(page)
        await page.until(f"{pressed} === 'true'")
        for number in range(3):
            decide(server, f"new-{number}")
            await page.until(
                f"document.getElementById('came').textContent === 'Paused; {number + 1} new decision{'s' if number else ''} to come.'"
            )
        assert await page.run(rows) == ["shop/first"]
        assert await page.run("document.activeElement.id") == "pause", "news do not take the focus away"
        await page.run("void (location.hash = '#/pod/shop/nobody')")
        await page.until("document.querySelector('#pod h1')")
        await page.run("history.back()")
        await page.until(f"{rows}.join() === 'shop/first'")
        await keep_picture(page, "paused")
        await press_pause(page)
        assert await page.run(rows) == [f"shop/{name}" for name in ("new-2", "new-1", "new-0", "first")]
        assert not await page.run("Boolean(document.getElementById('came'))")
        decide(server, "last")
        await page.until(f"({rows})[0] === 'shop/last'")


async def test_recent_changes_stand_beside_the_map(chromium: int, tmp_path: Path) -> None:
    newer = claim_profile()
    newer["metadata"]["generation"] = 4
    path = file_of(tmp_path / "r", [a_node("a"), a_node("b"), claim_profile()], [(0.1, "MODIFIED", newer)])
    async with console(chromium, path) as (page, server):
        world = server._source.world
        told = "[...document.querySelectorAll('#node tbody tr td:first-child')].map((each) => each.textContent)"
        await page.until(f"({told}).join() === 'generation 4 of profile default took effect, after generation 0'")

        async def after(what: str, *items: Object, gone: bool = False) -> None:
            for manifest in items:
                item = read_object(manifest, "test")
                assert item is not None
                (world.remove if gone else world.put)(item)
            world.now += 60
            await page.until(f"({told})[0] === {what!r}")

        await page.run("void (location.hash = '#/queue')")
        await page.until("document.getElementById('reasons')")
        world.put(read_object(a_node("c"), "test"))
        await page.run("void (location.hash = '#/cluster')")
        await after("node c came")
        await after("node a was cordoned", a_node("a", cordoned=True))
        await after("node a was uncordoned", a_node("a"))
        await after("node c went", a_node("c"), gone=True)
        await after("nodes n0, n1, n2 and 6 others came", *[a_node(f"n{i}") for i in range(9)])
        assert await page.run(f"({told}).length") == 6, "a short list"
        links = "[...document.querySelectorAll('#node tbody tr')].map((each) => each.querySelectorAll('a').length)"
        assert await page.run(links) == [3, 0, 1, 1, 0, 0], "nodes that are there are links"
        await keep_picture(page, "changes")
        # A row that changed in another way is none, nor is a state that comes whole after the connection broke.
        for reader in list(server.feed._classes.values()):
            for each in reader.readers:
                each.drop()
        await after("node n8 was cordoned", a_node("n7", cpu=8), a_node("n8", cordoned=True))
