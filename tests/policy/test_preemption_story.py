"""The sample preemption.yaml on a sandbox with a running operator: the pods that an important pod displaces, and its words until then."""

from __future__ import annotations

from typing import Any

from handlers.stage import Stage, operator
from policy.samples import apply_sample, sample

SCHEDULER = "considerate"
PROTECTED = "Victims are protected by spec.preemption.protect"
IN_BUDGETS = "Victims are kept by a PodDisruptionBudget under spec.preemption.disruptionBudgets=Strict"


def apply(stage: Stage, **rules: Any) -> None:
    """Apply the sample with seconds in place of minutes."""
    assert apply_sample(stage, "preemption.yaml", preemption=rules_of_the_sample(**rules)) == SCHEDULER
    stage.sandbox.writes.create(
        stage.sandbox.resource("scheduling.k8s.io", "v1", "priorityclasses"), "", {"metadata": {"name": "important"}, "value": 1000}
    )


def rules_of_the_sample(**rules: Any) -> dict[str, Any]:
    return {**sample("preemption.yaml")["spec"]["preemption"], "waitSeconds": 0, "minRunSeconds": 0, **rules}


def create_pod(stage: Stage, name: str, *, important: bool = False, **labels: str) -> None:
    """A pod that fills a node."""
    container = {"name": "main", "image": "example.test/main", "resources": {"requests": {"cpu": "4"}}}
    spec = {"schedulerName": SCHEDULER, "containers": [container], "terminationGracePeriodSeconds": 0}
    priority = {"priorityClassName": "important"} if important else {}
    content = {"metadata": {"name": name, "labels": labels}, "spec": {**spec, **priority}}
    stage.sandbox.writes.create(stage.sandbox.resource("", "v1", "pods"), "default", content)


def budget(stage: Stage, app: str, **spec: Any) -> None:
    content = {"metadata": {"name": app}, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}
    stage.sandbox.writes.create(stage.sandbox.resource("policy", "v1", "poddisruptionbudgets"), "default", content)


def names(stage: Stage) -> set[str]:
    return {stored.object["metadata"]["name"] for stored in stage.sandbox.store.listed(stage.pod_key)}


def said(stage: Stage, name: str) -> str:
    return str(stage.condition(name).get("message", ""))


async def test_neither_a_budget_is_violated_nor_a_protected_pod_displaced_and_a_change_of_the_rules_counts_at_once(stage: Stage) -> None:
    apply(stage)
    budget(stage, "web", minAvailable=1)
    async with operator(stage):
        create_pod(stage, "web", app="web")
        create_pod(stage, "kept", displaceable="never")
        create_pod(stage, "batch")
        await stage.until(lambda: stage.placed("web", "kept", "batch"))
        create_pod(stage, "first", important=True)
        await stage.until(lambda: stage.placed("first"))
        assert names(stage) == {"web", "kept", "first"}
        create_pod(stage, "second", important=True)
        await stage.until(lambda: PROTECTED in said(stage, "second"))
        assert f"1 {IN_BUDGETS}" in said(stage, "second")
        assert "preemption: 0/3 nodes are available: " in said(stage, "second")
        stage.edit_profile(SCHEDULER, preemption=rules_of_the_sample(disruptionBudgets="BestEffort"))
        await stage.until(lambda: stage.placed("second"))
        assert names(stage) == {"kept", "first", "second"}
        create_pod(stage, "third", important=True)
        await stage.until(lambda: PROTECTED in said(stage, "third"))
        assert "kept" in names(stage)


def allowed(stage: Stage, app: str) -> int:
    found = stage.sandbox.writes.current(stage.sandbox.resource("policy", "v1", "poddisruptionbudgets"), "default", app).object
    return int((found.get("status") or {}).get("disruptionsAllowed", -1))


async def test_pods_that_come_at_once_displace_together_no_more_than_the_budget_allows(stage: Stage) -> None:
    apply(stage)
    budget(stage, "web", minAvailable=2)
    async with operator(stage):
        webs = {f"web-{n}" for n in range(3)}
        for name in webs:
            create_pod(stage, name, app="web")
        await stage.until(lambda: stage.placed(*webs) and allowed(stage, "web") == 1, "one of three web pods may leave")
        important = [f"important-{n}" for n in range(3)]
        for name in important:
            create_pod(stage, name, important=True)
        await stage.until(lambda: sum(stage.placed(name) for name in important) == 1)
        await stage.until(lambda: sum(IN_BUDGETS in said(stage, name) for name in important) == 2)
        await stage.until(lambda: allowed(stage, "web") == 0)
        assert len(names(stage) & webs) == 2


async def test_a_pod_displaces_another_once_it_has_waited_and_a_node_that_comes_before_spares_the_other(stage: Stage) -> None:
    apply(stage, waitSeconds=3)
    async with operator(stage) as running:
        for name in ("x", "y", "z"):
            create_pod(stage, name)
        await stage.until(lambda: stage.placed("x", "y", "z"))
        create_pod(stage, "spared", important=True)
        await stage.until(lambda: "preemption: not eligible due to spec.preemption.waitSeconds=3." in said(stage, "spared"))
        stage.node("late")
        await stage.until(lambda: stage.placed("spared"))
        assert (names(stage), stage.node_of("spared")) == ({"x", "y", "z", "spared"}, "late")
        create_pod(stage, "waits", important=True)
        await stage.until(lambda: "waitSeconds=3" in said(stage, "waits"))
        uid = stage.show("waits")["metadata"]["uid"]
        assert running.engine.deciding.queue.wake_ups.of(uid) is not None
        await stage.until(lambda: stage.placed("waits"))
        assert len(names(stage) & {"x", "y", "z"}) == 2
        assert ("Preempted", f"Preempted by pod {uid} on node {stage.node_of('waits')}") in [
            event for name in ("x", "y", "z") for event in stage.events(name)
        ]
