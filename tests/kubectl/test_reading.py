"""get, describe, explain, watch: what a user sees."""

from __future__ import annotations

import asyncio

import pytest

from kubectl.manifests import a_node, a_pod, config_map, custom, definition, deployment
from kubectl.tool import DEADLINE, Kubectl

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_get_prints_the_usual_columns(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=a_pod("web", "node-0000"))
    await kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=20s")
    header, row = (await kubectl("get", "pods")).splitlines()
    assert header.split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["web", "1/1", "Running", "0"]
    header, row = (await kubectl("get", "pods", "-o", "wide")).splitlines()
    assert header.split()[5:7] == ["IP", "NODE"]
    assert row.split()[6] == "node-0000"


async def test_get_prints_nodes(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=a_node("reading-node"))
    header, row = (await kubectl("get", "node", "reading-node")).splitlines()
    assert header.split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert row.split()[:3] == ["reading-node", "Ready", "worker"]
    assert "INTERNAL-IP" in await kubectl("get", "nodes", "-o", "wide")


async def test_get_prints_as_data_and_by_path(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=config_map("it", color="blue"))
    assert "color: blue" in await kubectl("get", "configmap", "it", "-o", "yaml")
    assert await kubectl("get", "cm", "it", "-o", "jsonpath={.data.color}") == "blue"
    assert (await kubectl("get", "cm/it", "-o", "name")).strip() == "configmap/it"
    columns = await kubectl("get", "cm", "-o", "custom-columns=N:.metadata.name,C:.data.color")
    assert columns.splitlines()[1].split() == ["it", "blue"]
    assert (await kubectl.read("cm"))["items"][0]["kind"] == "ConfigMap"


async def test_get_selects_and_sorts(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=[a_pod("b", app="web"), a_pod("a", app="web"), a_pod("c", app="db")])
    found = await kubectl("get", "pods", "-l", "app=web", "--sort-by=.metadata.name", "--no-headers")
    assert [line.split()[0] for line in found.splitlines()] == ["a", "b"]
    pending = await kubectl("get", "pods", "--field-selector", "spec.nodeName=,metadata.name=c", "-o", "name")
    assert pending.strip() == "pod/c"
    assert "test-" in await kubectl("get", "pods", "-A")


async def test_get_all_finds_pods_and_workloads(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=[a_pod("web"), deployment("app", {"name": "main", "image": "app:1"})])
    found = await kubectl("get", "all")
    assert "pod/web" in found
    assert "deployment.apps/app   0/2" in found


async def test_describe_tells_about_pods_and_nodes(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=a_pod("web", "node-0001", app="web"))
    await kubectl("wait", "--for=condition=Ready", "pod/web", "--timeout=20s")
    shown = await kubectl("describe", "pod", "web")
    assert "node-0001" in shown
    assert "QoS Class" in shown
    shown = await kubectl("describe", "node", "node-0001")
    assert "Non-terminated Pods" in shown
    assert "web" in shown
    assert "Allocated resources" in shown


async def test_get_watch_prints_changes_as_they_come(kubectl: Kubectl) -> None:
    await kubectl("create", "-f", "-", given=a_pod("first"))
    async with kubectl.started("get", "pods", "-w") as process, asyncio.timeout(DEADLINE):
        assert process.stdout is not None
        assert (await process.stdout.readline()).split()[0] == b"NAME"
        assert (await process.stdout.readline()).split()[:3] == [b"first", b"0/1", b"Pending"]
        await kubectl("create", "-f", "-", given=a_pod("second", "node-0000"))
        seen: list[bytes] = []
        while b"Running" not in seen:
            seen = (await process.stdout.readline()).split()
        assert seen[0] == b"second"


async def test_a_custom_type_is_printed_and_explained(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=definition("Box"))
    await kubectl("wait", "--for=condition=Established", "crd/boxes.example.com", "--timeout=20s")
    await kubectl("apply", "-f", "-", given=custom("Box", "one", size=3))
    header, row = (await kubectl("get", "boxes")).splitlines()
    assert header.split() == ["NAME", "SIZE", "AGE"]
    assert row.split()[:2] == ["one", "3"]
    assert "Box holds things." in await kubectl("explain", "box")
    assert "Weights by name." in await kubectl("explain", "box.spec.weights")


async def test_api_resources_lists_builtin_and_custom_types(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", given=definition("Crux"))
    await kubectl("wait", "--for=condition=Established", "crd/cruxes.example.com", "--timeout=20s")
    found = await kubectl("api-resources")
    assert "deployments" in found
    assert "cruxes" in found
    assert "example.com/v1" in await kubectl("api-versions")


async def test_whoever_has_the_kubeconfig_may_do_everything(kubectl: Kubectl) -> None:
    assert (await kubectl("auth", "can-i", "delete", "nodes")).strip() == "yes"


async def test_what_is_not_there_is_not_found(kubectl: Kubectl) -> None:
    assert 'pods "nobody" not found' in await kubectl.fails("get", "pod", "nobody")
    assert "doesn't have a resource type" in await kubectl.fails("get", "unicorns")
