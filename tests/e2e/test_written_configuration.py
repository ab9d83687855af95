"""What a real kube-scheduler writes of its own configuration is converted, whatever its feature gates."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from placewright.plugins.catalog import in_tree
from placewright.profiles.kubescheduler.findings import Loss
from placewright.profiles.kubescheduler.reader import convert
from placewright.profiles.validation import check_file
from placewright_lab.controlplane.assets import VARIABLE, from_environment
from programs import not_on_this_server

FIRST_WITH_V1 = 25
KUBECONFIG = {
    "apiVersion": "v1", "kind": "Config", "current-context": "none", "users": [{"name": "none", "user": {}}],
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:1"}}],
    "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
}  # fmt: skip


@pytest.fixture
def kube_scheduler() -> Path:
    """The kube-scheduler among the assets, if it reads configuration v1."""
    assets = from_environment(os.environ)
    if assets is None or assets.kube_scheduler is None:
        not_on_this_server(f"{VARIABLE} has no kube-scheduler")
    if assets.minor < FIRST_WITH_V1:
        not_on_this_server(f"kube-scheduler 1.{assets.minor} writes no configuration v1")
    return assets.kube_scheduler


@pytest.mark.parametrize("gates", ["", "AllAlpha=true", "GenericWorkload=true", "AllAlpha=true,AllBeta=true"])
def test_what_it_writes_is_converted_and_nothing_is_placed_differently(kube_scheduler: Path, gates: str, tmp_path: Path) -> None:
    kubeconfig, given, written = tmp_path / "kubeconfig", tmp_path / "given.yaml", tmp_path / "written.yaml"
    kubeconfig.write_text(yaml.safe_dump(KUBECONFIG))
    start = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    given.write_text(yaml.safe_dump(start | {"clientConnection": {"kubeconfig": str(kubeconfig)}}))
    chosen = [f"--feature-gates={gates}"] if gates else []
    done = subprocess.run(
        [kube_scheduler, f"--config={given}", f"--write-config-to={written}", *chosen], capture_output=True, text=True, check=False
    )
    if gates and "unrecognized feature gate" in done.stderr:
        not_on_this_server(f"this kube-scheduler has no {gates}")
    text = written.read_text()
    findings = convert(text, "written.yaml", in_tree()).findings
    assert Loss.PLACEMENT not in [finding.loss for finding in findings]
    assert check_file(text, "written.yaml", in_tree()).findings == ()
