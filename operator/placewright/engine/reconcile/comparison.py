"""One collection compared with what is believed of it, without being misled by what changes meanwhile.

A list is a picture of a moment, and the belief follows through a watch that is a moment behind; under load the two always differ
somewhere. So a difference is only a suspicion at first. It is looked at again after a while, and counts only if neither side has moved:
the API server still shows the same version, and the belief is still the very object that it was. Any news that arrived in between shows
that the watch is not deaf to this object, and clears it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from placewright.api.objects import ObjectMeta


class Described(Protocol):
    """Anything with metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, namespace, uid, resourceVersion."""


T = TypeVar("T", bound=Described)
T_contra = TypeVar("T_contra", bound=Described, contravariant=True)


class Belief(Protocol[T_contra]):
    """What is believed of one collection, and how it is mended. Keys are those under which the belief knows its objects."""

    def keys(self) -> Iterable[str]:
        """All that is believed to exist."""

    def key(self, metadata: ObjectMeta) -> str:
        """The key of an object."""

    def now(self, key: str) -> object | None:
        """What is believed of it at the moment, None when it is unknown. Another object each time that news of it came."""

    def place(self, key: str) -> tuple[str, str]:
        """Namespace and name of what is believed."""

    def excused(self, key: str) -> bool:
        """Somebody else answers for it, or it left while the comparison ran."""

    def belongs(self, item: T_contra) -> bool:
        """Whether an object read by its name is part of the collection."""

    def agrees(self, key: str, item: T_contra) -> bool:
        """Whether what is believed is what the API server shows."""

    def gone(self, key: str) -> None:
        """Take it for deleted, and count that."""

    def news(self, key: str, item: T_contra) -> None:
        """Take it as the API server shows it, and count that."""


@dataclass(slots=True)
class Suspect:
    """A difference that is to be looked at again.

    Attributes:
        key: the belief's.
        namespace, name: where the API server has it, or had it.
        believed: what was believed then.
        version: the resourceVersion that the API server showed, None for an object that it did not.
    """

    key: str
    namespace: str
    name: str
    believed: object | None
    version: str | None


class Comparison(Generic[T]):
    """`shown` for each object of a list, `listed` at its end; then `looked` for each of `suspects`, until none is left.

    Attributes:
        suspects: what differs so far, by key.
    """

    def __init__(self, belief: Belief[T]) -> None:
        """To be made before the list is asked for."""
        self.suspects: dict[str, Suspect] = {}
        self._belief = belief
        self._unseen = set(belief.keys())

    def shown(self, item: T) -> None:
        """An object of the list."""
        key = self._belief.key(item.metadata)
        self._unseen.discard(key)
        if not self._belief.excused(key) and not self._belief.agrees(key, item):
            meta = item.metadata
            self.suspects[key] = Suspect(key, meta.namespace, meta.name, self._belief.now(key), meta.resource_version)

    def unreadable(self, metadata: ObjectMeta) -> None:
        """An object of the list that does not have the shape of its kind: what is believed of it stays."""
        self._unseen.discard(self._belief.key(metadata))

    def listed(self) -> None:
        """The list is complete: what it did not show is suspected of not existing."""
        for key in self._unseen:
            believed = self._belief.now(key)
            if believed is not None and not self._belief.excused(key):
                self.suspects[key] = Suspect(key, *self._belief.place(key), believed, None)
        self._unseen.clear()

    def looked(self, key: str, item: T | None) -> None:
        """What a second look at a suspect showed; None: there is no such object. It is mended, cleared, or to be looked at once more."""
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
        """Under which a suspect of this description would be found."""
        return self._belief.key(metadata)
