"""Typed decoding that tells of every field it does not know.

The API server prunes unknown fields of a custom resource before we see it; files and plugin arguments have nobody who does, and a
misspelt field that is ignored is a setting that silently does not hold. The expected shape is read off the type (msgspec structs and
dataclasses, nested), so a plugin's author only declares `Args`. Fields are camelCase in documents, whatever the attribute is called.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import inspect

from placewright.api.bad_input import in_json
from placewright.profiles.problem import UNKNOWN_FIELD, Problem, ProfileError, did_you_mean

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
    """Turn a parsed document into `kind`; raise `ProfileError` with a problem for every unknown field, else for the first wrong value.

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
        if isinstance(kind, (inspect.StructType, inspect.DataclassType)):
            return _shape_object(value, kind, path, problems)
        if isinstance(kind, inspect.DictType):
            free = isinstance(kind.value_type, inspect.AnyType)  # whoever reads it says what null means
            return {k: _shape(v, kind.value_type, _join(path, k), problems) for k, v in value.items() if free or v is not None}
    if isinstance(value, list) and isinstance(kind, (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)):
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
    objects = (inspect.StructType, inspect.DataclassType, inspect.DictType)
    lists = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
    wanted = objects if isinstance(value, Mapping) else lists if isinstance(value, list) else ()
    return next((member for member in kind.types if isinstance(member, wanted)), kind)


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _problems_of(message: str, document: Any, kind: type[Any], expected: inspect.Type) -> list[Problem]:
    """What msgspec says, in our words. Of a mapping it does not say which entry is wrong: each is tried by itself."""
    text, found, where = message.partition(" - at `$")
    before, unnamed, _ = where.partition("[...]")
    if not unnamed:
        return [_problem_of(message, document, expected)]
    steps = _steps(before)
    entries = _at(document, steps)
    if not isinstance(entries, Mapping):
        return [_problem_of(message, document, expected)]
    problems = []
    for key in entries:
        try:
            msgspec.convert(_with(document, steps, {key: entries[key]}), kind)
        except msgspec.ValidationError as error:
            text, found, where = str(error).partition(" - at `$")
            if where.startswith(f"{before}[...]"):
                named = _problem_of(f"{text}{found}{where.replace('[...]', '.' + _UNNAMED, 1)}", document, expected, str(key))
                problems.append(named)
    return problems or [_problem_of(message, document, expected)]


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
        if isinstance(kind, (inspect.StructType, inspect.DataclassType)):
            field = next(field for field in kind.fields if field.encode_name == step)
            path, kind = _join(path, wire_name(kind, field)), field.type
        elif isinstance(kind, inspect.DictType):
            path, kind = _join(path, step), kind.value_type
    return path, kind


def _spelled(kind: inspect.Type, name: str) -> str:
    """A field's name as the document spells it."""
    kind = _alternative(kind, {})
    if not isinstance(kind, (inspect.StructType, inspect.DataclassType)):
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
