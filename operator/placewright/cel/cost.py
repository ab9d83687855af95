"""Bounds the cost of evaluating a CEL expression once. The bound is needed before it runs, because nothing can stop it then.

A step is about a tenth of a microsecond. The weights are measured and rounded up. Weights that grow with lists and texts use the largest
list and text that the expression can make. These are estimated first (`_Growth`), from the sizes of the values that it reads
(`ValueSizes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from placewright.cel.functions import FUNCTIONS
from placewright.cel.patterns import pattern_states
from placewright.cel.syntax import (
    Brackets,
    ExpressionError,
    Item,
    Token,
    at,
    is_brackets,
    is_sign,
    name_of,
    unescaped,
    walk,
)

LOOPS: Final = frozenset({"all", "exists", "exists_one", "existsOne", "filter", "map"})
#: Loops that copy their result so far in each round.
_COPYING_LOOPS: Final = frozenset({"map", "filter"})
_COPY: Final = 0.5
_TO_BEGIN: Final = 150
#: Steps to hand over all entries of a map.
_MAP: Final = 150
_OWN_FUNCTION: Final = 20
#: Steps to hand one entry of a list over to a function of ours.
_ENTRY: Final = 1.0
#: Steps a character, by function; for all other functions the text is only handed over.
_PER_CHARACTER: Final = {
    "compareTo": 3.0, "isLessThan": 3.0, "isGreaterThan": 3.0, "semver": 1.0, "isSemver": 1.0, "quantity": 0.5, "isQuantity": 0.5,
    "split": 25.0, "replace": 1.0, "lowerAscii": 0.1, "upperAscii": 0.1, "duration": 0.5, "timestamp": 0.5,
    "contains": 0.05,
}  # fmt: skip
_HANDED_OVER: Final = 0.02
#: Functions that search for a text in another one: in the worst case each character is compared with each.
_SEARCHES: Final = frozenset({"indexOf", "lastIndexOf", "split", "replace"})
_COMPARED: Final = 0.004
#: Characters that the library itself handles in one step.
_CHARACTERS_A_STEP: Final = 500
#: Operators, beside `in`, that read whole lists.
_WHOLE: Final = ("==", "!=", "+")
_ENTRIES_A_STEP: Final = 6
_PATTERN: Final = 200
#: Steps to look at one state of a pattern, for each character of the text.
_STATE: Final = 0.02
#: Steps, entries and characters are counted up to here: estimates grow as towers of powers, and any such expression is refused.
_ENDLESS: Final = 10**15
#: Functions that make lists.
_MAKE_LISTS: Final = frozenset({"map", "filter", "split", "bind", "optional"})


@dataclass(frozen=True, slots=True)
class ValueSizes:
    """The sizes of the values that an expression reads.

    Attributes:
        entries: number of entries of the largest list or map.
        characters: number of characters of the longest text.
        maps: fields whose values are maps, handed over whole.
    """

    entries: int
    characters: int
    maps: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Growth:
    """The sizes of the values that an expression can make.

    Attributes:
        entries: number of entries of a list or a map.
        characters: number of characters of a text.
        maps: fields whose values are maps, handed over whole.
        copied: entries that are copied with each value; 0 if no list can contain another one.
    """

    entries: int
    characters: int
    maps: frozenset[str]
    copied: int = 0


def steps_of(expression: Brackets, sizes: ValueSizes) -> int:
    """Bound the steps of one evaluation.

    Returns:
        Steps, each about a tenth of a microsecond.

    Raises:
        ExpressionError: a pattern of `matches()` cannot be bounded.
    """
    every = list(walk(expression))
    sums = 1 + sum(is_sign(item, "+") or name_of(item) == "join" for brackets in every for item in brackets.items)
    levels = _levels(expression)
    growth = _growth(every, sizes, sums, levels)
    if _makes_lists_of_lists(expression, sizes.maps):
        growth = replace(growth, copied=min(growth.entries ** (levels + 1), _ENDLESS))
    most = _steps(expression.items, growth)
    if levels:
        most = max(most, growth.entries * sums)
    return _TO_BEGIN + int(most) if most < _ENDLESS else _ENDLESS


def _growth(every: Sequence[Brackets], sizes: ValueSizes, sums: int, levels: int) -> _Growth:
    """Estimate the growth of values.

    Sums make lists and texts grow, again with each level of loops; `split` makes lists of texts, and `join` makes texts of lists.
    """
    items = [item for brackets in every for item in brackets.items]
    names = {name_of(item) for item in items}
    literal = max((len(item.text) for item in items if isinstance(item, Token) and item.kind == "text"), default=0)
    longest = max(sizes.characters, literal)
    written = max((len(brackets.items) for brackets in every if brackets.opening in ("[", "{")), default=0)
    entries = max(sizes.entries, written) * sums**levels
    characters = longest * sums ** (levels + 1)
    for brackets in every:
        for i, item in enumerate(brackets.items):
            following = at(brackets.items, i + 1)
            if name_of(item) == "replace" and isinstance(following, Brackets):
                characters *= _growth_by_replacing(following, longest) ** (levels + 1)
    if "join" in names:
        characters *= 2 * entries
    if "split" in names:
        entries = max(entries, characters * sums**levels)
    if {"split", "join"} <= names:
        characters *= longest
    return _Growth(min(entries, _ENDLESS), min(characters, _ENDLESS), sizes.maps)


def _growth_by_replacing(call: Brackets, longest: int) -> int:
    """Bound the factor by which `replace` makes a text longer. A search for the empty text inserts beside each character."""
    old, new = (_literal_length(each) for each in (*call.arguments, [], [])[:2])
    put = longest if new is None else new
    return max(1, -(-put // old) if old else put + 1)


def _literal_length(argument: Sequence[Item]) -> int | None:
    literal = argument[0] if len(argument) == 1 else None
    return len(unescaped(literal)) if isinstance(literal, Token) and literal.kind == "text" else None


def _levels(brackets: Brackets) -> int:
    """Return the depth of nested loops and `cel.bind`, because each level can sum up the sums of the one within."""
    items = brackets.items
    inside = [_levels(item) + _is_call(items, i, LOOPS | {"bind"}) for i, item in enumerate(items) if isinstance(item, Brackets)]
    return max(inside, default=0)


def _steps(items: Sequence[Item], growth: _Growth) -> float:
    steps = 0.0
    for i, item in enumerate(items):
        if isinstance(item, Brackets):
            steps += _steps(item.items, growth) * (growth.entries if _is_call(items, i, LOOPS) else 1)
            if _is_call(items, i, _COPYING_LOOPS):
                steps += _COPY * growth.entries**2 * (1 + growth.copied)
        steps += _weight(items, i, growth)
    return steps


def _weight(items: Sequence[Item], i: int, growth: _Growth) -> float:
    name, following = name_of(items[i]), at(items, i + 1)
    if name in growth.maps:
        return _MAP
    if name == "matches" and isinstance(following, Brackets):
        states = _states(following.arguments[-1])
        return _PATTERN + states * (1 + _STATE * growth.characters)
    if name in FUNCTIONS or name in _PER_CHARACTER or name == "size":
        compared = _COMPARED * growth.characters**2 if name in _SEARCHES else 0
        handed_over = _ENTRY * max(growth.entries, growth.copied)
        return _OWN_FUNCTION + handed_over + _PER_CHARACTER.get(name, _HANDED_OVER) * growth.characters + compared
    if name == "sets":  # functions of sets compare each entry of one list with each of the other
        return _OWN_FUNCTION + _ENTRY * max(growth.entries, growth.copied) ** 2
    whole = growth.entries // _ENTRIES_A_STEP if name == "in" or any(is_sign(items[i], sign) for sign in _WHOLE) else 0
    return 1 + growth.characters // _CHARACTERS_A_STEP + whole + growth.copied


def _is_call(items: Sequence[Item], i: int, names: frozenset[str]) -> bool:
    return is_brackets(items[i], "(") and name_of(at(items, i - 1)) in names and is_sign(at(items, i - 2), ".")


def _states(argument: Sequence[Item]) -> int:
    pattern = argument[0] if len(argument) == 1 else None
    if not isinstance(pattern, Token) or pattern.kind != "text":
        raise ExpressionError("matches() with a pattern that is not a literal is not supported")
    return pattern_states(unescaped(pattern))


# --- lists of lists --------------------------------------------------------------------------------------------------------------


def _makes_lists_of_lists(expression: Brackets, maps: frozenset[str]) -> bool:
    """Return whether a literal, or a round of a `map`, may have entries that are no plain values.

    The library copies the whole content of a list with each use, and with each round of `map`. A plain value is recognised by its form
    alone. Literals, fields, and the results of operators and of most functions are plain. So are loop variables over plain lists.
    """
    bound = {name_of(first[0]) for call in _calls(expression, "bind") if len(first := call.arguments[0]) == 1}
    bodies = [call.arguments[-1] for call in _calls(expression, "map")]
    return not all(_is_plain(items, bound, maps) for items in (*_literals(expression), *bodies))


def _calls(expression: Brackets, name: str) -> list[Brackets]:
    found = []
    for brackets in walk(expression):
        for i, item in enumerate(brackets.items):
            if isinstance(item, Brackets) and item.opening == "(" and name_of(at(brackets.items, i - 1)) == name and i:
                found.append(item)
    return found


def _literals(expression: Brackets) -> list[list[Item]]:
    """Return the items of list and map literals: between brackets that are no index, and between braces."""
    return [
        item.items
        for brackets in walk(expression)
        for i, item in enumerate(brackets.items)
        if isinstance(item, Brackets) and item.opening in ("[", "{") and not _is_index(brackets.items, i)
    ]


def _is_index(items: Sequence[Item], i: int) -> bool:
    before = items[i - 1] if i else None
    if not is_brackets(items[i], "[") or before is None:
        return False
    return isinstance(before, Brackets) or (before.kind == "name" and before.text != "in")


def _is_plain(items: Sequence[Item], bound: set[str], maps: frozenset[str]) -> bool:
    for i, item in enumerate(items):
        if isinstance(item, Brackets):
            if item.opening == "{" or (item.opening == "[" and not _is_index(items, i)) or not _is_plain(item.items, bound, maps):
                return False
        elif name_of(item) and not _is_plain_name(items, i, bound, maps):
            return False
    return True


def _is_plain_name(items: Sequence[Item], i: int, bound: set[str], maps: frozenset[str]) -> bool:
    name, selected = name_of(items[i]), is_sign(at(items, i - 1), ".") and i > 0
    if name in _MAKE_LISTS and is_brackets(at(items, i + 1), "("):
        return False
    if name in maps and selected:  # a value that is looked up in a map by name is plain
        index = at(items, i + 1)
        following = at(items, i + 2) if isinstance(index, Brackets) else at(items, i + 3)
        return is_sign(following, ".") or is_brackets(following, "[")
    return selected or name not in bound
