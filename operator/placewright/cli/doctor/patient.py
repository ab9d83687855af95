"""A cluster that is looked at, with the rights of whoever asks, and what is found."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from placewright.kube.client import NO_PARAMS, ApiClient, Params
from placewright.kube.errors import FORBIDDEN, NOT_FOUND, ApiError, RequestError
from placewright.kube.listwatch import Malformed

Object = dict[str, Any]
DEPLOYMENT: Final = "placewright"


class Level(enum.StrEnum):
    """How bad it is. FAIL: pods are not placed, or not as they should be, or soon."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line.

    Attributes:
        check: what was looked at; stable, for programs.
        says: what was found.
        do: what to do about it; empty where nothing is to be done.
    """

    check: str
    level: Level
    says: str
    do: str = ""


def ok(check: str, says: str) -> CheckResult:
    """All is well."""
    return CheckResult(check, Level.OK, says)


def warn(check: str, says: str, do: str) -> CheckResult:
    """Something may be wrong, or could not be looked at."""
    return CheckResult(check, Level.WARN, says, do)


def fail(check: str, says: str, do: str) -> CheckResult:
    """Something is wrong."""
    return CheckResult(check, Level.FAIL, says, do)


@dataclass(slots=True)
class Patient:
    """What the checks share.

    Attributes:
        client: of the API server.
        namespace: the operator's.
        version: of the placewright that asks.
        now: this machine's clock.
        ahead: how far that clock is before the API server's, as far as is known.
        minor: of Kubernetes 1; None where the server does not tell.
        deployment: the operator's; None where there is none, or it may not be read.
    """

    client: ApiClient
    namespace: str
    version: str
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ahead: timedelta = timedelta()
    minor: int | None = None
    deployment: Object | None = None
    profiles: list[Object] = field(default_factory=list)

    @property
    def server_now(self) -> datetime:
        """What the API server's clock shows."""
        return self.now() - self.ahead

    async def read(self, path: str, params: Params = NO_PARAMS) -> Object | None:
        """An object or a list; None where there is none. Raises `RequestError`."""
        try:
            found = msgspec.json.decode(await self.client.get(path, params))
        except ApiError as problem:
            if problem.status != NOT_FOUND:
                raise
            return None
        except msgspec.DecodeError as problem:
            raise Malformed(f"{path}: {problem}") from None
        return found if isinstance(found, dict) else {}

    async def items(self, path: str, params: Params = NO_PARAMS) -> list[Object]:
        """What a collection holds; nothing where it does not exist. Raises `RequestError`."""
        found = await self.read(path, params)
        return list((found or {}).get("items") or ())


Check = Callable[[Patient], Awaitable[list[CheckResult]]]


async def examined(name: str, check: Check, patient: Patient) -> list[CheckResult]:
    """What a check finds; a check that may not look says so."""
    try:
        return await check(patient)
    except (RequestError, Malformed) as problem:
        words = " ".join(str(problem).split())
        denied = isinstance(problem, ApiError) and problem.status == FORBIDDEN
        do = "ask somebody with more rights" if denied else "look at the API server, and ask again"
        return [warn(name, f"not looked at: {words}", do)]


def condition(content: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The condition of this type in an object's status; empty where there is none."""
    conditions = (content.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), {})


def moment(text: object) -> datetime | None:
    """A time as objects have it; None for what is none."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
