"""OpenAPI documents, if kubectl reads them: the parameters of a patch, and the schemas of custom types.

Built-in types have no schemas here, because kubectl falls back to its own types. A schema without merge keys would make its client-side
apply compute wrong patches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kubesandbox.kinds.kubernetestypes import METADATA, definitions
from kubesandbox.resources import Object, ResourceRegistry, ResourceType

_QUERY: Final = (
    ("dryRun", "string", "All: nothing is stored."),
    ("fieldManager", "string", "Who makes this change."),
    ("fieldValidation", "string", "Ignore, Warn or Strict: what to do about unknown fields."),
    ("force", "boolean", "Take fields from other managers (apply patches only)."),
)
_V2_UNKNOWN: Final = ("nullable", "oneOf", "anyOf", "not", "x-kubernetes-int-or-string", "default")
_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

#: Function that returns the openAPIV3Schema of a custom type, or None.
SchemaSource = Callable[[ResourceType], Mapping[str, Any] | None]


def index_v3(registry: ResourceRegistry) -> Object:
    """Return the list of v3 documents, one for each group and version. Its address has a hash that changes with it."""
    paths = {}
    for group, versions in registry.groups().items():
        for version in versions:
            place = f"apis/{group}/{version}" if group else f"api/{version}"
            stamp = hashlib.sha256(f"{place} {registry.generation}".encode()).hexdigest()
            paths[place] = {"serverRelativeURL": f"/openapi/v3/{place}?hash={stamp[:16].upper()}"}
    return {"paths": paths}


def document_v3(types: Iterable[ResourceType], schemas: SchemaSource, version: str) -> Object:
    """Return the v3 document of one group and version."""
    found = list(types)
    reference = {"allOf": [{"$ref": f"#/components/schemas/{_METADATA}"}], "default": {}}
    return {
        "openapi": "3.0.0",
        "info": _info(version),
        "paths": {
            _path(each): {action: _operation(each, action, lambda kind: {"schema": kind}) for action in ("get", "patch")} for each in found
        },
        "components": {"schemas": _models(found, schemas, dict, reference)},
    }


def document_v2(registry: ResourceRegistry, schemas: SchemaSource, version: str) -> Object:
    """Return the v2 document of the whole server."""
    return {
        "swagger": "2.0",
        "info": _info(version),
        "paths": {_path(each): {"patch": _operation(each, "patch", lambda kind: kind)} for each in registry},
        "definitions": _models(registry, schemas, _downgraded, {"$ref": f"#/definitions/{_METADATA}"}),
    }


def _models(types: Iterable[ResourceType], schemas: SchemaSource, shown: Callable[[Mapping[str, Any]], Object], metadata: Object) -> Object:
    """Return the schemas of metadata and of the custom types. `shown` puts a schema into the form of the document."""
    reference = {**metadata, "description": "Standard object's metadata."}
    found = {_model(each): _with_type(shown(schema), each, reference) for each in types if (schema := schemas(each)) is not None}
    return {_METADATA: _metadata_schema(), **found}


def _info(version: str) -> Object:
    return {"title": "Placewright sandbox", "version": version}


def _path(resource: ResourceType) -> str:
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    return f"{root}/{'namespaces/{namespace}/' if resource.namespaced else ''}{resource.plural}/{{name}}"


def _model(resource: ResourceType) -> str:
    """Return the schema's name, with the group's labels in reverse order (`dev.placewright.v1alpha1.SchedulingProfile`)."""
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def _gvk(resource: ResourceType) -> Object:
    return {"group": resource.group, "version": resource.version, "kind": resource.kind}


def _operation(resource: ResourceType, action: str, described: Callable[[Object], Object]) -> Object:
    """Return an operation on one object. `described` puts the type of a parameter into its place."""
    parameters = [
        {"name": name, "in": "query", "description": about, **described({"type": kind, "uniqueItems": True})}
        for name, kind, about in _QUERY
    ]
    return {
        "operationId": f"{action}{resource.version}{resource.kind}",
        "parameters": parameters if action == "patch" else [],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(resource),
    }


def _with_type(schema: Mapping[str, Any], resource: ResourceType, metadata: Object) -> Object:
    """Add to a custom type's schema the three fields of every object, and the mark that names its type."""
    properties = {
        "apiVersion": {"type": "string", "description": "The version of this object's schema."},
        "kind": {"type": "string", "description": "The REST resource that this object represents."},
        **{name: part for name, part in schema.get("properties", {}).items() if name != "metadata"},
        "metadata": metadata,
    }
    return {**schema, "properties": properties, "x-kubernetes-group-version-kind": [_gvk(resource)]}


def _downgraded(schema: Mapping[str, Any]) -> Object:
    """Return a schema in the terms of v2, without keywords that v2 does not have."""
    result: Object = {key: value for key, value in schema.items() if key not in _V2_UNKNOWN}
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("nullable"):
        for key in ("type", "properties", "items", "required") if schema.get("nullable") else ("properties",):
            result.pop(key, None)
    if "properties" in result:
        result["properties"] = {name: _downgraded(part) for name, part in result["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), Mapping):
            result[key] = _downgraded(result[key])
    if "allOf" in result:
        result["allOf"] = [_downgraded(part) for part in result["allOf"]]
    return result


def _metadata_schema() -> Object:
    fields = {name: _field(part) for name, part in definitions()[METADATA]["properties"].items()}
    return {"description": "ObjectMeta is metadata that all persisted resources must have.", "type": "object", "properties": fields}


def _field(part: Mapping[str, Any]) -> Object:
    """Return a field of metadata without the fields of its parts."""
    below = {key: _field(part[key]) for key in ("items", "additionalProperties") if key in part}
    kind = part.get("type", "object")
    return {"type": "string" if kind == "time" else kind, **below}
