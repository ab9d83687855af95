"""`bench against` without a real API server: its options, and its waves over a sandbox with a scheduler of the test's own."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kubesandbox.server import Sandbox
from lab.bench.sandboxplane import Incoming, SandboxPlane
from placewright.api.objects import Pod
from placewright.cli.main import main
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.reflector import Reflector, Source
from placewright_lab.bench import against
from placewright_lab.bench.against import WARM_UP, ContenderPrograms, Plan, open_arena
from placewright_lab.bench.contenders import OUR_SCHEDULER_NAME, Contender, RunningScheduler
from placewright_lab.bench.madeup import mixed_pods
from placewright_lab.bench.measuredcluster import Patience, WaveFailed
from placewright_lab.bench.wavecomparison import Spent, Wave, WaveComparison
from placewright_lab.controlplane.assets import VARIABLE, from_folder

PODS = "/api/v1/namespaces/default/pods"
EVENTS = "/api/v1/namespaces/default/events"
NODES = 20
SHORT = Patience(binding=0.5, event=0.5)


@dataclass
class TestScheduler:
    """Binds pods in turn to nodes, and writes an event about it.

    Attributes:
        leaves: names of pods that it ignores.
        silent: True if it writes no events.
        deletes: names of pods that it deletes after their binding.
        slow: seconds that it waits before each event, while it continues to bind.
        dies: True if it ends at the first pod.
        starts: number of starts; `running` is the number of running ones.
    """

    __test__ = False
    kubeconfig: Path
    leaves: frozenset[str] = frozenset()
    silent: bool = False
    deletes: frozenset[str] = frozenset()
    slow: float = 0.0
    dies: bool = False
    starts: int = 0
    running: int = 0
    bound: list[str] = field(default_factory=list)
    pid: int = field(default_factory=os.getpid)
    ended: bool = False

    @property
    def contender(self) -> Contender:
        return Contender("test", OUR_SCHEDULER_NAME, self.start)

    def last_words(self) -> str:
        return "farewell"

    @asynccontextmanager
    async def start(self, folder: Path) -> AsyncIterator[RunningScheduler]:
        self.starts += 1
        self.running += 1
        async with ApiClient(load_config(str(self.kubeconfig))) as client:
            queue: asyncio.Queue[Pod] = asyncio.Queue()
            told: asyncio.Queue[str] = asyncio.Queue()
            tasks = [
                asyncio.create_task(Reflector(client, Source(PODS, Pod, "spec.nodeName="), Incoming(queue)).run()),
                asyncio.create_task(self._work(client, queue, told)),
                asyncio.create_task(self._tell(client, told)),
            ]
            yield self
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self.running -= 1

    async def _work(self, client: ApiClient, queue: asyncio.Queue[Pod], told: asyncio.Queue[str]) -> None:
        while True:
            name = (await queue.get()).metadata.name
            if self.dies:
                self.ended = True
                return
            if name in self.leaves:
                continue
            node = {"apiVersion": "v1", "kind": "Node", "name": f"node-{len(self.bound) % NODES:05d}"}
            self.bound.append(name)
            await client.post(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": node})
            told.put_nowait(name)
            if name in self.deletes:
                await client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})

    async def _tell(self, client: ApiClient, told: asyncio.Queue[str]) -> None:
        while not self.silent:
            name = await told.get()
            await asyncio.sleep(self.slow)
            await client.post(EVENTS, event(name))


def event(pod: str) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": pod}
    return {"metadata": {"name": f"{pod}.1"}, "involvedObject": about, "reason": "Scheduled", "type": "Normal"}


@pytest.fixture
async def plane() -> AsyncIterator[SandboxPlane]:
    async with Sandbox() as sandbox:
        yield SandboxPlane(Path(sandbox.kubeconfig))


async def remaining(plane: SandboxPlane, path: str) -> list[Any]:
    async with ApiClient(load_config(str(plane.kubeconfig))) as client:
        items: list[Any] = json.loads(await client.get(path))["items"]
        return items


async def test_each_burst_binds_every_pod_once_and_begins_with_an_empty_cluster(plane: SandboxPlane) -> None:
    scheduler = TestScheduler(plane.kubeconfig)
    async with open_arena(plane, SHORT) as arena:
        await arena.furnish(NODES)
        for _ in range(2):
            outcome = await arena.burst(scheduler.contender, 30, None)
            assert scheduler.running == 0
            assert len(outcome.sent) == 30
            assert outcome.bound.keys() == outcome.sent.keys()
            assert all(outcome.sent[name] <= at <= outcome.settled for name, at in outcome.bound.items())
            assert outcome.events == 30
            assert outcome.peak_bytes > 0 or not sys.platform.startswith("linux")
            assert len(await remaining(plane, PODS)) == WARM_UP + 30
    assert len(scheduler.bound) == 2 * (WARM_UP + 30)
    assert scheduler.starts == 2


async def test_a_backlog_is_there_before_the_scheduler_is_started_again(plane: SandboxPlane) -> None:
    scheduler = TestScheduler(plane.kubeconfig)
    async with open_arena(plane, SHORT) as arena:
        await arena.furnish(NODES)
        outcome = await arena.backlog(scheduler.contender, 30)
    assert max(outcome.sent.values()) < min(outcome.bound.values())
    assert (len(outcome.bound), outcome.events, scheduler.starts) == (30, 30, 2)
    assert len(await remaining(plane, PODS)) == 30


async def test_events_that_come_late_are_waited_for(plane: SandboxPlane) -> None:
    async with open_arena(plane, SHORT) as arena:
        await arena.furnish(NODES)
        outcome = await arena.burst(TestScheduler(plane.kubeconfig, slow=0.02).contender, 30, None)
    assert outcome.events == 30
    assert outcome.settled > max(outcome.bound.values())


async def test_events_that_never_come_are_not_waited_for_and_not_counted(plane: SandboxPlane) -> None:
    async with open_arena(plane, SHORT) as arena:
        await arena.furnish(NODES)
        outcome = await arena.burst(TestScheduler(plane.kubeconfig, silent=True).contender, 5, None)
    assert (len(outcome.bound), outcome.events) == (5, 0)


async def test_pods_that_stay_unbound_end_the_wave(plane: SandboxPlane) -> None:
    scheduler = TestScheduler(plane.kubeconfig, leaves=frozenset({"plain-000003"}))
    async with open_arena(plane, SHORT) as arena:
        await arena.furnish(NODES)
        with pytest.raises(WaveFailed, match=rf"{WARM_UP - 1} of {WARM_UP} pods were bound, then none for .* farewell"):
            await arena.burst(scheduler.contender, 5, None)


async def test_pods_that_vanish_once_they_are_bound_end_the_wave(plane: SandboxPlane) -> None:
    (lost, *_) = (pod["metadata"]["name"] for pod in mixed_pods(5))
    scheduler = TestScheduler(plane.kubeconfig, deletes=frozenset({lost}))
    async with open_arena(plane, SHORT) as arena:
        await arena.furnish(NODES)
        with pytest.raises(WaveFailed, match=f"1 pods were seen bound and are not, {lost} for one"):
            await arena.burst(scheduler.contender, 5, None)


async def test_a_scheduler_that_ends_by_itself_is_told_with_its_last_words(plane: SandboxPlane) -> None:
    async with open_arena(plane) as arena:
        await arena.furnish(NODES)
        with pytest.raises(WaveFailed, match="it ended by itself: farewell"):
            await arena.burst(TestScheduler(plane.kubeconfig, dies=True).contender, 5, None)


# --- options ---


@pytest.fixture
def assets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with programs that only print their version."""
    for name in ("kube-apiserver", "etcd", "kube-scheduler"):
        script(tmp_path / name, "echo Kubernetes v1.31.2")
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    return tmp_path


def script(path: Path, line: str) -> Path:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)
    return path


class Recorded:
    """Stands for a measurement."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[ContenderPrograms, Plan]] = []
        monkeypatch.setattr(against, "_measured", self.measure)

    def measure(self, programs: ContenderPrograms, plan: Plan) -> WaveComparison:
        self.asked.append((programs, plan))
        spent = Spent(1, 1, 1, 1)
        rates = {"A": 300.0, "B": 200.0}
        waves = [Wave(label, plan.pods, plan.pods, rate, rate, 0.5, 1.0, spent, 10**8) for label, rate in rates.items()]
        return WaveComparison(plan.nodes, plan.pods, waves, ("A", "B"), plan.mode)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    return Recorded(monkeypatch)


def test_each_number_of_nodes_is_measured_with_no_more_pods_than_fit(
    assets: Path, recorded: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "against", "--nodes", "100,5000", "--waves", "3", "-o", "json"]) == 0
    assert [plan for _, plan in recorded.asked] == [Plan(100, 1000, 3), Plan(5000, 3000, 3)]
    assert recorded.asked[0][0].kube_scheduler == assets / "kube-scheduler"
    assert recorded.asked[0][0].minor == 31
    assert [(row["nodes"], row["mode"]) for row in json.loads(capsys.readouterr().out)] == [(100, "burst"), (5000, "burst")]


def test_the_table_names_both_and_the_ratio(assets: Path, recorded: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "against", "--backlog"]) == 0
    out = capsys.readouterr().out
    assert "1,000 nodes, 3,000 pods, backlog, one wave each" in out
    assert ["300", "200", "1.50"] in [line.split()[-3:] for line in out.splitlines()]
    assert recorded.asked[0][1].backlog


def test_the_scheduler_and_the_folder_may_be_given(
    assets: Path, recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = script(tmp_path / "other", "echo Kubernetes v1.29.0")
    monkeypatch.delenv(VARIABLE)
    assert main(["bench", "against", "--assets", str(assets), "--kube-scheduler", str(other), "--rate", "50"]) == 0
    programs, plan = recorded.asked[0]
    assert (programs.kube_scheduler, programs.minor, programs.assets.folder) == (other, 29, assets)
    assert (plan.rate, plan.mode) == (50, "50 pods/s")


def refused(capsys: pytest.CaptureFixture[str], arguments: Sequence[object]) -> str:
    assert main(["bench", "against", *(str(one) for one in arguments)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nodes", "19"], "allowed a whole number from 20 to"),
        (["--nodes", "100,"], "found ''"),
        (["--pods", "1"], "allowed a whole number from 2 to"),
        (["--waves", "0"], "allowed a whole number from 1 to"),
        (["--rate", "0"], "allowed a whole number from 1 to"),
        (["--rate", "5", "--backlog"], "not allowed with argument"),
        (["--kube-scheduler", "/no/such/program"], "--kube-scheduler: found '/no/such/program'; allowed the path of a program"),
        (["--kube-scheduler", "/"], "allowed the path of a program"),
        (["--assets", "/no/such/folder"], "--assets: found '/no/such/folder'; allowed a folder"),
    ],
)
@pytest.mark.usefixtures("assets", "recorded")
def test_a_wrong_option_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert said in refused(capsys, arguments)


@pytest.mark.usefixtures("recorded")
def test_without_assets_it_says_what_to_set(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    assert VARIABLE in refused(capsys, [])


@pytest.mark.usefixtures("recorded")
def test_what_was_built_before_is_found(assets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(against, "at_hand", lambda environ: from_folder(assets, "the cache"))
    assert against.find_programs(None, None).assets.folder == assets.resolve()


@pytest.mark.usefixtures("recorded")
def test_assets_without_a_scheduler_ask_for_one(assets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (assets / "kube-scheduler").unlink()
    assert "--kube-scheduler: found nothing" in refused(capsys, [])


@pytest.mark.usefixtures("recorded")
def test_a_program_that_is_none_of_kubernetes_is_refused(assets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (assets / "kube-scheduler").chmod(0o644)
    assert "may be executed" in refused(capsys, [])
    other = script(assets / "other", "echo hello")
    assert "found 'hello'; allowed a version" in refused(capsys, ["--kube-scheduler", other])
    other.write_bytes(b"\x7fELF nonsense")
    assert f"{other} does not run" in refused(capsys, ["--kube-scheduler", other])


@pytest.mark.usefixtures("assets", "recorded")
def test_only_linux_tells_what_processes_use(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(against.sys, "platform", "darwin")
    assert "found 'darwin'; allowed Linux" in refused(capsys, [])


@pytest.mark.usefixtures("assets")
def test_a_measurement_that_fails_is_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(programs: ContenderPrograms, plan: Plan) -> WaveComparison:
        raise WaveFailed("kube-scheduler 1.20: it ended by itself: panic")

    monkeypatch.setattr(against, "_measured", measure)
    assert main(["bench", "against"]) == 1
    assert capsys.readouterr().err.splitlines() == ["placewright: kube-scheduler 1.20: it ended by itself: panic"]


def test_a_control_plane_that_does_not_start_is_one_line(assets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script(assets / "etcd", 'case "$1" in --version) ;; *) echo no disk >&2; exit 1;; esac')
    assert main(["bench", "against"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "no disk" in line
