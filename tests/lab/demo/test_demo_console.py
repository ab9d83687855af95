"""`placewright demo --console`: the real operator's console behind the one on this machine, from the first seconds to the end."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import signal
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
from rich.console import Console

from placewright.cli.main import main
from placewright_lab.bench.madeup import mixed_nodes, plain_pods
from placewright_lab.commands import demo as demos
from placewright_lab.commands.demo import Demo, interruptible, shown_pods
from placewright_lab.demo import feed
from placewright_lab.demo.run import Limits
from placewright_lab.demo.scenario import make_scenario
from placewright_lab.demo.showndemo import ShownDemo
from placewright_lab.readers.inputs import Inputs

SECONDS = 60.0


class Output(io.StringIO):
    """The demo's output, as a terminal or as a file."""

    async def until(self, pattern: str) -> str:
        async with asyncio.timeout(SECONDS):
            while (found := re.search(pattern, self.getvalue())) is None:  # noqa: ASYNC110 - StringIO has no event to wait for
                await asyncio.sleep(0.05)
        return found.group()


def shown(output: Output, *, terminal: bool = False) -> Demo:
    scenario = make_scenario(Inputs(nodes=mixed_nodes(3), pods=plain_pods(30)))
    console = Console(file=output, width=200, force_terminal=terminal)
    return Demo(scenario, console, Limits(rate=8, run_seconds=40, quiet_seconds=0.3), shown=ShownDemo())


async def states(url: str, seen: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Yield the state after each line, like a browser gets it, until one is as wanted."""
    site, _, secret = url.partition("/#secret=")
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(SECONDS), aiohttp.ClientSession(read_bufsize=2**20) as http:
        async with http.post(f"{site}/api/session", json={"secret": secret}, headers={"Origin": site}) as answer:
            assert answer.status == 200
            http.headers["Authorization"] = f"Bearer {await answer.text()}"
        while True:
            async with http.get(f"{site}/api/feed") as answer:
                while answer.status == 200 and (line := await answer.content.readline()):
                    message = json.loads(line or "{}")
                    if "state" in message:
                        state = message["state"]
                    for section, rows in message.get("delta", {}).get("put", {}).items():
                        state.setdefault(section, {}).update(rows)
                    if "version" in message:
                        found.append(json.loads(json.dumps(state)))
                        if seen(state):
                            return found
            await asyncio.sleep(0.1)


async def test_it_shows_the_operator_s_own_console_and_ends_by_itself_without_a_terminal() -> None:
    output = Output()
    running = asyncio.ensure_future(shown(output).run())
    url = await output.until(r"http://127\.0\.0\.1:\d+/#secret=\S+")
    found = await states(url, lambda state: len(state["decisions"]) >= 12)
    about = found[-1]["about"]
    assert "time" in about["can"]
    assert about.get("kind") != "cluster", "it is the operator's, and not what this machine made of the API server"
    assert len({len(state["decisions"]) for state in found}) > 2, "pods are seen as they come"
    assert await running == 0
    assert "30 pods on 3 nodes: 30 placed" in output.getvalue()


async def test_on_a_terminal_pods_come_and_go_and_the_profile_changes_until_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "CHANGE_SECONDS", 0.2)
    monkeypatch.setattr(demos, "LOOKING_SECONDS", 0.0)
    output = Output()
    running = asyncio.ensure_future(interruptible(shown(output, terminal=True)))
    url = await output.until(r"http://127\.0\.0\.1:\d+/#secret=[\w-]+")
    found = await states(url, lambda state: any("-later-" in row[1] for row in state["decisions"].values()))
    assert found
    await output.until("profile default is changed: NodeResourcesFit prefers LeastAllocated")
    await output.until("profile default is changed: NodeResourcesFit prefers MostAllocated")
    os.kill(os.getpid(), signal.SIGINT)
    assert await running == 0


def test_open_needs_the_console(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--open"]) == 2
    assert "--open: found without --console" in capsys.readouterr().err


def test_the_pods_that_are_shown_fill_most_of_the_nodes_and_a_few_are_too_large() -> None:
    cpus = [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in shown_pods(0)]
    assert 5 <= cpus.count("120") <= 20
