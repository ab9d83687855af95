"""The fields of Kubernetes' own types, with their types and merge behaviour, from Kubernetes' OpenAPI document.

`kubernetes.json` has the served part of it, with a definition on each line. This module reads that file. As a program it prints it:

    python -m kubesandbox.kinds.kubernetestypes > lab/kubesandbox/kinds/kubernetes.json

The document comes with the package kubernetes-validate, which only this program needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

import msgspec

from kubesandbox.resources import builtin_types

Schema = Mapping[str, Any]

VERSION: Final = "v1.36.0"
METADATA: Final = "meta.v1.ObjectMeta"
#: Definitions that are plain values in a manifest. RawExtension and JSON are any value.
_VALUES: Final[Mapping[str, Schema]] = MappingProxyType(
    {
        "Quantity": {"type": "quantity"},
        "IntOrString": {"type": "int-or-string"},
        "Time": {"type": "time"},
        "MicroTime": {"type": "time"},
        "FieldsV1": {"type": "object"},
        "RawExtension": {},
        "JSON": {},
        "JSONSchemaPropsOrArray": {"$ref": "apiextensions.v1.JSONSchemaProps"},
        "JSONSchemaPropsOrBool": {"$ref": "apiextensions.v1.JSONSchemaProps", "or": "boolean"},
        "JSONSchemaPropsOrStringArray": {},
    }
)
_GROUP: Final = "scheduling.v1alpha2.PodGroup"
_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "integer"}
#: Groups of groups, which come with Kubernetes 1.37 and are not in the document of `VERSION`.
_COMPOSITE: Final[Mapping[str, Mapping[str, Schema]]] = MappingProxyType(
    {
        "CompositePodGroup": {
            "apiVersion": _TEXT,
            "kind": _TEXT,
            "metadata": {"$ref": METADATA},
            "spec": {"$ref": "scheduling.v1alpha3.CompositePodGroupSpec"},
            "status": {"$ref": f"{_GROUP}Status"},
        },
        "CompositePodGroupSpec": {
            "disruptionMode": {"$ref": "scheduling.v1alpha3.CompositeDisruptionMode"},
            "parentCompositePodGroupName": _TEXT,
            "preemptionPolicy": _TEXT,
            "priority": _NUMBER,
            "priorityClassName": _TEXT,
            "schedulingConstraints": {"$ref": f"{_GROUP}SchedulingConstraints"},
            "schedulingPolicy": {"$ref": "scheduling.v1alpha3.CompositePodGroupSchedulingPolicy"},
            "workloadRef": {"$ref": "scheduling.v1alpha3.WorkloadReference"},
        },
        "CompositeDisruptionMode": {"all": {"type": "object"}, "single": {"type": "object"}},
        "CompositePodGroupSchedulingPolicy": {
            "basic": {"$ref": "scheduling.v1alpha2.BasicSchedulingPolicy"},
            "gang": {"$ref": "scheduling.v1alpha3.CompositeGangSchedulingPolicy"},
        },
        "CompositeGangSchedulingPolicy": {"minGroupCount": _NUMBER},
        "WorkloadReference": {"templateName": _TEXT, "workloadName": _TEXT},
    }
)
_MERGING: Final = tuple(f"x-kubernetes-{each}" for each in ("list-type", "list-map-keys", "patch-merge-key", "patch-strategy", "map-type"))


@cache
def definitions() -> Mapping[str, Schema]:
    """Return all definitions by group, version and name: `core.v1.Pod`, `meta.v1.ObjectMeta`."""
    found: Mapping[str, Schema] = msgspec.json.decode((files("kubesandbox.kinds") / "kubernetes.json").read_bytes())
    return found


@cache
def definitions_of(kind: str) -> tuple[str, ...]:
    """Return the definitions of a kind: several if several groups have it, none if it is not served."""
    parts = (name for name in definitions() if name.rpartition(".")[2] == kind)
    return tuple(name for name in parts if "metadata" in definitions()[name].get("properties", ()))


def _printed() -> str:
    """Return the content of `kubernetes.json`: the served kinds, and the definitions that they refer to."""
    document = files("kubernetes_validate") / "kubernetes-json-schema" / f"{VERSION}-local" / "_definitions.json"
    source: Mapping[str, Schema] = {_short(name): schema for name, schema in json.loads(document.read_bytes())["$defs"].items()}
    made: dict[str, Any] = {}
    waiting = [name for name, schema in source.items() if _is_served(schema)]
    while waiting:
        if (name := waiting.pop()) not in made:
            made[name] = _kept(source[name])
            waiting += _references(made[name])
    made[f"{_GROUP}Spec"]["properties"]["parentCompositePodGroupName"] = _TEXT
    made |= {f"scheduling.v1alpha3.{name}": {"type": "object", "properties": fields} for name, fields in _COMPOSITE.items()}
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(made[name])}" for name in sorted(made)) + "\n}"


def _is_served(schema: Schema) -> bool:
    served = {(each.group, each.version, each.kind) for each in builtin_types()}
    kinds = schema.get("x-kubernetes-group-version-kind", ())
    return any((each["group"], each["version"], each["kind"]) in served for each in kinds)


def _short(name: str) -> str:
    return ".".join(name.split(".")[-3:])


def _kept(schema: Schema) -> Schema:
    """Return the schema without texts for people, and without null, which is allowed everywhere."""
    name = _short(str(schema.get("$ref", "")).rpartition("/")[2])
    made = {key: schema[key] for key in _MERGING if key in schema and (key, schema[key]) != ("x-kubernetes-list-type", "atomic")}
    if name:
        return {**_VALUES.get(name.rpartition(".")[2], {"$ref": name}), **made}
    if isinstance(kind := schema.get("type"), list):
        kind = next(each for each in kind if each != "null")
    if kind:
        made["type"] = kind
    if "properties" in schema:
        made["properties"] = {field: _kept(each) for field, each in schema["properties"].items()}
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            made[part] = _kept(schema[part])
    return made


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for each in schema.values():
            yield from _references(each)


if __name__ == "__main__":
    print(_printed())  # noqa: T201  it is what the module is run for
