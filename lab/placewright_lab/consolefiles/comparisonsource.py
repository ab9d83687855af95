"""A comparison of profiles as the console's only page: the content of the report, from `compare` itself or from its JSON."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import msgspec

from placewright.api.bad_input import InputError, bad_field
from placewright.api.decode import DECODE_ERRORS
from placewright.plugins.catalog import in_tree
from placewright.serving.rights import Rights
from placewright_console.local.seenworld import SeenWorld
from placewright_console.local.worldsource import WorldSource
from placewright_console.pages.statedelta import Sections
from placewright_lab.report.content import ReportContent

_KIND: Final = "comparison"
#: The keys of a comparison's JSON that tell it from any other document.
_SCENARIO: Final = "scenario"
_REPORT: Final = "report"
#: Bytes of a first line that is looked at.
_FIRST_LINE: Final = 2**20


class ComparisonSource(WorldSource):
    """Shows a comparison, and an empty cluster to a reader who asks for a node or a pod."""

    def __init__(self, content: ReportContent, name: str) -> None:
        """Show a comparison.

        Args:
            content: of the report.
            name: of the file, or of the scenario.
        """
        super().__init__(SeenWorld(in_tree(), 0.0), {}, time.monotonic)
        self._state: Sections = {
            "about": {"kind": _KIND, "source": name, "can": [_KIND]},
            # As plain data, because rows are compared with each other.
            _KIND: {_REPORT: msgspec.to_builtins(content)},
        }

    def sections(self, rights: Rights) -> Sections:
        """Return the state, which never changes. Implements the feed's `StateSource`."""
        return self._state


def read_comparison(path: Path, largest: int) -> ReportContent | None:
    """Read what `placewright compare -o json` wrote.

    Args:
        path: of the file.
        largest: bytes of a file that is read.

    Returns:
        None for a file of another kind.

    Raises:
        InputError: the file cannot be read, is too large, or has no report that can be shown.
    """
    try:
        with path.open("rb") as file:
            first = file.readline(_FIRST_LINE)
            text = first + file.read(largest + 1) if _may_begin(first, file.peek(1)) else b""
    except OSError as problem:
        raise InputError(f"{path}: cannot be read: {problem.strerror or problem}") from None
    try:
        told: Any = msgspec.json.decode(text)
    except DECODE_ERRORS:
        return None
    if not isinstance(told, dict) or _SCENARIO not in told:
        return None
    if len(text) > largest:
        raise InputError(f"{path}: found more than {largest >> 20} MiB; --largest allows more")
    if _REPORT not in told:
        raise InputError(f"{path}: no report in it: write it anew with `placewright compare -o json`")
    try:
        return msgspec.convert(told[_REPORT], ReportContent)
    except msgspec.ValidationError as problem:
        raise bad_field(f"{path}: {_REPORT}", str(problem), "a report as `placewright compare -o json` writes it") from None


def _may_begin(first: bytes, rest: bytes) -> bool:
    """Whether a document may begin so. A snapshot is packed or has a whole object in each line, and may be too large to be read twice."""
    return first.lstrip().startswith(b"{") and (first.strip() == b"{" or not rest)
