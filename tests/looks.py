"""The windows in which a browser looks at a page: as wide as a phone's, a laptop's and a large screen's, each light and dark.

A run looks at each page in one of them, and `make nightly` in all. Pages beside each other get different ones, so that every run has all.
"""

from __future__ import annotations

from typing import Final, NamedTuple

#: Widths in CSS pixels.
PHONE: Final = 400
LAPTOP: Final = 1400
LARGE: Final = 2560


class Look(NamedTuple):
    """A window.

    Attributes:
        width: CSS pixels.
        dark: the colour scheme that the person prefers.
    """

    width: int
    dark: bool


#: All windows, ordered so that neighbours differ in both.
LOOKS: Final = tuple(Look((PHONE, LAPTOP, LARGE)[number % 3], dark=number % 2 == 1) for number in range(6))


class _Run:
    """This run of pytest; `all` is set before any test is imported."""

    all = False


def take_all() -> None:
    """Let tests that are imported from now on look at each page in all windows, as `make nightly` does."""
    _Run.all = True


def looks(page: int) -> tuple[Look, ...]:
    """Return the windows in which this run looks at the page of this number."""
    return LOOKS if _Run.all else (LOOKS[page % len(LOOKS)],)
