"""Limits in preemption's trials: what is on a row under trial follows from the pods that are there at the moment."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from placewright.framework.interface import BoolColumn, Rejection, Rows
from placewright.framework.rowwise import RowVerdict
from placewright.framework.status import Status
from placewright.plugins.nodevolumelimits.attachable import Attachable
from placewright.plugins.nodevolumelimits.attached import AttachedVolumes


class CountingJudge(RowVerdict):
    """Looks at the rows one by one, but only at their own volumes."""

    def __init__(self, counted: AttachedVolumes, wanted: AbstractSet[Attachable], rejection: Status, *, free_riders: bool) -> None:
        """As for `AttachedVolumes.room`; `rejection` is what is said of rows without room."""
        self._counted = counted
        self._wanted = wanted
        self._rejection = rejection
        self._free_riders = free_riders

    def passes(self, rows: Rows) -> BoolColumn:
        """True where there is room for the volumes that are not there yet."""
        has_room, wanted, free_riders = self._counted.has_room, self._wanted, self._free_riders
        return np.fromiter([has_room(wanted, row, free_riders=free_riders) for row in rows.tolist()], np.bool_, len(rows))

    def explain(self, rows: Rows) -> list[Rejection]:
        """One reason for all nodes."""
        return [Rejection(self._rejection, rows)]
