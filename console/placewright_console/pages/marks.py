"""Marks on the time line: where a profile's generation changed, the leader changed, the API server was away, or nothing ran.

The section `marks` has a row for each, `{at, until, kind, label, text}`; `until` is None for a moment, and `open` says that the stretch
goes on. Marks name profiles, which are objects of the cluster, and nothing of a namespace, so all readers get them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

#: Marks that are kept.
MOST_MARKS: Final = 100
#: The kinds of marks.
GENERATION: Final = "generation"
LEADER: Final = "leader"
AWAY: Final = "away"
STILL: Final = "still"
BEGUN: Final = "begun"


@dataclass(slots=True)
class Mark:
    """A mark.

    Attributes:
        at: place on the time line's axis, seconds.
        kind: one of the kinds above.
        label: a word or two, for the picture.
        text: a sentence.
        until: the end of a stretch; None for a moment, and while the stretch goes on.
        open: whether the stretch goes on.
    """

    at: float
    kind: str
    label: str
    text: str
    until: float | None = None
    open: bool = False


class Marks:
    """Keeps the last marks."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, Mark]] = deque(maxlen=MOST_MARKS)
        self._made = 0

    def add(self, mark: Mark) -> Mark:
        """Add a mark. An open one may be closed by setting its `until` and `open`."""
        self._made += 1
        self._kept.append((self._made, mark))
        return mark

    def rows(self, time_of_day: Callable[[float], float]) -> dict[str, Any]:
        """Return the section `marks`.

        Args:
            time_of_day: turns a place on the axis into seconds since 1970.
        """
        return {str(number): _row(mark, time_of_day) for number, mark in self._kept}


class GenerationMarks:
    """Marks the changes of the profiles in effect."""

    def __init__(self, marks: Marks) -> None:
        """Know no profile yet. The first profiles get no mark: they were in effect before, and are read when the operator begins.

        Args:
            marks: marks to which changes are added.
        """
        self._marks = marks
        self._known: Mapping[str, tuple[str, int]] = {}
        self._begun = False

    def look(self, at: float, in_effect: Mapping[str, tuple[str, int]]) -> bool:
        """Mark the changes since the last look.

        Args:
            at: place on the axis, seconds.
            in_effect: the profile object's name and its generation, by schedulerName.

        Returns:
            Whether there was a change.
        """
        known, self._known = self._known, dict(in_effect)
        begun, self._begun = self._begun, self._begun or bool(in_effect)
        if not begun or known == self._known:
            return False
        for name in sorted(known.keys() | self._known.keys()):
            before, after = known.get(name), self._known.get(name)
            if before != after:
                self._marks.add(Mark(at, GENERATION, *_said(before, after)))
        return True


def _said(before: tuple[str, int] | None, after: tuple[str, int] | None) -> tuple[str, str]:
    """Label and sentence of a change."""
    if after is None:
        assert before is not None
        return f"{before[0]} ended", f"profile {before[0]} is not in effect any more"
    name, generation = after
    if before is not None and before[0] == name:
        return f"{name} {generation}", f"generation {generation} of profile {name} took effect, after generation {before[1]}"
    return f"{name} {generation}", f"profile {name} took effect, generation {generation}"


def _row(mark: Mark, time_of_day: Callable[[float], float]) -> dict[str, Any]:
    row: dict[str, Any] = {"at": time_of_day(mark.at), "kind": mark.kind, "label": mark.label, "text": mark.text}
    if mark.until is not None:
        row["until"] = time_of_day(mark.until)
    if mark.open:
        row["open"] = True
    return row
