"""An upper bound of what evaluating a CEL expression once can cost, in steps: known before it is run, since nothing can stop it then."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

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

#: Steps of about a microsecond.
MOST_STEPS: Final = 100_000
#: A device has no more attributes and capacities (32 of both together), and no attribute is longer than 64 characters.
LARGEST_IN_DEVICE: Final = 64
LOOPS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})
_LONGEST_PATTERN: Final = 256
_MOST_REPETITIONS: Final = 1_000
_REPETITION: Final = re.compile(r"\{\s*(\d+)\s*(?:,\s*(\d*)\s*)?\}")


def check_cost(expression: Group, length: int) -> None:
    """Refuse what may take more than `MOST_STEPS`, and costly patterns. Raises `ExpressionError`."""
    _check_patterns(expression)
    groups = list(walk(expression))
    names = {name_of(item) for group in groups for item in group.items}
    pieces = max(len(group.items) for group in groups)
    base = max(LARGEST_IN_DEVICE, pieces, length if "split" in names else 0)
    growth = 1 + sum(is_sign(item, "+") or name_of(item) == "join" for group in groups for item in group.items)
    levels = _levels(expression)
    steps = max(_steps(expression.items, base * growth**levels), base * growth ** (levels + 1) if levels else 0)
    if steps > MOST_STEPS:
        raise ExpressionError(f"may take {steps:.0e} steps for one device, at most {MOST_STEPS} are allowed: nest fewer loops and sums")


def _levels(group: Group) -> int:
    """How deep loops and `cel.bind` are nested: with each level a sum can be summed up again."""
    inside = [_levels(item) + _is_call(group.items, i, LOOPS | {"bind"}) for i, item in enumerate(group.items) if isinstance(item, Group)]
    return max(inside, default=0)


def _steps(items: Sequence[Token | Group], size: int) -> int:
    steps = 0
    for i, item in enumerate(items):
        if isinstance(item, Group):
            steps += _steps(item.items, size) * (size if _is_call(items, i, LOOPS) else 1)
        steps += 1
    return steps


def _is_call(items: Sequence[Token | Group], i: int, names: frozenset[str]) -> bool:
    return is_group(items[i], "(") and name_of(at(items, i - 1)) in names and is_sign(at(items, i - 2), ".")


def _check_patterns(expression: Group) -> None:
    """Patterns are matched in linear time, but a long or repetitive one takes long to build, anew each time."""
    for group in walk(expression):
        for i, item in enumerate(group.items):
            following = at(group.items, i + 1)
            if name_of(item) == "matches" and isinstance(following, Group):
                _check_pattern(following.arguments[-1])


def _check_pattern(argument: Sequence[Token | Group]) -> None:
    pattern = argument[0] if len(argument) == 1 else None
    if not isinstance(pattern, Token) or pattern.kind != "text":
        raise ExpressionError("matches() with a pattern that is not a literal is not supported")
    if len(pattern.text) > _LONGEST_PATTERN:
        raise ExpressionError(f"matches() with a pattern of more than {_LONGEST_PATTERN} characters is not supported")
    repetitions = 1
    for least, most in _REPETITION.findall(pattern.text):
        repetitions *= max(int(least[:6]), int((most or "1")[:6]), 1)
    if repetitions > _MOST_REPETITIONS:
        raise ExpressionError(f"matches() with a pattern that repeats more than {_MOST_REPETITIONS} times is not supported")
