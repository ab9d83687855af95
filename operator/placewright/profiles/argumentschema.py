"""The JSON Schema of a plugin's arguments, made from the types that decode them and the constraints beside their fields.

The reader of profiles checks the same constraints (`broken_constraints`), so what the schema refuses is refused, and what it accepts is
accepted, but for two things that it cannot say: rules that look at more than one field, which the arguments' own `validate` has, and
that a whole number is not written with a fraction (`1.0`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, Final, cast

import msgspec
from msgspec import inspect

from placewright.api.bad_input import in_json
from placewright.framework.constraints import ALLOWED, holds
from placewright.framework.interface import Plugin
from placewright.profiles.problem import Problem
from placewright.profiles.strict import type_of, wire_name

Schema = dict[str, Any]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_OBJECTS: Final = (inspect.StructType, inspect.DataclassType)
_LISTS: Final = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
_SCALARS: Final[Mapping[type[inspect.Type], str]] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
    inspect.NoneType: "null",
}
#: msgspec's own constraints, which an author may have used: attribute of the type to keyword.
_KEYWORDS: Final[Mapping[str, str]] = {
    "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "multiple_of": "multipleOf",
    "pattern": "pattern",
}  # fmt: skip


def argument_schema(plugin: type[Plugin]) -> Schema:
    """JSON Schema (2020-12) of what `pluginConfig` may give as `args` for this plugin."""
    schema: Schema = {"description": f"Arguments of the plugin {plugin.name}."}
    schema |= _object(type_of(cast(Hashable, plugin.Args)))
    kind = f"{plugin.name}Args"
    type_meta: Schema = {"apiVersion": {"description": "As in kube-scheduler's files; not looked at."}, "kind": {"enum": [kind, None]}}
    return {"$schema": _DIALECT, "title": kind, **schema, "properties": type_meta | schema["properties"]}


def has_arguments(plugin: type[Plugin]) -> bool:
    """Whether there is anything to say to this plugin."""
    return bool(_fields(type_of(cast(Hashable, plugin.Args))))


def broken_constraints(args: object) -> Iterator[Problem]:
    """Fields of decoded arguments that do not keep their own constraint, defaults included, with paths as documents spell them."""
    return _broken(args, type_of(cast(Hashable, type(args))), "")


def _fields(kind: inspect.Type) -> Mapping[str, inspect.Field]:
    """Fields by their name in documents."""
    return {wire_name(kind, field): field for field in kind.fields} if isinstance(kind, _OBJECTS) else {}


# --- the check ---------------------------------------------------------------------------------------------------------------------


def _broken(value: Any, kind: inspect.Type, path: str) -> Iterator[Problem]:
    kind = _present(kind)
    if isinstance(kind, inspect.Metadata):
        if not holds(value, kind.extra_json_schema or {}):
            yield Problem(path, in_json(value), (kind.extra or {}).get(ALLOWED, "something else"))
            return
        kind = _present(kind.type)
    if value is None:
        return
    if isinstance(kind, _OBJECTS):
        for name, field in _fields(kind).items():
            yield from _broken(getattr(value, field.name), field.type, f"{path}.{name}" if path else name)
    elif isinstance(kind, _LISTS):
        for i, item in enumerate(value):
            yield from _broken(item, kind.item_type, f"{path}[{i}]")


def _present(kind: inspect.Type) -> inspect.Type:
    """`X` for `X | None`."""
    if not isinstance(kind, inspect.UnionType):
        return kind
    members = [member for member in kind.types if not isinstance(member, inspect.NoneType)]
    return members[0] if len(members) == 1 else kind


# --- the schema --------------------------------------------------------------------------------------------------------------------


def _object(kind: inspect.Type) -> Schema:
    fields = _fields(kind)
    properties = {name: _field(field) for name, field in fields.items()}
    required = [name for name, field in fields.items() if _is_required(field)]
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    described = _first_paragraph(_written_about(kind.cls)) if isinstance(kind, _OBJECTS) else ""
    return ({"description": described} if described else {}) | schema | ({"required": required} if required else {})


def _field(field: inspect.Field) -> Schema:
    """A field's schema; null is as good as leaving it out, where it may be left out."""
    schema = _of(field.type)
    if _is_required(field):
        return schema
    default = _plain_default(field)
    return _or_null(schema) | ({} if default is None else {"default": default})


def _is_required(field: inspect.Field) -> bool:
    """True where nothing is no value, and where the default itself breaks the field's constraint."""
    if field.required:
        return True
    kind = _present(field.type)
    return isinstance(kind, inspect.Metadata) and not holds(_default(field), kind.extra_json_schema or {})


def _default(field: inspect.Field) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default is msgspec.NODEFAULT else field.default


def _plain_default(field: inspect.Field) -> Any:
    """The default as JSON; None where it is nothing."""
    default = _default(field)
    return None if default is None else msgspec.json.decode(msgspec.json.encode(default, enc_hook=str))


def _of(kind: inspect.Type) -> Schema:
    if isinstance(kind, inspect.Metadata):
        facets = dict(kind.extra_json_schema or {})
        return facets if facets.get("type") == "null" else _of(kind.type) | facets
    if isinstance(kind, _OBJECTS):
        return _object(kind)
    if isinstance(kind, _LISTS):
        return {"type": "array", "items": _of(kind.item_type)} | _lengths(kind, "Items")
    if isinstance(kind, inspect.DictType):
        return {"type": "object", "additionalProperties": _of(kind.value_type)}
    if isinstance(kind, inspect.UnionType):
        return _union(kind)
    return _scalar(kind)


def _union(kind: inspect.UnionType) -> Schema:
    present = _present(kind)
    if present is kind:
        return {"anyOf": [_of(member) for member in kind.types]}
    return _or_null(_of(present)) if kind.includes_none else _of(present)


def _scalar(kind: inspect.Type) -> Schema:
    if isinstance(kind, inspect.LiteralType):
        return {"enum": list(kind.values)}
    if isinstance(kind, inspect.EnumType):
        return {"enum": [member.value for member in kind.cls]}
    if type(kind) not in _SCALARS:
        return {}
    bounds = {word: getattr(kind, name) for name, word in _KEYWORDS.items() if getattr(kind, name, None) is not None}
    return {"type": _SCALARS[type(kind)]} | bounds | _lengths(kind, "Length")


def _lengths(kind: inspect.Type, of_what: str) -> Schema:
    found = {f"{end}{of_what}": getattr(kind, f"{end}_length", None) for end in ("min", "max")}
    return {word: length for word, length in found.items() if length is not None}


def _or_null(schema: Schema) -> Schema:
    if not schema or schema.get("type") == "null" or "null" in schema.get("type", ()):
        return schema
    if not {"type", "enum"} & schema.keys():
        return {"anyOf": [schema, {"type": "null"}]}
    widened = dict(schema)
    if "type" in widened:
        widened["type"] = [widened["type"], "null"]
    if "enum" in widened:
        widened["enum"] = [*widened["enum"], None]
    return widened


def _written_about(cls: type[Any]) -> str:
    """A class's docstring; Python writes one itself for dataclasses that have none, which is their signature."""
    text = cls.__doc__ or ""
    return "" if is_dataclass(cls) and text.startswith(f"{cls.__name__}(") else text


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").strip().partition("\n\n")[0].split())
