"""The part of Go's text/template in scheduler_perf's objects, such as `{{ Mod .Index 25 }}`. Pure.

An action is one expression: `.Index`, `.Count`, a number, or a function of scheduler_perf. The function's arguments are expressions, too,
in parentheses if they are calls. All else (conditions, loops, variables, pipes, trimmed space) is refused by name. A template that is only
half understood would make objects that upstream never measured.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final

Number = int | float

_ACTION: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_TOKEN: Final = re.compile(r"\s*([()]|[^\s()]+)")
_INTEGER: Final = re.compile(r"[+-]?\d+")
_DECIMAL: Final = re.compile(r"[+-]?\d+\.\d+")
#: Between these, Go writes a float like Python. Beyond them, Go has another form of exponents.
_SMALLEST, _LARGEST = 1e-4, 1e15


class TemplateRefused(Exception):
    """An action is unknown here, or cannot be computed. The message is one line."""


def has_actions(text: str) -> bool:
    """Return whether the result of the template depends on the object's number."""
    return "{{" in text


def render(text: str, index: int, count: int) -> str:
    """Render the template for the object number `index` (from 0) of `count`. Raises `TemplateRefused`."""
    if text.count("{{") != len(_ACTION.findall(text)):
        raise TemplateRefused("a template action does not end")
    fields = {".Index": index, ".Count": count}
    return _ACTION.sub(lambda found: _written(_value_of(found[1], fields)), text)


def _value_of(action: str, fields: Mapping[str, int]) -> Number:
    tokens = _TOKEN.findall(action)
    try:
        value, rest = _call(tokens, fields)
    except ZeroDivisionError:
        raise TemplateRefused(f"the template action {{{{{action}}}}} divides by zero") from None
    if rest:
        raise TemplateRefused(f"the template action {{{{{action}}}}} is not known: found {rest[0]!r}")
    return value


def _call(tokens: list[str], fields: Mapping[str, int]) -> tuple[Number, list[str]]:
    """Evaluate an operand, or a function up to the end or a closing parenthesis. Return the tokens after it, too."""
    if not tokens:
        raise TemplateRefused("a template action is empty")
    function = _FUNCTIONS.get(tokens[0])
    if function is None:
        return _operand(tokens, fields)
    arguments: list[Number] = []
    rest = tokens[1:]
    while rest and rest[0] != ")":
        value, rest = _operand(rest, fields)
        arguments.append(value)
    try:
        return function(arguments), rest
    except TypeError:
        raise TemplateRefused(f"the template function {tokens[0]} does not take {len(arguments)} arguments") from None


def _operand(tokens: list[str], fields: Mapping[str, int]) -> tuple[Number, list[str]]:
    first, rest = tokens[0], tokens[1:]
    if first == "(":
        value, rest = _call(rest, fields)
        if rest[:1] != [")"]:
            raise TemplateRefused("a parenthesis in a template action is not closed")
        return value, rest[1:]
    if first in fields:
        return fields[first], rest
    if _INTEGER.fullmatch(first):
        return int(first), rest
    if _DECIMAL.fullmatch(first):
        return float(first), rest
    raise TemplateRefused(f"the template word {first} is not known")


def _divide(first: Number, second: Number) -> float:
    return float(first) / float(second)


def _remainder(first: Number, second: Number) -> int:
    """Return Go's remainder of whole numbers, with the sign of the first."""
    rest = abs(int(first)) % abs(int(second))
    return -rest if first < 0 else rest


def _pair(function: Callable[[Number, Number], Number]) -> Callable[[list[Number]], Number]:
    def of_two(arguments: list[Number]) -> Number:
        if len(arguments) != 2:
            raise TypeError
        return function(*arguments)

    return of_two


#: scheduler_perf's functions. They compute with floats, and functions for integers cut the fraction off.
_FUNCTIONS: Final[Mapping[str, Callable[[list[Number]], Number]]] = {
    "AddFloat": lambda numbers: float(sum(numbers)),
    "AddInt": lambda numbers: int(sum(numbers)),
    "DivideFloat": _pair(_divide),
    "DivideInt": _pair(lambda first, second: int(_divide(first, second))),
    "Mod": _pair(_remainder),
    "MultiplyFloat": lambda numbers: float(math.prod(numbers)),
    "MultiplyInt": lambda numbers: int(math.prod(numbers)),
    "SubtractFloat": _pair(lambda first, second: float(first) - float(second)),
    "SubtractInt": _pair(lambda first, second: int(float(first) - float(second))),
}


def _written(value: Number) -> str:
    """Write a number like Go, so that a whole float has no point."""
    if isinstance(value, int):
        return str(value)
    if value and not _SMALLEST <= abs(value) < _LARGEST:
        raise TemplateRefused(f"the number {value} is written with an exponent, which is not known here")
    return str(int(value)) if value.is_integer() else repr(value)
