"""A MemoryError ends the operator at once, wherever it is raised, and the lead is given back."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

import placewright
from placewright.engine.outofmemory import OutOfMemory, reported
from placewright.handlers.operator import EngineBroken
from placewright.http.listener import Listener, bind
from placewright.http.routes import Answer, Audience, Endpoint, PublicOnly, Question, Routes
from serving.desk import get, said

from .stage import DEADLINE, Running, Stage, operator

ROOT = Path(placewright.__file__).parent
#: Rooms of threads that must live to say why the process ends, of commands, which end anyway, and of the kit for tests.
APART = ("observability", "cli", "testing")
BROAD = {"Exception", "BaseException", "_ANYTHING", "_ANYTHING_AWAITED"}


# --- no handler keeps it ------------------------------------------------------------------------------------------------------------


def caught(handler: ast.ExceptHandler) -> set[str]:
    return {"BaseException"} if handler.type is None else {each.id for each in ast.walk(handler.type) if isinstance(each, ast.Name)}


def keeping(tree: ast.AST) -> Iterator[int]:
    """Lines of handlers that would keep a MemoryError."""
    for node in ast.walk(tree):
        passed = False
        for handler in node.handlers if isinstance(node, ast.Try | ast.TryStar) else ():
            passed |= "MemoryError" in caught(handler)
            last = handler.body[-1]
            if caught(handler) & BROAD and not passed and not (isinstance(last, ast.Raise) and last.exc is None):
                yield handler.lineno
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress") and BROAD & {ast.unparse(each) for each in node.args}:
            yield node.lineno


def test_no_handler_of_broad_exceptions_keeps_a_lack_of_memory() -> None:
    files = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in APART]
    assert len(files) > 300
    found = [f"{path.relative_to(ROOT)}:{line}" for path in files for line in keeping(ast.parse(path.read_text()))]
    assert found == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("try: f()\nexcept Exception: pass", [2]),
        ("try: f()\nexcept (ValueError, Exception): g()", [2]),
        ("try: f()\nexcept: g()", [2]),
        ("try: f()\nexcept Exception as problem: raise ValueError from problem", [2]),
        ("with contextlib.suppress(Exception): f()", [1]),
        ("try: f()\nexcept MemoryError: raise\nexcept Exception: pass", []),
        ("try: f()\nexcept BaseException:\n g()\n raise", []),
        ("try: f()\nexcept ValueError: pass", []),
    ],
)
def test_the_walk_sees_what_it_looks_for(text: str, lines: list[int]) -> None:
    assert list(keeping(ast.parse(text))) == lines


# --- the operator ends --------------------------------------------------------------------------------------------------------------


def without_memory(*_: Any, **__: Any) -> NoReturn:
    raise MemoryError


def in_a_reflector(running: Running, stage: Stage, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("placewright.kube.reflector.Reflector._tell", without_memory)
    stage.sandbox.writes.create(stage.sandbox.resource("", "v1", "namespaces"), "", {"metadata": {"name": "more"}})


def in_the_handler_of_pods(running: Running, stage: Stage, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(running.engine.reading.event_handlers, "unscheduled_pod", without_memory)
    stage.pods(1)


def in_the_handler_of_profiles(running: Running, stage: Stage, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(running.engine.deciding.profiles, "take", without_memory)
    stage.profile("another", schedulerName="another")


def in_the_cycle(running: Running, stage: Stage, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("placewright.scheduler.cycle.SchedulingCycle.place", without_memory)
    stage.pods(1)


def in_a_binding(running: Running, stage: Stage, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(running.engine.writing.binder, "bind", without_memory)
    stage.pods(1)


def in_a_callback(_running: Running, _stage: Stage, _patch: pytest.MonkeyPatch) -> None:
    asyncio.get_running_loop().call_soon(without_memory)


async def _task() -> None:
    without_memory()


def in_a_task_that_nobody_awaits(_running: Running, _stage: Stage, _patch: pytest.MonkeyPatch) -> None:
    asyncio.get_running_loop().create_task(_task())


PLACES: list[Callable[[Running, Stage, pytest.MonkeyPatch], None]] = [
    in_a_reflector,
    in_the_handler_of_pods,
    in_the_handler_of_profiles,
    in_the_cycle,
    in_a_binding,
    in_a_callback,
    in_a_task_that_nobody_awaits,
]


@pytest.mark.parametrize("place", PLACES, ids=[each.__name__ for each in PLACES])
async def test_the_operator_ends_and_gives_the_lead_back(
    place: Callable[[Running, Stage, pytest.MonkeyPatch], None], stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.leading.leadership.active and running.engine.deciding.profiles.loaded)
        place(running, stage, monkeypatch)
        with pytest.raises(EngineBroken, match=r"MemoryError|run out of memory"):
            async with asyncio.timeout(DEADLINE):
                await running.task
    assert stage.peers() == set(), "it left in order, for another to take over at once"


async def test_a_page_without_memory_is_noticed() -> None:
    async def page(_question: Question) -> Answer:
        raise MemoryError

    opened = bind("127.0.0.1", 0, "--port")
    port: int = opened.getsockname()[1]
    with OutOfMemory() as memory:
        async with Listener(Routes([Endpoint("/hello", page, Audience.EVERYBODY)]), PublicOnly()).serving(opened, None):
            await said(port, get("/hello"))
        async with asyncio.timeout(DEADLINE):
            assert await memory.failure(for_ever()) == "the process has run out of memory"


async def for_ever() -> str:
    await asyncio.Event().wait()
    raise AssertionError


async def test_another_error_is_left_to_the_handler_that_was_there() -> None:
    loop, seen = asyncio.get_running_loop(), list[Any]()
    loop.set_exception_handler(lambda _loop, context: seen.append(context["exception"]))
    with OutOfMemory() as memory:
        loop.call_exception_handler({"message": "x", "exception": ValueError("other")})
        failure = asyncio.create_task(memory.failure(for_ever()))
        for _ in range(3):
            await asyncio.sleep(0)
        assert not failure.done()
        loop.call_exception_handler({"message": "x", "exception": ExceptionGroup("several", [ValueError(), MemoryError()])})
        assert await failure == "the process has run out of memory"
    assert [type(each) for each in seen] == [ValueError, ExceptionGroup]


async def test_what_is_reported_is_raised_too() -> None:
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    with OutOfMemory() as memory:
        with pytest.raises(MemoryError), reported():
            raise MemoryError
        assert await memory.failure(for_ever())
