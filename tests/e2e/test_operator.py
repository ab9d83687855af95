"""The operator on a real API server, with the rights that are shipped and no others."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from placewright.kube.errors import ApiError

from .installation import PROFILES, shipped
from .stage import Stage

WEIGHTS = {"NodeResourcesFit": 5}


async def test_the_definitions_are_accepted_as_they_are_shipped(stage: Stage) -> None:
    for manifest in shipped():
        if manifest["kind"] == "CustomResourceDefinition":
            path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{manifest['metadata']['name']}"
            conditions = json.loads(await stage.client.get(path))["status"]["conditions"]
            assert {each["type"]: each["status"] for each in conditions} == {"NamesAccepted": "True", "Established": "True"}


async def test_a_thousand_pods_on_a_hundred_nodes_are_bound_and_run(stage: Stage) -> None:
    await stage.nodes(100)
    async with stage.active_operator():
        keys = await stage.pods(1000)
        await stage.until_running(keys)
        await stage.until_told(keys)
    assert {(stage.decision(key).profile, stage.decision(key).generation) for key in keys} == {("default", 1)}
    assert all(stage.pod(key).condition("PodScheduled")["status"] == "True" for key in keys)
    assert len({stage.node_of(key) for key in keys}) == 100
    if stage.installation.control_plane is not None:
        requests = Counter(each.uid for each in stage.binding_requests())
        assert requests == dict.fromkeys((stage.pod(key).metadata.uid for key in keys), 1), "one request a pod, and none in vain"


async def test_a_rejected_pod_is_told_why_and_placed_when_the_taint_goes(stage: Stage) -> None:
    tainted = await stage.node("tainted", taint="maintenance")
    async with stage.active_operator():
        (key,) = await stage.pods(1)
        message = await stage.until_rejected(key)
        assert "1 node(s) had untolerated taint(s)" in message
        await stage.patch(f"/api/v1/nodes/{tainted}", {"spec": {"taints": None}})
        await stage.until_placed([key])
    assert stage.node_of(key) == tainted


async def test_weights_that_are_patched_live_decide_from_then_on(stage: Stage) -> None:
    await stage.nodes(3)
    async with stage.active_operator():
        before = await stage.pods(5)
        await stage.until_placed(before)
        generation = await stage.edit_profile(weights=WEIGHTS)
        await stage.until_active(generation)
        after = await stage.pods(5)
        await stage.until_placed(after)
    assert {stage.decision(key).generation for key in before} == {1}
    assert {stage.decision(key).generation for key in after} == {generation}


async def test_a_profile_that_cannot_run_is_refused_and_the_one_before_places_on(stage: Stage) -> None:
    await stage.nodes(3)
    async with stage.active_operator():
        bad = await stage.edit_profile(weights={"NoSuchPlugin": 1})

        def refused() -> bool:
            profile = stage.views.profiles["default"]
            return profile.status.get("observedGeneration") == bad and profile.condition("Ready").get("status") == "False"

        await stage.views.until(refused, lambda: f"generation {bad} is refused: {stage.views.profiles['default'].status}")
        keys = await stage.pods(5)
        await stage.until_placed(keys)
    profile = stage.views.profiles["default"]
    assert profile.status["activeGeneration"] == 1
    assert profile.condition("Stalled")["status"] == "True"
    assert "NoSuchPlugin" in profile.condition("Stalled")["message"]
    assert {stage.decision(key).generation for key in keys} == {1}


async def test_a_value_that_the_schema_forbids_is_refused_by_the_api_server(stage: Stage) -> None:
    with pytest.raises(ApiError) as refusal:
        await stage.edit_profile(weights={"NodeResourcesFit": -1})
    assert refusal.value.status == 422
    assert "spec.weights.NodeResourcesFit" in refusal.value.message
    assert json.loads(await stage.client.get(f"{PROFILES}/default"))["metadata"]["generation"] == 1


async def test_a_pod_that_nests_deeply_keeps_no_other_pod_from_its_node_also_after_a_restart(stage: Stage) -> None:
    """An API server stores the `managedFields` that come with a pod, up to 10,000 levels deep; decoders in Python go about 1,000 deep."""
    await stage.nodes(3)
    deep = '{"f:a":' * 3000 + "{}" + "}" * 3000
    managed = {"manager": "tenant", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": "DEEP"}
    spec = {"schedulerName": "placewright", "containers": [{"name": "main", "image": "example.test/main"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "deep", "managedFields": [managed]}, "spec": spec}
    body = json.dumps(pod).replace('"DEEP"', f'{{"f:metadata": {{"f:annotations": {deep}}}}}').encode()
    for _ in range(2):
        async with stage.active_operator():
            if not stage.operators[1:]:
                stored = await stage.client.post(f"/api/v1/namespaces/{stage.namespace}/pods", body)
                assert deep[:5000].encode() in stored, "this server keeps what is deep"
            await stage.until_placed(await stage.pods(5))
