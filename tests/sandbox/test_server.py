"""The whole server over HTTPS: credentials, negotiation, streams, hostile input, start and end."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import stat
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from placewright.sandbox.server import LARGEST_BODY, Sandbox, SandboxOptions
from sandbox.http import client_of
from sandbox.makers import Object, binding, config_map, definition, pod, widget

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


async def test_the_kubeconfig_is_private_and_goes_with_the_sandbox() -> None:
    async with Sandbox() as sandbox:
        path = sandbox.kubeconfig
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert sandbox.server.startswith("https://127.0.0.1:")
    assert not path.exists()


async def test_a_kubeconfig_is_written_where_it_is_wanted_and_replaces_a_readable_one(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text("old")
    path.chmod(0o644)
    async with Sandbox(SandboxOptions(kubeconfig=path)) as sandbox, client_of(path) as client:
        assert sandbox.kubeconfig == path
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        await client.expect(200, "GET", "/api/v1/nodes")


@pytest.mark.parametrize("token", ["", "wrong", "é"])
async def test_without_the_token_there_is_nothing_but_health(token: str) -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig, token=token) as client:
        for path in ("/api/v1/nodes", "/version", "/apis", "/nonsense"):
            body = await client.expect(401, "GET", path)
            assert body["reason"] == "Unauthorized"
        async with client.session.get(client.server + "/readyz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok")


async def test_a_stranger_to_the_authority_does_not_trust_the_server() -> None:
    async with Sandbox() as sandbox, aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(sandbox.server + "/version", ssl=ssl.create_default_context())


async def test_tokens_differ_from_run_to_run() -> None:
    async with Sandbox() as one, Sandbox() as other:
        assert one.credentials.token != other.credentials.token


async def test_it_starts_with_the_namespaces_and_nodes_asked_for() -> None:
    async with Sandbox(SandboxOptions(nodes=4)) as sandbox, client_of(sandbox.kubeconfig) as client:
        nodes = await client.expect(200, "GET", "/api/v1/nodes")
        assert [each["metadata"]["name"] for each in nodes["items"]] == [f"node-000{number}" for number in range(4)]
        assert nodes["items"][0]["status"]["allocatable"]["cpu"] == "16"
        for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
            await client.expect(200, "GET", f"/api/v1/namespaces/{name}")


async def test_a_pod_goes_its_way_from_creation_to_its_end() -> None:
    async with Sandbox(SandboxOptions(nodes=1)) as sandbox, client_of(sandbox.kubeconfig) as client:
        await client.expect(201, "POST", PODS, pod("web"))
        stream = await client.session.get(f"{client.server}{PODS}?watch=1&resourceVersion={sandbox.store.version}")
        answer = await client.expect(201, "POST", f"{PODS}/web/binding", binding("web", "node-0000"))
        assert (answer["kind"], answer["status"]) == ("Status", "Success")
        phases = [json.loads(await stream.content.readline())["object"]["status"]["phase"] for _ in range(2)]
        assert phases == ["Pending", "Running"]
        marked = await client.expect(200, "DELETE", f"{PODS}/web")
        assert marked["metadata"]["deletionGracePeriodSeconds"] == 30
        words = [json.loads(await stream.content.readline())["type"] for _ in range(3)]
        assert words == ["MODIFIED", "MODIFIED", "DELETED"]  # marked, its time is over, gone
        await client.expect(404, "GET", f"{PODS}/web")
        stream.close()


async def test_the_older_way_to_bind_names_the_pod_in_the_body() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        await client.expect(201, "POST", PODS, pod("web"))
        await client.expect(201, "POST", "/api/v1/namespaces/default/bindings", binding("web"))
        await client.expect(409, "POST", "/api/v1/namespaces/default/bindings", binding("web"))
        await client.expect(400, "POST", "/api/v1/namespaces/default/bindings", {"target": {"name": "x"}})
        assert (await client.expect(200, "GET", f"{PODS}/web"))["spec"]["nodeName"] == binding("web")["target"]["name"]


async def test_kubectl_gets_tables_and_a_watch_says_its_columns_once() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        await client.expect(201, "POST", PODS, pod("web"))
        table = await client.expect(200, "GET", PODS, headers=TABLE)
        assert (table["kind"], [row["cells"][0] for row in table["rows"]]) == ("Table", ["web"])
        one = await client.expect(200, "GET", f"{PODS}/web", headers=TABLE)
        assert one["kind"] == "Table"
        await client.expect(201, "POST", PODS, pod("web2"))
        async with client.session.get(f"{client.server}{PODS}?watch=1", headers=TABLE) as stream:
            tables = [json.loads(await stream.content.readline())["object"] for _ in range(2)]
        assert [bool(each["columnDefinitions"]) for each in tables] == [True, False]


async def test_metadata_can_be_asked_for_alone() -> None:
    headers = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        await client.expect(201, "POST", MAPS, config_map("a", key="value"))
        found = await client.expect(200, "GET", MAPS, headers=headers)
        assert found["kind"] == "PartialObjectMetadataList"
        assert "data" not in found["items"][0]


async def test_a_body_may_be_yaml() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        headers = {"Content-Type": "application/yaml"}
        async with client.session.post(client.server + MAPS, data="metadata: {name: a}", headers=headers) as answer:
            assert answer.status == 201


@pytest.mark.parametrize(
    ("data", "content_type", "code"),
    [
        ("{", "application/json", 400),
        ("", "application/json", 400),
        ("nul", "application/json", 400),
        ('{"metadata":{"name":"a"}}', "application/vnd.example", 415),
        ("a: [", "application/yaml", 400),
        ("!!python/object/apply:os.getcwd []", "application/yaml", 400),
        (b'{"metadata":{"name":"\xff"}}', "application/json", 400),
        ("[" * 100_000, "application/json", 400),
        ("x" * (LARGEST_BODY + 1), "application/json", 413),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused(data: Any, content_type: str, code: int) -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        headers = {"Content-Type": content_type}
        async with client.session.post(client.server + MAPS, data=data, headers=headers) as answer:
            body = await answer.json()
            assert (answer.status, body["kind"], body["code"]) == (code, "Status", code)
        await client.expect(200, "GET", MAPS)


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/", 404),
        ("GET", "/api/v1/unheardof", 404),
        ("GET", "/apis/example.test/v1/things", 404),
        ("GET", "/api/v1/pods/web", 404),
        ("GET", "/api/v1/namespaces/default/nodes/a", 404),
        ("GET", f"{PODS}/web/exec", 404),
        ("GET", f"{PODS}/web/log/x", 404),
        ("GET", f"{MAPS}//a", 404),
        ("POST", f"{MAPS}/a", 405),
        ("PUT", MAPS, 405),
        ("DELETE", f"{PODS}/web/status", 405),
        ("GET", "/api/v1/namespaces/default/bindings", 405),
        ("GET", f"{MAPS}?limit=many", 400),
        ("GET", f"{MAPS}?timeoutSeconds=x", 400),
        ("GET", f"{MAPS}?resourceVersionMatch=Exact", 422),
        ("GET", f"{MAPS}?resourceVersion=x", 400),
        ("GET", f"{MAPS}?watch=perhaps", 400),
        ("GET", f"{MAPS}?labelSelector=a%20b", 400),
        ("GET", f"{MAPS}?continue=x", 400),
        ("GET", f"{MAPS}?watch=1&sendInitialEvents=true", 422),
        ("DELETE", f"{MAPS}/a?dryRun=some", 422),
        ("DELETE", f"{MAPS}/a?propagationPolicy=Never", 422),
        ("DELETE", f"{MAPS}/a?gracePeriodSeconds=-1", 400),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused(method: str, path: str, code: int) -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        body = await client.expect(code, method, path)
        assert (body["kind"], body["status"]) == ("Status", "Failure")


async def test_deletecollection_deletes_what_is_selected() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        for name, value in (("a", "x"), ("b", "y"), ("c", "x")):
            content = config_map(name)
            content["metadata"]["labels"] = {"kind": value}
            await client.expect(201, "POST", MAPS, content)
        await client.expect(200, "DELETE", f"{MAPS}?labelSelector=kind%3Dx")
        left = await client.expect(200, "GET", MAPS)
        assert [each["metadata"]["name"] for each in left["items"]] == ["b"]


async def test_whoever_has_the_token_may_do_everything() -> None:
    review = {"spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}}}
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        assert (await client.expect(201, "POST", path, review))["status"] == {"allowed": True}


async def test_a_watch_ends_after_the_time_it_asked_for_and_when_its_client_leaves() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        async with client.session.get(f"{client.server}{MAPS}?watch=1&timeoutSeconds=1") as stream:
            assert await stream.content.read() == b""
        stream = await client.session.get(f"{client.server}{MAPS}?watch=1")
        assert len(sandbox.watches) == 1
        stream.close()
        async with asyncio.timeout(10):
            await sandbox.watches.ended()


async def test_closing_ends_open_watches_in_good_order() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        stream = await client.session.get(f"{client.server}{MAPS}?watch=1")
        await sandbox.close()
        assert await stream.content.read() == b""
        await sandbox.close()


_ODD: tuple[Any, ...] = (
    None,
    0,
    -1,
    2**70,
    1.5,
    "",
    "x",
    "é\n",
    True,
    [],
    ["x"],
    [None],
    [[]],
    {},
    {"x": None},
    {"": {}},
)


def _spoilt(generator: random.Random, content: Any) -> Any:
    """`content` with one or several of its parts replaced by something odd."""
    if generator.random() < 0.15:
        return generator.choice(_ODD)
    if isinstance(content, dict):
        return {key: _spoilt(generator, value) for key, value in content.items()}
    if isinstance(content, list):
        return [_spoilt(generator, value) for value in content]
    return content


def _elaborate_pod(name: str) -> Object:
    content = pod(name, labels={"app": "web"}, gates=("example.test/a",))
    content["metadata"].update(
        annotations={"a": "b"},
        finalizers=["example.test/x"],
        ownerReferences=[{"uid": "u", "kind": "Pod", "name": "o"}],
    )
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    content["spec"]["containers"][0].update(resources=resources, ports=[{"containerPort": 80}])
    content["spec"].update(
        priorityClassName="system-node-critical",
        tolerations=[{"key": "a", "operator": "Exists"}],
        volumes=[{"name": "v", "emptyDir": {}}],
        initContainers=[{"name": "i", "image": "x"}],
        terminationGracePeriodSeconds=5,
    )
    return content


async def test_no_odd_object_makes_the_server_fail() -> None:
    generator = random.Random(20)
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
    requests = [
        ("POST", PODS, _elaborate_pod("odd")),
        ("PUT", f"{PODS}/good", _elaborate_pod("good")),
        ("PUT", f"{PODS}/good/status", {**pod("good"), "status": {"phase": "Running", "conditions": [{"type": "Ready"}]}}),
        ("POST", f"{PODS}/good/binding", binding("good", uid="x", annotations={"a": "b"})),
        ("POST", f"{PODS}/good/eviction", {"deleteOptions": {"gracePeriodSeconds": 1, "preconditions": {"uid": "x"}}}),
        ("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a"}]}, "status": {"capacity": {"cpu": "1"}}}),
        ("POST", BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}),
        ("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"replicas": 1, "template": pod("t")}}),
        ("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "c"}, "value": 1, "globalDefault": False}),
        ("POST", DEFINITIONS, definition()),
        ("PUT", f"{DEFINITIONS}/widgets.example.test", definition()),
        ("POST", "/apis/example.test/v1/namespaces/default/widgets", widget("a", size=3, colour="red")),
        ("DELETE", f"{PODS}/missing", {"preconditions": {"uid": "x"}, "gracePeriodSeconds": 1, "propagationPolicy": "Orphan"}),
    ]  # fmt: skip
    async with Sandbox(SandboxOptions(nodes=1)) as sandbox, client_of(sandbox.kubeconfig) as client:
        await client.expect(201, "POST", PODS, pod("good"))
        for number in range(1500):
            method, path, content = requests[number % len(requests)]
            sent = _spoilt(generator, content)
            code, body = await client.ask(method, path, sent)
            # Real servers have no code of their own for some faults of a request: a 500 without a reason.
            assert code < 500 or "reason" not in body, (method, path, sent, body)
        for path in (PODS, "/api/v1/nodes", "/apis/policy/v1/poddisruptionbudgets", DEFINITIONS):
            await client.expect(200, "GET", path)
            await client.expect(200, "GET", path, headers=TABLE)
