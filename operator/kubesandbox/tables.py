"""Objects as rows of a `meta.k8s.io/v1` Table: the server-side printing that `kubectl get` asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from kubesandbox.columns import Column, columns_of
from kubesandbox.shapes import Object

IncludeObject = Literal["None", "Metadata", "Object"]


def table(
    kind: str,
    objects: Iterable[Object],
    *,
    columns: Sequence[Mapping[str, Any]] | None,
    include_object: str,
    now: float,
    metadata: Mapping[str, Any],
    with_definitions: bool = True,
) -> Object:
    """A Table of `objects`, all of `kind`.

    `columns` are the additionalPrinterColumns of a custom resource, None for a built-in kind. `include_object` is
    None, Metadata or Object, as the query parameter says (anything else counts as Metadata, the default). `now` is in
    seconds since the epoch. `metadata` is that of the list (resourceVersion, continue). In a watch only the first event
    carries the column definitions: `with_definitions` False leaves them out of the later ones.
    """
    shown = columns_of(kind, columns)
    rows = [
        {"cells": [_cell(column, obj, now) for column in shown], "object": _included(obj, include_object)}
        for obj in objects
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(metadata),
        "columnDefinitions": [column.definition() for column in shown] if with_definitions else None,
        "rows": rows,
    }


def _cell(column: Column, obj: Object, now: float) -> Any:
    """One cell; an object with values of unheard-of types spoils its own cells, not the whole list."""
    try:
        return column.cell(obj, now)
    except (AttributeError, KeyError, TypeError, ValueError):
        return "<invalid>"


def partial_metadata(obj: Object) -> Object:
    """An object cut down to its metadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj.get("metadata", {})}


def _included(obj: Object, include_object: str) -> Object | None:
    if include_object == "None":
        return None
    return obj if include_object == "Object" else partial_metadata(obj)
