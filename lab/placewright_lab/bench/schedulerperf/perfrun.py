"""Runs one workload's operations on a real API server, and measures the scheduler from outside.

The operations mean what upstream's harness makes of them; where it polls its own caches every second, a watch for the metadata of assigned
pods is looked at twenty times a second. Beside that the harness has controllers that this does without: its fake PersistentVolume
controller (claims name their volumes from the start), its garbage collector and namespace controller (nothing here is owned, and every
workload gets an API server of its own).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from typing import Any, Final

import msgspec

from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError
from placewright.offline.kinds import Manifest
from placewright_lab.bench.boundwatch import BoundWatch
from placewright_lab.bench.contenders import RunningScheduler
from placewright_lab.bench.measuredcluster import LOOK_SECONDS, MeasuredCluster, WaveFailed
from placewright_lab.bench.processtimes import machine_seconds, peak_bytes
from placewright_lab.bench.quickfeed import Post, posts, request
from placewright_lab.bench.schedulerperf import perfobjects
from placewright_lab.bench.schedulerperf.operations import (
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePods,
    DeletePods,
    Labels,
    Operation,
    PerfWorkload,
    SchedulingStage,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UpdateAny,
)
from placewright_lab.bench.schedulerperf.servedkinds import ServedKind, ServedKinds
from placewright_lab.bench.wavecomparison import Spent

#: Fields that the server does not know are an error, as they are for upstream's harness (servers before 1.25 drop them).
_STRICTLY: Final = "?fieldValidation=Strict"
_EVENTS: Final = "/api/v1/events"
_NODES: Final = "/api/v1/nodes"
_CSI_NODES: Final = "/apis/storage.k8s.io/v1/csinodes"
_NAMESPACES: Final = "/api/v1/namespaces"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_ATTEMPT_SECONDS: Final = 1.0
#: The longest wait for events to end where they never do, as when objects go on to come and go; seconds.
_SETTLE_SECONDS: Final = 5.0
_AT_ONCE: Final = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
_WARM_UP: Final = "warm-up"

#: Told of a wait: the thing, the present number, the wanted number.
Progress = Callable[[int, int], None]


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""


class _PodStatus(msgspec.Struct, frozen=True):
    conditions: list[_Condition] = []


class _PodMetadata(msgspec.Struct, frozen=True):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = {}


class _SeenPod(msgspec.Struct, frozen=True):
    metadata: _PodMetadata
    status: _PodStatus = _PodStatus()


class _SeenPods(msgspec.Struct, frozen=True):
    items: list[_SeenPod]


@dataclass(frozen=True, slots=True)
class Measured:
    """The observations of a measured workload.

    Attributes:
        begin: when the measurement began (`time.monotonic`).
        bound: when each measured pod was seen on a node, ascending.
        cpu: until the last of them was seen.
        elsewhere: CPU seconds that other processes of the machine used meanwhile.
        settled_cpu: until no more events were written.
        peak_bytes: the most memory that the scheduler had until then.
    """

    begin: float
    bound: Sequence[float]
    cpu: Spent
    elsewhere: float
    settled_cpu: Spent
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Remains:
    """Pods at the end of a workload, by namespace: on nodes, without a node, and bound before they were deleted."""

    bound: Mapping[str, int]
    pending: Mapping[str, int]
    deleted: Mapping[str, int]


@dataclass
class _Measurement:
    namespaces: frozenset[str]
    labels: Labels
    before: Spent
    machine: float = field(default_factory=machine_seconds)
    begin: float = field(default_factory=time.monotonic)


class PerfRun:
    """One workload with one scheduler; for one use, while the context of its watch is open."""

    def __init__(
        self, cluster: MeasuredCluster, workload: PerfWorkload, running: RunningScheduler, watch: BoundWatch, progress: Progress
    ) -> None:
        self.measured: Measured | None = None
        self._cluster = cluster
        self._workload = workload
        self._running = running
        self._watch = watch
        self._progress = progress
        self._kinds = ServedKinds(cluster.client)
        self._measurement: _Measurement | None = None
        #: Pods that were not waited for, by namespace; every namespace that there is.
        self._awaited: Counter[str] = Counter()
        self._labels: dict[str, Labels] = {}
        self._beside: set[asyncio.Task[None]] = set()

    async def check(self) -> None:
        """Raise `NotKnown` where the server does not serve a kind that the workload needs."""
        for operation in self._workload.operations:
            if isinstance(operation, CreateAny | UpdateAny):
                await self._served(perfobjects.rendered(operation.template, 0, operation.count), operation.namespace)
            elif isinstance(operation, Churn):
                for template in operation.templates:
                    await self._kinds.find(perfobjects.rendered(template, 0, 1))

    async def run(self) -> None:
        """All operations, one after the other. Raises `WaveFailed` when the scheduler ends or a pod of churn cannot be."""
        try:
            for number, operation in enumerate(self._workload.operations):
                await self._do(number, operation)
        finally:
            for task in self._beside:
                task.cancel()
            await asyncio.gather(*self._beside, return_exceptions=True)

    async def remains(self) -> Remains:
        """Count all pods, as the API server lists them, once no more are bound. Raises `WaveFailed` where the watch saw others."""
        seen = -1
        while seen != self._watch.seen():
            seen = self._watch.seen()
            await asyncio.sleep(_ATTEMPT_SECONDS)
        bound, pending = await self._list("spec.nodeName!="), await self._list("spec.nodeName=")
        listed = {f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in bound}
        if listed != (heard := self._watch.times.keys() - self._watch.gone):
            raise WaveFailed(f"{len(listed ^ heard)} pods were seen bound and are not, or the other way round: {min(listed ^ heard)}")
        gone = Counter(key.partition("/")[0] for key in self._watch.gone)
        on_nodes, without = (dict(Counter(pod.metadata.namespace for pod in pods)) for pods in (bound, pending))
        return Remains(on_nodes, without, dict(gone))

    def bound_so_far(self) -> Sequence[float]:
        """Return the sample of a measurement that goes on or is over, when pods were seen bound."""
        if self.measured is not None:
            return self.measured.bound
        return self._selected(self._measurement) if self._measurement else ()

    async def _do(self, number: int, operation: Operation) -> None:
        match operation:
            case CreateNodes() | CreateNamespaces() | CreatePods() | CreateAny():
                await self._create(number, operation)
            case DeletePods():
                await self._now_or_beside(self._delete_pods(operation), waits=operation.waits)
            case Churn():
                await self._start_churn(number, operation)
            case UpdateAny():
                await self._update_any(operation)
            case Barrier():
                await self._barrier(operation)
            case Sleep():
                await asyncio.sleep(operation.seconds)
            case StartCollectingMetrics():
                self._start_measurement(operation.namespaces, operation.labels)
            case StopCollectingMetrics():
                await self._end_measurement()

    async def _create(self, number: int, operation: CreateNodes | CreateNamespaces | CreatePods | CreateAny) -> None:
        match operation:
            case CreateNodes():
                await self._create_nodes(number, operation)
            case CreateNamespaces():
                made = list(perfobjects.namespaces(operation.template, operation.prefix, operation.count))
                await self._feed(_NAMESPACES, made)
                self._awaited.update({each["metadata"]["name"]: 0 for each in made})
            case CreatePods():
                await self._create_pods(number, operation)
            case CreateAny():
                await self._create_any(number, operation)

    async def _create_nodes(self, number: int, operation: CreateNodes) -> None:
        made = list(perfobjects.nodes(operation, number, hostnames=self._workload.hostnames))
        await self._feed(_NODES, [node for node, _ in made])
        await self._feed(_CSI_NODES, [csi_node for _, csi_node in made if csi_node is not None])

    async def _create_pods(self, number: int, operation: CreatePods) -> None:
        namespace = operation.namespace or f"namespace-{number}"
        await self._have_namespace(namespace)
        made = list(perfobjects.pods(operation, self._workload.default_pod, number, namespace))
        wanted = self._pod_posts(namespace, made)
        if operation.measured:
            self._start_measurement([namespace], {})
        await self._cluster.feed.create(wanted)
        if operation.waits:
            await self._until(lambda: self._watch.placed[namespace], operation.count, LOOK_SECONDS)
        else:
            self._awaited[namespace] += operation.count
        if operation.measured:
            await self._end_measurement()

    def _pod_posts(self, namespace: str, made: Iterable[tuple[Manifest, tuple[Manifest, ...]]]) -> list[Post]:
        """Creations of pods, each after its claim, its volume and their status, on one connection, as upstream's workers do it."""
        pods, needed = zip(*made, strict=True) if made else ((), ())
        access = self._cluster.client.access
        claims = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
        wanted = posts(access, f"/api/v1/namespaces/{namespace}/pods{_STRICTLY}", pods)
        for pod in pods:
            self._labels[f"{namespace}/{pod['metadata']['name']}"] = pod["metadata"].get("labels", {})
        for number, objects in enumerate(needed):
            before = []
            for manifest, path in zip(objects, (claims, _VOLUMES), strict=False):
                before.append(request(access, "POST", f"{path}{_STRICTLY}", manifest))
                before.append(request(access, "PUT", f"{path}/{manifest['metadata']['name']}/status", manifest))
            wanted[number] = wanted[number]._replace(before=tuple(before))
        return wanted

    async def _delete_pods(self, operation: DeletePods) -> None:
        path = f"/api/v1/namespaces/{operation.namespace}/pods"
        found = (await self._cluster.client.get_as(path, _SeenPods)).items
        pods = [pod for pod in found if _matches(pod.metadata.labels, operation.labels)]

        async def delete(pod: _SeenPod) -> None:
            await self._unless_gone(self._cluster.client.delete(f"{path}/{pod.metadata.name}"))

        await self._at_rate(pods, operation.per_second, delete)

    async def _start_churn(self, number: int, operation: Churn) -> None:
        namespace = operation.namespace or f"namespace-{number}"
        await self._have_namespace(namespace)
        served = []
        for template in operation.templates:
            manifest = perfobjects.rendered(template, 0, 1)
            kind = await self._kinds.find(manifest)
            served.append((kind.path(namespace if kind.namespaced else ""), manifest))
        await self._now_or_beside(self._churn(operation, served), waits=False)

    async def _churn(self, operation: Churn, served: Sequence[tuple[str, Manifest]]) -> None:
        """Create a round of objects each time. With `recreate`, delete the round of `number` rounds ago instead."""
        rounds: list[list[str]] = []
        count = 0
        while operation.recreate or not operation.number or count < operation.number:
            await asyncio.sleep(operation.seconds)
            slot = count % operation.number if operation.recreate else len(rounds)
            if operation.recreate and slot < len(rounds) and rounds[slot]:
                for path in rounds[slot]:
                    await self._unless_gone(self._cluster.client.delete(path))
                rounds[slot] = []
            else:
                made = [f"{path}/{await self._made(path, manifest)}" for path, manifest in served]
                rounds[slot : slot + 1] = [made]
            count += 1

    async def _made(self, path: str, manifest: Manifest) -> str:
        """Create an object; the name that the server gave it."""
        answer = await self._cluster.client.post(path, manifest)
        return msgspec.json.decode(answer, type=_SeenPod).metadata.name

    async def _create_any(self, number: int, operation: CreateAny) -> None:
        if operation.namespace:
            await self._have_namespace(operation.namespace)
        made = [perfobjects.numbered(operation.template, index, operation.count, number) for index in range(operation.count)]
        for kind in {each["kind"]: each for each in made}.values():
            path = (await self._kinds.find(kind)).path(operation.namespace)
            await self._feed(path, [each for each in made if each["kind"] == kind["kind"]])
        self._labels.update({f"{operation.namespace}/{each['metadata']['name']}": each["metadata"].get("labels", {}) for each in made})

    async def _update_any(self, operation: UpdateAny) -> None:
        client = self._cluster.client

        async def update(index: int) -> None:
            manifest = perfobjects.numbered(operation.template, index, operation.count, 0)
            path = (await self._served(manifest, operation.namespace)).path(operation.namespace, manifest["metadata"]["name"])
            for part in operation.subresources or ("",):
                await client.put(f"{path}/{part}" if part else path, manifest)
            await client.put(f"{path}/status", manifest)

        await self._at_rate(range(operation.count), operation.per_second, update)

    async def _barrier(self, operation: Barrier) -> None:
        for namespace in operation.namespaces or list(self._awaited):
            wanted = self._awaited[namespace]
            if operation.stage is SchedulingStage.ATTEMPTED:
                await self._until_attempted(namespace, operation.labels, wanted)
            elif operation.labels:
                await self._until(lambda at=namespace: self._placed(at, operation.labels), wanted, _ATTEMPT_SECONDS)  # type: ignore[misc]
            else:
                await self._until(lambda at=namespace: self._watch.placed[at], wanted, LOOK_SECONDS)  # type: ignore[misc]
        if operation.stage is SchedulingStage.SCHEDULED:
            for namespace in operation.namespaces or list(self._awaited):
                self._awaited[namespace] = 0

    async def _until_attempted(self, namespace: str, labels: Labels, wanted: int) -> None:
        while True:
            pending = [pod for pod in await self._list("spec.nodeName=", namespace) if _matches(pod.metadata.labels, labels)]
            tried = sum(any(condition.type == "PodScheduled" for condition in pod.status.conditions) for pod in pending)
            if tried + self._placed(namespace, labels) >= wanted:
                return
            self._look()
            await asyncio.sleep(_ATTEMPT_SECONDS)

    async def _until(self, count: Callable[[], int], wanted: int, interval: float) -> None:
        while (found := count()) < wanted:
            self._progress(found, wanted)
            self._look()
            await asyncio.sleep(interval)

    def _look(self) -> None:
        """Raise when there is nothing to wait for any more."""
        self._watch.seen()
        if self._running.ended:
            raise WaveFailed(f"it ended by itself: {self._running.last_words()}")
        for task in self._beside:
            if task.done() and (error := task.exception()) is not None:
                raise error

    def _placed(self, namespace: str, labels: Labels) -> int:
        """How many of our pods with these labels are on nodes now."""
        here = (key for key in self._watch.times.keys() - self._watch.gone if key.startswith(f"{namespace}/"))
        return sum(_matches(self._labels.get(key, {}), labels) for key in here)

    def _start_measurement(self, namespaces: Sequence[str], labels: Labels) -> None:
        self._measurement = _Measurement(frozenset(namespaces), labels, self._cluster.spent(self._running.pid))

    async def _end_measurement(self) -> None:
        measurement = self._measurement
        if measurement is None:
            return
        cpu = self._cluster.spent(self._running.pid) - measurement.before
        elsewhere = max(0.0, machine_seconds() - measurement.machine - sum(astuple(cpu)))
        bound = self._selected(measurement)
        settled = await self._settled() - measurement.before
        self.measured = Measured(measurement.begin, bound, cpu, elsewhere, settled, peak_bytes(self._running.pid))

    async def _settled(self) -> Spent:
        """CPU until the last event was written: a scheduler may write events later, and that has its cost, too."""
        patience, end = self._cluster.patience.event, time.monotonic() + _SETTLE_SECONDS
        count, at, spent = -1, time.monotonic(), self._cluster.spent(self._running.pid)
        while time.monotonic() < min(end, at + patience):
            found = await self._cluster.count(_EVENTS)
            if found > count:
                count, at, spent = found, time.monotonic(), self._cluster.spent(self._running.pid)
            await asyncio.sleep(LOOK_SECONDS)
        return spent

    def _selected(self, measurement: _Measurement) -> list[float]:
        """When each pod of the measurement was bound."""
        return sorted(
            at
            for key, at in self._watch.times.items()
            if at >= measurement.begin
            and key.partition("/")[0] in measurement.namespaces
            and _matches(self._labels.get(key, {}), measurement.labels)
        )

    async def _list(self, selector: str, namespace: str = "") -> list[_SeenPod]:
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        found = (await self._cluster.client.get_as(path, _SeenPods, {"fieldSelector": selector})).items
        return [pod for pod in found if pod.metadata.namespace != _WARM_UP]

    async def _have_namespace(self, name: str) -> None:
        if name in self._awaited:
            return
        self._awaited[name] = 0
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        with suppress(ApiError):
            await self._cluster.client.post(_NAMESPACES, manifest)

    async def _served(self, manifest: Manifest, namespace: str) -> ServedKind:
        served = await self._kinds.find(manifest)
        served.path(namespace)
        return served

    async def _feed(self, path: str, manifests: Sequence[Manifest]) -> None:
        await self._cluster.feed.create(posts(self._cluster.client.access, f"{path}{_STRICTLY}", manifests))

    async def _at_rate(self, things: Iterable[Any], per_second: int, work: Callable[[Any], Awaitable[None]]) -> None:
        begin = time.monotonic()
        for number, thing in enumerate(things, 1):
            if per_second:
                await asyncio.sleep(max(0.0, begin + number / per_second - time.monotonic()))
            await work(thing)

    async def _unless_gone(self, deletion: Awaitable[bytes]) -> None:
        try:
            await deletion
        except ApiError as error:
            if error.status not in {NOT_FOUND, CONFLICT}:
                raise

    async def _now_or_beside(self, work: Coroutine[Any, Any, None], *, waits: bool) -> None:
        if waits:
            await work
        else:
            self._beside.add(asyncio.create_task(work))


async def warm_up(cluster: MeasuredCluster, running: RunningScheduler) -> None:
    """One pod on one node, both gone again: the scheduler has read the cluster and decided once when the workload begins."""
    access, path = cluster.client.access, f"/api/v1/namespaces/{_WARM_UP}/pods"
    await cluster.client.post(_NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _WARM_UP}})
    (node, _), *_ = perfobjects.nodes(CreateNodes(1), 0, hostnames=True)
    ((pod, _),) = perfobjects.pods(CreatePods(1), None, 0, _WARM_UP)
    await cluster.client.post(_NODES, node)
    async with cluster.watch(path) as watch:
        await cluster.feed.create(posts(access, path, [pod]))
        await cluster.all_bound(running, watch, 1)
    await cluster.client.delete(f"{path}/{pod['metadata']['name']}", _AT_ONCE)
    await cluster.client.delete(f"{_NODES}/{node['metadata']['name']}")


def _matches(labels: Labels, wanted: Labels) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items())
