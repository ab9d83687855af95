"""Who may write which part of a claim's status: a right to the status alone is not enough, as since Kubernetes 1.36."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from placewright.sandbox.server import Sandbox
from sandbox.claims import claim_spec
from sandbox.http import Client, client_of

Object = dict[str, Any]
GROUP = "resource.k8s.io"
CLAIMS = f"/apis/{GROUP}/v1/namespaces/default/resourceclaims"
STATUS = f"{CLAIMS}/it/status"
MERGE = {"Content-Type": "application/merge-patch+json"}
RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "a", "device": "gpu-0"}
ALLOCATION = {"devices": {"results": [RESULT]}}
SAID = {**{part: RESULT[part] for part in ("driver", "pool", "device")}, "data": {"address": "1"}}


def rule(resource: str, *verbs: str, names: tuple[str, ...] = ()) -> Object:
    return {"apiGroups": [GROUP], "resources": [resource], "verbs": list(verbs), "resourceNames": list(names)}


@asynccontextmanager
async def robot_with(*rules: Object, role: str = "ClusterRole") -> AsyncIterator[tuple[Client, Client]]:
    """An administrator, and an account that may read and patch the status of claims and what `rules` say."""
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as admin:
        await admin.expect(201, "POST", CLAIMS, {"metadata": {"name": "it"}, "spec": claim_spec()})
        await admin.expect(201, "POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
        roles = "/apis/rbac.authorization.k8s.io/v1"
        subjects = [{"kind": "ServiceAccount", "namespace": "default", "name": "robot"}]
        everything = [rule("resourceclaims/status", "patch", "update")]
        for name, kind, content in (("all", "ClusterRole", everything), ("more", role, list(rules))):
            prefix = roles if kind == "ClusterRole" else f"{roles}/namespaces/default"
            await admin.expect(201, "POST", f"{prefix}/{kind.lower()}s", {"metadata": {"name": name}, "rules": content})
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
            body = {"metadata": {"name": name}, "roleRef": reference, "subjects": subjects}
            await admin.expect(201, "POST", f"{prefix}/{kind.lower()}bindings", body)
        async with client_of(sandbox.kubeconfig, token=sandbox.access.new_token("default", "robot")) as robot:
            yield admin, robot


async def test_an_allocation_takes_the_right_to_bind_claims() -> None:
    async with robot_with() as (admin, robot):
        refused = await robot.expect(422, "PATCH", STATUS, {"status": {"allocation": ALLOCATION}}, headers=MERGE)
        needed = 'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="patch" permission'
        assert f"status: Forbidden: {needed}" in refused["message"]
        assert 'cannot patch resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope' in refused["message"]
        assert not (await admin.expect(200, "GET", f"{CLAIMS}/it")).get("status")


async def test_who_may_bind_claims_allocates_and_releases_them() -> None:
    async with robot_with(rule("resourceclaims/binding", "patch")) as (_, robot):
        found = await robot.expect(200, "PATCH", STATUS, {"status": {"allocation": ALLOCATION}}, headers=MERGE)
        assert found["status"]["allocation"] == ALLOCATION
        found = await robot.expect(200, "PATCH", STATUS, {"status": {"allocation": None}}, headers=MERGE)
        assert not found["status"]


async def test_the_right_to_bind_claims_is_asked_for_the_whole_cluster() -> None:
    async with robot_with(rule("resourceclaims/binding", "patch"), role="Role") as (_, robot):
        await robot.expect(422, "PATCH", STATUS, {"status": {"allocation": ALLOCATION}}, headers=MERGE)
        assert (await robot.ask("GET", f"{CLAIMS}/it"))[0] == 403


async def test_the_right_is_that_of_the_verb() -> None:
    async with robot_with(rule("resourceclaims/binding", "patch")) as (admin, robot):
        found = await admin.expect(200, "GET", f"{CLAIMS}/it")
        refused = await robot.expect(422, "PUT", STATUS, {**found, "status": {"allocation": ALLOCATION}})
        assert 'verb="update" permission' in refused["message"]


@pytest.mark.parametrize(("names", "code"), [((), 200), (("gpu.example.com",), 200), (("net.example.com",), 422)])
async def test_what_is_said_of_devices_takes_the_right_of_their_driver(names: tuple[str, ...], code: int) -> None:
    async with robot_with(rule("resourceclaims/driver", "arbitrary-node:patch", names=names)) as (admin, robot):
        await admin.expect(200, "PATCH", STATUS, {"status": {"allocation": ALLOCATION}}, headers=MERGE)
        answer = await robot.expect(code, "PATCH", STATUS, {"status": {"devices": [SAID]}}, headers=MERGE)
        assert ("status.devices requires" in answer.get("message", "")) == (code == 422)


async def test_a_status_that_stays_as_it_is_takes_no_more_than_the_right_to_the_status() -> None:
    async with robot_with() as (admin, robot):
        await admin.expect(200, "PATCH", STATUS, {"status": {"allocation": ALLOCATION, "devices": [SAID]}}, headers=MERGE)
        found = await robot.expect(200, "PATCH", STATUS, {"status": {"devices": [SAID]}}, headers=MERGE)
        assert found["status"]["devices"] == [SAID]
