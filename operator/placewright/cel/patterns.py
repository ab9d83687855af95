"""Bounds the cost of the patterns of `matches()`. They match in linear time, but are compiled at each evaluation.

A pattern is counted as the library gets it, with the escapes of the literal undone. Only syntax that kube-scheduler's RE2 has, too, may
change how it is read: in verbose mode a repetition could be hidden.
"""

from __future__ import annotations

import re
from typing import Final

from placewright.cel.syntax import ExpressionError

LONGEST_PATTERN: Final = 256
#: States, for each repetition, of a set of characters, and of a set that spans all of Unicode.
_SET: Final = 30
_UNICODE_SET: Final = 900
#: States of a set that may span most of Unicode if case is ignored. Each of its characters is looked up.
_FOLDED_SET: Final = 70_000
#: Most characters that one character stands for if case is ignored.
_CASES: Final = 4
_REPETITION: Final = re.compile(r"\{\s*(\d*)\s*(?:,\s*(\d*)\s*)?\}")
_UNICODE: Final = re.compile(r"\\[pPwWdDsSbB]")
#: Sets of unknown size, and sets that are large within brackets.
_PROPERTY: Final = re.compile(r"\\[pP]")
_COMPLEMENT: Final = re.compile(r"\\[DSW]")
#: One end of a range beyond ASCII, in each of its spellings.
_FAR: Final = r"(?:[^\x00-\x7f]|\\[xuU](?:\{[^}]*\}|[0-9A-Fa-f]+)|\\[0-7]+)"
_FAR_RANGE: Final = re.compile(rf"{_FAR}-|-{_FAR}")
#: The texts that may follow `(?`: no capture, a name, or flags.
_GROUP: Final = re.compile(r"\(\?(?::|P?<|(?P<flags>[A-Za-z-]*)[:)])?")
_FLAGS: Final = frozenset("imsU-")


def pattern_states(pattern: str) -> int:
    """Bound the number of states of a compiled `pattern`, whose escapes are undone. Compiling takes as many steps.

    Raises:
        ExpressionError: the pattern is too long, or has syntax that kube-scheduler does not have.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise ExpressionError(f"matches() with a pattern of more than {LONGEST_PATTERN} characters is not supported")
    folded = _folds_case(pattern)
    repetitions = 1
    for least, most in _REPETITION.findall(pattern):
        repetitions *= max(int(least[:6] or "1"), int(most[:6] or "1"), 1)
    sets = pattern.count("[") + pattern.count(".")
    characters = len(pattern) * (_CASES if folded else 1)
    large = _FOLDED_SET * _large_sets(pattern) if folded else 0
    return repetitions * (characters + _SET * sets + _UNICODE_SET * len(_UNICODE.findall(pattern)) + large)


def _large_sets(pattern: str) -> int:
    """Count the sets that may span most of Unicode.

    All text after the first bracket is taken to be within brackets, which never counts too few.
    """
    _, bracket, within = pattern.partition("[")
    inside = bracket + within
    return len(_PROPERTY.findall(pattern)) + len(_COMPLEMENT.findall(inside)) + len(_FAR_RANGE.findall(inside))


def _folds_case(pattern: str) -> bool:
    """Return whether a flag ignores case. Refuse flags that kube-scheduler does not have."""
    folded = False
    for group in _GROUP.finditer(pattern):
        if group.group() == "(?":
            raise ExpressionError("matches() with a pattern that has (? followed by something else than :, P<, < or flags is not supported")
        flags = group["flags"] or ""
        if set(flags) - _FLAGS:
            raise ExpressionError(f"matches() with a pattern that has the flags {flags} is not supported; i, m, s and U are")
        folded = folded or "i" in flags
    return folded
