"""All nodes' kubelets on a real API server, in one task: assigned pods run after a moment, deleted ones end, some complete.

What `sandbox/kubelet.py` does inside its own server, done by requests: containers are imagined, the annotation
`sandbox.placewright.dev/run-seconds` ends a pod well, and whether a pod's node exists is not asked. Needs the rights to list and watch
pods, to patch their status and to delete them. What is under way when `run` is cancelled is left as it is.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import msgspec

from placewright.api.objects import ObjectMeta
from placewright.kube.client import STRATEGIC_MERGE_PATCH, ApiClient
from placewright.kube.errors import ApiError
from placewright.kube.events import seconds_time
from placewright.kube.reflector import Reflector, Source
from placewright.kube.retry import Backoff, until_answered
from placewright.sandbox.kubelet import RUN_SECONDS, completed_status, pod_address, run_seconds, running_status

#: Requests under way at once; the scheduler that is watched has the same server.
IN_FLIGHT: Final = 32
_BACKOFF: Final = Backoff(initial=0.1, maximum=2.0)

_log = logging.getLogger(__name__)


class AssignedPod(msgspec.Struct, frozen=True):
    """A pod that has a node, as far as a kubelet looks at it: spec and status as the JSON that they are."""

    metadata: ObjectMeta
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class Step(StrEnum):
    """What a kubelet does with a pod, one after another."""

    START = "started"
    COMPLETE = "completed"
    END = "ended"


class Kubelet:
    """Marks assigned pods Running, and deletes for good those that were deleted with grace.

    Attributes:
        counts: how many pods took each step so far.
    """

    def __init__(self, client: ApiClient, start_seconds: float = 0.05, namespace: str = "") -> None:
        """Look after all pods, or those of one namespace, where other pods have kubelets of their own.

        `start_seconds`: from the assignment seen to the status written, and from the deletion seen to the end.
        """
        self.counts: Counter[Step] = Counter()
        self._client = client
        self._start_seconds = start_seconds
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._addresses = itertools.count(1)
        self._under_way: dict[tuple[str, Step], asyncio.Task[None]] = {}
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        self._reflector = Reflector(client, Source(path, AssignedPod, "spec.nodeName!="), self)

    async def run(self) -> None:
        """Work until cancelled; a server that goes away is waited for."""
        try:
            await self._reflector.run()
        finally:
            left = list(self._under_way.values())
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    # --- what the reflector tells ---

    def changed(self, old: AssignedPod | None, new: AssignedPod) -> None:
        """A pod was assigned, or something about it is new."""
        step = _next_step(new)
        if step is not None and (begun := (new.metadata.uid, step)) not in self._under_way:
            task = asyncio.create_task(self._take(new, step), name=f"kubelet {new.metadata.name}")
            self._under_way[begun] = task
            task.add_done_callback(lambda _: self._under_way.pop(begun, None))

    def deleted(self, old: AssignedPod) -> None:
        """It is gone: so is what was planned for it."""
        for step in Step:
            if task := self._under_way.get((old.metadata.uid, step)):
                task.cancel()

    def synced(self) -> None:
        """Nothing depends on complete lists here."""

    # --- what becomes of it ---

    async def _take(self, pod: AssignedPod, step: Step) -> None:
        await asyncio.sleep(_delay(pod, step, self._start_seconds))
        act = {Step.START: self._start, Step.COMPLETE: self._complete, Step.END: self._end}[step]
        try:
            async with self._slots:
                await until_answered(lambda: act(pod), _BACKOFF)
        except ApiError as error:
            if not error.gone_or_replaced:
                _log.warning("pod %s/%s not %s: %s", pod.metadata.namespace, pod.metadata.name, step, error)
        else:
            self.counts[step] += 1

    async def _start(self, pod: AssignedPod) -> None:
        await self._patch(pod, running_status(_as_json(pod), _now(), pod_address(next(self._addresses))))

    async def _complete(self, pod: AssignedPod) -> None:
        await self._patch(pod, completed_status(_as_json(pod), _now()))

    async def _patch(self, pod: AssignedPod, status: dict[str, Any]) -> None:
        body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        await self._client.patch(f"{_path(pod)}/status", body, content_type=STRATEGIC_MERGE_PATCH)

    async def _end(self, pod: AssignedPod) -> None:
        await self._client.delete(_path(pod), {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.metadata.uid}})


def _next_step(pod: AssignedPod) -> Step | None:
    if pod.metadata.deletion_timestamp is not None:
        return Step.END
    phase = pod.status.get("phase", "Pending")
    if phase == "Running" and _lasts(pod) is not None:
        return Step.COMPLETE
    return Step.START if phase == "Pending" else None


def _delay(pod: AssignedPod, step: Step, start_seconds: float) -> float:
    return (_lasts(pod) or 0.0) if step is Step.COMPLETE else start_seconds


def _lasts(pod: AssignedPod) -> float | None:
    """How long the pod runs, seconds; None for good."""
    text = (pod.metadata.annotations or {}).get(RUN_SECONDS)
    return None if text is None else run_seconds(text)


def _as_json(pod: AssignedPod) -> dict[str, Any]:
    return {"spec": pod.spec, "status": pod.status}


def _now() -> str:
    return seconds_time(datetime.now(UTC))


def _path(pod: AssignedPod) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
