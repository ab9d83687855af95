"""Disruption budgets as their controller counts them; binding and eviction themselves are asked in tests/contract."""

from __future__ import annotations

from typing import Any

import pytest

from kubesandbox.controllers.disruptions import Disruptions
from kubesandbox.kinds.pods import PodOperations
from kubesandbox.status import ApiError
from kubesandbox.storage.writes import DeleteOptions
from lab.sandbox.makers import Core, Object, a_pod


def operations(core: Core) -> PodOperations:
    return PodOperations(core.writes, Disruptions(core.writes))


def running(core: Core, name: str, node: str = "node-a") -> None:
    core.create("pods", a_pod(name, node=node, labels={"app": "web"}))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    core.writes.modify(core.type("pods"), "default", name, lambda found: found.update(status=ready))


def budget(core: Core, name: str = "web", **spec: Any) -> None:
    selector = {"matchLabels": {"app": "web"}}
    core.create("poddisruptionbudgets", {"metadata": {"name": name}, "spec": {"selector": selector, **spec}})


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"minAvailable": 1}, 2),
        ({"minAvailable": "50%"}, 1),
        ({"minAvailable": "100%"}, 0),
        ({"maxUnavailable": 1}, 1),
        ({"maxUnavailable": "34%"}, 2),
        ({"maxUnavailable": 0}, 0),
        ({"minAvailable": 5}, 0),
    ],
)
async def test_a_budget_allows(spec: Object, allowed: int) -> None:
    core = Core()
    disruptions = Disruptions(core.writes)
    for name in ("a", "b", "c"):
        running(core, name)
    budget(core, **spec)
    first = core.get("pods", "a")
    assert first is not None
    (covering,) = disruptions.covering("default", first)
    assert covering.object["status"]["disruptionsAllowed"] == allowed
    assert covering.object["status"]["expectedPods"] == 3


async def test_a_budget_that_nobody_can_read_keeps_no_other_from_its_pods() -> None:
    core = Core()
    evicting = operations(core)
    unreadable = {"matchExpressions": [{"key": "app", "operator": "Near"}]}
    core.create("poddisruptionbudgets", {"metadata": {"name": "a-bad-one"}, "spec": {"selector": unreadable, "minAvailable": 9}})
    budget(core, minAvailable=1)
    for name in ("a", "b"):
        running(core, name)
    evicting.evict("default", "a", DeleteOptions())
    with pytest.raises(ApiError) as refused:
        evicting.evict("default", "b", DeleteOptions())
    assert refused.value.code == 429


async def test_a_budget_counts_the_replicas_that_the_owner_wants() -> None:
    core = Core()
    disruptions = Disruptions(core.writes)
    owner = core.create("replicasets", {"metadata": {"name": "web"}, "spec": {"replicas": 5}})
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": owner["metadata"]["uid"], "controller": True}
    running(core, "a")
    core.writes.modify(core.type("pods"), "default", "a", lambda found: found["metadata"].update(ownerReferences=[reference]))
    budget(core, maxUnavailable=1)
    first = core.get("pods", "a")
    assert first is not None
    (covering,) = disruptions.covering("default", first)
    assert covering.object["status"]["expectedPods"] == 5
    assert covering.object["status"]["disruptionsAllowed"] == 0
