"""The paths under which a real API server keeps objects of a template's kind. The server's own discovery tells them."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError
from placewright.offline.kinds import Manifest, group_in
from placewright_lab.bench.schedulerperf.operations import NotKnown


class _ServedResource(msgspec.Struct, frozen=True):
    name: str
    kind: str
    namespaced: bool


class _ServedResources(msgspec.Struct, frozen=True):
    resources: list[_ServedResource]


class ServedKind(NamedTuple):
    """A served kind: the root of its API group and version, its plural, and its scope."""

    root: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of the collection, or of the object `name`. Raises `NotKnown` for a missing or needless namespace."""
        if self.namespaced != bool(namespace):
            raise NotKnown(f"{self.plural} in the namespace {namespace!r}: allowed {'a name' if self.namespaced else 'none'}")
        collection = f"{self.root}/namespaces/{namespace}/{self.plural}" if namespace else f"{self.root}/{self.plural}"
        return f"{collection}/{name}" if name else collection


class ServedKinds:
    """A reader of discovery that asks once for each API group and version."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._known: dict[str, list[_ServedResource]] = {}

    async def find(self, manifest: Manifest) -> ServedKind:
        """Return the kind of an object. Raises `NotKnown` if the server does not serve it."""
        version, kind = str(manifest.get("apiVersion", "")), manifest["kind"]
        root = f"/apis/{version}" if group_in(version) else f"/api/{version}"
        if root not in self._known:
            self._known[root] = await self._served(root)
        for served in self._known[root]:
            if served.kind == kind and "/" not in served.name:
                return ServedKind(root, served.name, served.namespaced)
        raise NotKnown(f"the API server does not serve {kind} in {version}")

    async def _served(self, root: str) -> list[_ServedResource]:
        try:
            return (await self._client.get_as(root, _ServedResources)).resources
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            return []
