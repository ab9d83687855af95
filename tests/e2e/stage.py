"""One test's stretch of a real cluster: its namespace and nodes, the operator as a process, and waiting for what they do.

Processes are started, and the API server is started again, in the thread of the event loop: on Linux a child dies with the thread that
started it. What waits meanwhile are only our own watches; the operator is a process of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import secrets
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from lab.controlplane.breaking import kill_api_server, kill_etcd
from lab.controlplane.onceaudit import BindingRequest, binding_requests
from manifest import Object, manifest
from placewright.api.annotations import Decision, read_decision
from placewright.kube.auth.login import load_config
from placewright.kube.client import MERGE_PATCH, ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, RetryBackoff, until_answered
from placewright_lab.controlplane.audit import Record, read_records
from placewright_lab.controlplane.kubelet import Kubelet
from placewright_lab.controlplane.server import ControlPlane
from placewright_lab.demo.feed import Feed, background
from placewright_lab.demo.operatorprocess import OperatorProcess, operator_command

from . import makers
from .installation import PEERING, PROFILES, Installation, apply, the_shipped
from .views import DEADLINE, Seen, Views

_AT_ONCE: Final = {"gracePeriodSeconds": 0}


class _Speaker(Protocol):
    """An operator with a log."""

    log: Path

    def last_words(self) -> str: ...


class Stage:
    """What a test may do and see."""

    def __init__(self, installation: Installation, client: ApiClient, namespace: str) -> None:
        self.installation = installation
        self.client = client
        self.namespace = namespace
        self.views = Views(client, namespace, f"{makers.STAGE}={namespace}")
        self.operators: list[_Speaker] = []
        self._feed = Feed(client)
        self._names = itertools.count()
        #: How often the API server was killed.
        self.crashes = 0
        #: (from, until), RFC 3339.
        self._starting: list[tuple[str, str]] = []
        audit = installation.control_plane.audit_log if installation.control_plane else None
        self._audit_offset = audit.stat().st_size if audit else 0

    @property
    def control_plane(self) -> ControlPlane:
        """Ours; only for tests that have one."""
        assert self.installation.control_plane is not None
        return self.installation.control_plane

    # --- what is put on stage ---

    async def node(self, name: str, **wanted: Any) -> str:
        """A node; names are the stage's own, as nodes live outside namespaces."""
        full = f"{self.namespace}-{name}"
        await self._create("/api/v1/nodes", makers.a_node(full, self.namespace, **wanted))
        return full

    async def nodes(self, count: int, **wanted: Any) -> list[str]:
        return list(await asyncio.gather(*(self.node(f"n{next(self._names)}", **wanted) for _ in range(count))))

    async def pods(self, count: int, *, namespace: str = "", **wanted: Any) -> list[str]:
        """Create pods and return their keys; goes on through a server that is away."""
        where = namespace or self.namespace
        manifests = [makers.a_pod(f"web-{next(self._names)}", where, self.namespace, **wanted) for _ in range(count)]
        await self._feed.create_pods(manifests, lambda _key: None, _not_refused)
        return [f"{where}/{each['metadata']['name']}" for each in manifests]

    async def create_namespace(self, suffix: str) -> str:
        name = f"{self.namespace}-{suffix}"
        await self._create("/api/v1/namespaces", manifest("v1", "Namespace", name))
        return name

    async def priority_class(self, suffix: str, value: int) -> str:
        """A PriorityClass; its name is the stage's own, as those live outside namespaces."""
        name = f"{self.namespace}-{suffix}"
        await self._create(
            "/apis/scheduling.k8s.io/v1/priorityclasses", manifest("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
        )
        return name

    async def patch(self, path: str, change: Object) -> Object:
        """Merge patch; answers the object."""
        answer = json.loads(await self.client.patch(path, change, content_type=MERGE_PATCH))
        return dict(answer)

    async def edit_profile(self, **spec: Any) -> int:
        """Change fields of the default profile's spec; answers the new generation."""
        return int((await self.patch(f"{PROFILES}/default", {"spec": spec}))["metadata"]["generation"])

    async def delete(self, path: str) -> None:
        """At once, and no error when it is gone."""
        try:
            await self.client.delete(path, _AT_ONCE)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    async def delete_pod(self, key: str) -> None:
        """At once, as if its kubelet had seen to it."""
        namespace, _, name = key.partition("/")
        await self.delete(f"/api/v1/namespaces/{namespace}/pods/{name}")

    async def _create(self, path: str, body: Object) -> None:
        await until_answered(lambda: self.client.post(path, body), RetryBackoff(maximum=1.0))

    # --- the operator, and what happens to it and to the API server ---

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[OperatorProcess]:
        """An operator at work, ended in order if the test did not end it."""
        log = self.installation.folder / f"{self.namespace}-operator-{len(self.operators)}.log"
        async with OperatorProcess(operator_command(self.installation.operator_kubeconfig), log) as process:
            self.operators.append(process)
            yield process

    @asynccontextmanager
    async def active_operator(self) -> AsyncIterator[OperatorProcess]:
        """An operator that has taken the profile up."""
        async with self.operator() as process:
            await self.until_active(1)
            yield process

    @contextlib.contextmanager
    def stopped(self, process: OperatorProcess) -> Iterator[None]:
        """The operator sees and does nothing while this is open, as on a machine that hangs."""
        os.kill(process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(process.pid, signal.SIGCONT)

    async def kill(self, process: OperatorProcess) -> None:
        """As a crash does it: nothing is finished, nobody is told."""
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()

    def kill_api_server(self) -> None:
        kill_api_server(self.control_plane)
        self.crashes += 1

    def start_api_server(self) -> None:
        began = _now()
        self.control_plane.start_api_server()
        self._starting.append((began, _now()))

    async def until_api_server_is_back(self) -> None:
        """Start it again; the event loop turns while it is not ready yet."""
        began = _now()
        self.control_plane.launch_api_server()
        await asyncio.to_thread(self.control_plane.wait_until_ready)
        self._starting.append((began, _now()))

    async def restart_etcd(self) -> None:
        """Killed and started again; the API server stays, and can do nothing meanwhile."""
        kill_etcd(self.control_plane)
        self.control_plane.launch_etcd()
        await asyncio.to_thread(self.control_plane.wait_until_ready)

    # --- what is seen ---

    def own_pods(self) -> dict[str, Seen]:
        """Those in the stage's namespaces; on a cluster that is not ours there may be others."""
        return {key: pod for key, pod in self.views.pods.items() if key.startswith(self.namespace)}

    def pod(self, key: str) -> Seen:
        return self.views.pods[key]

    def node_of(self, key: str) -> str:
        found = self.views.pods.get(key)
        return str(found.spec.get("nodeName", "")) if found else ""

    def decision(self, key: str) -> Decision:
        found = read_decision(self.pod(key).metadata.annotations)
        assert found is not None, f"{key} carries no decision"
        return found

    async def until_placed(self, keys: Sequence[str]) -> None:
        await self.views.until(lambda: all(map(self.node_of, keys)), lambda: self._unplaced(keys))

    async def until_some_placed(self, count: int) -> None:
        """Until so many pods of the stage's namespace have a node."""

        def placed() -> int:
            return sum(bool(each.spec.get("nodeName")) for each in self.views.pods.values())

        await self.views.until(lambda: placed() >= count, lambda: f"{placed()} of {count} pods are placed; {self.words()}")

    async def until_pending(self, count: int) -> None:
        """Until the profile says that the operator has so many pods in its queue."""

        def pending() -> Any:
            return self.views.profiles["default"].status.get("pending", {}).get("total")

        await self.views.until(lambda: pending() == count, lambda: f"{count} pods are pending, not {pending()}; {self.words()}")

    async def until_running(self, keys: Sequence[str]) -> None:
        pods = self.views.pods
        await self.views.until(
            lambda: all(key in pods and pods[key].status.get("phase") == "Running" for key in keys), lambda: self._unplaced(keys)
        )

    async def until_rejected(self, key: str) -> str:
        """Until the pod's condition and an event say that no node was found; the event's message."""
        namespace, _, name = key.partition("/")
        assert namespace == self.namespace, "events are watched in the stage's own namespace"

        def told() -> bool:
            known = key in self.views.pods and self.pod(key).condition("PodScheduled").get("reason") == "Unschedulable"
            return known and bool(self.views.events(name, "FailedScheduling"))

        await self.views.until(told, lambda: f"{key} is said to be unschedulable; {self.words()}")
        return self.views.events(name, "FailedScheduling")[-1].message

    async def until_told(self, keys: Sequence[str]) -> None:
        """Until there is an event for each of these pods, which are in the stage's own namespace, that it was placed."""
        names = {key.partition("/")[2] for key in keys}
        told = self.views.pods_told
        await self.views.until(lambda: names <= told("Scheduled"), lambda: f"{len(names - told('Scheduled'))} pods have no event")

    async def until_active(self, generation: int, profile: str = "default") -> None:
        """Until the operator decides by this generation of the profile."""

        def active() -> bool:
            found = self.views.profiles.get(profile)
            return found is not None and int(found.status.get("activeGeneration", 0)) >= generation

        await self.views.until(active, lambda: f"profile {profile} is active in generation {generation}; {self.words()}")

    def binding_requests(self) -> list[BindingRequest]:
        """All that were asked for since the stage was set."""
        return binding_requests(self.records())

    def bindings_of(self, keys: Sequence[str]) -> list[BindingRequest]:
        """Those about these pods."""
        return [each for each in self.binding_requests() if each.pod in keys]

    def records(self, offset: int | None = None) -> list[Record]:
        """Every request since the stage was set, or since the log was so many bytes long."""
        return read_records(self.control_plane.audit_log, self._audit_offset if offset is None else offset)

    def was_starting(self, record: Record) -> bool:
        """Whether the request came to an API server that was not ready yet: then it knows no roles."""
        return any(began <= record.request_received_timestamp <= ready for began, ready in self._starting)

    def _unplaced(self, keys: Sequence[str]) -> str:
        left = [key for key in keys if not self.node_of(key)]
        return f"{len(left)} of {len(keys)} pods have no node ({', '.join(left[:3])}); {self.words()}"

    def words(self) -> str:
        """The last words of each operator."""
        return "; ".join(f"{each.log.name}: {each.last_words()}" for each in self.operators)


@asynccontextmanager
async def new_stage(installation: Installation) -> AsyncIterator[Stage]:
    """A namespace of its own, the profile and the peering as shipped; what was put on stage is taken away afterwards."""
    async with ApiClient(load_config(str(installation.kubeconfig))) as client:
        stage = Stage(installation, client, f"e2e-{secrets.token_hex(3)}")
        await _as_shipped(stage)
        await stage._create("/api/v1/namespaces", manifest("v1", "Namespace", stage.namespace))
        kubelet = Kubelet(client, namespace="" if installation.control_plane else stage.namespace)
        stage.views.reflectors.start()
        try:
            async with background(kubelet.run(), "kubelet"):
                await stage.views.reflectors.wait_synced()
                yield stage
        finally:
            await stage.views.reflectors.stop()
            await _clear(stage)


async def _as_shipped(stage: Stage) -> None:
    """What an earlier test left in the profile and the peering goes."""
    async with asyncio.timeout(DEADLINE):
        for path, kind in ((PROFILES, "SchedulingProfile"), (PEERING, "ClusterKopfPeering")):
            found = the_shipped(kind)
            await stage.delete(f"{path}/{found['metadata']['name']}")
            await apply(stage.client, found)


async def _clear(stage: Stage) -> None:
    for each in {key.partition("/")[0] for key in stage.own_pods()} | {stage.namespace}:
        await stage.client.delete(f"/api/v1/namespaces/{each}/pods", _AT_ONCE)
    await stage.client.delete("/api/v1/nodes", _AT_ONCE, {"labelSelector": f"{makers.STAGE}={stage.namespace}"})
    await stage.client.delete(f"/api/v1/namespaces/{stage.namespace}")


def _not_refused(key: str, problem: str) -> None:
    raise AssertionError(f"pod {key}: {problem}")


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
