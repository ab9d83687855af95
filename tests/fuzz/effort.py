"""How hard these tests try, and what work may cost.

`make test` tries the same few hundred inputs every time; with `PLACEWRIGHT_FUZZ=20` it is twenty times as many, and others each time.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from hypothesis import HealthCheck, currently_in_test_context, given, settings
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
#: Linux has them; elsewhere every allocation is followed.
_CLEAR_PEAK: Final = Path("/proc/self/clear_refs")
_STATUS: Final = Path("/proc/self/status")
_TIMES: Final = int(os.environ.get("PLACEWRIGHT_FUZZ", "0"))
#: Bytes for each byte of input, and bytes besides: decoded objects, caches and messages all fit by far.
_BYTES_EACH: Final = 400
_BYTES_BESIDES: Final = 2**22
#: Where every allocation is followed, reading YAML takes three times as long: of drawn inputs this is done for one in so many, by its size.
_ONE_IN: Final = 1 if _TIMES else 5
#: Seconds that no input of these sizes takes on any machine; only a hang guard.
_LONGEST: Final = 30.0


def fuzz(examples: int, **inputs: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`hypothesis.given` with these inputs, this many times."""
    chosen = settings(
        max_examples=examples * max(_TIMES, 1),
        derandomize=not _TIMES,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
    )
    return lambda test: chosen(given(**inputs)(test))


@contextmanager
def bounded(size: int, besides: int = _BYTES_BESIDES) -> Iterator[None]:
    """Work on this many bytes of input ends, and takes memory in proportion to them and this many bytes besides."""
    began = time.monotonic()
    measured = _allocated if size % _ONE_IN == 0 or not currently_in_test_context() else _resident
    with measured() as peaks:
        yield
    assert peaks[0] < besides + _BYTES_EACH * size, f"{peaks[0]} bytes for {size} bytes of input"
    assert time.monotonic() - began < _LONGEST


@contextmanager
def _allocated() -> Iterator[list[int]]:
    """What was allocated at most while this was open, to the byte."""
    peaks: list[int] = []
    tracemalloc.start()
    try:
        yield peaks
        peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@contextmanager
def _resident() -> Iterator[list[int]]:
    """By how much the process grew at most while this was open: nearly free, and blind for what fits into memory that was used before."""
    peaks: list[int] = []
    if not _CLEAR_PEAK.exists():
        with _allocated() as peaks:
            yield peaks
        return
    _CLEAR_PEAK.write_text("5", encoding="ascii")
    before = _peak()
    yield peaks
    peaks.append(_peak() - before)


def _peak() -> int:
    """Bytes that were resident at most since this was last cleared."""
    (found,) = (line for line in _STATUS.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM:"))
    return int(found.split()[1]) * 1024


def outcome(work: Callable[[], T], *refusals: type[Exception]) -> T | Exception:
    """What comes of the work: its value, or the refusal; any other exception is a finding."""
    try:
        return work()
    except refusals as refusal:
        return refusal
