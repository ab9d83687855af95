"""A comparison as one HTML page: no scripts, nothing from the network, all text escaped. Equal comparisons give equal bytes."""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from placewright.api.bad_input import printable
from placewright_lab.figures.comparison import ProfileComparison
from placewright_lab.figures.rows import SHARE, moment_of, pending_by_reason, rows_of
from placewright_lab.report.charts import HEIGHT, WIDTH, courses, distributions

#: Of pods that move, and of pods that wait: how many a page names. `-o json` has them all.
MOST_NAMED: Final = 200
#: These groups of rows have a section of their own.
_DRAWN: Final = frozenset({"Pending, and why", "Share of the scores"})


def page_of(comparison: ProfileComparison) -> str:
    """The whole page, to be written as UTF-8."""
    figures = comparison.figures
    groups = groupby((row for row in rows_of(comparison) if row.group not in _DRAWN), key=lambda row: row.group)
    plugins = dict.fromkeys(plugin for each in figures for plugin in each.score_shares)
    return _environment().get_template("page.html.j2").render(
        source=comparison.source,
        profiles=[each.profile for each in figures],
        figures=figures,
        seeds=comparison.seeds,
        groups=[(name, list(rows)) for name, rows in groups],
        reasons=pending_by_reason(figures),
        most_pending=max((each.pending for each in figures), default=0),
        scores={plugin: [each.score_shares.get(plugin, 0.0) for each in figures] for plugin in plugins},
        distributions=distributions(figures),
        courses=courses(figures),
        changes=list(zip(figures[1:], comparison.changes, strict=True)),
        most_named=MOST_NAMED,
        moment=moment_of(figures[0]),
        width=WIDTH,
        height=HEIGHT,
    )


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("placewright_lab.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["share"] = SHARE.text
    made.filters["thousands"] = "{:,}".format
    return made


def _shown(value: Any) -> Any:
    """Escape characters that reverse the direction of writing or hide text: a writer of pods chooses names and messages."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
