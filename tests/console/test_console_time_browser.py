"""The pages of time and of shadows in a real browser: charts that say what their tables say, by pointer and by keyboard, at any width."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from browser import Page, tab
from lab.figures import outcomes as makers
from lab.figures.outcomes import outcome
from looks import LAPTOP, looks
from placewright.api.objects import NodeName
from placewright.api.profile import Allocation, Regret, ShadowStatus, ShadowUse
from placewright.http.listener import bind
from placewright.serving.rights import Rights
from placewright.shadow.figures import Disagreement
from placewright_console.local.localserver import LOOPBACK, ConsoleServer
from placewright_console.pages.marks import AWAY, GENERATION, Mark, Marks
from placewright_console.pages.shadowrows import SeenShadow, shadow_rows
from placewright_console.pages.statedelta import Sections
from placewright_console.pages.timeline import PlacementTally, Timeline, Waiting
from placewright_lab.consolefiles.additions import open_file
from placewright_lab.consolefiles.comparisonsource import ComparisonSource
from placewright_lab.consolefiles.openedfile import FileSource
from placewright_lab.figures.comparison import compare
from placewright_lab.report.content import content_of
from placewright_lab.report.page import page_of
from programs import needs

from .makers import HOSTILE, a_node, a_pod, claim_profile, file_of, shop
from .visits import faults_of_layout, keep_picture, violations

pytestmark = needs("chromium")
NOON = 1_795_521_600.0


class Operator:
    """A file's cluster with the last quarter of an hour of an operator, and with its shadows."""

    def __init__(self, file: FileSource) -> None:
        self._file = file
        self.timeline, self.marks, self._tally = Timeline(), Marks(), PlacementTally()
        self.timeline.tick(0.0, NOON, {}, {})
        self._second = 0
        self.goes_on(900)
        self.marks.add(Mark(400.0, GENERATION, f"{HOSTILE} 2", f"generation 2 of profile {HOSTILE} took effect, after generation 1"))
        self.marks.add(Mark(700.0, AWAY, "API away", "the API server was away for 30 s", until=730.0))
        status = ShadowStatus(
            pods=60, decided=50, agreement_percent=40.0, same=20, other=25, live_only=5, regret=Regret(25, 12.5, 30.0, 4.2),
            resources=[ShadowUse(HOSTILE, Allocation(50, 10), Allocation(40, 5))],
        )  # fmt: skip
        differences = [
            Disagreement(HOSTILE, HOSTILE, NodeName("a-1"), NodeName("b-1"), 7), Disagreement("shop", "web", None, NodeName("b-1")),
        ]  # fmt: skip
        self.shadows = [SeenShadow(HOSTILE, "default", 3, status, differences)]

    def goes_on(self, seconds: int) -> None:
        for second in range(self._second + 5, self._second + seconds + 5, 5):
            generation = 1 if second <= 400 else 2
            self._tally.placed("default-scheduler", generation, np.full(50, 0.002), np.full(50, 0.1 * generation))
            self._tally.placed(HOSTILE, 7, np.full(5, 0.002), np.full(5, 3.0))
            self._tally.failed("default-scheduler", generation)
            waiting = {("default-scheduler", generation): Waiting(4, 1, 30 + second // 100, 2), (HOSTILE, 7): Waiting(active=10**6)}
            self.timeline.tick(second, NOON + second, self._tally.take(), waiting)
        self._second += seconds

    def sections(self, rights: Rights) -> Sections:
        found = dict(self._file.sections(rights))
        found["about"] = {**found["about"], "can": ["time", "shadows"]}
        shadows = shadow_rows(self.shadows, rights)
        return {**found, "time": self.timeline.rows(), "marks": self.marks.rows(self.timeline.time_of_day), "shadows": shadows}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@asynccontextmanager
async def opened(chromium: int, source: Any, page_name: str) -> AsyncIterator[Page]:
    server = ConsoleServer(source, bind(LOOPBACK, 0, "--port"))
    async with server.serving(), tab(chromium) as page:
        await page.look(width=1400)
        await page.ask("Page.navigate", url=server.url)
        await page.until("document.querySelector('.fact')")
        await page.run(f"void (location.hash = '#/{page_name}')")
        await page.until(f"document.querySelector('nav [aria-current]')?.hash === '#/{page_name}'")
        yield page
        assert [each for each in page.complaints if "the feed ended" not in each] == []
        assert await page.run("document.querySelectorAll('img, iframe, script:not([src])').length") == 0


async def fits(page: Page, number: int) -> None:
    """Hold that nothing sticks out, is cut off or covers something else, and that axe-core has no complaint."""
    for width, dark in looks(number):
        await page.look(width=width, dark=dark, still=True)
        await page.until(f"innerWidth === {width} && document.querySelector('#page .panel')")
        await page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert await page.run("document.documentElement.scrollWidth <= innerWidth"), (width, dark)
        assert await faults_of_layout(page) == [], (width, dark)
        assert await violations(page) == [], (width, dark)
    await page.look(width=LAPTOP)


async def cells(page: Page, table: str) -> list[list[str]]:
    script = f"[...document.querySelectorAll('{table} tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    return [list(row) for row in await page.run(script)]


async def choose(page: Page, select: str, value: str) -> None:
    change = "it.dispatchEvent(new Event('change'))"
    await page.run(f"(() => {{ const it = document.getElementById('{select}'); it.value = '{value}'; {change}; }})()")


async def test_charts_say_what_their_tables_say_and_one_moment_is_shown_in_all(chromium: int, tmp_path: Path) -> None:
    operator = Operator(open_file(shop(tmp_path / "s"), 2**24))
    async with opened(chromium, operator, "time") as page:
        await page.until("document.querySelectorAll('#charts figure').length === 6")
        await fits(page, 0)
        # The table of a chart has a row for each of its steps, and the line is as high as the number says.
        await page.run("void [...document.querySelectorAll('#charts details')].forEach((each) => { each.open = true; })")
        await page.until("document.querySelectorAll('#chart-bound tbody tr').length > 100")
        rows = await cells(page, "#chart-bound")
        assert {row[2] for row in rows} == {"11"}
        assert {row[3] for row in rows} == {"10"}
        for chart, figures in (("#chart-decisions", ("11", "10", "1")), ("#chart-refusals", ("0.2", "0.2", "0"))):
            assert {tuple(row[2:]) for row in await cells(page, chart)} == {figures}
        steps = await page.run("document.querySelector('#chart-bound .chart .line').getAttribute('d').match(/H/g).length")
        assert steps == len(rows)
        waits = [float(row[4]) for row in await cells(page, "#chart-waiting")]
        assert waits == sorted(waits, reverse=True)
        assert (waits[-1], waits[0]) == (30, 39)
        # A moment by keyboard is told by every chart, and let go by Escape.
        latest = await page.run("document.querySelector('#chart-waiting .legend li:nth-child(3) b').textContent")
        await page.run("document.getElementById('when').focus()")
        await page.press("Home")
        assert await page.run("document.querySelector('#chart-waiting .legend li:nth-child(3) b').textContent") == "30"
        assert latest == "39"
        assert "12:00:00" in await page.run("document.getElementById('reading').textContent")
        said = await page.run("document.getElementById('when').getAttribute('aria-valuetext')")
        assert re.search(r"Bound pods a second: all profiles 11\b.*unschedulable 30\b", said)
        assert await page.run("document.querySelectorAll('.hair[visibility=visible]').length") == 6
        await page.press("Escape")
        assert await page.run("document.querySelectorAll('.hair[visibility=visible]').length") == 0
        # By pointer the same.
        box = "(({ left, top, width }) => [left, top, width])(document.querySelector('#chart-waiting .chart').getBoundingClientRect())"
        await page.run("document.querySelector('#chart-waiting .chart').scrollIntoView({ block: 'center' })")
        left, top, width = await page.run(box)
        await page.click(left + width / 2, top + 80)
        assert await page.run("document.querySelector('#chart-waiting .legend li:nth-child(3) b').textContent") in ("34", "35")
        # Marks are lines with a label in each chart, and a table.
        assert await page.run("document.querySelectorAll('#chart-bound .flag').length") == 2
        assert "API away" in await page.run("document.querySelector('#chart-bound .chart').textContent")
        assert HOSTILE in await page.run("document.getElementById('marks').textContent")
        # One profile alone, and its generations.
        await choose(page, "by-profile", "default-scheduler")
        await page.until("document.querySelectorAll('#chart-bound .chart .line').length === 1")
        assert {row[2] for row in await cells(page, "#chart-bound")} == {"10"}
        generations = [(row[0], row[1]) for row in await cells(page, "#generations")]
        assert generations == [(HOSTILE, "7"), ("default-scheduler", "2"), ("default-scheduler", "1")]
        # It goes on by itself, and what a person chose, unfolded, scrolled and holds stays.
        await page.run("document.querySelector('#table-waiting summary').click()")
        region = "document.querySelector('#chart-bound .scroll')"
        height = f"read.getBoundingClientRect().top - {region}.getBoundingClientRect().top"
        await page.run(
            f"({region}.scrollTop = 200, {region}.focus(), window.read = {region}.querySelectorAll('tbody tr')[12], window.seen = {height})"
        )
        operator.goes_on(20)
        await page.until("document.querySelector('#chart-bound tbody td').textContent === '12:15:15'")
        assert await page.run("document.getElementById('by-profile').value") == "default-scheduler"
        unfolded = await page.run("[...document.querySelectorAll('#charts details')].map((each) => each.open)")
        assert unfolded == [True, True, True, False, True, True]
        assert await page.run(f"Math.abs({height} - seen) < 2 && document.activeElement === {region}"), "the row that is read"


async def test_a_recording_has_a_chart_of_the_refusals_that_pods_tell_of(chromium: int, tmp_path: Path) -> None:
    refused = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    waits = [{**a_pod(f"web-{i}", cpu=99_000), "status": refused} for i in range(12)]
    changes = [(0.1 + 0.1 * i, "ADDED", each) for i, each in enumerate(waits)] + [(120.0, "ADDED", a_pod("late"))]
    source = open_file(file_of(tmp_path / "r", [a_node("a"), claim_profile()], changes), 2**24, 1000)
    async with opened(chromium, source, "time") as page:
        await page.until("document.getElementById('connection').textContent === 'the recording has ended'")
        await page.until("document.querySelector('#chart-refusals .chart')")
        title = await page.run("document.querySelector('#chart-refusals h2').textContent")
        assert title == "Refusals that pods tell of, a second"
        await page.run("document.querySelector('#table-refusals summary').click()")
        await page.until("document.querySelectorAll('#chart-refusals tbody tr').length > 1")
        rates = [(row[1], row[2]) for row in await cells(page, "#chart-refusals") if row[2] != "0"]
        assert {length for length, _ in rates} == {"1 s"}
        assert sum(float(rate) for _, rate in rates) == 12
        assert await page.run("document.getElementById('chart-decisions')") is None, "which is more than a recording has"
        await keep_picture(page, "time-recording")


async def test_shadows_are_told_in_figures_with_examples_that_are_text(chromium: int, tmp_path: Path) -> None:
    async with opened(chromium, Operator(open_file(shop(tmp_path / "s"), 2**24)), "shadows") as page:
        await page.until("document.querySelector('.outcomes')")
        await fits(page, 1)
        text = await page.run("document.getElementById('shadows').innerText")
        assert f"{HOSTILE}\n" in text
        assert "40 %\non the same node" in text
        assert "12.5 points" in text or "13 points" in text
        assert re.search(r"another node\s+25\s+50 %", text)
        assert f"{HOSTILE}/{HOSTILE}\tb-1\ta-1\t7" in text
        assert "shop/web\tb-1\tnone\t–" in text
        lanes = await page.run("[...document.querySelectorAll('.outcomes .lane i')].map((each) => each.style.width)")
        assert lanes == ["40%", "50%", "10%", "0%", "0%"]


async def test_pages_that_are_not_offered_are_not_in_the_navigation(chromium: int, tmp_path: Path) -> None:
    async with opened(chromium, open_file(shop(tmp_path / "s"), 2**24), "queue") as page:
        shown = await page.run("[...document.querySelectorAll('nav a')].filter((each) => !each.hidden).map((each) => each.hash)")
        assert not {"#/time", "#/shadows", "#/comparison"} & set(shown)
        await page.run("void (location.hash = '#/time')")
        await page.until("document.querySelector('#page h1')?.textContent === 'There is no such page here'")


async def test_a_comparison_is_the_only_page_and_says_what_the_report_says(chromium: int, tmp_path: Path) -> None:
    names = (HOSTILE, "packing", "spread")
    outcomes = []
    for number, name in enumerate(names):
        made = outcome(name, *(makers.a_node(f"n{i}", zone=f"zone-{i % 3}", cpu=8, gpu=i % 2 * 4) for i in range(1, 9)))
        for i in range(30):
            on = f"n{number + 1}" if i == 0 else f"n{1 + i % 8}"
            made.placed(makers.a_pod(f"web-{i}", cpu=1), on, created=i, bound=i + 2, parts={"NodeResourcesFit": 40, HOSTILE: 20})
        outcomes.append(made.waits(makers.a_pod(HOSTILE, cpu=99), f"0/8 nodes are available: 8 {HOSTILE}.").made)
    comparison = compare(HOSTILE, outcomes)
    server = ConsoleServer(ComparisonSource(content_of(comparison), "c.json"), bind(LOOPBACK, 0, "--port"))
    async with server.serving(), tab(chromium) as page:
        await page.ask("Page.navigate", url=server.url)
        await page.until("document.querySelector('.report')")
        assert await page.run("location.hash") == "#/comparison"
        assert await page.run("[...document.querySelectorAll('nav a')].filter((each) => !each.hidden).length") == 1
        await fits(page, 2)
        console = await said_by(page)
        assert await page.run("document.getElementById('all-figures').open") is False
        leading = await page.run(
            "[...document.querySelectorAll('main section[aria-labelledby=leading] tbody th')].map((each) => each.textContent)"
        )
        assert leading == ["Pods: placed", "Pods: pending", "Nodes: left empty", "cpu asked for: of all of it"]
        assert await page.run("document.querySelectorAll('img, iframe, script:not([src])').length") == 0
        (tmp_path / "report.html").write_text(page_of(comparison), encoding="utf-8")
        await page.show(tmp_path / "report.html", width=1400)
        report = await said_by(page)
        assert len(console["cells"]) > 100
        assert console == report
        assert page.complaints == []


async def said_by(page: Page) -> dict[str, Any]:
    """All cells of tables, all drawings, and what is written above and below them."""
    script = """(() => {
        const texts = (selector) => [...document.querySelectorAll(selector)].map((each) => each.textContent.replace(/\\s/g, ''));
        const drawn = (selector, name) => [...document.querySelectorAll(selector)].map((each) => each.getAttribute(name));
        return {
            cells: texts('.report th, .report td'), captions: texts('.report caption'), heads: texts('main h1, .report h2, .report h3'),
            folded: texts('summary:not(#all-figures > *)').filter((each) => each !== 'Whatthefiguresmean'),
            lists: texts('.report li'), cards: texts('.cards li'),
            plots: texts('.plot text'), bars: drawn('.plot .fill', 'height').map(Number), lines: drawn('.plot path', 'd'),
            gauges: drawn('.gauge .fill', 'width').map((each) => Number(each).toFixed(1)),
        };
    })()"""
    return dict(await page.run(script))
