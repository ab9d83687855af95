"""Prints docs/metrics.md with its tables made of what is declared; the text around them is the page's own.

`python -m tools.generated.metricspage > docs/metrics.md.new`, which `make generate` does.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from placewright.observability.metrics import declared
from placewright.observability.metrics.family import MetricFamily

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
_TABLE: Final = re.compile(r"^(?P<head>\| Metric \|.*\n\|---\|.*\n)(?:\|.*\n)*", re.MULTILINE)


def with_tables(page: str) -> str:
    """Replace the page's tables, in their order: kube-scheduler's metrics first, then ours.

    Raises:
        ValueError: the page has another number of tables of metrics.
    """
    tables = list(declared())
    found = len(_TABLE.findall(page))
    if found != len(tables):
        raise ValueError(f"docs/metrics.md: found {found} tables that begin with a column Metric; allowed {len(tables)}")
    rows: Iterator[Iterable[MetricFamily]] = iter(tables)
    return _TABLE.sub(lambda table: table["head"] + "".join(map(_row, next(rows))), page)


def _row(family: MetricFamily) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "–"
    buckets = f" Buckets {family.buckets[0]:g} to {family.buckets[-1]:g}." if family.buckets else ""
    return f"| `{family.name}` | {family.kind.value} | {labels} | {family.help}{buckets} |\n"


if __name__ == "__main__":
    sys.stdout.write(with_tables(PAGE.read_text(encoding="utf-8")))
