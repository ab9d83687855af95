"""Pods that the queue handed out: the places that they take in their profile's room, and the events since then.

A pod takes a place when it is handed out, and gives it back when its attempt ends. A pod stands aside while it waits for volumes, devices,
its group, or a busy API server. It frees its place, and takes one of the places for pods that wait, which are many more. A pod that
Permit holds takes no place, because it may wait for pods that do not exist yet. Each profile has a room of its own, so that no
profile holds up another. Within a room no namespace and no extender can take all places.

Events are kept because a decision may miss them: a node may become free while a pod is being rejected. The pod would wait for the next
event.
"""

from __future__ import annotations

import enum
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

from placewright.api.boundedcache import counts_bytes
from placewright.api.fairshares import FairShares
from placewright.api.pods import PodInfo, held_bytes
from placewright.framework.events import WILDCARD, ClusterEvent
from placewright.framework.podchanges import pod_update_events
from placewright.queue.hints import Hints
from placewright.queue.queued import QueuedPod

#: Most events that are kept. An attempt that is older than the oldest kept event is told "anything may have happened" instead.
EVENT_LIMIT: Final = 10_000
#: Most bytes of the objects in these events, because a tenant's objects may be large. 10,000 pods of usual size fit.
EVENT_BYTES: Final = 48 * 2**20
#: Most pods of a profile that are decided ahead of their Bindings. Later pods are decided later, on newer facts.
ON_THEIR_WAY: Final = 512
#: `FairShares`' factor. A namespace that is alone takes less than half of the places, so that another finds places at once.
_FACTOR: Final = 1


class Lane(NamedTuple):
    """Pods of one profile that wait for the same places.

    Attributes:
        namespace: namespace of the pods.
        extender: the extender that binds them; "" if the scheduler does.
        grouped: whether the pods name a group.
    """

    namespace: str
    extender: str = ""
    grouped: bool = False


class SlotState(enum.Enum):
    """How a pod in flight counts in its profile's room."""

    ON_ITS_WAY = enum.auto()
    ASIDE = enum.auto()
    UNCOUNTED = enum.auto()


#: Looked up once, because an enum member costs an attribute lookup and every pod moves several times.
_ON_ITS_WAY: Final = SlotState.ON_ITS_WAY
_UNCOUNTED: Final = SlotState.UNCOUNTED


class RoomSizes(NamedTuple):
    """Places in a profile's room. Each namespace gets its share of every kind of place.

    Attributes:
        on_their_way: places for pods that are decided and whose Binding is not answered.
        in_all: places for these pods and for pods that stand aside.
        by_extender: places for pods that are on their way through one extender.
    """

    on_their_way: int = ON_THEIR_WAY
    in_all: int = 8_192
    by_extender: int = 256


#: The sizes of every profile's room.
STATED_SIZES: Final = RoomSizes()


class ProfileRoom:
    """The places of one profile.

    Args:
        sizes: places of each kind.
        left: called when a pod leaves a place, if `full` or `may_enter` has refused a pod since the last call. Nearly always
            nothing was refused, and nothing waits for the place.

    Attributes:
        groups_pass: False while a group is being decided. Then no member of another group is handed out, and pods without a group are.
    """

    __slots__ = ("_all", "_by_extender", "_left", "_on_their_way", "_refused", "groups_pass")

    def __init__(self, sizes: RoomSizes, left: Callable[[], None] = lambda: None) -> None:
        self.groups_pass = True
        self._left = left
        self._on_their_way: FairShares[str] = FairShares(sizes.on_their_way, _FACTOR)
        self._all: FairShares[str] = FairShares(sizes.in_all, _FACTOR)
        self._by_extender: defaultdict[str, FairShares[str]] = defaultdict(lambda: FairShares(sizes.by_extender, _FACTOR))
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
        """Return whether one more pod of this lane may be handed out."""
        namespace, extender, grouped = lane
        may = (self.groups_pass or not grouped) and self._on_their_way.may_take(namespace) and self._all.may_take(namespace)
        if may and (not extender or self._by_extender[extender].may_take(namespace)):
            return True
        self._refused = True
        return False

    def moved(self, lane: Lane, before: SlotState, after: SlotState) -> None:
        """Count a pod of this lane in its new state.

        Args:
            lane: the pod's.
            before: state that the pod was counted in.
            after: another state.
        """
        namespace, extender, _ = lane
        if before is _UNCOUNTED:
            self._all.take(namespace)
        elif after is _UNCOUNTED:
            self._all.give_back(namespace)
        if after is _ON_ITS_WAY:
            self._on_their_way.take(namespace)
            if extender:
                self._by_extender[extender].take(namespace)
        elif before is _ON_ITS_WAY:
            self._on_their_way.give_back(namespace)
            if extender:
                self._by_extender[extender].give_back(namespace)
        if self._refused and before is not _UNCOUNTED:
            # First of all, because a pod that is refused again meanwhile waits for the next place.
            self._refused = False
            self._left()


class RoomPlace:
    """One pod's place in the room, from `pop` until `leave`. Each step may be repeated, and has no effect after `leave`.

    Args:
        room: the profile's.
        lane: the pod's.
    """

    __slots__ = ("_ended", "_lane", "_room", "_state")

    def __init__(self, room: ProfileRoom, lane: Lane) -> None:
        self._room = room
        self._lane = lane
        self._ended = False
        self._state = _UNCOUNTED
        self._move(_ON_ITS_WAY)

    def go_on(self) -> None:
        """Count the pod as on its way, also after it stood aside."""
        self._move(SlotState.ON_ITS_WAY)

    def stand_aside(self) -> None:
        """Count the pod among the pods that wait for others."""
        self._move(SlotState.ASIDE)

    def await_permission(self) -> None:
        """Stop counting the pod while Permit plugins keep it waiting."""
        self._move(SlotState.UNCOUNTED)

    def leave(self) -> None:
        """End the pod's place: its attempt is over."""
        self._move(_UNCOUNTED)
        self._ended = True

    def _move(self, state: SlotState) -> None:
        before = self._state
        if state is not before and not self._ended:
            self._state = state
            self._room.moved(self._lane, before, state)


#: The place of pods that are not in flight. It has been left, so calls have no effect.
NO_PLACE: Final = RoomPlace(ProfileRoom(STATED_SIZES), Lane(""))
NO_PLACE.leave()


class InFlightEvent(NamedTuple):
    """An event with its object before and after."""

    event: ClusterEvent
    old: Any
    new: Any


_ANYTHING: Final = InFlightEvent(WILDCARD, None, None)


@dataclass(slots=True, eq=False)
class InFlightPod:
    """One pod's attempt.

    Attributes:
        queued: the pod as the queue handed it out.
        latest: the newest version of the pod; `queued.pod` stays the version that the attempt began with.
        start: number of events that had happened when the attempt began.
        hints: the hints of the profile that the attempt began under. A profile with another `Hints` object has changed
            meanwhile.
        gone: the pod was deleted or replaced meanwhile, so it does not come back to the queue.
        place: the place that the pod holds in its profile's room.
    """

    queued: QueuedPod
    latest: PodInfo
    start: int
    hints: Hints
    gone: bool = False
    place: RoomPlace = NO_PLACE


class InFlightPods:
    """Attempts under way, by uid, with the events since the oldest of them began.

    A pod stays in flight until its Binding is known to have succeeded or failed (decision 6).

    Args:
        limit: events kept at most.

    Attributes:
        nbytes: bytes of the kept events' objects, `EVENT_BYTES` at most.
    """

    __slots__ = ("__weakref__", "_count", "_events", "_limit", "_pods", "nbytes")

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._pods: OrderedDict[str, InFlightPod] = OrderedDict()
        #: Each event with the bytes of its objects.
        self._events: deque[tuple[InFlightEvent, int]] = deque()
        #: Number of events ever recorded. An attempt notes this number. Upstream puts the attempt into its list of events, and has to move
        #: events when the attempt ends.
        self._count = 0
        self.nbytes = 0
        self._limit = limit
        counts_bytes(self)

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[InFlightPod]:
        """Iterate over all attempts, oldest first, including attempts of pods that are gone."""
        return iter(self._pods.values())

    @property
    def events_kept(self) -> int:
        """Number of events that are kept now."""
        return len(self._events)

    def events_by_label(self) -> Counter[str]:
        """Count the kept events by label. O(events), `EVENT_LIMIT` at most."""
        return Counter(event.event.label for event, _ in self._events)

    def get(self, uid: str) -> InFlightPod | None:
        """Find the attempt of a pod.

        Returns:
            The attempt; None when the pod is not in flight.
        """
        return self._pods.get(uid)

    def has(self, uid: str) -> bool:
        """Return whether a pod is in flight and has not been deleted since it was handed out."""
        flight = self._pods.get(uid)
        return flight is not None and not flight.gone

    @contextmanager
    def aside(self, pod: PodInfo) -> Iterator[None]:
        """Let a pod stand aside while a block runs, so that other pods are decided meanwhile.

        Args:
            pod: a pod in flight; any other is ignored.
        """
        place = self.place(pod.uid)
        place.stand_aside()
        try:
            yield
        finally:
            place.go_on()

    def place(self, uid: str) -> RoomPlace:
        """Return the pod's place in its profile's room.

        Returns:
            The place; for a pod that is not in flight, one that ignores every call.
        """
        flight = self._pods.get(uid)
        return NO_PLACE if flight is None else flight.place

    def begin(self, queued: QueuedPod, hints: Hints, place: RoomPlace = NO_PLACE) -> None:
        """Note that a pod was handed out.

        Args:
            queued: the pod.
            hints: the hints of its profile at this moment.
            place: the place that the pod took in the profile's room.
        """
        self._pods[queued.uid] = InFlightPod(queued, queued.pod, self._count, hints, place=place)

    def record(self, event: ClusterEvent, old: Any, new: Any) -> None:
        """Keep an event for the attempts under way; an event while no pod is in flight is dropped.

        Args:
            event: its kind and label.
            old: the object before; None when it appeared.
            new: the object after; None when it is gone.
        """
        if not self._pods:
            return
        self._count += 1
        nbytes = held_bytes(old, new)
        self._events.append((InFlightEvent(event, old, new), nbytes))
        self.nbytes += nbytes
        while len(self._events) > self._limit or self.nbytes > EVENT_BYTES:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        self.nbytes -= self._events.popleft()[1]

    def update(self, attempt: InFlightPod, new: PodInfo) -> None:
        """Note a newer version of a pod in flight, and record its changes as events that the attempt missed.

        Args:
            attempt: under way.
            new: a later version of its pod.
        """
        for event in pod_update_events(attempt.latest, new):
            self.record(event, attempt.latest, new)
        attempt.latest = new

    def missed(self, flight: InFlightPod) -> list[InFlightEvent]:
        """Return the events since this attempt began, oldest first.

        Returns:
            The events; led by a wildcard event when older ones were dropped, so that the pod is tried again in any case.
        """
        oldest = self._count - len(self._events)
        if flight.start < oldest:
            return [_ANYTHING, *(event for event, _ in self._events)]
        return [event for event, _ in islice(self._events, flight.start - oldest, None)]

    def end(self, uid: str) -> InFlightPod | None:
        """End an attempt and drop the events that no other attempt needs.

        Returns:
            The attempt; None when the pod is not in flight.
        """
        if (flight := self._pods.pop(uid, None)) is not None:
            if self._events:
                self._prune()
            flight.place.leave()
        return flight

    def _prune(self) -> None:
        # Attempts end in any order, but events are dropped only up to the oldest attempt: a slow Binding keeps them, bounded by
        # the limits.
        oldest = next(iter(self._pods.values())).start if self._pods else self._count
        while self._events and self._count - len(self._events) < oldest:
            self._forget_oldest()
