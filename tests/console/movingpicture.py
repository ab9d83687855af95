"""Takes the moving picture of the README from a real run.

    cd tests && ../.venv/bin/python -m console.movingpicture ../docs/images/demo.webp

`placewright demo --console` places pods, and half-way `kubectl patch` changes the profile. Chromium shows the map of the nodes, and the
strip below says what was done. Needs Chromium, and Pillow, which nothing else here needs: `pip install pillow`.
"""

from __future__ import annotations

import asyncio
import io
import re
import sys
import tempfile
from pathlib import Path
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from browser import Page, running, tab

WIDTH: Final = 960
HEIGHT: Final = 400
#: The window is this much larger than the picture.
SCALE: Final = 1.4
#: The map, with the line above it that says where the pods stand.
_MAP: Final = "window.scrollTo(0, document.getElementById('map').getBoundingClientRect().top + window.scrollY - 40)"
#: Below the page, in a terminal's colours.
STRIP: Final = 54
RATE: Final = 40
#: Seconds between two pictures, and for how long one is shown.
EVERY: Final = 1.0
SHOWN_MS: Final = 160
LAST_MS: Final = 3000


class Said:
    """What the demo has said so far."""

    def __init__(self) -> None:
        self.address = ""
        self.patched = self.done = False
        self.placed = 0

    async def listen(self, output: asyncio.StreamReader) -> None:
        async for each in output:
            line = each.decode()
            if found := re.search(r"the console: (\S+)", line):
                self.address = found[1]
            if found := re.search(r"created (\d+)/(\d+)  placed (\d+)", line):
                self.placed, self.done = int(found[3]), found[1] == found[2]
            self.patched = self.patched or "kubectl patch" in line

    @property
    def lines(self) -> tuple[str, str]:
        """What the strip shows: the command that was given, and what is in effect."""
        if not self.patched:
            return "$", f"{self.placed:,} pods placed, by kube-scheduler's defaults: nodes fill evenly"
        command = """$ kubectl patch schedprof default --type merge -p '{"spec": {"weights": {"NodeResourcesFit": 10}, ...MostAllocated"""
        return command, f"{self.placed:,} pods placed. From the next decision on they are packed: a node is filled before the next one"


def frame(picture: bytes, lines: tuple[str, str]) -> Image.Image:
    """The page, and what is said below it."""
    whole = Image.new("RGB", (WIDTH, HEIGHT + STRIP), "#16181d")
    whole.paste(Image.open(io.BytesIO(picture)).convert("RGB").resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS), (0, 0))
    draw, font = ImageDraw.Draw(whole), ImageFont.load_default(15)
    for row, (line, colour) in enumerate(zip(lines, ("#ffffff", "#9fb3c8"), strict=True)):
        draw.text((14, HEIGHT + 7 + 22 * row), line, fill=colour, font=font)
    return whole


async def look(page: Page, said: Said) -> list[Image.Image]:
    """Wait for the map, and take pictures until the demo has placed its pods."""
    while not said.address:  # noqa: ASYNC110 - another process says it
        await asyncio.sleep(0.1)
    await page.look(width=int(WIDTH * SCALE), height=int(HEIGHT * SCALE), still=True)
    await page.ask("Page.navigate", url=said.address)
    await page.until("document.querySelector('#map')")
    frames = list[Image.Image]()
    while not said.done:
        await page.run(_MAP)
        frames.append(frame(await page.picture(), said.lines))
        await asyncio.sleep(EVERY)
    return frames


async def film(home: Path) -> list[Image.Image]:
    """Run a demo beside Chromium."""
    placewright = str(Path(sys.executable).with_name("placewright"))
    with running(home) as port:
        demo = await asyncio.create_subprocess_exec(placewright, "demo", "--console", "--rate", str(RATE), stdout=asyncio.subprocess.PIPE)
        assert demo.stdout is not None
        said = Said()
        listening = asyncio.create_task(said.listen(demo.stdout))
        try:
            async with tab(port) as page:
                return await look(page, said)
        finally:
            demo.terminate()
            await listening


def main(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, *others = asyncio.run(film(Path(folder)))
    durations = [SHOWN_MS] * len(others) + [LAST_MS]
    first.save(path, save_all=True, append_images=others, duration=durations, loop=0, quality=60, method=6)
    sys.stdout.write(f"{path}: {1 + len(others)} pictures, {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
