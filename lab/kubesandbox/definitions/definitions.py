"""Custom resource definitions, from a folder of files and in use.

A stored definition adds its types to the registry. A deleted definition removes them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from kubesandbox.definitions.customresources import CustomResource, establish
from kubesandbox.resources import DEFINITIONS, GroupResource, ResourceRegistry, ResourceType
from kubesandbox.status import Object
from kubesandbox.storage.store import Change, Store
from placewright.api.yamldocs import documents


class Definitions:
    """The custom types of one server. `Admission` asks it about their objects."""

    def __init__(self, store: Store, registry: ResourceRegistry) -> None:
        self._store = store
        self._registry = registry
        self._rules: dict[GroupResource, CustomResource] = {}
        store.collection(DEFINITIONS).listeners.append(self._on_change)

    def establish(self, new: Object, now: str) -> Object:
        """Return a definition with defaults and conditions. Raises ApiError 422."""
        established: Object = {**new, "status": copy.deepcopy(new.get("status") or {})}
        establish(established, now)
        return established

    def admit(self, resource: ResourceType, new: Object, old: Object | None) -> Object:
        """Return a custom object, pruned, defaulted and checked. Raises ApiError 422."""
        return self._rules[resource.key].admit(new, old)

    def unknown_fields(self, resource: ResourceType, new: Object) -> list[str]:
        """Return the fields of a custom object that its schema does not know. Built-in types have none."""
        rules = self._rules.get(resource.key) if resource.custom else None
        return rules.unknown_fields(new) if rules else []

    def schema(self, resource: ResourceType) -> Object | None:
        """Return the openAPIV3Schema of a custom type; None for built-in ones."""
        rules = self._rules.get(resource.key) if resource.custom else None
        return dict(rules.schema(resource.version)) if rules else None

    def columns(self, resource: ResourceType) -> list[Object]:
        """Return the printer columns of a custom type; none for built-in ones."""
        return self._version(resource).get("additionalPrinterColumns") or []

    def selectable(self, resource: ResourceType) -> tuple[str, ...]:
        """Return the fields, beyond name and namespace, that field selectors of a custom type may use."""
        return tuple(str(each.get("jsonPath", "")).lstrip(".") for each in self._version(resource).get("selectableFields") or ())

    def _version(self, resource: ResourceType) -> Mapping[str, Any]:
        """Return the version of a custom type in its definition; nothing for built-in types."""
        return self._rules[resource.key].versions[resource.version] if resource.custom else {}

    def _on_change(self, change: Change) -> None:
        if change.previous is not None:
            self._withdraw(change.previous.object, replaced=change.current is not None)
        if change.current is not None:
            self._serve(change.current.object)

    def _serve(self, definition: Object) -> None:
        spec = definition["spec"]
        self._rules[spec["group"], spec["names"]["plural"]] = CustomResource(definition)
        stored = next(version["name"] for version in spec["versions"] if version.get("storage"))
        for version in spec["versions"]:
            if version.get("served"):
                self._registry.add(_type_of(spec, version, stored))

    def _withdraw(self, definition: Object, *, replaced: bool) -> None:
        spec = definition["spec"]
        plural = spec["names"]["plural"]
        for version in spec["versions"]:
            self._registry.remove(spec["group"], version["name"], plural)
        if replaced:
            return
        key = (spec["group"], plural)
        for each in self._store.listed(key):
            self._store.remove(key, each.namespace, each.name)
        self._rules.pop(key, None)


def _type_of(spec: Object, version: Object, stored: str) -> ResourceType:
    names = spec["names"]
    subresources = version.get("subresources") or {}
    return ResourceType(
        spec["group"],
        version["name"],
        names["plural"],
        names.get("singular") or names["kind"].lower(),
        names["kind"],
        spec.get("scope") == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=("status",) if "status" in subresources else (),
        custom=True,
        list_kind=names.get("listKind") or "",
        stored_version=f"{spec['group']}/{stored}",
    )


def read_definitions(folder: Path) -> Iterator[Object]:
    """Yield the definitions in `*.yaml` and `*.yml`, in order of file name, without objects of other kinds.

    Raises OSError if a file cannot be read. Raises ValueError, with file and reason, if it has no YAML or no Kubernetes objects.
    """
    for file in sorted(each for each in folder.iterdir() if each.suffix in (".yaml", ".yml")):
        try:
            found = _documents(file.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeError) as error:
            raise ValueError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
        for content in found:
            if not isinstance(content, dict) or "kind" not in content:
                raise ValueError(f"{file}: a Kubernetes object with a kind is expected, found {content!r:.100}")
            if content["kind"] == "CustomResourceDefinition":
                yield copy.deepcopy(content)


@lru_cache(maxsize=32)
def _documents(text: str) -> tuple[Any, ...]:
    """Parse a text once a process, because all sandboxes share the documents. Callers copy a document before they change it."""
    return tuple(document.value for document in documents(text))
