"""The presentations of objects: unchanged, as rows of a Table (kubectl get), or only metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from kubesandbox.definitions.definitions import Definitions
from kubesandbox.resources import ResourceType, presented
from kubesandbox.status import Object, bad_request, not_acceptable
from kubesandbox.storage.reads import Page, Reads, plain_view
from kubesandbox.storage.store import Stored
from kubesandbox.storage.watches import View
from kubesandbox.web.columns import Column, columns_of
from kubesandbox.web.queries import Query

_encode = msgspec.json.Encoder().encode
_INCLUDES: Final = ("", "None", "Metadata", "Object")
#: Media types of real servers. All of them are answered in JSON here, with JSON's media type.
_ACCEPTABLE: Final = frozenset({"", "*/*", "application/*", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"})


class Views:
    """The views of one server. It makes the plain view of a type once."""

    def __init__(self, reads: Reads, definitions: Definitions, clock: Callable[[], float]) -> None:
        self._reads = reads
        self._definitions = definitions
        self._clock = clock
        self._plain: dict[ResourceType, View] = {}

    def plain(self, resource: ResourceType) -> View:
        """Return the view that shows unchanged objects of a type."""
        view = self._plain.get(resource)
        if view is None:
            view = self._plain[resource] = plain_view(resource)
        return view

    def choose(self, resource: ResourceType, accept: str, query: Query) -> View:
        """Return the view that an Accept header asks for first."""
        if "as=" not in accept:
            _require_acceptable(accept)
            return self.plain(resource)
        wanted = accept.split(",", 1)[0].replace(" ", "")
        if "as=Table" in wanted:
            return View(resource, self._row_encoder(resource, query))
        if "as=PartialObjectMetadata" in wanted:
            return View(resource, lambda stored: _encode(partial_metadata(stored.object)))
        return self.plain(resource)

    def encode_page(self, view: View, page: Page, accept: str, query: Query) -> bytes:
        """Encode a list as the Accept header asks."""
        wanted = accept.split(",", 1)[0].replace(" ", "")
        if "as=Table" in wanted:
            return _encode(self._table(view.resource, page.objects, query, page.metadata))
        if "as=PartialObjectMetadata" in wanted:
            head: Object = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1"}
            items = [partial_metadata(each.object) for each in page.objects]
            return _encode({**head, "metadata": page.metadata, "items": items})
        return self._reads.encode_page(view, page)

    def _row_encoder(self, resource: ResourceType, query: Query) -> Callable[[Stored], bytes]:
        """Encode tables of one row, for a watch: only the first one has the column definitions."""
        said = False

        def encode(stored: Stored) -> bytes:
            nonlocal said
            shown = self._table(resource, [stored], query, {"resourceVersion": str(stored.version)})
            if said:
                shown["columnDefinitions"] = None
            said = True
            return _encode(shown)

        return encode

    def _table(self, resource: ResourceType, objects: Iterable[Stored], query: Query, metadata: Object) -> Object:
        include = query.get("includeObject", "")
        if include not in _INCLUDES:
            raise bad_request(f"includeObject={include!r}: allowed are None, Metadata and Object")
        shown = [presented(resource, each.object) for each in objects]
        columns = columns_of(resource.kind, self._definitions.columns(resource))
        return table(columns, shown, include_object=include, now=self._clock(), metadata=metadata)


def _require_acceptable(accept: str) -> None:
    if not any(each.partition(";")[0].strip() in _ACCEPTABLE for each in accept.split(",")):
        raise not_acceptable(sorted(kind for kind in _ACCEPTABLE if kind.startswith("application/") and "*" not in kind))


# --- tables ------------------------------------------------------------------------------------------------------------------


def table(columns: Sequence[Column], objects: Iterable[Object], *, include_object: str, now: float, metadata: Object) -> Object:
    """Return a Table of objects of one kind.

    `include_object` is None, Metadata or Object, like in the query, and Metadata by default. `now` is in seconds since the epoch, and
    `metadata` is the metadata of the list.
    """
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [column.definition() for column in columns],
        "rows": [{"cells": [_cell(column, obj, now) for column in columns], "object": _included(obj, include_object)} for obj in objects],
    }


def _cell(column: Column, obj: Object, now: float) -> Any:
    """Return one cell. An object with values of unknown types spoils its own cells, and not the whole list."""
    try:
        return column.cell(obj, now)
    except (AttributeError, KeyError, TypeError, ValueError):
        return "<invalid>"


def partial_metadata(obj: Object) -> Object:
    """Return an object cut down to its metadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj.get("metadata", {})}


def _included(obj: Object, include_object: str) -> Object | None:
    if include_object == "None":
        return None
    return obj if include_object == "Object" else partial_metadata(obj)
