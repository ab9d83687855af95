"""The schema of a SchedulingProfile, made from the structs that decode it, so that the two cannot part.

`openapi_schema` is what the CRD carries: structural, pruned by the API server. `json_schema` is the same for editors and for tests,
closed against unknown fields. The annotations of the structs (`api.fieldmeanings`) have the descriptions, bounds and list keys; rules
across fields are in `rules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import inspect

from placewright.api.fieldmeanings import REQUIRED
from placewright.api.profile import GROUP, KIND, SHADOW, VERSION, ProfileSpec, ProfileStatus
from placewright.profiles.presets import PRESETS
from placewright.profiles.rules import rules_of
from placewright.profiles.strictdecode import SCALARS, type_of

Schema = dict[str, Any]

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
#: Facets by struct and field of what is declared above the room `api`.
_CHOICES: Final[Mapping[tuple[str, str], Schema]] = {("ProfileSpec", "preset"): {"enum": list(PRESETS)}}
#: A rule that the definition has in CEL, for readers of JSON Schema, who do not evaluate CEL.
_UNLESS_SHADOW: Final[Schema] = {
    "if": {"not": {"properties": {"mode": {"const": SHADOW}}, "required": ["mode"]}},
    "then": {"required": ["schedulerName"]},
}


def openapi_schema() -> Schema:
    """Build the structural schema (OpenAPI v3) of the custom resource."""
    return {
        "description": "How pods that name its schedulerName are placed.",
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {"description": "What is wanted; written by people.", **_object(ProfileSpec, defaults=True)},
            "status": {"description": "What is; written by the operator.", **_object(ProfileStatus, defaults=False)},
        },
        "required": ["spec"],
    }


def json_schema() -> Schema:
    """Build the JSON Schema (2020-12) of a manifest: unknown fields are errors, and the two type fields are fixed."""
    schema: Schema = _closed(openapi_schema())
    schema["properties"]["apiVersion"] = {"const": f"{GROUP}/{VERSION}"}
    schema["properties"]["kind"] = {"const": KIND}
    schema["properties"]["metadata"] = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}}}
    schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
    schema["properties"]["spec"] |= _UNLESS_SHADOW
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": KIND, **schema}


def _object(struct: type, *, defaults: bool) -> Schema:
    kind = type_of(struct)
    assert isinstance(kind, inspect.StructType)
    fields = kind.fields
    required = [field.encode_name for field in fields if _is_required(field)]
    properties = {field.encode_name: _field(struct, field, defaults=defaults) for field in fields}
    return {"type": "object", "properties": properties} | ({"required": required} if required else {}) | rules_of(struct.__name__)


def _field(struct: type, field: inspect.Field, *, defaults: bool) -> Schema:
    facets = _facets(struct, field)
    schema = {"description": facets.pop("description"), **_of(field.type, defaults=defaults), **facets}
    schema |= rules_of(struct.__name__, field.encode_name)
    # Defaults are in the schema so that `kubectl get -o yaml` shows what holds (decision 0003); a status has none.
    if not defaults:
        schema.pop("default", None)
    elif isinstance(field.default, (str, bool, int, float)) and field.default != "":
        schema["default"] = field.default
    return schema


def _facets(struct: type, field: inspect.Field) -> Schema:
    """Return the facets in a field's annotation, with the choices that the room `api` does not know."""
    if not isinstance(field.type, inspect.Metadata):
        raise TypeError(f"{struct.__name__}.{field.name}: no annotation says what it means (api/fieldmeanings.py)")
    return {**(field.type.extra_json_schema or {}), **_CHOICES.get((struct.__name__, field.name), {})}


def _is_required(field: inspect.Field) -> bool:
    return field.required or (isinstance(field.type, inspect.Metadata) and REQUIRED in (field.type.extra or {}))


def _of(kind: inspect.Type, *, defaults: bool) -> Schema:
    if isinstance(kind, inspect.Metadata):
        kind = kind.type
    if isinstance(kind, inspect.UnionType):
        (kind,) = (member for member in kind.types if not isinstance(member, inspect.NoneType))
    if isinstance(kind, inspect.StructType):
        return _object(kind.cls, defaults=defaults)
    if isinstance(kind, inspect.ListType):
        # The API server would write a default into every item of the stored list, without being asked.
        return {"type": "array", "items": _of(kind.item_type, defaults=False)}
    if isinstance(kind, inspect.DictType):
        if isinstance(kind.value_type, inspect.AnyType):
            # Arguments of plugins stay open: an installed plugin brings its own, which the operator checks (decision 0003).
            return {"type": "object", _PRESERVE: True}
        return {"type": "object", "additionalProperties": _of(kind.value_type, defaults=defaults)}
    return {"type": SCALARS[type(kind)]}


def _closed(schema: Any) -> Any:
    """Close a schema: without Kubernetes' own keywords, and refusing unknown properties if it names some."""
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed["additionalProperties"] = False
    return closed
