"""Custom resource definitions: their checks, and the admission of objects of their kinds.

A definition gets its conditions from `establish`. A `CustomResource` then admits the objects of the definition. It prunes unknown fields
and fills in defaults. It validates the object with the schema and with the schema's rules in CEL.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kubesandbox.definitions.schemas import Fault, fill_defaults, prune, unknown_fields, validate
from kubesandbox.definitions.validationrules import RuleTree, check_rules, faults_of_rules, grow
from kubesandbox.edits.shapes import Object
from kubesandbox.status import ApiError

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SIMPLE_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean")


class Invalid(ApiError):
    """The refusal (422) of an object that may not be stored.

    Attributes:
        causes: faults in the details of a Status.
    """

    def __init__(self, group: str, kind: str, name: str, faults: Sequence[Fault]) -> None:
        self.causes = [{"reason": fault.reason, "message": fault.message, "field": fault.path} for fault in faults]
        shown = str(faults[0]) if len(faults) == 1 else f"[{', '.join(map(str, faults))}]"
        details = {"name": name, "group": group, "kind": kind, "causes": self.causes}
        super().__init__(422, "Invalid", f'{kind}.{group} "{name}" is invalid: {shown}', details)


class CustomResource:
    """The rules for the objects of one definition, in each of its versions."""

    def __init__(self, crd: Mapping[str, Any]) -> None:
        spec = crd["spec"]
        self.group: str = spec["group"]
        self.kind: str = spec["names"]["kind"]
        self._versions: dict[str, Mapping[str, Any]] = {version["name"]: version for version in spec["versions"]}
        self._rules: dict[str, RuleTree] = {name: grow(self.schema(name)) for name in self._versions}

    def schema(self, version: str) -> Mapping[str, Any]:
        """Return the openAPIV3Schema of a version. If the definition has none, return a schema that prunes nothing."""
        found: Mapping[str, Any] = self._versions[version].get("schema", {}).get("openAPIV3Schema") or {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
        }
        return found

    def has_status(self, version: str) -> bool:
        """Return whether status is a subresource, written apart from the rest."""
        return "status" in (self._versions[version].get("subresources") or {})

    def columns(self, version: str) -> list[Mapping[str, Any]]:
        """Return the additionalPrinterColumns of a version."""
        return list(self._versions[version].get("additionalPrinterColumns") or [])

    def unknown_fields(self, new: Mapping[str, Any]) -> list[str]:
        """Return the paths in `new` that its version's schema does not know. Strict clients want such objects refused."""
        schema = self.schema(str(new.get("apiVersion", "")).rpartition("/")[2])
        return list(unknown_fields(new, schema, root=True))

    def admit(self, new: Mapping[str, Any], old: Mapping[str, Any] | None) -> Object:
        """Return the stored form of `new`, pruned and with defaults. Raises `Invalid`.

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
            raise Invalid(self.group, self.kind, admitted["metadata"].get("name", ""), faults)
        return admitted


def establish(crd: Object, now: str = "") -> None:
    """Check a definition and complete it in place: names, strategy, conditions `NamesAccepted` and `Established`.

    `now` is an RFC 3339 time for the conditions. Raises `Invalid` with every fault.
    """
    name = str(crd.get("metadata", {}).get("name", ""))
    faults = list(_faults_of_spec(crd.get("spec"), name))
    if faults:
        raise Invalid("apiextensions.k8s.io", "CustomResourceDefinition", name, faults)
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


def _required(path: str) -> Fault:
    return Fault(path, "FieldValueRequired", "Required value")


def _faults_of_spec(spec: Any, name: str) -> Iterator[Fault]:
    if not isinstance(spec, dict):
        yield _required("spec")
        return
    names, versions = spec.get("names"), spec.get("versions")
    if not spec.get("group"):
        yield _required("spec.group")
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        shown = f'Unsupported value: "{spec.get("scope", "")}": supported values: "Cluster", "Namespaced"'
        yield Fault("spec.scope", "FieldValueNotSupported", shown)
    if not isinstance(names, dict):
        yield _required("spec.names")
    else:
        yield from _faults_of_names(names, str(spec.get("group", "")), name)
    if not isinstance(versions, list) or not versions or not all(isinstance(each, dict) for each in versions):
        yield _required("spec.versions")
        return
    if sum(bool(version.get("storage")) for version in versions) != 1:
        shown = "Invalid value: must have exactly one version marked as storage version"
        yield Fault("spec.versions", "FieldValueInvalid", shown)
    for at, version in enumerate(versions):
        yield from _faults_of_version(version, f"spec.versions[{at}]")


def _faults_of_names(names: Mapping[str, Any], group: str, name: str) -> Iterator[Fault]:
    for part in ("plural", "kind"):
        if not names.get(part):
            yield _required(f"spec.names.{part}")
    plural = str(names.get("plural", ""))
    if plural and not _LABEL.fullmatch(plural):
        shown = f'Invalid value: "{plural}": a lowercase DNS-1035 label is expected'
        yield Fault("spec.names.plural", "FieldValueInvalid", shown)
    if name != f"{plural}.{group}":
        shown = f'Invalid value: "{name}": must be spec.names.plural+"."+spec.group'
        yield Fault("metadata.name", "FieldValueInvalid", shown)


def _faults_of_version(version: Mapping[str, Any], path: str) -> Iterator[Fault]:
    if not version.get("name"):
        yield _required(f"{path}.name")
    for flag in ("served", "storage"):
        if not isinstance(version.get(flag), bool):
            yield _required(f"{path}.{flag}")
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not isinstance(schema, dict):
        yield Fault(f"{path}.schema.openAPIV3Schema", "FieldValueRequired", "Required value: schemas are required")
        return
    if schema.get("type") != "object":
        where = f"{path}.schema.openAPIV3Schema.type"
        shown = f'Invalid value: "{schema.get("type", "")}": must be object at the root'
        yield Fault(where, "FieldValueInvalid", shown)
    yield from _faults_of_schema(schema, f"{path}.schema.openAPIV3Schema")


def _faults_of_schema(schema: Any, path: str, *, correlatable: bool = True) -> Iterator[Fault]:
    """Yield the reasons why a schema is not structural: a part without type, a list without items, a wrong list type."""
    if not isinstance(schema, dict):
        yield Fault(path, "FieldValueInvalid", f"Invalid value: {schema!r}: a schema is an object")
        return
    yield from _faults_of_type(schema, path)
    yield from _faults_of_defaults(schema, path)
    yield from _faults_of_pattern(schema, path)
    yield from faults_of_rules(schema, path, correlatable=correlatable)
    if not isinstance(schema.get("properties", {}), dict):
        yield Fault(f"{path}.properties", "FieldValueInvalid", "Invalid value: properties map names to schemas")
        return
    for name, part in schema.get("properties", {}).items():
        yield from _faults_of_schema(part, f"{path}.properties[{name}]", correlatable=correlatable)
    keyed = correlatable and schema.get("x-kubernetes-list-type") == "map"
    for name, known in (("items", keyed), ("additionalProperties", correlatable)):
        if isinstance(schema.get(name), dict):
            yield from _faults_of_schema(schema[name], f"{path}.{name}", correlatable=known)


def _faults_of_type(schema: Mapping[str, Any], path: str) -> Iterator[Fault]:
    kind = schema.get("type")
    loose = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if kind is None and not loose:
        yield Fault(f"{path}.type", "FieldValueRequired", "Required value: must not be empty for specified object fields")
    elif kind is not None and kind not in _SIMPLE_TYPES:
        shown = ", ".join(f'"{each}"' for each in sorted(_SIMPLE_TYPES))
        yield Fault(f"{path}.type", "FieldValueNotSupported", f'Unsupported value: "{kind}": supported values: {shown}')
    if kind == "array" and "items" not in schema:
        yield Fault(f"{path}.items", "FieldValueRequired", "Required value: must be specified")
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get("x-kubernetes-list-map-keys"):
        yield Fault(f"{path}.x-kubernetes-list-map-keys", "FieldValueRequired", "Required value: must not be empty")
    if "properties" in schema and isinstance(schema.get("additionalProperties"), dict):
        shown = "Forbidden: additionalProperties and properties are mutual exclusive"
        yield Fault(f"{path}.additionalProperties", "FieldValueForbidden", shown)


def _faults_of_pattern(schema: Mapping[str, Any], path: str) -> Iterator[Fault]:
    try:
        re.compile(schema.get("pattern", ""))
    except (re.error, TypeError) as error:
        shown = f"Invalid value: {schema['pattern']!r}: must be a valid regular expression, but isn't: {error}"
        yield Fault(f"{path}.pattern", "FieldValueInvalid", shown)


def _faults_of_defaults(schema: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Find faults of a default, because every object that relies on an invalid default would be refused."""
    if "default" not in schema:
        return
    filled = copy.deepcopy(schema["default"])
    fill_defaults(filled, schema)
    for fault in validate(filled, schema, "default"):
        yield Fault(f"{path}.{fault.path}", fault.reason, fault.message)
