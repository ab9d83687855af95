"""A thread writes: nobody who logs waits for whoever reads, nothing goes missing uncounted, and the end writes the rest."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import select
import subprocess
import sys
import textwrap
import time
import warnings

import aiohttp
import pytest

from observability.logging_makers import Pipe, record
from placewright.kube.errors import ApiError, Unreachable
from placewright.observability import logs
from placewright.observability.logformat import TextFormatter
from placewright.observability.logs import BackgroundHandler, LogFormat, LogOptions, Repeats, logging_to_stderr

#: A pipe holds 64 KiB; this is more, so that a writer without a reader stands still.
MORE_THAN_A_PIPE_HOLDS = 20_000
PLAIN = TextFormatter()


@pytest.fixture
def pipe() -> Pipe:
    return Pipe()


def handler_to(pipe: Pipe, most: int) -> BackgroundHandler:
    return BackgroundHandler(pipe.writing, PLAIN, Repeats(), most)


def test_every_logger_of_the_process_goes_the_same_way(pipe: Pipe) -> None:
    with logging_to_stderr(LogOptions(LogFormat.JSON), pipe.writing):
        for name in ("placewright.any", "kopf.objects", "aiohttp.server", "asyncio"):
            logging.getLogger(name).warning("from %s", name)
        warnings.warn("old ways", DeprecationWarning, stacklevel=1)
    read = [json.loads(line) for line in pipe.lines()]
    assert [each["logger"] for each in read] == ["placewright.any", "kopf.objects", "aiohttp.server", "asyncio", "py.warnings"]


def test_the_level_is_as_asked_and_as_before_afterwards(pipe: Pipe) -> None:
    before = logging.getLogger().level
    with logging_to_stderr(LogOptions(level=logging.DEBUG), pipe.writing):
        logging.getLogger("placewright.any").debug("why")
    with logging_to_stderr(LogOptions(), pipe.writing):
        logging.getLogger("placewright.any").debug("not told")
    assert [line.split(": ")[1] for line in pipe.lines()] == ["why"]
    assert logging.getLogger().level == before


class Refusal(Exception):
    """Stands for Kopf's error of a server that answers."""

    def __init__(self, status: int) -> None:
        super().__init__("said so")
        self.status = status


def fail_by(problem: Exception) -> None:
    raise problem


ATTEMPTS = [
    (aiohttp.ServerDisconnectedError(), False), (TimeoutError(), False), (Refusal(503), False),
    (Refusal(403), True), (Refusal(500), True), (RuntimeError("Session is closed"), True),
]  # fmt: skip


@pytest.mark.parametrize(("problem", "written"), ATTEMPTS, ids=repr)
def test_attempts_of_kopf_at_a_server_that_does_not_answer_are_for_debugging(pipe: Pipe, problem: Exception, written: bool) -> None:
    kopf = logging.getLogger("kopf.clients")
    for level in (logging.INFO, logging.DEBUG):
        with logging_to_stderr(LogOptions(level=level), pipe.writing):
            try:
                fail_by(problem)
            except Exception:  # noqa: BLE001 - of any kind
                kopf.error("attempt at level %d", level)
    told = [line.partition(" ")[2] for line in pipe.lines()]
    debugging = f"{'ERROR' if written else 'DEBUG'} kopf.clients: attempt at level {logging.DEBUG}"
    assert told == [f"ERROR kopf.clients: attempt at level {logging.INFO}"] * written + [debugging]


def test_an_error_that_ends_work_of_kopf_is_written_whatever_it_is(pipe: Pipe) -> None:
    with logging_to_stderr(LogOptions(), pipe.writing):
        try:
            raise aiohttp.ServerDisconnectedError
        except aiohttp.ClientError:
            logging.getLogger("kopf.clients").exception("gives up")
    assert "ERROR kopf.clients: gives up" in pipe.lines()[0]


def test_unanswered_requests_without_consequence_are_for_debugging(pipe: Pipe) -> None:
    log = logging.getLogger("placewright.any")
    with logging_to_stderr(LogOptions(), pipe.writing):
        log.info("put off: %s", Unreachable("no answer"))
        log.info("put off: %s", ApiError(403, "Forbidden", "no right"))
        log.warning("lost: %s", Unreachable("no answer"))
    assert [line.partition("any: ")[2] for line in pipe.lines()] == ["put off: 403 Forbidden: no right", "lost: no answer"]


def test_lines_stay_in_order(pipe: Pipe) -> None:
    handler = handler_to(pipe, most=MORE_THAN_A_PIPE_HOLDS)
    pipe.read_on()
    for number in range(5000):
        handler.handle(record("%d", number))
    handler.close()
    assert [int(line.rpartition(": ")[2]) for line in pipe.lines()] == list(range(5000))


def test_lines_that_follow_one_that_was_written_gather_until_somebody_waits_for_them(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that is woken for each line takes the interpreter from the event loop each time."""
    monkeypatch.setattr(logs, "_GATHER_SECONDS", 60.0)
    handler = handler_to(pipe, most=100)
    handler.handle(record("first"))
    assert b"first" in os.read(pipe.reading, 4096)
    for number in range(10):
        handler.handle(record("line %d", number))
    assert select.select([pipe.reading], [], [], 0.1)[0] == []
    handler.flush()
    assert os.read(pipe.reading, 4096).count(b"\n") == 10
    handler.handle(record("last"))
    handler.close()
    assert len(pipe.lines()) == 1


def test_a_reader_that_reads_nothing_holds_up_nobody_and_what_is_dropped_is_told(pipe: Pipe) -> None:
    handler = handler_to(pipe, most=100)
    began = time.monotonic()
    for number in range(MORE_THAN_A_PIPE_HOLDS):
        handler.handle(record("line %d %s", number, "x" * 50, about=None))
    assert time.monotonic() - began < 30, "a guard against waiting for ever: nobody reads"
    pipe.read_on()
    handler.close()
    lines = pipe.lines()
    dropped = [int(found[1]) for line in lines if (found := re.search(r"(\d+) log lines were dropped", line))]
    assert dropped
    assert sum("line " in line and "x" * 50 in line for line in lines) + sum(dropped) == MORE_THAN_A_PIPE_HOLDS


def test_of_dropped_lines_those_they_stood_for_are_counted_too(pipe: Pipe) -> None:
    handler = handler_to(pipe, most=0)
    handler.handle(record("away", left_out=41, about=None))
    handler.close()
    assert "42 log lines were dropped" in pipe.lines()[0]


def test_the_end_does_not_wait_for_a_reader_that_reads_nothing(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "END_SECONDS", 0.2)
    handler = handler_to(pipe, most=MORE_THAN_A_PIPE_HOLDS)
    for number in range(5000):
        handler.handle(record("line %d %s", number, "x" * 50))
    began = time.monotonic()
    handler.close()
    assert time.monotonic() - began < 20, "two seconds are promised"
    pipe.read_on()  # so that the thread ends
    handler._writer.thread.join(20)
    assert not handler._writer.thread.is_alive()
    assert len(pipe.lines()) == 5000


def test_a_reader_that_is_gone_harms_nobody(pipe: Pipe) -> None:
    handler = handler_to(pipe, most=100)
    os.close(pipe.reading)
    for number in range(50):
        handler.handle(record("line %d", number))
    handler.flush()
    assert handler._writer.thread.is_alive()
    handler.close()
    assert handler._writer.unwritten == 50


def test_a_pipe_that_somebody_made_non_blocking_gets_everything(pipe: Pipe) -> None:
    os.set_blocking(pipe.writing, False)
    handler = handler_to(pipe, most=MORE_THAN_A_PIPE_HOLDS)
    for number in range(5000):
        handler.handle(record("line %d %s", number, "x" * 50))
    pipe.read_on()
    handler.close()
    assert len(pipe.lines()) == 5000


def test_what_is_logged_is_written_as_it_was_even_if_it_changes_at_once(pipe: Pipe) -> None:
    handler = handler_to(pipe, most=100)
    pods = ["web"]
    handler.handle(record("pods: %s", pods))
    pods.append("other")
    handler.close()
    assert pipe.lines()[0].endswith("pods: ['web']")


def test_what_was_left_out_is_told_at_the_end(pipe: Pipe) -> None:
    handler = handler_to(pipe, most=100)
    for _ in range(10):
        handler.handle(record("away"))
    handler.close()
    assert [line.rpartition(": ")[2] for line in pipe.lines()] == ["away", "away", "away", "away left_out=7"]


def test_a_formatter_that_breaks_costs_its_record_and_says_so(pipe: Pipe) -> None:
    class Breaking(TextFormatter):
        def format(self, record: logging.LogRecord) -> str:
            if record.msg == "odd":
                raise ZeroDivisionError
            return super().format(record)

    handler = BackgroundHandler(pipe.writing, Breaking(), Repeats())
    handler.handle(record("odd", name="somebody"))
    handler.handle(record("even"))
    handler.close()
    first, second = pipe.lines()
    assert first.endswith("a record of logger somebody cannot be written: ZeroDivisionError")
    assert second.endswith("even")


ENDS = {
    "by itself": ("", 0),
    "by an exception": ("raise RuntimeError('crash')", 1),
    "by sys.exit": ("sys.exit(3)", 3),
    "in a critical moment": ("log.critical('last words'); import os; os._exit(4)", 4),
}


@pytest.mark.parametrize("end", ENDS)
def test_however_a_process_ends_what_it_logged_is_written(end: str) -> None:
    lines, code = ENDS[end]
    program = textwrap.dedent("""\
        import logging, sys
        from placewright.observability.logs import logging_to_stderr
        log = logging.getLogger("placewright.any")
        with logging_to_stderr():
            for number in range(3000):
                log.info("line %d", number)
            {}
    """).format(lines or "pass")
    ended = subprocess.run([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert ended.returncode == code
    assert len(re.findall(r"INFO placewright\.any: line \d+$", ended.stderr, re.MULTILINE)) == 3000
    assert ("CRITICAL placewright.any: last words" in ended.stderr) == (code == 4)


def test_a_terminal_gets_colours_and_nobody_else_does(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    ours, terminal = pty.openpty()
    for target in (terminal, pipe.writing):
        with logging_to_stderr(descriptor=target):
            logging.getLogger("placewright.any").error("red")
    assert b"\x1b[31mERROR\x1b[0m" in os.read(ours, 1000)
    assert "\x1b" not in pipe.lines()[0]
    os.close(ours)
    os.close(terminal)
