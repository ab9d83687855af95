"""A plugin that does not return: the process ends, and the next one lets that profile's pods wait and places all others.

And a pod in whose decision the process ends for a reason that nobody knows of: its successor places all others at once, and that pod last.
"""

from __future__ import annotations

import asyncio
import os
import sys
import textwrap
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from placewright.api.decisionmarks import HEAVY_WORK
from placewright.queue import suspects

from .stage import Stage, operator
from .test_commands import RUN

SLEEPS = {
    "filter_node": ("Filter", "sleep() if pod.name.startswith('sleepy') else None; return SUCCESS"),
    "pre_enqueue": ("PreEnqueue", "sleep() if pod.name.startswith('sleepy') else None; return SUCCESS"),
    "__init__": ("New", "sleep()"),
    "pre_bind": ("PreBind", "sleep(); return SUCCESS"),
}


def install(at: Path, method: str, seconds: float = 3600) -> dict[str, str]:
    """A package with the plugin Sleepy, as pip would leave it; the environment of a process that finds it."""
    asked = {"filter_node": "pod, node, pods", "pre_enqueue": "pod", "__init__": "args, handle", "pre_bind": "state, pod, node"}
    written = f"{'async ' if method == 'pre_bind' else ''}def {method}(self, {asked[method]}): {SLEEPS[method][1]}"
    module = f"""
        import time
        from placewright.framework.interface import PreBindPlugin, PreEnqueuePlugin
        from placewright.framework.scalar import ScalarFilter
        from placewright.framework.status import SUCCESS

        def sleep():
            time.sleep({seconds})

        class Sleepy(PreEnqueuePlugin, ScalarFilter, PreBindPlugin):
            name = "Sleepy"
            def pre_enqueue(self, pod): return SUCCESS
            def filter_node(self, pod, node, pods): return SUCCESS
            async def pre_bind(self, state, pod, node): return SUCCESS

        class Asleep(Sleepy):
            {written}
    """
    (at / "sleepy.py").write_text(textwrap.dedent(module))
    about = at / "sleepy-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: sleepy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[placewright.plugins]\nSleepy = sleepy:Asleep\n")
    return {**os.environ, "PYTHONPATH": f"{at}{os.pathsep}{os.environ.get('PYTHONPATH', '')}", "HOME": "/nonexistent"}


@asynccontextmanager
async def process(stage: Stage, environment: dict[str, str], patience: int = 2, lifetime: int = 3) -> AsyncIterator[Process]:
    """`placewright run` that waits for so many seconds for its loop to turn."""
    options = ("--hang-timeout", str(patience), "--leader-elect-lease-duration", f"{lifetime}s")
    started = await create_subprocess_exec(
        sys.executable, *RUN, *options, env={**environment, "KUBECONFIG": str(stage.sandbox.kubeconfig)}, stdout=PIPE, stderr=STDOUT
    )
    try:
        yield started
    finally:
        with suppress(ProcessLookupError):
            started.kill()
        await started.wait()


@asynccontextmanager
async def the_next_one(stage: Stage, installed_at: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """An operator that knows nothing but what the API server says, and has the plugin too. Here, where beats are short."""
    monkeypatch.syspath_prepend(installed_at)
    monkeypatch.delitem(sys.modules, "sleepy", raising=False)
    async with operator(stage) as running:
        assert "Sleepy" in running.engine.deciding.registry
        yield


def told(stage: Stage, name: str) -> list[str]:
    """What pods hear of their profile."""
    return [note for reason, note in stage.events(name) if reason == "NoSchedulingProfile"]


@pytest.mark.parametrize("method", list(SLEEPS))
async def test_the_next_process_places_all_pods_but_those_of_the_profile_whose_plugin_hung(
    stage: Stage, tmp_path: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = install(tmp_path, method)
    stage.profile("sleepy", schedulerName="sleepy", plugins={"multiPoint": {"enabled": [{"name": "Sleepy"}]}})
    stage.pod("sleepy-1", scheduler="sleepy")
    async with process(stage, environment) as first:
        async with asyncio.timeout(60):
            output = (await first.communicate())[0].decode()
    assert first.returncode == 1, output
    point = SLEEPS[method][0]
    said = f'{point} plugin "Sleepy" did not return for 2 s; '
    assert stage.profile_condition("PluginHanging", "sleepy")["message"].startswith(said)
    assert stage.profile_condition("Ready", "sleepy")["status"] == "False"
    assert f"profile sleepy, generation 1: {said}" in output

    async with the_next_one(stage, tmp_path, monkeypatch):
        others = stage.pods(3)
        await stage.until(lambda: stage.placed(*others))
        stage.pod("sleepy-2", scheduler="sleepy")
        await stage.until(lambda: told(stage, "sleepy-1") and told(stage, "sleepy-2"))
        (message,) = told(stage, "sleepy-2")
        assert "profile 'sleepy' is held: " + said in message
        assert not stage.placed("sleepy-1")
        assert stage.profile_condition("PluginHanging", "sleepy")["status"] == "True", "the next one goes on saying so"
        assert stage.edit_profile("sleepy", plugins={}) == 2
        await stage.until(lambda: stage.placed("sleepy-1", "sleepy-2"))
        await stage.until(lambda: stage.profile_condition("Ready", "sleepy")["status"] == "True")
        assert stage.profile_condition("PluginHanging", "sleepy") == {}
    assert stage.bound_twice() == []


async def test_a_plugin_that_returns_after_six_seconds_is_held_in_the_process_that_goes_on(stage: Stage, tmp_path: Path) -> None:
    environment = install(tmp_path, "filter_node", seconds=6)
    async with process(stage, environment, patience=60, lifetime=15) as only:
        stage.profile("sleepy", schedulerName="sleepy", plugins={"multiPoint": {"enabled": [{"name": "Sleepy"}]}})
        await stage.until(lambda: stage.profile_condition("Ready", "sleepy").get("status") == "True")
        stage.pod("sleepy-1", scheduler="sleepy")
        await stage.until(lambda: stage.profile_condition("PluginHanging", "sleepy").get("status") == "True")
        others = stage.pods(3)
        await stage.until(lambda: stage.placed(*others))
        assert 'Filter plugin "Sleepy" did not return for 5 s; ' in stage.profile_condition("PluginHanging", "sleepy")["message"]
        assert only.returncode is None
        assert stage.edit_profile("sleepy", plugins={}) == 2
        await stage.until(lambda: stage.placed("sleepy-1"))


# --- a pod in whose decision the process ends ------------------------------------------------------------------------------------------

#: How long a suspect waits after the first death, seconds: what is tested is not how long.
SOON = 1.0


def install_unknown_error(at: Path, seconds: float = 3600.0) -> dict[str, str]:
    """An environment in which deciding a pod named `poison...` takes so long in our own code; in place of an error that nobody knows of.

    It comes as a plugin that no profile enables, because plugins are loaded before anything is decided.
    """
    module = f"""
        import time
        from placewright.framework.scalar import ScalarFilter
        from placewright.queue import suspects
        from placewright.scheduler.cycle import SchedulingCycle

        suspects.FIRST_WAIT = {SOON}
        evaluate = SchedulingCycle.evaluate

        def slow(self, evaluator, pod, *asked, **named):
            if pod.name.startswith("poison"):
                time.sleep({seconds})
            return evaluate(self, evaluator, pod, *asked, **named)

        SchedulingCycle.evaluate = slow

        class Unused(ScalarFilter):
            name = "Unused"
    """
    (at / "unknownerror.py").write_text(textwrap.dedent(module))
    about = at / "unknownerror-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: unknownerror\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[placewright.plugins]\nUnused = unknownerror:Unused\n")
    return {**os.environ, "PYTHONPATH": f"{at}{os.pathsep}{os.environ.get('PYTHONPATH', '')}", "HOME": "/nonexistent"}


def poison(stage: Stage, name: str) -> None:
    """A pod that anybody may create: many terms, so that much work is expected."""
    terms = [{"topologyKey": f"k-{at}", "labelSelector": {"matchLabels": {"app": "web"}}} for at in range(HEAVY_WORK // 10)]
    preferred = [{"weight": 1, "podAffinityTerm": term} for term in terms]
    affinity = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    container = {"name": "main", "image": f"example.test/{name}", "resources": {"requests": {"cpu": "100m"}}}
    spec = {"schedulerName": "placewright", "containers": [container], "affinity": affinity}
    stage._create(stage._pods, {"metadata": {"name": name}, "spec": spec})


def marks(stage: Stage) -> list[dict[str, Any]]:
    """The marks that the API server keeps, as (who decides, deaths)."""
    key = stage.sandbox.resource("apps", "v1", "controllerrevisions").key
    stored = [one.object for one in stage.sandbox.store.listed(key)]
    return [one for one in stored if "placewright.dev/decision-mark" in one["metadata"].get("labels", {})]


def deciders(stage: Stage) -> set[str]:
    """Who is deciding what a mark speaks for."""
    return {one["metadata"]["annotations"].get("placewright.dev/deciding", "") for one in marks(stage)} - {""}


def deaths(stage: Stage) -> list[int]:
    return [one.get("revision", 0) for one in marks(stage)]


async def test_innocent_pods_in_flight_at_a_sigkill_are_placed_at_once_and_the_same_poison_under_a_new_uid_stays_demoted(
    stage: Stage, tmp_path: Path
) -> None:
    environment = install_unknown_error(tmp_path)
    poison(stage, "poison-1")
    async with process(stage, environment, 600) as first:
        await stage.until(lambda: deciders(stage), "the decision is marked before it begins")
        (killed,) = deciders(stage)
        innocents = stage.pods(5)
        first.kill()
        await first.wait()
    stage.delete_pod("poison-1")
    poison(stage, "poison-2")
    async with process(stage, environment, 600) as second:
        await stage.until(lambda: stage.placed(*innocents))
        assert deaths(stage) == [1]
        await stage.until(lambda: deciders(stage), "the poison is tried again, after all others")
        assert deciders(stage) != {killed}
        later = stage.pods(5)
        second.kill()
        await second.wait()
    stage.delete_pod("poison-2")
    poison(stage, "poison-3")
    async with process(stage, environment, 600):
        await stage.until(lambda: stage.placed(*later))
        await stage.until(lambda: "2 times" in stage.condition("poison-3").get("message", ""))
        assert "not before 9m" in stage.condition("poison-3")["message"] or "not before 10m" in stage.condition("poison-3")["message"]
        last = stage.pods(3)
        await stage.until(lambda: stage.placed(*last))
        assert deaths(stage) == [2]
        assert not stage.placed("poison-3")
    assert stage.bound_twice() == []


async def test_an_ordinary_pod_in_whose_decision_the_loop_hangs_is_marked_and_placed_after_all_others(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.pod("poison-1")
    async with process(stage, install_unknown_error(tmp_path), 2) as first:
        await stage.until(lambda: deciders(stage), "the watchdog marks it")
        others = stage.pods(3, cpu="200m")
        async with asyncio.timeout(60):
            assert await first.wait() == 1
    monkeypatch.setattr(suspects, "FIRST_WAIT", SOON)
    async with operator(stage):
        await stage.until(lambda: stage.placed(*others))
        assert deaths(stage) == [1]
        await stage.until(lambda: stage.placed("poison-1"))
        await stage.until(lambda: not marks(stage), "success takes the mark away")
    order = [uid for uid, _ in stage.bindings]
    assert order.index(stage.show("poison-1")["metadata"]["uid"]) == len(order) - 1
    assert stage.bound_twice() == []


async def test_a_decision_that_was_slow_and_ended_leaves_no_mark(stage: Stage, tmp_path: Path) -> None:
    stage.pod("poison-1")
    async with process(stage, install_unknown_error(tmp_path, 3.5), 6, lifetime=15):
        await stage.until(lambda: marks(stage), "the watchdog marks it")
        await stage.until(lambda: not marks(stage), "it is decided, and the mark goes")
        await stage.until(lambda: stage.placed("poison-1"))


async def test_an_operator_that_ends_in_order_leaves_no_mark_and_ordinary_pods_make_none(stage: Stage) -> None:
    seen: list[int] = []
    stage.sandbox.store.listeners.append(lambda _key, _change: seen.append(len(marks(stage))))
    async with operator(stage) as running:
        names = stage.pods(20)
        await stage.until(lambda: stage.placed(*names))
        assert set(seen) == {0}
        poison(stage, "large")
        await stage.until(lambda: stage.placed("large"))
        await running.end()
    assert marks(stage) == []
    assert 1 in seen, "a decision of much work was marked"
