"""Tokens, rights and orders of the sandbox itself; who may do what by which role is asked in tests/contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kubesandbox.auth.access import User
from kubesandbox.server import Sandbox, SandboxOptions
from lab.sandbox.http import Client, client_of

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
ROBOT = User.service_account("default", "robot")


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """One in which an account may ask for everything that is no resource."""
    async with Sandbox(SandboxOptions(seed=1)) as made:
        made.writes.create(made.resource("", "v1", "serviceaccounts"), "default", {"metadata": {"name": "robot"}})
        role = {"metadata": {"name": "wide"}, "rules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}
        made.writes.create(made.resource(RBAC, "v1", "clusterroles"), "", role)
        subject = {"kind": "ServiceAccount", "namespace": "default", "name": "robot"}
        bound = {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "wide"}, "subjects": [subject]}
        made.writes.create(made.resource(RBAC, "v1", "clusterrolebindings"), "", {"metadata": {"name": "wide"}, **bound})
        yield made


@pytest.fixture
async def robot(sandbox: Sandbox) -> AsyncIterator[Client]:
    """A client with a token that was asked for as `kubectl create token` asks."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    async with client_of(sandbox.kubeconfig) as admin:
        answer = await admin.expect(201, "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", asked)
    assert answer["status"]["expirationTimestamp"]
    async with client_of(sandbox.kubeconfig, token=answer["status"]["token"]) as made:
        yield made


async def test_a_token_ends_when_its_time_is_over(sandbox: Sandbox, robot: Client) -> None:
    await robot.expect(200, "GET", "/version")
    before = sandbox.writes.identity.clock()
    sandbox.writes.identity.clock = lambda: before + 601
    assert (await robot.expect(401, "GET", "/version"))["code"] == 401


async def test_what_was_refused_to_whom_is_remembered(sandbox: Sandbox, robot: Client) -> None:
    await robot.expect(403, "GET", "/api/v1/pods")
    await robot.expect(403, "DELETE", "/apis/apps/v1/namespaces/default/deployments/web")
    found = [(each.user, each.asked.verb, each.asked.resource) for each in sandbox.access.authorizer.refusals]
    assert [(user.name, verb, resource) for user, verb, resource in found] == [
        (ROBOT.name, "list", "pods"),
        (ROBOT.name, "delete", "deployments"),
    ]


async def test_only_an_administrator_gives_the_sandbox_orders(robot: Client) -> None:
    assert (await robot.expect(403, "POST", "/sandbox/refuse-connections"))["code"] == 403
