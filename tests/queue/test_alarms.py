from __future__ import annotations

from typing import Any

from placewright.framework.events import Action, ClusterEvent
from placewright.queue.events import MOST_ALARMS, Alarms


class Bell:
    """A clock, and what the alarms told."""

    def __init__(self) -> None:
        self.now = 100.0
        self.told: list[Any] = []
        self.alarms = Alarms(lambda: self.now, lambda event, old, new: self.told.append((event.label, old, new)))


def test_alarms_ring_in_the_order_of_their_moments_and_none_before_its_moment() -> None:
    bell = Bell()
    for seconds in (30.0, 10.0, 20.0):
        bell.alarms.after(seconds, lambda seconds=seconds: bell.told.append(seconds))  # type: ignore[misc]
    assert bell.alarms.next == 110.0
    bell.now = 109.9
    assert bell.alarms.ring() == 0
    bell.now = 120.0
    assert bell.alarms.ring() == 2
    assert bell.told == [10.0, 20.0]
    assert (bell.alarms.next, len(bell.alarms)) == (130.0, 1)


def test_an_event_happens_when_its_alarm_rings_with_its_subject_as_the_object_after() -> None:
    bell = Bell()
    bell.alarms.wake_after(5.0, ClusterEvent("Seats", Action.UPDATE, "SeatsFree"), "row 3")
    bell.now = 105.0
    bell.alarms.ring()
    assert bell.told == [("SeatsFree", None, "row 3")]


def test_an_act_that_sets_an_alarm_for_now_has_it_rung_in_the_same_call() -> None:
    bell = Bell()
    bell.alarms.after(1.0, lambda: bell.alarms.after(0.0, lambda: bell.told.append("second")))
    bell.now = 101.0
    assert bell.alarms.ring() == 2
    assert bell.told == ["second"]
    assert bell.alarms.next is None


def test_there_are_never_more_alarms_than_the_bound() -> None:
    bell = Bell()
    for _ in range(MOST_ALARMS + 10):
        bell.alarms.after(1.0, lambda: None)
    assert len(bell.alarms) == MOST_ALARMS
