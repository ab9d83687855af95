"""Plugin arguments: from `pluginConfig` to an instance of each plugin's `Args`, checked; and the JSON Schema that says the same.

`decode_strict` tells of every field it does not know. The API server prunes unknown fields of a custom resource before we see it; files and
plugin arguments have nobody who does, and a misspelt field that is ignored is a setting that silently does not hold. The expected shape is
read off the type (msgspec structs and dataclasses, nested), so a plugin's author only declares `Args`. Fields are camelCase in documents.

What the schema of the arguments refuses is refused here, and what it accepts is accepted, but for two things that it cannot say: rules that
look at more than one field, which the arguments' own `validate` has, and that a whole number is not written with a fraction (`1.0`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from itertools import islice
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import inspect

from placewright.api.bad_input import in_json
from placewright.api.fieldmeanings import ALLOWED
from placewright.api.profile import PluginConfig
from placewright.framework.constraints import holds
from placewright.framework.errors import raised
from placewright.framework.interface import Plugin
from placewright.framework.registry import InstalledPlugins
from placewright.profiles.defaults import DEFAULT_PLUGINS, PACKAGES, Catalogue, known_plugin
from placewright.profiles.problem import (
    MOST_PROBLEMS,
    UNKNOWN_FIELD,
    Problem,
    ProfileError,
    did_you_mean,
    first_problems,
)

_PATH = "spec.pluginConfig"


def resolve_args(
    configs: Iterable[PluginConfig], names: Collection[str], catalogue: Catalogue, problems: list[Problem]
) -> dict[str, object]:
    """Arguments of every plugin in `names`, its defaults where the profile says nothing; what is wrong is added to `problems`.

    Arguments of plugins that the profile does not run are checked too: they are one `enabled` away from being used.
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
    return {
        name: given[name] if name in given else _defaults_of(catalogue[name], problems) for name in names if name in catalogue
    }


def _defaults_of(plugin: type[Plugin], problems: list[Problem]) -> object:
    try:
        return plugin.Args()
    except Exception as error:  # noqa: BLE001 - anybody's class, which may want to be told something
        problems.append(Problem(_PATH, f"no arguments for {plugin.name}", f"an entry that has them; without, {raised(error)}"))
        return None


def _args_of(plugin: type[Plugin], raw: Mapping[str, Any], path: str, problems: list[Problem]) -> object:
    """The plugin's arguments, or None when `problems` got a reason."""
    try:
        return read_args(plugin, raw)
    except ProfileError as error:
        problems.extend(problem.inside(path) for problem in error.problems)
    except Exception as error:  # noqa: BLE001 - anybody's class
        problems.append(Problem(path, in_json(dict(raw)), f"what plugin {plugin.name} takes; it raised {raised(error)}"))
    return None


def read_args(plugin: type[Plugin], raw: Mapping[str, Any]) -> object:
    """The plugin's arguments from `args` of a document; raise `ProfileError`, with paths inside `args`, when anything is wrong.

    What one field may be, the plugin's schema says too (`argument_schema`); rules across fields are the arguments' own `validate`.
    """
    fields, misnamed = _without_type_meta(plugin.name, raw)
    if misnamed:
        raise ProfileError([misnamed])
    try:
        args: object = decode_strict(fields, plugin.Args)
        wrong = {problem.path: problem for problem in first_problems(broken_constraints(args))}
        for triple in islice(_validate(args), MOST_PROBLEMS):
            wrong.setdefault(triple[0], Problem(*triple))
    except ValueError as error:
        wrong = {"": Problem("", in_json(dict(fields)), f"something else: {error}")}
    if wrong:
        raise ProfileError(wrong.values())
    return args


def _without_type_meta(name: str, raw: Mapping[str, Any]) -> tuple[dict[str, Any], Problem | None]:
    """`args` may carry the apiVersion and kind that kube-scheduler's files have; the kind must then be this plugin's."""
    fields = {key: value for key, value in raw.items() if key not in ("apiVersion", "kind")}
    kind = raw.get("kind")
    wrong = None if kind in (None, f"{name}Args") else Problem("kind", in_json(kind), f"{name}Args")
    return fields, wrong


def _validate(args: object) -> Iterable[tuple[str, str, str]]:
    """The problems that the plugin's own check finds; a plugin need not have one."""
    validate = getattr(args, "validate", None)
    return validate() if validate is not None else ()


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


def broken_constraints(value: object, *, worded: bool = False) -> Iterator[Problem]:
    """Fields, by path, that break the constraint in their annotation; `worded`: only constraints that say in words what is allowed."""
    return _broken(value, type_of(cast(Hashable, type(value))), "", worded=worded)


def _fields(kind: inspect.Type) -> Mapping[str, inspect.Field]:
    """Fields by their name in documents."""
    return {wire_name(kind, field): field for field in kind.fields} if isinstance(kind, _OBJECTS) else {}


# --- the check ---------------------------------------------------------------------------------------------------------------------


def _broken(value: Any, kind: inspect.Type, path: str, *, worded: bool) -> Iterator[Problem]:
    kind = _present(kind)
    if isinstance(kind, inspect.Metadata):
        allowed = (kind.extra or {}).get(ALLOWED)
        if (allowed or not worded) and not holds(value, kind.extra_json_schema or {}):
            yield Problem(path, in_json(value), allowed or "something else")
            return
        kind = _present(kind.type)
    if value is None:
        return
    if isinstance(kind, _OBJECTS):
        for name, field in _fields(kind).items():
            yield from _broken(getattr(value, field.name), field.type, f"{path}.{name}" if path else name, worded=worded)
    elif isinstance(kind, _LISTS):
        for i, item in enumerate(value):
            yield from _broken(item, kind.item_type, f"{path}[{i}]", worded=worded)


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


T = TypeVar("T")
_WRONG_TYPE: Final = re.compile(r"Expected (?P<allowed>.+?)(?:, got `.+`)?$")
_MISSING: Final = re.compile(r"Object missing required field `(.+)`")
#: Stands for the key of a mapping's entry in paths of msgspec, which do not name it.
_UNNAMED: Final = "\0entry"
_WORDS: Final[Mapping[str, str]] = {
    "int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "object": "an object", "array": "a list",
}  # fmt: skip
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def decode_strict(document: Any, kind: type[T]) -> T:
    """Turn a parsed document into `kind`; raise `ProfileError` with a problem for unknown fields, else for the first wrong value.

    Null means absent, as it does everywhere in Kubernetes.
    """
    problems: list[Problem] = []
    expected = type_of(cast(Hashable, kind))
    shaped = _shape(document, expected, "", problems)
    if problems:
        raise ProfileError(problems)
    try:
        return msgspec.convert(shaped, kind)
    except msgspec.ValidationError as error:
        raise ProfileError(_problems_of(str(error), shaped, kind, expected)) from None


@cache
def type_of(kind: Hashable) -> inspect.Type:
    """What msgspec knows of a type; finding it out evaluates every annotation, so it is kept."""
    return inspect.type_info(kind)


def _shape(value: Any, kind: inspect.Type, path: str, problems: list[Problem]) -> Any:
    """The value with attribute names for field names and without nulls; unknown fields go to `problems`."""
    kind = _alternative(kind, value)
    if isinstance(value, Mapping):
        if isinstance(kind, _OBJECTS):
            return _shape_object(value, kind, path, problems)
        if isinstance(kind, inspect.DictType):
            free = isinstance(kind.value_type, inspect.AnyType)  # whoever reads it says what null means
            return {k: _shape(v, kind.value_type, _join(path, k), problems) for k, v in value.items() if free or v is not None}
    if isinstance(value, list) and isinstance(kind, _LISTS):
        return [_shape(item, kind.item_type, f"{path}[{i}]", problems) for i, item in enumerate(value)]
    return value


def _shape_object(
    value: Mapping[Any, Any], kind: inspect.StructType | inspect.DataclassType, path: str, problems: list[Problem]
) -> dict[str, Any]:
    fields = {wire_name(kind, field): field for field in kind.fields}
    shaped: dict[str, Any] = {}
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            problems.append(_unknown_field(key, path, fields))
            if len(problems) >= MOST_PROBLEMS:
                raise ProfileError(problems)
        elif item is not None:
            shaped[field.encode_name] = _shape(item, field.type, _join(path, key), problems)
    return shaped


def wire_name(kind: inspect.StructType | inspect.DataclassType, field: inspect.Field) -> str:
    """The field's name in documents: as a struct says, and camelCase for the attributes of a dataclass."""
    if isinstance(kind, inspect.StructType):
        return field.encode_name
    head, *rest = field.name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _unknown_field(key: Any, path: str, fields: Mapping[str, Any]) -> Problem:
    allowed = ", ".join(fields) or "no fields"
    return Problem(_join(path, key), UNKNOWN_FIELD, f"{allowed}{did_you_mean(str(key), fields)}")


def _alternative(kind: inspect.Type, value: Any) -> inspect.Type:
    """The member of a union that can hold a value of this sort."""
    if isinstance(kind, inspect.Metadata):
        kind = kind.type
    if not isinstance(kind, inspect.UnionType):
        return kind
    wanted = (*_OBJECTS, inspect.DictType) if isinstance(value, Mapping) else _LISTS if isinstance(value, list) else ()
    return next((member for member in kind.types if isinstance(member, wanted)), kind)


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _problems_of(message: str, document: Any, kind: type[Any], expected: inspect.Type) -> list[Problem]:
    """What msgspec says, in our words. Of a mapping it does not say which entry is wrong: each is tried by itself."""
    before, unnamed, _ = message.partition(" - at `$")[2].partition("[...]")
    if not unnamed:
        return [_problem_of(message, document, expected)]
    steps = _steps(before)
    entries = _at(document, steps)
    if not isinstance(entries, Mapping):
        return [_problem_of(message, document, expected)]
    problems = []
    for key, said in islice(_wrong_entries(document, steps, f"{before}[...]", list(entries.items()), kind), MOST_PROBLEMS):
        named = said.replace("[...]", f".{_UNNAMED}", 1)
        problems.append(_problem_of(named, document, expected, str(key)))
    return problems or [_problem_of(message, document, expected)]


def _wrong_entries(
    document: Any, steps: list[str | int], place: str, entries: Sequence[tuple[Any, Any]], kind: type[Any]
) -> Iterator[tuple[Any, str]]:
    """(key, what msgspec says) of a mapping's entries that are wrong, in order. Halves in which nothing is wrong are not looked into.

    `place`: of any entry in what msgspec says.
    """
    try:
        msgspec.convert(_with(document, steps, dict(entries)), kind)
    except msgspec.ValidationError as error:
        said = str(error)
        if not said.partition(" - at `$")[2].startswith(place):
            return  # something else is wrong as well
        if len(entries) == 1:
            yield entries[0][0], said
            return
        half = len(entries) // 2
        for part in (entries[:half], entries[half:]):
            yield from _wrong_entries(document, steps, place, part, kind)


def _with(document: Any, steps: list[str | int], value: Any) -> Any:
    """The document with another value at a place."""
    if not steps:
        return value
    head, *rest = steps
    if isinstance(document, list):
        return [_with(item, rest, value) if at == head else item for at, item in enumerate(document)]
    return {**document, head: _with(document[head], rest, value)}


def _steps(where: str) -> list[str | int]:
    return [key or int(index) for key, index in _STEP.findall(where) if index != "..."]


def _problem_of(message: str, document: Any, kind: inspect.Type, entry: str = "") -> Problem:
    """The message of msgspec in our words, with the value where it only names a type; `entry` is the key of a mapping that is meant."""
    text, _, where = message.partition(" - at `$")
    steps: list[str | int] = [entry if step == _UNNAMED else step for step in _steps(where.rstrip("`"))]
    path, inner = _locate(kind, steps)
    found = in_json(_at(document, steps))
    if missing := _MISSING.match(text):
        return Problem(_join(path, _spelled(inner, missing[1])), "nothing", "a value: the field is required")
    if text.startswith("Invalid enum value"):
        return Problem(path, found, _members(inner, str(_at(document, steps))))
    if wrong := _WRONG_TYPE.match(text):
        return Problem(path, found, _in_words(wrong["allowed"]))
    return Problem(path, found, f"something else: {text}")


def _in_words(types: str) -> str:
    """Types as people who write documents call them; null means absent everywhere, so it goes without saying."""
    quoted = re.match(r"`([^`]+)`", types)
    if quoted is None:
        return types
    words = [_WORDS.get(name, name) for name in quoted[1].split(" | ") if name != "null"] or ["nothing"]
    return " or ".join(words) + types[quoted.end() :].replace("`", "")


def _locate(kind: inspect.Type, steps: list[str | int]) -> tuple[str, inspect.Type]:
    """The path as the document spells it, and the type expected at its end."""
    path = ""
    for step in steps:
        if isinstance(step, int):
            kind = _alternative(kind, [])
            path, kind = f"{path}[{step}]", getattr(kind, "item_type", kind)
            continue
        kind = _alternative(kind, {})
        if isinstance(kind, _OBJECTS):
            field = next(field for field in kind.fields if field.encode_name == step)
            path, kind = _join(path, wire_name(kind, field)), field.type
        elif isinstance(kind, inspect.DictType):
            path, kind = _join(path, step), kind.value_type
    return path, kind


def _spelled(kind: inspect.Type, name: str) -> str:
    """A field's name as the document spells it."""
    kind = _alternative(kind, {})
    if not isinstance(kind, _OBJECTS):
        return name
    return next((wire_name(kind, field) for field in kind.fields if field.encode_name == name), name)


def _members(kind: inspect.Type, found: str) -> str:
    """What a closed set holds, with the member that was probably meant."""
    members = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    values = [value for member in members if isinstance(member, inspect.LiteralType) for value in member.values]
    values += [value.value for member in members if isinstance(member, inspect.EnumType) for value in member.cls]
    words = [str(value) for value in values]
    return (", ".join(words) or "another value") + did_you_mean(found, words)


def _at(document: Any, steps: list[str | int]) -> Any:
    for step in steps:
        try:
            document = document[step]
        except (KeyError, IndexError, TypeError):
            return None
    return document
