"""A comparison as one HTML page, without scripts or requests to the network. All text is escaped. Equal comparisons give equal bytes."""

from __future__ import annotations

from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from placewright.api.bad_input import printable
from placewright_console.pages.staticpages import static_pages
from placewright_lab.figures.comparison import ProfileComparison
from placewright_lab.report.content import MOST_NAMED, content_of

#: The console's sheets, so that the page looks like the console.
_SHEETS: Final = ("tokens.css", "style.css", "charts.css")


def page_of(comparison: ProfileComparison) -> str:
    """Return the whole page, for a file in UTF-8."""
    sheets = "".join(static_pages()[name].body.decode() for name in _SHEETS)
    template = _environment().get_template("page.html.j2")
    # The sheets are files of the package, without text of other people.
    return template.render(it=content_of(comparison), most_named=MOST_NAMED, sheets=Markup(sheets))  # noqa: S704


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("placewright_lab.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["thousands"] = "{:,}".format
    return made


def _shown(value: Any) -> Any:
    """Escape characters that reverse the direction of writing or hide text, because strangers choose names and messages."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
