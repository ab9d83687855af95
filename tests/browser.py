"""A page in headless Chromium, over its own debugging protocol: what a person would see, and what would be loaded."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
from typing import IO, Any, Self

import aiohttp

from programs import program

_FLAGS = (
    "--headless", "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-dev-shm-usage", "--disable-background-networking",
    "--remote-debugging-port=0", "--remote-debugging-address=127.0.0.1",
)  # fmt: skip
_HANG = 60
_TALLEST = 2400
_BETWEEN_LOOKS = 0.005
_KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class Left(AssertionError):
    """The page went away before it answered."""


class Page:
    """One tab.

    Attributes:
        requested: every address that was asked for.
        complaints: what went to the console, and errors of scripts and policies.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.requested: list[str] = []
        self.complaints: list[str] = []
        self._socket = socket
        self._ids = itertools.count(1)

    async def opened(self) -> Self:
        """Listen to everything."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.ask(f"{domain}.enable")
        return self

    async def show(self, path: Path, *, width: int = 1280, dark: bool = False, media: str = "screen") -> None:
        """Load a file and wait until it is there."""
        await self.look(width=width, dark=dark, media=media)
        await self.ask("Page.navigate", url=path.as_uri())
        await self.until(f"document.readyState === 'complete' && location.href === {json.dumps(path.as_uri())}")

    async def look(self, *, width: int = 1280, height: int = 900, dark: bool = False, media: str = "screen", still: bool = False) -> None:
        """A window of another size, or a person with other wishes."""
        await self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        wishes = {"prefers-color-scheme": "dark" if dark else "light", "prefers-reduced-motion": "reduce" if still else "no-preference"}
        features = [{"name": name, "value": value} for name, value in wishes.items()]
        await self.ask("Emulation.setEmulatedMedia", media=media, features=features)

    async def until(self, condition: str) -> None:
        """Wait until an expression in the page is true."""
        async with asyncio.timeout(_HANG):
            while not await self._holds(condition):  # noqa: ASYNC110 - the event is in the page
                # A page that is asked all the time, and a server in the same loop, have less time to get there.
                await asyncio.sleep(_BETWEEN_LOOKS)

    async def _holds(self, condition: str) -> bool:
        try:
            return bool(await self.run(f"Boolean({condition})"))
        except Left:  # the next page is asked
            return False

    async def click(self, x: float, y: float) -> None:
        """The pointer goes there and presses."""
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            pressed = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            await self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)

    async def picture(self, *, whole: bool = False) -> bytes:
        """What is in the window, or the page down to a bound, as PNG."""
        if not whole:
            return base64.b64decode((await self.ask("Page.captureScreenshot"))["data"])
        size = (await self.ask("Page.getLayoutMetrics"))["cssContentSize"]
        part = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], _TALLEST), "scale": 1}
        return base64.b64decode((await self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=part))["data"])

    async def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = await self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def press(self, key: str) -> None:
        """A key, down and up."""
        for kind in ("rawKeyDown", "keyUp"):
            await self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_KEYS[key])

    async def pdf(self) -> bytes:
        """As it is printed."""
        return base64.b64decode((await self.ask("Page.printToPDF"))["data"])

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """One command; what happens meanwhile is noted."""
        number = next(self._ids)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        async with asyncio.timeout(_HANG):
            while True:
                message = await self._socket.receive_json()
                if message.get("id") == number:
                    if "error" in message:
                        raise (Left if "navigated" in message["error"]["message"] else AssertionError)(message)
                    return dict(message["result"])
                self._note(message)

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requested.append(params["request"]["url"])
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded" | "Page.javascriptDialogOpening":
                self.complaints.append(str(params))


@contextmanager
def running(home: Path) -> Iterator[int]:
    """Chromium, as long as this is open; on which port of loopback it can be told what to do."""
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()  # Chromium refuses to be sandboxed as root
    command = [program("chromium"), *_FLAGS, *sandbox, f"--user-data-dir={home}", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            port = _port(process.stderr)
            Thread(target=process.stderr.read, name="what Chromium says", daemon=True).start()
            yield port
        finally:
            process.terminate()


def _port(said: IO[bytes]) -> int:
    seen = b""
    for line in said:
        seen += line
        if b"DevTools listening on ws://" in line:
            return int(line.split(b"127.0.0.1:")[1].split(b"/")[0])
    raise AssertionError(f"Chromium does not start: {seen.decode(errors='replace')}")


@asynccontextmanager
async def tab(port: int) -> AsyncIterator[Page]:
    """A new tab of a running Chromium; it is closed with the block."""
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        async with session.put("/json/new?about:blank") as answer:
            made = await answer.json(content_type=None)
        async with session.ws_connect(made["webSocketDebuggerUrl"], max_msg_size=0) as socket:
            yield await Page(socket).opened()
        async with session.get(f"/json/close/{made['id']}") as answer:
            assert answer.status == 200
