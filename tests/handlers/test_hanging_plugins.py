"""A plugin that does not return: the process ends, and the next one lets that profile's pods wait and places all others."""

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

import pytest

from .stage import Stage, operator
from .test_commands import RUN

SLEEPS = {
    "filter_node": ("Filter", "sleep() if pod.name.startswith('sleepy') else None; return SUCCESS"),
    "pre_enqueue": ("PreEnqueue", "sleep() if pod.name.startswith('sleepy') else None; return SUCCESS"),
    "__init__": ("New", "sleep()"),
    "pre_bind": ("PreBind", "sleep(); return SUCCESS"),
}


def install(at: Path, method: str) -> dict[str, str]:
    """A package with the plugin Sleepy, as pip would leave it; the environment of a process that finds it."""
    asked = {"filter_node": "pod, node, pods", "pre_enqueue": "pod", "__init__": "args, handle", "pre_bind": "state, pod, node"}
    written = f"{'async ' if method == 'pre_bind' else ''}def {method}(self, {asked[method]}): {SLEEPS[method][1]}"
    module = f"""
        import time
        from placewright.framework.interface import PreBindPlugin, PreEnqueuePlugin
        from placewright.framework.scalar import ScalarFilter
        from placewright.framework.status import SUCCESS

        def sleep():
            time.sleep(3600)

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
async def process(stage: Stage, environment: dict[str, str]) -> AsyncIterator[Process]:
    """`placewright run` that waits for two seconds for its loop to turn."""
    options = ("--hang-timeout", "2", "--leader-elect-lease-duration", "3s")
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
        assert "Sleepy" in running.engine._registry
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
    said = f'{point} plugin "Sleepy" did not return for 2 s, and the process was ended; '
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
