"""Decisions become Bindings: `POST pods/NAME/binding`, with the pod's uid as a precondition.

The rules, in the order they matter:

- Before each request the question is asked again whether we may bind (leadership), and once more when its bytes are about to leave. While
  its answer is waited for it is asked on: when the lead is lost, the request is aborted.
- 409 means that somebody else bound, deleted or replaced the pod: said to the caller, not repeated. But the API server says 409 of
  whatever kept it from hearing of its own write, too, such as an etcd that answers late, so the pod is read first.
- An answer that got lost, or a 5xx, does not mean that nothing happened: the pod is read before anything else is done.
- 429 and 5xx are repeated a bounded number of times, with jitter; `Retry-After` is obeyed.
- A place among the requests under way is held for one request. Whoever waits to ask again holds none.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
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
from placewright.kube.writers.places import RequestPlaces, Whose
from placewright.kube.writers.writer import ApiWriter, WriterTiming

#: Bindings of one namespace under way at once where it is alone; more gained nothing against a real API server.
CONCURRENCY: Final = 64
#: Those of all profiles together, see `places`: one profile gets 108, of which one namespace gets 64, and the rest is there for others.
ALL_PLACES: Final = 144
#: How often a pod is looked at to learn what became of a lost answer; with the backoff below about two minutes.
LOOKS: Final = 20


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
        concurrency: int = ALL_PLACES,
        looks: int = LOOKS,
        aside: Callable[[PodInfo], AbstractContextManager[None]] = lambda _pod: nullcontext(),
        **timing: Unpack[WriterTiming],
    ) -> None:
        """`aside`: open while a pod waits for its request to be repeated: others may be decided meanwhile."""
        super().__init__(client, may_bind, **timing)
        self.counts = BindCounts()
        self._places = RequestPlaces(concurrency)
        self._aside = aside
        self._looks = looks

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """Bind the pod to the node; returns only when the Binding exists.

        Raises `BindError`: `conflict` when the pod is not ours to bind any more, `unknown` when nobody could be asked.
        """
        await self._bind(pod, node, binding(pod, node, annotations))
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
                await self._wait(pod, self._backoff.delay(attempt, error))
        raise BindError(f"binding {pod.key} to {node}: given up after {self._attempts} attempts: {error}")

    async def _try(self, pod: PodInfo, body: dict[str, Any]) -> RequestError | None:
        whose = _whose(pod)
        await self._places.take(whose)
        try:
            self._require_lead(f"binding {pod.key}: ")
            guarded = self._guarded(body)
            await self._client.write("POST", f"{_pod_path(pod)}/binding", guarded)
        except RequestError as error:
            if guarded.withheld:
                raise BindError(f"binding {pod.key}: this replica is not the active one") from error
            return error
        finally:
            self._places.give_back(whose)
        return None

    async def _wait(self, pod: PodInfo, seconds: float) -> None:
        """Before a request is repeated."""
        with self._aside(pod):
            await self._sleep(seconds)

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
        """Read the pod until somebody answers. Reading needs no leadership, but is not repeated without: the next term begins with it."""
        for attempt in range(self._looks):
            if attempt and not self._may_write():
                break
            try:
                async with self._places.one(_whose(pod)):
                    found = await self._client.get_as(_pod_path(pod), Pod)
            except ApiError as error:
                if error.status == NOT_FOUND:
                    return Seen.GONE
                await self._wait(pod, self._backoff.delay(attempt, error))
            except (RequestError, DecodeError):
                await self._wait(pod, self._backoff.delay(attempt))
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


def _whose(pod: PodInfo) -> Whose:
    return Whose(pod.namespace, pod.scheduler_name, pod.priority)


def _pod_path(pod: PodInfo) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
