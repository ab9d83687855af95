"""Every field of a decoded kind by its path, with who may write it and what is declared beside it; and an object with one field filled."""

from __future__ import annotations

import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from placewright.api.objects import ContainerPort, Volume
from placewright.api.writers import Counted, Writer

TEXT, LIST, MAP = "text", "list", "map"
#: Elements that a count counts, by struct; others say nothing.
ELEMENTS: dict[type, dict[str, Any]] = {ContainerPort: {"hostPort": 1}, Volume: {"persistentVolumeClaim": {"claimName": "c"}}}
#: What surrounds the next step of a path: nothing, a list of one, or a map of one.
_PLAIN, _IN_LIST, _IN_MAP = "", "[]", "{}"


@dataclass(frozen=True)
class Leaf:
    """A text, list or map.

    Attributes:
        path: names in JSON, each with what surrounds the next one.
        shape: text, list or map.
        writer: None where no field above it names one.
        declared: annotations of the field itself.
        section: annotations of the field at the top level.
        element: of a list or a map, as JSON.
    """

    path: tuple[tuple[str, str], ...]
    shape: str
    writer: Writer | None
    declared: tuple[Any, ...]
    section: tuple[Any, ...]
    element: Any = None

    def __str__(self) -> str:
        return ".".join(name + around for name, around in self.path) + ("[]" if self.shape == LIST else "")

    def body(self, number: int) -> dict[str, Any]:
        """The JSON of an object in which only this field has something: so many characters, elements or entries."""
        # Digits may stand for an amount, too.
        value: Any = "1" * number
        if self.shape == LIST:
            value = [self.element] * number
        elif self.shape == MAP:
            value = {f"example.com/{each:08}": self.element for each in range(number)}
        for name, around in reversed(self.path):
            value = {name: [value] if around == _IN_LIST else {"k": value} if around == _IN_MAP else value}
        found: dict[str, Any] = value
        return found


def leaves(kind: type[Any]) -> Iterator[Leaf]:
    """Each text, list and map of a kind, in all structs that it contains."""
    for hint, encoded in _fields(kind):
        section = getattr(hint, "__metadata__", ())
        yield from _walk(hint, Leaf(((encoded, _PLAIN),), "", _writer(section), (), section))


def _fields(kind: type[Any]) -> Iterator[tuple[Any, str]]:
    """(type, name in JSON) of each field of a struct."""
    hints = get_type_hints(kind, include_extras=True)
    return ((hints[field.name], field.encode_name) for field in msgspec.structs.fields(kind))


def _writer(declared: tuple[Any, ...]) -> Writer | None:
    return next((each for each in declared if isinstance(each, Writer)), None)


def _walk(hint: Any, at: Leaf) -> Iterator[Leaf]:
    """The leaves of one type, at a place."""
    if get_origin(hint) is Annotated:
        own = hint.__metadata__
        yield from _walk(hint.__origin__, replace(at, declared=(*own, *at.declared), writer=_writer(own) or at.writer))
    elif get_origin(hint) in (Union, types.UnionType):
        for each in get_args(hint):
            yield from _walk(each, at)
    elif get_origin(hint) in (tuple, list, dict):
        shape, around = (MAP, _IN_MAP) if get_origin(hint) is dict else (LIST, _IN_LIST)
        element = get_args(hint)[shape == MAP]
        yield replace(at, shape=shape, element=_element(element))
        yield from _inside(element, at, around)
    elif isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        for inner, encoded in _fields(hint):
            yield from _walk(inner, replace(at, path=(*at.path, (encoded, _PLAIN)), declared=()))
    elif hint is str or getattr(hint, "__supertype__", None) is str:
        yield replace(at, shape=TEXT)
    elif hint not in (int, float, bool, type(None), msgspec.Raw, object, Any) and get_origin(hint) is not Literal:
        raise TypeError(f"{at}: a field of a type that this walk does not know: {hint}")


def _inside(hint: Any, at: Leaf, around: str) -> Iterator[Leaf]:
    """The leaves of a list's or map's elements."""
    *before, (name, _) = at.path
    yield from _walk(hint, replace(at, path=(*before, (name, around)), declared=()))


def _element(hint: Any) -> Any:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return ELEMENTS.get(hint, {})
    return {} if hint in (msgspec.Raw, object) else "1"


def names_of(declared: tuple[Any, ...]) -> tuple[str, ...]:
    """The counts of a pod that are declared."""
    return tuple(name for each in declared if isinstance(each, Counted) for name in each.names)
