"""YAML as Kubernetes reads it, safe against hostile text: one loader for every room that reads YAML and needs its places.

PyYAML's safe loader runs no code, but it follows aliases and merge keys without a bound (a kilobyte becomes gigabytes), recurses until
Python gives up, makes sets, tuples and bytes, which JSON has not, takes half surrogates, which no terminal and no API server takes, and
lets what a tag does to its text escape as any exception. Here each is a `yaml.MarkedYAMLError` with its place.
"""

from __future__ import annotations

from typing import Any, Final

import yaml

#: Levels of nesting; profiles have nine.
DEEPEST: Final = 100
#: Values that come from aliases, each counted as often as it would be written out.
MOST_ALIASED: Final = 100_000
#: Characters of a number.
_LONGEST_NUMBER: Final = 100
_TOO_DEEP: Final = f"nesting deeper than {DEEPEST}"
_TAG: Final = "tag:yaml.org,2002:"


class PlainLoader(yaml.SafeLoader):
    """Plain values only: null, true and false, numbers, text, lists, mappings. Dates stay text."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._depth = 0
        self._values = 0
        self._aliased = 0
        self._sizes: dict[yaml.Node, int] = {}

    def fetch_flow_collection_start(self, TokenClass: type[yaml.Token]) -> None:  # noqa: N803 - PyYAML's signature
        """As the parent; it looks ahead, at a cost that grows with the square of the nesting, before any node is made."""
        if self.flow_level >= DEEPEST:
            raise yaml.MarkedYAMLError(problem=_TOO_DEEP, problem_mark=self.get_mark())
        super().fetch_flow_collection_start(TokenClass)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """As the parent, within bounds; called by it for every node."""
        alias = self.check_event(yaml.AliasEvent)
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self._depth >= DEEPEST:
            raise yaml.MarkedYAMLError(problem=_TOO_DEEP, problem_mark=mark)
        before = self._values
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is None:
            return None
        if alias:
            self._take_alias(node, mark)
        else:
            self._values += 1
            self._sizes[node] = self._values - before
        return node

    def _take_alias(self, node: yaml.Node, mark: yaml.Mark | None) -> None:
        size = self._sizes.get(node)
        if size is None:
            raise yaml.MarkedYAMLError(problem="an alias to something that it is part of", problem_mark=mark)
        self._values += size
        self._aliased += size
        if self._aliased > MOST_ALIASED:
            raise yaml.MarkedYAMLError(problem=f"aliases for more than {MOST_ALIASED} values", problem_mark=mark)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """Text; called for keys, too. What JSON writes as a pair of surrogates is the one character that they stand for."""
        value = super().construct_scalar(node)
        if not isinstance(value, str) or value.isascii():
            return value
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise yaml.MarkedYAMLError(problem="text with half a surrogate", problem_mark=node.start_mark) from None

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: FBT002 - PyYAML's signature
        """As the parent; what a tag cannot make of its text is refused with its place."""
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
            tag = str(node.tag).removeprefix(_TAG)
            raise yaml.MarkedYAMLError(problem=f"something that is no {tag}", problem_mark=node.start_mark) from None


def _text(loader: PlainLoader, node: yaml.ScalarNode) -> Any:
    return loader.construct_scalar(node)


def _integer(loader: PlainLoader, node: yaml.ScalarNode) -> Any:
    _refuse_long(node)
    return loader.construct_yaml_int(node)


def _float(loader: PlainLoader, node: yaml.ScalarNode) -> Any:
    _refuse_long(node)
    return loader.construct_yaml_float(node)


def _refuse_long(node: yaml.Node) -> None:
    """The time that numbers to the base of 60 take grows with the square of their length."""
    if len(node.value) > _LONGEST_NUMBER:
        raise yaml.MarkedYAMLError(problem=f"a number of {len(node.value)} characters", problem_mark=node.start_mark)


PlainLoader.add_constructor(f"{_TAG}timestamp", _text)
PlainLoader.add_constructor(f"{_TAG}value", _text)  # a plain `=`
PlainLoader.add_constructor(f"{_TAG}int", _integer)
PlainLoader.add_constructor(f"{_TAG}float", _float)
for _unknown_to_json in ("binary", "omap", "pairs", "set"):
    PlainLoader.yaml_constructors.pop(f"{_TAG}{_unknown_to_json}")
