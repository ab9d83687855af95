"""The expressions of a selector, combined by label key.

A selector may have hundreds of expressions, most of them over labels that no pod has. After combining, each label is looked up once, also
for thousands of groups of pods. Two selectors exclude each other if a combined test cannot pass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from placewright.api.selectors import CompiledRequirement

_ABSENT = frozenset((None,))


class LabelTest(NamedTuple):
    """The combined test of all expressions over one key.

    Attributes:
        key: key of the label.
        values: values of the label, with None for its absence.
        inside: True if these values pass, and False if all others pass.
    """

    key: str
    values: frozenset[str | None]
    inside: bool

    def passes(self, value: str | None) -> bool:
        """Compare with a value; None stands for a label that is absent."""
        return (value in self.values) is self.inside

    @property
    def possible(self) -> bool:
        """True if some value passes, or the label's absence. Values are free, so infinitely many are outside."""
        return not self.inside or bool(self.values)


def label_tests(expressions: Iterable[CompiledRequirement]) -> list[LabelTest]:
    """Combine the expressions of a pod selector. Pod selectors have no Gt and Lt, so values have no order here."""
    by_key: dict[str, tuple[list[frozenset[str | None]], list[frozenset[str | None]]]] = {}
    for each in expressions:
        values: frozenset[str | None] = each.values if each.operator in ("In", "NotIn") else _ABSENT
        by_key.setdefault(each.key, ([], []))[each.operator in ("NotIn", "Exists")].append(values)
    return [_test(key, inside, frozenset[str | None]().union(*outside)) for key, (inside, outside) in by_key.items()]


def _test(key: str, inside: list[frozenset[str | None]], outside: frozenset[str | None]) -> LabelTest:
    return LabelTest(key, frozenset.intersection(*inside) - outside if inside else outside, bool(inside))
