"""Rules in CEL are bounded before they run: their form, their patterns, and what they would take on the values at hand."""

from __future__ import annotations

import time

import pytest

from kubesandbox.definitions.celexpressions import RuleExpression
from placewright.cel.syntax import ExpressionError

NESTED = "self.items.all(a, self.items.all(b, self.items.all(c, a >= 0 || b >= 0 || c >= 0)))"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("(" * 500 + "true" + ")" * 500, "nests brackets deeper than 40"),
        ("true || " * 1200 + "true", "this scheduler evaluates at most 2000"),
        ("self == '" + "a" * 20_000 + "'", "at most 10240 are allowed"),
        (r"self.matches('((\\w{90}){90}){90}')", "estimated rule cost exceeds budget"),
        ("self.matches(self)", "a pattern that is not a literal"),
    ],
)
def test_a_rule_that_cannot_be_bounded_is_refused_when_it_is_defined(source: str, said: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        RuleExpression(source)
    assert said in str(refused.value)


def test_loops_in_loops_are_asked_about_few_items_and_not_about_many() -> None:
    rule = RuleExpression(NESTED)
    assert rule.evaluate({"self": {"items": list(range(10))}}) is True
    began = time.process_time()
    with pytest.raises(ExpressionError, match="running out of cost budget"):
        rule.evaluate({"self": {"items": list(range(2_000))}})
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("size(self) == 4", "über"),
        ("cel.bind(half, self / 2, half * 2 == self)", 4),
        ("sets.contains(self, [1]) && self.max() == 3", [1, 2, 3]),
        ("quantity(self).isLessThan(quantity('2Gi'))", "1Gi"),
        ("type(self) == int", 1),
        ("self.all(self, self > 0)", [1]),
    ],
)
def test_functions_of_kubernetes_have_their_meaning_in_rules(source: str, value: object) -> None:
    assert RuleExpression(source).evaluate({"self": value}) is True
