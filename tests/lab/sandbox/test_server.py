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

from kubesandbox.server import Sandbox, SandboxOptions
from lab.sandbox.http import client_of
from lab.sandbox.makers import Object, a_pod, binding, definition, widget

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


async def test_without_the_token_there_is_nothing_but_health() -> None:
    async with Sandbox() as sandbox:
        for token in ("", "wrong", "é"):
            async with client_of(sandbox.kubeconfig, token=token) as client:
                for path in ("/api/v1/nodes", "/version", "/apis", "/nonsense"):
                    assert (await client.expect(401, "GET", path))["reason"] == "Unauthorized"
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
        await client.expect(201, "POST", PODS, a_pod("web"))
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


NONSENSE = {
    "GET": {
        404: ("/", "/api/v1/pods/web", "/api/v1/namespaces/default/nodes/a", f"{PODS}/web/exec", f"{PODS}/web/log/x", f"{MAPS}//a"),
        400: (f"{MAPS}?watch=perhaps",),
    },
    "DELETE": {405: (f"{PODS}/web/status",), 422: (f"{MAPS}/a?dryRun=some",), 400: (f"{MAPS}/a?gracePeriodSeconds=-1",)},
    "POST": {405: (f"{MAPS}/a",)},
    "PUT": {405: (MAPS,)},
}


async def test_a_request_that_makes_no_sense_is_refused_with_a_status() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
        for method, codes in NONSENSE.items():
            for code, path in ((code, path) for code, paths in codes.items() for path in paths):
                body = await client.expect(code, method, path, {})
                assert (body["kind"], body["status"]) == ("Status", "Failure")
        async with client.session.post(client.server + MAPS, data=b'{"metadata":{"name":"\xff"}}') as answer:
            assert (await answer.json())["kind"] == "Status"


async def test_a_watch_ends_when_its_client_leaves() -> None:
    async with Sandbox() as sandbox, client_of(sandbox.kubeconfig) as client:
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
    """Return `content` with odd values in one or several places."""
    if generator.random() < 0.15:
        return generator.choice(_ODD)
    if isinstance(content, dict):
        return {key: _spoilt(generator, value) for key, value in content.items()}
    if isinstance(content, list):
        return [_spoilt(generator, value) for value in content]
    return content


def _elaborate_pod(name: str) -> Object:
    content = a_pod(name, labels={"app": "web"}, gates=("example.test/a",))
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
        ("PUT", f"{PODS}/good/status", {**a_pod("good"), "status": {"phase": "Running", "conditions": [{"type": "Ready"}]}}),
        ("POST", f"{PODS}/good/binding", binding("good", uid="x", annotations={"a": "b"})),
        ("POST", f"{PODS}/good/eviction", {"deleteOptions": {"gracePeriodSeconds": 1, "preconditions": {"uid": "x"}}}),
        ("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a"}]}, "status": {"capacity": {"cpu": "1"}}}),
        ("POST", BUDGETS, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}}),
        ("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"replicas": 1, "template": a_pod("t")}}),
        ("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "c"}, "value": 1, "globalDefault": False}),
        ("POST", DEFINITIONS, definition()),
        ("PUT", f"{DEFINITIONS}/widgets.example.test", definition()),
        ("POST", "/apis/example.test/v1/namespaces/default/widgets", widget("a", size=3, colour="red")),
        ("DELETE", f"{PODS}/missing", {"preconditions": {"uid": "x"}, "gracePeriodSeconds": 1, "propagationPolicy": "Orphan"}),
    ]  # fmt: skip
    async with Sandbox(SandboxOptions(nodes=1)) as sandbox, client_of(sandbox.kubeconfig) as client:
        await client.expect(201, "POST", PODS, a_pod("good"))
        for number in range(1500):
            method, path, content = requests[number % len(requests)]
            sent = _spoilt(generator, content)
            code, body = await client.ask(method, path, sent)
            # Real servers have no code of their own for some faults of a request: a 500 without a reason.
            assert code < 500 or "reason" not in body, (method, path, sent, body)
        for path in (PODS, "/api/v1/nodes", "/apis/policy/v1/poddisruptionbudgets", DEFINITIONS):
            await client.expect(200, "GET", path)
            await client.expect(200, "GET", path, headers=TABLE)
