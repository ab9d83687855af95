"""Whether an expression can make lists of lists: the library copies all of what is in a list with each use, and with each round of `map`.

What can be no list is seen from its form alone: literals, what operators and most functions make, fields of devices, and the variables of
loops over lists of such.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from placewright.plugins.dynamicresources.celtokens import Group, Token, at, is_group, is_sign, name_of, walk

#: Functions that make lists.
_MAKE_LISTS: Final = frozenset({"map", "filter", "split", "bind", "optional"})
_DOMAINS: Final = ("attributes", "capacity")


def nests(expression: Group) -> bool:
    """True unless every list and map that it writes, and every round of a `map`, has entries that are no lists or maps themselves."""
    bound = {name_of(first[0]) for call in _calls(expression, "bind") if len(first := call.arguments[0]) == 1}
    bodies = [call.arguments[-1] for call in _calls(expression, "map")]
    return not all(_is_plain(items, bound) for items in (*_literals(expression), *bodies))


def _calls(expression: Group, name: str) -> list[Group]:
    found = []
    for group in walk(expression):
        for i, item in enumerate(group.items):
            if isinstance(item, Group) and item.opening == "(" and name_of(at(group.items, i - 1)) == name and i:
                found.append(item)
    return found


def _literals(expression: Group) -> list[list[Token | Group]]:
    """What is written between brackets that are no index, and between braces."""
    return [
        item.items
        for group in walk(expression)
        for i, item in enumerate(group.items)
        if isinstance(item, Group) and item.opening in ("[", "{") and not _is_index(group.items, i)
    ]


def _is_index(items: Sequence[Token | Group], i: int) -> bool:
    before = items[i - 1] if i else None
    return is_group(items[i], "[") and before is not None and (isinstance(before, Group) or (before.kind == "name" and before.text != "in"))


def _is_plain(items: Sequence[Token | Group], bound: set[str]) -> bool:
    for i, item in enumerate(items):
        if isinstance(item, Group):
            if item.opening == "{" or (item.opening == "[" and not _is_index(items, i)) or not _is_plain(item.items, bound):
                return False
        elif name_of(item) and not _is_plain_name(items, i, bound):
            return False
    return True


def _is_plain_name(items: Sequence[Token | Group], i: int, bound: set[str]) -> bool:
    name, selected = name_of(items[i]), is_sign(at(items, i - 1), ".") and i > 0
    if name in _MAKE_LISTS and is_group(at(items, i + 1), "("):
        return False
    if name in _DOMAINS and selected:  # a whole domain is a map
        index = at(items, i + 1)
        following = at(items, i + 2) if isinstance(index, Group) else at(items, i + 3)
        return is_sign(following, ".") or is_group(following, "[")
    return selected or name not in bound
