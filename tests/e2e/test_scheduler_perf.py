"""`placewright bench scheduler-perf` for real: a tiny configuration of our own, both schedulers, the same pods bound and left unbound."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from placewright.cli.main import main
from placewright_lab.controlplane.assets import VARIABLE, from_environment
from programs import not_on_this_server, on_linux

pytestmark = [
    on_linux,
    pytest.mark.timeout(300),
]
CONFIGURATION = """\
- name: Mixed
  workloadTemplate:
  - opcode: createNodes
    count: 4
    labelNodePrepareStrategy: {labelKey: topology.kubernetes.io/zone, labelValues: [a, b]}
  - {opcode: createPods, count: 2, podTemplatePath: large.yaml, skipWaitToCompletion: true}
  - {opcode: churn, mode: create, number: 3, templatePaths: [service.yaml], intervalMilliseconds: 100}
  - opcode: createPods
    count: 10
    persistentVolumeTemplatePath: volume.yaml
    persistentVolumeClaimTemplatePath: claim.yaml
    namespace: volumes
  - {opcode: createPods, count: 20, podTemplatePath: numbered.yaml, collectMetrics: true}
  - {opcode: barrier, stageRequirement: Attempted}
  workloads:
  - {name: 4Nodes}
- name: Preempting
  workloadTemplate:
  - {opcode: createNodes, count: 3}
  - {opcode: createPods, count: 3, podTemplatePath: low.yaml}
  - {opcode: createPods, count: 3, podTemplatePath: high.yaml, collectMetrics: true}
  workloads:
  - {name: 3Nodes}
- name: OfAnotherTime
  featureGates: {NoSuchGate: true}
  workloadTemplate:
  - {opcode: createPods, count: 1, collectMetrics: true}
  workloads:
  - {name: 1Node}
"""


def pod_template(cpu: str, priority: int | None = None, name: str = "pod") -> str:
    """A pod's template, as JSON, which is YAML."""
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **({} if priority is None else {"priority": priority})}
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": f"{name}-"}, "spec": spec})


TEMPLATES = {
    "large.yaml": pod_template("9"),
    "low.yaml": pod_template("3"),
    "high.yaml": pod_template("3", priority=10),
    "numbered.yaml": pod_template("100m", name="n{{Mod .Index 3}}"),
    "service.yaml": "{apiVersion: v1, kind: Service, metadata: {generateName: s-}, spec: {ports: [{port: 80}]}}",
    "volume.yaml": (
        "{apiVersion: v1, kind: PersistentVolume, spec: {csi: {driver: ebs.csi.aws.com}, capacity: {storage: 1Gi}, "
        "accessModes: [ReadOnlyMany], persistentVolumeReclaimPolicy: Retain}}"
    ),
    "claim.yaml": (
        "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: {pv.kubernetes.io/bind-completed: 'true'}}, "
        "spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}}"
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The configuration and its templates."""
    for name, text in {**TEMPLATES, "performance-config.yaml": CONFIGURATION}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_both_schedulers_do_the_same_workloads_and_are_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assets = from_environment(os.environ)
    if assets is None or assets.kube_scheduler is None:
        not_on_this_server(f"{VARIABLE} has no kube-scheduler")
    assert main(["bench", "scheduler-perf", str(folder), "--limit", "100", "-o", "json"]) == 0
    found = {row["workload"]: row for row in json.loads(capsys.readouterr().out)}
    assert "unrecognized feature gate: NoSuchGate" in found.pop("OfAnotherTime/1Node")["left_out"]
    for row in found.values():
        assert [turn["scheduler"] for turn in row["turns"]] == row["labels"]
        assert (row["left_out"], row["difference"]) == ("", "")
        for turn in row["turns"]:
            assert turn["ended"] == ""
            assert turn["cpu"]["scheduler"] <= turn["settled_cpu"]["scheduler"]
            assert turn["peak_bytes"] > 20_000_000
    for turn in found["Mixed/4Nodes"]["turns"]:
        assert turn["pods"] == 20
        assert turn["bound"] == {"volumes": 10, "namespace-4": 20}
        assert turn["pending"] == {"namespace-1": 2}
    for turn in found["Preempting/3Nodes"]["turns"]:
        assert turn["pods"] == 3
        assert turn["bound"] == {"namespace-2": 3}
        assert turn["deleted"] == {"namespace-1": 3}


def children(pid: int) -> list[int]:
    """Of a process, those that have not ended."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something that has no event."""
    deadline = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_ctrl_c_ends_every_program(folder: Path) -> None:
    command = [sys.executable, "-m", "placewright.cli.main", "bench", "scheduler-perf", str(folder), "--workloads", "Preempting"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as bench:
        until(lambda: len(children(bench.pid)) >= 3, "etcd, API server and a scheduler")
        started = children(bench.pid)
        bench.send_signal(signal.SIGINT)
        assert bench.wait(60) == 130
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), "all are gone")
