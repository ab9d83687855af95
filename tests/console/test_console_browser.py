"""The pages in a real browser: what a person sees of a snapshot, and what a hostile name cannot do."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from browser import Page, tab
from looks import looks
from placewright.http.listener import bind
from placewright.offline.world import read_object
from placewright_console.local.localserver import LOOPBACK, ConsoleServer
from placewright_console.pages.decisionrows import REFUSED, SeenDecision
from placewright_lab.consolefiles.additions import open_file
from programs import needs

from .makers import HOSTILE, a_node, a_pod, claim_profile, file_of, shop

pytestmark = needs("chromium")
PAGES = ("#/cluster", "#/queue", "#/pod", "#/pod/ml/train-0", "#/pod/shop/small", "#/pod/shop/web-1", "#/pod/shop/nobody")


@asynccontextmanager
async def console(chromium: int, path: Path) -> AsyncIterator[tuple[Page, ConsoleServer]]:
    """A console that is open in a tab, with all pods evaluated."""
    server = ConsoleServer(open_file(path, 2**24), bind(LOOPBACK, 0, "--port"))
    async with server.serving(), tab(chromium) as page:
        await page.look(width=1400)
        await page.ask("Page.navigate", url=server.url)
        await page.until("document.querySelector('#to-cluster[aria-current]') && document.querySelector('.fact')")
        yield page, server


async def visit(page: Page, address: str) -> None:
    await page.run(f"void (location.hash = {address!r})")
    page_name = address.split("/")[1]
    await page.until(f"document.querySelector('nav [aria-current]')?.hash === '#/{page_name}'")


async def text(page: Page, selector: str) -> str:
    return str(await page.run(f"document.querySelector({selector!r})?.innerText ?? ''"))


async def test_the_secret_leaves_the_address_and_a_second_browser_is_not_let_in(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, shop(tmp_path / "s")) as (page, server):
        assert "secret" not in await page.run("location.href")
        assert (await page.ask("Network.getAllCookies"))["cookies"] == [], "a cookie would go to every port of this machine"
        assert await page.run("history.length") <= 2, "nor is it a step back"
        await page.run("void location.reload()")
        await page.until("document.querySelector('.fact')")
        async with tab(chromium) as other:
            await other.ask("Storage.clearDataForOrigin", origin=server.url.partition("/#")[0], storageTypes="all")
            await other.ask("Page.navigate", url=server.url)
            await other.until("document.querySelector('.empty')")
            assert "used before" in await text(other, "#page")
            await other.ask("Page.navigate", url=server.url.partition("#")[0] + "#/cluster")
            await other.ask("Page.reload")
            await other.until("document.querySelector('#connection')?.textContent === 'not admitted'")
            assert "web-1" not in await text(other, "body")


async def test_a_server_of_another_user_at_another_port_gets_nothing_that_opens_the_console(chromium: int, tmp_path: Path) -> None:
    heard: list[str] = []

    async def hear(request: web.BaseRequest) -> web.Response:
        heard.extend(f"{name}: {value}" for name, value in request.headers.items())
        return web.Response(text="<p>hello</p>", content_type="text/html")

    listening = bind(LOOPBACK, 0, "--port")
    elsewhere = f"http://{LOOPBACK}:{listening.getsockname()[1]}"
    runner = web.ServerRunner(web.Server(hear))
    await runner.setup()
    await web.SockSite(runner, listening).start()
    async with console(chromium, shop(tmp_path / "s")) as (page, server), tab(chromium) as other:
        token = server._door._session
        await page.run(f"void setTimeout(() => {{ location.href = '{elsewhere}/by-a-link' }})")
        await page.until("document.body?.innerText === 'hello'")
        assert await page.run("Object.keys(localStorage).length + Object.keys(sessionStorage).length") == 0
        feed = f"{server.url.partition('#')[0]}api/feed"
        assert await page.run(f"fetch('{feed}', {{credentials: 'include'}}).then(() => 'read', () => 'blocked')") == "blocked"
        await other.ask("Page.navigate", url=server.url.partition("#")[0])
        await other.until("document.querySelector('.fact')")
        assert heard
        assert not any(line.lower().startswith(("cookie:", "authorization:")) or token in line for line in heard), heard
    await runner.cleanup()


async def test_the_cluster_in_figures_and_each_node_by_keyboard_and_by_pointer(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, shop(tmp_path / "s")) as (page, _):
        assert "4\nnodes" in await text(page, ".facts")
        await page.run("document.getElementById('map').focus()")
        await page.press("ArrowRight")
        await page.press("Enter")
        await page.until("document.querySelector('#node h2')?.textContent === 'a-1'")
        assert "a-1: 75 % of CPU requested" in await page.run("document.getElementById('heard').textContent")
        shown = await text(page, "#node")
        assert "shop/web-1" in shown
        assert "3 of 4" in shown
        await page.press("End")
        await page.press("Enter")
        await page.until("document.querySelector('#node h2')?.textContent === 'gpu-1'")
        assert "example.com/gpu:NoSchedule" in await text(page, "#node")
        corner = "(({ left, top }) => [left, top])(document.getElementById('map').getBoundingClientRect())"
        left, top = await page.run(corner)
        await page.click(left + 10, top + 30)
        await page.until("document.querySelector('#node h2')?.textContent === 'a-1'")


async def test_nodes_are_grouped_filled_and_coloured_by_choice(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, shop(tmp_path / "s")) as (page, _):
        choose = """(([at, value]) => {
            const it = document.querySelectorAll('.bar select')[at];
            it.value = value;
            it.dispatchEvent(new Event('change'));
        })"""
        assert "a\t2\t8\t3\t38 %" in await text(page, "#groups")
        await page.run(f"{choose}([1, 'memory'])")
        assert "a\t2\t32 GiB\t2 GiB\t6 %" in await text(page, "#groups")
        await page.run(f"{choose}([0, ''])")
        assert "all nodes\t4\t64 GiB\t3 GiB\t5 %" in await text(page, "#groups")
        await page.run(f"{choose}([2, 'profile'])")
        assert "default-scheduler" in await text(page, ".legend")
        await page.run("document.getElementById('nodes').open = true")
        await page.until("document.querySelectorAll('#nodes tbody tr').length === 4")


async def painted(page: Page) -> list[list[int]]:
    """The colour in the lowest row of each box, from the pixels; the group is one, so the boxes stand from the left."""
    script = """(() => { const it = document.querySelector('.map canvas'); const pixels = it.getContext('2d');
        return [0, 1, 2].map((at) => [...pixels.getImageData(at * 112 + 40, 18 + 100, 1, 1).data.slice(0, 3)]); })()"""
    return [list(each) for each in await page.run(script)]


async def test_a_box_has_the_colour_of_its_load(chromium: int, tmp_path: Path) -> None:
    path = file_of(
        tmp_path / "s", [a_node("a"), a_node("b"), a_node("c"), a_pod("x", "b", cpu=1000), a_pod("y", "c", cpu=4000), claim_profile()]
    )
    async with console(chromium, path) as (page, _):
        empty, light, full = await painted(page)
        assert (empty, light, full) == ([0xE3, 0xE8, 0xEE], [0x86, 0xC0, 0xE3], [0xD5, 0x5E, 0x00])


async def test_the_queue_by_reason_oldest_first_with_filters(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, shop(tmp_path / "s")) as (page, _):
        await visit(page, "#/queue")
        await page.until("document.querySelectorAll('#reasons > li').length === 5")
        first = await text(page, "#reasons > li")
        assert re.match(r"3\s*pods\s*Insufficient example.com/gpu on 3 nodes\s*node\(s\) were unschedulable on 1 node", first)
        assert "oldest 2 h" in first
        choose = "(([id, value]) => { const it = document.getElementById(id); it.value = value; it.dispatchEvent(new Event('change')); })"
        await page.run(f"{choose}(['by-namespace', 'ml'])")
        assert await page.run("document.querySelectorAll('#reasons > li').length") == 1
        await page.run(f"{choose}(['by-namespace', '*'])")
        await page.run(f"{choose}(['by-plugin', 'NodeUnschedulable'])")
        assert "train" in await page.run("document.getElementById('reasons').textContent")
        assert "lost" not in await page.run("document.getElementById('reasons').textContent")


async def test_a_pod_as_a_funnel_with_what_would_have_to_change(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, shop(tmp_path / "s")) as (page, _):
        await visit(page, "#/pod/ml/train-0")
        await page.until("document.getElementById('funnel')")
        assert await text(page, "#verdict") == "now: 0 of 4 nodes can hold it"
        lines = await page.run("[...document.querySelectorAll('#funnel .who')].map((each) => each.textContent)")
        assert lines == ["all nodes", "NodeUnschedulable", "NodeResourcesFit"]
        assert "gpu-1 needs 2 more example.com/gpu" in await text(page, "#changes")
        await visit(page, "#/pod/shop/small")
        await page.until("document.getElementById('scores')")
        assert await page.run("document.querySelectorAll('#scores .scores li').length") == 2


async def test_names_are_text_and_nothing_else(chromium: int, tmp_path: Path) -> None:
    turned = "left\u202eright"
    objects = [a_node(HOSTILE, zone=HOSTILE), a_node("__proto__", zone=turned, taint=HOSTILE), a_pod(HOSTILE, HOSTILE, namespace=HOSTILE)]
    waits = [a_pod(f"{HOSTILE}{i}", namespace=HOSTILE, cpu=99000) for i in range(2)]
    async with console(chromium, file_of(tmp_path / "s", [*objects, *waits, a_pod(turned), claim_profile(HOSTILE)])) as (page, server):
        address = f"#/pod/{'%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E'}/{'%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E'}0"
        for step in ("#/cluster", "#/queue", address):
            await visit(page, step)
            if step == "#/cluster":
                await page.run("void (document.getElementById('nodes').open = true)")
                await page.run("document.getElementById('map').focus()")
                await page.press("End")
                await page.press("Enter")
                await page.until("document.querySelector('#node .meter')")
            await page.until(f"document.getElementById('page').textContent.includes({HOSTILE!r})")
            assert await page.run("document.querySelectorAll('img, iframe, object, script:not([src])').length") == 0
        assert not [each for each in page.complaints if "the feed ended" not in each]
        site = server.url.partition("#")[0]
        assert [each for each in page.requested if not each.startswith(site)] == []
        await visit(page, "#/queue")
        await page.until(r"document.getElementById('reasons').textContent.includes('left\\u202eright')")


async def test_no_page_is_wider_than_its_window(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, shop(tmp_path / "s")) as (page, _):
        for number, address in enumerate(PAGES):
            for width, dark in looks(number):
                await page.look(width=width, dark=dark)
                await visit(page, address)
                await page.until("document.querySelector('#page .panel')")
                assert await page.run("document.documentElement.scrollWidth <= innerWidth"), (width, address)
                ground = await page.run("getComputedStyle(document.documentElement).backgroundColor")
                assert ground == ("rgb(14, 19, 25)" if dark else "rgb(245, 246, 248)")
        assert [each for each in page.complaints if "nobody" not in each] == []


async def test_a_recording_is_seen_as_it_goes_and_a_console_that_ends_is_told(chromium: int, tmp_path: Path) -> None:
    path = file_of(tmp_path / "r", [a_node("a"), claim_profile()], [(0.0, "ADDED", a_pod("web")), (0.5, "MODIFIED", a_pod("web", "a"))])
    async with console(chromium, path) as (page, server):
        await page.until("document.querySelector('#latest')?.textContent.includes('shop/web')")
        await page.until("document.querySelector('.facts').textContent.includes('25 %of 4 CPU')")
        server.feed.close()
        await page.until("performance.getEntriesByName(new URL('api/feed', location).href).length >= 1")
        await page.until("document.getElementById('connection').textContent === 'the recording has ended'")


async def test_a_console_that_has_ended_is_told_and_the_page_stays(chromium: int, tmp_path: Path) -> None:
    server = ConsoleServer(open_file(shop(tmp_path / "s"), 2**24), bind(LOOPBACK, 0, "--port"))
    async with tab(chromium) as page:
        async with server.serving():
            await page.ask("Page.navigate", url=server.url)
            await page.until("document.querySelector('.fact')")
        await page.until("document.getElementById('connection').textContent === 'not connected, trying again'")
        assert "4\nnodes" in await text(page, ".facts")


async def test_boxes_stand_by_load_where_a_person_wants_it(chromium: int, tmp_path: Path) -> None:
    path = file_of(
        tmp_path / "s", [a_node("a"), a_node("b"), a_node("c"), a_pod("x", "b", cpu=1000), a_pod("y", "c", cpu=4000), claim_profile()]
    )
    async with console(chromium, path) as (page, _):
        await page.run("(() => { const it = [...document.querySelectorAll('.bar select')].at(-1); it.value = 'load';"
                       "it.dispatchEvent(new Event('change')); })()")  # fmt: skip
        assert [each[0] for each in await painted(page)] == [0xD5, 0x86, 0xE3]


def test_the_command_prints_an_address_and_ends_by_a_signal(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "placewright.cli.main", "console", str(shop(tmp_path / "s"))]
    before = sorted(tmp_path.rglob("*"))
    home = {**os.environ, "HOME": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=home) as process:
        assert process.stdout is not None
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/#secret=[\w-]{43}\n", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert sorted(tmp_path.rglob("*")) == before, "no state on disk"


async def test_five_thousand_nodes_are_drawn_and_one_change_draws_one_box(chromium: int, tmp_path: Path) -> None:
    nodes: list[Any] = [a_node(f"n{i:04d}", zone="abc"[i % 3], pool=f"p{i % 7}") for i in range(5000)]
    path = file_of(tmp_path / "r", [*nodes, claim_profile()], [(1.0, "ADDED", a_pod("web", "n0042"))])
    async with console(chromium, path) as (page, _):
        async with asyncio.timeout(60):
            await page.until("document.querySelector('.facts').textContent.includes('5,000nodes')")
        drawn = """(() => {
            const it = document.querySelector('.map canvas');
            const { data } = it.getContext('2d').getImageData(0, 0, it.width, it.height);
            return data.filter((each, at) => at % 4 === 3 && each > 0).length / (it.width * it.height);
        })()"""
        await page.until(f"{drawn} > 0.5")  # most of the map is boxes


async def test_latest_decisions_are_one_row_for_the_same_and_lead_to_nodes(chromium: int, tmp_path: Path) -> None:
    async with console(
        chromium, file_of(tmp_path / "s", [a_node("a"), a_node("b", cpu=2), a_pod("x", "b", cpu=2500), claim_profile()])
    ) as (
        page,
        server,
    ):
        for at in range(3):
            for name in ("refused", "other"):
                said = SeenDecision(f"u-{name}", "shop", name, "", "default-scheduler", float(at), REFUSED, 1, (), "Insufficient cpu")
                server._source.world.placements.add(said)  # type: ignore[attr-defined]
        for on in ("", "a"):
            server._source.world.put(read_object(a_pod("web", on, cpu=1000), "test"))  # type: ignore[attr-defined]
        rows = "[...document.querySelectorAll('#latest tbody tr')].map((each) => each.innerText)"
        await page.until(f"{rows}.length === 3")
        assert "Insufficient cpu" in (await page.run(rows))[1]
        assert "\t3\t" in (await page.run(rows))[1], "three times the same is one row with a count"
        await page.run("(() => { const it = document.querySelector('#latest select'); it.value = 'placed';"
                       "it.dispatchEvent(new Event('change')); })()")  # fmt: skip
        assert await page.run(f"{rows}.length") == 1
        assert "shop/web" in await text(page, "#latest tbody")
        assert "b\t125 %" in await text(page, "#node"), "without a chosen node the fullest stand beside the map"
        assert "full (from 97 %)" in await text(page, ".legend")
        await page.run("document.querySelector('#latest td:nth-child(3) a').click()")
        await page.until("document.querySelector('#node h2')?.textContent === 'a'")


async def test_the_table_of_nodes_sorts_by_its_headers(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, shop(tmp_path / "s")) as (page, _):
        await page.run("document.getElementById('nodes').open = true")
        await page.until("document.querySelectorAll('#nodes tbody tr').length === 4")
        first = "document.querySelector('#nodes tbody tr td').innerText"
        await page.run("document.querySelectorAll('#nodes th button')[1].click()")
        await page.until(f"{first} === 'a-1' && document.querySelector('#nodes th[aria-sort=descending]')")
        await page.run("document.querySelectorAll('#nodes th button')[1].click()")
        await page.until(f"{first} !== 'a-1' && document.querySelector('#nodes th[aria-sort=ascending]')")


async def test_every_pod_of_a_reason_is_reached_page_by_page(chromium: int, tmp_path: Path) -> None:
    created = "2026-11-23T10:{:02}:{:02}Z"
    waits = [
        a_pod(f"w-{at:03}", namespace=("ml", "shop")[at % 2], cpu=64000, created=created.format(at // 60, at % 60)) for at in range(250)
    ]
    async with console(chromium, file_of(tmp_path / "s", [a_node("a"), *waits, claim_profile()])) as (page, _):
        await visit(page, "#/queue")
        await page.until("document.querySelector('#reasons .count')?.textContent.startsWith('250')")
        await page.until("document.querySelector('#reasons').textContent.includes('Insufficient')")
        await page.run("document.querySelector('#reasons details').open = true")
        names = "[...document.querySelectorAll('#reasons tbody td:first-child')].map((each) => each.textContent.split('/')[1])"
        press = "[...document.querySelectorAll('#reasons .pager button')].find((each) => each.textContent === {!r}).click()"
        seen = await page.run(names)
        assert len(seen) == 20
        for length in (100, 100, 30):
            await page.run(press.format("Later pods"))
            await page.until(f"(({names})[0] ?? '') > {seen[-1]!r} && ({names}).length === {length}")
            seen += await page.run(names)
        assert seen == [f"w-{at:03}" for at in range(250)], "each once, the oldest first, over both namespaces"
        assert "Later pods" not in [each.strip() for each in (await text(page, "#reasons .pager")).split("\n")]
        await page.run(press.format("The oldest"))
        await page.until(f"({names}).length === 20 && ({names})[0] === 'w-000'")


async def test_nodes_without_room_are_shaded_by_what_they_lack_and_the_nearest_are_listed(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, shop(tmp_path / "s")) as (page, _):
        await page.run("void (location.hash = '#/cluster?pod=ml%2Ftrain-0')")
        await page.until("document.querySelector('#nearest tbody td:nth-child(3)')")
        cells = "[...document.querySelectorAll('#nearest tbody tr')].map((each) => each.innerText)"
        assert await page.run(cells) == ["1\tgpu-1\t2 example.com/gpu"], "the others offer none"
        legend = await text(page, ".legend")
        assert "lacks up to 50 % of a request: 1" in legend
        assert "offers none of it: 2" in legend
        await page.run("document.querySelector('#nearest a').click()")
        await page.until("document.querySelector('#meets')?.textContent.includes('nearest miss 1')")
        assert "Insufficient example.com/gpu; lacks up to 50 % of a request" in await text(page, "#meets")


async def test_pods_of_the_contexts_namespace_come_first(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, shop(tmp_path / "s")) as (page, server):
        await visit(page, "#/queue")
        await page.until("document.querySelectorAll('#reasons > li').length === 5")
        assert "ml: 3" in await text(page, "#reasons > li"), "the oldest, as no namespace is the reader's"
        server._source._about["own"] = "shop"  # type: ignore[attr-defined]  # as ClusterSource tells it
        server._source.world.put(read_object(a_pod("one-more"), "test"))  # type: ignore[attr-defined]
        await page.until("document.querySelector('#reasons > li:last-child')?.textContent.includes('ml: 3')")
        assert "namespace shop first" in await text(page, "#page")


async def test_a_card_of_the_queue_names_namespaces_and_its_plugins_filter(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, shop(tmp_path / "s")) as (page, _):
        await visit(page, "#/queue")
        await page.until("document.querySelectorAll('#reasons > li').length === 5")
        assert "ml: 3" in await text(page, "#reasons > li")
        await page.run("[...document.querySelectorAll('#reasons details')].map((each) => (each.open = true)).length")
        chips = (
            "[...document.querySelectorAll('#reasons > li')].map((each) => [...each.querySelectorAll('.tag')].map((it) => it.textContent))"
        )
        found = await page.run(chips)
        assert "profile default-scheduler" in found[0]
        assert found[0].count("NodeUnschedulable") == 1
        assert [each for each in found if len(each) != len(set(each))] == [], "unfolded, a card tells each thing once"
        await page.run(
            "[...document.querySelectorAll('#reasons button.tag')].find((each) => each.textContent === 'NodeUnschedulable').click()"
        )
        await page.until("document.getElementById('by-plugin').value === 'NodeUnschedulable'")
        assert "lost" not in await page.run("document.getElementById('reasons').textContent")
