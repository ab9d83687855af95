"""Lists of numbers on the command line, and tables: shared by all benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.console import Console
from rich.table import Table

from placewright.cli.options import whole_number
from placewright.cli.terminal import plain

MOST_NODES: Final = 100_000
MOST_PODS: Final = 1_000_000


def counts(least: int, most: int = MOST_NODES) -> Callable[[str], tuple[int, ...]]:
    """Make an argparse type: whole numbers with commas between them.

    Args:
        least: that each may be.
        most: that each may be.

    Returns:
        The type.
    """
    one = whole_number(least, most)
    return lambda text: tuple(one(part) for part in text.split(","))


def print_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows under their columns' names.

    Args:
        title: above the table.
        rows: one at least, all with the same columns.
    """
    table = Table(title=plain(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1, 0, 0))
    for column in rows[0]:
        table.add_column(column, justify="right", overflow="fold", no_wrap=column == "workload")  # it is copied into the next command
    for row in rows:
        table.add_row(*(plain(f"{value:,}" if isinstance(value, int) else value) for value in row.values()))
    Console().print(table)
