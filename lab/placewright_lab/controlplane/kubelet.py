"""All nodes' kubelets on a real API server, in one task. Assigned pods run after a moment, deleted ones end, and some complete.

The work is the same as in `kubesandbox/controllers/kubelet.py`, but with requests. Containers are imagined, and the annotations
(`sandbox.placewright.dev/…`) mean the same. Whether a pod's node exists does not matter. A kubelet refuses a pod that its node cannot hold
(`admission.py`). Then the pod is Failed, with the reason in its message. A preStop hook that sleeps delays a pod's end.

It needs rights to list and watch pods and nodes, patch the status of pods, and delete them. A cancelled `run` leaves unfinished steps
unfinished.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import msgspec

from kubesandbox.controllers.kubelet import (
    RUN_SECONDS,
    TURNS_AWAY,
    completed_status,
    pod_address,
    run_seconds,
    running_status,
    start_seconds,
    turned_away_status,
)
from placewright.api.decode import convert, decode
from placewright.api.objects import Node, NodeName, ObjectMeta, Pod
from placewright.api.pods import FINISHED_PHASES
from placewright.kube.client import STRATEGIC_MERGE_PATCH, ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, RetryBackoff, until_answered
from placewright.kube.reflector import Reflector, Source
from placewright.kube.writers.events import seconds_time
from placewright_lab.controlplane.admission import Admission, Refusal

#: Requests under way at once, because the scheduler under test has the same server.
IN_FLIGHT: Final = 32
_BACKOFF: Final = RetryBackoff(initial=0.1, maximum=2.0)

_log = logging.getLogger(__name__)


class AssignedMeta(ObjectMeta, frozen=True):
    """`metadata`, with the fields that show how a deleted pod ends."""

    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] | None = None


class AssignedPod(msgspec.Struct, frozen=True):
    """The fields of a pod on a node that a kubelet reads. Spec and status are plain JSON."""

    metadata: AssignedMeta
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}

    @property
    def node(self) -> NodeName:
        """Name of its node."""
        return NodeName(self.spec.get("nodeName", ""))

    @property
    def phase(self) -> str:
        """The phase; Pending if the status has none."""
        return str(self.status.get("phase") or "Pending")


class Step(StrEnum):
    """The steps of a kubelet with a pod, in order. It may refuse a pod instead of starting it."""

    START = "started"
    REFUSE = "refused"
    COMPLETE = "completed"
    END = "ended"


class Kubelet:
    """Marks assigned pods Running, or Failed if they do not fit, and removes deleted pods after their grace.

    Attributes:
        counts: number of pods that took each step so far.
    """

    def __init__(self, client: ApiClient, start_seconds: float = 0.05, namespace: str = "") -> None:
        """Look after all pods, or after those of one namespace if other pods have their own kubelets.

        `start_seconds` is the time from an observed assignment to the written status, and from an observed deletion to the end.
        """
        self.counts: Counter[Step] = Counter()
        self._client = client
        self._start_seconds = start_seconds
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._addresses = itertools.count(1)
        self._address_of: dict[str, str] = {}
        self._under_way: dict[tuple[str, Step], asyncio.Task[None]] = {}
        self._admission = Admission()
        self._nodes = _Nodes(self._admission)
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        self._reflectors = (
            Reflector(client, Source("/api/v1/nodes", Node), self._nodes),
            Reflector(client, Source(path, AssignedPod, "spec.nodeName!="), self),
        )

    async def run(self) -> None:
        """Work until cancelled. Wait for a server that does not answer."""
        try:
            await asyncio.gather(*(each.run() for each in self._reflectors))
        finally:
            left = list(self._under_way.values())
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    # --- the reflector's sink ---

    def changed(self, old: AssignedPod | None, new: AssignedPod) -> None:
        """Begin the next step of a pod that was assigned or changed."""
        if new.phase in FINISHED_PHASES:
            self._admission.end(new.node, new.metadata.uid)
        elif old is None and new.phase == "Running":
            self._admission.runs_already(_as_pod(new))
        step = _next_step(new)
        if step is None:
            return
        begun = (new.metadata.uid, step)
        if begun in self._under_way:
            if old is None or _grace(old) == _grace(new):
                return
            self._under_way.pop(begun).cancel()  # its step is earlier now
        task = asyncio.create_task(self._take(new, step), name=f"kubelet {new.metadata.name}")
        self._under_way[begun] = task
        task.add_done_callback(lambda done: self._under_way.pop(begun) if self._under_way.get(begun) is done else None)

    def deleted(self, old: AssignedPod) -> None:
        """Drop the planned steps of a pod that is gone."""
        self._admission.end(old.node, old.metadata.uid)
        self._address_of.pop(old.metadata.uid, None)
        for step in Step:
            if task := self._under_way.get((old.metadata.uid, step)):
                task.cancel()

    def synced(self) -> None:
        """Do nothing: no decision depends on complete lists of pods."""

    # --- steps ---

    async def _take(self, pod: AssignedPod, step: Step) -> None:
        await self._nodes.known.wait()
        delay = step_delay(pod, step, self._start_seconds)
        if step is Step.START:
            delay = start_seconds(self._nodes.notes_of(pod.node), pod.metadata.annotations or {}, delay)
        await asyncio.sleep(delay)
        act = {Step.START: self._start, Step.COMPLETE: self._complete, Step.END: self._end}[step]
        try:
            async with self._slots:
                taken = await until_answered(lambda: act(pod), _BACKOFF)
        except ApiError as error:
            if not error.gone_or_replaced:
                _log.warning("pod %s/%s not %s: %s", pod.metadata.namespace, pod.metadata.name, step, error)
        else:
            self.counts[taken] += 1

    async def _start(self, pod: AssignedPod) -> Step:
        turned_away = self._nodes.notes_of(pod.node).get(TURNS_AWAY)
        if turned_away is not None:
            await self._patch(pod, turned_away_status(_as_json(pod), _now(), turned_away))
            return Step.REFUSE
        refusal = await self._refusal(pod)
        if refusal is not None:
            await self._patch(pod, refused_status(_as_json(pod), refusal))
            return Step.REFUSE
        await self._patch(pod, running_status(_as_json(pod), _now(), self._address(pod)))
        return Step.START

    def _address(self, pod: AssignedPod) -> str:
        """Return the pod's address, the same in each report. After a lost answer, the server would take another one."""
        found = self._address_of.get(pod.metadata.uid)
        if found is None:
            found = self._address_of[pod.metadata.uid] = pod_address(next(self._addresses))
        return found

    async def _refusal(self, pod: AssignedPod) -> Refusal | None:
        """Return the reason to refuse a pod. The scheduler may know a change of the node before we do, so no pod is refused for that."""
        asked = _as_pod(pod)
        refusal = self._admission.admit(asked)
        if refusal is None:
            return None
        try:
            self._admission.node_is(decode(await self._client.get(f"/api/v1/nodes/{pod.node}"), Node))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            self._admission.node_is_gone(pod.node)
        return self._admission.admit(asked)

    async def _complete(self, pod: AssignedPod) -> Step:
        await self._patch(pod, completed_status(_as_json(pod), _now()))
        return Step.COMPLETE

    async def _patch(self, pod: AssignedPod, status: dict[str, Any]) -> None:
        body = {"metadata": {"uid": pod.metadata.uid}, "status": status}
        await self._client.patch(f"{_path(pod)}/status", body, content_type=STRATEGIC_MERGE_PATCH)

    async def _end(self, pod: AssignedPod) -> Step:
        if pod.metadata.finalizers and pod.phase not in FINISHED_PHASES:
            # The refused pod stays for a person to look at, and takes no room.
            await self._patch(pod, completed_status(_as_json(pod), _now()))
        await self._client.delete(_path(pod), {"gracePeriodSeconds": 0, "preconditions": {"uid": pod.metadata.uid}})
        return Step.END


class _Nodes:
    """Tells admission the nodes, and keeps their annotations.

    Attributes:
        known: event that is set after the first list of nodes.
    """

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._notes: dict[NodeName, Mapping[str, str]] = {}
        self.known = asyncio.Event()

    def notes_of(self, node: NodeName) -> Mapping[str, str]:
        """Return the annotations of a node, none of an unknown one."""
        return self._notes.get(node, {})

    def changed(self, old: Node | None, new: Node) -> None:
        """Take in a node that came or changed."""
        self._notes[NodeName(new.metadata.name)] = new.metadata.annotations or {}
        self._admission.node_is(new)

    def deleted(self, old: Node) -> None:
        """Forget a node that is gone."""
        self._notes.pop(NodeName(old.metadata.name), None)
        self._admission.node_is_gone(NodeName(old.metadata.name))

    def synced(self) -> None:
        """Let pods be admitted."""
        self.known.set()


def refused_status(pod: dict[str, Any], refusal: Refusal) -> dict[str, Any]:
    """Return the status of a pod that its kubelet does not run."""
    message = f"Pod was rejected: {refusal.message}"
    return {**(pod.get("status") or {}), "phase": "Failed", "reason": refusal.reason, "message": message}


def _next_step(pod: AssignedPod) -> Step | None:
    if pod.metadata.deletion_timestamp is not None:
        ended = pod.phase in FINISHED_PHASES and _grace(pod) == 0
        return None if ended else Step.END
    if pod.phase == "Running" and _lasts(pod) is not None:
        return Step.COMPLETE
    return Step.START if pod.phase == "Pending" else None


def step_delay(pod: AssignedPod, step: Step, start_seconds: float) -> float:
    """Return the seconds from planning a step to taking it."""
    if step is Step.COMPLETE:
        return _lasts(pod) or 0.0
    return max(start_seconds, _sleeps_before_its_end(pod)) if step is Step.END else start_seconds


def _sleeps_before_its_end(pod: AssignedPod) -> float:
    """Return the seconds of its hooks, within its grace. A pod that does not run has no hooks to run."""
    hooks = [(each.get("lifecycle") or {}).get("preStop") or {} for each in pod.spec.get("containers") or ()]
    sleeps = [float((hook.get("sleep") or {}).get("seconds") or 0) for hook in hooks]
    return min(max(sleeps, default=0.0), float(_grace(pod))) if pod.phase == "Running" else 0.0


def _grace(pod: AssignedPod) -> int:
    return pod.metadata.deletion_grace_period_seconds or 0


def _lasts(pod: AssignedPod) -> float | None:
    """Return the seconds for which the pod runs, or None for ever."""
    text = (pod.metadata.annotations or {}).get(RUN_SECONDS)
    return None if text is None else run_seconds(text)


def _as_json(pod: AssignedPod) -> dict[str, Any]:
    return {"spec": pod.spec, "status": pod.status}


def _as_pod(pod: AssignedPod) -> Pod:
    return msgspec.structs.replace(convert(_as_json(pod), Pod), metadata=pod.metadata)


def _now() -> str:
    return seconds_time(datetime.now(UTC))


def _path(pod: AssignedPod) -> str:
    return f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
