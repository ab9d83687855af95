"""The load-aware example beside a real operator process and kubectl: metrics change, and placement with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handlers.test_plugin_sources import DEFINITION
from kubectl.terminal import Desk, terminal
from kubectl.tool import Kubectl
from kubesandbox.process import SandboxProcess
from outsiders import EXAMPLES, site_folder

ROOT = EXAMPLES.parent
NODES = [
    {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}, "capacity": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }
    for name in ("a", "b")
]  # fmt: skip
CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **DEFINITION}


def samples(**cpu: str) -> list[dict[str, object]]:
    head = {"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "timestamp": "2026-01-01T00:00:00Z"}
    return [{**head, "metadata": {"name": name}, "usage": {"cpu": used}} for name, used in cpu.items()]


@pytest.fixture
def desk(binary: str, tmp_path: Path) -> Desk:
    found = Desk(tmp_path, binary)
    found.prepare()
    return found


async def test_an_operator_with_the_package_places_pods_by_the_load_that_is_shown_and_as_it_changes(desk: Desk) -> None:
    site = site_folder(desk.home / "site", "load-aware")
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"schedulerName": "by-load", "containers": [{"name": "c", "image": "app:1"}]}}
    async with SandboxProcess(crds=[ROOT / "crds"]) as sandbox:
        kubectl = Kubectl(desk.binary, sandbox.kubeconfig, desk.home)
        await kubectl("create", "-f", "-", given=[CRD, *NODES])
        await kubectl("wait", "--for=condition=Established", "crd/nodes.metrics.k8s.io", "--timeout=20s")
        await kubectl("create", "-f", "-", given=samples(a="3900m", b="3900m"))
        await kubectl("create", "-f", str(EXAMPLES / "load-aware" / "manifests" / "profile.yaml"))
        command = f"PYTHONPATH={site}{os.pathsep}$PYTHONPATH exec placewright run --kubeconfig {sandbox.kubeconfig}"
        async with terminal(desk, command):
            await kubectl("wait", "--for=condition=Ready", "schedprof/by-load", "--timeout=20s")
            await kubectl("create", "-f", "-", given=[{**pod, "metadata": {"name": "web"}}])
            await kubectl("wait", "--for=condition=PodScheduled=false", "pod/web", "--timeout=20s")
            message = (await kubectl.read("pod", "web"))["status"]["conditions"][0]["message"]
            assert "2 node(s) had too much CPU in use" in message
            await kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=samples(a="200m", b="3900m"))
            await kubectl("wait", "--for=jsonpath={.spec.nodeName}=a", "pod/web", "--timeout=30s")
