"""Structural schemas: pruning, defaulting and validation of one value against the schema of a custom resource.

Faults have the words of an API server, because users search for those sentences.
"""

from __future__ import annotations

import copy
import datetime as dt
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubesandbox.fields import Fault, Faults, duplicate, invalid, required, too_many, unsupported

Schema = Mapping[str, Any]

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_RESOURCE_FIELDS: Final = ("apiVersion", "kind", "metadata")
_TYPES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def prune(value: Any, schema: Schema, *, root: bool = False) -> None:
    """Remove in place the fields that the schema does not have. `root` keeps apiVersion, kind and metadata."""
    for holder, name, _ in list(_unknown(value, schema, "", root=root)):
        holder.pop(name, None)  # YAML anchors may put one object into several places


def unknown_fields(value: Any, schema: Schema, *, root: bool = False) -> Iterator[str]:
    """Iterate over the paths of the fields that `prune` would remove."""
    return (path for _, _, path in _unknown(value, schema, "", root=root))


def _unknown(value: Any, schema: Schema, path: str, *, root: bool = False) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Find the fields that a schema does not have: the object, the name and the path of each."""
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from _unknown(item, schema.get("items", {}), f"{path}[{at}]")
    elif isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name, below in value.items():
            if (root or schema.get(_EMBEDDED)) and name in _RESOURCE_FIELDS:
                continue
            if name in properties or isinstance(others, dict):
                yield from _unknown(below, properties.get(name, others), _join(path, name))
            elif not others and not schema.get(_PRESERVE):
                yield value, name, _join(path, name)


def fill_defaults(value: Any, schema: Schema) -> None:
    """Add the defaults of missing fields in place. A null that is not allowed counts as missing, and is removed."""
    if isinstance(value, list):
        for item in value:
            fill_defaults(item, schema.get("items", {}))
    elif isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        _drop_nulls(value, properties, others)
        for name, part in properties.items():
            if "default" in part and name not in value:
                value[name] = copy.deepcopy(part["default"])
            if name in value:
                fill_defaults(value[name], part)
        if isinstance(others, dict):
            for name in value.keys() - properties.keys():
                fill_defaults(value[name], others)


def _drop_nulls(value: dict[str, Any], properties: Mapping[str, Schema], others: object) -> None:
    for name in [name for name, below in value.items() if below is None]:
        part = properties.get(name, others)
        if isinstance(part, dict) and not part.get("nullable"):
            del value[name]


def validate(value: Any, schema: Schema, path: str = "") -> Faults:
    """Yield the faults of a pruned value with defaults. `path` is its place, such as `spec.weights`."""
    if value is None:
        if not schema.get("nullable") and schema.get("type"):
            yield _wrong_type("null", schema["type"], path)
        return
    if not _type_fits(value, schema):
        wanted = "integer,string" if schema.get(_INT_OR_STRING) else schema["type"]
        yield _wrong_type(type_name(value), wanted, path)
        return
    yield from _check_enum(value, schema, path)
    if isinstance(value, str):
        yield from _check_string(value, schema, path)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _check_number(value, schema, path)
    elif isinstance(value, list):
        yield from _check_list(value, schema, path)
    elif isinstance(value, dict):
        yield from _check_object(value, schema, path)
    yield from _check_combinations(value, schema, path)


def type_name(value: Any) -> str:
    """Return the JSON Schema word for the type of `value`."""
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "null")


def _type_fits(value: Any, schema: Schema) -> bool:
    found = type_name(value)
    if schema.get(_INT_OR_STRING):
        return found in ("integer", "string")
    wanted = schema.get("type")
    if wanted == "integer" and isinstance(value, float) and value.is_integer():
        return True
    return wanted is None or found == wanted or (wanted == "number" and found == "integer")


def _wrong_type(found: str, wanted: str, path: str) -> Fault:
    return _invalid(found, path, f'must be of type {wanted}: "{found}"')


def _invalid(value: Any, path: str, what: str) -> Fault:
    return invalid(path, value, f"{path} in body {what}")


def _check_enum(value: Any, schema: Schema, path: str) -> Faults:
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        yield unsupported(path, value, allowed)


def _check_string(value: str, schema: Schema, path: str) -> Faults:
    if len(value) > schema.get("maxLength", len(value)):
        yield path, f"Too long: may not be more than {schema['maxLength']} bytes"
    if len(value) < schema.get("minLength", 0):
        yield _invalid(value, path, f"should be at least {schema['minLength']} chars long")
    if "pattern" in schema and re.search(schema["pattern"], value) is None:
        yield _invalid(value, path, f"should match '{schema['pattern']}'")
    if schema.get("format") == "date-time" and not _is_time(value):
        yield _invalid(value, path, f"must be of type date-time: {json.dumps(value)}")


def _is_time(value: str) -> bool:
    try:
        dt.datetime.fromisoformat(value)
    except ValueError:
        return False
    return "T" in value.upper()


def _check_number(value: float, schema: Schema, path: str) -> Faults:
    low, high, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    above, below = bool(schema.get("exclusiveMinimum")), bool(schema.get("exclusiveMaximum"))
    if low is not None and (value < low or (above and value == low)):
        yield _invalid(value, path, f"should be greater than {'' if above else 'or equal to '}{low}")
    if high is not None and (value > high or (below and value == high)):
        yield _invalid(value, path, f"should be less than {'' if below else 'or equal to '}{high}")
    if step and value % step:
        yield _invalid(value, path, f"should be a multiple of {step}")
    bits = {"int32": 31, "int64": 63}.get(schema.get("format", ""), 0)
    if bits and schema.get("type") == "integer" and not -(2**bits) <= value < 2**bits:
        yield invalid("<nil>", "", f"Checked value must be of type integer with format {schema['format']} in {path}")


def _check_list(value: list[Any], schema: Schema, path: str) -> Faults:
    if len(value) > schema.get("maxItems", len(value)):
        yield too_many(path, len(value), schema["maxItems"])
    if len(value) < schema.get("minItems", 0):
        yield _invalid(len(value), path, f"should have at least {schema['minItems']} items")
    for at, item in enumerate(value):
        yield from validate(item, schema.get("items", {}), f"{path}[{at}]")
    yield from _check_duplicates(value, schema, path)


def _check_duplicates(value: list[Any], schema: Schema, path: str) -> Faults:
    kind, seen = schema.get("x-kubernetes-list-type"), set()
    if kind not in ("set", "map"):
        return
    keys = schema.get("x-kubernetes-list-map-keys", ())
    for at, item in enumerate(value):
        if kind == "map" and not isinstance(item, dict):
            continue
        identity = {key: item[key] for key in keys if key in item} if kind == "map" else item
        shown = json.dumps(identity, sort_keys=True)
        if shown in seen:
            yield duplicate(f"{path}[{at}]", identity)
        seen.add(shown)


def _check_object(value: dict[str, Any], schema: Schema, path: str) -> Faults:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name in schema.get("required", ()):
        if name not in value:
            yield required(_join(path, name))
    if len(value) > schema.get("maxProperties", len(value)):
        yield too_many(path, len(value), schema["maxProperties"])
    if len(value) < schema.get("minProperties", 0):
        yield _invalid(len(value), path, f"should have at least {schema['minProperties']} properties")
    for name, below in value.items():
        if name in properties:
            yield from validate(below, properties[name], _join(path, name))
        elif isinstance(others, dict):
            yield from validate(below, others, _join(path, name))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _check_combinations(value: Any, schema: Schema, path: str) -> Faults:
    for part in schema.get("allOf", ()):
        yield from validate(value, part, path)
    if "anyOf" in schema and not any(_fits(value, part) for part in schema["anyOf"]):
        yield _invalid(value, path, "must validate at least one schema (anyOf)")
    if "oneOf" in schema and sum(_fits(value, part) for part in schema["oneOf"]) != 1:
        yield _invalid(value, path, "must validate one and only one schema (oneOf)")
    if "not" in schema and _fits(value, schema["not"]):
        yield _invalid(value, path, "must not validate the schema (not)")


def _fits(value: Any, schema: Schema) -> bool:
    return next(validate(value, schema), None) is None
