"""Compares one collection of the API server with the belief about it (cache or queue), while both change.

A list shows one moment, and the belief follows by a watch that is a moment behind, so under load the two always differ somewhere. So a
difference is a suspicion at first. A suspect is looked at again after a while, and counts only if neither side has moved: the API server
shows the same version, and the belief is the same object. Any event that arrived in between shows that the watch works for this object,
and clears it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from placewright.api.objects import ObjectMeta


class HasMetadata(Protocol):
    """An object with metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """The object's name, namespace, uid and resourceVersion."""


T = TypeVar("T", bound=HasMetadata)
T_contra = TypeVar("T_contra", bound=HasMetadata, contravariant=True)


class Belief(Protocol[T_contra]):
    """The belief about one collection, and its repairs. A key is a name or a uid, as the belief has it."""

    def keys(self) -> Iterable[str]:
        """Return the keys of all objects that are believed to exist."""

    def key(self, metadata: ObjectMeta) -> str:
        """Return the key of an object."""

    def now(self, key: str) -> object | None:
        """Return the belief about a key now; None when it is unknown. Each event makes it another object, by identity."""

    def place(self, key: str) -> tuple[str, str]:
        """Return the namespace and name of a believed object."""

    def excused(self, key: str) -> bool:
        """Whether a key is not to be compared: another part answers for it, or its object left while the comparison ran."""

    def belongs(self, item: T_contra) -> bool:
        """Whether an object that was read by its name is part of the collection."""

    def agrees(self, key: str, item: T_contra) -> bool:
        """Compare the belief with an object.

        Args:
            key: of the object.
            item: as the API server shows it.

        Returns:
            Whether they are equal.
        """

    def gone(self, key: str) -> None:
        """Repair: take an object for deleted, and count that."""

    def news(self, key: str, item: T_contra) -> None:
        """Repair: take an object as the API server shows it, and count that.

        Args:
            key: of the object.
            item: as the API server shows it.
        """


@dataclass(slots=True)
class SuspectedDifference:
    """A difference that is to be looked at again.

    Attributes:
        key: the belief's.
        namespace: of the object.
        name: of the object.
        believed: the belief at the first look.
        version: the resourceVersion that the API server showed, None for an object that it did not.
    """

    key: str
    namespace: str
    name: str
    believed: object | None
    version: str | None


class Comparison(Generic[T]):
    """The comparison of one collection.

    The caller calls `shown` for each object of a list and `listed` at its end, then `looked` for each of `suspects` until none is left.

    Attributes:
        suspects: the differences so far, by key.
    """

    def __init__(self, belief: Belief[T]) -> None:
        """Take the keys of the belief. The list must be requested after this."""
        self.suspects: dict[str, SuspectedDifference] = {}
        self._belief = belief
        self._unseen = set(belief.keys())

    def shown(self, item: T) -> None:
        """Compare an object of the list."""
        key = self._belief.key(item.metadata)
        self._unseen.discard(key)
        if not self._belief.excused(key) and not self._belief.agrees(key, item):
            meta = item.metadata
            self.suspects[key] = SuspectedDifference(key, meta.namespace, meta.name, self._belief.now(key), meta.resource_version)

    def unreadable(self, metadata: ObjectMeta) -> None:
        """Note an object of the list that cannot be decoded. The belief about it stays."""
        self._unseen.discard(self._belief.key(metadata))

    def listed(self) -> None:
        """End the list: every believed object that it did not show becomes a suspect."""
        for key in self._unseen:
            believed = self._belief.now(key)
            if believed is not None and not self._belief.excused(key):
                self.suspects[key] = SuspectedDifference(key, *self._belief.place(key), believed, None)
        self._unseen.clear()

    def looked(self, key: str, item: T | None) -> None:
        """Judge a suspect by a second look: it is repaired, cleared, or stays a suspect for another look.

        Args:
            key: of the suspect.
            item: as the API server shows it now; None where it has no such object.
        """
        suspect = self.suspects.pop(key, None)
        if suspect is None or self._belief.excused(key) or self._belief.now(key) is not suspect.believed:
            return
        if item is not None and not self._belief.belongs(item):
            item = None
        if item is None and suspect.believed is None:
            return
        if item is not None and self._belief.agrees(key, item):
            return
        version = None if item is None else item.metadata.resource_version
        if version != suspect.version:
            suspect.version = version
            self.suspects[key] = suspect
        elif item is None:
            self._belief.gone(key)
        else:
            self._belief.news(key, item)

    def key(self, metadata: ObjectMeta) -> str:
        """Return the key of an object with this metadata."""
        return self._belief.key(metadata)
