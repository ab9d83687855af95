"""A console that is open in a tab, and a person who goes from page to page."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from browser import Page, tab
from looks import LAPTOP, PHONE
from placewright.http.listener import bind
from placewright_console.local.localserver import LOOPBACK, ConsoleServer
from placewright_lab.consolefiles.additions import open_file, what_if_of

from .sights import Sight

#: Names a folder, which gets a picture of each page in each width, light and dark, for a person to look at.
PICTURES: Final = "CONSOLE_PICTURES"
#: Names another axe.min.js than that of the package axe-core-python, such as a newer one.
AXE: Final = "AXE_JS"
_LARGEST: Final = 2**28
_LAYOUT: Final = (Path(__file__).parent / "layout.js").read_text()


@asynccontextmanager
async def console(
    chromium: int, path: Path, *, still: bool = False, before: str = "", speed: int = 1
) -> AsyncIterator[tuple[Page, ConsoleServer]]:
    """A console that is open in a tab, with its first state; `before` is a script that runs ahead of the page's own."""
    source = open_file(path, _LARGEST, speed)
    server = ConsoleServer(source, bind(LOOPBACK, 0, "--port"), what_if_of(source))
    async with server.serving(), tab(chromium) as page:
        await page.look(width=LAPTOP, still=still)
        if before:
            await page.ask("Page.addScriptToEvaluateOnNewDocument", source=before)
        await page.ask("Page.navigate", url=server.url)
        await page.until("document.querySelector('#to-cluster[aria-current]') && document.querySelector('.fact')")
        yield page, server


async def visit(page: Page, sight: Sight, *, width: int = LAPTOP, height: int = 0, dark: bool = False) -> None:
    """Go to a page in a window of this width, by default as high as such a window is, and do there what a person would do."""
    height = height or (800 if width == PHONE else 1440 if width > LAPTOP else 900)
    await page.look(width=width, height=height, dark=dark, still=True)
    await page.run(f"void (location.hash = {json.dumps(sight.address)})")
    for step in (f"location.hash.split('?')[0] === {json.dumps(sight.address.partition('?')[0])}", sight.ready, *sight.steps):
        await page.until(step)
    await page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


async def faults_of_layout(page: Page) -> list[str]:
    """What is cut off, on top of something else, too small to be hit, or without a visible focus."""
    await page.press("Escape")  # a person at the keyboard, to whom the focus is shown
    return list(await page.run(_LAYOUT))


async def keep_picture(page: Page, name: str) -> None:
    """Write a picture of the whole page, where a person asks for pictures."""
    folder = os.environ.get(PICTURES)
    if folder:
        _write(Path(folder), f"{name}.png", await page.picture(whole=True))


def _write(folder: Path, name: str, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


@cache
def _axe() -> str:
    named = os.environ.get(AXE)
    return Path(named).read_text() if named else files("axe_core_python").joinpath("axe.min.js").read_text()


async def violations(page: Page) -> list[str]:
    """What axe-core finds: rule, what it wants, and where. The debugger evaluates it, which no policy of the page forbids."""
    if not await page.run("typeof axe === 'object'"):
        await page.run(f"{_axe()}; void 0")
    options: dict[str, Any] = {
        "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]},
        "resultTypes": ["violations"],
    }
    found = await page.run(f"axe.run(document, {json.dumps(options)}).then((all) => all.violations)")
    return [f"{each['id']}: {each['help']}: {[node['html'][:160] for node in each['nodes'][:4]]}" for each in found]
