"""An upper bound of what evaluating a CEL expression once can cost: known before it is run, since nothing can stop it then.

A step is about a tenth of a microsecond. The weights are measured, and rounded up.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from placewright.plugins.dynamicresources.celfunctions import FUNCTIONS
from placewright.plugins.dynamicresources.celtokens import (
    ExpressionError,
    Group,
    Token,
    at,
    is_group,
    is_sign,
    name_of,
    walk,
)

#: For one device: two milliseconds.
MOST_STEPS: Final = 20_000
#: A device has no more attributes and capacities.
LARGEST_IN_DEVICE: Final = 32
LOOPS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})
_TO_BEGIN: Final = 150
#: All attributes of a domain are handed over.
_DOMAIN: Final = 150
_OWN_FUNCTION: Final = 20
_LONGEST_PATTERN: Final = 256
_PATTERN: Final = 200
#: For each repetition: of a set of characters, and of one that spans all of Unicode.
_SET: Final = 30
_UNICODE_SET: Final = 900
_REPETITION: Final = re.compile(r"\{\s*(\d+)\s*(?:,\s*(\d*)\s*)?\}")
_UNICODE: Final = re.compile(r"\\[pPwWdDsS]")


def steps_of(expression: Group, length: int) -> int:
    """What one evaluation may take, of an expression so many characters long; raises `ExpressionError` for more than `MOST_STEPS`."""
    groups = list(walk(expression))
    names = {name_of(item) for group in groups for item in group.items}
    pieces = max(len(group.items) for group in groups)
    base = max(LARGEST_IN_DEVICE, pieces, length if "split" in names else 0)
    growth = 1 + sum(is_sign(item, "+") or name_of(item) == "join" for group in groups for item in group.items)
    levels = _levels(expression)
    largest = base * growth**levels
    steps = _TO_BEGIN + max(_steps(expression.items, largest), largest * growth if levels else 0)
    if steps > MOST_STEPS:
        advice = "use fewer loops, sums, patterns"
        raise ExpressionError(f"may take {steps:.0e} steps for one device, at most {MOST_STEPS} are allowed: {advice}")
    return steps


def _levels(group: Group) -> int:
    """How deep loops and `cel.bind` are nested: with each level a sum can be summed up again."""
    inside = [_levels(item) + _is_call(group.items, i, LOOPS | {"bind"}) for i, item in enumerate(group.items) if isinstance(item, Group)]
    return max(inside, default=0)


def _steps(items: Sequence[Token | Group], size: int) -> int:
    steps = 0
    for i, item in enumerate(items):
        if isinstance(item, Group):
            steps += _steps(item.items, size) * (size if _is_call(items, i, LOOPS) else 1)
        steps += _weight(items, i)
    return steps


def _weight(items: Sequence[Token | Group], i: int) -> int:
    name, following = name_of(items[i]), at(items, i + 1)
    if name in ("attributes", "capacity"):
        return _DOMAIN
    if name == "matches" and isinstance(following, Group):
        return _pattern(following.arguments[-1])
    return _OWN_FUNCTION if name in FUNCTIONS or name == "size" else 1


def _is_call(items: Sequence[Token | Group], i: int, names: frozenset[str]) -> bool:
    return is_group(items[i], "(") and name_of(at(items, i - 1)) in names and is_sign(at(items, i - 2), ".")


def _pattern(argument: Sequence[Token | Group]) -> int:
    """Patterns are matched in linear time, but are built anew each time, with as many states as they have repetitions."""
    pattern = argument[0] if len(argument) == 1 else None
    if not isinstance(pattern, Token) or pattern.kind != "text":
        raise ExpressionError("matches() with a pattern that is not a literal is not supported")
    text = pattern.text
    if len(text) > _LONGEST_PATTERN:
        raise ExpressionError(f"matches() with a pattern of more than {_LONGEST_PATTERN} characters is not supported")
    repetitions = 1
    for least, most in _REPETITION.findall(text):
        repetitions *= max(int(least[:6]), int((most or "1")[:6]), 1)
    sets = text.count("[") + text.count(".")
    return _PATTERN + repetitions * (len(text) + _SET * sets + _UNICODE_SET * len(_UNICODE.findall(text)))
