"""Manifests as projects publish them go in as they are, once the placeholders of templates are filled."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from inputs.manifests import MANIFESTS, Manifests
from kubectl.tool import Kubectl

pytestmark = pytest.mark.asyncio(loop_scope="session")
FILES = [
    pytest.param(*folder.values, name, id=f"{folder.id}-{name}", marks=folder.marks)
    for folder in MANIFESTS
    for name in folder.values[0]().applied
]


@pytest.mark.parametrize(("folder", "name"), FILES)
async def test_a_published_manifest_is_created(kubectl: Kubectl, folder: Callable[[], Manifests], name: str, tmp_path: Path) -> None:
    found = folder()
    text = found.files[name]
    for placeholder, value in found.placeholders.items():
        text = text.replace(placeholder, value)
    manifest = tmp_path / name
    manifest.write_text(text)
    # Some manifests name their namespace; then kubectl refuses another one.
    own = re.search(r"namespace: ([a-z-]+)", text)
    tool = kubectl.within(own[1]) if own else kubectl
    ran = await tool.run("apply", "-f", str(manifest))
    assert ran.code == 0, ran.err
    assert "created" in ran.out
    before = await tool("get", "-f", str(manifest), "-o", "yaml")
    # Not every client sees that nothing is to do ("configured"), but nothing may come of it.
    await tool("apply", "-f", str(manifest))
    assert await tool("get", "-f", str(manifest), "-o", "yaml") == before
