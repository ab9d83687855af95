"""An index from labels to selectors: which of many selectors could match these labels, without asking each (decision 31).

It serves the same question from both sides: which counts a new group of pods belongs to, and which existing pods' terms mean a
newcomer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from placewright.api.counts import add_count
from placewright.api.selectors import Selector

T = TypeVar("T", bound=Hashable)

#: Most buckets of a selector. A selector that would need more goes into a bucket that every label set visits.
_MOST_BUCKETS: Final = 64

_Pair = tuple[str, str]
#: A bucket's key: a namespace (None for all), and a label with its value (None for any value; without a label, for any labels).
Place = tuple[str | None, tuple[str, str | None] | None]


def places_met(namespace: str, labels: Iterable[_Pair]) -> list[Place]:
    """Return the buckets that a label set visits. Each selector that matches the labels is in one of them, whichever `places_of` chose."""
    places: list[Place] = [(namespace, None), (None, None)]
    for pair in labels:
        places.append((namespace, pair))
        places.append((None, pair))
    return places


def places_of(namespaces: Collection[str] | None, selector: Selector) -> list[Place]:
    """Return a few buckets. Every label set that the selector matches visits one of them.

    Returns:
        Keys of buckets, as few as one requirement allows.
    """
    spaces = _spaces(namespaces)
    return min(_by_requirement(spaces, selector), key=len, default=[(space, None) for space in spaces])


def _spaces(namespaces: Collection[str] | None) -> Collection[str | None]:
    return (None,) if namespaces is None or len(namespaces) > _MOST_BUCKETS else namespaces


def _by_requirement(spaces: Collection[str | None], selector: Selector) -> Iterator[list[Place]]:
    """Yield the buckets of the values of each requirement that names values, and not too many."""
    for requirement in selector.expressions:
        if requirement.operator == "In" and len(requirement.values) * len(spaces) <= _MOST_BUCKETS:
            yield [(space, (requirement.key, value)) for space in spaces for value in requirement.values]


class _Bucket(Generic[T]):
    """The items of one bucket. `stamp` never repeats for other contents."""

    __slots__ = ("items", "stamp")

    def __init__(self) -> None:
        self.items: dict[T, None] = {}
        self.stamp = 0


class SelectorIndex(Generic[T]):
    """Items under their selections: namespaces and labels.

    Invariant: each item is under one of its `In` requirements. There it is in a bucket for each namespace and value. Without
    such a requirement it is under a key that it demands. Without a key it is in a bucket for each namespace. A label set visits the buckets
    of its labels, of their keys, and for any labels. It does so in its own namespace and in the one for all. So it meets every item
    whose selector matches it, once. The other items that it meets share a label or a key with it, or demand no key.

    Attributes:
        version: grows with every item that comes or goes.
    """

    def __init__(self) -> None:
        self.version = 0
        self._buckets: dict[Place, _Bucket[T]] = {}
        self._places: dict[T, list[Place]] = {}
        #: Keys of labels under which items are with any value, and how many places.
        self._keys: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._places)

    def add(self, item: T, namespaces: Collection[str] | None, selector: Selector) -> None:
        """Add an item that is not in the index."""
        places = self._places[item] = self._rarest(namespaces, selector)
        self.version += 1
        for place in places:
            bucket = self._buckets.get(place)
            if bucket is None:
                bucket = self._buckets[place] = _Bucket()
            bucket.items[item] = None
            self._count_key(place, 1)
            # The index's version is a stamp that no other content of the bucket ever had.
            bucket.stamp = self.version

    def discard(self, item: T) -> None:
        """Remove an item; harmless for one that is not in the index."""
        places = self._places.pop(item, ())
        self.version += 1
        for place in places:
            bucket = self._buckets[place]
            del bucket.items[item]
            self._count_key(place, -1)
            bucket.stamp = self.version
            if not bucket.items:
                del self._buckets[place]

    def is_broad(self, item: T) -> bool:
        """Tell whether an item is met by label sets with any values.

        Returns:
            True when its selector names no value of a label, or too many.
        """
        return any(pair is None or pair[1] is None for _, pair in self._places[item])

    def meeting(self, namespace: str, labels: Collection[_Pair]) -> Iterator[T]:
        """Iterate over every item whose selector may match these labels, each once.

        Returns:
            Items; the caller tests the selectors.
        """
        for bucket in self._met(namespace, labels):
            yield from bucket.items

    def stamps(self, namespace: str, labels: Collection[_Pair]) -> tuple[int, ...]:
        """Return a value that stays equal as long as `meeting` gives the same items.

        Returns:
            One stamp for each bucket with items.
        """
        return tuple([bucket.stamp for bucket in self._met(namespace, labels)])

    def _met(self, namespace: str, labels: Collection[_Pair]) -> list[_Bucket[T]]:
        buckets, places = self._buckets, places_met(namespace, labels)
        if self._keys:
            places += [(space, (key, None)) for key, _ in labels if key in self._keys for space in (namespace, None)]
        return [bucket for place in places if (bucket := buckets.get(place)) is not None]

    def _rarest(self, namespaces: Collection[str] | None, selector: Selector) -> list[Place]:
        """Return the buckets of the requirement that has the fewest items so far. Charts give all their pods some label in common."""
        spaces = _spaces(namespaces)
        demanded = next((each.key for each in selector.expressions if each.operator in ("In", "Exists")), None)
        any_value: list[Place] = [(space, None if demanded is None else (demanded, None)) for space in spaces]
        return min(_by_requirement(spaces, selector), key=self._crowd, default=any_value)

    def _count_key(self, place: Place, number: int) -> None:
        pair = place[1]
        if pair is not None and pair[1] is None:
            add_count(self._keys, pair[0], number)

    def _crowd(self, places: list[Place]) -> int:
        return len(places) + sum(len(bucket.items) for place in places if (bucket := self._buckets.get(place)) is not None)
