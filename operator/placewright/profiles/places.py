"""Where the field of a path stands in YAML text: `spec.weights.NodeAffinity` to line and column."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import yaml

_INDEX: Final = re.compile(r"\[(\d+)\]")


class Place(NamedTuple):
    """Line and column, from 1."""

    line: int
    column: int


def place_of(path: str, document: yaml.Node, *, value: bool = False) -> Place:
    """The place of the field's name, or of the list's item; where the field is missing, that of what should hold it.

    `value`: rather that of the value, where it is text or a number. Keys may have dots in them: of several that could begin the path, the
    longest is meant.
    """
    found, node, rest = document, document, path
    while rest:
        step = _entry(node, rest) if isinstance(node, yaml.MappingNode) else _item(node, rest)
        if step is None:
            break
        found, node, rest = step
    if value and not rest and isinstance(node, yaml.ScalarNode):
        found = node
    return Place(found.start_mark.line + 1, found.start_mark.column + 1)


def _entry(node: yaml.MappingNode, rest: str) -> tuple[yaml.Node, yaml.Node, str] | None:
    """The key's node, the value's node, and what is left of the path."""
    best: tuple[yaml.Node, yaml.Node, str] | None = None
    for key, value in node.value:
        name = key.value
        if isinstance(name, str) and name and rest.startswith(name) and rest[len(name) : len(name) + 1] in ("", ".", "["):
            left = rest[len(name) :].removeprefix(".")
            if best is None or len(left) < len(best[2]):
                best = key, value, left
    return best


def _item(node: yaml.Node, rest: str) -> tuple[yaml.Node, yaml.Node, str] | None:
    index = _INDEX.match(rest)
    if not isinstance(node, yaml.SequenceNode) or index is None or int(index[1]) >= len(node.value):
        return None
    item = node.value[int(index[1])]
    return item, item, rest[index.end() :].removeprefix(".")
