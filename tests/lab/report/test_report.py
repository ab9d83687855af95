"""The report: what it says, that nothing hostile gets into it, and how it looks and behaves in a real browser."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from browser import Page, tab
from lab.figures.outcomes import NO_CPU, a_node, a_pod, outcome
from placewright_lab.figures.comparison import COUNT, NOTHING, SHARE, ProfileComparison, compare, rows_of, span
from placewright_lab.figures.figures import figures_of
from placewright_lab.report.charts import FULL, courses, distributions
from placewright_lab.report.page import MOST_NAMED, page_of
from placewright_lab.simulation.outcome import Outcome
from programs import needs

HOSTILE = """<script>alert(1)</script>"' onload=alert(2) </title></style><img src=x onerror=alert(3)> {{ 7*7 }}"""
#: What turns the direction of writing, a line end, and a character that a terminal obeys.
SNEAKY = "left\u202eright\nnext\x1b[2J"


def outcome_of(profile: str, *, first: str = "n1", waiting: str = NO_CPU) -> Outcome:
    nodes = [a_node(f"n{i}", zone=f"zone-{i % 3}", cpu=8, memory="16Gi", gpu=i % 2 * 4) for i in range(1, 9)]
    made = outcome(profile, *nodes)
    for i in range(30):
        parts = {"NodeResourcesFit": 40 + i, "TaintToleration": 60}
        made.placed(a_pod(f"web-{i:02d}", cpu=1, gpu=i % 2), first if i == 0 else f"n{1 + i % 8}", created=i, bound=i + i % 4, parts=parts)
    return made.waits(a_pod("big", cpu=99), waiting, created=4).made


def comparison(*, names: tuple[str, ...] = ("default", "packing"), waiting: str = NO_CPU) -> ProfileComparison:
    return compare("a trace.csv", [outcome_of(name, first=f"n{i + 1}", waiting=waiting) for i, name in enumerate(names)])


def hostile() -> ProfileComparison:
    """Make an outcome in which every name is a bad one."""
    bad = [
        outcome(HOSTILE, a_node(HOSTILE, zone=HOSTILE, cpu=4)),
        outcome(SNEAKY, a_node(HOSTILE, zone=HOSTILE, cpu=4), a_node(SNEAKY, cpu=1)),
    ]
    for made, on in zip(bad, (HOSTILE, SNEAKY), strict=True):
        made.placed(a_pod(HOSTILE), on, created=0, bound=3, parts={HOSTILE: 3, SNEAKY: 1}).waits(a_pod(f"w{HOSTILE}"), HOSTILE)
    bad[0].waits(a_pod("x"), SNEAKY)
    bad[1].placed(a_pod("x"), SNEAKY)
    return compare(HOSTILE, [made.made for made in bad])


class Tags(HTMLParser):
    """Collects every element and attribute of a page, and its visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_no_name_becomes_an_element_or_an_attribute() -> None:
    page, plain = Tags(page_of(hostile())), Tags(page_of(comparison()))
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in plain.elements} | {"details", "summary", "q"}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert HOSTILE in page.text
    assert "49" not in re.findall(r"\d+", page.text)


def test_what_turns_the_direction_of_writing_is_shown_as_an_escape() -> None:
    page = page_of(hostile())
    assert "\u202e" not in page
    assert "\x1b" not in page
    assert r"left\u202eright\nnext\x1b[2J" in page


def test_equal_comparisons_give_equal_bytes() -> None:
    assert page_of(comparison()) == page_of(comparison())


def test_nothing_in_the_page_names_another_address() -> None:
    page = page_of(comparison())
    assert not re.search(r"https?:|//|@import|url\(", page)
    assert "default-src 'none'" in page


def test_the_page_says_every_figure_that_the_table_says() -> None:
    text = Tags(page_of(comparison())).text
    missing = [(row.label, shown) for row in rows_of(comparison()) for shown in (row.label, *row.texts) if shown not in text]
    assert missing == []


def test_long_lists_are_cut_and_say_so() -> None:
    one, two = outcome("a", a_node("n1"), a_node("n2")), outcome("b", a_node("n1"), a_node("n2"))
    for i in range(MOST_NAMED + 7):
        one.placed(a_pod(f"p{i}"), "n1")
        two.placed(a_pod(f"p{i}"), "n2")
    page = page_of(compare("s", [one.made, two.made]))
    assert f"a/p{MOST_NAMED - 1}<" in page
    assert f"a/p{MOST_NAMED}<" not in page
    assert f"the first {MOST_NAMED}" in page


def test_a_simulation_of_nothing_has_a_page() -> None:
    page = page_of(compare("nothing", [outcome("p").made]))
    assert "There are no nodes" in page
    assert "No pod waits" in page


# --- rows and drawings -------------------------------------------------------------------------------------------------------


def test_a_difference_is_of_what_is_shown() -> None:
    assert SHARE.text(0.8124) == "81.2 %"
    assert SHARE.difference(0.8124, 0.8111) == "+0.1"
    assert SHARE.difference(0.81241, 0.81239) == ""
    assert COUNT.difference(1000, 3500) == "−2,500"
    assert COUNT.text(None) == NOTHING


@pytest.mark.parametrize(("seconds", "text"), [(0.5, "0.5 s"), (90, "1.5 min"), (7200, "2 h"), (86_400 * 149.5, "150 d")])
def test_durations_are_in_the_largest_unit(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_thousandths_of_gpus_are_shown_as_gpus() -> None:
    made = outcome("p", a_node("n", gpu_milli=4000)).placed(a_pod("x", gpu_milli=500), "n").made
    rows = {(row.group, row.label): row.texts for row in rows_of(compare("s", [made]))}
    assert rows["GPU left over", "free"] == ("3.5",)
    assert rows["GPU asked for", "of all of it"] == ("12.5 %",)


def test_a_node_that_has_promised_more_than_it_has_counts_as_full() -> None:
    made = outcome("p", a_node("n", cpu=1)).stood(a_pod("x", on="n", cpu=3)).made
    (one,) = distributions([figures_of(made)])
    assert [bar.label for bar in one.panels[0].bars] == [""] * 9 + ["1"]


def test_bars_of_a_histogram_are_as_high_as_they_have_nodes_over_all_profiles() -> None:
    figures = comparison().figures
    for one in distributions(figures):
        scales: set[int] = set()
        for panel, each in zip(one.panels, figures, strict=True):
            (shares,) = [use.shares for use in each.uses if use.resource == one.resource]
            wanted = [int(np.sum((shares >= i / 10) & ((shares < (i + 1) / 10) | (i == 9)))) for i in range(10)]
            assert [int(bar.label or 0) for bar in panel.bars] == wanted
            scales |= {round(bar.height / int(bar.label)) for bar in panel.bars if bar.label}
        assert len(scales) == 1
        assert max(bar.height for panel in one.panels for bar in panel.bars) == FULL


def test_a_timeline_is_drawn_only_where_time_passes_and_has_few_points() -> None:
    assert courses([figures_of(outcome("p", a_node("n")).placed(a_pod("x"), "n").made)]) == ()
    made = outcome("p", a_node("n", cpu=1))
    for i in range(5000):
        made.placed(a_pod(f"p{i}"), "n", created=i, bound=i + 0.5)
    (course,) = courses([figures_of(made.made)])
    assert 100 < course.placed.count("H") < 400


# --- in a browser ------------------------------------------------------------------------------------------------------------

WIDTHS = (360, 768, 1280)


@pytest.fixture(name="page")
async def _page(chromium: int) -> AsyncIterator[Page]:
    async with tab(chromium) as page:
        yield page


@pytest.fixture(name="report")
def _report(tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    path.write_text(page_of(comparison(names=("default", "packing", "aprofilewithquitealongnameindeed" * 5))), encoding="utf-8")
    return path


@needs("chromium")
async def test_a_hostile_page_runs_nothing_loads_nothing_and_does_not_complain(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(page_of(hostile()), encoding="utf-8")
    await page.show(path)
    assert page.requested == [path.as_uri()]
    assert page.complaints == []
    assert await page.run("document.scripts.length") == 0


@needs("chromium")
@pytest.mark.parametrize("width", WIDTHS)
async def test_the_page_never_scrolls_sideways_even_unfolded(page: Page, report: Path, width: int) -> None:
    await page.show(report, width=width)
    await page.run("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert await page.run("innerWidth") == width
    assert await page.run("document.documentElement.scrollWidth") <= width
    outside = """[...document.querySelectorAll('h1,h2,h3,p,caption,figure,figure *,summary,.cards li,.scroll')]
        .filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML)"""
    assert await page.run(outside) == []
    assert page.complaints == []


@needs("chromium")
async def test_every_drawing_table_and_heading_can_be_found_without_eyes(page: Page, report: Path) -> None:
    await page.show(report)
    assert await page.run("document.documentElement.lang") == "en"
    assert "packing" in await page.run("document.title")
    unnamed = """[...document.querySelectorAll('svg')].filter(svg => svg.getAttribute('aria-hidden') !== 'true' && !(
        svg.getAttribute('role') === 'img' && svg.querySelector('title').textContent && svg.querySelector('desc').textContent &&
        svg.getAttribute('aria-labelledby').split(' ').every(id => svg.querySelector('#' + id)))).length"""
    assert await page.run("document.querySelectorAll('svg[role=img]').length") > 5
    assert await page.run(unnamed) == 0
    nameless = "[...document.querySelectorAll('table')].filter(t => !t.caption || !t.querySelector('th[scope=col]')).length"
    assert await page.run(nameless) == 0
    levels = await page.run("[...document.querySelectorAll('h1,h2,h3')].map(h => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert await page.run("new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size == document.querySelectorAll('[id]').length")
    assert await page.run("[...document.querySelectorAll('a[href^=\"#\"]')].every(a => document.getElementById(a.hash.slice(1)))")


@needs("chromium")
async def test_by_keyboard_one_skips_to_the_content_and_sees_where_one_is(page: Page, report: Path) -> None:
    await page.show(report, width=360)
    await page.press("Tab")
    assert await page.run("document.activeElement.className") == "skip"
    assert await page.run("document.activeElement.getBoundingClientRect().left") >= 0
    await page.press("Enter")
    await page.run("new Promise(requestAnimationFrame)")
    assert await page.run("location.hash") == "#content"
    seen: set[str] = set()
    for _ in range(40):
        await page.press("Tab")
        seen.add(await page.run("document.activeElement.tagName + '.' + document.activeElement.className"))
        if await page.run("document.activeElement !== document.body"):
            assert await page.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert {"DIV.scroll", "SUMMARY."} <= seen


CONTRAST = """(() => {
  const linear = v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => .2126 * linear(r / 255) + .7152 * linear(g / 255) + .0722 * linear(b / 255);
  const rgb = text => text.match(/[\\d.]+/g).map(Number);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = rgb(getComputedStyle(element).backgroundColor);
      if (colour[3] !== 0) return colour;
    }
    return [255, 255, 255];
  };
  const property = element => element.matches('path') ? 'stroke' : element.matches('svg *') ? 'fill' : 'color';
  const ratio = element => {
    const both = [rgb(getComputedStyle(element)[property(element)]), behind(element)].map(luminance).sort((a, b) => b - a);
    return (both[0] + .05) / (both[1] + .05);
  };
  const least = selector => Math.min(...[...document.querySelectorAll(selector)].map(ratio));
  const words = 'h1,h2,h3,p,a:not(.skip),th,td,small,caption,figcaption,summary,li,svg text';
  return [least(words), least('rect.fill,path.placed,path.waiting')];
})()"""


@needs("chromium")
@pytest.mark.parametrize("dark", [False, True])
async def test_text_and_drawings_have_contrast_in_light_and_dark(page: Page, report: Path, *, dark: bool) -> None:
    """WCAG 2.2 AA: 4.5 for text, 3 for what drawings are made of."""
    await page.show(report, dark=dark)
    assert (sum(await page.run("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")) < 300) == dark
    text, drawings = await page.run(CONTRAST)
    assert text >= 4.5
    assert drawings >= 3


@needs("chromium")
async def test_paper_is_white_shows_what_is_folded_and_no_navigation(page: Page, report: Path) -> None:
    await page.show(report, dark=True, media="print")
    assert await page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert await page.run("getComputedStyle(document.querySelector('nav')).display") == "none"
    hidden = "[...document.querySelectorAll('details > :not(summary)')].filter(e => !e.checkVisibility()).length"
    assert await page.run("document.querySelectorAll('details').length") > 3
    assert await page.run(hidden) == 0
    assert (await page.pdf()).startswith(b"%PDF")
