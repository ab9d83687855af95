"""`/livez`, `/readyz` and `/healthz`: named checks, run and shown as by kube-scheduler.

`?verbose` shows each check, `/readyz/<check>` runs one, `?exclude=<check>` leaves one out. The reason of a failure is logged and not
answered, because these paths need no token.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from placewright.http.routes import Answer, Audience, Endpoint, Question, RequestRefused

_log = logging.getLogger(__name__)

_FAILED: Final = 500
_NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True)
class Check:
    """A named check.

    Attributes:
        name: the name, as in `/livez/<name>`.
        failing: returns the failure in words, or the empty text. It runs in the event loop every few seconds, so it must be cheap.
    """

    name: str
    failing: Callable[[], str]


def ping() -> Check:
    """Make the check that always passes: an answer proves that the event loop runs."""
    return Check("ping", lambda: "")


class Health:
    """One health path and its checks."""

    def __init__(self, path: str, checks: Sequence[Check]) -> None:
        self.path = path
        self._checks = {check.name: check for check in checks}
        self._said: dict[str, str] = {}

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of this path and of the single checks below it."""
        return Endpoint(self.path, self.answer, Audience.EVERYBODY, below=True)

    @property
    def name(self) -> str:
        """The name of the path, such as `livez`."""
        return self.path.strip("/")

    async def answer(self, question: Question) -> Answer:
        """Answer 200 and `ok`, or 500 with the names of the failing checks."""
        check = question.path.removeprefix(self.path).strip("/")
        if check:
            return self._answer_one(check)
        excluded = {name for name in question.query.get("exclude", ()) if name}
        wanted = [each for each in self._checks.values() if each.name not in excluded]
        failing = {each.name for each in wanted if self._ask(each)}
        if not failing and "verbose" not in question.query:
            return Answer(b"ok", headers=_UNCACHED)
        text = "".join(self._lines(excluded, failing))
        return Answer(text.encode(), status=_FAILED if failing else 200, headers=_UNCACHED)

    def _answer_one(self, name: str) -> Answer:
        check = self._checks.get(name)
        if check is None:
            raise RequestRefused(_NOT_FOUND, "404 page not found")
        if self._ask(check):
            return Answer(b"internal server error: reason withheld\n", status=_FAILED, headers=_UNCACHED)
        return Answer(b"ok", headers=_UNCACHED)

    def _lines(self, excluded: set[str], failing: set[str]) -> Iterable[str]:
        for name in self._checks:
            if name in excluded:
                yield f"[+]{name} excluded: ok\n"
            else:
                yield f"[-]{name} failed: reason withheld\n" if name in failing else f"[+]{name} ok\n"
        if strange := sorted(excluded - self._checks.keys()):
            named = ", ".join(f'"{name}"' for name in strange)
            yield f"warn: some health checks cannot be excluded: no matches for {named}\n"
        yield f"{self.name} check {'failed' if failing else 'passed'}\n"

    def _ask(self, check: Check) -> bool:
        """Run a check. Returns whether it fails; a result that differs from the last one is logged."""
        problem = check.failing()
        if problem != self._said.get(check.name, ""):
            self._said[check.name] = problem
            if problem:
                _log.warning("%s: %s fails: %s", self.name, check.name, problem)
            else:
                _log.info("%s: %s is ok again", self.name, check.name)
        return bool(problem)


_UNCACHED: Final = {"Cache-Control": "no-cache, private"}
