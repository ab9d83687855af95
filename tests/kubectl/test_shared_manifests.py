"""Manifests of well-known projects go in as they are, where the folder with them lies beside this project."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubectl.tool import Kubectl

pytestmark = pytest.mark.asyncio(loop_scope="session")
FOLDER = Path(__file__).parents[2].parent / "shared" / "data" / "manifests"
FILES = ["coredns.yaml", "online-boutique.yaml", "zookeeper.yaml", "metrics-server-deployment.yaml"]


@pytest.mark.parametrize("name", FILES)
async def test_a_manifest_of_a_well_known_project_is_created(kubectl: Kubectl, name: str) -> None:
    manifest = FOLDER / name
    if not manifest.is_file():
        pytest.skip(f"no ../shared/data/manifests/{name} beside this project")
    text = manifest.read_text()
    # Some manifests name their namespace; then kubectl refuses another one.
    tool = kubectl.within("kube-system") if "namespace: kube-system" in text else kubectl
    ran = await tool.run("apply", "-f", str(manifest))
    assert ran.code == 0, ran.err
    assert "created" in ran.out
    before = await tool("get", "-f", str(manifest), "-o", "yaml")
    # Not every client sees that nothing is to do ("configured"), but nothing may come of it.
    await tool("apply", "-f", str(manifest))
    assert await tool("get", "-f", str(manifest), "-o", "yaml") == before
