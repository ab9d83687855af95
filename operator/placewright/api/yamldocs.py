"""Reads YAML into plain JSON-like values and their places, document by document; all rooms use this reader.

It is safe against hostile text. Values are built from the parser's flat stream of events, without recursion: PyYAML's own composer can be
made to crash the process, and resolves aliases without a bound. Plain scalars mean the same as to kubectl (YAML 1.1 without dates and
base-60 numbers). Repeated keys, nesting deeper than `DEEPEST` and aliases for more than `MOST_ALIASED` values are refused, each with its
place. So are aliases to an unfinished value, tags beyond the plain ones, numbers that JSON cannot carry, and half surrogates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from placewright.api.bad_input import InputError, bad_field, in_json

#: Levels of nesting, the innermost value being one of them; profiles have nine.
DEEPEST: Final = 100
#: Values that come from aliases, each counted as often as it would be written out. A longer text may have as many as it has characters.
MOST_ALIASED: Final = 100_000
_TAG: Final = "tag:yaml.org,2002:"
_TEXT_TAGS: Final = frozenset({None, "!", f"{_TAG}str", f"{_TAG}timestamp", f"{_TAG}value"})
_TYPED_TAGS: Final = {f"{_TAG}int": (int,), f"{_TAG}float": (float, int), f"{_TAG}bool": (bool,), f"{_TAG}null": (type(None),)}
_CONSTANTS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_INTEGER: Final = re.compile(r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)")
_FLOAT: Final = re.compile(r"[-+]?(\d[\d_]*\.?\d*|\.\d+)([eE][-+]?\d{1,4})?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
#: Characters of a number; a longer one is text. Go's parser overflows on it, too, and its time grows with the square of the length.
_LONGEST_NUMBER: Final = 400
_MERGE: Final = object()
_INDEX: Final = re.compile(r"\[(\d+)\]")
_FAST_PARSER: Final[type[Any]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NotPlainError(yaml.MarkedYAMLError):
    """YAML that is no plain data, or too much of it.

    Attributes:
        problem: the problem in words, without values of the document: they may be secrets.
        found: the value, if it tells more than `problem`; else the same as `problem`.
        allowed: the values that are allowed.
    """

    def __init__(self, event: yaml.Event | None, problem: str, allowed: str, found: object = None) -> None:
        mark: Any = event.start_mark if event is not None else None
        super().__init__(problem=problem, problem_mark=mark)
        self.allowed = allowed
        self.found = problem if found is None else found


class Place(NamedTuple):
    """Line and column, from 1."""

    line: int
    column: int


class YamlNode(NamedTuple):
    """The place of a value, and of the values in it: those of a mapping by key, with the key's place. Scalars have none."""

    place: Place
    inner: dict[str, tuple[Place, YamlNode]] | list[YamlNode] | None = None


_UNPLACED: Final = YamlNode(Place(0, 0))


class Document(NamedTuple):
    """One YAML document.

    Attributes:
        number: position among the documents of the file, from 1.
        line: first line, from 1.
        value: plain data.
        node: the places in it, if they were wanted.
    """

    number: int
    line: int
    value: Any
    node: YamlNode = _UNPLACED


def read_documents(text: str, file: str) -> Iterator[Document]:
    """Read the documents of a file; empty ones are left out.

    Raises:
        InputError: the text is no plain YAML; the message names file and line.
    """
    try:
        yield from documents(text)
    except NotPlainError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise bad_field(f"{file}: line {line}", error.found, error.allowed) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark is not None and "maximum nesting depth" in str(error):  # newer libyaml has a limit of its own, and looks further ahead
            deep = _too_deep(yaml.Event(mark, mark))
            raise bad_field(f"{file}: line {mark.line + 1}", deep.found, deep.allowed) from None
        raise InputError(f"{file}: {_described(error)}") from None


def only_document(text: str, *, worded: bool = False) -> Any:
    """Read a text with one document. Of a repeated key the last value counts.

    Returns:
        The value; None for an empty text.

    Raises:
        yaml.YAMLError: the text is no plain YAML, or has several documents.
    """
    values = [document.value for document in documents(text, placed=worded, repeated=True)]
    if len(values) > 1:
        raise NotPlainError(None, f"{len(values)} documents", "one document")
    return values[0] if values else None


def documents(text: str, *, placed: bool = False, repeated: bool = False) -> Iterator[Document]:
    """Read documents; empty ones are left out.

    Args:
        text: YAML of any length; it is parsed as the documents are consumed.
        placed: note the place of each value. PyYAML's own parser is used for that: it is slower, and its messages are better.
        repeated: the last value of a repeated key counts, as for most readers of JSON; else a repeated key is refused.

    Raises:
        yaml.YAMLError: the text is no plain YAML (`NotPlainError` among others).
    """
    text = text.removeprefix("\ufeff")
    builder = _Builder(max(MOST_ALIASED, len(text)), placed=placed, repeated=repeated)
    number = line = 0
    parser: type[Any] = _PlacingParser if placed else _FAST_PARSER
    for event in yaml.parse(text, Loader=parser):
        if isinstance(event, yaml.DocumentStartEvent):
            number, line = number + 1, _place(event).line
            builder.restart()
        elif isinstance(event, yaml.DocumentEndEvent):
            if builder.value is not None:
                yield Document(number, line, builder.value, builder.node)
        elif isinstance(event, yaml.NodeEvent | yaml.CollectionEndEvent):
            builder.take(event)


def place_of(path: str, document: YamlNode, *, value: bool = False) -> Place:
    """Find the place of a field: of its name, or of a list's item. For a missing field: of the value that should hold it.

    Keys may contain dots: of several keys that could begin the path, the longest is meant.

    Args:
        path: such as `spec.plugins.score.enabled[0].name`.
        document: the document's node.
        value: the place of the value instead, if it is a scalar.
    """
    found, node, rest = document.place, document, path
    while rest:
        step = _entry(node.inner, rest) if isinstance(node.inner, dict) else _item(node.inner, rest)
        if step is None:
            break
        found, node, rest = step
    return node.place if value and not rest and node.inner is None else found


def _entry(entries: dict[str, tuple[Place, YamlNode]], rest: str) -> tuple[Place, YamlNode, str] | None:
    """Return the place of the key, the node of its value, and the rest of the path."""
    known = [name for name in entries if name and rest.startswith(name) and rest[len(name) : len(name) + 1] in ("", ".", "[")]
    name = max(known, key=len, default=None)
    return None if name is None else (*entries[name], rest[len(name) :].removeprefix("."))


def _item(items: list[YamlNode] | None, rest: str) -> tuple[Place, YamlNode, str] | None:
    index = _INDEX.match(rest)
    if not items or index is None or int(index[1]) >= len(items):
        return None
    item = items[int(index[1])]
    return item.place, item, rest[index.end() :].removeprefix(".")


class _PlacingParser(Reader, Scanner, Parser):
    """PyYAML's parser in Python, with a bound on nesting: the time of its look-ahead grows with the square of the nesting."""

    def __init__(self, stream: str) -> None:
        Reader.__init__(self, stream)
        Scanner.__init__(self)
        Parser.__init__(self)

    def fetch_flow_collection_start(self, TokenClass: type[yaml.Token]) -> None:  # noqa: N803 - PyYAML's signature
        """Refuse deep nesting; then do as the parent."""
        if self.flow_level >= DEEPEST:
            mark = self.get_mark()
            raise _too_deep(yaml.Event(mark, mark))
        super().fetch_flow_collection_start(TokenClass)


def _place(event: yaml.Event) -> Place:
    mark = event.start_mark
    return Place(mark.line + 1, mark.column + 1) if mark else Place(0, 0)


def _described(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "cannot be read"
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}not YAML: {' '.join(str(problem).split())}"


def _too_deep(event: yaml.Event) -> NotPlainError:
    return NotPlainError(event, f"nesting deeper than {DEEPEST}", f"at most {DEEPEST} levels")


class _Built(NamedTuple):
    """A value, the number of values that it is made of, and their places."""

    value: Any
    size: int
    node: YamlNode


class _Frame:
    """A mapping or sequence being filled."""

    __slots__ = ("anchor", "key", "key_place", "merged", "node", "size", "target")

    def __init__(self, target: dict[str, Any] | list[Any], anchor: str | None, node: YamlNode) -> None:
        self.target = target
        self.anchor = anchor
        self.node = node
        self.key: object = None
        self.key_place = node.place
        self.merged: list[tuple[dict[str, Any], YamlNode]] = []
        self.size = 1


class _Builder:
    """Turns events into one document's value."""

    def __init__(self, most_aliased: int, *, placed: bool, repeated: bool) -> None:
        self._most_aliased = most_aliased
        self._placed = placed
        self._repeated = repeated
        self._aliased = 0
        self.restart()

    def restart(self) -> None:
        """Begin a document: anchors do not reach over documents."""
        self.value: Any = None
        self.node = _UNPLACED
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _Built] = {}

    def take(self, event: yaml.Event) -> None:
        """Take the next event of the document."""
        if isinstance(event, yaml.CollectionEndEvent):
            self._close(event)
            return
        if len(self._frames) >= DEEPEST:
            raise _too_deep(event)
        if isinstance(event, yaml.ScalarEvent):
            built = _Built(self._scalar(event), 1, YamlNode(_place(event)) if self._placed else _UNPLACED)
            if event.anchor:
                self._anchors[event.anchor] = built
            self._put(built, event)
        elif isinstance(event, yaml.AliasEvent):
            self._put(self._alias(event), event)
        else:
            self._open(event)

    @property
    def _at_key(self) -> bool:
        """True when the next value is a mapping's key."""
        return bool(self._frames) and isinstance(self._frames[-1].target, dict) and self._frames[-1].key is None

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        plain = event.implicit[0] and event.tag is None
        if self._at_key:
            return _MERGE if plain and event.value == "<<" else event.value
        if plain:
            return plain_scalar(event)
        return _joined(event.value, event) if event.tag in _TEXT_TAGS else _tagged(event)

    def _alias(self, event: yaml.AliasEvent) -> _Built:
        name = event.anchor or ""
        known = self._anchors.get(name)
        if known is None:
            own = any(frame.anchor == name for frame in self._frames)
            problem = "an alias to something that it is part of" if own else f"the alias *{name}"
            raise NotPlainError(event, problem, f"an alias of an anchor (&{name}) that is complete before it")
        self._aliased += known.size
        if self._aliased > self._most_aliased:
            raise NotPlainError(event, f"aliases for more than {self._most_aliased} values", "fewer, each counted as if written out")
        return known

    def _open(self, event: Any) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in (None, "!", f"{_TAG}map" if mapping else f"{_TAG}seq"):
            raise NotPlainError(event, "a tag", "plain mappings and lists", event.tag)
        if self._at_key:
            raise NotPlainError(event, "a mapping or a list as a key", "text as a key")
        target: dict[str, Any] | list[Any] = {} if mapping else []
        self._frames.append(_Frame(target, event.anchor, YamlNode(_place(event), {} if mapping else []) if self._placed else _UNPLACED))

    def _close(self, event: yaml.Event) -> None:
        frame = self._frames.pop()
        if isinstance(frame.target, dict):
            for source, node in frame.merged:
                for key, value in source.items():
                    frame.target.setdefault(key, value)
                if isinstance(frame.node.inner, dict) and isinstance(node.inner, dict):
                    for key, placed in node.inner.items():
                        frame.node.inner.setdefault(key, placed)
        built = _Built(frame.target, frame.size, frame.node)
        if frame.anchor:
            self._anchors[frame.anchor] = built
        self._put(built, event)

    def _put(self, built: _Built, event: yaml.Event) -> None:
        if not self._frames:
            self.value, self.node = built.value, built.node
            return
        frame = self._frames[-1]
        frame.size += built.size
        if isinstance(frame.target, list):
            frame.target.append(built.value)
            if isinstance(frame.node.inner, list):
                frame.node.inner.append(built.node)
        elif frame.key is None:
            frame.key, frame.key_place = self._key(built.value, frame.target, event), built.node.place
        else:
            _set(frame, built, event)

    def _key(self, value: Any, target: dict[str, Any], event: yaml.Event) -> object:
        if value is _MERGE:
            return value
        if not isinstance(value, str):
            raise NotPlainError(event, "a key that is no text", "text as a key")
        key = _joined(value, event)
        if key in target and not self._repeated:
            raise NotPlainError(event, f"the key {in_json(key)} a second time", "each key once")
        return key


def _set(frame: _Frame, built: _Built, event: yaml.Event) -> None:
    assert isinstance(frame.target, dict)
    if frame.key is _MERGE:
        several = isinstance(built.value, list)
        sources = built.value if several else [built.value]
        if not all(isinstance(source, dict) for source in sources):
            raise NotPlainError(event, "something else to merge", "a mapping, or a list of mappings, after <<", built.value)
        nodes = built.node.inner if several and isinstance(built.node.inner, list) else [built.node] * len(sources)
        frame.merged.extend(zip(sources, nodes, strict=True))
    else:
        frame.target[str(frame.key)] = built.value
        if isinstance(frame.node.inner, dict):
            frame.node.inner[str(frame.key)] = frame.key_place, built.node
    frame.key = None


def plain_scalar(event: yaml.ScalarEvent) -> Any:
    """Resolve an unquoted scalar: null, true or false, a number, or text.

    Raises:
        NotPlainError: a number is not finite or does not fit in 64 bits, or the text has half a surrogate.
    """
    text = event.value
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in "+-.0123456789" and len(text) <= _LONGEST_NUMBER:
        if _INTEGER.fullmatch(text):
            return _integer(event)
        if _FLOAT.fullmatch(text):
            value = math.inf if text[-1] in "fFnN" else float(text.replace("_", ""))
            if not math.isfinite(value):
                raise NotPlainError(event, "a number that is not finite", "a number that is finite", text)
            return value
    return _joined(text, event)


def _tagged(event: yaml.ScalarEvent) -> Any:
    kinds = _TYPED_TAGS.get(event.tag or "")
    if kinds is None:
        raise NotPlainError(event, "a tag", "no tag, or one of !!str, !!int, !!float, !!bool, !!null", event.tag)
    value = plain_scalar(event)
    if type(value) not in kinds:
        raise NotPlainError(event, f"something that is no {str(event.tag).removeprefix(_TAG)}", "what the tag says")
    return float(value) if kinds[0] is float else value


def _integer(event: yaml.ScalarEvent) -> int:
    digits = event.value.replace("_", "").lstrip("+-")
    base = {"0b": 2, "0x": 16, "0o": 8}.get(digits[:2], 8 if digits.startswith("0") else 10)
    value = int((digits[2:] or "0") if digits[1:2] in tuple("box") else digits, base) if len(digits) < 70 else 2**64
    if value >= 2**63:
        raise NotPlainError(event, "a number beyond 64 bits", "a number that fits in 64 bits", event.value)
    return -value if event.value.startswith("-") else value


def _joined(text: str, event: yaml.Event) -> str:
    """Join surrogates: JSON escapes one character beyond the basic plane as a pair of them."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise NotPlainError(event, "text with half a surrogate", "text in Unicode") from None
