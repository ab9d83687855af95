"""The API server is upgraded while the scheduler runs: what it serves is asked again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from kubesandbox.faults import Rule
from kubesandbox.server import Sandbox, SandboxOptions
from placewright.api.workloads import PodDisruptionBudget
from placewright.engine.discovery import Discovery, Shortfall, survey
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.discovery import REFLECTED, ServedResources
from placewright.kube.reflector import Reflectors
from placewright.kube.serverversion import ServerVersion

BUDGETS = ("policy", "poddisruptionbudgets")
V1, V1BETA1 = "/apis/policy/v1/poddisruptionbudgets", "/apis/policy/v1beta1/poddisruptionbudgets"
#: Of the whole table only budgets matter here; the rest is not served, before and after.
TABLE = {(row.wanted.group, row.wanted.resource) for row in REFLECTED}
DEADLINE = 10.0


def serving(minor: int, *versions: str, silent: tuple[str, ...] = ()) -> Shortfall:
    return Shortfall(ServerVersion(minor), ServedResources({BUDGETS: list(versions)}, silent))


class Heard:
    """Stands for the event handlers."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._news = asyncio.Event()

    def cluster_object_gone(self, item: PodDisruptionBudget) -> None:
        """Nothing goes here."""

    def cluster_object(self, item: PodDisruptionBudget) -> None:
        self.names.append(item.metadata.name)
        self._news.set()

    async def until(self, name: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while name not in self.names:
                self._news.clear()
                await self._news.wait()


class Upgraded:
    """A server that serves policy/v1 by now, and the reflectors that were made before."""

    def __init__(self, sandbox: Sandbox, client: ApiClient) -> None:
        self.sandbox, self.client = sandbox, client
        self.heard = Heard()
        self.reflectors = Reflectors([])
        budget = {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}}
        sandbox.writes.create(sandbox.resource("policy", "v1", "poddisruptionbudgets"), "default", budget)

    def since(self, found: Shortfall, *, beat: float = 3600.0) -> Discovery:
        discovery = Discovery(self.client, cast(Any, self.heard), self.reflectors, beat, silent_seconds=0.01)
        discovery.adopt(found)
        self.reflectors.start()
        return discovery

    @property
    def paths(self) -> list[str]:
        return [each.source.path for each in self.reflectors.members]


@asynccontextmanager
async def upgraded() -> AsyncIterator[Upgraded]:
    async with Sandbox(SandboxOptions()) as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
        made = Upgraded(sandbox, client)
        try:
            yield made
        finally:
            await made.reflectors.stop()


async def test_what_is_served_now_and_was_not_before_is_reflected() -> None:
    async with upgraded() as scene:
        scene.since(serving(20)).adopt(serving(21, "v1"))
        await scene.heard.until("web")
        assert scene.paths == [V1]
        assert len(scene.reflectors.tasks) == 1


async def test_what_moved_to_another_version_is_read_there_by_the_same_reflector() -> None:
    async with upgraded() as scene:
        scene.since(serving(20, "v1beta1")).adopt(serving(25, "v1"))
        await scene.heard.until("web")
        assert scene.paths == [V1]


async def test_what_is_served_as_before_is_left_alone() -> None:
    async with upgraded() as scene:
        watching = scene.since(serving(20, "v1beta1"))
        (reflector,) = scene.reflectors.members
        watching.adopt(serving(20, "v1beta1"))
        watching.adopt(serving(20))
        assert scene.reflectors.members == [reflector] and reflector.source.path == V1BETA1


async def test_the_line_is_said_again_only_when_it_changed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with upgraded() as scene:
        watching = scene.since(serving(20, "v1beta1"))
        watching.adopt(serving(20, "v1beta1"))
        watching.adopt(serving(36, "v1"))
        watching.adopt(serving(36, "v1"))
    lines = [each for each in caplog.messages if each.startswith("API server: Kubernetes")]
    assert [line.partition(";")[0] for line in lines] == ["API server: Kubernetes 1.20", "API server: Kubernetes 1.36"]


async def test_the_server_is_asked_at_every_beat_whatever_it_answers() -> None:
    async with upgraded() as scene:
        scene.sandbox.faults.add(Rule(path="/version", times=1, code=503))
        scene.sandbox.faults.add(Rule(method="GET", path="/apis", times=1, code=500))
        running = asyncio.create_task(scene.since(serving(20), beat=0.01).run())
        await scene.heard.until("web")
        assert not running.done()
        running.cancel()
        await asyncio.wait([running])


async def test_a_silent_group_is_asked_again_long_before_the_beat() -> None:
    async with upgraded() as scene:
        running = asyncio.create_task(scene.since(serving(21, silent=("policy/v1",))).run())
        await scene.heard.until("web")
        assert not running.done(), "it asked, and goes on asking"
        running.cancel()
        await asyncio.wait([running])


async def test_a_survey_tells_the_version_and_what_is_served() -> None:
    async with upgraded() as scene:
        found = await survey(scene.client)
    assert found.version == ServerVersion(36)
    assert found.served.served.keys() >= {key for key in TABLE if not key[1].endswith("podgroups") and "workloads" not in key}
    assert ("scheduling.k8s.io", "podgroups") in found.served.served
    assert str(found) == "API server: Kubernetes 1.36; lacks nothing"
