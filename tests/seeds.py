"""Many seeds in one test: where a random world is small, pytest's own work on a test costs more than the test does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final

import pytest

from randomcases import cases

Test = Callable[..., Any]
AT_ONCE: Final = 20


def seeds(of: range, at_once: int = AT_ONCE) -> Callable[[Test], Test]:
    """Call the test, which takes a `seed`, with each of these (quick runs: with a fifth), so many as one test; what fails tells its seed.

    The test may be a coroutine function; other arguments are fixtures and parameters as ever, and all seeds at once share them.
    """
    of = of[: cases(len(of))]
    batches = [of[begin : begin + at_once] for begin in range(0, len(of), at_once)]

    def decorate(test: Test) -> Test:
        if inspect.iscoroutinefunction(test):

            @wraps(test)
            async def run_all(*, seed: range, **others: Any) -> None:
                for each in seed:
                    with _told(each):
                        await test(seed=each, **others)

        else:

            @wraps(test)
            def run_all(*, seed: range, **others: Any) -> None:
                for each in seed:
                    with _told(each):
                        test(seed=each, **others)

        return pytest.mark.parametrize("seed", batches, ids=[f"{batch[0]}-{batch[-1]}" for batch in batches])(run_all)

    return decorate


@contextmanager
def _told(seed: int) -> Iterator[None]:
    try:
        yield
    except Exception as problem:
        problem.add_note(f"seed {seed}")
        raise
