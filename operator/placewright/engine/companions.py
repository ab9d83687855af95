"""The companions of an engine: listeners that it is built with, and servers that are open for as long as it exists.

Metrics, traces, the decision log and the HTTP endpoints are companions. They are made before the engine, because the engine takes its
listeners as arguments and registers none later.
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
class ReplicaInfo:
    """This replica, for companions that are made before its engine. Nothing has been asked of the API server yet.

    Attributes:
        access: address of the API server, and credentials for it.
        replica: the identity and priority of this replica, before an election gives it a priority behind others.
        namespace: namespace of the operator: of its Lease, its marks of decisions, and the history of profiles.
        leads: whether this replica may bind now. Callable once the engine has been built.
    """

    access: ClusterAccess
    replica: Replica
    namespace: str
    leads: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Listeners:
    """The listeners that an engine calls.

    Attributes:
        attempts: called at each attempt to place a pod, and when a pod moves in the queue.
        groups: called at each attempt to decide a group.
        claims: called when a claim to devices is written or given back.
        requests: called at each request to the API server.
        watch_events: measures the handling of watch events.
        hints: measures queueing hints.
        details: whether decisions record the next best nodes, and the number of nodes that each plugin rejected. That costs a share of
            their time.
    """

    attempts: tuple[Observer, ...] = ()
    groups: tuple[Callable[[GroupAttempt], None], ...] = ()
    claims: tuple[ClaimListener, ...] = ()
    requests: tuple[RequestListener, ...] = ()
    watch_events: Stopwatch | None = None
    hints: Timed | None = None
    details: bool = False

    def __add__(self, other: Listeners) -> Listeners:
        """Join the listeners of two companions. Of two stopwatches for the same thing, the first is kept."""
        return Listeners(
            self.attempts + other.attempts, self.groups + other.groups, self.claims + other.claims, self.requests + other.requests,
            self.watch_events or other.watch_events, self.hints or other.hints, self.details or other.details,
        )  # fmt: skip


def nothing_open(_engine: Engine) -> AbstractAsyncContextManager[object]:
    """Open nothing, for a companion that only listens."""
    return nullcontext()


@dataclass(frozen=True, slots=True)
class Companions:
    """The companions of one engine.

    Attributes:
        listeners: called by the engine.
        open: a context, entered before the engine's first request to the API server and left after the engine's end. An error of entering
            it ends the run.
    """

    listeners: Listeners = Listeners()
    open: Callable[[Engine], AbstractAsyncContextManager[object]] = nothing_open


#: Makes the companions of an engine that is about to be built. It opens nothing, so that its error leaves nothing open.
MakeCompanions = Callable[[ReplicaInfo], Companions]


def no_companions(_info: ReplicaInfo) -> Companions:
    """Make no companions."""
    return Companions()


def together(*each: MakeCompanions) -> MakeCompanions:
    """Join several makers of companions into one.

    Args:
        each: their contexts are entered in this order and left in the opposite order. If one cannot be entered, all that
            were entered before are left.
    """

    def make(info: ReplicaInfo) -> Companions:
        made = [one(info) for one in each]

        @asynccontextmanager
        async def opened(engine: Engine) -> AsyncIterator[None]:
            async with AsyncExitStack() as stack:
                for one in made:
                    await stack.enter_async_context(one.open(engine))
                yield

        return Companions(sum((one.listeners for one in made), Listeners()), opened)

    return make
