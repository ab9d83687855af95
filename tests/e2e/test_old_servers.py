"""Kubernetes 1.20 is not 1.36: what a server lacks is said once, and nothing breaks. A test that depends on the version names it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import pytest

from placewright.engine.engine import Engine, build_engine
from placewright.engine.options import EngineOptions
from placewright.handlers.operator import run_engine
from placewright.kube.auth.login import load_config
from placewright.kube.client import MERGE_PATCH
from placewright.kube.errors import CONFLICT, ApiError
from placewright.kube.reflector import Reflector, Reflectors, Source
from placewright.kube.serverversion import server_version
from programs import not_on_this_server

from . import makers
from .installation import PROFILES, Installation
from .stage import Stage, new_stage
from .views import DEADLINE, Seen

Object = dict[str, Any]
CLASSES: Final = "/apis/scheduling.k8s.io/v1/priorityclasses"
DEFINITION: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/schedulingprofiles.placewright.dev"
#: Since which minor version: v1 of disruption budgets, v1beta1 of storage capacities; rules in definitions that are kept; gates;
#: Bindings whose uid is compared.
BUDGETS_V1, CAPACITIES, RULES, GATES, UIDS = 21, 21, 25, 27, 23


@pytest.fixture
async def minor(stage: Stage) -> int:
    version = await server_version(stage.client)
    assert version is not None
    return version.minor


def said_of_the_server(log: str) -> list[str]:
    return [line for line in log.splitlines() if "API server: " in line]


async def test_one_line_says_what_the_server_lacks(stage: Stage, minor: int) -> None:
    await stage.nodes(1)
    async with stage.active_operator() as process:
        await stage.until_placed(await stage.pods(1))
    (line,) = said_of_the_server(process.log.read_text())
    assert f"API server: Kubernetes 1.{minor}; " in line
    assert ("poddisruptionbudgets.policy in v1beta1" in line) is (minor < BUDGETS_V1)
    assert ("schedulingGates (1.26)" in line) is (minor < GATES - 1)
    assert ("created anew" in line) is (minor < UIDS)
    assert ("lacks nothing" in line) is (minor >= 32)
    assert ("no csistoragecapacities.storage.k8s.io in v1 or v1beta1: VolumeBinding sees none" in line) is (minor < CAPACITIES)
    assert (" WARNING " in line) is (minor < CAPACITIES), "only where a plugin is blind"


async def test_an_event_about_a_profile_is_accepted(stage: Stage) -> None:
    """1.20 is particular about events of what has no namespace."""
    async with stage.active_operator():
        uid = stage.views.profiles["default"].metadata.uid
        assert (await _first_event(stage, f"involvedObject.uid={uid}")).reason == "ProfileActive"


async def test_groups_whose_server_is_down_keep_nobody_from_being_placed(stage: Stage) -> None:
    """One that placement would read, and one that it has nothing to do with."""
    await stage.nodes(1)
    async with api_services(stage, ("policy", "v9"), ("metrics.k8s.io", "v1beta1")), stage.active_operator() as process:
        await stage.until_placed(await stage.pods(1))
    (line,) = said_of_the_server(process.log.read_text())
    assert "no answer about policy/v9" in line
    assert "metrics" not in process.log.read_text()


@contextlib.asynccontextmanager
async def api_services(stage: Stage, *groups: tuple[str, str]) -> AsyncIterator[None]:
    """Groups that some server that is not there should serve."""
    collection = "/apis/apiregistration.k8s.io/v1/apiservices"
    names = [f"{version}.{group}" for group, version in groups]
    for name, (group, version) in zip(names, groups, strict=True):
        service = {"namespace": stage.namespace, "name": "nobody", "port": 443}
        spec = {"group": group, "version": version, "service": service, "insecureSkipTLSVerify": True}
        spec |= {"groupPriorityMinimum": 100, "versionPriority": 1}
        manifest = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name}, "spec": spec}
        await stage.client.post(collection, manifest)
    try:
        yield
    finally:
        for name in names:
            await stage.delete(f"{collection}/{name}")


async def _first_event(stage: Stage, selector: str) -> Seen:
    """The first event in the namespace `default` that the field selector finds, as soon as there is one."""
    first: asyncio.Future[Seen] = asyncio.get_running_loop().create_future()

    class First:
        def changed(self, old: Seen | None, new: Seen) -> None:
            if not first.done():
                first.set_result(new)

        def deleted(self, old: Seen) -> None:
            return

        def synced(self) -> None:
            return

    watching = Reflectors([Reflector(stage.client, Source("/api/v1/namespaces/default/events", Seen, selector), First())])
    watching.start()
    try:
        async with asyncio.timeout(DEADLINE):
            return await first
    finally:
        await watching.stop()


# --- fields that old servers drop ---------------------------------------------------------------------------------------------------


async def test_a_pod_with_scheduling_gates_is_placed_where_there_are_none_and_waits_where_there_are(stage: Stage, minor: int) -> None:
    await stage.nodes(1)
    manifest = makers.a_pod("gated", stage.namespace, stage.namespace)
    manifest["spec"]["schedulingGates"] = [{"name": "example.test/wait"}]
    key, path = f"{stage.namespace}/gated", f"/api/v1/namespaces/{stage.namespace}/pods"
    made = json.loads(await stage.client.post(path, manifest))
    assert ("schedulingGates" in made["spec"]) is (minor >= GATES)
    async with stage.active_operator():
        if minor >= GATES:
            await stage.until_placed(await stage.pods(1))
            assert not stage.node_of(key)
            await stage.patch(f"{path}/gated", {"spec": {"schedulingGates": None}})
        await stage.until_placed([key])


async def test_a_rule_in_a_definition_that_the_server_drops_does_no_harm(stage: Stage, minor: int) -> None:
    definition = json.loads(await stage.client.get(DEFINITION))
    rule = {"rule": "self.schedulerName != 'forbidden'", "message": "not this one"}
    place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/x-kubernetes-validations"
    await _patch_definition(stage, [{"op": "add", "path": place, "value": [rule]}])
    try:
        changed = json.loads(await stage.client.get(DEFINITION))
        assert (changed["spec"] != definition["spec"]) is (minor >= RULES)
        await stage.nodes(1)
        async with stage.active_operator():
            profile = {
                "apiVersion": "placewright.dev/v1alpha1",
                "kind": "SchedulingProfile",
                "metadata": {"name": "ruled"},
                "spec": {"schedulerName": "forbidden"},
            }
            if minor >= RULES:
                assert "not this one" in str(await _refusal(stage, profile))
            else:
                await stage.client.post(PROFILES, profile)
                await stage.until_active(1, "ruled")
            await stage.until_placed(await stage.pods(1))
    finally:
        await stage.delete(f"{PROFILES}/ruled")
        if minor >= RULES:
            await _patch_definition(stage, [{"op": "remove", "path": place}])


async def _patch_definition(stage: Stage, operations: list[Object]) -> None:
    await stage.client.patch(DEFINITION, operations, content_type="application/json-patch+json")  # type: ignore[arg-type]


async def _refusal(stage: Stage, profile: Object) -> ApiError:
    """A changed definition takes effect a moment after it was written."""
    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                await stage.client.post(PROFILES, profile)
            except ApiError as refused:
                return refused
            await stage.delete(f"{PROFILES}/ruled")


async def test_what_a_shipped_rule_forbids_is_refused_by_the_server_or_else_by_the_operator(stage: Stage, minor: int) -> None:
    wrong = {"initialSeconds": 10, "maxSeconds": 1}
    if minor >= RULES:
        with pytest.raises(ApiError, match="maxSeconds is at least initialSeconds"):
            await stage.edit_profile(backoff=wrong)
        return
    async with stage.active_operator():
        refused = await stage.edit_profile(backoff=wrong)

        def stalled() -> bool:
            profile = stage.views.profiles["default"]
            return profile.status.get("observedGeneration") == refused and profile.condition("Stalled").get("status") == "True"

        await stage.views.until(stalled, lambda: f"generation {refused} is refused: {stage.views.profiles['default'].status}")
    assert "spec.backoff.maxSeconds: found 1" in stage.views.profiles["default"].condition("Stalled")["message"]


# --- disruption budgets -------------------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def priority_classes(stage: Stage, values: Mapping[str, int]) -> AsyncIterator[None]:
    for name, value in values.items():
        body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": f"{stage.namespace}-{name}"}}
        await stage.client.post(CLASSES, {**body, "value": value})
    try:
        yield
    finally:
        for name in values:
            await stage.delete(f"{CLASSES}/{stage.namespace}-{name}")


async def make_pod(stage: Stage, name: str, *, on: str = "", cpu: str = "3", priority: str = "", **labels: str) -> str:
    """One pod of this name; its key."""
    manifest = makers.a_pod(name, stage.namespace, stage.namespace, on=on, cpu=cpu)
    manifest["metadata"]["labels"] = labels
    if priority:
        manifest["spec"]["priorityClassName"] = f"{stage.namespace}-{priority}"
    await stage.client.post(f"/api/v1/namespaces/{stage.namespace}/pods", manifest)
    return f"{stage.namespace}/{name}"


async def make_budget(stage: Stage, version: str, name: str, selector: Object, *, needed: int, allowed: int) -> None:
    """A budget, with the status that the disruption controller would write where there is one."""
    path = f"/apis/policy/{version}/namespaces/{stage.namespace}/poddisruptionbudgets"
    spec = {"minAvailable": needed, "selector": selector}
    await stage.client.post(
        path, {"apiVersion": f"policy/{version}", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec}
    )
    status = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": needed, "expectedPods": 1}
    await stage.client.patch(f"{path}/{name}/status", {"status": status}, content_type=MERGE_PATCH)


async def test_preemption_spares_a_pod_that_a_budget_protects(stage: Stage, minor: int) -> None:
    """By priority alone the protected pod would have to go: its node is the better choice."""
    version = "v1" if minor >= BUDGETS_V1 else "v1beta1"
    guarded_node, other_node = await stage.nodes(2)
    async with priority_classes(stage, {"low": 1, "middle": 2, "high": 3}):
        async with stage.active_operator():
            guarded = await make_pod(stage, "guarded", on=guarded_node, priority="low", app="guarded")
            other = await make_pod(stage, "other", on=other_node, priority="middle", app="other")
            await stage.until_running([guarded, other])
        await make_budget(stage, version, "guarded", {"matchLabels": {"app": "guarded"}}, needed=1, allowed=0)
        await make_budget(stage, version, "other", {"matchLabels": {"app": "other"}}, needed=0, allowed=1)
        if version == "v1beta1":
            await make_budget(stage, version, "nobody", {}, needed=1, allowed=0)
        async with stage.active_operator():
            urgent = await make_pod(stage, "urgent", priority="high")
            await stage.until_placed([urgent])
        assert stage.node_of(urgent) == other_node
        assert stage.node_of(guarded) == guarded_node
        assert other not in stage.views.pods


# --- Bindings and namesakes ---------------------------------------------------------------------------------------------------------


@pytest.fixture
async def unchecked_stage(installation: Installation) -> AsyncIterator[Stage]:
    """Without the check at the end: here Bindings do reach pods that they were not meant for."""
    async with new_stage(installation) as made:
        yield made


async def test_a_binding_meant_for_a_predecessor(unchecked_stage: Stage) -> None:
    """Before 1.23 it binds whoever has the name, and its answer does not tell."""
    stage = unchecked_stage
    version = await server_version(stage.client)
    assert version is not None
    if version.minor in (25, 26):
        not_on_this_server("1.25 lost the preconditions of bindings, which 1.27 and some late patch releases have again")
    key = await make_pod(stage, "again")
    pod_path = f"/api/v1/namespaces/{stage.namespace}/pods/again"
    first = json.loads(await stage.client.get(pod_path))["metadata"]["uid"]
    await stage.delete_pod(key)
    await make_pod(stage, "again")
    body = _binding("again", stage.namespace, first, "some-node")
    if version.minor < UIDS:
        answer = json.loads(await stage.client.post(f"{pod_path}/binding", body))
        assert (answer["kind"], answer["status"]) == ("Status", "Success")
    else:
        with pytest.raises(ApiError) as refused:
            await stage.client.post(f"{pod_path}/binding", body)
        assert refused.value.status == CONFLICT
    found = json.loads(await stage.client.get(pod_path))
    assert found["metadata"]["uid"] != first
    assert (found["spec"].get("nodeName") == "some-node") is version.ignores_uids


def _binding(name: str, namespace: str, uid: str, node: str) -> Object:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": namespace, "uid": uid}, "target": target}


async def test_a_pod_created_anew_while_it_is_bound_is_counted_as_it_is(unchecked_stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """The operator runs in this process, so that the pod can be replaced between its decision and its Binding."""
    stage = unchecked_stage
    version = await server_version(stage.client)
    assert version is not None
    if version.minor in (25, 26):
        not_on_this_server("1.25 lost the preconditions of bindings, which 1.27 and some late patch releases have again")
    (node,) = await stage.nodes(1)
    access = load_config(str(stage.installation.operator_kubeconfig))
    engine = build_engine(access, EngineOptions(reconcile_seconds=3600.0, peering_lifetime=5))
    key = f"{stage.namespace}/again"
    meant = await _replace_before_binding(engine, stage, key)
    async with _running(engine):
        await make_pod(stage, "again", cpu="1")
        await stage.views.until(
            lambda: stage.node_of(key) and stage.pod(key).metadata.uid not in meant and _at_rest(engine, 1), lambda: _seen(engine, key)
        )
        new = stage.pod(key).metadata.uid
        placement = engine.deciding.cluster.placement(new)
        assert placement is not None and (placement.node, placement.pod.requests["cpu"]) == (node, 3500)
        assert engine.reading.event_handlers.repairs.replaced == int(version.ignores_uids)
        assert sum("is another one" in each for each in caplog.messages) == int(version.ignores_uids)
        fits = await make_pod(stage, "fits", cpu="500m")
        await stage.until_placed([fits])
        await stage.views.until(lambda: _at_rest(engine, 2), lambda: _seen(engine, key))


async def _replace_before_binding(engine: Engine, stage: Stage, key: str) -> list[str]:
    """The first Binding waits until its pod was replaced by a bigger one; others wait for it. Returns the uids that it was meant for."""
    client = engine.writing.binder.client
    write, turn, meant = client.write, asyncio.Lock(), list[str]()

    async def replacing(method: str, path: str, body: Any, *rest: Any, **more: Any) -> None:
        if not path.endswith("/binding"):
            return await write(method, path, body, *rest, **more)
        async with turn:
            if not meant:
                meant.append(json.loads(body.data)["metadata"]["uid"])
                await stage.delete_pod(key)
                await make_pod(stage, "again", cpu="3500m")
            return await write(method, path, body, *rest, **more)

    client.write = replacing  # type: ignore[method-assign]
    return meant


@contextlib.asynccontextmanager
async def _running(engine: Engine) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(run_engine(engine, stop))
    try:
        yield
    finally:
        stop.set()
        await task


def _at_rest(engine: Engine, pods: int) -> bool:
    """So many pods on nodes, all confirmed, and nobody waits or is under way."""
    cluster, queue = engine.deciding.cluster, engine.deciding.queue
    return (cluster.pod_count_total, cluster.assumed_count, len(queue), len(queue.in_flight)) == (pods, 0, 0, 0)


def _seen(engine: Engine, key: str) -> str:
    deciding = engine.deciding
    return f"{key} stands once and nothing is left over: {list(deciding.cluster.placements())}, queue {deciding.queue.sizes()}"
