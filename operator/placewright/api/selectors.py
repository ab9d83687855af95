"""Label selectors and node selectors, compiled once and matched often.

A compiled selector is a frozen value: equal selectors are equal and hash alike, so they can be keys of caches of matches per distinct label
set. The semantics are those of apimachinery's `labels.Selector` and component-helpers' `nodeaffinity`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from placewright.api.boundedcache import cleared_at_beats
from placewright.api.objects import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement

NODE_NAME_FIELD: Final = "metadata.name"
_LABEL_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_ORDER_OPERATORS: Final = ("Gt", "Lt")
_NODE_OPERATORS: Final = (*_LABEL_OPERATORS, *_ORDER_OPERATORS)
_FIELD_OPERATORS: Final = ("In", "NotIn")
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 63
_LONGEST_PREFIX: Final = 253
#: Longest key of a label. A longer text is refused before it reaches a cache, which would keep it: API servers accept long values in node
#: affinity.
_LONGEST_KEY: Final = _LONGEST_PREFIX + 1 + _LONGEST_NAME
_LONGEST_SHOWN: Final = 80
_VALUE_RULE: Final = "a label's value must be empty, or letters, digits, '-', '_' and '.', at most 63, with a letter or digit at both ends"
_KEY_RULE: Final = (
    "a label's name must be letters, digits, '-', '_' and '.', at most 63, with a letter or digit at both ends, "
    "after a DNS subdomain and '/' where it has a prefix"
)


class SelectorError(ValueError):
    """A selector that the API server should have refused: an unknown operator, missing or surplus values, or a text that is no label.

    The message names the field, in the words of an API server where these are short.
    """


@dataclass(frozen=True, slots=True)
class CompiledRequirement:
    """One compiled requirement: `key operator values`."""

    key: str
    operator: str
    values: frozenset[str]
    bound: int = 0  # of Gt and Lt

    def matches(self, value: str | None) -> bool:
        """Compare with a label's value.

        Args:
            value: value of the label; None if the label is absent.

        Returns:
            True when the value satisfies the requirement.
        """
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = parse_int64(value)
        if number is None:
            return False
        return number > self.bound if self.operator == "Gt" else self.operator == "Lt" and number < self.bound

    @property
    def query(self) -> str:
        """The requirement of a label selector as text, as the API takes it in `labelSelector`."""
        if not self.values:
            return self.key if self.operator == "Exists" else f"!{self.key}"
        return f"{self.key} {self.operator.lower()} ({','.join(sorted(self.values))})"


@dataclass(frozen=True, slots=True)
class Selector:
    """Expressions, ANDed. A selector without expressions matches everything."""

    expressions: tuple[CompiledRequirement, ...]

    @property
    def empty(self) -> bool:
        """True for a selector without expressions, which matches every label set."""
        return not self.expressions

    @property
    def query(self) -> str:
        """The selector as text, as the API takes it in `labelSelector`; empty for everything."""
        return ",".join(each.query for each in self.expressions)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Compare with a label set.

        Returns:
            True when the labels satisfy every expression.
        """
        for each in self.expressions:  # noqa: SIM110 - faster than `all` of a generator, and each term of others' affinity asks
            if not each.matches(labels.get(each.key)):
                return False
        return True


EVERYTHING: Final = Selector(())


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector: expressions over labels, and over the node's name."""

    labels: tuple[CompiledRequirement, ...]
    names: tuple[CompiledRequirement, ...]

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Compare with a node.

        Returns:
            True when the node satisfies every expression.
        """
        return all(e.matches(labels.get(e.key)) for e in self.labels) and all(e.matches(name) for e in self.names)


def parse_int64(value: str | None) -> int | None:
    """Parse a label value as Go's `ParseInt(value, 10, 64)` does.

    Returns:
        The number; None if the value is none.
    """
    if value is None or not value.isascii():
        return None
    digits = value[1:] if value[:1] in ("+", "-") else value
    if not digits.isdigit() or len(digits) > _LONGEST_NAME:
        return None
    number = int(value)
    return number if -(2**63) <= number < 2**63 else None


def compile_label_selector(selector: LabelSelector) -> Selector:
    """Compile `matchLabels` and `matchExpressions`.

    Raises:
        SelectorError: the API server would refuse it.
    """
    pairs = [_pair(key, value) for key, value in sorted((selector.match_labels or {}).items())]
    rest = [_label_expression(requirement) for requirement in selector.match_expressions or ()]
    return Selector((*pairs, *rest))


def selector_from_pairs(pairs: Mapping[str, str]) -> Selector:
    """Compile plain `key=value` pairs, as in `nodeSelector` or a Service."""
    return Selector(tuple(CompiledRequirement(key, "In", frozenset((value,))) for key, value in sorted(pairs.items())))


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Compile the terms (ORed).

    Returns:
        The terms. Empty terms, and terms that do not parse, match no node and are left out, as in kube-scheduler.
    """
    terms = []
    for term in selector.node_selector_terms or ():
        try:
            compiled = compile_node_term(term)
        except SelectorError:
            continue
        if compiled is not None:
            terms.append(compiled)
    return tuple(terms)


def may_match(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    """Reject a term without compiling it. Cheap, and never False for a term that matches.

    Returns:
        False when the term cannot match the node. True proves nothing: a term that does not parse may give it, too.
    """
    for each in term.match_expressions or ():  # asked for each term of all waiting pods: a generator would take three times as long
        if not _may_be(each, labels.get(each.key)):
            return False
    return all(_may_be(each, name) for each in term.match_fields) if term.match_fields else True


def _may_be(requirement: Requirement, value: str | None) -> bool:
    operator = requirement.operator
    if operator == "In":
        return value is not None and value in (requirement.values or ())
    if operator == "NotIn":
        return value is None or value not in (requirement.values or ())
    return (value is None) == (operator == "DoesNotExist")


def node_selector_problems(selector: NodeSelector) -> list[str]:
    """Describe the terms that `compile_node_selector` leaves out because they do not parse."""
    problems = []
    for i, term in enumerate(selector.node_selector_terms or ()):
        try:
            compile_node_term(term, f"nodeSelectorTerms[{i}].")
        except SelectorError as problem:
            problems.append(str(problem))
    return problems


def compile_node_term(term: NodeSelectorTerm, path: str = "") -> NodeTerm | None:
    """Compile one term.

    Returns:
        The term; None for an empty one.

    Raises:
        SelectorError: it does not parse.
    """
    if not term.match_expressions and not term.match_fields:
        return None
    labels = [_node_expression(each, f"{path}matchExpressions[{i}].") for i, each in enumerate(term.match_expressions or ())]
    names = [_node_field(each, f"{path}matchFields[{i}].") for i, each in enumerate(term.match_fields or ())]
    return NodeTerm(tuple(labels), tuple(names))


def _pair(key: str, value: str) -> CompiledRequirement:
    _check_key(key, "")
    _check_values((value,), "")
    return CompiledRequirement(key, "In", frozenset((value,)))


def _label_expression(requirement: Requirement) -> CompiledRequirement:
    if requirement.operator not in _LABEL_OPERATORS:
        raise SelectorError(f"{_quoted(requirement.operator)} is not a valid label selector operator")
    return _expression(requirement, "")


def _node_expression(requirement: Requirement, path: str) -> CompiledRequirement:
    if requirement.operator not in _NODE_OPERATORS:
        raise _not_supported(f"{path}operator", requirement.operator, _NODE_OPERATORS)
    return _expression(requirement, path)


def _node_field(requirement: Requirement, path: str) -> CompiledRequirement:
    values = requirement.values or ()
    if requirement.key != NODE_NAME_FIELD:
        raise _not_supported(f"{path}key", requirement.key, (NODE_NAME_FIELD,))
    if requirement.operator not in _FIELD_OPERATORS:
        raise _not_supported(f"{path}operator", requirement.operator, _FIELD_OPERATORS)
    if len(values) != 1:
        raise _invalid(f"{path}values", values, "must have one element")
    return CompiledRequirement(requirement.key, requirement.operator, frozenset(values))


def _expression(requirement: Requirement, path: str) -> CompiledRequirement:
    """Compile a requirement whose operator is known. Checks and messages are those of apimachinery's `labels.NewRequirement`."""
    operator, values = requirement.operator, requirement.values or ()
    _check_key(requirement.key, path)
    if operator in ("In", "NotIn") and not values:
        raise _invalid(f"{path}values", values, "for 'in', 'notin' operators, values set can't be empty")
    if operator in ("Exists", "DoesNotExist") and values:
        raise _invalid(f"{path}values", values, "values set must be empty for exists and does not exist")
    bound = _bound(values, path) if operator in _ORDER_OPERATORS else 0
    _check_values(values, path)
    return CompiledRequirement(requirement.key, operator, frozenset(values), bound)


def _bound(values: Sequence[str], path: str) -> int:
    if len(values) != 1:
        raise _invalid(f"{path}values", values, "for 'Gt', 'Lt' operators, exactly one value is required")
    bound = parse_int64(values[0])
    if bound is None:
        raise _invalid(f"{path}values[0]", values[0], "for 'Gt', 'Lt' operators, the value must be an integer")
    return bound


def _check_key(key: str, path: str) -> None:
    if len(key) > _LONGEST_KEY or not _is_label_key(key):
        raise _invalid(f"{path}key", key, _KEY_RULE)


def _check_values(values: Sequence[str], path: str) -> None:
    for i, value in enumerate(values):
        if len(value) > _LONGEST_NAME or not _is_label_value(value):
            raise _invalid(f"{path}values[{i}]", value, _VALUE_RULE)


@cleared_at_beats
@lru_cache(maxsize=16384)
def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _LONGEST_PREFIX or _SUBDOMAIN.fullmatch(prefix) is None):
        return False
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None


@cleared_at_beats
@lru_cache(maxsize=32768)
def _is_label_value(value: str) -> bool:
    return not value or (len(value) <= _LONGEST_NAME and _NAME.fullmatch(value) is not None)


def _invalid(where: str, value: object, why: str) -> SelectorError:
    return SelectorError(f"{where}: Invalid value: {_quoted(value)}: {why}")


def _not_supported(where: str, value: str, supported: Sequence[str]) -> SelectorError:
    return SelectorError(f"{where}: Unsupported value: {_quoted(value)}: supported values: {', '.join(map(_quoted, supported))}")


def _quoted(value: object) -> str:
    """Write a value in double quotes, as API servers show it, and cut a long one."""
    text = json.dumps(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
