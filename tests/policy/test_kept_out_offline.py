"""`spec.pods.allowedNamespaces` where there is no cluster: `simulate` and `evaluate` keep pods out for the same reason."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from placewright.cli.main import main
from placewright.testing import node, pod, profile

REASON = 'namespace "dev" may not use profile "b": spec.pods.allowedNamespaces does not name it'


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Options that name a cluster with a pod in each of two namespaces, and a profile for one of them."""
    pods = [pod("web").namespace(name).scheduler("b") for name in ("dev", "prod")]
    made = profile("b").scheduler("b").spec(pods={"allowedNamespaces": ["prod"]})
    cluster, written = tmp_path / "cluster.yaml", tmp_path / "profile.yaml"
    cluster.write_text(yaml.safe_dump_all([node("a").manifest, *(each.manifest for each in pods)]))
    written.write_text(yaml.safe_dump({**made.manifest, "metadata": {"name": "b"}}))
    return ["-f", str(cluster), "--profile", str(written)]


def test_a_simulation_leaves_kept_out_pods_pending_with_the_reason(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", *files]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"1 {REASON}" in said


def test_an_evaluation_says_that_the_pod_would_not_be_tried(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", *files, "--pod", "dev/web"]) == 1, "it stays pending"
    assert f"gated: {REASON}" in " ".join(capsys.readouterr().out.split())
    assert main(["evaluate", *files, "--pod", "prod/web"]) == 0
    assert "gated" not in capsys.readouterr().out
