"""What-if on a live cluster: the copy follows it, and a change that is applied is what the next question begins with."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from console.livestage import Browser, live_console
from handlers.stage import Stage, new_stage
from placewright_lab.whatif import whatif

Line = dict[str, Any]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with new_stage() as made:
        yield made


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(whatif, "_FRESH_SECONDS", 0.0)


async def post(browser: Browser, path: str, body: Line) -> tuple[int, str]:
    headers = {"Origin": browser._site, "Content-Type": "application/json"}
    async with browser._http.post(f"{browser._site}/api/{path}", data=json.dumps(body), headers=headers) as answer:
        return answer.status, await answer.text()


async def ask(browser: Browser, changes: Line) -> dict[str, Line]:
    status, text = await post(browser, "whatif", {"profile": "default", "changes": changes})
    assert status == 200, text
    return {line["part"]: line for line in map(json.loads, text.splitlines())}


async def test_a_change_is_tried_on_the_live_cluster_and_applied_with_the_persons_rights(stage: Stage) -> None:
    stage.profile(plugins={"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}).node("a", cpu="1").pod("big", cpu="8")
    async with live_console(stage, allow_changes=True) as (browser, _):
        changes = {"plugins": None}
        assert (await ask(browser, changes))["waiting"]["goes"] == 1
        stage.node("b", cpu="16")
        await browser.until(lambda: "b" in browser.state["nodes"])
        told = await ask(browser, changes)
        assert (told["waiting"]["goes"], told["waiting"]["fits"]) == (0, [1, 1])
        _, form = await browser.ask("whatif")
        (profile,) = form["profiles"]
        assert (form["writes"], profile["generation"], profile["spec"]["plugins"]["multiPoint"]) == (
            True, 1, {"disabled": [{"name": "NodeResourcesFit"}]},
        )  # fmt: skip
        body = {"profile": "default", "uid": profile["uid"], "generation": 1, "changes": changes}
        status, said = await post(browser, "apply", body)
        assert (status, json.loads(said)["ok"]) == (200, True)
        assert "plugins" not in stage.show_profile()["spec"]
        await browser.until(lambda: stage.show_profile()["metadata"]["generation"] == 2)
        while "plugins" in (form := (await browser.ask("whatif"))[1])["profiles"][0]["spec"]:
            pass  # the watch brings it
        assert form["profiles"][0]["generation"] == 2
        assert (await ask(browser, {}))["patch"]["patch"] == {}
        status, said = await post(browser, "apply", body)
        assert (status, json.loads(said)["ok"]) == (409, False)


async def test_a_console_that_may_not_change_anything_does_not(stage: Stage) -> None:
    stage.profile().node("a")
    async with live_console(stage) as (browser, _):
        await browser.until(lambda: browser.state.get("about"))
        uid = stage.show_profile()["metadata"]["uid"]
        status, said = await post(browser, "apply", {"profile": "default", "uid": uid, "generation": 1, "changes": {"paused": True}})
        assert (status, said.startswith("This console only reads")) == (403, True)
        assert stage.show_profile()["spec"]["paused"] is False
