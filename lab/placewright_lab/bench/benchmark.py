"""The protocol of a benchmark: its options, and a run that returns tables.

`placewright bench` and `python -m benchmarks` print them alike.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from string import Formatter
from typing import TYPE_CHECKING, Any, Final, Protocol

from placewright.cli.options import whole_number

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MOST_NODES: Final = 100_000
MOST_PODS: Final = 1_000_000

#: A measurement in JSON.
Row = dict[str, Any]


class BenchFailed(Exception):
    """A measurement did not come to its end. The message is one line."""


@dataclass(frozen=True, slots=True)
class ResultTable:
    """The measurements of one kind.

    Attributes:
        title: line above the table.
        rows: measurements in JSON.
        lines: cells of the table by heading; all lines have the same headings.
        faults: reasons that make the figures void; with one of them, the run ends with exit code 1.
    """

    title: str
    rows: Sequence[Row]
    lines: Sequence[Mapping[str, str]]
    faults: Sequence[str] = ()


class Benchmark(Protocol):
    """A module that measures."""

    @property
    def SUMMARY(self) -> str:  # noqa: N802 - a constant of a module
        """The line about it in the help text."""

    def options(self, parser: argparse.ArgumentParser) -> None:
        """Add its options."""

    def run(self, args: argparse.Namespace) -> Sequence[ResultTable]:
        """Measure. Raises `InputError` for impossible options, and `BenchFailed`."""


def row_of(measured: DataclassInstance, *derived: str) -> Row:
    """Return a measurement in JSON, with these of its properties."""
    return asdict(measured) | {name: getattr(measured, name) for name in derived}


def table(title: str, rows: Sequence[Row], columns: Mapping[str, str], faults: Sequence[str] = ()) -> ResultTable:
    """Make the lines of a table.

    Args:
        title: line above the table.
        rows: measurements.
        columns: templates of `str.format` by heading; a cell is empty if its template names a field that is None.
        faults: reasons that make the figures void.
    """
    return ResultTable(title, rows, [{heading: _cell(template, row) for heading, template in columns.items()} for row in rows], faults)


def _cell(template: str, row: Row) -> str:
    fields = [name.partition("[")[0] for _, name, _, _ in Formatter().parse(template) if name]
    return "" if any(row[name] is None for name in fields) else template.format_map(row)


def counts(least: int, most: int = MOST_NODES) -> Callable[[str], tuple[int, ...]]:
    """Make an argparse type for whole numbers, from `least` to `most`, with commas between them."""
    one = whole_number(least, most)
    return lambda text: tuple(one(part) for part in text.split(","))


def names(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Make an argparse type for some of the `known` names, with commas between them."""

    def chosen(text: str) -> tuple[str, ...]:
        for name in (found := tuple(text.split(","))):
            if name not in known:
                raise argparse.ArgumentTypeError(f"found {name!r}; allowed some of {', '.join(known)}, with commas between them")
        return found

    return chosen
