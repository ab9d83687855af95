"""The console of an operator in Chromium: a token is asked for, tried, refused and taken, and the page tells what goes on."""

from __future__ import annotations

from browser import Page, tab
from console.makers import HOSTILE
from console.visits import keep_picture, violations
from serving.consolecast import COME_IN, READ, SECRET, at_work
from serving.consolestage import site
from serving.desk import desk


async def opened(page: Page, address: str) -> None:
    await page.ask("Security.setIgnoreCertificateErrors", ignore=True)
    await page.ask("Page.navigate", url=address)
    await page.until("document.getElementById('token')")


async def enter(page: Page, token: str) -> None:
    """As a person would: the field has the focus."""
    await page.until("document.activeElement?.id === 'token'")
    await page.ask("Input.insertText", text=token)
    for kind in ("keyDown", "keyUp"):  # with its character, without which Chromium submits no form
        await page.ask("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", text="\r", windowsVirtualKeyCode=13)


async def test_a_person_enters_a_token_and_is_asked_again_when_it_is_no_longer_good(chromium: int) -> None:
    async with at_work() as (asked, cast), tab(chromium) as page:
        ann = cast.person("ann", COME_IN, READ)
        await opened(page, f"https://127.0.0.1:{asked.served.port}/console")
        assert "kubectl create token" in await page.run("document.getElementById('page').innerText")
        field = "document.getElementById('token')"
        assert await page.run(f"[{field}.type, {field}.autocomplete]") == ["password", "off"]
        assert await page.run("document.getElementById('complaint').textContent") == "", "nothing is wrong yet"
        await enter(page, "two words")
        await page.until("document.getElementById('complaint').textContent.includes('This is no token')")
        await enter(page, "nonsense")
        await page.until("document.getElementById('complaint')?.textContent.includes('does not know this token')")
        await enter(page, ann)
        await page.until("document.querySelector('.facts')?.textContent.includes('2nodes')")
        assert await page.run("document.getElementById('connection').textContent") == "connected"
        assert [each for each in page.requested if ann in each] == [], "in no address"
        kept = "Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, history.state, location.href"
        assert ann not in await page.run(f"JSON.stringify([{kept}])")
        cast.delete("serviceaccounts", "ann", "default")
        await page.until("document.getElementById('token') && document.getElementById('connection').textContent === 'not admitted'")
        assert "node-0" not in await page.run("document.documentElement.innerText"), "what was seen goes with the right to see it"
        bob = cast.person("bob", COME_IN, here=READ)
        await enter(page, bob)
        await page.until("document.querySelector('.facts')?.textContent.includes('2nodes')")
        assert SECRET not in await page.run("document.documentElement.innerText")


async def test_an_operator_that_goes_away_is_told_and_the_page_goes_on_with_the_next(chromium: int) -> None:
    async with at_work() as (asked, cast), tab(chromium) as page:
        ann, port = cast.person("ann", COME_IN, READ), asked.served.port
        await opened(page, f"https://127.0.0.1:{port}/console/")
        await enter(page, ann)
        await page.until("document.querySelector('.facts')?.textContent.includes('2nodes')")
        await asked.running.end()
        await page.until("document.getElementById('connection').textContent === 'not connected, trying again'")
        assert "2\nnodes" in await page.run("document.querySelector('.facts').innerText"), "the last that was seen stays"
        async with desk(asked.stage, console=True, port=port) as again:
            await again.until_ready()
            await page.until("document.getElementById('connection').textContent === 'connected'")
            assert not await page.run("Boolean(document.getElementById('token'))"), "the token is still good"


async def test_behind_a_proxy_that_knows_the_person_no_token_is_asked_for(chromium: int) -> None:
    async with site() as here, tab(chromium) as page:
        token = here.judge.person("ann", "enter", "everywhere")
        await page.ask("Network.setExtraHTTPHeaders", headers={"Authorization": f"Bearer {token}"})  # as the proxy would
        await page.ask("Page.navigate", url=here.url("/console/"))
        await page.until("document.querySelector('.facts')?.textContent.includes('1node')")
        assert not await page.run("Boolean(document.getElementById('token'))")


async def test_refusals_with_hostile_names_are_text_and_a_replica_that_stands_by_is_told(chromium: int) -> None:
    turned = f"{HOSTILE}left\u202eright"
    async with site() as here, tab(chromium) as page:
        token = here.judge.person(turned, "everywhere")
        await opened(page, here.url("/console/"))
        assert await violations(page) == []
        await enter(page, token)
        await page.until("document.getElementById('complaint')?.textContent.includes('cannot get path')")
        assert await violations(page) == []
        said = await page.run("document.getElementById('complaint').textContent")
        assert HOSTILE in said
        assert "left\\u202eright" in said
        assert "placewright-console" in await page.run("document.getElementById('page').innerText")
        here.elsewhere = f"{HOSTILE} stands by; the active replica is placewright-1"
        await enter(page, here.judge.person("ann", "enter", "everywhere"))
        await page.until("document.getElementById('told').textContent.includes('the active replica is placewright-1')")
        assert await page.run("document.querySelector('#page h1').textContent") == "Not connected yet"
        assert await violations(page) == []
        assert await page.run("document.querySelectorAll('img, iframe, script:not([src])').length") == 0
        here.elsewhere = ""
        await page.until("document.querySelector('.facts') && document.getElementById('told').textContent === ''")
        for width in (400, 1400, 2560):
            await page.look(width=width)
            assert await page.run("document.documentElement.scrollWidth <= innerWidth"), width
        assert [each for each in page.complaints if "alert" in each or "Content Security" in each] == []


async def test_an_api_server_that_stops_is_told_with_its_cause_and_since_when_and_what_is_seen_is_dim(chromium: int) -> None:
    async with at_work() as (asked, cast), tab(chromium) as page:
        ann = cast.person("ann", COME_IN, READ)
        await opened(page, f"https://127.0.0.1:{asked.served.port}/console/")
        await enter(page, ann)
        await page.until("document.querySelector('.facts')?.textContent.includes('2nodes')")
        assert await page.run("document.getElementById('told').textContent") == ""
        asked.stage.sandbox.faults.refuse_connections(3600.0)
        await page.until("document.querySelector('main.old')")
        told = await page.run("document.getElementById('told').textContent")
        assert "UTC. The API server does not answer the operator." in told
        assert told.startswith("Nothing new since ")
        assert await page.run("document.getElementById('connection').matches('.away')")


async def test_a_placed_pod_without_a_record_is_shown_with_its_node_and_the_reason(chromium: int) -> None:
    async with at_work() as (asked, cast), tab(chromium) as page:
        cast.pod("by-hand", "default", nodeName="node-1")
        ann = cast.person("ann", COME_IN, READ)
        await opened(page, f"https://127.0.0.1:{asked.served.port}/console/")
        await enter(page, ann)
        await page.until("document.getElementById('node')?.textContent.includes('node-1')")
        await page.run("void (location.hash = '#/pod/default/by-hand')")
        await page.until("document.querySelector('#pod h1')")
        assert await page.run("document.querySelector('#pod .lines a').hash") == "#/cluster?node=node-1"
        told = await page.run("document.getElementById('pod').innerText")
        assert "No attempt is recorded: this replica did not lead yet, " in told
        assert "not kept here" not in told, "one reason is enough"
        await keep_picture(page, "unrecorded")
