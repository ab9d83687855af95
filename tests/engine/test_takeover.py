"""One replica after another, each a process of its own: a clean end hands over at once, a killed leader within its lifetime."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from faults.warm import Forked
from handlers.stage import DEADLINE, FAST, HELD, Stage, operator
from kubesandbox.faults import Rule
from placewright.api.objects import Pod
from placewright.engine import takeover
from placewright.engine.takeover import QUIET_SECONDS, Takeover, TakeoverTooLong, caught_up, reached
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.errors import Unreachable
from placewright.kube.reflector import Reflector, Source
from placewright.leadership.peering import Listener
from placewright_lab.demo.operatorprocess import operator_command

LIFETIME = 6
#: A guard against hanging, not a promise: what is promised is printed.
GENEROUS = 5.0
#: Between two pods, in seconds: about fifty a second.
_PACE = 0.02


class Shift:
    """Replicas at work on one stage.

    Attributes:
        binds: when each pod was bound, and which pod of ours held the Lease then.
    """

    def __init__(self, stage: Stage, folder: Path) -> None:
        self.stage = stage
        self.binds: list[tuple[float, str]] = []
        self._folder = folder
        self._processes: list[Forked] = []
        stage.sandbox.store.listeners.append(lambda *_: self._note())

    def _note(self) -> None:
        self.binds += [(time.monotonic(), self.leader())] * (len(self.stage.bindings) - len(self.binds))

    def bound_by(self, leader: str) -> list[float]:
        """When pods were bound while this one held the Lease."""
        return [at for at, holder in self.binds if holder == leader]

    async def replica(self, name: str) -> Forked:
        """Another replica, once it is among the peers."""
        command = [*operator_command(self.stage.sandbox.kubeconfig), "--leader-elect-lease-duration", f"{LIFETIME}s"]
        process = Forked(command, self._folder / f"{name}.log", os.environ | {"POD_NAME": name})
        self._processes.append(process)
        await self.stage.until(lambda: any(each.startswith(f"{name}/") for each in self.stage.peers()), f"{name} is among the peers")
        return process

    async def end(self) -> None:
        for each in self._processes:
            if each.returncode is None:
                with contextlib.suppress(ProcessLookupError):  # it has ended, and its exit code is on the way
                    os.kill(each.pid, signal.SIGTERM)
        async with asyncio.timeout(DEADLINE):
            await asyncio.gather(*(each.wait() for each in self._processes))

    def leader(self) -> str:
        """Name of the pod that holds the Lease."""
        return str(lease(self.stage).get("holderIdentity") or "").partition("/")[0]


def lease(stage: Stage) -> dict[str, Any]:
    """What the Lease says."""
    found = stage.sandbox.store.get(stage.sandbox.resource("coordination.k8s.io", "v1", "leases").key, "placewright-system", "placewright")
    return dict(found.object["spec"]) if found is not None else {}


@asynccontextmanager
async def new_shift(stage: Stage, folder: Path) -> AsyncIterator[Shift]:
    shift = Shift(stage, folder)
    try:
        yield shift
    finally:
        await shift.end()


async def seconds_to_first_bind(shift: Shift, leader: str, event: Callable[[], None]) -> float:
    """How long after `event` the first pod is bound while that one leads; pods come all the time."""

    async def come() -> None:
        while True:
            shift.stage.pods(1)
            await asyncio.sleep(_PACE)

    coming = asyncio.create_task(come())
    await asyncio.sleep(_PACE)
    began = time.monotonic()
    event()
    try:
        await shift.stage.until(lambda: shift.bound_by(leader), f"{leader} binds")
    finally:
        coming.cancel()
    return shift.bound_by(leader)[0] - began


async def at_work(shift: Shift) -> None:
    """Some pods are bound."""
    names = shift.stage.pods(5)
    await shift.stage.until(lambda: shift.stage.placed(*names), "pods are placed")


@pytest.mark.parametrize(("number", "promised"), [(signal.SIGTERM, 2.0), (signal.SIGKILL, LIFETIME + 2.0)])
async def test_the_next_replica_binds_in_time(
    stage: Stage, tmp_path: Path, number: signal.Signals, promised: float,
    record_property: Callable[[str, object], None],
) -> None:  # fmt: skip
    async with new_shift(stage, tmp_path) as shift:
        first = await shift.replica("first")
        await at_work(shift)
        await shift.replica("second")
        assert shift.leader() == "first"
        took = await seconds_to_first_bind(shift, "second", lambda: os.kill(first.pid, number))
        print(f"{number.name} of the leader: next first bind after {took:.2f} s (promised {promised:g} s)")  # noqa: T201
        record_property("seconds", took)
        assert shift.leader() == "second"
        assert lease(stage)["leaseTransitions"] == 1
        assert took < promised + GENEROUS
    assert stage.bound_twice() == []


async def test_every_change_of_leader_is_an_event_about_the_lease(stage: Stage, tmp_path: Path) -> None:
    async with new_shift(stage, tmp_path) as shift:
        first = await shift.replica("first")
        await at_work(shift)
        await shift.replica("second")
        os.kill(first.pid, signal.SIGTERM)
        await stage.until(lambda: shift.leader() == "second")
        await first.wait()
        await stage.until(lambda: len(notes(stage)) == 3)
        told = [(note.partition("/")[0], note.partition(" ")[2]) for note in notes(stage)]
        assert sorted(told) == [("first", "became leader"), ("first", "stopped leading"), ("second", "became leader")]
    assert first.returncode == 0


def notes(stage: Stage) -> list[str]:
    return [note for reason, note in stage.events("placewright") if reason == "LeaderElection"]


# --- what does not cost the lead ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", ["a slow API server", "a queue of requests", "both"])
async def test_the_lead_outlasts(stage: Stage, trouble: str) -> None:
    options = replace(FAST, peering_lifetime=4, qps=0.0 if trouble == "a slow API server" else 10.0, burst=40)
    async with operator(stage, options) as running:
        (first,) = stage.pods(1)
        await stage.until(lambda: stage.placed(first))
        lost: list[bool] = []
        running.engine.leading.leadership.on_change(lost.append)
        if trouble != "a queue of requests":
            stage.sandbox.faults.add(Rule(path="/api/v1/", watch=False, latency=2 * options.peering_lifetime))
        stage.pods(60)
        renewals = {str(lease(stage)["renewTime"])}
        stage.sandbox.store.listeners.append(lambda *_: renewals.add(str(lease(stage)["renewTime"])))
        await stage.until(lambda: len(renewals) > 9, "more than a lifetime passes")
        assert not lost and running.engine.leading.leadership.active and running.engine.leading.leadership.term == 1
        stage.sandbox.faults.clear()
        stage.sandbox.faults.release()
        running.unlimited()


# --- between two terms of one replica --------------------------------------------------------------------------------------------


def give_lease_to(stage: Stage, holder: str) -> None:
    """As somebody does who edits it."""
    resource = stage.sandbox.resource("coordination.k8s.io", "v1", "leases")
    stage.sandbox.writes.modify(
        resource, "placewright-system", "placewright", lambda found: found.update(spec={**found["spec"], "holderIdentity": holder})
    )


async def test_a_binding_that_waits_to_be_sent_again_is_not_sent_in_another_term(stage: Stage) -> None:
    busy = stage.sandbox.faults.add(Rule(method="POST", path="/binding", code=429, retry_after=4))
    async with operator(stage) as running:
        (name,) = stage.pods(1)
        await stage.until(lambda: busy.met == 1)
        give_lease_to(stage, "somebody-else")
        stage.sandbox.faults.clear()
        await stage.until(lambda: not running.engine.leading.takeover.active)
        await stage.until(lambda: not running.engine.deciding.scheduler._tasks, "the binding is given up")
        assert not stage.placed(name) and not running.engine.deciding.cluster.assumed_count
        await stage.until(lambda: stage.placed(name), "it is decided anew when the Lease is ours again")
        assert running.engine.leading.leadership.term == 2
        assert str(lease(stage)["holderIdentity"]) == running.engine.leading.replica.identity
    assert stage.bound_twice() == []


@pytest.mark.parametrize("arrived", [True, False])
async def test_a_binding_without_an_answer_is_asked_for_before_the_next_term_begins(stage: Stage, arrived: bool) -> None:
    fault = {"lose_answer": True} if arrived else {"code": 500}
    stage.sandbox.faults.add(Rule(method="POST", path="/binding", times=1, **fault))
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.started)
        running.engine.writing.binder.looks = 1
        (name,) = stage.pods(1)
        stage.sandbox.faults.add(Rule(method="GET", path=f"/pods/{name}", code=500, times=1))
        binding = running.engine.deciding.scheduler.binding
        await stage.until(lambda: binding.unresolved or stage.placed(name))
        give_lease_to(stage, "somebody-else")
        await stage.until(lambda: running.engine.leading.leadership.term == 2 and running.engine.leading.takeover.active)
        assert not binding.unresolved, "nothing is assumed of which nobody knows"
        await stage.until(lambda: stage.placed(name) and running.agrees_with(stage))
    assert stage.bound_twice() == []


# --- the order of a takeover -----------------------------------------------------------------------------------------------------


class Leader:
    """A leadership that does what the test says."""

    def __init__(self) -> None:
        self.active = False
        self.term = 0
        self._listeners: list[Listener] = []
        self._turned = asyncio.Event()

    def on_change(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def review(self) -> None:
        pass

    async def wait_active(self) -> None:
        while not self.active:
            self._turned.clear()
            await self._turned.wait()

    def turn(self, active: bool, *, same_term: bool = False) -> None:
        self.active = active
        self.term += active and not same_term
        self._turned.set()
        for listener in self._listeners:
            listener(active)


class Desk:
    """A takeover under way, and what it did, in order."""

    def __init__(self, limit: float = 600.0) -> None:
        self.leader = Leader()
        self.did: list[str] = []
        self.news = asyncio.Event()
        self.ready = asyncio.Event()
        self.problems = 0
        self.takeover = Takeover(self.leader, self.prepare, lambda: self.note("end"), limit=limit)

    def note(self, what: str) -> None:
        self.did.append(what)
        self.news.set()

    async def until(self, *did: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while self.did != list(did):
                self.news.clear()
                await self.news.wait()

    async def prepare(self) -> None:
        self.note("prepare")
        if self.problems:
            self.problems -= 1
            raise Unreachable("away")
        try:
            await self.ready.wait()
        except asyncio.CancelledError:
            self.note("given up")
            raise
        self.note("prepared")


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    made = Desk()
    task = asyncio.create_task(made.takeover.run())
    yield made
    task.cancel()


async def test_decisions_begin_when_the_term_is_prepared_and_end_with_it(desk: Desk) -> None:
    desk.leader.turn(True)
    await desk.until("prepare")
    assert not desk.takeover.active
    desk.ready.set()
    await asyncio.wait_for(desk.takeover.wait_active(), DEADLINE)
    assert desk.takeover.active
    desk.leader.turn(False)
    assert not desk.takeover.active
    assert desk.did == ["prepare", "prepared", "end"]


@pytest.mark.parametrize("problems", [0, 10_000])
async def test_a_lead_with_which_decisions_do_not_begin_in_time_is_given_up(problems: int) -> None:
    """What an earlier term left does not end, or the API server answers for the Lease and for nothing else."""
    desk = Desk(limit=0.05)
    desk.problems = problems
    desk.leader.turn(True)
    with pytest.raises(TakeoverTooLong, match=r"within 0\.05 s of taking the lead"):
        await asyncio.wait_for(desk.takeover.run(), DEADLINE)
    assert not desk.takeover.active


async def test_each_term_has_its_own_time_and_who_lost_the_lead_meanwhile_gives_nothing_up() -> None:
    desk = Desk(limit=0.2)
    running = asyncio.create_task(desk.takeover.run())
    desk.leader.turn(True)
    await desk.until("prepare")
    assert desk.takeover.seconds_without_decisions > 0
    desk.leader.turn(False)
    assert desk.takeover.seconds_without_decisions == 0
    await desk.until("prepare", "given up")
    desk.ready.set()
    desk.leader.turn(True)
    await asyncio.wait_for(desk.takeover.wait_active(), DEADLINE)
    assert desk.takeover.seconds_without_decisions == 0
    assert not running.done()
    running.cancel()


async def test_a_lead_that_is_back_in_the_same_term_has_its_whole_time_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A renewal came late, long after the term had begun, and nobody else has led in between."""
    now = 1000.0
    monkeypatch.setattr(takeover, "time", SimpleNamespace(monotonic=lambda: now))
    desk = Desk(limit=120.0)
    running = asyncio.create_task(desk.takeover.run())
    desk.ready.set()
    desk.leader.turn(True)
    await asyncio.wait_for(desk.takeover.wait_active(), DEADLINE)
    now += 1000.0
    desk.leader.turn(False)
    desk.leader.turn(True, same_term=True)
    await asyncio.wait_for(desk.takeover.wait_active(), DEADLINE)
    assert desk.did == ["prepare", "prepared", "end", "prepare", "prepared"]
    assert not running.done()
    running.cancel()


async def test_a_preparation_that_outlasts_a_break_of_the_lead_gives_nothing_up() -> None:
    desk = Desk(limit=0.2)
    running = asyncio.create_task(desk.takeover.run())
    desk.leader.turn(True)
    await desk.until("prepare")
    desk.leader.turn(False)
    desk.leader.turn(True, same_term=True)
    await desk.until("prepare", "given up", "prepare")
    assert not desk.takeover.active
    desk.ready.set()
    await asyncio.wait_for(desk.takeover.wait_active(), DEADLINE)
    assert not running.done()
    running.cancel()


async def test_each_term_is_prepared_anew(desk: Desk) -> None:
    desk.ready.set()
    for _ in range(2):
        desk.leader.turn(True)
        await asyncio.wait_for(desk.takeover.wait_active(), DEADLINE)
        desk.leader.turn(False)
    assert desk.did == ["prepare", "prepared", "end"] * 2


async def test_a_lead_that_is_lost_while_it_is_prepared_does_not_begin(desk: Desk) -> None:
    desk.leader.turn(True)
    await desk.until("prepare")
    desk.leader.turn(False)
    desk.leader.turn(True)
    desk.ready.set()
    await desk.until("prepare", "prepared", "prepare", "prepared")
    await asyncio.wait_for(desk.takeover.wait_active(), DEADLINE)
    assert desk.takeover.active and desk.leader.term == 2


async def test_what_fails_is_prepared_again(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    desk.problems = 2
    desk.ready.set()
    desk.leader.turn(True)
    await asyncio.wait_for(desk.takeover.wait_active(), DEADLINE)
    assert desk.did == ["prepare", "prepare", "prepare", "prepared"]
    assert "takeover: away; it is tried again" in caplog.text


async def test_waiting_for_another_try_ends_with_the_term(desk: Desk) -> None:
    desk.ready.set()
    desk.leader.turn(True)
    await asyncio.wait_for(desk.takeover.wait_active(), DEADLINE)
    waiting = asyncio.create_task(desk.takeover.sleep(3600))
    await asyncio.sleep(0)
    desk.leader.turn(False)
    await asyncio.wait_for(waiting, DEADLINE)
    began = time.monotonic()
    await desk.takeover.sleep(QUIET_SECONDS)
    assert time.monotonic() - began >= QUIET_SECONDS, "and afterwards nobody asks in a tight loop"


# --- whether the caches are as new as the lead -----------------------------------------------------------------------------------


class Ignore:
    """Who hears a reflector and does not care."""

    def changed(self, old: Pod | None, new: Pod) -> None: ...

    def deleted(self, old: Pod) -> None: ...

    def synced(self) -> None: ...


@asynccontextmanager
async def reflecting(stage: Stage) -> AsyncIterator[tuple[ApiClient, Reflector[Pod]]]:
    """A reflector of pods that watches."""
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as client:
        reflector = Reflector(client, Source("/api/v1/pods", Pod), Ignore())
        task = asyncio.create_task(reflector.run())
        await stage.until(lambda: reflector.counts.watches == 1)
        yield client, reflector
        task.cancel()


async def test_a_watch_that_is_behind_is_waited_for(stage: Stage) -> None:
    async with reflecting(stage) as (client, reflector):
        names = stage.pods(50)
        await asyncio.wait_for(caught_up(client, [reflector]), DEADLINE)
        assert {f"default/{name}" for name in names} <= reflector.store.keys()
        assert reflector.counts.lists == 1, "it came to the version by itself"


async def test_a_watch_that_says_nothing_is_not_believed(stage: Stage) -> None:
    async with reflecting(stage) as (client, reflector):
        stage.sandbox.faults.add(Rule(path="/api/v1/pods", watch=True, latency=HELD))
        stage.sandbox.faults.drop_watches("pods")
        names = stage.pods(50)
        await asyncio.wait_for(caught_up(client, [reflector]), DEADLINE)
        assert {f"default/{name}" for name in names} == reflector.store.keys()
        stage.sandbox.faults.clear()
        stage.sandbox.faults.release()


async def test_a_watch_that_brings_old_news_all_the_time_is_not_believed_either(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takeover, "_LONGEST_SECONDS", 0.2)
    async with reflecting(stage) as (client, reflector):
        stage.sandbox.faults.add(Rule(path="/api/v1/pods", watch=True, latency=HELD))
        stage.sandbox.faults.drop_watches("pods")
        names = stage.pods(5)
        busy = asyncio.create_task(count_up(reflector))
        await asyncio.wait_for(caught_up(client, [reflector]), DEADLINE)
        busy.cancel()
        assert {f"default/{name}" for name in names} == reflector.store.keys()
        stage.sandbox.faults.clear()
        stage.sandbox.faults.release()


async def count_up(reflector: Reflector[Pod]) -> None:
    """As if events came."""
    while True:
        reflector.counts.events += 1
        await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("version", "wanted", "answer"),
    [
        ("10", "9", True), ("9", "10", False), ("10", "10", True), ("", "10", False), ("", "", False),
        ("abc", "abc", True), ("abc", "abd", False), ("10", "x", False),
    ],
)  # fmt: skip
def test_versions_that_are_no_numbers_are_as_new_only_where_they_are_the_same(version: str, wanted: str, answer: bool) -> None:
    assert reached(version, wanted) is answer


async def test_a_replica_that_takes_the_lead_again_decides_by_profiles_as_they_are_then(stage: Stage) -> None:
    async with operator(stage) as running:
        (first,) = stage.pods(1)
        await stage.until(lambda: stage.placed(first))
        stage.sandbox.faults.add(Rule(path="/schedulingprofiles", watch=True, latency=HELD))
        stage.sandbox.faults.drop_watches("schedulingprofiles")
        stage.profile("another", schedulerName="another")
        generation = stage.edit_profile(weights={"NodeResourcesFit": 7})
        give_lease_to(stage, "somebody-else")
        await stage.until(lambda: running.engine.leading.leadership.term == 2 and running.engine.leading.takeover.active)
        active = running.engine.deciding.live.active
        assert active["placewright"].profile.generation == generation
        assert "another" in active
        stage.delete_profile("another")
        give_lease_to(stage, "somebody-else")
        await stage.until(lambda: running.engine.leading.leadership.term == 3 and running.engine.leading.takeover.active)
        assert "another" not in running.engine.deciding.live.active
        stage.sandbox.faults.clear()
        stage.sandbox.faults.release()


async def test_verdicts_that_wait_when_the_lead_is_lost_are_not_written(stage: Stage) -> None:
    async with operator(stage) as running:
        (first,) = stage.pods(1)
        await stage.until(lambda: stage.placed(first))
        held = stage.sandbox.faults.add(Rule(method="PATCH", path="/status", latency=HELD))
        names = stage.pods(30, cpu="1000")
        await stage.until(lambda: held.met and running.engine.deciding.queue.sizes().unschedulable == len(names))
        waiting = len(running.engine.writing.status.waiting)
        give_lease_to(stage, "somebody-else")
        await stage.until(lambda: not running.engine.leading.takeover.active)
        assert waiting and not running.engine.writing.status.waiting
        stage.sandbox.faults.clear()
        stage.sandbox.faults.release()
        await stage.until(lambda: running.engine.leading.leadership.term == 2)
