"""The lab's additions to the console on this machine: snapshots, recordings and comparisons as files, and the what-if pages.

The console finds this module by the entry point group `placewright.additions`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from placewright.framework.registry import Registry, installed_plugins
from placewright.plugins.catalog import in_tree
from placewright_console.local.clusterathand import ClusterAtHand
from placewright_lab.consolefiles.comparisonsource import ComparisonSource, read_comparison
from placewright_lab.consolefiles.openedfile import FileSource, OpenedFile
from placewright_lab.whatif.whatifpages import WhatIfPages


def open_source(
    path: Path, largest: int, speed: int, say: Callable[[str], object]
) -> tuple[FileSource | ComparisonSource, WhatIfPages | None]:
    """Open a snapshot, a recording or a comparison. Implements `Additions`.

    `largest` is the limit of unpacked bytes, `speed` the recorded seconds that pass in a second. `say` hears remarks about the file. Return
    the source of the pages, and the what-if pages, which a comparison does not have. Raises `InputError` for another or damaged file.
    """
    comparison = read_comparison(path, largest)
    if comparison is not None:
        return ComparisonSource(comparison, path.name), None
    source = OpenedFile(path, largest, _registry(), time.monotonic, speed, say)
    return source, what_if_of(source)


def more_pages(at_hand: ClusterAtHand) -> WhatIfPages:
    """Make the what-if pages of a cluster. Implements `Additions`."""
    return WhatIfPages(at_hand, _registry())


def open_file(path: Path, largest: int, speed: int = 1) -> FileSource:
    """Read a snapshot or a recording for the console, with the arguments of `open_source`. Raises `InputError`."""
    return OpenedFile(path, largest, _registry(), time.monotonic, speed).whole()


def what_if_of(source: FileSource) -> WhatIfPages:
    """Make the what-if pages, and have the source offer them."""
    pages = more_pages(source)
    source.can += pages.can
    return pages


def _registry() -> Registry:
    return in_tree().with_installed(installed_plugins())
