"""How much memory may be used, as a container shows it and as a machine has it; and when what was freed is given back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from placewright.engine.freedmemory import give_back_memory
from placewright.engine.memory import COLUMNS_SHARE, column_bytes, memory_limit


@pytest.mark.parametrize(
    ("second", "first", "limit"),
    [
        ("max\n", None, 8000),
        ("2000\n", None, 2000),
        (None, "3000\n", 3000),
        (None, "9223372036854771712\n", 8000),
        ("2000\n", "3000\n", 2000),
        (None, None, 8000),
        ("", "nonsense", 8000),
    ],
)
def test_the_limit_is_the_containers_where_it_has_one_below_what_the_machine_has(
    second: str | None, first: str | None, limit: int, tmp_path: Path
) -> None:
    for name, text in (("second", second), ("first", first)):
        if text is not None:
            (tmp_path / name).write_text(text)
    assert memory_limit((tmp_path / "second", tmp_path / "first"), physical=8000) == limit


def test_columns_may_take_a_quarter_of_what_this_process_may_use() -> None:
    assert 2**20 < column_bytes() == memory_limit() // COLUMNS_SHARE


@pytest.mark.parametrize(("takes", "pauses"), [((0.01, 0.02), (60.0, 60.0, 60.0)), ((1.0, 0.5, 0.01), (60.0, 500.0, 250.0, 60.0))])
async def test_memory_is_given_back_once_a_minute_and_more_rarely_where_that_takes_long(
    takes: Sequence[float], pauses: Sequence[float]
) -> None:
    now, slept, left = 0.0, [], list(takes)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        if not left:
            raise asyncio.CancelledError

    def act() -> None:
        nonlocal now
        now += left.pop(0)

    with suppress(asyncio.CancelledError):
        await give_back_memory(act, sleep, lambda: now)
    assert slept == pytest.approx(list(pauses))
