"""The fields of one operation of a configuration. Each is read once, and an unread field is refused by name. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from placewright.api.bad_input import in_json
from placewright.api.durations import seconds
from placewright_lab.bench.schedulerperf.operations import Template

_MOST: Final = 1_000_000


class NotKnown(Exception):
    """A part of a workload is unknown here, or missing. The message is one line, and the workload is left out."""


class Parameters:
    """A workload's values for `$name`. A value that nothing reads is an error, like upstream."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._used: set[str] = set()

    def get(self, reference: object, where: str) -> object:
        """Return the value of `$name`."""
        name = reference.removeprefix("$") if isinstance(reference, str) else ""
        if not isinstance(reference, str) or not reference.startswith("$") or name not in self._values:
            raise NotKnown(f"{where} is {in_json(reference)}, which names no parameter of the workload")
        self._used.add(name)
        return self._values[name]

    def check(self) -> None:
        """Raise `NotKnown` for unread values."""
        if unused := sorted(self._values.keys() - self._used):
            raise NotKnown(f"the parameter {unused[0]} is not used by any operation")


class TemplateFiles:
    """Reader of templates. Their paths begin in the configuration's folder or, until 1.32, in the folder above."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[str, Template] = {}

    def get(self, path: object, where: str) -> Template:
        """Return the template at this path."""
        if not isinstance(path, str):
            raise NotKnown(f"{where} is {in_json(path)}, which is no path")
        if path not in self._read:
            self._read[path] = self._open(path, where)
        return self._read[path]

    def _open(self, path: str, where: str) -> Template:
        for folder in (self._folder, self._folder.parent):
            file = folder / path
            if file.is_file():
                return Template(file, file.read_text(encoding="utf-8"))
        raise NotKnown(f"{where} names {path}, which is not there")


class OpFields:
    """The fields of one operation, or of an object in one."""

    def __init__(self, fields: object, where: str, parameters: Parameters, files: TemplateFiles) -> None:
        if not isinstance(fields, dict):
            raise NotKnown(f"{where} is {in_json(fields)}, which is no object")
        self._left = dict(fields)
        self._where = where
        self._parameters = parameters
        self._files = files

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text, which must be there if it has no default."""
        found = self._left.pop(name, default)
        if not isinstance(found, str):
            raise self._wrong(name, found, "a text")
        return found

    def flag(self, name: str) -> bool:
        """Return a flag, false if it is missing. `nameParam` may name a parameter instead."""
        found = self._given(name, default=False)
        if not isinstance(found, bool):
            raise self._wrong(name, found, "true or false")
        return found

    def number(self, name: str, default: int | None = None) -> int:
        """Return a whole number, or `nameParam` with a parameter's name."""
        found = self._given(name, default)
        if isinstance(found, float) and found.is_integer():
            found = int(found)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= _MOST:
            raise self._wrong(name, found, f"a whole number from 0 to {_MOST}")
        return found

    def duration(self, name: str) -> float:
        """Return the seconds of a duration in Go's form, or of `nameParam`."""
        found = self._given(name, None)
        read = seconds(found) if isinstance(found, str) else None
        if read is None:
            raise self._wrong(name, found, "a duration")
        return read

    def template(self, name: str) -> Template | None:
        """Return the template that the field names, or None."""
        found = self._left.pop(name, None)
        return None if found is None else self._files.get(found, f"{self._where}.{name}")

    def needed_template(self, name: str) -> Template:
        """Return the template that the field must name."""
        return self._files.get(self._left.pop(name, None), f"{self._where}.{name}")

    def templates(self, name: str) -> list[Template]:
        """Return the templates that the field must name, at least one."""
        paths = self._left.pop(name, None)
        if not isinstance(paths, list) or not paths:
            raise self._wrong(name, paths, "a list of paths")
        return [self._files.get(path, f"{self._where}.{name}") for path in paths]

    def texts(self, name: str) -> Sequence[str]:
        """Return a list of texts, empty if it is missing."""
        found = self._left.pop(name, None) or []
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise self._wrong(name, found, "a list of texts")
        return tuple(found)

    def mapping(self, name: str) -> dict[str, Any]:
        """Return an object, empty if it is missing."""
        found = self._left.pop(name, None) or {}
        if not isinstance(found, dict):
            raise self._wrong(name, found, "an object")
        return found

    def inner(self, name: str) -> OpFields | None:
        """Return an object's own fields, or None if it is missing."""
        found = self._left.pop(name, None)
        return None if found is None else OpFields(found, f"{self._where}.{name}", self._parameters, self._files)

    def take(self, name: str) -> object:
        """Return a field's value of any type, or None if it is missing."""
        return self._left.pop(name, None)

    def finish(self) -> None:
        """Raise `NotKnown` for unread fields."""
        if self._left:
            raise NotKnown(f"{self._where} has the field {min(self._left)}, which is not known")

    def _given(self, name: str, default: object) -> object:
        """Return the field's value or its parameter's. Like in upstream's code, the parameter comes first."""
        value = self._left.pop(name, default)
        reference = self._left.pop(f"{name}Param", None)
        return value if reference is None else self._parameters.get(reference, f"{self._where}.{name}Param")

    def _wrong(self, name: str, found: object, allowed: str) -> NotKnown:
        return NotKnown(f"{self._where}.{name} is {in_json(found)} where {allowed} should be")
