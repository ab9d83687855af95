"""YAML text to plain JSON-like values, document by document, safe against hostile text.

Values are built from the parser's flat stream of events, without recursion: the library's own composer recurses in C and can be made
to crash the process, and resolves aliases without a bound. Plain scalars mean what they mean to kubectl (YAML 1.1 without dates and
base-60 numbers). Refused, each with its line: duplicate keys, nesting deeper than `DEEPEST`, aliases that expand to more than
`MOST_ALIASED` values, aliases to something unfinished, tags beyond the plain ones, numbers that JSON cannot carry.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml

from placewright.api.bad_input import InputError, bad_field

DEEPEST: Final = 100
MOST_ALIASED: Final = 200_000
_TAG: Final = "tag:yaml.org,2002:"
_CONSTANTS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER: Final = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)")
_FLOAT: Final = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d{1,4})?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LONGEST_NUMBER: Final = 400
_MERGE: Final = object()


class Document(NamedTuple):
    """One YAML document: its number in the file (from 1), the line where it starts, and its value."""

    number: int
    line: int
    value: Any


class _Frame:
    """A mapping or sequence being filled."""

    __slots__ = ("anchor", "key", "merged", "size", "target")

    def __init__(self, target: dict[str, Any] | list[Any], anchor: str | None) -> None:
        self.target = target
        self.anchor = anchor
        self.key: object = None
        self.merged: list[Any] = []
        self.size = 1


def read_documents(text: str, file: str) -> Iterator[Document]:
    """The documents of a file, empty ones left out; raise `InputError` with file and line."""
    builder = _Builder(file)
    number = line = 0
    try:
        for event in yaml.parse(text.removeprefix("\ufeff"), Loader=_loader()):
            if isinstance(event, yaml.DocumentStartEvent):
                number, line = number + 1, _line(event)
                builder.restart()
            elif isinstance(event, yaml.DocumentEndEvent):
                if builder.value is not None:
                    yield Document(number, line, builder.value)
            elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
                builder.take(event)
    except yaml.YAMLError as error:
        raise InputError(f"{file}: {_describe(error)}") from None


def _loader() -> type[Any]:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _describe(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}not YAML: {' '.join(str(problem).split())}"


class _Builder:
    """Turns events into one document's value."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.restart()

    def restart(self) -> None:
        """Forget everything: anchors do not reach over documents."""
        self.value: Any = None
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._aliased = 0

    def take(self, event: yaml.Event) -> None:
        """Take the next event of the document."""
        where = f"{self._file}: line {_line(event)}"
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event, where)
            if event.anchor:
                self._anchors[event.anchor] = (value, 1)
            self._put(value, 1, where)
        elif isinstance(event, yaml.AliasEvent):
            self._put(*self._alias(event, where), where)
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open(event, where)
        else:
            self._close(where)

    def _scalar(self, event: yaml.ScalarEvent, where: str) -> Any:
        frame = self._frames[-1] if self._frames else None
        plain = event.implicit[0] and event.tag is None
        if frame is not None and isinstance(frame.target, dict) and frame.key is None:
            return _MERGE if plain and event.value == "<<" else event.value
        if event.tag not in (None, "!", f"{_TAG}str", *(f"{_TAG}{t}" for t in ("int", "float", "bool", "null"))):
            raise bad_field(where, event.tag, "no tag, or one of !!str, !!int, !!float, !!bool, !!null")
        typed = plain or event.tag not in (None, "!", f"{_TAG}str")
        return plain_scalar(event.value, where) if typed else _text(event.value, where)

    def _alias(self, event: yaml.AliasEvent, where: str) -> tuple[Any, int]:
        known = self._anchors.get(event.anchor or "")
        if known is None:
            raise bad_field(where, f"*{event.anchor}", "an alias to an anchor that is complete before it")
        self._aliased += known[1]
        if self._aliased > MOST_ALIASED:
            raise bad_field(where, "aliases that expand without end", f"aliases for at most {MOST_ALIASED} values")
        return known

    def _open(self, event: yaml.CollectionStartEvent, where: str) -> None:
        if len(self._frames) >= DEEPEST:
            raise bad_field(where, f"nesting deeper than {DEEPEST}", f"at most {DEEPEST} levels")
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", f"{_TAG}map" if mapping else f"{_TAG}seq"):
            raise bad_field(where, event.tag, "plain mappings and lists")
        if mapping and self._frames and isinstance(self._frames[-1].target, dict) and self._frames[-1].key is None:
            raise bad_field(where, "a mapping as a key", "text as a key")
        self._frames.append(_Frame({} if mapping else [], event.anchor))

    def _close(self, where: str) -> None:
        frame = self._frames.pop()
        if isinstance(frame.target, dict):
            for source in frame.merged:
                for key, value in source.items():
                    frame.target.setdefault(key, value)
        if frame.anchor:
            self._anchors[frame.anchor] = (frame.target, frame.size)
        self._put(frame.target, frame.size, where)

    def _put(self, value: Any, size: int, where: str) -> None:
        if not self._frames:
            self.value = value
            return
        frame = self._frames[-1]
        frame.size += size
        if isinstance(frame.target, list):
            frame.target.append(value)
        elif frame.key is None:
            frame.key = _key(value, frame.target, where)
        else:
            _set(frame, value, where)


def _key(value: Any, target: dict[str, Any], where: str) -> object:
    if value is _MERGE:
        return value
    if not isinstance(value, str):
        raise bad_field(where, value, "text as a key")
    if value in target:
        raise bad_field(where, f"the key {value} twice", "each key once")
    return _text(value, where)


def _set(frame: _Frame, value: Any, where: str) -> None:
    assert isinstance(frame.target, dict)
    if frame.key is _MERGE:
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise bad_field(where, value, "a mapping, or a list of mappings, after <<")
        frame.merged.extend(sources)
    else:
        frame.target[str(frame.key)] = value
    frame.key = None


def plain_scalar(text: str, where: str) -> Any:
    """What an unquoted scalar means: null, true or false, a number, or text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in "+-.0123456789" and len(text) <= _LONGEST_NUMBER:
        if _INTEGER.fullmatch(text):
            return _integer(text, where)
        if _FLOAT.fullmatch(text):
            value = math.inf if text[-1] in "fFnN" else float(text.replace("_", ""))
            if not math.isfinite(value):
                raise bad_field(where, text, "a number that is finite")
            return value
    return _text(text, where)


def _integer(text: str, where: str) -> int:
    digits = text.replace("_", "").lstrip("+-")
    base = {"0b": 2, "0x": 16, "0o": 8}.get(digits[:2], 8 if digits.startswith("0") else 10)
    value = int((digits[2:] or "0") if digits[1:2] in tuple("box") else digits, base) if len(digits) < 70 else 2**64
    if value >= 2**63:
        raise bad_field(where, text, "a number that fits in 64 bits")
    return -value if text.startswith("-") else value


def _text(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad_field(where, text, "text in Unicode, without lone surrogates") from None
    return text
