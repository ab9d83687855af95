"""The run of one workload's operations on a real API server, and the measurement of the scheduler from outside.

The operations mean the same as in upstream's harness. Upstream polls its own caches every second. We look twenty times a second at a watch
of the metadata of assigned pods. We do without three controllers of the harness:

- The PersistentVolume controller, because claims name their volumes from the start.
- The garbage collector, because no object here has an owner.
- The namespace controller, because every workload gets an API server of its own.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from functools import singledispatchmethod
from typing import Any, Final

import msgspec

from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError
from placewright.offline.kinds import Manifest
from placewright_lab.bench.boundwatch import BoundWatch
from placewright_lab.bench.contenders import RunningScheduler
from placewright_lab.bench.measuredcluster import LOOK_SECONDS, MeasuredCluster, Post, SeenPod, WaveFailed, posts, request
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
    PerfWorkload,
    SchedulingStage,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UpdateAny,
)
from placewright_lab.bench.schedulerperf.servedkinds import ServedKind, ServedKinds
from placewright_lab.bench.wavecomparison import Spent, machine_seconds, peak_bytes

#: Parameters that make unknown fields an error, like in upstream's harness. Servers before 1.25 drop such fields.
_STRICTLY: Final = "?fieldValidation=Strict"
_EVENTS: Final = "/api/v1/events"
_NODES: Final = "/api/v1/nodes"
_CSI_NODES: Final = "/apis/storage.k8s.io/v1/csinodes"
_NAMESPACES: Final = "/api/v1/namespaces"
_VOLUMES: Final = "/api/v1/persistentvolumes"
_ATTEMPT_SECONDS: Final = 1.0
#: Seconds of the longest wait for the last event. Churn may write events without an end.
_SETTLE_SECONDS: Final = 5.0
_AT_ONCE: Final = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
_WARM_UP: Final = "warm-up"

#: Function of a wait: the thing, the present number, the wanted number.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """The observations of a measured workload.

    Attributes:
        begin: time (`time.monotonic`) of the beginning.
        bound: times of the observed bindings of measured pods, ascending.
        cpu: CPU seconds until the last binding.
        elsewhere: CPU seconds of the machine's other processes meanwhile.
        settled_cpu: CPU seconds until the last event was written.
        peak_bytes: highest memory of the scheduler until then.
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
    """A single run of one workload with one scheduler, while the context of its watch is open."""

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
        #: Pods that no operation has waited for, by namespace. All namespaces are here.
        self._awaited: Counter[str] = Counter()
        self._labels: dict[str, Labels] = {}
        self._beside: set[asyncio.Task[None]] = set()

    async def check(self) -> None:
        """Raise `NotKnown` if the server does not serve a kind that the workload needs."""
        for operation in self._workload.operations:
            if isinstance(operation, CreateAny | UpdateAny):
                await self._served(perfobjects.rendered(operation.template, 0, operation.count), operation.namespace)
            elif isinstance(operation, Churn):
                for template in operation.templates:
                    await self._kinds.find(perfobjects.rendered(template, 0, 1))

    async def run(self) -> None:
        """Run all operations in their order. Raises `WaveFailed` if the scheduler ends, or if a pod of churn cannot be created."""
        try:
            for number, operation in enumerate(self._workload.operations):
                await self._do(operation, number)
        finally:
            for task in self._beside:
                task.cancel()
            await asyncio.gather(*self._beside, return_exceptions=True)

    async def remains(self) -> Remains:
        """Count all pods on the API server after the last binding. Raises `WaveFailed` if the watch saw other ones."""
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
        """Return the times of bindings of a measurement that still runs or has ended."""
        if self.measured is not None:
            return self.measured.bound
        return self._selected(self._measurement) if self._measurement else ()

    @singledispatchmethod
    async def _do(self, operation: Any, number: int) -> None:
        raise NotImplementedError

    @_do.register
    async def _create_namespaces(self, operation: CreateNamespaces, _number: int) -> None:
        made = list(perfobjects.namespaces(operation.template, operation.prefix, operation.count))
        await self._feed(_NAMESPACES, made)
        self._awaited.update({each["metadata"]["name"]: 0 for each in made})

    @_do.register
    async def _create_nodes(self, operation: CreateNodes, number: int) -> None:
        made = list(perfobjects.nodes(operation, number, hostnames=self._workload.hostnames))
        await self._feed(_NODES, [node for node, _ in made])
        await self._feed(_CSI_NODES, [csi_node for _, csi_node in made if csi_node is not None])

    @_do.register
    async def _create_pods(self, operation: CreatePods, number: int) -> None:
        namespace = operation.namespace or f"namespace-{number}"
        await self._have_namespace(namespace)
        made = list(perfobjects.pods(operation, self._workload.default_pod, number, namespace))
        wanted = self._pod_posts(namespace, made)
        if operation.collect_metrics:
            await self._start_measurement(StartCollectingMetrics((namespace,)), number)
        await self._cluster.feed.create(wanted)
        if not operation.skip_wait_to_completion:
            await self._until(lambda: self._watch.placed[namespace], operation.count, LOOK_SECONDS)
        else:
            self._awaited[namespace] += operation.count
        if operation.collect_metrics:
            await self._end_measurement(StopCollectingMetrics(), number)

    def _pod_posts(self, namespace: str, made: Iterable[tuple[Manifest, tuple[Manifest, ...]]]) -> list[Post]:
        """Return creations of pods. Like upstream, one connection creates claim, volume, their status and the pod."""
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

    @_do.register
    async def _delete_pods(self, operation: DeletePods, _number: int) -> None:
        path = f"/api/v1/namespaces/{operation.namespace}/pods"

        async def delete(pod: SeenPod) -> None:
            await self._unless_gone(self._cluster.client.delete(f"{path}/{pod.metadata.name}"))

        async def delete_all() -> None:
            pods = [pod for pod in await self._cluster.pods(path) if _matches(pod.metadata.labels, operation.label_selector)]
            await self._at_rate(pods, operation.delete_pods_per_second, delete)

        await self._now_or_beside(delete_all(), waits=not operation.skip_wait_to_completion)

    @_do.register
    async def _start_churn(self, operation: Churn, number: int) -> None:
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
        """Create an object. Return the name that the server gave it."""
        name: str = msgspec.json.decode(await self._cluster.client.post(path, manifest))["metadata"]["name"]
        return name

    @_do.register
    async def _create_any(self, operation: CreateAny, number: int) -> None:
        if operation.namespace:
            await self._have_namespace(operation.namespace)
        made = [perfobjects.numbered(operation.template, index, operation.count, number) for index in range(operation.count)]
        for kind in {each["kind"]: each for each in made}.values():
            path = (await self._kinds.find(kind)).path(operation.namespace)
            await self._feed(path, [each for each in made if each["kind"] == kind["kind"]])
        self._labels.update({f"{operation.namespace}/{each['metadata']['name']}": each["metadata"].get("labels", {}) for each in made})

    @_do.register
    async def _update_any(self, operation: UpdateAny, _number: int) -> None:
        client = self._cluster.client

        async def update(index: int) -> None:
            manifest = perfobjects.numbered(operation.template, index, operation.count, 0)
            path = (await self._served(manifest, operation.namespace)).path(operation.namespace, manifest["metadata"]["name"])
            for part in operation.subresources or ("",):
                await client.put(f"{path}/{part}" if part else path, manifest)
            await client.put(f"{path}/status", manifest)

        await self._at_rate(range(operation.count), operation.update_per_second, update)

    @_do.register
    async def _barrier(self, operation: Barrier, _number: int) -> None:
        for namespace in operation.namespaces or list(self._awaited):
            wanted = self._awaited[namespace]
            if operation.stage is SchedulingStage.ATTEMPTED:
                await self._until_attempted(namespace, operation.label_selector, wanted)
            elif operation.label_selector:
                await self._until(lambda at=namespace: self._placed(at, operation.label_selector), wanted, _ATTEMPT_SECONDS)  # type: ignore[misc]
            else:
                await self._until(lambda at=namespace: self._watch.placed[at], wanted, LOOK_SECONDS)  # type: ignore[misc]
        if operation.stage is SchedulingStage.SCHEDULED:
            for namespace in operation.namespaces or list(self._awaited):
                self._awaited[namespace] = 0

    @_do.register
    async def _sleep(self, operation: Sleep, _number: int) -> None:
        await asyncio.sleep(operation.duration)

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
        """Raise an error if there is nothing more to wait for."""
        self._watch.seen()
        if self._running.ended:
            raise WaveFailed(f"it ended by itself: {self._running.last_words()}")
        for task in self._beside:
            if task.done() and (error := task.exception()) is not None:
                raise error

    def _placed(self, namespace: str, labels: Labels) -> int:
        """Return the number of our pods with these labels on nodes."""
        here = (key for key in self._watch.times.keys() - self._watch.gone if key.startswith(f"{namespace}/"))
        return sum(_matches(self._labels.get(key, {}), labels) for key in here)

    @_do.register
    async def _start_measurement(self, operation: StartCollectingMetrics, _number: int) -> None:
        before = self._cluster.spent(self._running.pid)
        self._measurement = _Measurement(frozenset(operation.namespaces), operation.label_selector, before)

    @_do.register
    async def _end_measurement(self, _operation: StopCollectingMetrics, _number: int) -> None:
        measurement = self._measurement
        if measurement is None:
            return
        cpu = self._cluster.spent(self._running.pid) - measurement.before
        elsewhere = max(0.0, machine_seconds() - measurement.machine - sum(astuple(cpu)))
        bound = self._selected(measurement)
        # A scheduler may write events later, and these cost CPU time, too.
        _, spent = await self._cluster.events_written(self._running, _EVENTS, math.inf, _SETTLE_SECONDS)
        self.measured = Measured(measurement.begin, bound, cpu, elsewhere, spent - measurement.before, peak_bytes(self._running.pid))

    def _selected(self, measurement: _Measurement) -> list[float]:
        """Return the time of binding of each measured pod."""
        return sorted(
            at
            for key, at in self._watch.times.items()
            if at >= measurement.begin
            and key.partition("/")[0] in measurement.namespaces
            and _matches(self._labels.get(key, {}), measurement.labels)
        )

    async def _list(self, selector: str, namespace: str = "") -> list[SeenPod]:
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        return [pod for pod in await self._cluster.pods(path, selector) if pod.metadata.namespace != _WARM_UP]

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
    """Place and delete one pod on one node. So the scheduler has read the cluster and decided once before the workload."""
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
