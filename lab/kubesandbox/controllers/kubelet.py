"""The first nodes, and all nodes' kubelets. Bound pods run after a moment, deleted ones end, and some complete.

A pod runs after its node exists and its claims to devices are allocated and reserved for it. Annotations change this:

- `sandbox.placewright.dev/run-seconds` makes a pod finish (Succeeded) after that time.
- `sandbox.placewright.dev/start-seconds` on a node or a pod makes pods start later.
- `sandbox.placewright.dev/turns-away` on a node makes every pod there fail, with the annotation's value as the reason.

Containers are imagined, and nothing is executed.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from kubesandbox.devices.preparation import Preparation
from kubesandbox.resources import NODES, PODS
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.store import Change, Stored
from kubesandbox.storage.writes import DeleteOptions, Writes

RUN_SECONDS: Final = "sandbox.placewright.dev/run-seconds"
START_SECONDS: Final = "sandbox.placewright.dev/start-seconds"
TURNS_AWAY: Final = "sandbox.placewright.dev/turns-away"
ZONES: Final = 3


@dataclass(frozen=True, slots=True)
class KubeletTimes:
    """Seconds from binding to running, and the longest graceful end."""

    start: float = 0.05
    end: float = 0.05


class Kubelets:
    """Watches pods inside the process and changes their status."""

    def __init__(self, writes: Writes, times: KubeletTimes) -> None:
        self._writes = writes
        self._pods = writes.registry.served(PODS)
        self._times = times
        self._addresses = itertools.count(1)
        self._homeless: dict[str, list[Stored]] = {}
        self._devices = Preparation(writes, lambda pod: _later(0, self._start, pod))
        writes.store.collection(PODS).listeners.append(self._on_pod)
        writes.store.collection(NODES).listeners.append(self._on_node)

    def _on_pod(self, change: Change) -> None:
        pod = change.current
        if pod is None:
            self._devices.forget(change.departed)
            return
        node = (pod.object.get("spec") or {}).get("nodeName")
        if not node:
            return
        before = change.previous.object if change.previous else {"metadata": {}}
        if "deletionTimestamp" in pod.object["metadata"]:
            if "deletionTimestamp" not in before["metadata"]:
                grace = pod.object["metadata"].get("deletionGracePeriodSeconds", 0)
                _later(min(self._times.end, grace), self._finish, pod)
        elif not (before.get("spec") or {}).get("nodeName"):
            self._adopt(node, pod)

    def _adopt(self, node: str, pod: Stored) -> None:
        found = self._writes.store.get(NODES, "", node)
        if found is None:
            self._homeless.setdefault(node, []).append(pod)
            return
        reason = _annotations(found.object).get(TURNS_AWAY)
        if reason is not None:
            _later(0, self._report, pod, partial(turned_away_status, reason=reason))
            return
        _later(start_seconds(_annotations(found.object), _annotations(pod.object), self._times.start), self._start, pod)

    def _on_node(self, change: Change) -> None:
        if change.previous is None and change.current is not None:
            for pod in self._homeless.pop(change.current.name, []):
                self._adopt(change.current.name, pod)

    def _current(self, pod: Stored) -> Stored | None:
        """Return the current pod, unless it is being deleted, or gone, or another pod has its name."""
        found = self._writes.store.get(PODS, pod.namespace, pod.name)
        return found if found is not None and found.uid == pod.uid and "deletionTimestamp" not in found.object["metadata"] else None

    def _start(self, pod: Stored) -> None:
        found = self._current(pod)
        if found is None or (found.object.get("status") or {}).get("phase", "Pending") != "Pending" or not self._devices.is_ready(found):
            return
        self._report(pod, partial(running_status, address=pod_address(next(self._addresses))))
        seconds = _annotations(found.object).get(RUN_SECONDS)
        if seconds is not None and (duration := run_seconds(seconds)) is not None:
            _later(duration, self._report, pod, completed_status)

    def _report(self, pod: Stored, status_of: Callable[[Object, str], Object]) -> None:
        """Write the status of a pod at this time."""
        found = self._current(pod)
        if found is not None:
            status = status_of(found.object, self._writes.identity.now())
            content = {**found.object, "metadata": {**found.object["metadata"]}, "status": status}
            self._writes.store.put(PODS, pod.namespace, pod.name, content)

    def _finish(self, pod: Stored) -> None:
        with suppress(ApiError):  # deleted meanwhile
            self._writes.delete(self._pods, pod.namespace, pod.name, DeleteOptions(grace=0, uid=pod.uid))


def _later(seconds: float, act: Callable[..., None], *arguments: object) -> None:
    asyncio.get_running_loop().call_later(seconds, act, *arguments)


def pod_address(number: int) -> str:
    """Return the IP address of the `number`-th pod to start."""
    return f"10.{(number >> 16) & 255}.{(number >> 8) & 255}.{number & 255}"


def running_status(pod: Object, now: str, address: str) -> Object:
    """Return the status of this pod with all containers running."""
    status = pod.get("status") or {}
    containers = (pod.get("spec") or {}).get("containers") or []
    ready = [_condition(kind, now) for kind in ("Initialized", "Ready", "ContainersReady")]
    scheduled = [each for each in status.get("conditions") or [] if each.get("type") == "PodScheduled"]
    if not scheduled:  # the pod was created with a node
        scheduled = [_condition("PodScheduled", now)]
    return {
        **status,
        "phase": "Running",
        "startTime": now,
        "hostIP": "127.0.0.1",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": scheduled + ready,
        "containerStatuses": [_container(each, {"running": {"startedAt": now}}, ready=True) for each in containers],
    }


def turned_away_status(pod: Object, now: str, reason: str) -> Object:
    """Return the status of this pod after its kubelet has turned it away."""
    message = "Pod was rejected: the simulated kubelet turns all pods away"
    return {**(pod.get("status") or {}), "phase": "Failed", "reason": reason, "message": message, "startTime": now}


def completed_status(pod: Object, now: str) -> Object:
    """Return the status of this pod after all containers have ended well."""
    status = pod.get("status") or {}
    containers = (pod.get("spec") or {}).get("containers") or []
    ended = {"terminated": {"exitCode": 0, "reason": "Completed", "finishedAt": now}}
    conditions = [
        {**each, "status": "False", "reason": "PodCompleted"} if each.get("type") in ("Ready", "ContainersReady") else each
        for each in status.get("conditions") or []
    ]
    statuses = [_container(each, ended, ready=False) for each in containers]
    return {**status, "phase": "Succeeded", "conditions": conditions, "containerStatuses": statuses}


def _annotations(item: Object) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def _condition(kind: str, now: str) -> Object:
    return {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}


def _container(container: Object, state: Object, *, ready: bool) -> Object:
    return {
        "name": container.get("name", ""),
        "image": container.get("image", ""),
        "imageID": "",
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }


def run_seconds(text: str) -> float | None:
    """Return the value of the annotation `RUN_SECONDS`, or None if it is no number."""
    try:
        return max(0.0, float(text))
    except ValueError:
        return None


def start_seconds(node: Mapping[str, str], pod: Mapping[str, str], otherwise: float) -> float:
    """Return the seconds from a pod's binding until it runs, by the annotations of its `node` and of the `pod`.

    If both have `START_SECONDS`, the longer time counts. Without a number, `otherwise` counts.
    """
    noted = [run_seconds(notes[START_SECONDS]) for notes in (node, pod) if START_SECONDS in notes]
    return max((seconds for seconds in noted if seconds is not None), default=otherwise)


def simulated_node(number: int, now: str) -> Object:
    """Return `node-<number>` with 16 CPUs, 64 GiB and room for 110 pods, in one of three zones."""
    name = f"node-{number:04d}"
    amounts = {"cpu": "16", "memory": "64Gi", "ephemeral-storage": "100Gi", "pods": "110"}
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/region": "sandbox",
        "topology.kubernetes.io/zone": f"sandbox-{'abc'[number % ZONES]}",
    }
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "simulated kubelet is ready",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [ready],
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": name}],
            "nodeInfo": {"kubeletVersion": "v1.36.0-sandbox", "operatingSystem": "linux", "architecture": "amd64"},
        },
    }
