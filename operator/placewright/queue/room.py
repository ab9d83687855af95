"""A profile's room: how many of its pods may be on their way to nodes at once, in all and by namespace.

A pod takes a place when it is handed out, and gives it back when its attempt ends. While it waits for others (its volumes, its
devices, its group, an API server that asked for patience) it stands aside: it frees its place and counts among the many more
pods that may wait. While it waits for a Permit plugin it is not counted, because it may wait for pods that are still to come.

Each profile has a room of its own, so a profile that waits never holds up another. Within a room no namespace and no extender
can take all places.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from placewright.api.fairshares import FairShares

#: Pods of a profile that are decided ahead of their Bindings, at most. Later pods are decided later, on newer facts.
ON_THEIR_WAY: Final = 512
#: Pods of a profile that are on their way or stand aside, at most.
IN_THE_ROOM: Final = 8_192
#: Pods of a profile that are on their way through one binding extender, at most.
BY_ONE_EXTENDER: Final = 256
#: `FairShares`' factor: a namespace that is alone takes less than half of the places, so that the next namespace finds some at once.
_FACTOR: Final = 1


class Lane(NamedTuple):
    """Pods of one profile that wait for the same places.

    Attributes:
        namespace: of the pods.
        extender: the extender that binds them; "" if the scheduler does.
        grouped: whether the pods name a group.
    """

    namespace: str
    extender: str = ""
    grouped: bool = False


@dataclass(slots=True)
class GroupGate:
    """The gate of all members of groups, in every profile.

    Attributes:
        closed: no member of a group is handed out, because a group is being decided. Pods without a group pass it meanwhile.
    """

    closed: bool = False


class Standing(enum.Enum):
    """How a pod in flight counts in its profile's room."""

    ON_ITS_WAY = enum.auto()
    ASIDE = enum.auto()
    UNCOUNTED = enum.auto()


#: Looked up once, because an enum member costs an attribute lookup and every pod moves several times.
_ON_ITS_WAY: Final = Standing.ON_ITS_WAY
_UNCOUNTED: Final = Standing.UNCOUNTED


class RoomSizes(NamedTuple):
    """Places in a profile's room. Each namespace gets its share of every kind of place.

    Attributes:
        on_their_way: for pods that are decided and whose Binding is not answered.
        in_all: for these pods and for pods that stand aside.
        by_extender: for pods that are on their way through one extender.
    """

    on_their_way: int = ON_THEIR_WAY
    in_all: int = IN_THE_ROOM
    by_extender: int = BY_ONE_EXTENDER


#: The sizes of every profile's room.
STATED_SIZES: Final = RoomSizes()


class ProfileRoom:
    """The places of one profile."""

    __slots__ = ("_all", "_by_extender", "_gate", "_left", "_on_their_way", "_refused", "_sizes")

    def __init__(self, sizes: RoomSizes, left: Callable[[], None] = lambda: None, gate: GroupGate | None = None) -> None:
        """Start empty.

        Args:
            sizes: places of each kind.
            left: called when a pod leaves a place, if `full` or `may_enter` has refused a pod since the last call. Nearly always
                nothing was refused, and nothing waits for the place.
            gate: of the members of groups; None for one that is never closed.
        """
        self._sizes = sizes
        self._gate = gate or GroupGate()
        self._left = left
        self._on_their_way: FairShares[str] = FairShares(sizes.on_their_way, _FACTOR)
        self._all: FairShares[str] = FairShares(sizes.in_all, _FACTOR)
        self._by_extender: dict[str, FairShares[str]] = {}
        self._refused = False

    @property
    def full(self) -> bool:
        """True while no pod of any lane may be handed out."""
        if self._on_their_way.free > 0 and self._all.free > 0:
            return False
        self._refused = True
        return True

    @property
    def on_their_way(self) -> int:
        """Number of pods that hold a place."""
        return sum(self._on_their_way.held.values())

    @property
    def aside(self) -> int:
        """Number of pods that stand aside."""
        return sum(self._all.held.values()) - self.on_their_way

    def may_enter(self, lane: Lane) -> bool:
        """Tell whether one more pod may be handed out.

        Args:
            lane: the pod's.

        Returns:
            False when its namespace or extender has its share, or a group is being decided and it is a member of another.
        """
        namespace, extender, grouped = lane
        may = not (grouped and self._gate.closed) and self._on_their_way.may_take(namespace) and self._all.may_take(namespace)
        if may and (not extender or self._may_ask(extender, namespace)):
            return True
        self._refused = True
        return False

    def _may_ask(self, extender: str, namespace: str) -> bool:
        asked = self._by_extender.get(extender)
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
        """Count a pod of this lane, not counted before, as on its way."""
        self._all.take(lane[0])
        if lane[1]:
            self._take(lane)
        else:
            self._on_their_way.take(lane[0])

    def let_go(self, lane: Lane) -> None:
        """Stop counting a pod of this lane that was on its way."""
        self._all.give_back(lane[0])
        if lane[1]:
            self._give_back(lane)
        else:
            self._on_their_way.give_back(lane[0])
        if self._refused:
            self._tell()

    def moved(self, lane: Lane, before: Standing, after: Standing) -> None:
        """Count a pod of this lane in its new standing.

        Args:
            lane: the pod's.
            before: the standing that the pod was counted in.
            after: another standing.
        """
        self._count_all(lane, before, after)
        self._count_on_their_way(lane, before, after)
        if self._refused and before is not _UNCOUNTED:
            self._tell()

    def _tell(self) -> None:
        """Report the place that was left. A pod that is refused again in the course of that waits for the next one."""
        self._refused = False
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
    """One pod's place in the room, from `pop` until `leave`. Each step may be repeated, and has no effect after `leave`.

    Args:
        room: the profile's.
        lane: the pod's.
    """

    __slots__ = ("_ended", "_lane", "_room", "_standing")

    def __init__(self, room: ProfileRoom, lane: Lane) -> None:
        self._room = room
        self._lane = lane
        self._ended = False
        self._standing = _ON_ITS_WAY
        room.take_in(lane)

    def go_on(self) -> None:
        """Count the pod as on its way, also after it stood aside."""
        self._move(Standing.ON_ITS_WAY)

    def stand_aside(self) -> None:
        """Count the pod among the pods that wait for others."""
        self._move(Standing.ASIDE)

    def await_permission(self) -> None:
        """Stop counting the pod while Permit plugins keep it waiting."""
        self._move(Standing.UNCOUNTED)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Let the pod stand aside inside the `with` block."""
        self.stand_aside()
        try:
            yield
        finally:
            self.go_on()

    def leave(self) -> None:
        """End the pod's place: its attempt is over."""
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


#: The place of pods that are not in flight: it has been left, so every call is without effect.
NO_PLACE: Final = RoomPlace(ProfileRoom(STATED_SIZES), Lane(""))
NO_PLACE.leave()
