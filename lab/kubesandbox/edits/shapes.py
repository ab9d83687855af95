"""How lists and maps of an object merge: by key, as a set, or as one piece.

Strategic merge patches and server-side apply both need to know it, and disagree on details (a container's ports merge
by `containerPort` in the one, by `containerPort` and `protocol` in the other). Custom resources have theirs in the schema of their
definition, Kubernetes' own types in Kubernetes' own (`kubernetestypes`). What no shape names is a struct, its lists atomic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from kubesandbox.kinds.kubernetestypes import METADATA, definitions, definitions_of

Object = dict[str, Any]
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Shape:
    """The merge behaviour of one value.

    `fields` are the named children; `free` says that other keys are user data (labels), each owned by itself.
    `item` is the shape of list elements. For server-side apply a list is keyed (`keys`), a set (`is_set`) or atomic;
    `atomic` makes a map one piece. For strategic merge a list merges by `merge_key`, as a set (`merge_set`) or is
    replaced; `retain_keys` drops what the patch's `$retainKeys` does not name. `optional` objects are absent until
    a manager writes them; it then owns the object itself beside its fields.
    """

    fields: Mapping[str, Shape] = field(default_factory=lambda: _NONE)
    free: bool = False
    item: Shape | None = None
    keys: tuple[str, ...] = ()
    key_defaults: Mapping[str, Any] = field(default_factory=lambda: _NONE)
    is_set: bool = False
    atomic: bool = False
    merge_key: str = ""
    merge_set: bool = False
    retain_keys: bool = False
    optional: bool = False

    def child(self, name: str) -> Shape:
        """Shape of the value under `name`; a plain one when nothing is known of it."""
        return self.fields.get(name, PLAIN)

    @property
    def element(self) -> Shape:
        """Shape of a list's elements."""
        return self.item or PLAIN

    def key_of(self, element: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values that identify `element` in a keyed list, None where one is missing."""
        return tuple(element.get(key, self.key_defaults.get(key)) for key in self.keys)


PLAIN: Final = Shape()
#: Keys of lists that Kubernetes fills in before it compares.
_KEY_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType({"protocol": "TCP"})
#: Structs that are pointers in Go; nothing in the document says so, and of others it makes no difference here.
_OPTIONAL: Final = frozenset({"resource.v1.AllocationResult"})
#: Where a schema is one value among others, its parts belong to no shape.
_OPAQUE: Final = "apiextensions.v1.JSONSchemaProps"


def shape_of(kind: str, schema: Mapping[str, Any] | None = None) -> Shape:
    """Return the shape of objects of `kind`; `schema` (openAPIV3Schema) decides for a custom resource."""
    if schema is None:
        return _defined(definitions_of(kind)[0]) if definitions_of(kind) else Shape({"metadata": _defined(METADATA)})
    return Shape({**from_schema(schema).fields, "metadata": _defined(METADATA)})


def from_schema(schema: Mapping[str, Any], *, optional: bool = True) -> Shape:
    """Return the shape that a schema describes with its `x-kubernetes-*`; `optional` says whether structs are, as in custom resources."""
    strategy = schema.get("x-kubernetes-patch-strategy", "").split(",")
    if "$ref" in schema:
        return replace(_defined(schema["$ref"]), retain_keys="retainKeys" in strategy)
    if "items" in schema:
        list_type = schema.get("x-kubernetes-list-type", "atomic")
        keys = tuple(schema.get("x-kubernetes-list-map-keys", ())) if list_type == "map" else ()
        item, merge_key = schema["items"], schema.get("x-kubernetes-patch-merge-key", "")
        defaults = {key: part["default"] for key, part in item.get("properties", {}).items() if key in keys and "default" in part}
        return Shape(
            item=from_schema(item, optional=optional),
            keys=keys,
            key_defaults=defaults if optional else _KEY_DEFAULTS,
            is_set=list_type == "set",
            merge_key=merge_key if "merge" in strategy else "",
            merge_set="merge" in strategy and not merge_key,
            retain_keys="retainKeys" in strategy,
        )
    properties = schema.get("properties", {})
    free = not properties and bool(schema.get("additionalProperties"))
    return Shape(
        {name: from_schema(part, optional=optional) for name, part in properties.items()},
        free=free,
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
        optional=optional or free,
    )


@cache
def _defined(name: str) -> Shape:
    """Return the shape of a definition of Kubernetes' own."""
    if name == _OPAQUE:
        return PLAIN
    made = from_schema(definitions()[name], optional=False)
    return replace(made, optional=True) if name in _OPTIONAL else made
