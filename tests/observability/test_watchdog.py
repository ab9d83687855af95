"""An event loop that hangs on purpose, in a process of its own: what is said of it, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import textwrap
import time
import traceback
from collections.abc import Callable
from types import FrameType

import pytest

from placewright.observability import watchdog as module
from placewright.observability.watchdog import LoopWatchdog, Patience

#: No test here waits longer, seconds.
DEADLINE = 20.0
#: Patience is measured in beats, so short beats make for short waits.
BEAT = 0.1
PROGRAM = f"""
import asyncio, logging, sys, time
from placewright.observability import watchdog as module
from placewright.observability.watchdog import LoopWatchdog, Patience

module.BEAT_SECONDS = {BEAT}
logging.basicConfig(stream=sys.stderr, format="%(levelname)s %(message)s")


def a_plugin_that_hangs(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


async def main():
    with LoopWatchdog(Patience(warn=WARN, end=END)) as watchdog:
        await asyncio.sleep(0)
        BODY
        print("reached the end", watchdog.failing() or "in health")

asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def short_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_SECONDS", BEAT)


def run(body: str, *, warn: float = 0.5, end: float = 60.0) -> subprocess.CompletedProcess[str]:
    text = textwrap.dedent(PROGRAM).replace("WARN", str(warn)).replace("END", str(end)).replace("BODY", body)
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=DEADLINE, check=False)


def test_a_loop_that_hangs_ends_the_process_with_the_place_where_it_hangs() -> None:
    ended = run("a_plugin_that_hangs(60)", warn=0.2, end=0.4)
    assert ended.returncode == 1
    assert "CRITICAL the event loop has not turned for" in ended.stderr
    assert "the process ends, to be started again" in ended.stderr
    assert "in a_plugin_that_hangs" in ended.stderr
    assert "reached the end" not in ended.stdout


def test_a_loop_that_was_slow_is_told_of_once_and_goes_on() -> None:
    ended = run("a_plugin_that_hangs(1.2)\n        await asyncio.sleep(0.5)")
    assert (ended.returncode, ended.stdout) == (0, "reached the end in health\n")
    assert ended.stderr.count("ERROR the event loop has not turned for") == 1
    assert "in a_plugin_that_hangs" in ended.stderr
    assert ended.stderr.count("WARNING the event loop turns again") == 1


def test_a_loop_that_turns_is_not_spoken_of() -> None:
    ended = run("await asyncio.sleep(1)", warn=0.8)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "reached the end in health\n", "")


def test_a_log_that_hangs_does_not_keep_a_process_that_hangs() -> None:
    """Standard error is a pipe that nobody reads: the loop hangs in it, and so would whoever wants to tell."""
    body = "logging.error('x' * 1_000_000)"
    text = textwrap.dedent(PROGRAM).replace("WARN", "0.2").replace("END", "0.4").replace("BODY", body)
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.wait(DEADLINE) == 1


def test_a_process_that_was_stopped_and_goes_on_is_not_taken_for_one_that_hangs() -> None:
    body = "print('stop me', flush=True)\n        await asyncio.sleep(0.8)"
    text = textwrap.dedent(PROGRAM).replace("WARN", "0.7").replace("END", "0.75").replace("BODY", body)
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stop me\n"
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(1.5)  # what is tested is that time passes
        os.kill(process.pid, signal.SIGCONT)
        out, err = process.communicate(timeout=DEADLINE)
    assert (process.returncode, out, err) == (0, "reached the end in health\n", "")


# --- in this process -----------------------------------------------------------------------------------------------------------------


def hang_until(condition: Callable[[], object]) -> None:
    """Keep the loop from turning."""
    until = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


async def test_while_it_hangs_the_check_says_so_and_afterwards_it_does_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with LoopWatchdog(Patience(warn=0.2, end=DEADLINE * 2)) as watchdog:
        assert watchdog.failing() == ""
        hang_until(watchdog.failing)
        assert watchdog.failing().startswith("the event loop has not turned for ")
        async with asyncio.timeout(DEADLINE):
            while watchdog.failing():  # noqa: ASYNC110 - a thread tells nobody
                await asyncio.sleep(BEAT / 5)
    assert "test_while_it_hangs" in caplog.text, "the stack names this test"


async def test_time_in_which_the_watchdog_itself_did_not_run_is_no_hanging() -> None:
    looks = 0

    def an_hour_later() -> float:
        nonlocal looks
        looks += 1
        return looks * 3600.0

    ends: list[bool] = []
    with LoopWatchdog(Patience(warn=5.0, end=60.0), lambda: ends.append(True), an_hour_later) as watchdog:
        hang_until(lambda: looks == 4)
        assert watchdog.failing() == ""
        assert ends == []


async def test_the_end_is_called_once_and_nothing_watches_any_more() -> None:
    ends: list[float] = []
    with LoopWatchdog(Patience(warn=0.2, end=0.4), lambda: ends.append(time.monotonic())) as watchdog:
        hang_until(lambda: ends)
        hang_until(lambda: watchdog.failing() == "the watchdog's thread has ended")
    assert len(ends) == 1


async def test_a_closed_watchdog_has_no_thread_and_leaves_the_loop_alone() -> None:
    with LoopWatchdog() as watchdog:
        assert watchdog._thread.is_alive()
    assert not watchdog._thread.is_alive()
    assert watchdog._beat_timer is not None
    assert watchdog._beat_timer.cancelled()


async def test_a_log_that_raises_is_no_end_of_watching(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no log")

    monkeypatch.setattr(module._log, "log", broken)
    ends: list[bool] = []
    with LoopWatchdog(Patience(warn=0.2, end=0.4), lambda: ends.append(True)):
        hang_until(lambda: ends)
    assert ends == [True]


async def test_word_is_left_before_the_end_with_the_place_where_it_hangs() -> None:
    heard: list[str] = []

    def leave_word(frame: FrameType | None, seconds: float) -> None:
        assert frame is not None
        heard.append("".join(traceback.format_stack(frame)))
        assert seconds > 0.4
        raise RuntimeError("whatever happens here, the process ends")

    with LoopWatchdog(Patience(warn=0.2, end=0.4), lambda: heard.append("the end"), leave_word=leave_word):
        hang_until(lambda: len(heard) == 2)
    assert "in hang_until" in heard[0]
    assert heard[1] == "the end"
