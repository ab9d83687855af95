"""A cluster under attack: an API server and an operator in processes of their own, and a healthy tenant who goes on beside the attack.

The operator has a gibibyte for its data and no more, as its container has. How long a pod waits is told twice: in seconds of the clock, and
in seconds of the operator's own processor time, which a machine that does other work does not lengthen.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import re
import resource
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from faults.api import Api, Refused, api_of
from kubesandbox.process import SandboxProcess, end_process
from manifest import Object, manifest
from news import News
from pacing import paced
from placewright_lab.demo.feed import background
from ports import reserved_port
from serving.desk import get, said, trusting

_DEFINITIONS: Final = Path(__file__).parents[2] / "crds"
PODS: Final = "/api/v1/namespaces/{}/pods"
NAMESPACES: Final = "/api/v1/namespaces"
PROFILES: Final = "/apis/placewright.dev/v1alpha1/schedulingprofiles"
#: The profile of all tenants but where an attack brings one of its own.
SCHEDULER: Final = "placewright"
HOSTILE: Final = "hostile"
INNOCENT: Final = "innocent"
#: What the operator may have of memory for its data, bytes: its container's limit.
DATA_LIMIT: Final = 2**30
#: How long anything may take before the test fails, seconds. Far more than a pod may wait: so that a failure says by how much.
DEADLINE: Final = 90.0
_END_SECONDS: Final = 15.0
_CREATING_AT_ONCE: Final = 16
_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
_COUNTED: Final = re.compile(r"^placewright_(?:kept|object)_bytes(?:\{.*\})? (\S+)", re.MULTILINE)
#: A signal at which the operator of these tests gives memory back, as others do once a minute.
GIVE_BACK: Final = signal.SIGWINCH
#: `placewright run`, with that signal, and with bytes of objects that are estimated at each scrape.
_PROGRAM: Final = f"""
import asyncio
from placewright.cli.main import main
from placewright.engine import engine, freedmemory
from placewright.observability.metrics import objectbytes

async def give_back_memory():
    asyncio.get_running_loop().add_signal_handler({int(GIVE_BACK)}, freedmemory.give_back)
    await freedmemory.give_back_memory()

engine.give_back_memory, objectbytes.LASTS_SECONDS = give_back_memory, 0.0
raise SystemExit(main())
"""
_PORT: Final = re.compile(r"HTTPS on \S+, port (\d+)")


@dataclass(frozen=True, slots=True)
class Waited:
    """A healthy pod that was placed, and its wait in seconds of the clock and of the operator's processor time."""

    name: str
    seconds: float
    processor: float


class Memory(NamedTuple):
    """Memory of the operator after it gave back what is free, MiB: resident, and as it counts it."""

    resident: float
    counted: float


class Siege:
    """The means of an attack, and the observations during it."""

    def __init__(self, api: Api, operator: Process, log: Path) -> None:
        self.api = api
        self.tenant = Tenant(self)
        self._operator = operator
        self._log = log
        self._names = itertools.count()
        self._storms: list[asyncio.Task[None]] = []

    # --- the operator ---

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while the operator runs."""
        return self._operator.returncode

    @property
    def processor(self) -> float:
        """Seconds of processor time that it has used."""
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{self._operator.pid}/stat").read_text().rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND
        return 0.0

    @property
    def peak(self) -> float:
        """Highest resident memory, MiB."""
        with contextlib.suppress(OSError):
            (line,) = (each for each in Path(f"/proc/{self._operator.pid}/status").read_text().splitlines() if each.startswith("VmHWM"))
            return int(line.split()[1]) / 1024
        return float("inf")

    @property
    def resident(self) -> float:
        """Resident memory now, MiB."""
        (line,) = (each for each in Path(f"/proc/{self._operator.pid}/status").read_text().splitlines() if each.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    async def memory(self) -> Memory:
        """Have the operator give back free memory, as it does each minute, and read what it has then."""
        os.kill(self._operator.pid, GIVE_BACK)
        counted = await self.counted()
        return Memory(self.resident, counted)

    async def counted(self) -> float:
        """Memory that the operator counts, MiB: objects, and all that it keeps because of them."""
        answer = await self.scraped()
        told = _COUNTED.findall(answer)
        assert told, answer[:1000]
        return sum(map(float, told)) / 2**20

    async def scraped(self) -> str:
        """Its metrics. Scraped as Prometheus does, with a token and ten seconds of patience, which waits for no answer about another."""
        request = get("/metrics", "Connection: close", f"Authorization: Bearer {self.api.client.token}")
        async with asyncio.timeout(10.0):
            return (await said(self.secure_port, request, tls=trusting())).decode()

    @property
    def secure_port(self) -> int:
        """Where it serves health."""
        found = _PORT.search(self.words)
        assert found is not None, self.words[-2000:]
        return int(found[1])

    @property
    def words(self) -> str:
        """Its log."""
        return self._log.read_text(errors="replace")

    # --- what attacks do ---

    def name(self, of: str) -> str:
        """Return a new name."""
        return f"{of}-{next(self._names)}"

    def pod(self, of: str = "pod", *, scheduler: str = SCHEDULER, meta: Object | None = None, **spec: Any) -> Object:
        """A pod's body, in the hostile namespace."""
        container = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": "1m"}}}
        whole = {"schedulerName": scheduler, "containers": [container], **spec}
        return manifest("v1", "Pod", self.name(of), {"namespace": HOSTILE, **(meta or {})}, spec=whole)

    async def create(self, path: str, bodies: Iterable[Object]) -> list[str]:
        """Create them all. Return the names of those that the API server accepts."""
        slots = asyncio.Semaphore(_CREATING_AT_ONCE)

        async def one(body: Object) -> str:
            async with slots:
                with contextlib.suppress(Refused):
                    await self.api.request("POST", path, body)
                    return str(body["metadata"]["name"])
            return ""

        return [name for name in await asyncio.gather(*(one(body) for body in bodies)) if name]

    async def pods(self, bodies: Iterable[Object]) -> list[str]:
        """Create pods. Fail if the API server accepts none, because that is no attack."""
        made = await self.create(PODS.format(HOSTILE), bodies)
        assert made, "the API server refuses all of it"
        return made

    async def delete_pod(self, name: str) -> None:
        """Delete a pod at once."""
        await self.api.delete(f"{PODS.format(HOSTILE)}/{name}")

    async def node_names(self) -> list[str]:
        """All nodes."""
        return [each["metadata"]["name"] for each in (await self.api.get("/api/v1/nodes"))["items"]]

    @asynccontextmanager
    async def storm(self, a_second: float, act: Callable[[int], Any]) -> AsyncIterator[None]:
        """Do something again and again, at most so many times a second. Ignore the API server's refusals."""

        async def blow() -> None:
            async for number in paced(a_second):
                with contextlib.suppress(Refused):
                    await act(number)

        async with background(blow(), "storm"):
            yield


class Tenant:
    """Creates one small pod a second, and sees when each gets its node."""

    def __init__(self, siege: Siege) -> None:
        self.waited: dict[str, Waited] = {}
        self._siege = siege
        self._made: dict[str, tuple[float, float]] = {}
        self._seen: dict[str, tuple[float, float]] = {}
        self._news = News()

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Create pods while this is open."""
        watching = self._siege.api.watch(PODS.format(INNOCENT), self._heard)
        async with background(watching, "watch of healthy pods"), background(self._create(), "healthy pods"):
            yield

    def begin_anew(self) -> None:
        """Forget the pods that were placed until now."""
        for name in self.waited:
            del self._made[name]
        self.waited.clear()

    async def until_placed(self, more: int) -> None:
        """Return when so many new pods have a node. Raises if the operator ends, or if one waits for longer than `DEADLINE`."""
        known = set(self._made)

        def placed() -> bool:
            assert self._siege.exit_code is None, f"the operator ended with {self._siege.exit_code}"
            return len(self.waited.keys() - known) >= more and len(self._made.keys() - self.waited.keys()) <= 1

        def waiting() -> str:
            return f"a node for each healthy pod; these wait: {sorted(self._made.keys() - self.waited.keys())}"

        await self._news.until(placed, waiting, DEADLINE, look=1.0)

    async def _create(self) -> None:
        container = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}
        async for number in paced(1.0):
            name, spec = f"healthy-{number}", {"schedulerName": SCHEDULER, "containers": [container]}
            await self._siege.api.create(PODS.format(INNOCENT), manifest("v1", "Pod", name, {"namespace": INNOCENT}, spec=spec))
            self._made[name] = (time.monotonic(), self._siege.processor)
            self._judge(name)

    def _heard(self, _kind: str, pod: Object, at: float) -> None:
        name = pod["metadata"]["name"]
        if pod["spec"].get("nodeName") and name not in self._seen:
            self._seen[name] = (at, self._siege.processor)
            self._judge(name)

    def _judge(self, name: str) -> None:
        """The answer to the creation and the watch may come in either order."""
        if name in self._seen and name in self._made and name not in self.waited:
            (made, before), (seen, after) = self._made[name], self._seen[name]
            self.waited[name] = Waited(name, max(seen - made, 0.0), max(after - before, 0.0))
            self._news.set()


@asynccontextmanager
async def besieged(folder: Path, nodes: int, devices: int = 0) -> AsyncIterator[Siege]:
    """A cluster with a profile, and an operator at work on it that has placed pods already."""
    crds = (_DEFINITIONS, _DEFINITIONS / "groups")
    async with SandboxProcess(nodes=nodes, crds=crds, arguments=("--devices", str(devices))) as server:
        log = folder / "operator.log"
        async with api_of(server.kubeconfig) as api:
            await _furnish(api)
            async with _operator(server.kubeconfig, log) as operator:
                siege = Siege(api, operator, log)
                async with siege.tenant.at_work():
                    await siege.tenant.until_placed(2)
                    siege.tenant.begin_anew()
                    yield siege


async def _furnish(api: Api) -> None:
    for name in (HOSTILE, INNOCENT):
        await api.create(NAMESPACES, manifest("v1", "Namespace", name))
    await api.create(PROFILES, a_profile("default", schedulerName=SCHEDULER, backoff={"maxSeconds": 1}))


def a_profile(name: str, **spec: Any) -> Object:
    """A profile's body."""
    return manifest("placewright.dev/v1alpha1", "SchedulingProfile", name, spec=spec)


@asynccontextmanager
async def _operator(kubeconfig: Path, log: Path) -> AsyncIterator[Process]:
    """`placewright run` as in a cluster, on a port of loopback, with the memory of its container."""
    served = ("--bind-address", "127.0.0.1", "--secure-port", str(reserved_port()))
    command = [sys.executable, "-c", _PROGRAM, "run", "--kubeconfig", str(kubeconfig), "--exit-with-stdin", *served]
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=output, stderr=output, start_new_session=True)
    try:
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (DATA_LIMIT, DATA_LIMIT))
        yield process
    finally:
        await end_process(process, _END_SECONDS)
