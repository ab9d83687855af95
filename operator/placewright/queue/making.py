"""The objects that all profile queues of one scheduling queue are made with."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from placewright.queue.changedpods import ChangedPods
from placewright.queue.hints import Timed
from placewright.queue.room import RoomSizes


class Making(NamedTuple):
    """The objects that all profile queues share.

    Attributes:
        sizes: places in each profile's room.
        ready: called when a pod may be handed out that could not be handed out before.
        clock: seconds, monotonic.
        timed: wraps hints to report how long they take; None for no report.
        changed: notes the pods that come, move, or go.
    """

    sizes: RoomSizes
    ready: Callable[[], None]
    clock: Callable[[], float]
    timed: Timed | None
    changed: ChangedPods
