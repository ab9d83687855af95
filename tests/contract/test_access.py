"""Who may do what: a ServiceAccount's token, what roles give it, and the words of a refusal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from multidict import CIMultiDict

from contract.client import APPLY, DEADLINE, Client, Object
from contract.cluster import Cluster
from contract.objects import config_map
from contract.robots import ACCOUNT, ROLES, Robot, made_robot, rule, token_of


@pytest_asyncio.fixture(loop_scope="session")
async def robot(cluster: Cluster) -> AsyncIterator[Robot]:
    async with made_robot(cluster) as made:
        yield made


async def test_a_token_without_rights_may_look_at_what_the_server_is_and_at_nothing_else(cluster: Cluster, robot: Robot) -> None:
    (await robot.client.get("/version")).expect(200)
    (await robot.client.get("/apis/apps/v1")).expect(200)
    here = await robot.client.get(cluster.path("pods"))
    assert here.refused(403, "Forbidden") == f"pods {robot.cannot('list', 'pods')}"
    everywhere = await robot.client.get("/api/v1/pods")
    assert everywhere.refused(403, "Forbidden") == f"pods {robot.cannot('list', 'pods', everywhere=True)}"
    assert (await robot.client.get("/metrics")).refused(403, "Forbidden")
    assert (await robot.client.post("/version", {})).refused(403, "Forbidden")
    outside = await robot.client.get("/logs")
    assert outside.refused(403, "Forbidden") == f'forbidden: User "{robot.name}" cannot get path "/logs"'


@pytest.mark.parametrize(
    ("method", "plural", "rest", "group", "verb", "resource"),
    [
        ("GET", "pods", ("web",), "", "get", "pods"),
        ("PUT", "pods", ("web",), "", "update", "pods"),
        ("DELETE", "deployments", ("web",), "apps", "delete", "deployments"),
        ("POST", "pods", ("web", "binding"), "", "create", "pods/binding"),
        ("POST", "pods", ("web", "eviction"), "", "create", "pods/eviction"),
        ("PUT", "pods", ("web", "status"), "", "update", "pods/status"),
        ("PATCH", "pods", ("web", "status"), "", "patch", "pods/status"),
    ],
)
async def test_a_refusal_about_an_object_names_it(
    cluster: Cluster, robot: Robot, method: str, plural: str, rest: tuple[str, ...], group: str, verb: str, resource: str
) -> None:
    answer = await robot.client.request(method, cluster.path(plural, *rest, group=group), {})
    kind = f"{plural}.{group}" if group else plural
    assert answer.refused(403, "Forbidden") == f'{kind} "web" {robot.cannot(verb, resource, group)}'


async def test_a_collection_has_verbs_of_its_own(cluster: Cluster, robot: Robot) -> None:
    pods = cluster.path("pods")
    assert (await robot.client.get(pods, watch=True)).refused(403) == f"pods {robot.cannot('watch', 'pods')}"
    assert (await robot.client.post(pods, {})).refused(403) == f"pods {robot.cannot('create', 'pods')}"
    assert (await robot.client.delete(pods)).refused(403) == f"pods {robot.cannot('deletecollection', 'pods')}"


async def test_a_role_holds_in_its_namespace(cluster: Cluster, robot: Robot) -> None:
    await robot.may_here(rule(["configmaps"], ["list"]))
    (await robot.client.get(cluster.path("configmaps"))).expect(200)
    assert (await robot.client.get("/api/v1/configmaps")).refused(403)
    assert (await robot.client.get("/api/v1/namespaces/default/configmaps")).refused(403)
    assert (await robot.client.get(cluster.path("secrets"))).refused(403)


async def test_a_cluster_role_holds_everywhere(cluster: Cluster, robot: Robot) -> None:
    await robot.may_everywhere(rule(["configmaps"], ["list"]), rule(["nodes"], ["list"]))
    paths = (cluster.path("configmaps"), "/api/v1/configmaps", "/api/v1/nodes")
    assert [(await robot.client.get(path)).status for path in paths] == [200, 200, 200]
    assert (await robot.client.get("/api/v1/secrets")).refused(403)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("User", "system:serviceaccount:{}:robot"),
        ("Group", "system:serviceaccounts:{}"),
        ("Group", "system:serviceaccounts"),
        ("Group", "system:authenticated"),
    ],
)
async def test_users_and_groups_can_be_bound_too(cluster: Cluster, robot: Robot, kind: str, name: str) -> None:
    await robot.may_everywhere(rule(["configmaps"], ["list"]), subject={"kind": kind, "name": name.format(cluster.namespace)})
    (await robot.client.get("/api/v1/configmaps")).expect(200)


async def test_a_right_ends_with_its_role(cluster: Cluster, robot: Robot) -> None:
    await robot.may_everywhere(rule(["configmaps"], ["list"]))
    (await cluster.client.delete(f"{ROLES}/clusterroles/{cluster.unique('robot')}")).expect(200)
    async with asyncio.timeout(DEADLINE):
        while await robot.may("list", "configmaps"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert (await robot.client.get("/api/v1/configmaps")).refused(403)


async def test_names_narrow_a_right_to_requests_that_name_them(cluster: Cluster, robot: Robot) -> None:
    await robot.may_here(rule(["configmaps"], ["get", "list", "create"], ["ours"]))
    for name in ("ours", "theirs"):
        await cluster.create("configmaps", config_map(name, {}))
    (await robot.client.get(cluster.path("configmaps", "ours"))).expect(200)
    assert (await robot.client.get(cluster.path("configmaps", "theirs"))).refused(403)
    assert (await robot.client.get(cluster.path("configmaps"))).refused(403)
    (await robot.client.get(cluster.path("configmaps"), fieldSelector="metadata.name=ours")).expect(200)
    assert (await robot.client.post(cluster.path("configmaps"), config_map("more", {}))).refused(403)


@pytest.mark.parametrize("resources", [["*"], ["*/status"], ["pods/status"]])
async def test_stars_stand_for_resources_and_for_subresources(robot: Robot, resources: list[str]) -> None:
    await robot.may_everywhere(rule(resources, ["patch"]))
    assert await robot.may("patch", "pods", subresource="status")
    assert await robot.may("patch", "pods") is ("*" in resources)


async def test_an_apply_that_creates_is_a_creation_too(cluster: Cluster, robot: Robot) -> None:
    await robot.may_here(rule(["configmaps"], ["patch"]))
    path = cluster.path("configmaps", "it")
    refused = await robot.client.patch(path, config_map("it", {"a": "1"}), APPLY, fieldManager="robot")
    assert refused.refused(403, "Forbidden").startswith('configmaps "it" is forbidden: ')
    await cluster.create("configmaps", config_map("it", {}))
    (await robot.client.patch(path, config_map("it", {"a": "1"}), APPLY, fieldManager="robot")).expect(200)


async def test_an_account_that_is_made_anew_needs_a_new_token(cluster: Cluster, robot: Robot) -> None:
    account = cluster.path("serviceaccounts", "robot")
    uid = (await cluster.client.get(account)).expect(200)["metadata"]["uid"]
    (await cluster.client.delete(account)).expect(200)
    await cluster.eventually(lambda found: found["metadata"].get("uid") != uid, account, accept=(200, 404))
    await cluster.client.post(cluster.path("serviceaccounts"), ACCOUNT)
    async with asyncio.timeout(DEADLINE):  # real servers remember a good token for some seconds
        while (await robot.client.get("/version")).status != 401:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert (await robot.client.get("/version")).status == 401


async def test_a_token_can_be_shown_to_the_server_which_says_whose_it_is(cluster: Cluster, robot: Robot) -> None:
    uid = (await cluster.client.get(cluster.path("serviceaccounts", "robot"))).expect(200)["metadata"]["uid"]
    status = await token_review(cluster.client, await token_of(cluster, "robot"))
    assert status["authenticated"] is True
    assert (status["user"]["username"], status["user"]["uid"]) == (robot.name, uid)
    accounts = f"system:serviceaccounts:{cluster.namespace}"
    assert set(status["user"]["groups"]) == {"system:serviceaccounts", accounts, "system:authenticated"}


async def test_a_token_of_nobody_is_no_error(cluster: Cluster) -> None:
    status = await token_review(cluster.client, "nonsense")
    assert not status.get("authenticated")
    assert status["user"] == {}
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {}}
    answer = await cluster.client.post("/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert answer.refused(400, "BadRequest") == "token is required for TokenReview in authentication"


async def token_review(client: Client, token: str) -> Object:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    status: Object = (await client.post("/apis/authentication.k8s.io/v1/tokenreviews", review)).expect(201)["status"]
    return status


async def test_the_server_says_what_somebody_else_may(cluster: Cluster, robot: Robot) -> None:
    path = f"/{cluster.unique('page')}"
    await robot.may_everywhere({"nonResourceURLs": [path], "verbs": ["get"]}, rule(["configmaps"], ["list"]))

    async def may(user: str, verb: str, **about: Object) -> bool:
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {"user": user, **about}}
        answer = await cluster.client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer.expect(201)["status"]["allowed"])

    for verb, allowed in (("get", True), ("post", False)):
        assert await may(robot.name, verb, nonResourceAttributes={"path": path, "verb": verb}) is allowed
    assert not await may("eve", "get", nonResourceAttributes={"path": path, "verb": "get"})
    assert await may(robot.name, "list", resourceAttributes={"verb": "list", "resource": "configmaps"})


async def test_reviews_of_others_are_a_right(robot: Robot) -> None:
    for group, plural in (("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews")):
        answer = await robot.client.post(f"/apis/{group}/v1/{plural}", {"spec": {"token": "t", "user": "eve"}})
        assert answer.refused(403, "Forbidden").endswith(robot.cannot("create", plural, group, everywhere=True))


async def acting_as(robot: Robot, path: str, user: str, *groups: str) -> str:
    """What the robot is told when it asks for this as another."""
    headers = CIMultiDict({"Impersonate-User": user})
    headers.extend(("Impersonate-Group", group) for group in groups)
    async with robot.client.session.get(robot.client.server + path, headers=headers) as answer:
        found = await answer.json()
        assert answer.status == 403, found
        return str(found["message"])


CONSTRAINED = 36
"""The first minor version that refuses impersonation by what is to be done as the other."""


async def test_whoever_may_impersonate_is_taken_for_the_other(cluster: Cluster, robot: Robot) -> None:
    session, path = cluster.client.session, cluster.client.server + cluster.path("pods")
    async with session.get(path, headers={"Impersonate-User": robot.name}) as answer:
        assert (answer.status, (await answer.json())["message"]) == (403, f"pods {robot.cannot('list', 'pods')}")


@pytest.mark.parametrize(
    ("user", "groups", "mode", "before"),
    [
        ("eve", (), "user-info", 'users "eve" IS users'),
        ("eve", ("friends",), "user-info", 'users "eve" IS users'),
        ("eve", ("system:masters",), "user-info", 'users "eve" IS users'),
        ("system:node:n1", (), "arbitrary-node", 'users "system:node:n1" IS users'),
        ("system:node:n1", ("system:nodes",), "", 'users "system:node:n1" IS users'),
        ("system:serviceaccount:default:robot", (), "serviceaccount", 'serviceaccounts "robot" IS serviceaccounts'),
        ("system:serviceaccount:default:robot", ("friends",), "", 'serviceaccounts "robot" IS serviceaccounts'),
    ],
)
async def test_whoever_may_not_impersonate_is_told_what_is_lacking(
    cluster: Cluster, robot: Robot, user: str, groups: tuple[str, ...], mode: str, before: str
) -> None:
    message = await acting_as(robot, cluster.path("pods"), user, *groups)
    if mode and cluster.minor >= CONSTRAINED:
        assert message == f"pods {robot.cannot(f'impersonate-on:{mode}:list', 'pods')}"
        return
    subject, _, resource = before.partition(" IS ")
    where = robot.cannot("impersonate", resource, everywhere=True)
    if resource == "serviceaccounts":
        where = where.replace("at the cluster scope", 'in the namespace "default"')
    assert message == f"{subject} {where}"


async def test_impersonation_where_there_is_no_resource_is_refused_too(cluster: Cluster, robot: Robot) -> None:
    message = await acting_as(robot, "/logs", "eve")
    if cluster.minor >= CONSTRAINED:
        assert message == f'forbidden: User "{robot.name}" cannot impersonate-on:user-info:get path "/logs"'
    else:
        assert message == f'users "eve" {robot.cannot("impersonate", "users", everywhere=True)}'


async def test_the_right_to_impersonate_is_good_for_everything(cluster: Cluster, robot: Robot) -> None:
    await robot.may_everywhere(rule(["users", "groups"], ["impersonate"], ["eve", "friends"]))
    message = await acting_as(robot, cluster.path("pods"), "eve", "others")
    if cluster.minor >= CONSTRAINED:
        assert message == f"pods {robot.cannot('impersonate-on:user-info:list', 'pods')}"
    else:
        assert message == f'groups "others" {robot.cannot("impersonate", "groups", everywhere=True)}'
    message = await acting_as(robot, cluster.path("pods"), "eve", "friends")
    assert message == f"pods {robot.cannot('list', 'pods')}".replace(robot.name, "eve")


async def test_impersonation_can_be_allowed_for_some_things_only(cluster: Cluster, robot: Robot) -> None:
    cluster.needs(CONSTRAINED, "constrained impersonation by default")
    whom = rule(["users", "groups"], ["impersonate:user-info"], ["eve", "friends", "system:masters"], group="authentication.k8s.io")
    await robot.may_everywhere(rule(["pods"], ["impersonate-on:user-info:list"]), whom)
    path = cluster.path("pods")
    assert await acting_as(robot, path, "eve", "friends") == f"pods {robot.cannot('list', 'pods')}".replace(robot.name, "eve")
    assert await acting_as(robot, f"{path}/web", "eve") == f'pods "web" {robot.cannot("impersonate-on:user-info:get", "pods")}'
    lacking = robot.cannot("impersonate:user-info", "users", group="authentication.k8s.io", everywhere=True)
    assert await acting_as(robot, path, "mallory") == f'users.authentication.k8s.io "mallory" {lacking}'
    lacking = robot.cannot("impersonate:user-info", "groups", group="authentication.k8s.io", everywhere=True)
    assert (await acting_as(robot, path, "eve", "system:masters")).startswith(f'groups.authentication.k8s.io "system:masters" {lacking}')


@pytest.mark.parametrize(
    ("user", "mode", "resource", "name"),
    [
        ("system:node:n1", "arbitrary-node", "nodes", "n1"),
        ("system:serviceaccount:default:other", "serviceaccount", "serviceaccounts", "other"),
    ],
)
async def test_nodes_and_accounts_are_impersonated_by_rights_of_their_own(
    cluster: Cluster, robot: Robot, user: str, mode: str, resource: str, name: str
) -> None:
    cluster.needs(CONSTRAINED, "constrained impersonation by default")
    whom = rule([resource], [f"impersonate:{mode}"], [name], group="authentication.k8s.io")
    await robot.may_everywhere(rule(["pods"], [f"impersonate-on:{mode}:list"]), whom)
    message = await acting_as(robot, cluster.path("pods"), user)
    assert message == f"pods {robot.cannot('list', 'pods')}".replace(robot.name, user)
