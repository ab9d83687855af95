"""A cluster for upstream's tests: a real control plane, simulated nodes, and one scheduler, Placewright as shipped or kube-scheduler."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import yaml

from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright_lab.controlplane.assets import Assets
from placewright_lab.controlplane.audit import denied, read_records
from placewright_lab.controlplane.children import Child, ControlPlaneFailed
from placewright_lab.controlplane.controllermanager import ControllerManager
from placewright_lab.controlplane.flags import Features
from placewright_lab.controlplane.installation import FOR_ALL_PODS, PROFILES, USER, apply, apply_shipped, ask_for_token
from placewright_lab.controlplane.kubelet import Kubelet
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.controlplane.nodekeeper import NodeKeeper, make_nodes
from placewright_lab.controlplane.server import ControlPlane, Options
from tools.conformance.systempods import make_system_pods

#: The last minor version whose default profile, and so whose tests, know a plugin that Placewright's default profile has not.
_AVOIDING: Final = 21
_AVOID_PODS: Final = {"name": "NodePreferAvoidPods", "weight": 10_000}
_ACTIVE_SECONDS: Final = 120.0
_LOOK_SECONDS: Final = 0.1


class PodPlacer(StrEnum):
    """The scheduler that places the pods."""

    PLACEWRIGHT = "placewright"
    KUBE_SCHEDULER = "kube-scheduler"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The wanted cluster.

    Attributes:
        assets: kube-apiserver and etcd, and kube-scheduler where that is to place the pods.
        controller_manager: its program.
        scheduler: program that places the pods.
        nodes: number of nodes, in three zones.
        features: beyond what its version has by default.
    """

    assets: Assets
    controller_manager: Path
    scheduler: PodPlacer
    nodes: int
    features: Features


class RunningControlPlane:
    """A cluster at work."""

    def __init__(self, control_plane: ControlPlane, checks: list[Callable[[], None]]) -> None:
        self.control_plane = control_plane
        self._checks = checks

    def check(self) -> None:
        """Raise `ControlPlaneFailed` when a part of it has ended by itself."""
        for each in self._checks:
            each()

    def denied(self) -> list[str]:
        """Rights that Placewright asked for and its role does not give, each once."""
        records = read_records(self.control_plane.audit_log)
        return sorted({f"{each.verb} {each.resource}" for each in denied(records, USER)})


@contextmanager
def control_plane(wanted: Wanted) -> Iterator[tuple[ControlPlane, ControllerManager]]:
    """Start control plane and controller manager. Enter outside an event loop, in the main thread, with which they die."""
    with ExitStack() as stack:
        running = stack.enter_context(ControlPlane(wanted.assets, Options(features=wanted.features)))
        yield running, stack.enter_context(ControllerManager(wanted.controller_manager, running, wanted.features.gates))


@asynccontextmanager
async def cluster(wanted: Wanted, running: ControlPlane, manager: ControllerManager, logs: Path) -> AsyncIterator[RunningControlPlane]:
    """Nodes and a scheduler on that control plane; `logs` is where the scheduler writes."""
    async with ApiClient(load_config(str(running.kubeconfig))) as client:
        await make_nodes(client, wanted.nodes, wanted.assets.minor)
        kubelets = [asyncio.create_task(each.run()) for each in (Kubelet(client), NodeKeeper(client))]
        try:
            await make_system_pods(client, wanted.nodes)
            async with _scheduler(wanted, running, client, logs) as check:
                yield RunningControlPlane(running, [running.check, manager.check, check])
        finally:
            for task in kubelets:
                task.cancel()
            await asyncio.gather(*kubelets, return_exceptions=True)


@asynccontextmanager
async def _scheduler(wanted: Wanted, running: ControlPlane, client: ApiClient, logs: Path) -> AsyncIterator[Callable[[], None]]:
    if wanted.scheduler is PodPlacer.PLACEWRIGHT:
        async with _placewright(running, client, logs) as check:
            yield check
        return
    program = wanted.assets.kube_scheduler
    assert program is not None, "the caller has looked"
    scheduler = KubeScheduler(program, wanted.assets.minor, running.kubeconfig, logs)
    scheduler.gates = wanted.features.gates
    with scheduler:
        yield lambda: _still_there(scheduler)


@asynccontextmanager
async def _placewright(running: ControlPlane, client: ApiClient, logs: Path) -> AsyncIterator[Callable[[], None]]:
    """Placewright as shipped to be the default scheduler, with the rights of its ServiceAccount only."""
    await apply_shipped(client)
    profile = yaml.safe_load(FOR_ALL_PODS.read_text())
    if running.assets.minor <= _AVOIDING:
        profile["spec"]["plugins"] = {"score": {"enabled": [_AVOID_PODS]}}
    await apply(client, profile)
    kubeconfig = running.kubeconfig_of(await ask_for_token(client), running.folder / "placewright.kubeconfig")
    command = ["-m", "placewright.cli.main", "run", "--kubeconfig", str(kubeconfig), "--secure-port", "0"]
    child = Child(Path(sys.executable), command, logs, "placewright")
    try:
        await _until_active(client, profile["metadata"]["name"], child)
        yield lambda: _still_there(child)
    finally:
        child.end()


async def _until_active(client: ApiClient, profile: str, child: Child) -> None:
    try:
        async with asyncio.timeout(_ACTIVE_SECONDS):
            while not json.loads(await client.get(f"{PROFILES}/{profile}")).get("status", {}).get("activeGeneration"):
                _still_there(child)
                await asyncio.sleep(_LOOK_SECONDS)
    except TimeoutError:
        raise ControlPlaneFailed(f"Placewright did not take up its profile in time: {child.last_words()}") from None


def _still_there(process: Child | KubeScheduler) -> None:
    if process.ended:
        raise ControlPlaneFailed(f"the scheduler ended: {process.last_words()}")
