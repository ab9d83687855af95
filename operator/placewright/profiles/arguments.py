"""Plugin arguments: from `pluginConfig` to a checked instance of each plugin's `Args`, and the JSON Schema with the same rules.

The schema of the arguments refuses and accepts the same values as this check. Two exceptions remain: rules across fields,
which the arguments' own `validate` has, and whole numbers with a fraction (`1.0`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from itertools import islice
from typing import Any, Final, cast

import msgspec
from msgspec import inspect

from placewright.api.bad_input import in_json
from placewright.api.fieldmeanings import ALLOWED
from placewright.api.profile import PluginConfig
from placewright.framework.constraints import holds
from placewright.framework.errors import raised
from placewright.framework.interface import Plugin
from placewright.framework.registry import InstalledPlugins
from placewright.profiles.config import CONFIG_API_VERSION, CONFIG_GROUP
from placewright.profiles.defaults import DEFAULT_PLUGINS, PACKAGES, Catalogue, known_plugin
from placewright.profiles.merge import without_type_meta
from placewright.profiles.problem import MOST_PROBLEMS, Problem, ProfileError, first_problems
from placewright.profiles.strictdecode import LISTS, OBJECTS, SCALARS, decode_strict, type_of, wire_name

_PATH = "spec.pluginConfig"


def resolve_args(
    configs: Iterable[PluginConfig], names: Collection[str], catalogue: Catalogue, problems: list[Problem]
) -> dict[str, object]:
    """Convert the arguments of every plugin in `names`; its defaults if the profile has no entry for it.

    Arguments of plugins that the profile does not run are checked, too: one `enabled` puts them to use.

    Raises:
        ProfileError: there are more problems than are looked for.
    """
    given: dict[str, object] = {}
    on_disk = InstalledPlugins()
    for index, config in enumerate(configs):
        path = f"{_PATH}[{index}]"
        if len(problems) >= MOST_PROBLEMS:
            raise ProfileError(problems)
        if config.name in given:
            problems.append(Problem(f"{path}.name", in_json(config.name), "one entry for each plugin"))
        elif config.name in catalogue:
            given[config.name] = _args_of(catalogue[config.name], config.args or {}, f"{path}.args", problems)
        elif config.name not in DEFAULT_PLUGINS and config.name not in PACKAGES:
            problems.append(Problem(f"{path}.name", in_json(config.name), known_plugin(config.name, catalogue, on_disk)))
    return {name: given[name] if name in given else _defaults_of(catalogue[name], problems) for name in names if name in catalogue}


def _defaults_of(plugin: type[Plugin], problems: list[Problem]) -> object:
    try:
        return plugin.Args()
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a third-party class, whose fields may have no defaults
        problems.append(Problem(_PATH, f"no arguments for {plugin.name}", f"an entry that has them; without, {raised(error)}"))
        return None


def _args_of(plugin: type[Plugin], raw: Mapping[str, Any], path: str, problems: list[Problem]) -> object:
    """Read the plugin's arguments; None when `problems` got a reason."""
    try:
        return read_args(plugin, raw)
    except ProfileError as error:
        problems.extend(problem.inside(path) for problem in error.problems)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a third-party class
        problems.append(Problem(path, in_json(dict(raw)), f"what plugin {plugin.name} takes; it raised {raised(error)}"))
    return None


def read_args(plugin: type[Plugin], raw: Mapping[str, Any]) -> object:
    """Convert the arguments of one plugin.

        read_args(NodeResourcesFit, {"ignoredResources": ["example.com/gpu"]})

    Raises:
        ProfileError: a field is unknown, has another type, or breaks a rule; with paths inside `args`.
    """
    fields, misnamed = _without_type_meta(plugin.name, raw)
    if misnamed:
        raise ProfileError([misnamed])
    try:
        args: object = decode_strict(fields, plugin.Args)
        wrong = {problem.path: problem for problem in first_problems(broken_constraints(args))}
        validate = getattr(args, "validate", tuple)  # a plugin without a check of its own finds no problems
        for triple in islice(validate(), MOST_PROBLEMS):
            wrong.setdefault(triple[0], Problem(*triple))
    except ValueError as error:
        wrong = {"": Problem("", in_json(dict(fields)), f"something else: {error}")}
    if wrong:
        raise ProfileError(wrong.values())
    return args


def _without_type_meta(name: str, raw: Mapping[str, Any]) -> tuple[dict[str, Any], Problem | None]:
    """Remove the apiVersion and kind that kube-scheduler's files add; the kind must be this plugin's, and the version not an older one."""
    fields = without_type_meta(raw)
    kind, version = raw.get("kind"), raw.get("apiVersion")
    if kind not in (None, f"{name}Args"):
        return fields, Problem("kind", in_json(kind), f"{name}Args")
    if isinstance(version, str) and version != CONFIG_API_VERSION and version.startswith(CONFIG_GROUP):
        return fields, Problem("apiVersion", in_json(version), f"{CONFIG_API_VERSION} (placewright convert translates older versions)")
    return fields, None


Schema = dict[str, Any]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
#: msgspec's own constraints, which an author may have used: attribute of the type to keyword of the schema.
_KEYWORDS: Final[Mapping[str, str]] = {
    "ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum", "multiple_of": "multipleOf",
    "pattern": "pattern",
}  # fmt: skip


def argument_schema(plugin: type[Plugin]) -> Schema:
    """Build the JSON Schema (2020-12) of a plugin's `args`."""
    schema: Schema = {"description": f"Arguments of the plugin {plugin.name}."}
    schema |= _object(type_of(cast(Hashable, plugin.Args)))
    kind = f"{plugin.name}Args"
    type_meta: Schema = {"apiVersion": {"description": "As in kube-scheduler's files; ignored here."}, "kind": {"enum": [kind, None]}}
    return {"$schema": _DIALECT, "title": kind, **schema, "properties": type_meta | schema["properties"]}


def has_arguments(plugin: type[Plugin]) -> bool:
    """Return whether a plugin has arguments.

    Returns:
        True when it has fields to set.
    """
    return bool(_fields(type_of(cast(Hashable, plugin.Args))))


def broken_constraints(value: object, *, worded: bool = False) -> Iterator[Problem]:
    """Find the fields that break the constraint in their annotation.

    Args:
        value: an instance of a struct or a dataclass.
        worded: find only broken constraints that say in words what is allowed; the API server's schema finds the others.

    Yields:
        A problem for each field, with its path in documents.
    """
    return _broken(value, type_of(cast(Hashable, type(value))), "", _worded if worded else _every)


def too_long_texts(value: object) -> Iterator[Problem]:
    """Find the texts that are longer than their annotation allows, in words or not.

    Yields:
        A problem for each field, with its path in documents.
    """
    return _broken(value, type_of(cast(Hashable, type(value))), "", _length)


def _fields(kind: inspect.Type) -> Mapping[str, inspect.Field]:
    """Return the fields by their name in documents."""
    return {wire_name(kind, field): field for field in kind.fields} if isinstance(kind, OBJECTS) else {}


# --- the check ---------------------------------------------------------------------------------------------------------------------


def _every(kind: inspect.Metadata) -> tuple[Mapping[str, Any], str]:
    return kind.extra_json_schema or {}, (kind.extra or {}).get(ALLOWED) or "something else"


def _worded(kind: inspect.Metadata) -> tuple[Mapping[str, Any], str]:
    allowed = (kind.extra or {}).get(ALLOWED, "")
    return (kind.extra_json_schema or {}) if allowed else {}, allowed


def _length(kind: inspect.Metadata) -> tuple[Mapping[str, Any], str]:
    most = (kind.extra_json_schema or {}).get("maxLength")
    return ({}, "") if most is None else ({"maxLength": most}, f"at most {most} characters")


def _broken(
    value: Any, kind: inspect.Type, path: str, held: Callable[[inspect.Metadata], tuple[Mapping[str, Any], str]]
) -> Iterator[Problem]:
    """Find the problems of a value and all inside it. `held` chooses the facets of an annotation, and has words for them."""
    kind = _present(kind)
    if isinstance(kind, inspect.Metadata):
        facets, allowed = held(kind)
        if not holds(value, facets):
            yield Problem(path, in_json(value), allowed)
            return
        kind = _present(kind.type)
    if value is None:
        return
    if isinstance(kind, OBJECTS):
        for name, field in _fields(kind).items():
            yield from _broken(getattr(value, field.name), field.type, f"{path}.{name}" if path else name, held)
    elif isinstance(kind, LISTS):
        for i, item in enumerate(value):
            yield from _broken(item, kind.item_type, f"{path}[{i}]", held)


def _present(kind: inspect.Type) -> inspect.Type:
    """Return `X` for `X | None`."""
    if not isinstance(kind, inspect.UnionType):
        return kind
    members = [member for member in kind.types if not isinstance(member, inspect.NoneType)]
    return members[0] if len(members) == 1 else kind


# --- the schema --------------------------------------------------------------------------------------------------------------------


def _object(kind: inspect.Type) -> Schema:
    """Build the schema of a struct or dataclass."""
    fields = _fields(kind)
    properties = {name: _field(field) for name, field in fields.items()}
    required = [name for name, field in fields.items() if _is_required(field)]
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    described = _first_paragraph(_written_about(kind.cls)) if isinstance(kind, OBJECTS) else ""
    return ({"description": described} if described else {}) | schema | ({"required": required} if required else {})


def _field(field: inspect.Field) -> Schema:
    """Build the schema of a field. Null means the same as leaving it out."""
    schema = _of(field.type)
    if _is_required(field):
        return schema
    default = _plain_default(field)
    return _or_null(schema) | ({} if default is None else {"default": default})


def _is_required(field: inspect.Field) -> bool:
    """Return whether null is no value, or the default itself breaks the field's constraint."""
    if field.required:
        return True
    kind = _present(field.type)
    return isinstance(kind, inspect.Metadata) and not holds(_default(field), kind.extra_json_schema or {})


def _default(field: inspect.Field) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default is msgspec.NODEFAULT else field.default


def _plain_default(field: inspect.Field) -> Any:
    """Return the default as JSON; None if there is none."""
    default = _default(field)
    return None if default is None else msgspec.json.decode(msgspec.json.encode(default, enc_hook=str))


def _of(kind: inspect.Type) -> Schema:
    if isinstance(kind, inspect.Metadata):
        facets = dict(kind.extra_json_schema or {})
        return facets if facets.get("type") == "null" else _of(kind.type) | facets
    if isinstance(kind, OBJECTS):
        return _object(kind)
    if isinstance(kind, LISTS):
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
    if type(kind) not in SCALARS:
        return {}
    bounds = {word: getattr(kind, name) for name, word in _KEYWORDS.items() if getattr(kind, name, None) is not None}
    return {"type": SCALARS[type(kind)]} | bounds | _lengths(kind, "Length")


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
    """Return a class's docstring, except the signature that Python itself writes for dataclasses."""
    text = cls.__doc__ or ""
    return "" if is_dataclass(cls) and text.startswith(f"{cls.__name__}(") else text


def _first_paragraph(text: str | None) -> str:
    return " ".join((text or "").strip().partition("\n\n")[0].split())
