"""The sample who-gets-it.yaml on a sandbox with a running operator: pods of namespaces that may use the profile, and of others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from handlers.stage import Object, Stage, new_stage, operator
from placewright.engine import keptoutpods

SAMPLE = Path(__file__).parents[2] / "manifests" / "samples" / "policy" / "who-gets-it.yaml"
KEPT_OUT = 'namespace "default" may not use profile "research-batch": spec.pods.allowedNamespaces does not name it'


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(keptoutpods, "BEAT_SECONDS", 0.05)
    async with new_stage() as made:
        made.nodes(2)
        for name in ("physics", "chemistry"):
            create(made, "namespaces", "", {"metadata": {"name": name, "labels": {"tier": "research"}}})
        profile = yaml.safe_load(SAMPLE.read_text())
        made.profile(profile["metadata"]["name"], **profile["spec"])
        yield made


def create(stage: Stage, plural: str, namespace: str, content: Object) -> Object:
    return stage.sandbox.writes.create(stage.sandbox.resource("", "v1", plural), namespace, content).object


def pod(name: str, scheduler: str = "research-batch", **metadata: Any) -> Object:
    spec = {"schedulerName": scheduler, "containers": [{"name": "main", "image": "example.test/main"}]}
    return {"metadata": {"name": name, **metadata}, "spec": spec}


def node_of(stage: Stage, namespace: str, name: str) -> str:
    content = stage.sandbox.writes.current(stage.sandbox.resource("", "v1", "pods"), namespace, name).object
    return str(content["spec"].get("nodeName", ""))


async def test_a_pod_of_a_namespace_that_may_not_use_the_profile_waits_says_why_and_goes_on_when_it_may(stage: Stage) -> None:
    async with operator(stage) as running:
        create(stage, "pods", "physics", pod("allowed"))
        create(stage, "pods", "default", pod("kept-out"))
        await stage.until(lambda: node_of(stage, "physics", "allowed"))
        await stage.until(lambda: stage.condition("kept-out"))
        condition = stage.condition("kept-out")
        assert (condition["status"], condition["reason"], condition["message"]) == ("False", "Unschedulable", KEPT_OUT)
        await stage.until(lambda: ("FailedScheduling", KEPT_OUT) in stage.events("kept-out"))
        waiting = running.engine.queue.get(stage.show("kept-out")["metadata"]["uid"])
        assert waiting is not None
        assert (waiting.gated, waiting.attempts) == (True, 0)
        pods = stage.show_profile("research-batch")["spec"]["pods"]
        stage.edit_profile("research-batch", pods={**pods, "allowedNamespaces": [*pods["allowedNamespaces"], "default"]})
        await stage.until(lambda: stage.placed("kept-out"))
        assert stage.condition("kept-out")["status"] == "True"
