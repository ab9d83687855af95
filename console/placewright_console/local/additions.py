"""Additions of another package to the console on this machine: files that it shows, and pages beside those of a cluster.

The package is found by the entry point group `placewright.additions`. `placewright-lab` adds snapshots, recordings, comparisons, what-if.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Final, Protocol

from placewright_console.local.clusterathand import ClusterAtHand
from placewright_console.local.localserver import MorePages
from placewright_console.pages.source import CompanySource

GROUP: Final = "placewright.additions"


class Additions(Protocol):
    """A module, or an object, that an entry point of the group names."""

    def open_source(self, path: Path, largest: int, speed: int, say: Callable[[str], object]) -> tuple[CompanySource, MorePages | None]:
        """Open a file.

        Args:
            path: path of the file.
            largest: bytes of text that it may unpack to.
            speed: seconds of a recording that pass in a second.
            say: hears remarks about the file once it is read.

        Returns:
            The source of the pages, and the pages beside them.

        Raises:
            InputError: the file is of no kind that the package reads, or is damaged.
        """

    def more_pages(self, at_hand: ClusterAtHand) -> MorePages:
        """Make the pages of a cluster that other packages add."""


def installed_additions() -> Additions | None:
    """Load the additions.

    Returns:
        None if no package adds any.
    """
    found = sorted(entry_points(group=GROUP), key=lambda each: each.name)
    added: Additions | None = found[0].load() if found else None
    return added
