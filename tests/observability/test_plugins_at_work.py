"""A plugin of another package in a real operator: its start and end, its metrics, its Warning and its patch reach the API server."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.stage import Stage
from observability.metricsdesk import watched
from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.framework import registry
from placewright.framework.interface import CycleState, ObjectPatch, PluginMetric, PreBindPlugin
from placewright.framework.status import SUCCESS, Status

HEARD: list[str] = []


class Clerk(PreBindPlugin):
    """Writes down the last pod."""

    name = "Clerk"
    patches = (ObjectPatch("", "v1", "configmaps", namespaced=True),)

    def start(self) -> None:
        HEARD.append(f"start {self.handle.profile_name}")

    def close(self) -> None:
        HEARD.append(f"close {self.handle.profile_name}")

    def metrics(self) -> list[PluginMetric]:
        return [PluginMetric("clerks", "Clerks at work.", {("desk-1",): 1.0}, labels=("desk",))]

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: NodeName) -> Status:
        self.handle.announce(pod, "WrittenDown", "Scheduling", "in the book", warning=True)
        await self.handle.patch(self.patches[0], "book", {"data": {"last": pod.name}}, namespace="default")
        return SUCCESS


class Offered:
    """The plugin's entry point."""

    name, attr, value = "Clerk", "Clerk", "tests:Clerk"

    @staticmethod
    def load() -> type[Clerk]:
        return Clerk


async def test_a_plugin_is_started_seen_and_closed_and_what_it_writes_is_written(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [Offered] if group == registry.ENTRY_POINT_GROUP else [])
    HEARD.clear()
    maps = stage.sandbox.resource("", "v1", "configmaps")
    stage._create(maps, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "book"}, "data": {"last": ""}})
    stage.node("a").profile("clerks", schedulerName="clerks", plugins={"preBind": {"enabled": [{"name": "Clerk"}]}})
    async with watched(stage) as running:
        stage.pod("web", scheduler="clerks")
        await stage.until(lambda: stage.placed("web"))
        book: Any = stage.sandbox.writes.current(maps, "default", "book").object
        assert book["data"] == {"last": "web"}
        await stage.until(lambda: ("WrittenDown", "in the book") in stage.events("web"))
        assert running.seen().value("placewright_plugin_clerks", profile="clerks", desk="desk-1") == 1
        assert HEARD == ["start clerks"]
        stage.edit_profile("clerks", paused=True)
        await stage.until(lambda: len(HEARD) == 3)
    assert HEARD == ["start clerks", "close clerks", "start clerks", "close clerks"]
