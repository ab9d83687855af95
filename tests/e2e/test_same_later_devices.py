"""120 pods with claims, placed by a real kube-scheduler 1.36 with alpha gates of devices: nodes, messages, devices, statuses are ours.

The seed is fixed; another one is tried as well when SAME_ANSWERS_SEED names it.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pytest

from contract.cluster import client_from
from contract.devices import GROUP, a_claim, allocation, device_class, resource_slice, shared_path
from e2e.answers.comparing import PODS, Object, create, evaluator_of, judged, listed, node_of, path_of
from e2e.answers.devicerecording import CLAIMS, DeviceRecorder, SelectedRecorder, ServedRecorder
from e2e.answers.grouped import FEATURES
from e2e.answers.recording import SEED, Decision, record, seeds
from e2e.answers.volumerules import fitting
from placewright.api.decode import convert
from placewright.api.devices import AllocationResult, ConsumerReference, ResourceClaim
from placewright.api.objects import NodeAllocatableClaimStatus, NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.api.quantity import nano
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.writers.claims import HttpClaimWriter
from placewright.plugins.dynamicresources.claims import group_claims
from placewright_lab.controlplane.assets import from_environment
from placewright_lab.controlplane.flags import Features, gates_flag
from placewright_lab.controlplane.kubescheduler import KubeScheduler
from placewright_lab.controlplane.server import ControlPlane, Options
from placewright_lab.simulation.evaluation import Verdict
from programs import not_on_this_server

_STATUSES: Final = "nodeAllocatableResourceClaimStatuses"


class Scene(NamedTuple):
    """A decision, what we say of it, and what became of the pod and its claim."""

    decision: Decision
    ours: Verdict
    pod: dict[str, Any]
    claim: dict[str, Any]


@pytest.fixture(scope="module", params=seeds(), ids="seed {}".format)
def scenes(request: pytest.FixtureRequest) -> list[Scene]:
    decisions = record(DeviceRecorder, request.param)
    last = {(each["kind"], each["metadata"]["name"]): each for each in decisions[-1].objects}
    claims = [each.pod["spec"]["resourceClaims"][0]["resourceClaimName"] for each in decisions]
    return [
        Scene(each, judged(each.objects, each.pod, {}), last.get(("Pod", each.pod["metadata"]["name"]), {}), last["ResourceClaim", claim])
        for each, claim in zip(decisions, claims, strict=True)
    ]


def test_the_same_nodes_can_hold_the_pod(scenes: list[Scene]) -> None:
    problems = [
        f"{decision.key}: kube-scheduler found {sorted(decision.feasible)}, we {sorted(fitting(ours))}; {decision.message}"
        for decision, ours, *_ in scenes
        if decision.node and (decision.feasible != fitting(ours) if decision.scores else decision.node not in fitting(ours))
    ]
    assert not problems, listed(problems)


def test_a_pod_that_fits_nowhere_is_told_so_in_the_same_words(scenes: list[Scene]) -> None:
    problems = [
        f"{decision.key}: {decision.message!r}, ours {ours.message!r}" for decision, ours, *_ in scenes if decision.message != ours.message
    ]
    assert not problems, listed(problems)


def test_on_the_same_node_the_claim_gets_the_same_devices_and_the_pod_the_same_status(scenes: list[Scene]) -> None:
    problems = []
    for decision, _, pod, claim in scenes:
        if decision.node and pod:
            devices, statuses = placed(decision)
            theirs = [(each["device"], plain(each.get("consumedCapacity"))) for each in claim["status"]["allocation"]["devices"]["results"]]
            if devices != theirs:
                problems.append(f"{decision.key}: {theirs}, ours {devices}")
            if statuses != in_nanos(pod["status"].get(_STATUSES, [])):
                problems.append(f"{decision.key}: {pod['status'].get(_STATUSES)}, ours {statuses}")
    assert not problems, listed(problems)


def test_the_pods_were_worth_comparing(scenes: list[Scene]) -> None:
    reasons = Counter(reason for scene in scenes for each in scene.ours.nodes for reason in each.reasons)
    by_devices = Counter(
        reason for scene in scenes for each in scene.ours.nodes if each.plugin == "DynamicResources" for reason in each.reasons
    )
    assert by_devices["Insufficient cpu"] >= 10, reasons
    assert by_devices["cannot allocate all claims"] >= 20, reasons
    assert sum(bool(scene.decision.node) for scene in scenes) >= 30
    assert sum(bool(scene.pod.get("status", {}).get(_STATUSES)) for scene in scenes) >= 20


def placed(decision: Decision) -> tuple[list[Any], list[Any]]:
    """The devices and the status of the pod if we place it on the node of this decision."""
    world, evaluator = evaluator_of([*decision.objects, decision.pod], {})
    pod, node = world.pending[decision.key], NodeName(decision.node)
    evaluation = evaluator.evaluate(pod)
    world.cluster.assume(pod, node)
    assert evaluator.runtime.run_reserve(evaluation.state, pod, node).ok
    name = decision.pod["spec"]["resourceClaims"][0]["resourceClaimName"]
    claim = world.cluster.objects.devices.claims.get(name, "default")
    assert claim is not None
    assert claim.status.allocation is not None
    devices = [(each.device, plain(each.consumed_capacity)) for each in claim.status.allocation.devices.results or ()]
    return devices, in_nanos(msgspec.json.decode(msgspec.json.encode(evaluation.state.taken_with_claims)))


def plain(amounts: Any) -> dict[str, int]:
    return {name: nano(amount) for name, amount in (amounts or {}).items()}


def in_nanos(statuses: list[dict[str, Any]]) -> list[Any]:
    return [(each["resourceClaimName"], each.get("containers"), plain(each.get("resources"))) for each in statuses]


# --- scores of extended resources that devices serve -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ServedRecorder, SelectedRecorder])
def test_nodes_score_the_same_by_the_devices_that_serve_an_extended_resource(kind: type[ServedRecorder]) -> None:
    decisions = record(kind, SEED)
    spec = {"pluginConfig": kind.profile["pluginConfig"]}
    problems, scored = [], 0
    for decision in decisions:
        ours = judged(decision.objects, decision.pod, spec)
        if decision.node and decision.node not in fitting(ours):
            problems.append(f"{decision.key} is on {decision.node}, we {sorted(fitting(ours))}")
        for plugin in ("NodeResourcesFit", "NodeResourcesBalancedAllocation") if decision.scores else ():
            found = {each.node: each.scores[plugin].product for each in ours.nodes if each.fits}
            scored += len(set(found.values())) > 1
            if found != decision.scores[plugin]:
                problems.append(f"{decision.key}, {plugin}: {decision.scores[plugin]}, ours {found}")
    assert not problems, listed(problems)
    assert scored >= 30


# --- claims of groups --------------------------------------------------------------------------------------------------------------

_GROUPED: Final = Features(gates=f"{FEATURES.gates},DRAWorkloadResourceClaims=true,DRANodeAllocatableResources=true", apis=FEATURES.apis)
_GROUPS: Final = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
_NAMED: Final = {"name": "gpu", "resourceClaimName": "shared"}


def test_a_claim_of_a_group_is_reserved_for_the_group_as_by_a_real_kube_scheduler() -> None:
    with with_alpha_gates() as plane:
        objects, claim = asyncio.run(group_with_claim(plane))
    world, evaluator = evaluator_of(objects, {})
    for key in sorted(world.pending):
        pod = world.pending[key]
        evaluation = evaluator.evaluate(pod)
        # kube-scheduler 1.36 does not ask where a member reaches devices that another member was about to get, and may miss the node.
        assert [str(world.cluster.names[row]) for row in np.flatnonzero(evaluation.feasible)] == ["node-a"]
        world.cluster.assume(pod, NodeName("node-a"))
        assert evaluator.runtime.run_reserve(evaluation.state, pod, NodeName("node-a")).ok
        group, uids = group_claims(pod, world.cluster)
        assert uids == {claim["metadata"]["uid"]}
        assert [msgspec.to_builtins(group)] == claim["status"]["reservedFor"]


async def group_with_claim(plane: ControlPlane) -> tuple[list[Object], Object]:
    """The objects before two members of a group share a claim, and the claim afterwards."""
    assert plane.assets.kube_scheduler is not None
    flags = gates_flag(_GROUPED.gates)
    scheduler = KubeScheduler(plane.assets.kube_scheduler, plane.assets.minor, plane.kubeconfig, plane.folder, flags=flags)
    async with client_from(plane.kubeconfig) as client:
        room = {"cpu": "8", "memory": "8Gi", "pods": "9"}
        nodes = [{"metadata": {"name": name}, "status": {"allocatable": room, "capacity": room}} for name in ("node-a", "node-b")]
        objects = [{"kind": "Node", **each} for each in await create(client, "/api/v1/nodes", nodes)]
        for plural, body in (("deviceclasses", device_class("gpus")), ("resourceslices", resource_slice("gpus"))):
            [made] = await create(client, shared_path(plural), [body])
            objects.append({"apiVersion": f"{GROUP}/v1", "kind": body["kind"], **made})
        [made] = await create(client, CLAIMS, [a_claim("shared")])
        objects.append({"apiVersion": f"{GROUP}/v1", "kind": "ResourceClaim", **made})
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": [_NAMED]}
        [made] = await create(client, _GROUPS, [{"metadata": {"name": "train"}, "spec": spec}])
        objects.append({"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", **made})
        uses = {"name": "main", "image": "main:1", "resources": {"claims": [{"name": "gpu"}]}}
        members = {"containers": [uses], "resourceClaims": [_NAMED], "schedulingGroup": {"podGroupName": "train"}}
        pods = [{"metadata": {"name": name, "namespace": "default"}, "spec": members} for name in ("a", "b")]
        pods = await create(client, PODS, pods)
        with scheduler:
            async with asyncio.timeout(60.0):
                while True:
                    seen = [(await client.get(path_of(pod))).expect(200) for pod in pods]
                    if all(map(node_of, seen)):
                        break
                    await asyncio.sleep(0.1)
        claim = (await client.get(f"{CLAIMS}/shared")).expect(200)
    return [*objects, *({"kind": "Pod", **pod} for pod in pods)], claim


# --- what we write -----------------------------------------------------------------------------------------------------------------


def test_a_real_api_server_takes_what_we_write_into_claims_of_groups_and_into_pods() -> None:
    with with_alpha_gates() as plane:
        written = asyncio.run(our_writes(plane))
    train = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": "u-train"}
    taken = [{"resourceClaimName": "shared", "containers": ["main"], "resources": {"cpu": "2500m"}}]
    assert written == [[train], [], taken, []]


async def our_writes(plane: ControlPlane) -> list[Any]:
    """The claim's users while a group has it and afterwards; what the pod's status says it takes, and after it was taken back."""
    async with client_from(plane.kubeconfig) as client, ApiClient(load_config(str(plane.kubeconfig))) as ours:
        uses = {"name": "main", "image": "main:1", "resources": {"claims": [{"name": "gpu"}]}}
        spec = {"containers": [uses], "resourceClaims": [_NAMED], "schedulingGroup": {"podGroupName": "train"}}
        [made] = await create(client, PODS, [{"metadata": {"name": "a", "namespace": "default"}, "spec": spec}])
        [claimed] = await create(client, CLAIMS, [a_claim("shared")])
        pod, claim = PodInfo(convert(made, Pod)), convert(claimed, ResourceClaim)
        writer, group = HttpClaimWriter(ours, lambda: True), ConsumerReference.of_pod_group("train", "u-train")
        found = []

        async def look(path: str, field: str) -> None:
            found.append((await client.get(path)).expect(200)["status"].get(field, []))

        claim = await writer.reserve(claim, convert(allocation(), AllocationResult), pod, group)
        await look(f"{CLAIMS}/shared", "reservedFor")
        await writer.release(claim, pod, deallocate=True, group=group)
        await look(f"{CLAIMS}/shared", "reservedFor")
        status = NodeAllocatableClaimStatus(resource_claim_name="shared", containers=("main",), resources={"cpu": "2500m"})
        for statuses in ((status,), ()):
            await writer.tell_node_resources(pod, statuses)
            await look(path_of(made), _STATUSES)
    return found


def with_alpha_gates() -> ControlPlane:
    """A control plane of 1.36 whose gates of groups and devices are on; skips the test where there is none."""
    assets = from_environment(os.environ)
    if assets is None or assets.kube_scheduler is None:
        not_on_this_server("there is no kube-scheduler")
    if assets.minor != 36:
        not_on_this_server("the group's API is that of 1.36")
    return ControlPlane(assets, Options(audit=False, features=_GROUPED))
