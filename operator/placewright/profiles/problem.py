"""Problems of a profile: the field, the value found, the values allowed.

Checks stop at `MOST_PROBLEMS`. No person reads a thousand lines, and each line takes time: `did_you_mean` compares a name with all known
names.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from placewright.api.bad_input import InputError, in_json, printable

#: The found value of a problem with a field's name.
UNKNOWN_FIELD: Final = "an unknown field"
MOST_PROBLEMS: Final = 100
#: Characters of a path in a message: a path contains the keys of the document, which may be long.
_LONGEST_LINE: Final = 1000
#: Characters of a name; for a longer one no similar name is searched.
_LONGEST_NAME: Final = 253


class Problem(NamedTuple):
    """One problem of a profile. Plugins' `Args.validate` may return plain triples of the same order, with paths inside their arguments."""

    path: str
    found: str
    allowed: str

    def __str__(self) -> str:
        """One line, for people."""
        path = self.path if len(self.path) <= _LONGEST_LINE else f"{self.path[:_LONGEST_LINE]}..."
        where = f"{path}: " if path else ""
        return f"{where}found {self.found}; allowed {self.allowed}"

    def inside(self, path: str) -> Problem:
        """Move the problem into an outer field.

        Returns:
            The problem, with the outer path before its own.
        """
        if not self.path:
            return self._replace(path=path)
        joint = "" if self.path.startswith("[") or not path else "."
        return self._replace(path=f"{path}{joint}{self.path}")


def first_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Take the first `MOST_PROBLEMS`; the search for more ends there."""
    return tuple(islice(problems, MOST_PROBLEMS))


class ProfileError(InputError):
    """A profile, or a file of profiles, that cannot be used. The text has one line a problem.

    Attributes:
        problems: the first `MOST_PROBLEMS`, in the order of the document.
        source: name of the file, or "".
    """

    def __init__(self, problems: Iterable[Problem], source: str = "") -> None:
        self.problems: Sequence[Problem] = first_problems(problems)
        self.source = source
        prefix = f"{source}: " if source else ""
        super().__init__("\n".join(printable(f"{prefix}{problem}") for problem in self.problems))


def closest_name(name: str, known: Iterable[str]) -> str:
    """Find the known name that was likely meant. Case, and a few letters, may differ.

    Returns:
        The name; "" when none is similar.
    """
    if len(name) > _LONGEST_NAME:
        return ""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[close[0]] if close else ""


def check_word(path: str, found: str, allowed: Sequence[str]) -> Iterator[Problem]:
    """Check a field with a closed set of words."""
    if found not in allowed:
        yield Problem(path, in_json(found), f"{', '.join(allowed[:-1])} or {allowed[-1]}{did_you_mean(found, allowed)}")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest a known name in a message.

    Returns:
        ` (did you mean 'X'?)`; "" when none is similar.
    """
    close = closest_name(name, known)
    return f" (did you mean {close!r}?)" if close else ""
