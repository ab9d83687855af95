"""The check of a body before any rule reads it: each field has the type that Kubernetes gives it.

The real server decodes into typed structs, and answers 400 for a list in place of an object. This server does the same, and ignores unknown
fields. Null stands for the zero value of the type: a field disappears, and an entry of a list or map becomes the zero value.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from kubesandbox.kinds.kubernetestypes import METADATA, Schema, definitions, definitions_of
from kubesandbox.status import Object, bad_request
from placewright.api.quantity import QuantityError, nano

#: JSON types and zero values by the type of a schema.
_TYPES: Final[Mapping[str, tuple[tuple[type, ...], Any]]] = MappingProxyType(
    {
        "string": ((str,), ""),
        "boolean": ((bool,), False),
        "integer": ((int,), 0),
        "number": ((int, float), 0),
        "int-or-string": ((int, str), 0),
        "quantity": ((str, int, float), "0"),
        "time": ((str,), None),
        "object": ((dict,), {}),
        "array": ((list,), []),
    }
)
_NAMES: Final[Mapping[type, str]] = MappingProxyType(
    {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array", type(None): "null"}
)
_QUANTITIES: Final = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_CUSTOM: Final[Schema] = MappingProxyType({"type": "object", "properties": {"metadata": {"$ref": METADATA}}})


def check_structure(kind: str, sent: Object, *, custom: bool) -> None:
    """Raise ApiError 400, with the path of the field, unless `sent` has the shape of a `kind`. Nulls are removed in place."""
    for schema in [_CUSTOM] if custom else [definitions()[name] for name in definitions_of(kind)]:
        _check(kind, sent, schema)


def _check(path: str, value: Any, schema: Schema) -> None:
    """Raise ApiError 400 unless `value`, which is not null, has the schema's type."""
    if "$ref" in schema:
        if schema.get("or") == "boolean" and isinstance(value, bool):
            return
        schema = definitions()[schema["$ref"]]
    wanted = schema.get("type")
    if wanted is None:
        return
    if type(value) not in _TYPES[wanted][0]:
        raise bad_request(f"{path}: expected {wanted}, got {_NAMES.get(type(value), 'something else')}")
    if wanted == "object":
        _check_entries(path, value, schema)
    elif wanted == "array":
        _check_items(path, value, schema["items"])
    elif wanted == "quantity":
        _check_quantity(path, value)


def _check_entries(path: str, found: Object, schema: Schema) -> None:
    fields, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name in list(found):
        part = fields.get(name, others)
        if part is None:
            continue
        if found[name] is not None:
            _check(f"{path}.{name}", found[name], part)
        elif name not in fields:
            found[name] = _zero(part)
        elif part.get("type") not in (None, "time") or "$ref" in part:
            del found[name]


def _check_items(path: str, found: list[Any], schema: Schema) -> None:
    if None in found:
        found[:] = [_zero(schema) if item is None else item for item in found]
    for at, item in enumerate(found):
        if item is not None:
            _check(f"{path}[{at}]", item, schema)


def _zero(schema: Schema) -> Any:
    wanted = definitions()[schema["$ref"]].get("type") if "$ref" in schema else schema.get("type")
    zero = None if wanted is None else _TYPES[wanted][1]
    return type(zero)() if isinstance(zero, (dict, list)) else zero


def _check_quantity(path: str, value: str | float) -> None:
    try:
        nano(value)
    except QuantityError:
        raise bad_request(f"{path}: {_QUANTITIES}") from None
