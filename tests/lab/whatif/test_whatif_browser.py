"""The what-if page in a real browser: its form gives back what it got, and a change is tried, taken along, and written where it may be."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from browser import Page, tab
from console.makers import HOSTILE, a_node, a_pod, file_of
from console.visits import console, violations
from handlers.stage import Stage, new_stage
from placewright.api.profile import KIND
from placewright.http.listener import bind
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.profileapi import Object, read_profile
from placewright.profiles.schema import openapi_schema
from placewright_console.local.localserver import LOOPBACK, ConsoleServer
from placewright_lab.consolefiles.additions import open_file
from placewright_lab.consolefiles.openedfile import FileSource
from placewright_lab.whatif.whatifpages import WhatIfPages
from profiles.test_all_fields import drawn
from programs import needs

pytestmark = needs("chromium")
SAMPLES = Path(__file__).parents[3] / "manifests" / "samples"
SPEC = openapi_schema()["properties"]["spec"]["properties"]
ANSWERED = "document.getElementById('progress')?.textContent.startsWith('As of')"
#: What the form reads back of each spec, after `change` did something with it, and the patch that this is.
READ_BACK = """(async (text, change) => {
    const specs = JSON.parse(text);
    const { schemaField, mergePatch } = await import('./schemaform.js');
    const { request } = await import('./request.js');
    const { schema, definitions } = await (await request('api/whatif')).json();
    return specs.map((spec) => {
        const at = { name: 'spec', path: 'spec', required: true, changed: () => {}, definitions };
        const field = schemaField({ ...schema, description: undefined }, structuredClone(spec), at);
        change(field.node);
        return [field.read(), mergePatch(spec, field.read())];
    });
})"""


def specs() -> list[Object]:
    """Return the spec of every sample, and one with every field of the schema."""
    found = [each for path in sorted(SAMPLES.rglob("*.yaml")) for each in yaml.safe_load_all(path.read_text()) if each]
    samples = [each["spec"] for each in found if each["kind"] == KIND]
    assert len(samples) >= 8
    free = {"name": "NodeResourcesFit", "args": {"nested": {"list": [1, None, {"__proto__": "x"}]}, "text": HOSTILE, "none": None}}
    each_field = {name: drawn(schema, name) for name, schema in SPEC.items() if name != "pluginConfig"}
    return [*samples, {**each_field, "pluginConfig": [free], "ofANewerDefinition": {"a": [1]}}]


def as_text(value: object) -> str:
    """A literal of JavaScript with the value as JSON; a literal of the value itself would take `__proto__` for no name."""
    return json.dumps(json.dumps(value))


def a_profile(name: str, **spec: Any) -> Object:
    metadata, content = {"name": name, "uid": "u", "generation": 1}, {"schedulerName": "default-scheduler"} | spec
    return {"apiVersion": "placewright.dev/v1alpha1", "kind": KIND, "metadata": metadata, "spec": content}


def town(path: Path, **spec: Any) -> Path:
    """Nodes that are cordoned, so that pods wait which would fit if that did not count."""
    waits = [a_pod(f"web-{number}") for number in range(3)] + [a_pod(HOSTILE, cpu=99_000)]
    return file_of(path, [*(a_node(f"n{number}", cordoned=True) for number in range(3)), *waits, a_profile("default", **spec)])


async def went(page: Page) -> None:
    await page.run("void (location.hash = '#/whatif')")
    await page.until(ANSWERED)


async def text(page: Page, selector: str) -> str:
    return str(await page.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))


async def typed(page: Page, selector: str, value: str, event: str = "input") -> None:
    write = "(([at, value, event]) => { const it = document.querySelector(at); it.value = value; it.dispatchEvent(new Event(event)); })"
    await page.run(f"{write}({json.dumps([selector, value, event])})")


async def test_every_field_of_a_profile_survives_the_form(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, town(tmp_path / "s")) as (page, _):
        for spec, (back, patch) in zip(specs(), await page.run(f"{READ_BACK}({as_text(specs())}, () => {{}})"), strict=True):
            assert back == spec
            assert patch == {}
        change = "(node) => node.querySelector('[data-path=\"spec.backoff.maxSeconds\"] input')?.setAttribute('value', '99')"
        (_, patch), *_ = await page.run(f"{READ_BACK}({as_text([{'backoff': {'maxSeconds': 7}}])}, {change})")
        assert patch == {"backoff": {"maxSeconds": 99}}


async def test_a_change_is_tried_by_keyboard_and_told_and_undone(chromium: int, tmp_path: Path) -> None:
    async with console(chromium, town(tmp_path / "s", weights={"NodeResourcesFit": 3})) as (page, _):
        await went(page)
        assert await text(page, "#patch p") == "Nothing is changed yet: move a weight, or change a field."
        await page.run("document.getElementById('weight-NodeResourcesFit').focus()")
        for _ in range(2):
            await page.press("ArrowRight")
        await page.until("document.getElementById('kubectl')")
        assert await page.run("document.querySelector('#weight-NodeResourcesFit + input').value") == "5"
        await page.until("document.getElementById('yaml').innerText.includes('5')")
        assert await text(page, "#yaml") == "spec:\n  weights:\n    NodeResourcesFit: 5\n"
        line = """kubectl patch schedulingprofile default --type=merge -p '{"spec": {"weights": {"NodeResourcesFit": 5}}}'"""
        assert (await text(page, "#kubectl")).strip() == line
        assert "only reads" in await text(page, "#read-only")
        assert await page.run("document.querySelectorAll('#apply-it, #shadow-it').length") == 0
        await page.run("document.querySelector('.slider.moved .back').click()")
        await page.until("document.querySelector('#patch p')?.innerText.startsWith('Nothing is changed')")
        change = {"multiPoint": {"disabled": [{"name": "NodeUnschedulable"}]}}
        await page.run("document.querySelector('[aria-label=\"Set Plugins\"]').click()")
        await page.run("document.querySelector('[aria-label=\"Set Multi point\"]').click()")
        await page.run("document.querySelector('[aria-label=\"Set Disabled\"]').click()")
        await page.run("[...document.querySelectorAll('button')].find((each) => each.textContent === 'Add to disabled').click()")
        await typed(page, "[data-path='spec.plugins.multiPoint.disabled[0].name'] input", "NodeUnschedulable")
        await page.until("document.getElementById('whatif-waiting').innerText.includes('3 pods would fit')")
        assert yaml.safe_load(await text(page, "#yaml")) == {"spec": {"plugins": change}}
        await page.until("document.getElementById('summary').textContent.startsWith('3 waiting pods would fit that do not now')")
        await page.run("document.querySelector('#whatif-waiting summary').click()")
        assert "shop/web-0" in await text(page, "#whatif-waiting")
        await page.run("(location.hash = '#/queue', 0)")
        await page.until("document.getElementById('reasons')")
        await went(page)
        await page.until("document.getElementById('yaml')")  # what was changed is kept while the tab is open
        await page.run("document.getElementById('whatif-reset').click()")
        await page.until("document.querySelector('#patch p')?.innerText.startsWith('Nothing is changed')")
        assert page.complaints == []


async def test_what_the_operator_would_refuse_is_told_at_its_field(chromium: int, tmp_path: Path) -> None:
    fit = {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}
    async with console(chromium, town(tmp_path / "s", pluginConfig=[fit])) as (page, _):
        await went(page)
        args = "[data-path='spec.pluginConfig[0].args']"
        await typed(page, f"{args} textarea", '{"scoringStrategy": {"type": "Most"}}')
        await page.until("document.getElementById('problems').innerText")
        told = await text(page, "#problems")
        assert 'spec.pluginConfig[0].args.scoringStrategy.type: found "Most"; allowed LeastAllocated, MostAllocated' in told
        assert await page.run(f"document.querySelector(\"{args}\").matches('.has-problem')")
        assert await page.run("document.getElementById('whatif-waiting').hidden && !document.getElementById('yaml')")
        await typed(page, f"{args} textarea", '{"scoringStrategy"')
        await page.until("document.getElementById('problems').innerText.includes('not JSON')")
        assert await page.run(f"document.querySelector(\"{args} textarea\").getAttribute('aria-invalid')") == "true"
        await typed(page, f"{args} textarea", '{"scoringStrategy": {"type": "LeastAllocated"}}')
        await page.until(f"document.getElementById('yaml') && {ANSWERED}")
        assert await text(page, "#problems") == ""
        await typed(page, "[data-path='spec.preset'] select", "1", "change")
        await page.until("document.getElementById('weight-NodeResourcesBalancedAllocation').value === '0'")  # the preset's own weights


async def test_a_server_that_offers_no_what_if_shows_the_command(chromium: int, tmp_path: Path) -> None:
    server = ConsoleServer(open_file(town(tmp_path / "s"), 2**24), bind(LOOPBACK, 0, "--port"))
    async with server.serving(), tab(chromium) as page:
        await page.ask("Page.navigate", url=server.url)
        await page.until("document.querySelector('.fact')")
        await page.run("void (location.hash = '#/whatif')")
        await page.until("document.querySelector('#page pre')?.innerText.trim() === 'placewright console'")


class Writer(FileSource):
    """A file's cluster, of which the profile is in an API server."""

    client: ApiClient

    @property
    def writer(self) -> ApiClient:
        return self.client


@asynccontextmanager
async def writing(chromium: int, stage: Stage, folder: Path) -> AsyncIterator[tuple[Page, ConsoleServer]]:
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        live = await read_profile(client, "default")
        source = open_file(file_of(folder / "s", [a_node("a"), a_pod("web", schedulerName="placewright"), live]), 2**24)
        source.__class__ = Writer
        assert isinstance(source, Writer)
        source.client = client
        what_if = WhatIfPages(source, source.world._registry)
        source.can += what_if.can
        server = ConsoleServer(source, bind(LOOPBACK, 0, "--port"), what_if)
        async with server.serving(), tab(chromium) as page:
            await page.ask("Page.navigate", url=server.url)
            await page.until("document.querySelector('.fact')")
            yield page, server


async def test_a_change_is_confirmed_with_its_difference_and_written(chromium: int, tmp_path: Path) -> None:
    async with new_stage() as stage:
        stage.profile(weights={"NodeResourcesFit": 3})
        async with writing(chromium, stage, tmp_path) as (page, _):
            await went(page)
            await typed(page, "#weight-NodeResourcesFit", "8")
            await page.until("document.getElementById('yaml')?.innerText.includes('8')")
            await page.run("document.getElementById('shadow-it').click()")
            await page.until("document.querySelector('dialog[open]')")
            await page.press("Escape")
            await page.until("!document.querySelector('dialog')")
            await page.run("document.getElementById('apply-it').click()")
            assert "weights.NodeResourcesFit\t3\t8" in await text(page, "dialog[open]")
            assert await violations(page) == []
            assert stage.show_profile()["spec"]["weights"] == {"NodeResourcesFit": 3}, "nothing is written before it is confirmed"
            await page.run("document.getElementById('confirm').click()")
            await page.until("document.getElementById('applied').innerText.includes('as generation 2')")
            assert stage.show_profile()["spec"]["weights"] == {"NodeResourcesFit": 8}
            await page.run("document.getElementById('apply-it').click()")
            await page.run("document.getElementById('confirm').click()")
            await page.until("document.getElementById('applied').innerText.includes('(generation 2 now, 1 on this page)')")
            assert stage.show_profile()["metadata"]["generation"] == 2
            assert [each for each in page.complaints if "409" not in each] == []


async def test_it_opens_on_the_profile_of_most_pods_and_says_in_a_line_that_nothing_moves(chromium: int, tmp_path: Path) -> None:
    """A slider's scale is that of all weights and stays, so the place of its knob says how large the weight is."""
    objects = [a_node("n0"), a_pod("web"), a_pod("web-1"), a_pod("other", schedulerName="a-scheduler")]
    path = file_of(tmp_path / "s", [*objects, a_profile("a", schedulerName="a-scheduler"), a_profile("default")])
    async with console(chromium, path) as (page, _):
        await went(page)
        assert await page.run("document.querySelector('#whatif-profile').selectedOptions[0].textContent") == "default"
        await page.until("document.getElementById('still')")
        assert await text(page, ".whatif-facts .facts") == "No effect on 2 waiting pods and 0 placements."
        most = "[...document.querySelectorAll('.slider input[type=range]')].map((each) => each.max)"
        before = await page.run(most)
        assert len(set(before)) == 1
        await typed(page, ".slider input[type=number]", "900")
        assert await page.run(most) == before
