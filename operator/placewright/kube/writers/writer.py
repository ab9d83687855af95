"""The base classes of all writers: how often they repeat a request, whether this replica may send it, and their clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from dataclasses import KW_ONLY, dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, TypeVar

from placewright.api.objects import ObjectMeta
from placewright.api.pods import PodInfo
from placewright.kube.client import ApiClient
from placewright.kube.errors import RetryBackoff, Sleep, with_retries
from placewright.kube.guarded import GuardedBody, always
from placewright.kube.ratelimit import Traffic
from placewright.kube.writers.places import RequestOwner, RequestPlaces

T = TypeVar("T")
#: Seconds between two looks at the watched state, at first and at last; kube-scheduler looks every second (volumes) or five (claims).
LOOK_SECONDS: Final = 0.2
LONGEST_LOOK_SECONDS: Final = 5.0
#: Seconds between two looks, as a share of the time waited so far: thousands of pods that wait for long then cost next to nothing.
_SHARE_OF_THE_WAIT: Final = 0.1


class NotActive(Exception):
    """This replica is not the active one."""


@dataclass(eq=False)
class ApiWriter:
    """Sends requests that change objects. Subclasses set the class of traffic, the number of attempts and the error.

    Attributes:
        client: the API server's client.
        may_write: asked before each request and each look, and when the bytes of a body leave: only the active replica may write.
        attempts: number of times that a request is sent at most while its errors are temporary.
        backoff: waits between two attempts.
        clock: monotonic seconds.
        utc_now: the time of day, for texts that are written.
        sleep: waits so many seconds.
    """

    TRAFFIC: ClassVar[Traffic]
    #: Requests under way at once, among requests that name a party (`RequestOwner`).
    PLACES: ClassVar[int] = 64
    #: Raised when this replica is not the active one.
    ERROR: ClassVar[type[Exception]] = NotActive

    client: ApiClient
    may_write: Callable[[], bool] = always
    _: KW_ONLY
    attempts: int = 5
    backoff: RetryBackoff = RetryBackoff(initial=0.2, maximum=10.0)  # noqa: RUF009 - frozen
    clock: Callable[[], float] = time.monotonic
    utc_now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Sleep = asyncio.sleep

    def __post_init__(self) -> None:
        self.client = self.client.sending(self.TRAFFIC)
        self._places = RequestPlaces(self.PLACES)

    async def until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until the watches show a state. The API server is asked nothing.

        Returns:
            True once `done` does; False after the time limit.

        Raises:
            Exception: the writer's `ERROR`, once this replica is not the active one.
        """
        began = self.clock()
        while not done():
            self._require_lead()
            waited = self.clock() - began
            if waited >= seconds:
                return False
            pause = min(max(LOOK_SECONDS, waited * _SHARE_OF_THE_WAIT), LONGEST_LOOK_SECONDS)
            await self.sleep(min(pause, max(seconds - waited, LOOK_SECONDS)))
        return True

    async def _send(
        self, request: Callable[[], Awaitable[T]], *, about: str = "", attempts: int | None = None, whose: RequestOwner | None = None
    ) -> T:
        """Send the request, and again while its errors are temporary.

        Args:
            request: sends it once.
            about: begins the message when this replica may not write.
            attempts: number of times at most; None for the writer's number.
            whose: holds one of the writer's places for this party while the request is under way; None holds none.
        """

        async def allowed() -> T:
            async with nullcontext() if whose is None else self._places.one(whose):
                self._require_lead(about)
                return await request()

        return await with_retries(allowed, self.attempts if attempts is None else attempts, self.backoff, self.sleep)

    def _guarded(self, body: Mapping[str, Any] | bytes) -> GuardedBody:
        return GuardedBody(body, self.may_write)

    def _require_lead(self, about: str = "") -> None:
        if not self.may_write():
            raise self.ERROR(f"{about}this replica is not the active one")


@dataclass(eq=False)
class RoomWriter(ApiWriter):
    """Writes that a Binding waits for, or that make room for a pod: they repeat for a few seconds."""

    TRAFFIC: ClassVar[Traffic] = Traffic.ROOM
    _: KW_ONLY
    attempts: int = 4
    backoff: RetryBackoff = RetryBackoff(initial=0.2, maximum=5.0)  # noqa: RUF009 - frozen


def pod_path(pod: PodInfo | ObjectMeta) -> str:
    """Build the path of a pod."""
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


def precondition(uid: str, version: str) -> dict[str, str]:
    """Build the metadata of a patch that only this object takes. Only this version takes it if `version` is not empty."""
    return {"uid": uid, "resourceVersion": version} if version else {"uid": uid}
