"""Patches objects for plugins that declare it.

A merge patch sets the same fields however often it is sent, so it is repeated after a lost answer. A plugin that must not undo another
client's change puts the `resourceVersion` that it saw into the patch. Then the API server refuses it with 409, and it is sent once: a
repetition would be refused because of its own first success. The writer refuses requests of a replica that does not lead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from placewright.api.errors import PatchError
from placewright.kube.errors import RequestError
from placewright.kube.ratelimit import Traffic
from placewright.kube.writers.places import RequestOwner
from placewright.kube.writers.writer import ApiWriter


class HttpObjectPatcher(ApiWriter):
    """Patches objects on the API server; implements the framework's port `ObjectPatcher`."""

    TRAFFIC: ClassVar[Traffic] = Traffic.ROOM
    ERROR: ClassVar[type[Exception]] = PatchError

    async def patch(self, path: str, body: Mapping[str, Any], namespace: str) -> None:
        """Send a merge patch.

        Raises:
            PatchError: the server refused, or did not answer.
        """
        try:
            attempts = 1 if "resourceVersion" in (body.get("metadata") or {}) else None
            await self._send(lambda: self.client.patch(path, self._guarded(body)), attempts=attempts, whose=RequestOwner(namespace))
        except RequestError as problem:
            raise PatchError(f"patching {path}: {problem}") from problem
