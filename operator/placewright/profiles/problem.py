"""What is wrong with a profile: where, what was found there, what is allowed.

Nobody reads a thousand lines, and each takes time to word (`did_you_mean` compares a name with all that are known): whoever looks for
problems stops at `MOST_PROBLEMS`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from placewright.api.bad_input import InputError, printable

#: What is found where a field's name is wrong, and not its value.
UNKNOWN_FIELD: Final = "an unknown field"
MOST_PROBLEMS: Final = 100
#: Characters: a path has the keys of the document in it, whatever their length.
_LONGEST_LINE: Final = 1000
#: Characters; for a longer name none is looked for that was meant.
_LONGEST_NAME: Final = 253


class Problem(NamedTuple):
    """One thing that is wrong. Plugins' `Args.validate` may return plain triples of the same order, with paths inside their arguments."""

    path: str
    found: str
    allowed: str

    def __str__(self) -> str:
        """One line, as users read it."""
        path = self.path if len(self.path) <= _LONGEST_LINE else f"{self.path[:_LONGEST_LINE]}..."
        where = f"{path}: " if path else ""
        return f"{where}found {self.found}; allowed {self.allowed}"

    def inside(self, path: str) -> Problem:
        """The same problem, its path continued from an outer one."""
        if not self.path:
            return self._replace(path=path)
        joint = "" if self.path.startswith("[") or not path else "."
        return self._replace(path=f"{path}{joint}{self.path}")


def first_problems(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """As many as anybody reads; more are not looked for."""
    return tuple(islice(problems, MOST_PROBLEMS))


class ProfileError(InputError):
    """A profile, or a file of profiles, that cannot be used; the text has one line a problem.

    Attributes:
        problems: those that were found, in the order of the document; the first `MOST_PROBLEMS` of them.
        source: the file they were found in, or "".
    """

    def __init__(self, problems: Iterable[Problem], source: str = "") -> None:
        self.problems: Sequence[Problem] = first_problems(problems)
        self.source = source
        prefix = f"{source}: " if source else ""
        super().__init__("\n".join(printable(f"{prefix}{problem}") for problem in self.problems))


def closest_name(name: str, known: Iterable[str]) -> str:
    """The known name that was likely meant, or "" when none comes close. Case does not count, and a few letters do not either."""
    if len(name) > _LONGEST_NAME:
        return ""
    by_lower = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[close[0]] if close else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` (did you mean 'X'?)`, or "" when nothing known comes close."""
    close = closest_name(name, known)
    return f" (did you mean {close!r}?)" if close else ""
