"""How hard these tests try, and what work may cost.

`make test` tries the same few hundred inputs every time; with `PLACEWRIGHT_FUZZ=20` it is twenty times as many, and others each time.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
_TIMES: Final = int(os.environ.get("PLACEWRIGHT_FUZZ", "0"))
#: Bytes for each byte of input, and bytes besides: decoded objects, caches and messages all fit by far.
_BYTES_EACH: Final = 400
_BYTES_BESIDES: Final = 2**22
#: Seconds that no input of these sizes takes on any machine; only a hang guard.
_LONGEST: Final = 30.0


def fuzz(examples: int, **inputs: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`hypothesis.given` with these inputs, this many times."""
    chosen = settings(
        max_examples=examples * max(_TIMES, 1),
        derandomize=not _TIMES,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    )
    return lambda test: chosen(given(**inputs)(test))


@contextmanager
def bounded(size: int, besides: int = _BYTES_BESIDES) -> Iterator[None]:
    """Work on this many bytes of input ends, and takes memory in proportion to them and this many bytes besides."""
    began = time.monotonic()
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < besides + _BYTES_EACH * size, f"{peak} bytes for {size} bytes of input"
    assert time.monotonic() - began < _LONGEST


def outcome(work: Callable[[], T], *refusals: type[Exception]) -> T | Exception:
    """What comes of the work: its value, or the refusal; any other exception is a finding."""
    try:
        return work()
    except refusals as refusal:
        return refusal
