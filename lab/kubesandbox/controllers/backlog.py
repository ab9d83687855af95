"""A controller's queue of objects. A write adds its object, and the controller handles it a moment later, in batches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final

from kubesandbox.resources import GroupResource
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.store import Store

#: Objects of each type in one batch, after which requests get their turn again.
BATCH: Final = 200
#: Namespace and name, with an empty namespace for cluster-scoped objects.
Key = tuple[str, str]
_logger = logging.getLogger(__name__)


class Backlog:
    """Objects by name, each once, in the order in which they were added.

    Objects are stored unchecked, so the failure for one is logged, and does not stop the others.

    Args:
        store: store with the current state of each object; an object that is gone is skipped.
        syncs: work of the controller by type; the types take turns in this order.
    """

    def __init__(self, store: Store, syncs: Mapping[GroupResource, Callable[[Object], None]]) -> None:
        self._store = store
        self._syncs = syncs
        #: Dicts that serve as ordered sets.
        self._due: dict[GroupResource, dict[Key, None]] = {each: {} for each in syncs}
        self._working = False

    def add(self, resource: GroupResource, keys: Iterable[Key]) -> None:
        """Handle these objects soon."""
        self._due[resource].update(dict.fromkeys(keys))
        self._wake()

    def _wake(self) -> None:
        if not self._working and any(self._due.values()):
            self._working = True
            asyncio.get_running_loop().call_soon(self._work)

    def _work(self) -> None:
        for resource, due in self._due.items():
            for key in list(islice(due, BATCH)):
                del due[key]
                self._sync(resource, key)
        self._working = False
        self._wake()

    def _sync(self, resource: GroupResource, key: Key) -> None:
        stored = self._store.get(resource, *key)
        try:
            if stored is not None:
                self._syncs[resource](stored.object)
        except (ApiError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as problem:
            _logger.warning("%s %s is left as it is: %r", resource[1], "/".join(filter(None, key)), problem)
