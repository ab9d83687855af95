"""Decisions become Bindings: `POST pods/NAME/binding`, with the pod's uid as a precondition.

The rules, in the order they matter:

- Before each request the question is asked again whether we may bind (leadership), and once more when its bytes are about to leave. While
  its answer is waited for it is asked on: when the lead is lost, the request is aborted.
- 409 means that somebody else bound, deleted or replaced the pod: said to the caller, not repeated. But the API server says 409 of
  whatever kept it from hearing of its own write, too, such as an etcd that answers late, so the pod is read first.
- An answer that got lost, or a 5xx, does not mean that nothing happened: the pod is read before anything else is done.
- 429 and 5xx are repeated a bounded number of times, with jitter; `Retry-After` is obeyed.
"""

from __future__ import annotations

import asyncio
import enum
import heapq
import itertools
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Unpack

from placewright.api.decode import DecodeError
from placewright.api.errors import BindError
from placewright.api.extenders import ExtenderError
from placewright.api.objects import NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, NOT_FOUND, TOO_MANY_REQUESTS, ApiError, RequestError, Unreachable
from placewright.kube.ratelimit import Traffic
from placewright.kube.retry import RetryBackoff
from placewright.kube.writers.writer import ApiWriter, WriterTiming

#: Bindings under way at once; more gained nothing against a real API server.
CONCURRENCY: Final = 64
#: How often a pod is looked at to learn what became of a lost answer; with the backoff below about two minutes.
LOOKS: Final = 20
#: Of so many places that become free, one goes to whoever has waited longest: important ones may come without end.
OUT_OF_ORDER: Final = 8

_Turn = asyncio.Future[None]


class Seen(enum.Enum):
    """What reading a pod told about a Binding whose answer got lost."""

    BOUND_HERE = "bound to our node"
    BOUND_ELSEWHERE = "bound to another node"
    UNBOUND = "not bound"
    GONE = "gone or replaced"
    UNKNOWN = "could not be read"


@dataclass(slots=True)
class BindCounts:
    """What became of Bindings."""

    bound: int = 0
    conflicts: int = 0
    retries: int = 0
    lost_answers: int = 0
    refused: int = 0


class PrioritySlots:
    """`count` places; who waits goes by priority: an important pod must not stand behind hundreds that were decided before it.

    To be used inside one event loop.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._arrivals = itertools.count()
        self._given = 0
        #: Both hold all who wait; who got a place, or gave up, is skipped where it is met again.
        self._by_importance: list[tuple[int, int, _Turn]] = []
        self._by_arrival: deque[_Turn] = deque()

    async def take(self, importance: int) -> None:
        """Hold a place, to be given back; more important ones get theirs first, equal ones as they came."""
        if self._free:
            self._free -= 1
            return
        turn: _Turn = asyncio.get_running_loop().create_future()
        heapq.heappush(self._by_importance, (-importance, next(self._arrivals), turn))
        self._by_arrival.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back()
            raise

    def give_back(self) -> None:
        """Whoever held a place is done."""
        turn = self._next()
        if turn is None:
            self._free += 1
        else:
            turn.set_result(None)

    def _next(self) -> _Turn | None:
        while self._by_arrival and self._by_arrival[0].done():
            self._by_arrival.popleft()
        while self._by_importance and self._by_importance[0][2].done():
            heapq.heappop(self._by_importance)
        if not self._by_arrival:
            self._by_importance.clear()
            return None
        self._given += 1
        if self._given % OUT_OF_ORDER == 0:
            return self._by_arrival.popleft()
        return heapq.heappop(self._by_importance)[2]


class HttpBinder(ApiWriter):
    """Writes Bindings to the API server; implements the scheduler's `Binder`.

    Attributes:
        counts: what happened so far.
    """

    TRAFFIC: ClassVar[Traffic] = Traffic.BIND
    BACKOFF: ClassVar[RetryBackoff] = RetryBackoff(initial=0.1, maximum=10.0)
    ERROR: ClassVar[type[Exception]] = BindError

    def __init__(
        self,
        client: ApiClient,
        may_bind: Callable[[], bool],
        *,
        concurrency: int = CONCURRENCY,
        looks: int = LOOKS,
        **timing: Unpack[WriterTiming],
    ) -> None:
        super().__init__(client, may_bind, **timing)
        self.counts = BindCounts()
        self._slots = PrioritySlots(concurrency)
        self._looks = looks

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """Bind the pod to the node; returns only when the Binding exists.

        Raises `BindError`: `conflict` when the pod is not ours to bind any more, `unknown` when nobody could be asked.
        """
        await self._slots.take(pod.priority)
        try:
            await self._bind(pod, node, binding(pod, node, annotations))
        finally:
            self._slots.give_back()
        self.counts.bound += 1

    async def bind_by(self, pod: PodInfo, node: NodeName, send: Callable[[], Awaitable[None]]) -> None:
        """Have the pod bound by an extender; raises `BindError` as `bind` does.

        Who answers an error may have bound it, so the pod is read then. It is not asked twice.
        """
        self._require_lead(f"binding {pod.key}: ")
        try:
            async with self._client.while_allowed(f"binding {pod.key} by an extender", self._may_write):
                await send()
        except (ExtenderError, Unreachable) as error:
            if not await self._became(pod, node, error):
                raise BindError(str(error)) from error
        self.counts.bound += 1

    async def _bind(self, pod: PodInfo, node: NodeName, body: dict[str, Any]) -> None:
        for attempt in range(self._attempts):
            error = await self._try(pod, body)
            if error is None:
                return
            status = error.status if isinstance(error, ApiError) else None
            if status is not None and status < 500 and status not in (CONFLICT, TOO_MANY_REQUESTS):
                self.counts.refused += 1
                raise BindError(f"binding {pod.key} to {node}: {error}", conflict=status == NOT_FOUND)
            if status != TOO_MANY_REQUESTS and await self._became(pod, node, error):
                return
            if status == CONFLICT:
                raise self._conflict(pod, node, str(error))
            if attempt + 1 < self._attempts:
                self.counts.retries += 1
                await self._sleep(self._backoff.delay(attempt, error))
        raise BindError(f"binding {pod.key} to {node}: given up after {self._attempts} attempts: {error}")

    async def _try(self, pod: PodInfo, body: dict[str, Any]) -> RequestError | None:
        self._require_lead(f"binding {pod.key}: ")
        guarded = self._guarded(body)
        try:
            await self._client.write("POST", f"{_pod_path(pod)}/binding", guarded)
        except RequestError as error:
            if guarded.withheld:
                raise BindError(f"binding {pod.key}: this replica is not the active one") from error
            return error
        return None

    async def _became(self, pod: PodInfo, node: NodeName, error: RequestError | ExtenderError) -> bool:
        """What became of a Binding without a clear answer: True bound, False not; raises `BindError` for the rest."""
        if not (isinstance(error, ApiError) and error.status == CONFLICT):
            self.counts.lost_answers += 1
        seen = await self._look(pod, node)
        if seen is Seen.UNKNOWN:
            raise BindError(f"binding {pod.key} to {node}: {error}, and the pod {seen.value}", unknown=True)
        if seen in (Seen.BOUND_ELSEWHERE, Seen.GONE):
            raise self._conflict(pod, node, f"{error}; the pod is {seen.value}")
        return seen is Seen.BOUND_HERE

    async def _look(self, pod: PodInfo, node: NodeName) -> Seen:
        """Read the pod until somebody answers; reading needs no leadership."""
        for attempt in range(self._looks):
            try:
                found = await self._client.get_as(_pod_path(pod), Pod)
            except ApiError as error:
                if error.status == NOT_FOUND:
                    return Seen.GONE
                await self._sleep(self._backoff.delay(attempt, error))
            except (RequestError, DecodeError):
                await self._sleep(self._backoff.delay(attempt))
            else:
                return _compare(found, pod, node)
        return Seen.UNKNOWN

    def _conflict(self, pod: PodInfo, node: NodeName, why: str) -> BindError:
        self.counts.conflicts += 1
        return BindError(f"binding {pod.key} to {node}: {why}", conflict=True)


def binding(pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> dict[str, Any]:
    """The Binding object; the API server copies its annotations to the pod in the same write."""
    metadata: dict[str, Any] = {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid}
    if annotations:
        metadata["annotations"] = annotations
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def _compare(found: Pod, pod: PodInfo, node: NodeName) -> Seen:
    if found.metadata.uid != pod.uid:
        return Seen.GONE
    if found.spec.node_name == node:
        return Seen.BOUND_HERE
    return Seen.BOUND_ELSEWHERE if found.spec.node_name else Seen.UNBOUND


def _pod_path(pod: PodInfo) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
