"""What goes wrong is told as a sentence, data that is not fresh with its age and its cause, and a wrong address as such."""

from __future__ import annotations

import json
from pathlib import Path

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from browser import tab
from placewright.http.listener import bind
from placewright_console.local.localserver import LOOPBACK, ConsoleServer
from placewright_console.local.operatorlink import _silent
from placewright_lab.consolefiles.additions import open_file
from programs import needs

from .makers import a_node, a_pod, claim_profile, file_of
from .visits import console

pytestmark = needs("chromium")
#: Failures of each kind: a status with a body, or no answer at all.
FAILURES = {
    "text": (404, "no such thing: it may have gone since\n"),
    "json": (503, '{"kind":"Status","message":"no"}'),
    "markup": (502, "<html><body>Bad gateway</body></html>"),
    "python": (500, "Cannot connect to host ssl:<aiohttp.client_reqrep.Fingerprint object at 0x7f2c>\n"),
    "nothing": (500, ""),
    "no answer": (0, ""),
}
ADDRESSES = ("#/pod/a/b", "#/group/a/b", "#/claim/a/b", "#/whatif", "#/cluster?pod=a%2Fb")
TOLD = "document.querySelector('main .empty p, #verdicts:not([hidden]) p')"


def failing(status: int, body: str) -> str:
    """A script that has every question but the feed's fail."""
    answer = f"Promise.resolve(new Response({json.dumps(body)}, {{ status: {status}, headers: {{ 'Content-Type': 'text/plain' }} }}))"
    return f"""const ask = window.fetch; window.fetch = (path, ...more) => (/^api\\/(feed|session)/.test(path) ? ask(path, ...more)
        : {answer if status else "Promise.reject(new TypeError('Failed to fetch'))"});"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return file_of(tmp_path / "s", [a_node("a"), a_pod("b", namespace="a", cpu=99_000), claim_profile()])


@pytest.mark.parametrize("kind", FAILURES)
async def test_each_failure_on_each_page_is_a_sentence(chromium: int, path: Path, kind: str) -> None:
    async with console(chromium, path, before=failing(*FAILURES[kind])) as (page, _):
        for address in ADDRESSES:
            await page.run(f"void (location.hash = {address!r})")
            await page.until(f"location.hash === {address!r} && {TOLD} && !/Reading|asking/.test({TOLD}.innerText)")
            seen = await page.run("document.body.innerText")
            assert not [each for each in ("\\u0", '{"', " object at", "<html", "undefined", "[object") if each in seen], (address, seen)
            said = await page.run(f"{TOLD}.innerText")
            assert ". " in f"{said} ", (address, said)


def test_the_operator_link_tells_why_nobody_answers_without_objects_of_python() -> None:
    key = ConnectionKey("127.0.0.1", 10359, True, aiohttp.Fingerprint(b"x" * 32), None, None, None)
    problem = aiohttp.ClientConnectorError(key, ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 10359)"))
    assert " object at" in str(problem), "what the library says"
    assert str(_silent(problem)) == "the operator does not answer: Connection refused"
    assert str(_silent(TimeoutError())) == "the operator does not answer: the time for an answer is over"


async def test_a_wrong_address_says_so(chromium: int, path: Path) -> None:
    async with console(chromium, path) as (page, _):
        await page.run("void (location.hash = '#/nope')")
        await page.until("document.querySelector('main h1')?.textContent === 'There is no such page'")
        assert await page.run("document.querySelector('nav [aria-current]')") is None
        await page.run("void (location.hash = '#/cluster?node=doesnotexist')")
        await page.until("document.getElementById('node')?.textContent.includes('There is no node of this name')")


async def test_data_that_is_not_fresh_is_dim_and_told_with_its_age_and_cause(chromium: int, path: Path) -> None:
    server = ConsoleServer(open_file(path, 2**24), bind(LOOPBACK, 0, "--port"))
    async with tab(chromium) as page:
        async with server.serving():
            await page.ask("Page.navigate", url=server.url)
            await page.until("document.querySelector('.fact')")
            assert await page.run("document.getElementById('told').textContent") == ""
        await page.until("document.querySelector('main.old')")
        told = await page.run("document.getElementById('told').textContent")
        assert told.startswith("Nothing new since ")
        assert told.endswith("UTC. The console does not answer. This is how things stood then.")
