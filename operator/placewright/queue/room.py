"""How many pods of one profile may be on their way to their nodes, and whose: no namespace and no extender takes the room of all.

A pod takes a place when it is handed out, and gives it back when its attempt ends. While it waits for something that others have to do
(its volumes, its devices, its group, an API server that asked for patience) it stands aside: it leaves its place to others and counts among
those that wait, of which there may be many more. While it waits for permission it is not counted: it may wait for pods yet to come.

Each profile has a room of its own, so nothing that one profile waits for holds up another.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from placewright.api.fairshares import FairShares

#: Pods of a profile that are decided ahead of their Bindings, at most. What is decided later is decided on what is true then.
ON_THEIR_WAY: Final = 512
#: Pods of a profile that are on their way, or have a node and wait for what others have to do.
IN_THE_ROOM: Final = 8_192
#: Pods of a profile on their way by an extender that binds.
BY_ONE_EXTENDER: Final = 256
#: A namespace that is alone may take less than a half of each: the rest is there for whoever comes.
_FACTOR: Final = 1


class Lane(NamedTuple):
    """Pods of one profile that stand still together: those of a namespace, bound by an extender or (empty) by us."""

    namespace: str
    extender: str = ""


class Standing(enum.Enum):
    """Where a pod in flight stands in its profile's room."""

    ON_ITS_WAY = enum.auto()
    ASIDE = enum.auto()
    UNCOUNTED = enum.auto()


#: Looked up once: every pod moves a few times.
_ON_ITS_WAY: Final = Standing.ON_ITS_WAY
_UNCOUNTED: Final = Standing.UNCOUNTED


class RoomSizes(NamedTuple):
    """Places in a profile's room, in each of which a namespace gets its share.

    Attributes:
        on_their_way: for pods that are decided, and whose Binding is not answered.
        in_all: for these and for those that stand aside.
        by_extender: for those on their way by one extender.
    """

    on_their_way: int = ON_THEIR_WAY
    in_all: int = IN_THE_ROOM
    by_extender: int = BY_ONE_EXTENDER


#: Those of every profile.
STATED_SIZES: Final = RoomSizes()


class ProfileRoom:
    """One profile's."""

    __slots__ = ("_all", "_by_extender", "_left", "_on_their_way", "_sizes")

    def __init__(self, sizes: RoomSizes, left: Callable[[], None] = lambda: None) -> None:
        """`left`: called when a pod leaves a place that others may take."""
        self._sizes = sizes
        self._left = left
        self._on_their_way: FairShares[str] = FairShares(sizes.on_their_way, _FACTOR)
        self._all: FairShares[str] = FairShares(sizes.in_all, _FACTOR)
        self._by_extender: dict[str, FairShares[str]] = {}

    @property
    def full(self) -> bool:
        """True while nobody may be handed out, whoever it is."""
        return self._on_their_way.free <= 0 or self._all.free <= 0

    @property
    def on_their_way(self) -> int:
        """How many pods hold a place."""
        return sum(self._on_their_way.held.values())

    @property
    def aside(self) -> int:
        """How many stand aside."""
        return sum(self._all.held.values()) - self.on_their_way

    def may_enter(self, lane: Lane) -> bool:
        """Whether one more pod of this lane may be handed out."""
        namespace, extender = lane
        if not (self._on_their_way.may_take(namespace) and self._all.may_take(namespace)):
            return False
        asked = self._by_extender.get(extender) if extender else None
        return asked is None or asked.may_take(namespace)

    def _take(self, lane: Lane) -> None:
        self._on_their_way.take(lane.namespace)
        if lane.extender:
            asked = self._by_extender.setdefault(lane.extender, FairShares(self._sizes.by_extender, _FACTOR))
            asked.take(lane.namespace)

    def _give_back(self, lane: Lane) -> None:
        self._on_their_way.give_back(lane.namespace)
        if lane.extender:
            asked = self._by_extender[lane.extender]
            asked.give_back(lane.namespace)
            if not asked.held:
                del self._by_extender[lane.extender]

    def take_in(self, lane: Lane) -> None:
        """A pod of this lane, which was not counted before, is on its way."""
        self._all.take(lane[0])
        self._take(lane)

    def let_go(self, lane: Lane) -> None:
        """A pod of this lane, which was on its way, is not counted any more."""
        self._all.give_back(lane[0])
        self._give_back(lane)
        self._left()

    def moved(self, lane: Lane, before: Standing, after: Standing) -> None:
        """A pod of this lane, which stood there before, stands here now."""
        self._count_all(lane, before, after)
        self._count_on_their_way(lane, before, after)
        if before is not _UNCOUNTED:
            self._left()

    def _count_all(self, lane: Lane, before: Standing, after: Standing) -> None:
        if before is _UNCOUNTED:
            self._all.take(lane[0])
        elif after is _UNCOUNTED:
            self._all.give_back(lane[0])

    def _count_on_their_way(self, lane: Lane, before: Standing, after: Standing) -> None:
        if after is _ON_ITS_WAY:
            self._take(lane)
        elif before is _ON_ITS_WAY:
            self._give_back(lane)


class RoomPlace:
    """One pod's place in the room, from its being handed out until `leave`. Each step may be repeated, and is harmless after `leave`."""

    __slots__ = ("_ended", "_lane", "_room", "_standing")

    def __init__(self, room: ProfileRoom, lane: Lane) -> None:
        self._room = room
        self._lane = lane
        self._ended = False
        self._standing = _ON_ITS_WAY
        room.take_in(lane)

    def go_on(self) -> None:
        """The pod is on its way, again if it stood aside."""
        self._move(Standing.ON_ITS_WAY)

    def stand_aside(self) -> None:
        """The pod waits for what others have to do."""
        self._move(Standing.ASIDE)

    def await_permission(self) -> None:
        """The pod waits for permission, and is not counted."""
        self._move(Standing.UNCOUNTED)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """The pod stands aside for as long as this is open."""
        self.stand_aside()
        try:
            yield
        finally:
            self.go_on()

    def leave(self) -> None:
        """The pod's attempt is over."""
        if self._standing is _ON_ITS_WAY and not self._ended:  # nearly every pod's end
            self._standing = _UNCOUNTED
            self._room.let_go(self._lane)
        else:
            self._move(_UNCOUNTED)
        self._ended = True

    def _move(self, standing: Standing) -> None:
        before = self._standing
        if standing is not before and not self._ended:
            self._standing = standing
            self._room.moved(self._lane, before, standing)


#: Of pods that are not in flight.
NO_PLACE: Final = RoomPlace(ProfileRoom(STATED_SIZES), Lane(""))
NO_PLACE.leave()
