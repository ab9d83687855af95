"""The console's state as sections of rows, and the difference of two sections.

A state is plain data: section, then key, then row. A row is replaced as a whole. The pages apply a difference in `static/feed.js`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

#: Rows by key. A row is JSON, and is never changed: a new one takes its place.
Section: TypeAlias = Mapping[str, Any]
#: Sections by name.
Sections: TypeAlias = Mapping[str, Section]

#: Stands for a row that is not there; equal to no row.
_NO_ROW: Final = object()


def changed_rows(before: Section, after: Section) -> tuple[dict[str, Any], list[str]]:
    """Find the rows of a section that changed.

    Args:
        before: section that a reader has.
        after: section that the reader is to have.

    Returns:
        New rows by key, and the keys of rows that are gone.
    """
    looked_up = before.get
    others = [key for key, row in after.items() if looked_up(key, _NO_ROW) is not row]
    new = {key: after[key] for key in others if looked_up(key, _NO_ROW) != after[key]}
    added = sum(key not in before for key in new)
    return new, [key for key in before if key not in after] if len(before) + added != len(after) else []
