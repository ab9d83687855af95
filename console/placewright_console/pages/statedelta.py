"""The console's state as sections of rows, and the difference of two states.

A state is plain data: section, then key, then row. A row is replaced as a whole. So one function makes every delta, and one applies it.
The pages do the same in `static/feed.js`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import msgspec

#: Rows by key. A row is JSON, and is never changed: a new one takes its place.
Section: TypeAlias = Mapping[str, Any]
#: Sections by name.
Sections: TypeAlias = Mapping[str, Section]

#: Stands for a row that is not there; equal to no row.
_NO_ROW: Final = object()


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The difference of two states.

    Attributes:
        put: new rows, by section and key.
        gone: the keys of rows that are no longer there, by section.
    """

    put: dict[str, dict[str, Any]] = {}
    gone: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self.put or self.gone)


def difference(before: Sections, after: Sections) -> Delta:
    """Find the rows that changed. O(rows), and cheap for rows that are the same objects in both states.

    Args:
        before: the state that a reader has.
        after: the state that the reader is to have, with the same sections.
    """
    put, gone = {}, {}
    for name, rows in after.items():
        new, left = changed_rows(before.get(name, {}), rows)
        if new:
            put[name] = new
        if left:
            gone[name] = left
    return Delta(put, gone)


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


def applied(state: Sections, delta: Delta) -> dict[str, dict[str, Any]]:
    """Apply a delta.

    Args:
        state: stays as it is.
        delta: difference from this state.
    """
    made = {name: dict(rows) for name, rows in state.items()}
    for name, keys in delta.gone.items():
        for key in keys:
            del made[name][key]
    for name, rows in delta.put.items():
        made.setdefault(name, {}).update(rows)
    return made
