"""An index from labels to selectors: which of many selectors could match these labels, without asking each.

Used from both sides of the same question: which counts a new group of pods belongs to, and which existing pods' terms mean a newcomer.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from placewright.api.selectors import Selector

T = TypeVar("T", bound=Hashable)

#: A selector that would need more buckets than this is kept where every label set comes past: walking buckets costs, too.
_MOST_BUCKETS: Final = 64

_Pair = tuple[str, str]
#: A namespace (None: all of them), and a label with its value (None: whatever the labels are).
Place = tuple[str | None, _Pair | None]


def places_met(namespace: str, labels: Iterable[_Pair]) -> list[Place]:
    """Every place that a label set comes past: it meets each selector that matches it at one of these, wherever `places_of` puts it."""
    places: list[Place] = [(namespace, None), (None, None)]
    for pair in labels:
        places.append((namespace, pair))
        places.append((None, pair))
    return places


def places_of(namespaces: Collection[str] | None, selector: Selector) -> list[Place]:
    """Few places at which every label set that the selector matches comes past; `namespaces` None stands for all."""
    spaces = _spaces(namespaces)
    return min(_by_requirement(spaces, selector), key=len, default=[(space, None) for space in spaces])


def _spaces(namespaces: Collection[str] | None) -> Collection[str | None]:
    return (None,) if namespaces is None or len(namespaces) > _MOST_BUCKETS else namespaces


def _by_requirement(spaces: Collection[str | None], selector: Selector) -> Iterator[list[Place]]:
    """For each requirement that names values, and not too many of them: the places of these."""
    for requirement in selector.expressions:
        if requirement.operator == "In" and len(requirement.values) * len(spaces) <= _MOST_BUCKETS:
            yield [(space, (requirement.key, value)) for space in spaces for value in requirement.values]


class _Bucket(Generic[T]):
    """The items of one place; `stamp` is never the same for two contents."""

    __slots__ = ("items", "stamp")

    def __init__(self) -> None:
        self.items: dict[T, None] = {}
        self.stamp = 0


class SelectorIndex(Generic[T]):
    """Items under what they select: namespaces, and labels.

    Invariant: each item is under one of its `In` requirements, in one bucket for each of its namespaces and the requirement's values; or,
    without such a requirement, in one bucket for each namespace. A label set comes past each of its labels and past the bucket for any
    labels, in its namespace and in that for all. So it meets every item whose selector matches it, each once; of the others it
    meets those that agree with it in one label, or name none.

    Attributes:
        version: grows with every item that comes or goes.
    """

    def __init__(self) -> None:
        self.version = 0
        self._buckets: dict[Place, _Bucket[T]] = {}
        self._places: dict[T, list[Place]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, item: T, namespaces: Collection[str] | None, selector: Selector) -> None:
        """Put an item that is not here yet under its selector; `namespaces` None stands for all."""
        places = self._places[item] = self._rarest(namespaces, selector)
        self.version += 1
        for place in places:
            bucket = self._buckets.get(place)
            if bucket is None:
                bucket = self._buckets[place] = _Bucket()
            bucket.items[item] = None
            bucket.stamp = self.version

    def discard(self, item: T) -> None:
        """Take an item away; one that is not here is no error."""
        places = self._places.pop(item, ())
        self.version += 1
        for place in places:
            bucket = self._buckets[place]
            del bucket.items[item]
            bucket.stamp = self.version
            if not bucket.items:
                del self._buckets[place]

    def is_broad(self, item: T) -> bool:
        """Whether the item is met by all labels of its namespaces, or of all namespaces: its selector names no value of a label."""
        return any(pair is None for _, pair in self._places[item])

    def meeting(self, namespace: str, labels: Iterable[_Pair]) -> Iterator[T]:
        """Every item whose selector may match these labels in this namespace, once."""
        for bucket in self._met(namespace, labels):
            yield from bucket.items

    def stamps(self, namespace: str, labels: Iterable[_Pair]) -> tuple[int, ...]:
        """For the same labels in the same order: equal as long as the same items are met."""
        return tuple([bucket.stamp for bucket in self._met(namespace, labels)])

    def _met(self, namespace: str, labels: Iterable[_Pair]) -> list[_Bucket[T]]:
        buckets = self._buckets
        return [bucket for place in places_met(namespace, labels) if (bucket := buckets.get(place)) is not None]

    def _rarest(self, namespaces: Collection[str] | None, selector: Selector) -> list[Place]:
        """The places of the requirement under which the fewest items are yet."""
        spaces = _spaces(namespaces)
        return min(_by_requirement(spaces, selector), key=self._crowd, default=[(space, None) for space in spaces])

    def _crowd(self, places: list[Place]) -> int:
        return len(places) + sum(len(bucket.items) for place in places if (bucket := self._buckets.get(place)) is not None)
