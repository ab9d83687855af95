"""The two private names of Kopf that this package replaces, and the check that each must pass first.

| name in Kopf | replaced by | reason (measured: decision 11) |
|---|---|---|
| `infinite_watch` of `kopf._cogs.clients.watching` | `directdelivery.DirectDelivery` | Kopf's workers cost more than the handler |
| `json` of `kopf._cogs.clients.api` | `watchlines.MsgspecJson` | msgspec decodes a watch line in half the time |

No other module imports a private module of Kopf (`tests/handlers/test_kopfparts.py`). A name is replaced while an operator runs in the
process, and then put back. A Kopf whose names have moved keeps them: each replacement is checked first, and Kopf's ordinary way serves
where the check fails. `docs/upstream/kopf.md` proposes public options for both; with them in Kopf this module goes away.
"""

from __future__ import annotations

import contextlib
import inspect
import json
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final

try:
    from kopf._cogs.clients import api as _api
    from kopf._cogs.clients import watching as _watching
except ImportError:  # pragma: no cover - a Kopf with other modules: both checks fail, and nothing is replaced
    _api = _watching = None  # type: ignore[assignment]


class KopfPart:
    """One private name in a module of Kopf, replaced while an operator uses the replacement.

    Replicas of one process, as in tests, share the replacement, so it counts its users.

    Args:
        module: the module of Kopf; None if this Kopf has no such module.
        name: the name in that module.
        is_known: judges whether the value of the name is what the replacement was written for.
    """

    def __init__(self, module: ModuleType | None, name: str, is_known: Callable[[Any], bool]) -> None:
        self.module, self.name = module, name
        self._is_known = is_known
        self._users = 0

    def replaceable(self) -> bool:
        """Whether Kopf has this part as the replacement expects it, or it is replaced already."""
        return self._users > 0 or self._is_known(getattr(self.module, self.name, None))

    @contextlib.contextmanager
    def replaced(self, make: Callable[[Any], Any]) -> Iterator[bool]:
        """Put a replacement in the name's place for as long as the block runs, if the part is `replaceable`.

        Args:
            make: builds the replacement from Kopf's own value. A second user gets the replacement of the first.

        Yields:
            Whether the part is replaced.
        """
        if not self.replaceable():
            yield False
            return
        if not self._users:
            self._kopfs = getattr(self.module, self.name)
            setattr(self.module, self.name, make(self._kopfs))
        self._users += 1
        try:
            yield True
        finally:
            self._users -= 1
            if not self._users:
                setattr(self.module, self.name, self._kopfs)


def _is_stream_of_events(value: Any) -> bool:
    return inspect.isasyncgenfunction(value) and "resource" in inspect.signature(value).parameters


#: The generator of one resource's events, which Kopf's watcher reads: `infinite_watch(settings=, resource=, namespace=, ...)`.
STREAM: Final = KopfPart(_watching, "infinite_watch", _is_stream_of_events)
#: The standard library's module, by which Kopf decodes each line of a watch.
JSON: Final = KopfPart(_api, "json", lambda value: value is json)
