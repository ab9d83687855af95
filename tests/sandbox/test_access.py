"""Who may do what on the sandbox: ServiceAccounts' tokens, and roles and bindings as a real API server reads them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from placewright.sandbox.rbac import Asked, Authorizer, User
from placewright.sandbox.server import Sandbox, SandboxOptions
from placewright.sandbox.store import Store
from placewright.sandbox.writes import DeleteOptions
from sandbox.http import Client, client_of
from sandbox.makers import Core, config_map

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
ROBOT = User.service_account("default", "robot")
REFERENCE = {"kind": "ServiceAccount", "namespace": "default", "name": "robot"}


def rule(groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()) -> Object:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs), "resourceNames": list(names)}


class Rights:
    """Roles and bindings in a store without HTTP."""

    def __init__(self) -> None:
        self.core = Core()
        self.authorizer = Authorizer(self.core.store)

    def everywhere(self, *rules: Object, subject: Object = REFERENCE) -> Rights:
        self.core.create("clusterroles", {"metadata": {"name": "wide"}, "rules": list(rules)})
        bound = {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "wide"}, "subjects": [subject]}
        self.core.create("clusterrolebindings", {"metadata": {"name": "wide"}, **bound})
        return self

    def in_default(self, *rules: Object) -> Rights:
        self.core.create("roles", {"metadata": {"name": "narrow"}, "rules": list(rules)})
        bound = {"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "narrow"}, "subjects": [REFERENCE]}
        self.core.create("rolebindings", {"metadata": {"name": "narrow"}, **bound})
        return self

    def allow(self, verb: str, resource: str, namespace: str = "", name: str = "", group: str = "", user: User = ROBOT) -> bool:
        return self.authorizer.allows(user, Asked(verb, group, resource, namespace, name))


def test_nobody_may_do_anything_without_a_role() -> None:
    assert not Rights().allow("list", "pods")


def test_a_cluster_role_bound_to_the_cluster_holds_in_every_namespace() -> None:
    rights = Rights().everywhere(rule([""], ["pods"], ["list"]))
    assert rights.allow("list", "pods")
    assert rights.allow("list", "pods", "default")
    assert not rights.allow("watch", "pods")
    assert not rights.allow("list", "pods", group="metrics.k8s.io")


def test_a_role_holds_in_its_own_namespace_and_nowhere_else() -> None:
    rights = Rights().in_default(rule([""], ["pods"], ["list"]))
    assert rights.allow("list", "pods", "default")
    assert not rights.allow("list", "pods", "kube-system")
    assert not rights.allow("list", "pods")


def test_a_right_to_pods_is_none_to_their_subresources() -> None:
    rights = Rights().everywhere(rule([""], ["pods"], ["*"]))
    assert rights.allow("patch", "pods", "default", "web")
    assert not rights.allow("patch", "pods/status", "default", "web")


@pytest.mark.parametrize("resources", [["*"], ["*/status"], ["pods/status"]])
def test_subresources_are_named_or_meant_by_a_star(resources: list[str]) -> None:
    assert Rights().everywhere(rule([""], resources, ["patch"])).allow("patch", "pods/status", "default", "web")


def test_a_rule_for_names_is_for_requests_that_name_one_of_them() -> None:
    rights = Rights().everywhere(rule([""], ["configmaps"], ["patch", "create", "list"], ["ours"]))
    assert rights.allow("patch", "configmaps", "default", "ours")
    assert not rights.allow("patch", "configmaps", "default", "theirs")
    assert not rights.allow("create", "configmaps", "default")


@pytest.mark.parametrize(
    "subject",
    [
        {"kind": "User", "name": "system:serviceaccount:default:robot"},
        {"kind": "Group", "name": "system:serviceaccounts"},
        {"kind": "Group", "name": "system:serviceaccounts:default"},
        {"kind": "Group", "name": "system:authenticated"},
    ],
)
def test_users_and_groups_can_be_bound_too(subject: Object) -> None:
    rights = Rights().everywhere(rule([""], ["pods"], ["list"]), subject=subject)
    assert rights.allow("list", "pods")
    assert not rights.allow("list", "pods", user=User("eve", ()))


def test_a_right_ends_when_its_role_changes() -> None:
    rights = Rights().everywhere(rule([""], ["pods"], ["list"]))
    assert rights.allow("list", "pods")
    rights.core.writes.delete(rights.core.type("clusterroles"), "", "wide", DeleteOptions())
    assert not rights.allow("list", "pods")


def test_whoever_has_logged_in_may_read_what_the_server_is() -> None:
    authorizer = Authorizer(Store())
    assert authorizer.allows(ROBOT, Asked("get", path="/apis/apps/v1"))
    assert authorizer.allows(ROBOT, Asked("get", path="/version"))
    assert not authorizer.allows(ROBOT, Asked("get", path="/metrics"))
    assert not authorizer.allows(ROBOT, Asked("post", path="/version"))


# --- over HTTP ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(SandboxOptions(seed=1)) as made:
        made.writes.create(made.resource("", "v1", "serviceaccounts"), "default", {"metadata": {"name": "robot"}})
        yield made


@pytest.fixture
async def admin(sandbox: Sandbox) -> AsyncIterator[Client]:
    async with client_of(sandbox.kubeconfig) as made:
        yield made


@pytest.fixture
async def robot(sandbox: Sandbox, admin: Client) -> AsyncIterator[Client]:
    """A client with a token that was asked for as `kubectl create token` asks."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    answer = await admin.expect(201, "POST", "/api/v1/namespaces/default/serviceaccounts/robot/token", asked)
    assert answer["status"]["expirationTimestamp"]
    async with client_of(sandbox.kubeconfig, token=answer["status"]["token"]) as made:
        yield made


def let(sandbox: Sandbox, *rules: Object) -> None:
    role = {"metadata": {"name": "wide"}, "rules": list(rules)}
    sandbox.writes.create(sandbox.resource(RBAC, "v1", "clusterroles"), "", role)
    bound = {"metadata": {"name": "wide"}, "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "wide"}, "subjects": [REFERENCE]}
    sandbox.writes.create(sandbox.resource(RBAC, "v1", "clusterrolebindings"), "", bound)


async def test_a_refusal_says_who_may_not_do_what_where(sandbox: Sandbox, robot: Client) -> None:
    everywhere = await robot.expect(403, "GET", "/api/v1/pods")
    assert everywhere["reason"] == "Forbidden"
    assert everywhere["message"] == (
        'pods is forbidden: User "system:serviceaccount:default:robot" cannot list resource "pods" in API group "" at the cluster scope'
    )
    one = await robot.expect(403, "DELETE", "/apis/apps/v1/namespaces/default/deployments/web")
    assert one["message"] == (
        'deployments.apps "web" is forbidden: User "system:serviceaccount:default:robot" cannot delete resource "deployments" '
        'in API group "apps" in the namespace "default"'
    )
    assert [each.asked.verb for each in sandbox.access.authorizer.refusals] == ["list", "delete"]


@pytest.mark.parametrize(
    ("method", "path", "verb", "resource"),
    [
        ("GET", "/api/v1/namespaces/default/pods/web", "get", "pods"),
        ("GET", "/api/v1/pods?watch=true", "watch", "pods"),
        ("POST", "/api/v1/namespaces/default/pods", "create", "pods"),
        ("PUT", "/api/v1/namespaces/default/pods/web", "update", "pods"),
        ("PATCH", "/api/v1/namespaces/default/pods/web/status", "patch", "pods/status"),
        ("DELETE", "/api/v1/namespaces/default/pods", "deletecollection", "pods"),
        ("POST", "/api/v1/namespaces/default/pods/web/binding", "create", "pods/binding"),
        ("POST", "/api/v1/namespaces/default/pods/web/eviction", "create", "pods/eviction"),
    ],
)
async def test_each_request_is_the_verb_that_roles_name(
    sandbox: Sandbox, robot: Client, method: str, path: str, verb: str, resource: str
) -> None:
    assert (await robot.expect(403, method, path, {}))["code"] == 403
    (refusal,) = sandbox.access.authorizer.refusals
    assert (refusal.asked.verb, refusal.asked.resource) == (verb, resource)


async def test_a_list_of_one_name_needs_the_right_to_that_name_only(sandbox: Sandbox, robot: Client) -> None:
    let(sandbox, rule([""], ["namespaces"], ["list"], ["default"]))
    await robot.expect(200, "GET", "/api/v1/namespaces?fieldSelector=metadata.name%3Ddefault")
    assert (await robot.expect(403, "GET", "/api/v1/namespaces"))["code"] == 403


async def test_an_apply_that_creates_needs_the_right_to_create(sandbox: Sandbox, robot: Client) -> None:
    let(sandbox, rule([""], ["configmaps"], ["patch"]))
    path = "/api/v1/namespaces/default/configmaps/ours?fieldManager=test"
    headers = {"Content-Type": "application/apply-patch+yaml"}
    refused = await robot.expect(403, "PATCH", path, config_map("ours"), headers=headers)
    assert 'cannot create resource "configmaps"' in refused["message"]
    sandbox.writes.create(sandbox.resource("", "v1", "configmaps"), "default", config_map("ours"))
    await robot.expect(200, "PATCH", path, config_map("ours"), headers=headers)


async def test_a_token_is_worth_nothing_once_its_account_is_gone(sandbox: Sandbox, robot: Client) -> None:
    let(sandbox, rule([""], ["pods"], ["list"]))
    await robot.expect(200, "GET", "/api/v1/pods")
    accounts = sandbox.resource("", "v1", "serviceaccounts")
    sandbox.writes.delete(accounts, "default", "robot", DeleteOptions())
    assert (await robot.expect(401, "GET", "/api/v1/pods"))["code"] == 401
    sandbox.writes.create(accounts, "default", {"metadata": {"name": "robot"}})
    assert (await robot.expect(401, "GET", "/api/v1/pods"))["code"] == 401


async def test_a_token_ends_when_its_time_is_over(sandbox: Sandbox, robot: Client) -> None:
    await robot.expect(200, "GET", "/version")
    before = sandbox.writes.identity.clock()
    sandbox.writes.identity.clock = lambda: before + 601
    assert (await robot.expect(401, "GET", "/version"))["code"] == 401


async def test_a_token_that_nobody_gave_out_opens_nothing(sandbox: Sandbox) -> None:
    async with client_of(sandbox.kubeconfig, token="made-up") as stranger:
        assert (await stranger.expect(401, "GET", "/api/v1/pods"))["code"] == 401


async def test_everybody_may_ask_what_he_may_do(sandbox: Sandbox, robot: Client, admin: Client) -> None:
    let(sandbox, rule([""], ["pods"], ["list"]))
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    async def may(client: Client, verb: str) -> bool:
        review = {"spec": {"resourceAttributes": {"verb": verb, "resource": "pods"}}}
        return bool((await client.expect(201, "POST", path, review))["status"]["allowed"])

    assert (await may(robot, "list"), await may(robot, "delete")) == (True, False)
    assert await may(admin, "delete")


async def test_an_administrator_may_act_as_another_and_others_may_not(sandbox: Sandbox, robot: Client, admin: Client) -> None:
    as_robot = {"Impersonate-User": ROBOT.name}
    await admin.expect(403, "GET", "/api/v1/pods", headers=as_robot)
    let(sandbox, rule([""], ["pods"], ["list"]))
    await admin.expect(200, "GET", "/api/v1/pods", headers=as_robot)
    assert (await robot.expect(403, "GET", "/api/v1/pods", headers={"Impersonate-User": "eve"}))["code"] == 403
    assert sandbox.access.authorizer.refusals[-1].asked == Asked("impersonate-on:user-info:list", "", "pods")


async def test_only_an_administrator_gives_the_sandbox_orders(sandbox: Sandbox, robot: Client) -> None:
    let(sandbox, {"verbs": ["*"], "nonResourceURLs": ["*"]})
    assert (await robot.expect(403, "POST", "/sandbox/compact"))["code"] == 403
