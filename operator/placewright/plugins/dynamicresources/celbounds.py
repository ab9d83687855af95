"""An upper bound of what evaluating a CEL expression once can cost: known before it is run, since nothing can stop it then.

A step is about a tenth of a microsecond. The weights are measured, and rounded up. What grows with the lists and texts that an expression
can make is weighed by the largest of these, which is estimated first (`_Sizes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from placewright.plugins.dynamicresources.celfunctions import FUNCTIONS
from placewright.plugins.dynamicresources.celnesting import nests
from placewright.plugins.dynamicresources.celpatterns import pattern_states
from placewright.plugins.dynamicresources.celtokens import (
    ExpressionError,
    Group,
    Token,
    at,
    is_group,
    is_sign,
    name_of,
    unescaped,
    walk,
)

#: For one device: two milliseconds.
MOST_STEPS: Final = 20_000
#: A device has no more attributes and capacities.
LARGEST_IN_DEVICE: Final = 32
#: Characters of an attribute (DeviceAttributeMaxValueLength), or of a name with its domain; also of a number as text.
LONGEST_IN_DEVICE: Final = 96
LOOPS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})
#: In each round they copy what they have so far.
_COPYING_LOOPS: Final = frozenset({"map", "filter"})
_COPY: Final = 0.5
_TO_BEGIN: Final = 150
#: All attributes of a domain are handed over.
_DOMAIN: Final = 150
_OWN_FUNCTION: Final = 20
#: Each entry of a list is handed over to a function of ours.
_ENTRY: Final = 1.0
#: Functions of ours by what a character costs them; all others only have it handed over.
_PER_CHARACTER: Final = {
    "compareTo": 3.0, "isLessThan": 3.0, "isGreaterThan": 3.0, "semver": 1.0, "isSemver": 1.0, "quantity": 0.5, "isQuantity": 0.5,
    "split": 25.0, "replace": 1.0, "lowerAscii": 0.1, "upperAscii": 0.1,
}  # fmt: skip
_HANDED_OVER: Final = 0.02
#: Functions that look for a text in another one: in the worst case each character is compared with each.
_SEARCHES: Final = frozenset({"indexOf", "lastIndexOf", "split", "replace"})
_COMPARED: Final = 0.004
#: What the library does with a text costs next to nothing a character, but not nothing.
_CHARACTERS_A_STEP: Final = 500
#: Operators, beside `in`, that look at whole lists.
_WHOLE: Final = ("==", "!=", "+")
_ENTRIES_A_STEP: Final = 6
_PATTERN: Final = 200
#: For each character, each state of a pattern may be looked at.
_STATE: Final = 0.02


@dataclass(frozen=True, slots=True)
class _Sizes:
    """How large what an expression makes can get.

    Attributes:
        entries: of a list or a map.
        characters: of a text.
        copied: entries that come with each value; 0 where no list can be in another one.
    """

    entries: int
    characters: int
    copied: int = 0


def steps_of(expression: Group) -> int:
    """What one evaluation may take; raises `ExpressionError` for more than `MOST_STEPS`."""
    groups = list(walk(expression))
    growth = 1 + sum(is_sign(item, "+") or name_of(item) == "join" for group in groups for item in group.items)
    levels = _levels(expression)
    sizes = _sizes(groups, growth, levels)
    if nests(expression):
        sizes = replace(sizes, copied=sizes.entries ** (levels + 1))
    most = _steps(expression.items, sizes)
    if levels:
        most = max(most, sizes.entries * growth)
    steps = _TO_BEGIN + int(most)
    if steps > MOST_STEPS:
        advice = "use fewer loops, sums, patterns, and shorter texts"
        raise ExpressionError(f"may take {steps:.0e} steps for one device, at most {MOST_STEPS} are allowed: {advice}")
    return steps


def _sizes(groups: Sequence[Group], growth: int, levels: int) -> _Sizes:
    """Sums let lists and texts grow, again with each level of loops; `split` makes lists of texts, `join` texts of lists."""
    items = [item for group in groups for item in group.items]
    names = {name_of(item) for item in items}
    literal = max((len(item.text) for item in items if isinstance(item, Token) and item.kind == "text"), default=0)
    written = max(len(group.items) for group in groups)
    entries = max(LARGEST_IN_DEVICE, written) * growth**levels
    characters = max(LONGEST_IN_DEVICE, literal) * growth ** (levels + 1)
    for group in groups:
        for i, item in enumerate(group.items):
            following = at(group.items, i + 1)
            if name_of(item) == "replace" and isinstance(following, Group):
                characters *= _growth_by_replacing(following, max(LONGEST_IN_DEVICE, literal)) ** (levels + 1)
    if "join" in names:
        characters *= 2 * entries
    if "split" in names:
        entries = max(entries, characters * growth**levels)
    if {"split", "join"} <= names:
        characters *= max(LONGEST_IN_DEVICE, literal)
    return _Sizes(entries, characters)


def _growth_by_replacing(call: Group, longest: int) -> int:
    """How many times as long `replace` makes a text at most: where it looks for nothing, it puts something beside each character."""
    old, new = (_literal_length(each) for each in (*call.arguments, [], [])[:2])
    put = longest if new is None else new
    return max(1, -(-put // old) if old else put + 1)


def _literal_length(argument: Sequence[Token | Group]) -> int | None:
    literal = argument[0] if len(argument) == 1 else None
    return len(unescaped(literal)) if isinstance(literal, Token) and literal.kind == "text" else None


def _levels(group: Group) -> int:
    """How deep loops and `cel.bind` are nested: with each level a sum can be summed up again."""
    inside = [_levels(item) + _is_call(group.items, i, LOOPS | {"bind"}) for i, item in enumerate(group.items) if isinstance(item, Group)]
    return max(inside, default=0)


def _steps(items: Sequence[Token | Group], sizes: _Sizes) -> float:
    steps = 0.0
    for i, item in enumerate(items):
        if isinstance(item, Group):
            steps += _steps(item.items, sizes) * (sizes.entries if _is_call(items, i, LOOPS) else 1)
            if _is_call(items, i, _COPYING_LOOPS):
                steps += _COPY * sizes.entries**2 * (1 + sizes.copied)
        steps += _weight(items, i, sizes)
    return steps


def _weight(items: Sequence[Token | Group], i: int, sizes: _Sizes) -> float:
    name, following = name_of(items[i]), at(items, i + 1)
    if name in ("attributes", "capacity"):
        return _DOMAIN
    if name == "matches" and isinstance(following, Group):
        states = _states(following.arguments[-1])
        return _PATTERN + states * (1 + _STATE * sizes.characters)
    if name in FUNCTIONS or name == "size":
        compared = _COMPARED * sizes.characters**2 if name in _SEARCHES else 0
        handed_over = _ENTRY * max(sizes.entries, sizes.copied)
        return _OWN_FUNCTION + handed_over + _PER_CHARACTER.get(name, _HANDED_OVER) * sizes.characters + compared
    if name == "sets":  # each entry is compared with each
        return _OWN_FUNCTION + _ENTRY * max(sizes.entries, sizes.copied) ** 2
    whole = sizes.entries // _ENTRIES_A_STEP if name == "in" or any(is_sign(items[i], sign) for sign in _WHOLE) else 0
    return 1 + sizes.characters // _CHARACTERS_A_STEP + whole + sizes.copied


def _is_call(items: Sequence[Token | Group], i: int, names: frozenset[str]) -> bool:
    return is_group(items[i], "(") and name_of(at(items, i - 1)) in names and is_sign(at(items, i - 2), ".")


def _states(argument: Sequence[Token | Group]) -> int:
    pattern = argument[0] if len(argument) == 1 else None
    if not isinstance(pattern, Token) or pattern.kind != "text":
        raise ExpressionError("matches() with a pattern that is not a literal is not supported")
    return pattern_states(unescaped(pattern))
