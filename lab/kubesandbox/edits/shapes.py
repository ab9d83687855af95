"""The merge behaviour of lists and maps: by key, as a set, or as one piece.

Strategic merge patches and server-side apply both need it, and differ in details. For instance, a container's ports merge by
`containerPort` in the one, and by `containerPort` and `protocol` in the other. The shapes of custom resources are in the schemas of their
definitions. Those of Kubernetes' own types are in Kubernetes' document (`kubernetestypes`). A value without a shape is a struct with atomic
lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from kubesandbox.kinds.kubernetestypes import METADATA, definitions, definitions_of

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Shape:
    """The merge behaviour of one value.

    Attributes:
        fields: named children.
        free: True if other keys are user data (labels), each with its own owner.
        item: shape of list elements.
        keys, is_set: keys of a list, or True for a set, in server-side apply; other lists are atomic.
        atomic: True if a map is one piece.
        merge_key, merge_set: key by which a list merges, or True for a set, in strategic merge; other lists are replaced.
        optional: True for objects that are absent until a manager writes them, and then owns them besides their fields.
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
    optional: bool = False

    def child(self, name: str) -> Shape:
        """Return the shape of the value under `name`, a plain one for an unknown name."""
        return self.fields.get(name, PLAIN)

    @property
    def element(self) -> Shape:
        """Shape of a list's elements."""
        return self.item or PLAIN

    def key_of(self, element: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the values that identify `element` in a keyed list, or None if one is missing."""
        return tuple(element.get(key, self.key_defaults.get(key)) for key in self.keys)


PLAIN: Final = Shape()
#: Keys of lists that Kubernetes fills in before it compares.
_KEY_DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType({"protocol": "TCP"})
#: Structs that are pointers in Go. The document does not tell it, and for others it makes no difference here.
_OPTIONAL: Final = frozenset({"resource.v1.AllocationResult"})
#: Keywords of schemas with alternatives, whose parts belong to no shape.
_OPAQUE: Final = "apiextensions.v1.JSONSchemaProps"


def shape_of(kind: str, schema: Mapping[str, Any] | None = None) -> Shape:
    """Return the shape of objects of `kind`. For a custom resource, `schema` (openAPIV3Schema) decides."""
    if schema is None:
        return _defined(definitions_of(kind)[0]) if definitions_of(kind) else Shape({"metadata": _defined(METADATA)})
    return Shape({**from_schema(schema).fields, "metadata": _defined(METADATA)})


def from_schema(schema: Mapping[str, Any], *, optional: bool = True) -> Shape:
    """Return the shape of a schema with its `x-kubernetes-*`. `optional` is True for custom resources, whose structs may be absent."""
    strategy = schema.get("x-kubernetes-patch-strategy", "").split(",")
    if "$ref" in schema:
        return _defined(schema["$ref"])
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
    """Return the shape of one of Kubernetes' own definitions."""
    if name == _OPAQUE:
        return PLAIN
    made = from_schema(definitions()[name], optional=False)
    return replace(made, optional=True) if name in _OPTIONAL else made
