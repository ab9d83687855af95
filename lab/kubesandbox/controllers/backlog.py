"""A controller's queue of objects: noted while a write is answered, processed a moment later, in batches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final

from kubesandbox.resources import GroupResource
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.store import Store

#: Objects of each type handled in one go, before requests get their turn again.
BATCH: Final = 200
#: Namespace and name; the namespace is empty for cluster-scoped objects.
Key = tuple[str, str]
_logger = logging.getLogger(__name__)


class Backlog:
    """Objects by name, each once, in the order in which they came up.

    Objects of these types are stored as they come: what one of them lacks is logged, and does not stop the others.

    Args:
        store: what each object is like when its turn comes; one that is gone by then is passed over.
        syncs: what a controller does with an object, by type; the types take turns in this order.
    """

    def __init__(self, store: Store, syncs: Mapping[GroupResource, Callable[[Object], None]]) -> None:
        self._store = store
        self._syncs = syncs
        #: Dicts as sets that keep their order.
        self._due: dict[GroupResource, dict[Key, None]] = {each: {} for each in syncs}
        self._working = False

    def add(self, resource: GroupResource, keys: Iterable[Key]) -> None:
        """Look at these objects soon."""
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
