"""Custom resource definitions: their checks, and the admission of objects of their kinds.

A definition gets its conditions from `establish`. A `CustomResource` then admits the objects of the definition. It prunes unknown fields
and fills in defaults. It validates the object with the schema and with the schema's rules in CEL.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any, Final

from kubesandbox.definitions.schemas import fill_defaults, prune, unknown_fields, validate
from kubesandbox.definitions.validationrules import RuleTree, check_rules, faults_of_rules, grow
from kubesandbox.fields import Faults, forbidden, invalid, required, unsupported
from kubesandbox.resources import Object
from kubesandbox.status import invalid_object

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SIMPLE_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean")


class CustomResource:
    """The rules for the objects of one definition, in each of its versions. `versions` are those of the definition by name."""

    def __init__(self, crd: Mapping[str, Any]) -> None:
        spec = crd["spec"]
        self.group: str = spec["group"]
        self.kind: str = spec["names"]["kind"]
        self.versions: dict[str, Mapping[str, Any]] = {version["name"]: version for version in spec["versions"]}
        self._rules: dict[str, RuleTree] = {name: grow(self.schema(name)) for name in self.versions}

    def schema(self, version: str) -> Mapping[str, Any]:
        """Return the openAPIV3Schema of a version. If the definition has none, return a schema that prunes nothing."""
        found: Mapping[str, Any] = self.versions[version].get("schema", {}).get("openAPIV3Schema") or {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
        }
        return found

    def unknown_fields(self, new: Mapping[str, Any]) -> list[str]:
        """Return the paths in `new` that its version's schema does not know. Strict clients want such objects refused."""
        schema = self.schema(str(new.get("apiVersion", "")).rpartition("/")[2])
        return list(unknown_fields(new, schema, root=True))

    def admit(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Object:
        """Return the stored form of `new`, pruned and with defaults. Raises ApiError 422.

        `old` is the object that it replaces, None for a new one. The version is in `new["apiVersion"]`.
        """
        version = str(new.get("apiVersion", "")).rpartition("/")[2]
        schema = self.schema(version)
        admitted: Object = {key: copy.deepcopy(value) for key, value in new.items() if key != "metadata"}
        prune(admitted, schema, root=True)
        fill_defaults(admitted, schema)
        admitted = {"apiVersion": admitted.pop("apiVersion", ""), "kind": admitted.pop("kind", self.kind), **admitted}
        admitted["metadata"] = copy.deepcopy(new.get("metadata", {}))
        faults = list(validate(admitted, schema))
        faults += check_rules(admitted, old, self._rules[version], faults)
        if faults:
            raise invalid_object(self.group, self.kind, admitted["metadata"].get("name", ""), faults)
        return admitted


def establish(crd: Object, now: str = "") -> None:
    """Check a definition and complete it in place: names, strategy, conditions `NamesAccepted` and `Established`.

    `now` is an RFC 3339 time for the conditions. Raises ApiError 422 with every fault.
    """
    name = str(crd.get("metadata", {}).get("name", ""))
    faults = list(_faults_of_spec(crd.get("spec"), name))
    if faults:
        raise invalid_object("apiextensions.k8s.io", "CustomResourceDefinition", name, faults)
    spec = crd["spec"]
    names = spec["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    status = crd.setdefault("status", {})
    status["acceptedNames"] = dict(names)
    stored = next(version["name"] for version in spec["versions"] if version["storage"])
    versions = status.setdefault("storedVersions", [])
    if stored not in versions:
        versions.append(stored)
    _accept(status, now)


def _accept(status: Object, now: str) -> None:
    conditions = status.setdefault("conditions", [])
    for kind, reason, message in (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ):
        if not any(condition.get("type") == kind for condition in conditions):
            conditions.append({"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message})


def _faults_of_spec(spec: Any, name: str) -> Faults:
    if not isinstance(spec, dict):
        yield required("spec")
        return
    names, versions = spec.get("names"), spec.get("versions")
    if not spec.get("group"):
        yield required("spec.group")
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        yield unsupported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced"))
    if not isinstance(names, dict):
        yield required("spec.names")
    else:
        yield from _faults_of_names(names, str(spec.get("group", "")), name)
    if not isinstance(versions, list) or not versions or not all(isinstance(each, dict) for each in versions):
        yield required("spec.versions")
        return
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield "spec.versions", "Invalid value: must have exactly one version marked as storage version"
    for at, version in enumerate(versions):
        yield from _faults_of_version(version, f"spec.versions[{at}]")


def _faults_of_names(names: Mapping[str, Any], group: str, name: str) -> Faults:
    for part in ("plural", "kind"):
        if not names.get(part):
            yield required(f"spec.names.{part}")
    plural = str(names.get("plural", ""))
    if plural and not _LABEL.fullmatch(plural):
        yield invalid("spec.names.plural", plural, "a lowercase DNS-1035 label is expected")
    if name != f"{plural}.{group}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _faults_of_version(version: Mapping[str, Any], path: str) -> Faults:
    if not version.get("name"):
        yield required(f"{path}.name")
    for flag in ("served", "storage"):
        if not isinstance(version.get(flag), bool):
            yield required(f"{path}.{flag}")
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not isinstance(schema, dict):
        yield required(f"{path}.schema.openAPIV3Schema", "schemas are required")
        return
    if schema.get("type") != "object":
        yield invalid(f"{path}.schema.openAPIV3Schema.type", schema.get("type", ""), "must be object at the root")
    yield from _faults_of_schema(schema, f"{path}.schema.openAPIV3Schema")


def _faults_of_schema(schema: Any, path: str, *, correlatable: bool = True) -> Faults:
    """Yield the reasons why a schema is not structural: a part without type, a list without items, a wrong list type."""
    if not isinstance(schema, dict):
        yield invalid(path, schema, "a schema is an object")
        return
    yield from _faults_of_type(schema, path)
    yield from _faults_of_defaults(schema, path)
    yield from _faults_of_pattern(schema, path)
    yield from faults_of_rules(schema, path, correlatable=correlatable)
    if not isinstance(schema.get("properties", {}), dict):
        yield f"{path}.properties", "Invalid value: properties map names to schemas"
        return
    for name, part in schema.get("properties", {}).items():
        yield from _faults_of_schema(part, f"{path}.properties[{name}]", correlatable=correlatable)
    keyed = correlatable and schema.get("x-kubernetes-list-type") == "map"
    for name, known in (("items", keyed), ("additionalProperties", correlatable)):
        if isinstance(schema.get(name), dict):
            yield from _faults_of_schema(schema[name], f"{path}.{name}", correlatable=known)


def _faults_of_type(schema: Mapping[str, Any], path: str) -> Faults:
    kind = schema.get("type")
    loose = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if kind is None and not loose:
        yield required(f"{path}.type", "must not be empty for specified object fields")
    elif kind is not None and kind not in _SIMPLE_TYPES:
        yield unsupported(f"{path}.type", kind, sorted(_SIMPLE_TYPES))
    if kind == "array" and "items" not in schema:
        yield required(f"{path}.items", "must be specified")
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get("x-kubernetes-list-map-keys"):
        yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty")
    if "properties" in schema and isinstance(schema.get("additionalProperties"), dict):
        yield forbidden(f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive")


def _faults_of_pattern(schema: Mapping[str, Any], path: str) -> Faults:
    try:
        re.compile(schema.get("pattern", ""))
    except (re.error, TypeError) as error:
        yield invalid(f"{path}.pattern", schema["pattern"], f"must be a valid regular expression, but isn't: {error}")


def _faults_of_defaults(schema: Mapping[str, Any], path: str) -> Faults:
    """Find faults of a default, because every object that relies on an invalid default would be refused."""
    if "default" not in schema:
        return
    filled = copy.deepcopy(schema["default"])
    fill_defaults(filled, schema)
    for below, what in validate(filled, schema, "default"):
        yield f"{path}.{below}", what
