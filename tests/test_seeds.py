"""Every seed of a batch is tried, up to the one that fails, which is named."""

from __future__ import annotations

import asyncio

import pytest

import randomcases
from seeds import seeds


def test_each_seed_is_tried_and_the_one_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(randomcases._Run, "share", 1)
    tried: list[int] = []

    @seeds(range(3, 10), at_once=4)
    def fails_at_five(seed: int, found: list[int]) -> None:
        found.append(seed)
        assert seed != 5

    (mark,) = fails_at_five.pytestmark  # type: ignore[attr-defined]
    assert mark.args == ("seed", [range(3, 7), range(7, 10)])
    with pytest.raises(AssertionError) as failed:
        fails_at_five(seed=range(3, 7), found=tried)
    assert failed.value.__notes__ == ["seed 5"]
    fails_at_five(seed=range(7, 10), found=tried)
    assert tried == [3, 4, 5, 7, 8, 9]


def test_coroutines_are_awaited_seed_by_seed() -> None:
    @seeds(range(4))
    async def fails_at_two(seed: int) -> None:
        await asyncio.sleep(0)
        assert seed != 2

    with pytest.raises(AssertionError) as failed:
        asyncio.run(fails_at_two(seed=range(4)))
    assert failed.value.__notes__ == ["seed 2"]
