"""Profiles from a file: a cluster that never heard of SchedulingProfile, and an operator that asks for none."""

from __future__ import annotations

import asyncio
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kubesandbox.faults import Rule
from kubesandbox.server import Sandbox, SandboxOptions
from placewright.api.objects import ObjectMeta
from placewright.api.profile import ProfileSpec, SchedulingProfile
from placewright.engine.engine import build_engine
from placewright.handlers.operator import run_engine
from placewright.kube.auth.login import load_config
from placewright.kube.errors import ConfigError

from .stage import CRDS, FAST, Stage, operator
from .test_commands import RUN, ended, process

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: placewright
- schedulerName: packer
  pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]
"""


def from_file(**spec: Any) -> SchedulingProfile:
    made = ProfileSpec(scheduler_name="placewright", **spec)
    return SchedulingProfile(metadata=ObjectMeta(name="from-file"), spec=made)


WITH_FILE = replace(FAST, profiles=(from_file(),))
ALONE = replace(WITH_FILE, leader_elect=False)


async def test_pods_are_placed_and_nobody_asks_for_profiles(stage: Stage) -> None:
    asked = stage.sandbox.faults.add(Rule(path="/schedulingprofiles", code=500, times=1000))
    names = stage.pods(5)
    async with operator(stage, WITH_FILE) as running:
        await stage.until(lambda: stage.placed(*names))
        await stage.until(lambda: running.agrees_with(stage))
        assert {decision.profile for name in names if (decision := stage.decision(name))} == {"from-file"}
    assert asked.met == 0
    assert stage.bound_twice() == []


async def test_profiles_in_the_cluster_have_no_say_then(stage: Stage) -> None:
    stage.profile("other", schedulerName="other")
    stage.pod("web").pod("elsewhere", scheduler="other")
    async with operator(stage, WITH_FILE):
        await stage.until(lambda: stage.placed("web"))
        stage.edit_profile("other", weights={"ImageLocality": 3})
        names = stage.pods(3)
        await stage.until(lambda: stage.placed(*names))
    assert not stage.placed("elsewhere")
    assert "status" not in stage.show_profile("other")


async def test_the_comparison_after_a_relist_misses_no_profile(stage: Stage) -> None:
    async with operator(stage, WITH_FILE) as running:
        await stage.until(lambda: running.engine.leading.leadership.active)
        known = running.engine.deciding.profiles.standings()
        await running.engine.deciding.profiles.refresh()
        assert running.engine.deciding.profiles.standings() == known != {}
        names = stage.pods(2)
        await stage.until(lambda: stage.placed(*names))


async def test_alone_it_needs_no_peering_and_places_at_once() -> None:
    async with Sandbox(SandboxOptions(seed=1)) as sandbox:
        stage = Stage(sandbox).nodes(2)
        names = stage.pods(4)
        async with operator(stage, ALONE) as running:
            await stage.until(lambda: stage.placed(*names))
            assert running.engine.leading.leadership.active
        assert stage.peers() == set()


async def test_alone_in_a_cluster_with_a_peering_it_does_not_join_it(stage: Stage) -> None:
    async with operator(stage, WITH_FILE):
        before = stage.pods(1)
        await stage.until(lambda: stage.placed(*before))
    assert stage.peers_when_bound[-1]
    async with operator(stage, ALONE):
        names = stage.pods(2)
        await stage.until(lambda: stage.placed(*names))
    assert stage.peers_when_bound[-2:] == [set(), set()]


async def test_a_profile_that_cannot_take_effect_ends_it_with_a_sentence(stage: Stage) -> None:
    broken = replace(FAST, profiles=(from_file(), from_file(percentage_of_nodes_to_score=500)))
    engine = build_engine(load_config(str(stage.sandbox.kubeconfig)), broken)
    with pytest.raises(ConfigError, match=r"profile from-file: .*percentageOfNodesToScore: found 500"):
        await run_engine(engine, asyncio.Event())
    assert engine.writing.client._session.closed


async def test_a_limit_of_requests_a_second_holds_for_the_engine_s_client(stage: Stage) -> None:
    names = stage.pods(6)
    async with operator(stage, replace(FAST, qps=200.0, burst=10)) as running:
        await stage.until(lambda: stage.placed(*names))
        assert running.engine.writing.client.pacing.limit is not None
    async with operator(stage) as running:
        assert running.engine.writing.client.pacing.limit is None


# --- as a process -------------------------------------------------------------------------------------------------------------------


async def test_placewright_run_starts_from_a_kube_scheduler_configuration_without_the_definition_of_profiles(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(CONFIGURATION)
    definitions = tmp_path / "crds"
    definitions.mkdir()
    shutil.copy(CRDS / "kopfpeering.yaml", definitions)
    async with Sandbox(SandboxOptions(crds=[definitions], seed=1)) as sandbox:
        stage = Stage(sandbox).nodes(3)
        names = stage.pods(4)
        packed = stage.pods(4, scheduler="packer")
        stage.pod("foreign", scheduler="somebody-else")
        flags = ("--config", str(file), "--secure-port=0", "--leader-elect=true", "--kube-api-qps=500", "-v=2")
        async with process((*RUN, *flags), sandbox.kubeconfig) as running:
            await stage.until(lambda: stage.placed(*names, *packed))
            running.send_signal(signal.SIGTERM)
            code, output = await ended(running)
    assert code == 0, output
    assert "Traceback" not in output
    assert "SchedulingProfile" not in output
    assert not stage.placed("foreign")
    assert stage.bound_twice() == []
    assert stage.peers() == set()


async def test_a_file_that_cannot_be_used_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(CONFIGURATION.replace("MostAllocated", "Most"))
    async with process((*RUN, "--config", str(file)), tmp_path / "none") as running:
        code, output = await ended(running)
    assert code == 2
    (line,) = output.splitlines()
    assert line.startswith(f'placewright: error: {file}: profile "packer".spec.pluginConfig[0].args.scoringStrategy.type: found "Most"')
