"""Label selectors and node selectors, compiled once and asked often.

A compiled selector is a frozen value: equal selectors are equal and hash alike, so they can key caches of matches per distinct label
set. Semantics follow apimachinery's `labels.Selector` and component-helpers' `nodeaffinity`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from placewright.api.objects import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement

_NODE_ONLY: Final = frozenset({"Gt", "Lt"})


class SelectorError(ValueError):
    """A selector that the API server should have refused: unknown operator, missing or surplus values."""


@dataclass(frozen=True, slots=True)
class Expression:
    """One compiled requirement: `key operator values`."""

    key: str
    operator: str
    values: frozenset[str]
    bound: int = 0  # Gt and Lt compare with this

    def matches(self, value: str | None) -> bool:
        """True when the label value (None: the label is absent) satisfies this requirement."""
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
        return number > self.bound if self.operator == "Gt" else number < self.bound


@dataclass(frozen=True, slots=True)
class Selector:
    """Expressions, ANDed. No expressions match everything."""

    expressions: tuple[Expression, ...]

    @property
    def empty(self) -> bool:
        """True for a selector that says nothing and so matches every label set."""
        return not self.expressions

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True when these labels satisfy every expression."""
        return all(e.matches(labels.get(e.key)) for e in self.expressions)


EVERYTHING: Final = Selector(())


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term of a node selector: expressions over labels, and over the node's name."""

    labels: tuple[Expression, ...]
    names: tuple[Expression, ...]

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """True when the node satisfies all expressions."""
        return all(e.matches(labels.get(e.key)) for e in self.labels) and all(e.matches(name) for e in self.names)


def parse_int64(value: str | None) -> int | None:
    """A label value as Go's `ParseInt(value, 10, 64)` reads it, or None."""
    if value is None or not value.isascii():
        return None
    digits = value[1:] if value[:1] in ("+", "-") else value
    if not digits.isdigit() or len(digits) > 40:
        return None
    number = int(value)
    return number if -(2**63) <= number < 2**63 else None


def compile_label_selector(selector: LabelSelector) -> Selector:
    """Compile `matchLabels` and `matchExpressions`; raise `SelectorError` on what the API server would refuse."""
    pairs = [Expression(key, "In", frozenset((value,))) for key, value in sorted((selector.match_labels or {}).items())]
    rest = [_compile(r, allow_order=False) for r in selector.match_expressions or ()]
    return Selector((*pairs, *rest))


def selector_from_pairs(pairs: Mapping[str, str]) -> Selector:
    """A selector of plain `key=value` pairs, as in `nodeSelector` or a Service."""
    return Selector(tuple(Expression(key, "In", frozenset((value,))) for key, value in sorted(pairs.items())))


def compile_node_selector(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Compile the terms (ORed). Empty terms and terms that do not parse match nothing, so they are left out."""
    terms = []
    for term in selector.node_selector_terms or ():
        try:
            compiled = compile_node_term(term)
        except SelectorError:
            continue
        if compiled is not None:
            terms.append(compiled)
    return tuple(terms)


def compile_node_term(term: NodeSelectorTerm) -> NodeTerm | None:
    """Compile one term, or None for an empty one; raise `SelectorError` when it does not parse."""
    if not term.match_expressions and not term.match_fields:
        return None
    labels = tuple(_compile(r, allow_order=True) for r in term.match_expressions or ())
    return NodeTerm(labels, tuple(_compile_field(r) for r in term.match_fields or ()))


def _compile_field(requirement: Requirement) -> Expression:
    values = requirement.values or ()
    if requirement.key != "metadata.name" or requirement.operator not in ("In", "NotIn") or len(values) != 1:
        raise SelectorError(
            f"matchFields: {requirement.key!r} {requirement.operator!r} with {len(values)} values; "
            "allowed is metadata.name with In or NotIn and exactly one value"
        )
    return Expression(requirement.key, requirement.operator, frozenset(values))


def _compile(requirement: Requirement, *, allow_order: bool) -> Expression:
    operator, values = requirement.operator, requirement.values or ()
    if operator in ("In", "NotIn"):
        if not values:
            raise SelectorError(f"{requirement.key}: {operator} needs at least one value")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            raise SelectorError(f"{requirement.key}: {operator} takes no values, found {len(values)}")
    elif operator in _NODE_ONLY and allow_order:
        return Expression(requirement.key, operator, frozenset(values), _bound(requirement.key, operator, values))
    else:
        raise SelectorError(f"{requirement.key}: operator {operator!r} is unknown here")
    return Expression(requirement.key, operator, frozenset(values))


def _bound(key: str, operator: str, values: Sequence[str]) -> int:
    bound = parse_int64(values[0]) if len(values) == 1 else None
    if bound is None:
        raise SelectorError(f"{key}: {operator} needs exactly one integer, found {list(values)!r}")
    return bound
