"""One process after another, and one inside the other: start, restart of Kopf, takeover, and the end."""

from __future__ import annotations

import asyncio
import logging
import signal
import warnings
from pathlib import Path
from typing import Any

import kopf
import pytest

from kubesandbox.faults import Rule
from kubesandbox.server import Sandbox, SandboxOptions
from placewright.api.workloads import Service
from placewright.engine.discovery import CallingSink
from placewright.engine.engine import build_engine
from placewright.handlers import lifecycle
from placewright.handlers import operator as module
from placewright.handlers.operator import EngineBroken, run_engine
from placewright.kube.auth.login import ClusterAccess, load_config
from placewright.kube.reflector import Reflector, Source
from placewright.leadership.leaseobject import CannotElect

from .stage import DEADLINE, FAST, HELD, Stage, operator


def break_kopf(stage: Stage) -> None:
    """What Kopf cannot bear: 410 as the status of a watch request. Our own reflector of pods meets it, too, and lists again."""
    stage.sandbox.faults.add(Rule(method="GET", path="/api/v1/pods", watch=True, code=410, times=2))
    stage.sandbox.faults.drop_watches("pods")


# --- Kopf ends and comes back -----------------------------------------------------------------------------------------------------


async def test_a_broken_watch_ends_kopf_but_not_the_scheduler(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.pod("big", cpu="8")
    async with operator(stage) as running:
        await stage.until(lambda: stage.condition("big"))
        uid = stage.show("big")["metadata"]["uid"]
        queued = running.engine.deciding.queue.get(uid)
        break_kopf(stage)
        await stage.until(lambda: "Kopf's watching ended" in caplog.text)
        assert "it is started again, 1 pods are kept in the queue" in caplog.text
        assert running.engine.deciding.queue.get(uid) is queued, "with its attempts and backoff"
        names = stage.pods(3)
        await stage.until(lambda: stage.placed(*names))
        assert running.engine.deciding.queue.get(uid) is queued
    assert stage.bound_twice() == []


async def test_bindings_under_way_survive_the_end_of_kopf(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """Kopf itself would take every task of the loop for its own, and cancel it."""
    slow = stage.sandbox.faults.add(Rule(method="POST", path="/binding", latency=HELD, times=1))
    stage.pod("web")
    async with operator(stage) as running:
        await stage.until(lambda: slow.met == 1)
        break_kopf(stage)
        await stage.until(lambda: "Kopf's watching ended" in caplog.text)
        assert not stage.placed("web")
        stage.sandbox.faults.release()
        await stage.until(lambda: stage.placed("web"))
        await stage.until(lambda: running.agrees_with(stage))
        assert len(running.engine.deciding.queue.in_flight) == 0
    assert stage.bound_twice() == []


async def test_every_part_of_the_engine_survives_the_end_of_kopf(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.leading.leadership.active)
        parts = running.engine._tasks()
        break_kopf(stage)
        await stage.until(lambda: "Kopf's watching ended" in caplog.text)
        names = stage.pods(1)
        await stage.until(lambda: stage.placed(*names))
        assert not [part.get_name() for part in parts if part.done()]


async def test_a_restarted_kopf_does_not_have_the_process_killed_later(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kopf, ended by anything but its stop flag, plans a SIGKILL of the whole process for some minutes later."""
    planned: list[object] = []
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.leading.leadership.active)
        loop = asyncio.get_running_loop()
        call_later = loop.call_later

        def watched(delay: float, callback: Any, *args: Any, **options: Any) -> asyncio.TimerHandle:
            if callback is signal.pthread_kill:
                planned.append(args)
            return call_later(delay, callback, *args, **options)

        monkeypatch.setattr(loop, "call_later", watched)
        break_kopf(stage)
        names = stage.pods(1)
        await stage.until(lambda: stage.placed(*names))
    assert planned == []


# --- two of them -------------------------------------------------------------------------------------------------------------------


async def test_of_two_one_schedules_and_the_other_takes_over_when_the_first_ends(stage: Stage) -> None:
    async with operator(stage) as first:
        await stage.until(lambda: first.engine.leading.leadership.active)
        async with operator(stage) as second:
            await stage.until(lambda: len(stage.peers()) == 2)
            names = stage.pods(20)
            await stage.until(lambda: stage.placed(*names))
            assert not second.engine.leading.leadership.active
            await stage.until(lambda: first.engine.deciding.scheduler.counts.bound == 20)
            assert second.engine.deciding.scheduler.counts.bound == 0
            await first.end()
            await stage.until(lambda: second.engine.leading.leadership.active)
            names = stage.pods(20)
            await stage.until(lambda: stage.placed(*names))
            await stage.until(lambda: second.engine.deciding.scheduler.counts.bound == 20)
    assert stage.bound_twice() == []
    assert stage.peers() == set()


async def test_a_replica_that_ends_finishes_its_bindings_before_it_leaves_the_peering(stage: Stage) -> None:
    slow = stage.sandbox.faults.add(Rule(method="POST", path="/binding", latency=HELD, times=1))
    stage.pod("web")
    async with operator(stage) as running:
        await stage.until(lambda: slow.met == 1)
        stage.pods(5)
        ending = asyncio.create_task(running.end())
        await stage.until(lambda: running.engine.ending)
        stage.sandbox.faults.release()
        await ending
    assert stage.placed("web")
    assert stage.peers_when_bound == [{running.engine.leading.replica.identity}], "bound once, while it was still the elected one"
    assert stage.peers() == set()


# --- the end -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part", ["scheduler", "reconciler", "peering watch", "reflector /api/v1/nodes", "status 0", "events 15", "group status 1"]
)
async def test_a_part_that_dies_ends_the_operator_with_an_error(stage: Stage, part: str) -> None:
    """A process that only looks alive is worse than one that is started again."""
    async with operator(stage) as running:
        names = stage.pods(1)
        await stage.until(lambda: stage.placed(*names))
        (victim,) = [task for task in asyncio.all_tasks() if task.get_name() == part]
        victim.cancel()
        with pytest.raises(EngineBroken, match=f"{part} was cancelled; the operator ends"):
            async with asyncio.timeout(DEADLINE):
                await running.task
    assert stage.peers() == set(), "it left in order, for another to take over at once"


async def test_a_reflector_that_was_added_later_and_dies_ends_the_operator(stage: Stage) -> None:
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.leading.leadership.active)
        reflectors = running.engine.reading.reflectors
        reflectors.include(Reflector(running.engine.writing.client, Source("/api/v1/endpoints", Service), CallingSink[Service]()))
        reflectors.tasks[-1].cancel()
        with pytest.raises(EngineBroken, match="reflector /api/v1/endpoints was cancelled"):
            async with asyncio.timeout(DEADLINE):
                await running.task


async def test_what_broke_is_logged(stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.leading.leadership.active)

        def broken() -> None:
            raise RuntimeError("a heap is no heap")

        monkeypatch.setattr(running.engine.deciding.queue, "pop", broken)
        stage.pods(1)
        with pytest.raises(EngineBroken, match=r"scheduler ended \(RuntimeError: a heap is no heap\)"):
            async with asyncio.timeout(DEADLINE):
                await running.task
    assert "scheduler broke" in caplog.text


def test_an_operator_that_broke_has_exit_code_1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def breaks(*_: object) -> None:
        raise EngineBroken("scheduler was cancelled; the operator ends, to be started again")

    monkeypatch.setattr(module, "_run_until_signal", breaks)
    monkeypatch.setattr(module, "load_config", lambda *_: ClusterAccess("https://127.0.0.1:1"))
    monkeypatch.setattr(module.gc, "set_threshold", lambda *_: None)
    assert module.run() == 1
    assert "scheduler was cancelled; the operator ends" in caplog.text


async def test_under_kopf_run_a_part_that_dies_ends_the_process_by_the_signal_that_kopf_knows(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []
    monkeypatch.setattr(lifecycle.signal, "raise_signal", sent.append)
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.leading.leadership.active)
        watching = asyncio.create_task(lifecycle._end_with(running.engine))
        await asyncio.sleep(0)
        assert sent == []
        running.engine._tasks()[0].cancel()
        await watching
        assert sent == [signal.SIGTERM]
        with pytest.raises(EngineBroken):
            await running.task


async def test_nothing_is_left_behind(stage: Stage) -> None:
    before = asyncio.all_tasks()
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always")
        async with operator(stage) as running:
            names = stage.pods(1)
            await stage.until(lambda: stage.placed(*names))
            await running.end()
        await asyncio.sleep(0)
    # What the sandbox still does for connections that were just closed is not ours.
    ours = [task for task in asyncio.all_tasks() - before if "sandbox" not in repr(task) and "web_protocol" not in repr(task)]
    assert ours == []
    assert [str(one.message) for one in complaints if "nclosed" in str(one.message)] == []


async def test_a_start_that_is_given_up_ends_at_once_and_closes_its_connections(stage: Stage) -> None:
    stage.sandbox.faults.refuse_connections(3600.0)
    async with operator(stage) as running:
        await stage.until(lambda: running.engine.writing.client.away.away_since is not None)
        await running.end()
    assert running.engine.writing.client._session.closed


# --- the API server is away ---------------------------------------------------------------------------------------------------------


def away_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if " is away: " in record.message or " is back after " in record.message]


async def test_an_api_server_that_is_away_at_the_start_is_waited_for_and_said_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.sandbox.faults.refuse_connections(0.3)
    async with operator(stage):
        names = stage.pods(3)
        await stage.until(lambda: stage.placed(*names))
    away, back = away_lines(caplog)
    assert "is away" in away
    assert "is back" in back


async def test_an_api_server_that_goes_away_later_loses_no_pod_and_is_said_once(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    async with operator(stage) as running:
        names = stage.pods(5)
        await stage.until(lambda: stage.placed(*names) and stage.events(names[-1]) and running.agrees_with(stage))
        stage.sandbox.faults.refuse_connections(0.3)
        names += stage.pods(10)
        await stage.until(lambda: stage.placed(*names))
        await stage.until(lambda: running.agrees_with(stage))
    assert stage.bound_twice() == []
    assert len([line for line in away_lines(caplog) if "is away" in line]) == 1


async def test_an_api_server_that_goes_away_amid_bindings_loses_no_pod(stage: Stage) -> None:
    async with operator(stage) as running:
        names = stage.pods(50)
        await stage.until(lambda: bool(stage.bindings))
        stage.sandbox.faults.refuse_connections(0.5)
        await stage.until(lambda: stage.placed(*names))
        await stage.until(lambda: running.agrees_with(stage))
    assert stage.bound_twice() == []


async def test_an_api_server_without_the_peering_definition_is_refused_in_one_sentence() -> None:
    async with Sandbox(SandboxOptions()) as sandbox:
        engine = build_engine(load_config(str(sandbox.kubeconfig)), FAST)
        with pytest.raises(CannotElect, match="apply crds/ first"):
            await run_engine(engine, asyncio.Event())
        assert engine.writing.client._session.closed


# --- what is relied upon of Kopf ---------------------------------------------------------------------------------------------------


async def test_kopf_still_ends_its_root_tasks_when_they_are_cancelled_and_leaves_others_alone() -> None:
    """`kopfrunning` stands on this: public names, documented as the two halves of `kopf.operator`."""
    ours = asyncio.create_task(asyncio.Event().wait())
    registry = kopf.OperatorRegistry()
    tasks = await kopf.spawn_tasks(registry=registry, clusterwide=True, standalone=True, stop_flag=asyncio.Event())
    assert {"stop-flag checker", "startup/cleanup activities"} <= {task.get_name() for task in tasks}
    for task in tasks:
        task.cancel()
    done, late = await asyncio.wait(tasks, timeout=DEADLINE)
    assert done
    assert not late
    assert not ours.done()
    ours.cancel()


def test_kopf_still_has_the_settings_that_are_set() -> None:
    """A setting that moved would be set on nothing, without a word."""
    settings = kopf.OperatorSettings()
    for name in (
        "watching.field_selectors", "watching.chunk_size", "persistence.diffbase_storage", "posting.enabled", "queueing.worker_limit",
        "queueing.idle_timeout", "peering.name", "peering.clusterwide", "peering.mandatory", "peering.priority", "peering.lifetime",
        "peering.stealth", "process.ultimate_exiting_timeout",
    ):  # fmt: skip
        group, _, field = name.partition(".")
        assert hasattr(getattr(settings, group), field), name
    assert logging.getLogger("kopf.objects").parent is not None
