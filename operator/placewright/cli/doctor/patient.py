"""The cluster that the checks examine, with the rights of their user, and the results."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from placewright.cli.profiles.connection import if_found
from placewright.kube.client import NO_PARAMS, ApiClient, Params
from placewright.kube.errors import FORBIDDEN, ApiError, RequestError
from placewright.kube.listwatch import Malformed

Object = dict[str, Any]
DEPLOYMENT: Final = "placewright"


class Level(enum.StrEnum):
    """The severity of a result. FAIL: pods are not placed, or wrongly, now or soon."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line.

    Attributes:
        check: name of the check; stable, for programs.
        level: its severity.
        says: the finding.
        do: remedy; empty if there is nothing to do.
    """

    check: str
    level: Level
    says: str
    do: str = ""


def ok(check: str, says: str) -> CheckResult:
    """Build the result of a check without a problem."""
    return CheckResult(check, Level.OK, says)


def warn(check: str, says: str, do: str) -> CheckResult:
    """Build the result of a check that found a possible problem, or could not look.

    Args:
        check: its name.
        says: the finding.
        do: remedy.
    """
    return CheckResult(check, Level.WARN, says, do)


def fail(check: str, says: str, do: str) -> CheckResult:
    """Build the result of a check that found a problem.

    Args:
        check: its name.
        says: the finding.
        do: remedy.
    """
    return CheckResult(check, Level.FAIL, says, do)


@dataclass(slots=True)
class Patient:
    """The cluster, and the facts that checks share.

    Attributes:
        client: client of the API server.
        namespace: the operator's.
        version: version of this placewright.
        now: this machine's clock.
        ahead: time by which that clock is ahead of the API server's; zero until it is known.
        minor: minor version of Kubernetes 1; None if the server does not tell it.
        deployment: the operator's; None if there is none, or it may not be read.
        profiles: profiles of the API server; the check of profiles fills it.
    """

    client: ApiClient
    namespace: str
    version: str
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ahead: timedelta = timedelta()
    minor: int | None = None
    deployment: Object | None = None
    profiles: list[Object] = field(default_factory=list)

    def seconds_since(self, then: datetime) -> float:
        """Compute the age of a time by the API server's clock, 0 or more."""
        return max((self.now() - self.ahead - then).total_seconds(), 0.0)

    async def read(self, path: str, params: Params = NO_PARAMS) -> Object | None:
        """Read an object or a list.

        Returns:
            The object; None if there is none.

        Raises:
            RequestError: the server refused or did not answer.
            Malformed: the answer is no JSON.
        """
        answer = await if_found(self.client.get(path, params))
        try:
            found = {} if answer is None else msgspec.json.decode(answer)
        except msgspec.DecodeError as problem:
            raise Malformed(f"{path}: {problem}") from None
        return None if answer is None else found if isinstance(found, dict) else {}


Check = Callable[[Patient], Awaitable[list[CheckResult]]]


async def examined(name: str, check: Check, patient: Patient) -> list[CheckResult]:
    """Run a check. A check that could not look becomes a warning."""
    try:
        return await check(patient)
    except (RequestError, Malformed) as problem:
        words = " ".join(str(problem).split())
        denied = isinstance(problem, ApiError) and problem.status == FORBIDDEN
        do = "ask a person with more rights to run it" if denied else "look at the API server, and run it again"
        return [warn(name, f"not checked: {words}", do)]


def moment(text: object) -> datetime | None:
    """Parse a time of an object.

    Returns:
        The time; None for any other text.
    """
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
