"""Whose turn it is: a namespace floods the queue, and the pods of another one do not wait for the flood."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest

from handlers.stage import Stage
from placewright.cli.main import main
from serving.desk import Desk, desk

from .samples import apply_sample

SAMPLE: Final = "fair-turns.yaml"
FLOOD: Final = 60


class Offices:
    """A stage with the sample on it, paused, and pods of two namespaces."""

    def __init__(self, stage: Stage, **changes: Any) -> None:
        self.stage = stage
        self._pods = stage.sandbox.resource("", "v1", "pods")
        namespaces = stage.sandbox.resource("", "v1", "namespaces")
        for name in ("noisy", "quiet"):
            stage.sandbox.writes.create(namespaces, "", {"metadata": {"name": name}})
        self._scheduler = apply_sample(stage, SAMPLE, paused=True, **changes)
        self.uids: dict[str, list[str]] = {"noisy": [], "quiet": []}

    def pods(self, namespace: str, count: int) -> None:
        """Small pods of one namespace."""
        container = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": "10m"}}}
        for number in range(count):
            metadata = {"name": f"{namespace}-{number}", "namespace": namespace}
            spec = {"schedulerName": self._scheduler, "containers": [container]}
            made = self.stage.sandbox.writes.create(self._pods, namespace, {"metadata": metadata, "spec": spec})
            self.uids[namespace].append(str(made.object["metadata"]["uid"]))

    def places(self, namespace: str) -> list[int]:
        """Of all Bindings, in order, the numbers of those of a namespace."""
        bound = [uid for uid, _ in self.stage.bindings]
        return sorted(bound.index(uid) for uid in self.uids[namespace] if uid in bound)

    async def all_bound(self) -> None:
        count = sum(map(len, self.uids.values()))
        await self.stage.until(lambda: len(self.stage.bindings) == count, f"{count} pods bound")


async def explained(asked: Desk, pod: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The words of `placewright explain`."""
    token = asked.engine.access.authorization.removeprefix("Bearer ")
    server = ("--server", f"https://127.0.0.1:{asked.served.port}", f"--token={token}")
    capsys.readouterr()
    assert await asyncio.to_thread(main, ["explain", "--kubeconfig", str(asked.stage.sandbox.kubeconfig), pod, *server]) == 0
    return " ".join(capsys.readouterr().out.split())


async def test_the_sample_lets_a_quiet_namespace_past_a_flood_of_another(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    offices = Offices(stage)
    async with desk(stage) as asked:
        await asked.until_ready()
        offices.pods("noisy", FLOOD)
        offices.pods("quiet", 3)
        await stage.until(lambda: asked.engine.deciding.queue.sizes().active == FLOOD + 3)
        words = await explained(asked, "quiet/quiet-2", capsys)
        assert "pod 3 of 3 of tenant 'quiet', whose turn is 2 of 2" in words
        stage.edit_profile("fair-turns", paused=False)
        await offices.all_bound()
    assert offices.places("quiet")[-1] < FLOOD // 2, "they waited for the flood"
    assert stage.bound_twice() == []


async def test_without_it_the_flood_goes_first_and_switching_it_on_loses_no_pod(stage: Stage) -> None:
    offices = Offices(stage, fairness={"by": "None"})
    async with desk(stage) as asked:
        await asked.until_ready()
        offices.pods("noisy", FLOOD)
        offices.pods("quiet", 3)
        await stage.until(lambda: asked.engine.deciding.queue.sizes().active == FLOOD + 3)
        uid = offices.uids["quiet"][0]
        assert asked.engine.deciding.queue.turn_of(uid) is None
        stage.edit_profile("fair-turns", fairness={"by": "Namespace", "share": "Pods"})
        await stage.until(lambda: asked.engine.deciding.queue.turn_of(uid) is not None, "turns are taken")
        assert asked.engine.deciding.queue.sizes().active == FLOOD + 3
        stage.edit_profile("fair-turns", fairness={"by": "None"}, paused=False)
        await offices.all_bound()
    assert offices.places("quiet")[0] > FLOOD // 2
    assert stage.bound_twice() == []
