"""A selector's expressions put together by label key: what they come to for each label, to be asked of thousands of groups of pods.

A selector may have hundreds of expressions, of which most are over labels that no pod has. What remains costs a look at each label.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from placewright.api.selectors import CompiledRequirement


@dataclass(frozen=True, slots=True)
class LabelTest:
    """What all expressions over one key ask together.

    Attributes:
        allowed: the values that will do; None: every value that is not denied.
        denied: values that will not do.
        absent: whether a pod without the label will do.
        present: whether a pod with the label will do at all.
    """

    key: str
    allowed: frozenset[str] | None
    denied: frozenset[str]
    absent: bool
    present: bool


def label_tests(expressions: Iterable[CompiledRequirement]) -> list[LabelTest]:
    """One test a key, in the order in which the keys are first named; for selectors of pods, which know no order of values."""
    by_key: dict[str, list[CompiledRequirement]] = {}
    for expression in expressions:
        by_key.setdefault(expression.key, []).append(expression)
    return [_test(key, each) for key, each in by_key.items()]


def _test(key: str, expressions: list[CompiledRequirement]) -> LabelTest:
    lists = [each.values for each in expressions if each.operator == "In"]
    denied = frozenset[str]().union(*(each.values for each in expressions if each.operator == "NotIn"))
    operators = {each.operator for each in expressions}
    return LabelTest(
        key,
        frozenset.intersection(*lists) if lists else None,
        denied,
        absent=operators.isdisjoint(("In", "Exists")),
        present="DoesNotExist" not in operators,
    )
