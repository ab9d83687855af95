"""Strict conversion of parsed documents: every unknown field is a problem with its path, and messages are for people who write documents.

msgspec alone ignores unknown fields or names only the first. It does not name the entry of a mapping in which a value is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import inspect

from placewright.api.bad_input import in_json
from placewright.profiles.problem import MOST_PROBLEMS, UNKNOWN_FIELD, Problem, ProfileError, did_you_mean

T = TypeVar("T")
#: msgspec's descriptions of types whose values are objects in documents.
OBJECTS: Final = (inspect.StructType, inspect.DataclassType)
#: msgspec's descriptions of types whose values are lists in documents.
LISTS: Final = (inspect.ListType, inspect.VarTupleType, inspect.SetType, inspect.FrozenSetType)
#: Types of JSON Schema by msgspec's description.
SCALARS: Final[Mapping[type[inspect.Type], str]] = {
    inspect.StrType: "string",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.BoolType: "boolean",
    inspect.NoneType: "null",
}
_WRONG_TYPE: Final = re.compile(r"Expected (?P<allowed>.+?)(?:, got `.+`)?$")
_MISSING: Final = re.compile(r"Object missing required field `(.+)`")
#: Stands for the key of a mapping's entry in paths of msgspec, which do not name it.
_UNNAMED: Final = "\0entry"
_WORDS: Final[Mapping[str, str]] = {
    "int": "a whole number", "float": "a number", "str": "text", "bool": "true or false", "object": "an object", "array": "a list",
}  # fmt: skip
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?(?=[a-zA-Z%]*$)")
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def decode_strict(document: Any, kind: type[T]) -> T:
    """Convert a parsed document. Null means absent, as everywhere in Kubernetes.

    Raises:
        ProfileError: fields are unknown, which lists all of them, or a value has another type, which lists the first.
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
    """Inspect a type. The result is kept, because an inspection evaluates every annotation."""
    return inspect.type_info(kind)


def _shape(value: Any, kind: inspect.Type, path: str, problems: list[Problem]) -> Any:
    """Rename fields to attributes, and remove nulls. Unknown fields go to `problems`."""
    kind = _alternative(kind, value)
    if isinstance(value, Mapping):
        if isinstance(kind, OBJECTS):
            return _shape_object(value, kind, path, problems)
        if isinstance(kind, inspect.DictType):
            free = isinstance(kind.value_type, inspect.AnyType)  # its reader decides what null means
            return {k: _shape(v, kind.value_type, _join(path, k), problems) for k, v in value.items() if free or v is not None}
    if isinstance(value, list) and isinstance(kind, LISTS):
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
    """Find a field's name in documents: a struct's own name, and camelCase for the attributes of a dataclass."""
    if isinstance(kind, inspect.StructType):
        return field.encode_name
    head, *rest = field.name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _unknown_field(key: Any, path: str, fields: Mapping[str, Any]) -> Problem:
    allowed = ", ".join(fields) or "no fields"
    return Problem(_join(path, key), UNKNOWN_FIELD, f"{allowed}{did_you_mean(str(key), fields)}")


def _alternative(kind: inspect.Type, value: Any) -> inspect.Type:
    """Return the member of a union that can hold a value of this sort."""
    if isinstance(kind, inspect.Metadata):
        kind = kind.type
    if not isinstance(kind, inspect.UnionType):
        return kind
    wanted = (*OBJECTS, inspect.DictType) if isinstance(value, Mapping) else LISTS if isinstance(value, list) else ()
    return next((member for member in kind.types if isinstance(member, wanted)), kind)


def _join(path: str, key: Any) -> str:
    return f"{path}.{key}" if path else str(key)


def _problems_of(message: str, document: Any, kind: type[Any], expected: inspect.Type) -> list[Problem]:
    """Translate msgspec's message. It does not name the wrong entry of a mapping, so each entry is tried alone."""
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
    """Yield (key, msgspec's message) of wrong entries of a mapping, in order. Halves without a wrong entry are skipped.

    `place` stands for any entry in msgspec's message.
    """
    try:
        msgspec.convert(_with(document, steps, dict(entries)), kind)
    except msgspec.ValidationError as error:
        said = str(error)
        if not said.partition(" - at `$")[2].startswith(place):
            return  # another part of the document is wrong, too
        if len(entries) == 1:
            yield entries[0][0], said
            return
        half = len(entries) // 2
        for part in (entries[:half], entries[half:]):
            yield from _wrong_entries(document, steps, place, part, kind)


def _with(document: Any, steps: list[str | int], value: Any) -> Any:
    """Copy the document with another value at a place."""
    if not steps:
        return value
    head, *rest = steps
    if isinstance(document, list):
        return [_with(item, rest, value) if at == head else item for at, item in enumerate(document)]
    return {**document, head: _with(document[head], rest, value)}


def _steps(where: str) -> list[str | int]:
    return [key or int(index) for key, index in _STEP.findall(where) if index != "..."]


def _meant(value: object, allowed: str) -> str:
    """Return the number that a text begins with, if a number is allowed: `60` for `"60s"`."""
    number = _NUMBER.match(value) if isinstance(value, str) and re.search(r"\b(?:int|float)\b", allowed) else None
    return f", such as {number[0]}, without quotes and unit" if number else ""


def _problem_of(message: str, document: Any, kind: inspect.Type, entry: str = "") -> Problem:
    """Translate msgspec's message, and add the value if it names only a type; `entry` is the key of a mapping's entry."""
    text, _, where = message.partition(" - at `$")
    steps: list[str | int] = [entry if step == _UNNAMED else step for step in _steps(where.rstrip("`"))]
    path, inner = _locate(kind, steps)
    found = in_json(_at(document, steps))
    if missing := _MISSING.match(text):
        return Problem(_locate(kind, [*steps, missing[1]])[0], "nothing", "a value: the field is required")
    if text.startswith("Invalid enum value"):
        return Problem(path, found, _members(inner, str(_at(document, steps))))
    if wrong := _WRONG_TYPE.match(text):
        return Problem(path, found, _in_words(wrong["allowed"]) + _meant(_at(document, steps), wrong["allowed"]))
    return Problem(path, found, f"something else: {text}")


def _in_words(types: str) -> str:
    """Write names of types for people who write documents. Null goes without saying, because it means absent everywhere."""
    quoted = re.match(r"`([^`]+)`", types)
    if quoted is None:
        return types
    words = [_WORDS.get(name, name) for name in quoted[1].split(" | ") if name != "null"] or ["nothing"]
    return " or ".join(words) + types[quoted.end() :].replace("`", "")


def _locate(kind: inspect.Type, steps: list[str | int]) -> tuple[str, inspect.Type]:
    """Return the path as the document spells it, and the type expected at its end."""
    path = ""
    for step in steps:
        if isinstance(step, int):
            kind = _alternative(kind, [])
            path, kind = f"{path}[{step}]", getattr(kind, "item_type", kind)
            continue
        kind = _alternative(kind, {})
        if isinstance(kind, OBJECTS):
            field = next(field for field in kind.fields if field.encode_name == step)
            path, kind = _join(path, wire_name(kind, field)), field.type
        elif isinstance(kind, inspect.DictType):
            path, kind = _join(path, step), kind.value_type
    return path, kind


def _members(kind: inspect.Type, found: str) -> str:
    """Return the values of a closed set, with the one that was probably meant."""
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
