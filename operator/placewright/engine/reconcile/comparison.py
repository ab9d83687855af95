"""Compares one collection of the API server with the belief about it (cache or queue), while both change.

A list shows one moment, and the belief follows by a watch that is a moment behind. So under load the two always differ somewhere, and a
difference is a suspicion at first. A suspect is looked at again after a while. It counts only if neither side has moved: the API server
shows the same version, and the belief is the same object. An event in between shows that the watch works for this object, and clears it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, NamedTuple, Protocol, TypeVar

from placewright.api.objects import ObjectMeta
from placewright.scheduler.eventhandlers import ClusterEventHandlers


class HasMetadata(Protocol):
    """An object with metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's name, namespace, uid and resourceVersion."""


T = TypeVar("T", bound=HasMetadata)


class SuspectedDifference(NamedTuple):
    """A difference that is to be looked at again.

    Attributes:
        metadata: metadata of the object, with its namespace and name.
        believed: the belief at the first look; None for an unknown object.
        version: the resourceVersion that the API server showed; None for an object that it did not show.
    """

    metadata: ObjectMeta
    believed: object | None
    version: str | None


class Comparison(ABC, Generic[T]):
    """The comparison of one collection. Its subclasses know the belief, and how to repair it.

    The caller calls `shown` for each object of a list, and `listed` at its end. Then it calls `looked` for each suspect until none is left.

    Attributes:
        path: path of the list.
        selector: field selector of the list; empty for all objects.
        kind: the struct that objects are decoded into.
        suspects: the differences so far, by key.
    """

    path: str
    selector: str = ""
    kind: type[T]

    def __init__(self, event_handlers: ClusterEventHandlers, known: Iterable[str]) -> None:
        """Take the keys of the belief. The list must be requested after this.

        Args:
            event_handlers: take repairs, and know the objects that left while the comparison ran.
            known: the keys of all objects that are believed to exist.
        """
        self.suspects: dict[str, SuspectedDifference] = {}
        self._event_handlers = event_handlers
        self._repairs = event_handlers.repairs
        self._unseen = set(known)

    def shown(self, item: T) -> None:
        """Compare an object of the list."""
        key = self.key(item.metadata)
        self._unseen.discard(key)
        if not self.excused(key) and not self.agrees(key, item):
            self.suspects[key] = SuspectedDifference(item.metadata, self.now(key), item.metadata.resource_version)

    def unreadable(self, metadata: ObjectMeta) -> None:
        """Note an object of the list that cannot be decoded. The belief about it stays."""
        self._unseen.discard(self.key(metadata))

    def listed(self) -> None:
        """End the list: every believed object that it did not show becomes a suspect."""
        for key in self._unseen:
            believed = self.now(key)
            if believed is not None and not self.excused(key):
                self.suspects[key] = SuspectedDifference(believed.metadata, believed, None)
        self._unseen.clear()

    def looked(self, key: str, item: T | None) -> None:
        """Judge a suspect by a second look: it is repaired, cleared, or stays a suspect for another look.

        Args:
            key: key of the suspect.
            item: the object as the API server shows it now; None if it has no such object.
        """
        suspect = self.suspects.pop(key, None)
        if suspect is None or self.excused(key) or self.now(key) is not suspect.believed:
            return
        if item is not None and not self.belongs(item):
            item = None
        settled = suspect.believed is None if item is None else self.agrees(key, item)
        if settled:
            return
        version = None if item is None else item.metadata.resource_version
        if version != suspect.version:
            self.suspects[key] = suspect._replace(version=version)
        elif item is None:
            self.gone(key)
        else:
            self.news(key, item)

    def key(self, metadata: ObjectMeta) -> str:
        """Return the key of an object."""
        return metadata.uid

    def excused(self, key: str) -> bool:
        """Tell whether the object left while the comparison ran. A list that was requested earlier shows it still."""
        return self._event_handlers.has_departed(key)

    @abstractmethod
    def now(self, key: str) -> T | None:
        """Return the object of the last event; None if the key is unknown."""

    @abstractmethod
    def belongs(self, item: T) -> bool:
        """Tell whether an object that was read by its name is part of the collection."""

    @abstractmethod
    def readable(self, item: T) -> bool:
        """Tell whether the quantities of an object can be read. The watch that showed it first has logged an object that cannot."""

    def agrees(self, key: str, item: T) -> bool:
        """Compare the belief with every decoded field of an object, version included. An unreadable object keeps its last good state."""
        return self.now(key) == item or not self.readable(item)

    @abstractmethod
    def gone(self, key: str) -> None:
        """Take an object for deleted, and count the repair."""

    @abstractmethod
    def news(self, key: str, item: T) -> None:
        """Take a readable object as the API server shows it, and count the repair."""
