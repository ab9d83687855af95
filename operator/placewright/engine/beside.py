"""What stands beside an engine: listeners, which are arguments of its build, and what is open for as long as it is there.

Metrics, traces, the decision log and the HTTP endpoints stand there. They are made first, because an engine hears of nobody later.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placewright.kube.auth.login import ClusterAccess
from placewright.kube.client import RequestListener
from placewright.kube.writers.claims import ClaimListener
from placewright.leadership.peers import Replica
from placewright.queue.hints import Timed
from placewright.scheduler.attempts import GroupAttempt, Observer
from placewright.scheduler.eventhandlers import Stopwatch

if TYPE_CHECKING:
    from placewright.engine.engine import Engine


@dataclass(frozen=True, slots=True)
class Membership:
    """This process among those that may act on a cluster; nothing has been asked of the API server yet.

    Attributes:
        access: how the API server is reached.
        replica: who we are.
        leads: whether this replica acts now; to be called once there is an engine.
    """

    access: ClusterAccess
    replica: Replica
    leads: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who hears what an engine does.

    Attributes:
        attempts: hear of every attempt to place a pod, and where pods go in the queue.
        groups: hear of every attempt to decide a group.
        claims: hear what becomes of claims to devices.
        requests: hear of every request to the API server.
        intake: takes the time of what watches bring.
        hints: takes the time of queueing hints.
        details: whether decisions tell the next best nodes, and who rejected how many; it costs a share of their time.
    """

    attempts: tuple[Observer, ...] = ()
    groups: tuple[Callable[[GroupAttempt], None], ...] = ()
    claims: tuple[ClaimListener, ...] = ()
    requests: tuple[RequestListener, ...] = ()
    intake: Stopwatch | None = None
    hints: Timed | None = None
    details: bool = False

    def __add__(self, other: Listeners) -> Listeners:
        """Both; of two that take the same time, the first."""
        return Listeners(
            self.attempts + other.attempts, self.groups + other.groups, self.claims + other.claims, self.requests + other.requests,
            self.intake or other.intake, self.hints or other.hints, self.details or other.details,
        )  # fmt: skip


def nothing_open(_engine: Engine) -> AbstractAsyncContextManager[object]:
    """For what only listens."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Beside:
    """What stands beside one engine.

    Attributes:
        listeners: who hears what the engine does.
        open: opened before the engine asks the API server for anything, closed after its end; what it raises ends the run.
    """

    listeners: Listeners = Listeners()
    open: Callable[[Engine], AbstractAsyncContextManager[object]] = nothing_open


#: Makes what stands beside an engine that is about to be built; what it raises leaves nothing open.
StandBeside = Callable[[Membership], Beside]


def nothing_beside(_member: Membership) -> Beside:
    """An engine by itself."""
    return Beside()


def together(*each: StandBeside) -> StandBeside:
    """Several, as one: opened in order, closed in the opposite one; what one of them raises closes those before it."""

    def stand(member: Membership) -> Beside:
        made = [one(member) for one in each]

        @asynccontextmanager
        async def opened(engine: Engine) -> AsyncIterator[None]:
            async with AsyncExitStack() as stack:
                for one in made:
                    await stack.enter_async_context(one.open(engine))
                yield

        return Beside(sum((one.listeners for one in made), Listeners()), opened)

    return stand
