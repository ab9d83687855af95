"""How many random cases a property is tried on: all that its test names, or a fifth of them.

A property is written once and held in both: `make unit` and `make test` try a fifth, `make test-all` and a run of the file by its name try
all. The number beside a test is the whole number; `cases` around it says that the quick runs try fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

T = TypeVar("T")

#: `make unit` and `make test` try one of so many cases.
QUICK_SHARE: Final = 5
#: But so many at least, unless a test says otherwise.
FEWEST: Final = 4


class _Run:
    """This run of pytest; `share` is set before any test is imported."""

    share = 1


def take_few() -> None:
    """Let tests that are imported from now on try a fifth of their cases, as `make unit` and `make test` do."""
    _Run.share = QUICK_SHARE


def cases(whole: int, *, fewest: int = FEWEST) -> int:
    """Return how many of so many random cases this run tries.

    Example:
        @settings(max_examples=cases(200))  # 40 in `make test`
    """
    return whole if _Run.share == 1 else max(whole // _Run.share, min(whole, fewest))


def some(whole: Sequence[T]) -> Sequence[T]:
    """Return the cases of a table that this run tries: each fifth in quick runs, else all."""
    return whole[:: _Run.share]
