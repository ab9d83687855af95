"""A comparison of profiles as the console's only page. `compare` itself or its JSON has the content of the report."""

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
#: Keys by which a comparison's JSON differs from any other document.
_SCENARIO: Final = "scenario"
_REPORT: Final = "report"
#: Bytes of the first line that are read.
_FIRST_LINE: Final = 2**20


class ComparisonSource(WorldSource):
    """Shows a comparison, and an empty cluster to a reader who asks for a node or a pod."""

    def __init__(self, content: ReportContent, name: str) -> None:
        """Show the content of a report. `name` is that of the file, or of the scenario."""
        super().__init__(SeenWorld(in_tree(), 0.0), {}, time.monotonic)
        self._state: Sections = {
            "about": {"kind": _KIND, "source": name, "can": [_KIND]},
            # Rows are compared with each other, so they are plain data.
            _KIND: {_REPORT: msgspec.to_builtins(content)},
        }

    def sections(self, rights: Rights) -> Sections:
        """Return the state, which never changes. Implements the feed's `StateSource`."""
        return self._state


def read_comparison(path: Path, largest: int) -> ReportContent | None:
    """Read the output of `placewright compare -o json`. Return None for a file of another kind.

    Raises `InputError` if the file cannot be read, has more than `largest` bytes, or has no report.
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
    """Return whether a document may begin in this way. A snapshot begins otherwise, and may be too large to read twice."""
    return first.lstrip().startswith(b"{") and (first.strip() == b"{" or not rest)
