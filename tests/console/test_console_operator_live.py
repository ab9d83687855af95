"""The real operator's console behind the console on this machine: shown, refused, ended and back, with a token that stays here."""

from __future__ import annotations

import datetime as dt
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handlers.stage import Stage, new_stage
from placewright.http.certificates import self_signed
from placewright_console.local import clustersource, operatorlink
from serving.desk import LOOPBACK, desk

from .livestage import live_console
from .test_console_cluster import reader


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with new_stage() as made:
        yield made.profile().nodes(2)


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operatorlink, "RETRY_SECONDS", 0.05)
    monkeypatch.setattr(operatorlink, "LONGEST_RETRY_SECONDS", 0.2)
    monkeypatch.setattr(operatorlink, "REFUSED_SECONDS", 0.2)


async def test_the_operator_s_console_is_handed_through_and_found_again_after_its_end(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clustersource, "AWAY_SECONDS", 0.5)
    certificate = tmp_path / "tls.crt", tmp_path / "tls.key"
    for path, text in zip(certificate, self_signed([LOOPBACK], dt.datetime.now(dt.UTC)), strict=True):
        path.write_bytes(text)
    async with desk(stage, console=True, certificate=certificate) as asked:
        await asked.until_ready()
        port = asked.served.port
        async with live_console(stage, server=f"https://127.0.0.1:{port}") as (browser, source):
            stage.pod("web").pod("large", cpu="64")
            await browser.until(lambda: browser.place("large") == "unschedulable" and browser.state["decisions"])
            assert browser.state["about"].get("kind") != "cluster", "it is the operator's own state"
            status, page = await browser.ask("pod?pod=default/large")
            assert (status, page["verdict"]) == (200, "now: 0 of 2 nodes can hold it")
            assert (await browser.ask("node?name=node-0"))[0] == 200
            assert (await browser.ask("verdicts?pod=default/large"))[0] == 200
            assert (await browser.ask("group?group=default/none"))[0] == 404
            status, form = await browser.ask("whatif")
            assert status == 200, "the page of what-if questions reads the objects itself, beside the operator's console"
            assert "default" in str(form)
            token = source._client.access.authorization.removeprefix("Bearer ")
            await asked.running.end()
            await browser.until(lambda: "from the API server's objects" in browser.notes)
            await browser.until(lambda: browser.place("large") == "unschedulable")
            async with desk(stage, console=True, certificate=certificate, port=port) as again:
                await again.until_ready()
                await browser.until(lambda: browser.state["about"].get("kind") != "cluster")
        assert len(token) > 20
        assert token.encode() not in browser.received
        printed = capfd.readouterr()
        assert token not in printed.out + printed.err


@pytest.mark.parametrize(("console", "why"), [(False, "switched off (404)"), (True, "not open to this user (403)")])
async def test_an_operator_without_a_console_or_a_user_without_the_right_leave_the_api_server_s_objects(
    console: bool, why: str, stage: Stage, tmp_path: Path
) -> None:
    guest: Any = reader(stage, tmp_path, "nodes", "pods")
    async with desk(stage, console=console) as asked:
        await asked.until_ready()
        async with live_console(stage, str(guest), server=f"https://127.0.0.1:{asked.served.port}") as (browser, _):
            await browser.until(lambda: browser.state.get("nodes"))
            assert why in browser.notes
            assert browser.state["nodes"].keys() == {"node-0", "node-1"}
