"""The expressions of a selector, combined by label key, so that they can be asked of thousands of groups of pods.

A selector may have hundreds of expressions, most of them over labels that no pod has. After combining, each label is looked up
once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from placewright.api.selectors import CompiledRequirement


@dataclass(frozen=True, slots=True)
class LabelTest:
    """The combined test of all expressions over one key.

    Attributes:
        key: the label's.
        allowed: values that pass; None when every value passes that is not denied.
        denied: values that fail.
        absent: whether a pod without the label passes.
        present: whether a pod with the label can pass.
    """

    key: str
    allowed: frozenset[str] | None
    denied: frozenset[str]
    absent: bool
    present: bool


def label_tests(expressions: Iterable[CompiledRequirement]) -> list[LabelTest]:
    """Combine the expressions of a pod selector. Pod selectors have no Gt and Lt, so values have no order here.

    Args:
        expressions: all of one selector.

    Returns:
        One test for each key, in the order in which keys are first named.
    """
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
