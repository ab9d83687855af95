"""One demo on a running cluster: objects, pods, and the change half-way, until every pod is settled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from placewright.api.decode import convert
from placewright.api.objects import Node, Pod, PodKey
from placewright.api.profile import SchedulingProfile
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError
from placewright.offline.kinds import Manifest
from placewright_lab.demo.change import ChangeTimes, busy, took_effect
from placewright_lab.demo.display import PlainProgress, show_notes
from placewright_lab.demo.feed import Feed, background, pod_key
from placewright_lab.demo.livestate import PROFILES_PATH, Profiles, watch_run
from placewright_lab.demo.operatorprocess import OperatorProcess
from placewright_lab.demo.scenario import DemoScenario
from placewright_lab.demo.summary import QUIET_SECONDS, State, Summary, TrackedPod, Tracker, summarise

#: Seconds between two looks at the run.
_LOOK_SECONDS = 0.1
#: Seconds between two looks at a single pod, and the number of looks after which the status is read instead.
_PROBE_SECONDS = 0.005
#: Seconds that the last lines of a log may take.
_LOG_SECONDS = 1.0
_PROBES = 3


class DemoFailed(Exception):
    """The run cannot continue: the operator ended, or never became ready."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The rate of new pods, and the time limits.

    Attributes:
        rate: pods a second; None for as many as the server accepts.
        ready_seconds, change_seconds, run_seconds: limits of the operator's start, of the change, and of the run.
        job_seconds: limit of a job of the second act.
        quiet_seconds: seconds without a placement after which the remaining pods count as unplaced.
    """

    rate: float | None = None
    ready_seconds: float = 30.0
    change_seconds: float = 10.0
    run_seconds: float = 90.0
    job_seconds: float = 15.0
    quiet_seconds: float = QUIET_SECONDS


@dataclass(eq=False)
class DemoRun:
    """The run of one scenario against one API server with one operator.

    Attributes:
        change_note: sentence about the change half-way and the time of its effect; empty before.
    """

    scenario: DemoScenario
    client: ApiClient
    operator: OperatorProcess
    progress: PlainProgress
    limits: Limits
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._feed = Feed(self.client)
        self._pods = {pod_key(pod): pod for pod in self.scenario.pods}
        self._tracker = Tracker(self._pods, self.limits.quiet_seconds)
        self._profiles = Profiles()
        self._half = (len(self._pods) + 1) // 2
        self._half_settled = asyncio.Event()
        self.change_note = ""

    async def run(self) -> Summary:
        """Run to the end. Raises `DemoFailed` if the operator fails."""
        refused = await self._feed.create_objects(self.scenario.objects)
        show_notes(self.progress.say, refused, "refused by the API server")
        watching = watch_run(self.client, self._tracker, self._profiles, self.clock)
        watching.start()
        try:
            await self._operator_ready()
            async with background(self._create_pods(), "create pods") as creating:
                await self._until_settled(creating)
        finally:
            await watching.stop()
        nodes = [convert(node, Node) for node in self.scenario.nodes]
        return summarise(self._tracker, nodes, {key: convert(pod, Pod) for key, pod in self._pods.items()})

    async def _operator_ready(self) -> None:
        deadline = self.clock() + self.limits.ready_seconds
        waiting = asyncio.ensure_future(self._profiles.wait_active(self.scenario.profile, 1))
        try:
            while not waiting.done():
                self._check_operator()
                if self.clock() > deadline:
                    raise DemoFailed(
                        f"the operator did not take up the profile {self.scenario.profile!r} within "
                        f"{self.limits.ready_seconds:.0f} s: {self.operator.last_words()}"
                    )
                await asyncio.wait([waiting], timeout=_LOOK_SECONDS)
        finally:
            waiting.cancel()

    async def _create_pods(self) -> None:
        """Create half of the pods, change the profile after they are settled, and create the rest. Each half has its generation."""
        first, second = self.scenario.pods[: self._half], self.scenario.pods[self._half :]
        await self._feed.create_pods(first, self._created, self._refused, self.limits.rate)
        if second:
            await self._half_settled.wait()
            done = await self._change(second)
            await self._feed.create_pods(second[done:], self._created, self._refused, self.limits.rate)

    def _created(self, key: PodKey) -> None:
        self._tracker.created(key, self.clock())

    def _refused(self, key: PodKey, message: str) -> None:
        self._tracker.refused(key, message, self.clock())

    async def _until_settled(self, creating: asyncio.Task[None]) -> None:
        start = self.clock()
        shown = -self.progress.interval
        while not self._tracker.finished(now := self.clock()):
            snapshot = self._tracker.snapshot(now)
            if snapshot.settled >= self._half:
                self._half_settled.set()
            if now - shown >= self.progress.interval:
                shown = now
                self.progress.update(snapshot)
            if now - start > self.limits.run_seconds:
                self.progress.say(f"giving up after {self.limits.run_seconds:.0f} s")
                break
            self._check_operator()
            if creating.done():
                creating.result()
            await asyncio.sleep(_LOOK_SECONDS)
        self.progress.update(self._tracker.snapshot(self.clock()))

    async def _change(self, pods: Sequence[Manifest]) -> int:
        """Patch the profile like kubectl, and wait until the operator decides with it. Return the number of pods created for that."""
        sent, sent_at, placed = self.clock(), time.time(), self._tracker.snapshot(self.clock()).placed
        profile = self.scenario.profile
        try:
            answer = await self.client.patch(f"{PROFILES_PATH}/{profile}", self.scenario.change)
        except RequestError as error:
            self._note_change(f"the profile could not be changed: {error}")
            return 0
        stored = self.clock()
        generation = msgspec.json.decode(answer, type=SchedulingProfile).metadata.generation
        self._note_change(f"after {placed} placements: {self.scenario.change_command}")
        tried = 0
        try:
            async with asyncio.timeout(self.limits.change_seconds):
                await self._profiles.wait_shown(profile, generation)
                times = ChangeTimes(stored - sent, self.clock() - sent)
                for pod in pods[:_PROBES]:
                    tried += 1
                    fate = await self._try_one(pod)
                    if fate.decided_by == (profile, generation) and fate.created is not None and fate.bound is not None:
                        times = replace(times, created=fate.created - sent, bound=fate.bound - sent)
                        break
                else:
                    await self._profiles.wait_active(profile, generation)
        except TimeoutError:
            self._note_change(f"the operator did not take up generation {generation} within {self.limits.change_seconds:.0f} s")
            return tried
        in_effect = await self._took_effect(profile, generation)
        times = replace(times, in_effect=None if in_effect is None else max(in_effect - sent_at, 0.0))
        self._note_change(f"generation {generation} decides; after the change was sent: {times}")
        if words := busy(self.clock() - sent):
            self._note_change(words)
        return tried

    async def _took_effect(self, profile: str, generation: int) -> float | None:
        """Return when the generation took effect, from the operator's log. Wait for late lines, and return None without such a line."""
        until = self.clock() + _LOG_SECONDS
        while (found := took_effect(self.operator.log, profile, generation)) is None and self.clock() < until:  # noqa: ASYNC110 - a file
            await asyncio.sleep(_PROBE_SECONDS)
        return found

    async def _try_one(self, pod: Manifest) -> TrackedPod:
        """Create a pod and wait for its outcome."""
        fate = self._tracker.fates[pod_key(pod)]
        await self._feed.create_pods([pod], self._created, self._refused)
        while fate.state is State.WAITING:  # noqa: ASYNC110 - the tracker takes the times itself, and needs no event loop
            await asyncio.sleep(_PROBE_SECONDS)
        return fate

    def _note_change(self, text: str) -> None:
        self.change_note = f"{self.change_note}\n{text}".strip()
        self.progress.say(text)

    def _check_operator(self) -> None:
        code = self.operator.exit_code
        if code is not None:
            raise DemoFailed(f"the operator ended with code {code}: {self.operator.last_words()}")
