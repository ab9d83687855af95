"""What a plugin's hint is told is of the type that the hint declares: the struct of the kind of object that the event is about."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from types import NoneType
from typing import Any, Final

import pytest

from framework.makers import Scene
from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.api.turnedaway import Owner
from placewright.cluster.objects import GROUP_KINDS, KINDS
from placewright.framework.events import ClusterEventWithHint, EventResource, always
from placewright.plugins.catalog import in_tree

#: By kind of object, the classes that event handlers tell of.
TOLD: Final[dict[EventResource, set[type[Any]]]] = {
    **{EventResource(kind.__name__): {kind} for kind in KINDS if kind.__name__ in set(EventResource)},
    **{resource: {PodInfo} for resource in (EventResource.POD, EventResource.ASSIGNED_POD, EventResource.UNSCHEDULED_POD)},
    EventResource.NODE: {Node},
    EventResource.POD_GROUP: set(GROUP_KINDS),
}
#: Of events that a plugin raises itself: the classes of what is told as the object before, and after.
OWN: Final[dict[str, list[set[type[Any]]]]] = {"NodeRejections": [set(), {Owner}], "NodeStartRate": [set(), set()]}


def interests() -> Iterator[tuple[str, ClusterEventWithHint]]:
    for name, kind in in_tree().items():
        yield from ((name, each) for each in kind(kind.Args(), Scene().handle()).events() or ())


def declared(function: Callable[..., Any]) -> list[set[type[Any]]]:
    """The classes of the object before and after, without None; those that come last."""
    hints = typing.get_type_hints(function)
    names = list(inspect.signature(function).parameters)[-2:]
    found = [set(typing.get_args(hints[name]) or (hints[name],)) - {NoneType} for name in names]
    kind = inspect.getclosurevars(function).nonlocals.get("kind")  # a hint that `plugins.shared.hints` made for this class
    return [{kind if isinstance(each, typing.TypeVar) else each for each in classes} for classes in found]


def test_every_kind_of_object_has_a_class() -> None:
    assert set(TOLD) == set(EventResource) - {EventResource.ANY}


@pytest.mark.parametrize(("plugin", "each"), list(interests()), ids=lambda value: str(getattr(value, "event", value)))
def test_a_hint_takes_the_objects_of_its_event(plugin: str, each: ClusterEventWithHint) -> None:
    told = OWN[plugin] if each.event.resource == plugin else [TOLD[each.event.resource]] * 2
    hint = [] if each.hint is always else declared(each.hint)
    keys = [] if each.keys is None else declared(each.keys.of_event)
    assert all(known <= classes for function in (hint, keys) for known, classes in zip(told, function, strict=False)), plugin
    narrow = [] if each.narrow is None else declared(each.narrow)
    assert all(classes == {PodInfo} for classes in narrow)
