"""docs/metrics.md lists what is exported, all of it and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from placewright.observability.metrics import MetricFamily, families
from tools.generated.metricspage import with_tables

TEXT = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<kind>\w+) \| (?P<labels>[^|]*) \| (?P<told>.*) \|$", re.MULTILINE)


def row(family: MetricFamily) -> tuple[str, str, str, str]:
    labels = ", ".join(f"`{label}`" for label in family.labels) or "–"
    buckets = f" Buckets {family.buckets[0]:g} to {family.buckets[-1]:g}." if family.buckets else ""
    return family.name, family.kind.value, labels, family.help + buckets


def test_the_tables_are_what_is_declared() -> None:
    documented = [(found["name"], found["kind"], found["labels"], found["told"]) for found in ROW.finditer(TEXT)]
    assert documented == [row(family) for family in families()]


def test_what_is_said_to_be_missing_is_missing() -> None:
    missing = re.search(r"What is not there.*?\n\n", TEXT, re.DOTALL)
    assert missing is not None
    named = re.findall(r"`((?:scheduler|workqueue)_\w+?)\*?`", missing[0])
    assert len(named) > 5
    assert [family.name for family in families() for prefix in named if family.name.startswith(prefix)] == []


def test_help_needs_no_escape_in_either_format() -> None:
    for family in families():
        assert not set(family.help) & set('\\"\n|'), family.name


def test_the_tables_are_made_anew_and_the_text_around_them_stays() -> None:
    stale = ROW.sub("| `gone` | gauge | – | Nothing. |", TEXT, count=1)
    assert stale != TEXT
    assert with_tables(stale) == TEXT == with_tables(TEXT)


def test_a_page_that_lacks_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match="found 0 tables"):
        with_tables("# Metrics\n")
