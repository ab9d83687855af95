"""API objects as the official client would write them: the fullest of each kind, and fields that were left out."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import kubernetes.client
import msgspec

from placewright.api.objects import KubeObject

_SCALARS: dict[str, Any] = {"str": "x", "int": 7, "float": 1.5, "bool": True, "datetime": "2026-01-01T00:00:00Z", "object": {"k": "v"}}


@functools.cache
def fullest(model: str) -> Any:
    """An object of a model of the official client in which every field is set, as its JSON."""
    if model in _SCALARS:
        return _SCALARS[model]
    if model.startswith("List["):
        return [fullest(model.removeprefix("List[").removesuffix("]"))]
    if model.startswith("Dict["):
        return {"k": fullest(model.removeprefix("Dict[str, ").removesuffix("]"))}
    kind = getattr(kubernetes.client, model)
    return {written: fullest(kind.openapi_types[name]) for name, written in kind.attribute_map.items()}


def left_at_default(value: Any, path: str = "") -> Iterator[str]:
    """Paths of the declared fields that have their default value, in a struct and in all structs that it contains."""
    if isinstance(value, KubeObject):
        for field in msgspec.structs.fields(value):
            found, where = getattr(value, field.name), f"{path}.{field.encode_name}"
            default = field.default if field.default is not msgspec.NODEFAULT else None
            if found == default:
                yield where
            else:
                yield from left_at_default(found, where)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from left_at_default(each, f"{path}[]")
    elif isinstance(value, dict):
        for each in value.values():
            yield from left_at_default(each, f"{path}{{}}")
