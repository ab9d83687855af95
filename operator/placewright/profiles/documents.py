"""YAML text to plain values, as Kubernetes reads it: no repeated keys, no dates, nothing executed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final, NamedTuple

import yaml

from placewright.api.bad_input import in_json
from placewright.api.plainyaml import PlainLoader
from placewright.profiles.problem import Problem, ProfileError
from placewright.profiles.yamlwords import in_words

#: A file larger than this is not a profile.
MAX_CHARACTERS: Final = 1_048_576
_LONGEST_PROBLEM: Final = 200


class _Loader(PlainLoader):
    """Refuses repeated keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT002 - PyYAML's signature
        """As the parent, after looking at the keys."""
        seen: set[str] = set()
        for key, _value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"the key {in_json(key.value)} a second time", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class UnreadableDocument(ProfileError):
    """Text that is no YAML as Kubernetes reads it.

    Attributes:
        line, column: where, from 1; 0 when that is not known.
    """

    def __init__(self, found: str, allowed: str, mark: yaml.Mark | None = None) -> None:
        self.line, self.column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        super().__init__([Problem(f"line {self.line}, column {self.column}" if mark else "", found, allowed)])


class PlacedDocument(NamedTuple):
    """A document's value, and the node that it was made from, which knows the places in the text (see `places`)."""

    value: Any
    node: yaml.Node


def parse_documents(text: str) -> list[Any]:
    """All documents of a YAML text that are not empty; raise `ProfileError` with line and column."""
    return [document.value for document in parse_placed(text)]


def parse_placed(text: str) -> list[PlacedDocument]:
    """`parse_documents`, for whoever wants to say where something stands. Raises `UnreadableDocument`."""
    if len(text) > MAX_CHARACTERS:
        raise UnreadableDocument(f"{len(text)} characters", f"at most {MAX_CHARACTERS}")
    try:
        documents = [document for document in _load(text) if document.value is not None]
    except yaml.MarkedYAMLError as error:
        found, allowed = in_words(_short(error.problem))
        raise UnreadableDocument(found, allowed, error.problem_mark) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UnreadableDocument(_short(error), "YAML") from None
    if not documents:
        raise UnreadableDocument("an empty document", "a profile")
    return documents


def _short(problem: object) -> str:
    """The first line of what the parser says, which may quote the document."""
    (first, *_) = str(problem).splitlines() or ["something else"]
    return first if len(first) <= _LONGEST_PROBLEM else f"{first[:_LONGEST_PROBLEM]}..."


def _load(text: str) -> Iterator[PlacedDocument]:
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            yield PlacedDocument(loader.construct_document(node), node)
    finally:
        loader.dispose()
