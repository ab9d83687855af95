"""CEL expressions of definitions: rules over `self` and `oldSelf`, and the syntax of conditions on devices.

They are evaluated without declared types (docs/decisions/0012). So they may compare a number with a word, which a real API server refuses.
Of the functions that Kubernetes adds to the language, they have those in `placewright.cel`. Others are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

from placewright.api.quantity import nano
from placewright.cel.cost import ValueSizes, steps_of
from placewright.cel.program import DOES_NOT_COMPILE, Environment, Program
from placewright.cel.syntax import Brackets, ExpressionError, tree
from placewright.cel.values import quantity_functions

_RULES: Final = Environment(
    variables=frozenset({"self", "oldSelf"}),
    functions=quantity_functions(nano),
    standard=frozenset({"bool", "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear"})
    | {"getHours", "getMinutes", "getSeconds"},
)
#: Names for conditions on devices: the device, and the namespaces of Kubernetes' libraries.
_SELECTORS: Final = Environment(frozenset({"device", "cel", "sets", "math", "base64", "optional", "lists", "strings"}))
#: A second, which is an API server's limit for the rules of one object (RuntimeCELCostBudget).
_MOST_STEPS: Final = 10_000_000
#: Size of the largest value in any object that an API server accepts.
_LARGEST: Final = ValueSizes(2**20, 2**22)
_TOO_MANY: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class RuleExpression:
    """One compiled expression over `self` and `oldSelf`. Raises `ExpressionError` if it does not compile or always costs too much.

    Attributes:
        compares: True if it reads `oldSelf`, so that it can only judge a change.
    """

    def __init__(self, source: str) -> None:
        self._read, self._program = _compiled(source, _RULES)
        self._steps: dict[ValueSizes, int] = {}
        if self._steps_for(ValueSizes(1, 1)) > _MOST_STEPS:
            raise ExpressionError("ERROR: estimated rule cost exceeds budget")
        #: Most rules have no loops. They are cheap for a value of any size, so its size need not be measured.
        self._is_always_cheap = self._steps_for(_LARGEST) <= _MOST_STEPS
        self.compares = "oldSelf" in self._program.variables
        if self._program.unknown:
            raise ExpressionError(f"ERROR: the sandbox does not have the function '{min(self._program.unknown)}' (in container '')")

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """Return the value. Raises `ExpressionError` if the language has none (missing key, overflow), or if it would take too long."""
        if not self._is_always_cheap and self._steps_for(_sizes(variables.values())) > _MOST_STEPS:
            raise ExpressionError(_TOO_MANY)
        return self._program.evaluate(variables)

    def _steps_for(self, sizes: ValueSizes) -> int:
        steps = self._steps.get(sizes)
        if steps is None:
            steps = self._steps[sizes] = steps_of(self._read, sizes)
        return steps


@cache
def rule_expression(source: str) -> RuleExpression:
    """Return the compiled expression, compiled once for all definitions. Raises `ExpressionError`."""
    return RuleExpression(source)


def check_selector(source: str) -> None:
    """Raise `ExpressionError` unless the source compiles as a condition on a device. Its evaluator checks functions."""
    _compiled(source, _SELECTORS)


def _compiled(source: str, environment: Environment) -> tuple[Brackets, Program]:
    try:
        read = tree(source)
        program = Program(read, environment)
    except ExpressionError as error:
        raise ExpressionError(f"ERROR: {str(error).removeprefix(DOES_NOT_COMPILE).removeprefix('ERROR: ')}") from None
    if program.undeclared:
        raise ExpressionError(f"ERROR: undeclared reference to '{min(program.undeclared)}' (in container '')")
    return read, program


def _sizes(values: Iterable[Any]) -> ValueSizes:
    """Return the largest size of a list, map and text in these values, rounded up to powers of two.

    So there are few different results.
    """
    entries = characters = 1
    left = list(values)
    while left:
        value = left.pop()
        if isinstance(value, str):
            characters = max(characters, len(value))
        elif isinstance(value, (list, dict)):
            entries = max(entries, len(value))
            left += value.values() if isinstance(value, dict) else value
    return ValueSizes(1 << (entries - 1).bit_length(), 1 << (characters - 1).bit_length())
