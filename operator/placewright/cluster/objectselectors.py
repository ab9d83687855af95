"""Compiles the selector of an object once for a version of the object: of claims, owners of pods, and disruption budgets."""

from __future__ import annotations

from typing import Final, NamedTuple

from placewright.api.boundedcache import BoundedCache
from placewright.api.bytecount import bytes_of
from placewright.api.objects import LabelSelector, ObjectMeta
from placewright.api.selectors import Selector, SelectorError, compile_label_selector

#: Bytes of all kept selectors of a cluster. A usual one takes some 600 bytes, the largest that an object may have some 400 KiB.
_MOST_BYTES: Final = 32 * 2**20


class _Compiled(NamedTuple):
    """A selector as written, and what it means: the text of the error if it does not parse."""

    written: LabelSelector
    meaning: Selector | str


class ObjectSelectors:
    """The compiled selectors of one cluster's objects, bounded in bytes."""

    def __init__(self) -> None:
        self._known: BoundedCache[tuple[type[object], str, str], _Compiled] = BoundedCache(_MOST_BYTES)

    @property
    def nbytes(self) -> int:
        """Bytes that are taken."""
        return self._known.nbytes

    def forget(self, kind: type[object], metadata: ObjectMeta) -> None:
        """Drop the selector of an object that is gone."""
        self._known.pop((kind, metadata.namespace, metadata.name))

    def of(self, kind: type[object], metadata: ObjectMeta, written: LabelSelector) -> Selector:
        """Compile a selector, or return it as it was compiled before.

        Raises:
            SelectorError: the API server would refuse it.
        """
        key = (kind, metadata.namespace, metadata.name)
        known = self._known.get(key)
        # Decoded objects never change, so identity is enough to tell whether this version was compiled.
        if known is None or known.written is not written:
            try:
                meaning: Selector | str = compile_label_selector(written)
            except SelectorError as problem:
                meaning = str(problem)
            known = _Compiled(written, meaning)
            self._known.put(key, known, bytes_of((key, known), self._known.largest))
        if isinstance(known.meaning, str):
            raise SelectorError(known.meaning)
        return known.meaning
