"""One sandbox, put together: store, rules, kubelets and the listening socket, from start to end.

async with Sandbox(nodes=3) as sandbox:
    ...  # sandbox.server, sandbox.kubeconfig, sandbox.store, sandbox.faults
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Final, Self

from aiohttp import web

from kubesandbox.auth.access import Access
from kubesandbox.auth.credentials import Credentials, make_credentials, write_private
from kubesandbox.controllers.collector import Collector
from kubesandbox.controllers.disruptions import Disruptions
from kubesandbox.controllers.ephemeralclaims import EphemeralClaims
from kubesandbox.controllers.kubelet import Kubelets, KubeletTimes, simulated_node
from kubesandbox.controllers.provisioner import simulated_class
from kubesandbox.controllers.volumecontroller import VolumeController
from kubesandbox.definitions.definitions import Definitions, read_definitions
from kubesandbox.devices.claimcontroller import ClaimController
from kubesandbox.devices.driver import SimulatedDriver
from kubesandbox.devices.layouts import DeviceLayout
from kubesandbox.faults import Faults
from kubesandbox.kinds.admission import Admission
from kubesandbox.kinds.podrules import SYSTEM_CLASSES
from kubesandbox.kinds.pods import PodOperations
from kubesandbox.kinds.webhooks import Webhooks
from kubesandbox.resources import (
    DEFINITIONS,
    NAMESPACES,
    NODES,
    PRIORITY_CLASSES,
    STORAGE_CLASSES,
    GroupResource,
    ResourceRegistry,
    ResourceType,
)
from kubesandbox.status import ApiError, Object
from kubesandbox.storage.metadata import Identity
from kubesandbox.storage.reads import Reads
from kubesandbox.storage.store import Store, Watches
from kubesandbox.storage.writes import Writes
from kubesandbox.web.discovery import Discovery
from kubesandbox.web.endpoint import Endpoint
from kubesandbox.web.objects import ObjectRequests, Views

#: Bytes of the largest request, which is the real server's limit.
LARGEST_BODY: Final = 3 * 1024 * 1024

BOOKMARK_SECONDS: Final = 30.0
#: Seconds for watchers and requests under way at the end.
END_SECONDS: Final = 1.0
_FIRST_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


@dataclass(frozen=True)
class SandboxOptions:
    """The options of a sandbox.

    Attributes:
        port: port of the server; 0 for a free one.
        kubeconfig: file to write; None for a folder that is removed with the sandbox.
        nodes: number of nodes at the start.
        crds: folders of YAML definitions.
        history: least number of changes that each type remembers.
        kubelets: time until pods run, and until they end.
        seed: seed of uids, generated names and the choice of faults.
        volumes: True if claims get volumes, like from controllers and provisioners.
        default_class: name of a default StorageClass at the start; empty for none.
        devices: devices that a simulated driver publishes for each node; None for no driver.
    """

    port: int = 0
    kubeconfig: Path | None = None
    nodes: int = 0
    crds: Sequence[Path] = ()
    history: int = 10_000
    kubelets: KubeletTimes = field(default_factory=KubeletTimes)
    seed: int | None = None
    volumes: bool = False
    default_class: str = ""
    devices: DeviceLayout | None = None


class Sandbox:
    """An API server on loopback that runs with its context."""

    def __init__(self, options: SandboxOptions | None = None) -> None:
        self._options = options or SandboxOptions()
        self.credentials: Credentials = make_credentials()
        self.registry = ResourceRegistry()
        self.store = Store(self._options.history)
        self.watches = Watches(self.store)
        self.definitions = Definitions(self.store, self.registry)
        admission = Admission(self.store, self.definitions)
        self.writes = Writes(self.store, self.registry, Identity(Random(self._options.seed)), admission)
        self.access = Access(self.credentials.token, self.store, self.registry, self.writes.identity)
        self.discovery = Discovery(self.registry, self.definitions.schema)
        self.reads = Reads(self.store, self.watches)
        self.faults = Faults(self.store, self.watches, self._refuse_connections, self._options.seed or 0)
        self.driver: SimulatedDriver | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._http: web.Server | None = None
        self._listening: asyncio.Server | None = None
        self._port = self._options.port
        self.kubeconfig = Path()

    @property
    def server(self) -> str:
        """URL, known after the context is entered."""
        return f"https://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        try:
            self._assemble()
            self._fill()
            await self._listen()
            self._write_kubeconfig()
        except BaseException:
            await self.close()
            raise
        self._spawn(self._bookmark())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """End watches, connections and tasks. A second call does nothing."""
        self.watches.close_all()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self.watches.ended()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._listening is not None:
            self._listening.close()
        if self._http is not None:
            for connection in self._http.connections:
                connection.force_close()  # `shutdown` would wait for an idle connection
            await self._http.shutdown(timeout=END_SECONDS)
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def resource(self, group: str, version: str, plural: str) -> ResourceType:
        """Return a served type. `group` is empty for the core group. Raises KeyError for an unknown type."""
        found = self.registry.find(group, version, plural)
        if found is None:
            raise KeyError(f"{plural}.{version}.{group} is not served")
        return found

    def _assemble(self) -> None:
        operations = PodOperations(self.writes, Disruptions(self.writes))
        views = Views(self.reads, self.definitions, self.writes.identity.clock)
        objects = ObjectRequests(self.writes, operations, views, self.access, Webhooks(self.store))
        Collector(self.writes)
        ClaimController(self.writes)
        if self._options.devices is not None:
            self.driver = SimulatedDriver(self.writes, self._options.devices)
        if self._options.volumes:
            VolumeController(self.writes)
            EphemeralClaims(self.writes)
        endpoint = Endpoint(self.access, self.discovery.answer, objects.answer, self.faults, self.watches)
        self._http = web.Server(
            endpoint.handle,
            request_factory=_make_request,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=600.0,
        )
        Kubelets(self.writes, self._options.kubelets)

    def _fill(self) -> None:
        for name in _FIRST_NAMESPACES:
            self._create(NAMESPACES, {"metadata": {"name": name}})
        for name, value in SYSTEM_CLASSES.items():
            self._create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        if self._options.default_class:
            self._create(STORAGE_CLASSES, simulated_class(self._options.default_class))
        for number in range(self._options.nodes):
            self._create(NODES, simulated_node(number, self.writes.identity.now()))
        for folder in self._options.crds:
            for content in read_definitions(folder):
                try:
                    self._create(DEFINITIONS, content)
                except ApiError as refused:
                    raise ValueError(f"{folder}: {refused.message}") from refused

    def _create(self, key: GroupResource, content: Object) -> None:
        self.writes.create(self.registry.served(key), "", content)

    async def _listen(self) -> None:
        assert self._http is not None
        loop = asyncio.get_running_loop()
        context = self.credentials.server_context()
        self._listening = await loop.create_server(self._http, "127.0.0.1", self._port, ssl=context, backlog=1024, reuse_address=True)
        self._port = self._listening.sockets[0].getsockname()[1]

    def _write_kubeconfig(self) -> None:
        if self._options.kubeconfig is not None:
            self.kubeconfig = self._options.kubeconfig.absolute()
        else:
            self._folder = tempfile.TemporaryDirectory(prefix="placewright-sandbox-")
            self.kubeconfig = Path(self._folder.name, "kubeconfig")
        write_private(self.kubeconfig, self.credentials.kubeconfig(self.server))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _bookmark(self) -> None:
        while True:
            await asyncio.sleep(BOOKMARK_SECONDS)
            self.watches.bookmark_all()

    def _refuse_connections(self, seconds: float) -> None:
        """Close every connection and the listening socket, and open the socket again after so many seconds."""
        assert self._listening is not None and self._http is not None
        self._listening.close()
        for connection in self._http.connections:
            connection.force_close()
        self._spawn(self._reopen(seconds))

    async def _reopen(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        while True:
            with suppress(OSError):
                return await self._listen()
            await asyncio.sleep(0.05)


def _make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    return web.BaseRequest(message, payload, protocol, writer, task, asyncio.get_running_loop(), client_max_size=LARGEST_BODY)
