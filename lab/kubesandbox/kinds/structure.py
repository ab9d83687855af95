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


class _MisfitError(Exception):
    """A value of the wrong type. `path` grows on the way up."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.path = ""


def check_structure(kind: str, sent: Object, *, custom: bool) -> None:
    """Raise ApiError 400, with the path of the field, unless `sent` has the shape of a `kind`. Nulls are removed in place."""
    for schema in [_CUSTOM] if custom else [definitions()[name] for name in definitions_of(kind)]:
        try:
            _check(sent, schema)
        except _MisfitError as misfit:
            raise bad_request(f"{kind}: {misfit.path.removeprefix('.') or 'body'}: {misfit}") from None


def _check(value: Any, schema: Schema) -> None:
    """Raise an error unless `value`, which is not null, has the schema's type."""
    if "$ref" in schema:
        if schema.get("or") == "boolean" and isinstance(value, bool):
            return
        schema = definitions()[schema["$ref"]]
    wanted = schema.get("type")
    if wanted is None:
        return
    if type(value) not in _TYPES[wanted][0]:
        raise _MisfitError(f"expected {wanted}, got {_NAMES.get(type(value), 'something else')}")
    if wanted == "object":
        _check_entries(value, schema)
    elif wanted == "array":
        _check_items(value, schema["items"])
    elif wanted == "quantity":
        _check_quantity(value)


def _check_entries(found: Object, schema: Schema) -> None:
    fields, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name in list(found):
        part = fields.get(name, others)
        if part is None:
            continue
        try:
            if found[name] is not None:
                _check(found[name], part)
            elif name not in fields:
                found[name] = _zero(part)
            elif part.get("type") not in (None, "time") or "$ref" in part:
                del found[name]
        except _MisfitError as misfit:
            misfit.path = f".{name}{misfit.path}"
            raise


def _check_items(found: list[Any], schema: Schema) -> None:
    if None in found:
        found[:] = [_zero(schema) if item is None else item for item in found]
    for at, item in enumerate(found):
        try:
            if item is not None:
                _check(item, schema)
        except _MisfitError as misfit:
            misfit.path = f"[{at}]{misfit.path}"
            raise


def _zero(schema: Schema) -> Any:
    wanted = definitions()[schema["$ref"]].get("type") if "$ref" in schema else schema.get("type")
    zero = None if wanted is None else _TYPES[wanted][1]
    return type(zero)() if isinstance(zero, (dict, list)) else zero


def _check_quantity(value: str | float) -> None:
    try:
        nano(value)
    except QuantityError:
        raise _MisfitError(_QUANTITIES) from None
