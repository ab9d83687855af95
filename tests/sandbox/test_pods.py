"""Binding and eviction: what they do, and all that they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from placewright.sandbox.disruptions import Disruptions
from placewright.sandbox.pods import PodOperations
from placewright.sandbox.status import ApiError
from placewright.sandbox.writes import DeleteOptions
from sandbox.makers import Core, Object, binding, pod


def operations(core: Core) -> PodOperations:
    budgets = core.type("poddisruptionbudgets")
    return PodOperations(core.writes, core.type("pods"), Disruptions(core.writes, budgets))


def refused_binding(core: Core, name: str, content: object) -> ApiError:
    before = core.store.version
    with pytest.raises(ApiError) as refused:
        operations(core).bind("default", name, content)
    assert core.store.version == before, "a refused binding writes nothing"
    return refused.value


def test_binding_sets_node_condition_and_annotations_in_one_write() -> None:
    core = Core()
    created = pod("web")
    created["metadata"]["annotations"] = {"kept": "yes", "why": "unknown"}
    core.create("pods", created)
    before = core.store.version
    operations(core).bind("default", "web", binding("web", "node-a", annotations={"why": "best"}))
    bound = core.get("pods", "web")
    assert bound is not None
    assert core.store.version == before + 1
    assert bound["spec"]["nodeName"] == "node-a"
    assert bound["metadata"]["annotations"] == {"kept": "yes", "why": "best"}
    assert [(each["type"], each["status"]) for each in bound["status"]["conditions"]] == [("PodScheduled", "True")]


def test_binding_replaces_the_condition_that_said_unschedulable() -> None:
    core = Core()
    core.create("pods", pod("web"))
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    core.writes.modify(
        core.type("pods"), "default", "web", lambda found: found["status"].update(conditions=[unschedulable])
    )
    operations(core).bind("default", "web", binding("web"))
    bound = core.get("pods", "web")
    assert bound is not None
    assert [each["status"] for each in bound["status"]["conditions"]] == ["True"]


def test_the_node_need_not_exist() -> None:
    core = Core()
    core.create("pods", pod("web"))
    operations(core).bind("default", "web", binding("web", "nowhere"))
    bound = core.get("pods", "web")
    assert bound is not None and bound["spec"]["nodeName"] == "nowhere"


def test_a_bound_pod_is_not_bound_again_even_to_the_same_node() -> None:
    core = Core()
    core.create("pods", pod("web", node="node-a"))
    refused = refused_binding(core, "web", binding("web", "node-a"))
    assert (refused.code, refused.reason) == (409, "Conflict")
    assert 'pod web is already assigned to node "node-a"' in refused.message


def test_a_pod_being_deleted_is_not_bound() -> None:
    core = Core()
    core.create("pods", {**pod("web"), "metadata": {"name": "web", "finalizers": ["example.test/hold"]}})
    core.writes.delete(core.type("pods"), "default", "web")
    refused = refused_binding(core, "web", binding("web"))
    assert (refused.code, "is being deleted" in refused.message) == (409, True)


def test_a_gated_pod_is_not_bound() -> None:
    core = Core()
    core.create("pods", pod("web", gates=("example.test/quota",)))
    refused = refused_binding(core, "web", binding("web"))
    assert (refused.code, "non-empty .spec.schedulingGates" in refused.message) == (409, True)


def test_a_binding_for_another_uid_is_a_conflict() -> None:
    core = Core()
    created = core.create("pods", pod("web"))
    assert refused_binding(core, "web", binding("web", uid="another")).code == 409
    operations(core).bind("default", "web", binding("web", uid=created["metadata"]["uid"]))


def test_a_binding_for_an_older_version_is_a_conflict() -> None:
    core = Core()
    created = core.create("pods", pod("web"))
    core.writes.modify(core.type("pods"), "default", "web", lambda found: found["metadata"].update(labels={"a": "b"}))
    version = created["metadata"]["resourceVersion"]
    assert refused_binding(core, "web", binding("web", resourceVersion=version)).code == 409


def test_a_missing_pod_is_not_found() -> None:
    assert refused_binding(Core(), "web", binding("web")).code == 404


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, 400),
        ([], 400),
        ({"metadata": {"name": "other"}, "target": {"name": "node-a"}}, 400),
        ({"metadata": ["web"], "target": {"name": "node-a"}}, 400),
        ({"metadata": {}, "target": "node-a"}, 400),
        ({"metadata": {}, "target": {"kind": "Pod", "name": "node-a"}}, 500),
        ({"metadata": {}, "target": {"kind": "Node"}}, 500),
        ({"metadata": {}, "target": {"name": ["node-a"]}}, 400),
        ({"metadata": {}}, 500),
        ({"kind": "Pod", "metadata": {}, "target": {"name": "node-a"}}, 400),
        ({"metadata": {"namespace": "other"}, "target": {"name": "node-a"}}, 400),
        ({"metadata": {"annotations": ["a"]}, "target": {"name": "node-a"}}, 400),
        ({"metadata": {"annotations": {"a": 1}}, "target": {"name": "node-a"}}, 400),
    ],
)
def test_a_binding_that_makes_no_sense_is_refused(content: object, code: int) -> None:
    core = Core()
    core.create("pods", pod("web"))
    assert refused_binding(core, "web", content).code == code


def test_a_dry_run_checks_and_binds_nothing() -> None:
    core = Core()
    core.create("pods", pod("web"))
    operations(core).bind("default", "web", binding("web"), dry_run=True)
    found = core.get("pods", "web")
    assert found is not None
    assert "nodeName" not in found["spec"]
    core.create("pods", pod("bound", node="node-a"))
    with pytest.raises(ApiError):
        operations(core).bind("default", "bound", binding("bound"), dry_run=True)


def test_a_gated_pod_says_so_when_it_is_created() -> None:
    created = Core().create("pods", pod("web", gates=("example.test/quota",)))
    (condition,) = created["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


def running(core: Core, name: str, node: str = "node-a") -> None:
    core.create("pods", pod(name, node=node, labels={"app": "web"}))
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    core.writes.modify(core.type("pods"), "default", name, lambda found: found.update(status=ready))


def budget(core: Core, name: str = "web", **spec: Any) -> None:
    selector = {"matchLabels": {"app": "web"}}
    core.create("poddisruptionbudgets", {"metadata": {"name": name}, "spec": {"selector": selector, **spec}})


async def test_an_eviction_within_the_budget_deletes_and_the_next_one_is_told_to_wait() -> None:
    core = Core()
    evicting = operations(core)
    for name in ("a", "b", "c"):
        running(core, name)
    budget(core, minAvailable=2)
    evicting.evict("default", "a", DeleteOptions())
    with pytest.raises(ApiError) as refused:
        evicting.evict("default", "b", DeleteOptions())
    assert (refused.value.code, refused.value.reason) == (429, "TooManyRequests")
    assert refused.value.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert refused.value.details["causes"][0]["reason"] == "DisruptionBudget"
    found = core.get("pods", "b")
    assert found is not None
    assert "deletionTimestamp" not in found["metadata"]


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
    disruptions = Disruptions(core.writes, core.type("poddisruptionbudgets"))
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
    disruptions = Disruptions(core.writes, core.type("poddisruptionbudgets"))
    owner = core.create("replicasets", {"metadata": {"name": "web"}, "spec": {"replicas": 5}})
    reference = {"kind": "ReplicaSet", "name": "web", "uid": owner["metadata"]["uid"], "controller": True}
    running(core, "a")
    core.writes.modify(
        core.type("pods"), "default", "a", lambda found: found["metadata"].update(ownerReferences=[reference])
    )
    budget(core, maxUnavailable=1)
    first = core.get("pods", "a")
    assert first is not None
    (covering,) = disruptions.covering("default", first)
    assert covering.object["status"]["expectedPods"] == 5
    assert covering.object["status"]["disruptionsAllowed"] == 0


async def test_pods_that_do_not_run_are_evicted_whatever_the_budget() -> None:
    core = Core()
    evicting = operations(core)
    core.create("pods", pod("waiting", labels={"app": "web"}))
    budget(core, maxUnavailable=0)
    evicting.evict("default", "waiting", DeleteOptions())
    assert core.get("pods", "waiting") is None


async def test_two_budgets_over_one_pod_are_an_error() -> None:
    core = Core()
    evicting = operations(core)
    running(core, "a")
    budget(core, "web", minAvailable=0)
    budget(core, "also", minAvailable=0)
    with pytest.raises(ApiError) as refused:
        evicting.evict("default", "a", DeleteOptions())
    assert refused.value.code == 500


async def test_an_eviction_for_another_uid_is_a_conflict() -> None:
    core = Core()
    evicting = operations(core)
    running(core, "a")
    with pytest.raises(ApiError) as refused:
        evicting.evict("default", "a", DeleteOptions(uid="another"))
    assert refused.value.code == 409
