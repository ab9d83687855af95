"""Queueing hints made of a test of one object. Most changes help a rejected pod for one of these few reasons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from placewright.api.pods import PodInfo
from placewright.framework.assignedpods import is_itself
from placewright.framework.events import Action, ClusterEventWithHint, EventResource, QueueingHint, QueueingHintFn, event_with_hint

O = TypeVar("O")  # noqa: E741 - an object


def came_to_suit(kind: type[O], suits: Callable[[PodInfo, O], bool]) -> QueueingHintFn[O]:
    """Make a hint: queue if the object suits the pod now, and it was not there or did not suit before."""

    def hint(pod: PodInfo, old: O | None, new: O | None) -> QueueingHint:
        return QueueingHint.when(isinstance(new, kind) and suits(pod, new) and (old is None or not suits(pod, old)))

    return hint


def was_in_the_way(kind: type[O], hinders: Callable[[PodInfo, O], bool]) -> QueueingHintFn[O]:
    """Make a hint: queue if the object, as it was before the event, may have kept the pod out."""

    def hint(pod: PodInfo, old: O | None, _new: O | None) -> QueueingHint:
        return QueueingHint.when(isinstance(old, kind) and hinders(pod, old))

    return hint


def changed_in(kind: type[O], part: Callable[[O], Any]) -> QueueingHintFn[O]:
    """Make a hint: queue if the object is new, or this part of it changed."""

    def hint(_pod: PodInfo, old: O | None, new: O | None) -> QueueingHint:
        return QueueingHint.when(not isinstance(old, kind) or not isinstance(new, kind) or part(old) != part(new))

    return hint


def own_change(action: Action, helps: Callable[[PodInfo | None, PodInfo], bool]) -> ClusterEventWithHint[PodInfo]:
    """Declare changes of the rejected pod itself: queue if the change from the old pod to the new one helps."""

    def hint(pod: PodInfo, old: PodInfo | None, new: PodInfo | None) -> QueueingHint:
        return QueueingHint.when(isinstance(new, PodInfo) and new.uid == pod.uid and helps(old, new))

    return event_with_hint(EventResource.POD, action, hint, is_itself)
