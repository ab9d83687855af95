"""Writes Bindings: `POST pods/NAME/binding`, with the pod's uid as a precondition.

The rules, in the order of their importance:

- Leadership is asked before each request and once more when its bytes are about to leave. It is asked on while the answer is waited for:
  when the lead is lost, the request is aborted.
- 409 means that another writer bound, deleted or replaced the pod: it is reported, not repeated. But the API server also answers 409 when
  it did not hear of its own write, because etcd answers late; so the pod is read first (docs/decisions/0006).
- A lost answer or a 5xx does not mean that nothing happened: the pod is read before anything else is done.
- 429 and 5xx are repeated a bounded number of times, with jitter and not before `Retry-After`.
- A place is held while a request is under way, and never while a repetition is waited for.
"""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Final

from placewright.api.decode import DecodeError
from placewright.api.errors import BindError
from placewright.api.extenders import ExtenderError
from placewright.api.objects import NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.kube.errors import CONFLICT, NOT_FOUND, TOO_MANY_REQUESTS, ApiError, RequestError, RetryBackoff, Unreachable
from placewright.kube.ratelimit import Traffic
from placewright.kube.writers.places import RequestOwner
from placewright.kube.writers.writer import ApiWriter, pod_path

#: Bindings under way at once of a namespace that is alone. More gained nothing in front of a real API server.
CONCURRENCY: Final = 64
#: Bindings under way at once of all profiles (see `places`): a profile that is alone gets 108, and a namespace that is alone 64 of them.
ALL_PLACES: Final = 144
#: Number of times that a pod is read after a Binding without an answer; with the backoff below about two minutes.
LOOKS: Final = 20


class Seen(enum.Enum):
    """The state of a pod whose Binding got no clear answer."""

    BOUND_HERE = "bound to our node"
    BOUND_ELSEWHERE = "bound to another node"
    UNBOUND = "not bound"
    GONE = "gone or replaced"
    UNKNOWN = "could not be read"


@dataclass(slots=True)
class BindCounts:
    """Outcomes of Bindings."""

    bound: int = 0
    conflict: int = 0
    retry: int = 0
    lost_answer: int = 0
    refused: int = 0


@dataclass(eq=False)
class HttpBinder(ApiWriter):
    """Writes Bindings to the API server; implements the scheduler's port `Binder`.

    Attributes:
        looks: number of times that a pod is read to find out whether a Binding took effect.
        aside: opened while a pod waits for a repetition, so that other pods are decided meanwhile.
        before: waits for writes about the pod that come before its Binding; None for none.
        counts: outcomes so far.
    """

    TRAFFIC: ClassVar[Traffic] = Traffic.BIND
    PLACES: ClassVar[int] = ALL_PLACES
    ERROR: ClassVar[type[Exception]] = BindError

    _: KW_ONLY
    backoff: RetryBackoff = RetryBackoff(initial=0.1, maximum=10.0)  # noqa: RUF009 - frozen
    looks: int = LOOKS
    aside: Callable[[PodInfo], AbstractContextManager[None]] = lambda _pod: nullcontext()
    before: Callable[[PodInfo], Awaitable[None]] | None = None
    counts: BindCounts = field(init=False, default_factory=BindCounts)

    async def bind(self, pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> None:
        """Bind the pod to the node. When this returns, the Binding exists.

        Args:
            pod: to be bound; its uid is a precondition.
            node: to bind it to.
            annotations: annotations of the Binding; the API server copies them to the pod.

        Raises:
            BindError: `conflict` when another writer bound, deleted or replaced the pod; `unknown` when the server did not tell the
                outcome; neither when it refused or this replica is not the active one.
        """
        if self.before is not None:
            await self.before(pod)
        await self._bind(pod, node, binding(pod, node, annotations))
        self.counts.bound += 1

    async def bind_by(self, pod: PodInfo, node: NodeName, send: Callable[[], Awaitable[None]]) -> None:
        """Have an extender bind the pod. It is asked once.

        An extender that answers an error may have bound the pod all the same, so the pod is read then.

        Raises:
            BindError: as in `bind`.
        """
        if self.before is not None:
            await self.before(pod)
        self._require_lead(f"binding {pod.key}: ")
        try:
            async with self.client.guarded.ending(f"binding {pod.key} by an extender", self._guarded(b"")):
                await send()
        except (ExtenderError, Unreachable) as error:
            if not await self._became(pod, node, error):
                raise BindError(str(error)) from error
        self.counts.bound += 1

    async def _bind(self, pod: PodInfo, node: NodeName, body: dict[str, Any]) -> None:
        for attempt in range(self.attempts):
            error = await self._try(pod, body)
            if error is None:
                return
            status = error.status if isinstance(error, ApiError) else None
            if status is not None and status < 500 and status not in (CONFLICT, TOO_MANY_REQUESTS):
                self.counts.refused += 1
                raise BindError(f"binding {pod.key} to {node}: {error}", conflict=status == NOT_FOUND)
            # 429 is answered before a request is carried out, so there is nothing to look for.
            if status != TOO_MANY_REQUESTS and await self._became(pod, node, error):
                return
            if status == CONFLICT:
                raise self._conflict(pod, node, str(error))
            if attempt + 1 < self.attempts:
                self.counts.retry += 1
                await self._wait(pod, self.backoff.delay(attempt, error))
        raise BindError(f"binding {pod.key} to {node}: given up after {self.attempts} attempts: {error}")

    async def _try(self, pod: PodInfo, body: dict[str, Any]) -> RequestError | None:
        async with self._places.one(_whose(pod)):
            self._require_lead(f"binding {pod.key}: ")
            guarded = self._guarded(body)
            try:
                await self.client.write("POST", f"{pod_path(pod)}/binding", guarded)
            except RequestError as error:
                if guarded.withheld:
                    raise BindError(f"binding {pod.key}: this replica is not the active one") from error
                return error
        return None

    async def _wait(self, pod: PodInfo, seconds: float) -> None:
        """Wait before a repetition; meanwhile the pod stands aside."""
        # The pod gives up its place in the queue: a webhook with a long Retry-After must stop no other pod.
        with self.aside(pod):
            await self.sleep(seconds)

    async def _became(self, pod: PodInfo, node: NodeName, error: RequestError | ExtenderError) -> bool:
        """Find out whether a Binding without a clear answer took effect.

        Returns:
            True when the pod is bound to our node, False when it has no node.

        Raises:
            BindError: the pod is elsewhere, gone, or cannot be read.
        """
        if not (isinstance(error, ApiError) and error.status == CONFLICT):
            self.counts.lost_answer += 1
        seen = await self._look(pod, node)
        if seen is Seen.UNKNOWN:
            raise BindError(f"binding {pod.key} to {node}: {error}, and the pod {seen.value}", unknown=True)
        if seen in (Seen.BOUND_ELSEWHERE, Seen.GONE):
            raise self._conflict(pod, node, f"{error}; the pod is {seen.value}")
        return seen is Seen.BOUND_HERE

    async def _look(self, pod: PodInfo, node: NodeName) -> Seen:
        """Read the pod until the server answers.

        Reading needs no lead, but is repeated only with it: the next term reads all pods anyway.
        """
        for attempt in range(self.looks):
            if attempt and not self.may_write():
                break
            try:
                async with self._places.one(_whose(pod)):
                    found = await self.client.get_as(pod_path(pod), Pod)
            except ApiError as error:
                if error.status == NOT_FOUND:
                    return Seen.GONE
                await self._wait(pod, self.backoff.delay(attempt, error))
            except (RequestError, DecodeError):
                await self._wait(pod, self.backoff.delay(attempt))
            else:
                return _compare(found, pod, node)
        return Seen.UNKNOWN

    def _conflict(self, pod: PodInfo, node: NodeName, why: str) -> BindError:
        self.counts.conflict += 1
        return BindError(f"binding {pod.key} to {node}: {why}", conflict=True)


def binding(pod: PodInfo, node: NodeName, annotations: dict[str, str]) -> dict[str, Any]:
    """Build a Binding. The API server copies its annotations to the pod in the same write.

    Args:
        pod: to be bound; its uid is a precondition.
        node: to bind it to.
        annotations: such as the decision; empty for none.
    """
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


def _whose(pod: PodInfo) -> RequestOwner:
    return RequestOwner(pod.namespace, pod.scheduler_name, pod.priority)
