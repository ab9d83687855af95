"""Ends the operator when its memory has run out.

A `MemoryError` is no error of a plugin, a page or an object: the next allocation fails, too, and a process that goes on does half of its
work. So no handler of broad exceptions keeps it: `except MemoryError: raise` stands before each, and a test walks all of them. It ends a
part of the engine, or it reaches the event loop's exception handler. If a library would keep it, `report` passes it on. Either way the
operator drains, gives the lead back and ends, to be started again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

from placewright.engine.children import first_of

#: Bytes that are kept for the end: for the requests that give the lead back.
_RESERVE: Final = 4 * 2**20
_WORDS: Final = "the process has run out of memory"


def is_out_of_memory(problem: object) -> bool:
    """Whether an error is a `MemoryError`, or a group that has one."""
    return isinstance(problem, MemoryError) or (isinstance(problem, BaseExceptionGroup) and problem.subgroup(MemoryError) is not None)


def report(problem: BaseException) -> None:
    """Tell the running loop's exception handler of a `MemoryError` that would end nothing.

    Args:
        problem: the error.
    """
    asyncio.get_running_loop().call_exception_handler({"message": _WORDS, "exception": problem})


@contextmanager
def reported() -> Iterator[None]:
    """Report a `MemoryError` of the block and raise it, because the library that called us keeps it."""
    try:
        yield
    except MemoryError as problem:
        report(problem)
        raise


class OutOfMemory:
    """Notices `MemoryError`s that reach the running loop's exception handler, for as long as its context is open."""

    def __init__(self) -> None:
        self._reserve: bytearray | None = bytearray(_RESERVE)
        self._noticed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._before = self._loop.get_exception_handler()

    def __enter__(self) -> Self:
        self._loop.set_exception_handler(self._handle)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._loop.set_exception_handler(self._before)

    async def failure(self, broken: Coroutine[Any, Any, str]) -> str:
        """Wait until memory has run out, or a part of the engine has ended.

        Args:
            broken: `Engine.broken()`.

        Returns:
            What has happened, in words.
        """
        return await first_of(broken, self._out())

    async def _out(self) -> str:
        await self._noticed.wait()
        return _WORDS

    def _handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if is_out_of_memory(context.get("exception")):
            if self._noticed.is_set():
                return  # the first one is logged
            self._reserve = None
            self._noticed.set()
        if self._before is not None:
            self._before(loop, context)
        else:
            loop.default_exception_handler(context)
