"""Measures what the console's readers cost an operator that decides pods at a steady rate while thousands of pods wait.

The scheduler, its records, the console's source, its streams and the HTTPS server are the operator's own; Bindings take no time. Pods come
and are placed at the rate, and the oldest ones leave, so that nodes and decisions change all the time. The readers are another process.
Numbers of readers follow each other in turns, because a machine is never the same for long. All times are of the operator's process on its
processor, so that other work of the machine counts little.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import statistics
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, Self, cast

from placewright.api.profile import default_profile
from placewright.engine.certificates import self_made
from placewright.explain.records import Records
from placewright.offline.kinds import Manifest
from placewright.offline.world import read_object
from placewright.plugins.catalog import in_tree
from placewright.profiles.live import Active
from placewright.profiles.resolve import resolve
from placewright.serving.access import OnlyEverybody
from placewright.serving.listener import Listener, bind
from placewright.serving.readerrights import Visitor
from placewright.serving.rights import ALL_NAMESPACES
from placewright.serving.routes import Answer, Endpoint, Question, Routes
from placewright.serving.schedulerview import SchedulerView
from placewright_console.live.livesource import LiveSource
from placewright_console.live.streams import ConsoleStreams
from placewright_lab.bench.decisions import nothing_old_collected
from placewright_lab.bench.processtimes import percentiles
from placewright_lab.bench.recordcost import Side
from placewright_lab.bench.workloads import WORKLOADS

NODES: Final = 5_000
WAITING: Final = 20_000
RATE: Final = 1_000
SECONDS: Final = 5.0
ROUNDS: Final = 3
READERS: Final = (0, 10, 100)
#: The share of a processor core that 100 readers may cost.
WANTED_SHARE: Final = 0.10
_WORKLOAD: Final = WORKLOADS["plain"]
#: Different shapes among the waiting pods.
_SHAPES: Final = 50
#: Seconds between two looks at the processor's time.
_LOOK_SECONDS: Final = 0.002
#: Seconds for which new readers are given their first state before anything is measured.
_SETTLE_SECONDS: Final = 2.0
#: Rows that are out of date at any moment, as pods are decided.
_NEARLY_NOTHING: Final = 2_000
_LOOPBACK: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class ConsoleTurn:
    """One number of readers, for one turn.

    Attributes:
        decided: decisions.
        seconds: that passed.
        busy: seconds of the operator's processor time.
        decision: seconds of processor time of the median decision.
        longest: seconds of processor time between two looks of another task, at most.
        p99: the 99th percentile of the same.
        read: bytes that the readers got.
    """

    decided: int
    seconds: float
    busy: float
    decision: float
    longest: float
    p99: float
    read: int


@dataclass(frozen=True, slots=True)
class ConsoleCost:
    """The turns of one number of readers.

    Attributes:
        readers: of the feed, in other processes.
        alone: seconds of processor time for each decision in the turns without readers, all work of the loop included, at their median.
        turns: in order.
        dropped: slow readers beside these that lost their streams until the end of the whole run.
    """

    nodes: int
    waiting: int
    readers: int
    alone: float
    turns: tuple[ConsoleTurn, ...]
    dropped: int = 0

    @property
    def per_second(self) -> float:
        """Decisions a second, by the median turn."""
        return statistics.median(turn.decided / turn.seconds for turn in self.turns)

    @property
    def share(self) -> float:
        """The share of a core that the operator takes, by the median turn."""
        return statistics.median(turn.busy / turn.seconds for turn in self.turns)

    @property
    def cost(self) -> float:
        """The share of a core that the readers cost: what the operator takes beyond what as many decisions take without readers."""
        return statistics.median((turn.busy - self.alone * turn.decided) / turn.seconds for turn in self.turns)

    def median(self, name: str) -> float:
        """The median turn's value of an attribute of `ConsoleTurn`."""
        median: float = statistics.median(getattr(turn, name) for turn in self.turns)
        return median


class Steady(Side):
    """A scheduler whose pods come at a rate and leave after a while, with the parts of a scheduler that the console's source reads.

    Attributes:
        costs: seconds of processor time of the decisions since `costs` was last emptied.
    """

    def __init__(self, nodes: int, waiting: int) -> None:
        """Put it together; `fill` has pods wait.

        Args:
            nodes: of the cluster.
            waiting: pods that fit nowhere.
        """
        self.records = Records(time.time)
        profile = resolve(default_profile(preset=_WORKLOAD.preset), in_tree())
        super().__init__(_WORKLOAD.cluster(nodes), [], profile, self.records)
        self.costs: list[float] = []
        self._waiting = waiting
        #: Pods that are placed and not gone yet: one a node.
        self._most_standing = nodes
        self._arrived = 0
        self._standing: deque[str] = deque()
        self._pod = _WORKLOAD.pods(1)[0]
        active = {profile.scheduler_name: Active(profile, self.evaluator)}
        live = SimpleNamespace(active=active, by_scheduler_name=active.get)
        parts = SimpleNamespace(
            cluster=self.cluster, queue=self.queue, live=live, records=self.records, replica="bench", source="", server="", away_since=None
        )
        self.view = cast("SchedulerView", parts)

    async def fill(self) -> None:
        """Have pods of some shapes wait that no node can hold, and place pods until as many stand as will."""
        for number in range(self._waiting):
            self._arrive(f"large-{number}", cpu=f"{1000 + number % _SHAPES}")
            await self.decide(1)
        for _ in range(self._most_standing):
            await self.next()
        self.costs.clear()

    async def next(self) -> None:
        """A pod comes and is placed; the oldest one leaves."""
        self._arrived += 1
        uid = self._arrive(f"web-{self._arrived}")
        start = time.process_time()
        await self.decide(1)
        self.costs.append(time.process_time() - start)
        self._standing.append(uid)
        if len(self._standing) > self._most_standing:
            self.cluster.remove_pod(self._standing.popleft())

    def _arrive(self, name: str, **amounts: str) -> str:
        made: dict[str, Any] = _copied(self._pod)
        made["metadata"] |= {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        if amounts:
            made["spec"]["containers"] = [{"name": "c", "image": "i", "resources": {"requests": amounts}}]
        pod = read_object(made, "benchmark")
        self.queue.add(cast("Any", pod))
        return name


def measure_console(
    nodes: int = NODES, waiting: int = WAITING, readers: Sequence[int] = READERS, rate: int = RATE, seconds: float = SECONDS,
    rounds: int = ROUNDS, slow: int = 0,
) -> list[ConsoleCost]:  # fmt: skip
    """Measure each number of readers in turns.

    Args:
        nodes: of the cluster.
        waiting: pods that wait all the time.
        readers: numbers of readers; 0 is among them.
        rate: decisions a second.
        seconds: of each turn.
        rounds: turns of each number.
        slow: readers beside these, in all turns, that stop to read.

    Returns:
        A result for each number of readers.
    """
    return asyncio.run(_measure(nodes, waiting, readers, rate, seconds, rounds, slow))


async def _measure(
    nodes: int, waiting: int, readers: Sequence[int], rate: int, seconds: float, rounds: int, slow: int
) -> list[ConsoleCost]:
    steady = Steady(nodes, waiting)
    await steady.fill()
    turns: dict[int, list[ConsoleTurn]] = {each: [] for each in readers}
    source = LiveSource(steady.view)
    streams = ConsoleStreams(source)
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(_served(streams))
        child, idlers = [await stack.enter_async_context(_Child.started(port)) for _ in range(2)]
        stack.enter_context(nothing_old_collected)
        await idlers.become(slow, slow)
        for number in range(rounds):
            for many in list(readers)[:: 1 if number % 2 == 0 else -1]:
                await child.become(many, 0)
                await _settle(steady, source, rate)
                turns[many].append(await _turn(steady, child, rate, seconds))
        await child.become(0, 0)
        await _run(steady, rate, _SETTLE_SECONDS)
        dropped = slow - len(streams)
    alone = statistics.median(turn.busy / turn.decided for turn in turns[0])
    return [ConsoleCost(nodes, waiting, many, alone, tuple(turns[many]), dropped) for many in readers]


async def _settle(steady: Steady, source: LiveSource, rate: int) -> None:
    """Wait until new readers have the whole state: it is filled while pods are decided."""
    await _run(steady, rate, _SETTLE_SECONDS)
    while source.behind > _NEARLY_NOTHING:
        await _run(steady, rate, _SETTLE_SECONDS / 4)
    # What was made for new readers is not looked through again and again in the short time that is measured.
    gc.collect()
    gc.freeze()


async def _turn(steady: Steady, child: _Child, rate: int, seconds: float) -> ConsoleTurn:
    steady.costs.clear()
    before = await child.read()
    looks: list[float] = []
    looking = asyncio.create_task(_look(looks))
    start, busy = time.perf_counter(), time.process_time()
    decided = await _run(steady, rate, seconds)
    busy, passed = time.process_time() - busy, time.perf_counter() - start
    looking.cancel()
    _, p99 = percentiles(looks)
    return ConsoleTurn(decided, passed, busy, statistics.median(steady.costs), max(looks), p99, await child.read() - before)


async def _run(steady: Steady, rate: int, seconds: float) -> int:
    """Decide at the rate; returns how many pods were decided."""
    start, decided = time.perf_counter(), 0
    while (passed := time.perf_counter() - start) < seconds:
        if decided < passed * rate:
            await steady.next()
            decided += 1
            await asyncio.sleep(0)
        else:
            await asyncio.sleep((decided + 1) / rate - passed)
    return decided


async def _look(looks: list[float]) -> None:
    """Note the processor's time between two turns of the loop, a few milliseconds apart."""
    before = time.process_time()
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        now = time.process_time()
        looks.append(now - before)
        before = now


async def _again() -> Visitor:
    """Let every reader see all, as where the API server says so."""
    return Visitor("bench", ALL_NAMESPACES, _again)


class _Open(OnlyEverybody):
    async def admit(self, endpoint: Endpoint, question: Question) -> None:
        """The feed is for all here."""


@asynccontextmanager
async def _served(streams: ConsoleStreams) -> AsyncIterator[int]:
    """The feed over HTTPS, as the operator serves it; yields the port."""

    async def follow(question: Question) -> Answer:
        visitor = Visitor(f"reader-{len(streams)}", ALL_NAMESPACES, _again)
        return Answer(streams.follow(visitor, packed=question.packed), "application/x-ndjson")

    listening = bind(_LOOPBACK, 0, "--port")
    port: int = listening.getsockname()[1]
    async with streams.open(), Listener(Routes([Endpoint("/feed", follow)]), _Open()).serving(listening, self_made()):
        yield port


class _Child:
    """The process of the readers."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.ended = 0

    @classmethod
    @asynccontextmanager
    async def started(cls, port: int) -> AsyncIterator[Self]:
        command = [sys.executable, "-m", "placewright_lab.bench.feedreaders", str(port)]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
        try:
            yield cls(process)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def become(self, readers: int, slow: int) -> None:
        """Have so many readers, of them so many slow ones."""
        await self._say(f"{readers} {slow}")

    async def read(self) -> int:
        """The bytes that all readers have read so far."""
        return await self._say("-1 0")

    async def _say(self, line: str) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{line}\n".encode())
        answer = (await self._process.stdout.readline()).split()
        if len(answer) != 2:
            raise RuntimeError("the process of the readers has ended")
        self.ended = int(answer[1])
        return int(answer[0])


def _copied(pod: Manifest) -> Manifest:
    spec: Mapping[str, Any] = pod["spec"]
    return {**pod, "metadata": dict(pod["metadata"]), "spec": dict(spec)}
