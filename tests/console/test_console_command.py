"""`placewright console` for a live cluster, as a process: what it prints, what it refuses, and how it ends."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import aiohttp
import pytest

from handlers.stage import DEADLINE, new_stage
from placewright.cli.main import main


async def test_it_prints_its_address_and_why_it_asks_no_operator_and_ends_in_order(tmp_path: Path) -> None:
    async with new_stage() as stage:
        stage.profile().nodes(2)
        command = (sys.executable, "-m", "placewright.cli.main", "console", "--kubeconfig", str(stage.sandbox.kubeconfig))
        child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        assert child.stdout is not None and child.stderr is not None
        async with asyncio.timeout(DEADLINE):
            url = (await child.stdout.readline()).decode()
            said = await child.stderr.readline() + await child.stderr.readline()
            async with aiohttp.ClientSession() as http, http.get(url.partition("#")[0]) as answer:
                assert (answer.status, "Placewright console" in await answer.text()) == (200, True)
            child.send_signal(signal.SIGINT)
            out, more = await child.communicate()
        assert (child.returncode, out) == (0, b"")
        assert b"the URL works once" in said
        assert b"there is no Lease placewright in namespace placewright-system" in said or b"there is no kubectl" in said
        token = stage.sandbox.credentials.token.encode()
        assert token not in url.encode() + said + more
        assert b"Traceback" not in said + more


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("FILE", "--context", "a"), "--context: found beside FILE"),
        (("FILE", "--server", "https://127.0.0.1:1"), "--server: found beside FILE"),
        (("FILE", "--allow-changes"), "--allow-changes: found beside FILE"),
        (("--speed", "60"), "--speed: found 60; allowed with the FILE of a recording"),
        (("--server", "http://127.0.0.1:1"), "--server: found 'http://127.0.0.1:1'; allowed an https URL"),
        (("--kubeconfig", "/nonexistent"), "kubeconfig /nonexistent: no such file"),
    ],
)
def test_options_that_do_not_go_together_are_refused_in_a_line(
    words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["console", *words]) == 2
    said = capsys.readouterr().err
    assert told in said
    assert said.count("\n") == 1
