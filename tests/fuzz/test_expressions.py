"""Expressions in CEL: rules of definitions and selectors of devices compile and answer within bounds, or are refused."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from fuzz.effort import bounded, fuzz, outcome
from kubesandbox.definitions.celexpressions import RuleExpression, check_selector
from placewright.api.devices import Device
from placewright.cel.syntax import ExpressionError
from placewright.plugins.dynamicresources.effort import OutOfSteps
from placewright.plugins.dynamicresources.selectors import CompiledSelector, DeviceShapes

_NAMES = ("self", "oldSelf", "device", "device.driver", 'device.attributes["a.example.com"].x', "size", "sets", "cel", "x", "__size", "in")
_CALLS = (".all(", ".map(x, ", ".filter(x, ", ".exists(x, ", "cel.bind(x, ", ".matches(", ".replace(", ".split(", ".join(", ".sum()", ".?x")
_SIGNS = (*tuple('()[]{},:.?+-!<"\\\n\x00 '), "==", "&&", "||", "//", "'''")
_LITERALS = ("1", "1.5", "1u", "true", "null", "'a'", r"r'\w{900}'", "'(a{90}){90}'", "b'x'", "quantity('1Gi')", "semver('1.0.0')")
_WORDS = (*_NAMES, *_CALLS, *_SIGNS, *_LITERALS)
SOURCES = st.lists(st.sampled_from(_WORDS), max_size=14).map("".join) | st.text(max_size=40)
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)
RuleExpression("true")  # loads the library, which is no work on an input
_SHAPE = DeviceShapes().of("a.example.com", msgspec.json.decode(b'{"name": "d", "attributes": {"x": {"string": "y"}}}', type=Device))


@fuzz(200, source=SOURCES, value=VALUES)
def test_a_rule_has_a_value_or_is_refused_in_one_line(source: str, value: Any) -> None:
    with bounded(len(source) + 1000):
        rule = outcome(lambda: RuleExpression(source), ExpressionError)
        found = rule if isinstance(rule, Exception) else outcome(lambda: rule.evaluate({"self": value}), ExpressionError)
        checked = outcome(lambda: check_selector(source), ExpressionError)
    assert all("\n" not in str(error) for error in (found, checked) if isinstance(error, Exception))


@fuzz(200, source=SOURCES)
def test_a_selector_says_yes_or_no_or_why_not_in_one_line(source: str) -> None:
    with bounded(len(source) + 1000):
        selector = outcome(lambda: CompiledSelector(source), ExpressionError)
        verdict = str(selector) if isinstance(selector, Exception) else outcome(lambda: _SHAPE.matches(selector), OutOfSteps)
    assert isinstance(verdict, bool) or "\n" not in str(verdict)


def test_what_would_take_for_ever_is_refused_at_once_for_rules_and_for_selectors() -> None:
    nested = "[1, 2, 3]" + ".map(x, [1, 2, 3]" * 9 + ")" * 9 + " == []"
    for source in (nested, "'a'.matches('((a{90}){90}){90}')", "(" * 5000, "1" + "+1" * 5000, "!" * 5000 + "true"):
        with bounded(len(source)):
            assert isinstance(outcome(lambda one=source: RuleExpression(one), ExpressionError), ExpressionError)  # type: ignore[misc]
            assert isinstance(outcome(lambda one=source: CompiledSelector(one), ExpressionError), ExpressionError)  # type: ignore[misc]
