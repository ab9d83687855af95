"""`make conformance` as a whole, with a stand-in for upstream's tests: a program that wants one pod of a ReplicaSet to run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from placewright_lab.controlplane.assets import VARIABLE, from_environment
from programs import not_on_this_server

ROOT = Path(__file__).parents[2]
SPEC = "[sig-scheduling] runs a pod"
STAND_IN = f"""#!{sys.executable}
import subprocess, sys, time
if "--version" in sys.argv:
    print("v1.36.2")
    sys.exit()
flags = dict(each.lstrip("-").partition("=")[::2] for each in sys.argv[1:])
why = ""
if "ginkgo.dry-run" not in flags:
    def kubectl(*words):
        command = [flags["kubectl-path"], "--kubeconfig", flags["kubeconfig"], *words]
        return subprocess.run(command, capture_output=True, text=True).stdout
    kubectl("create", "deployment", "web", "--image", "example.test/web")
    until = time.monotonic() + 60
    while (phase := kubectl("get", "pods", "--output", "jsonpath={{.items[*].status.phase}}")) != "Running":
        if time.monotonic() > until:
            why = "<failure message='the pod is " + phase + "'/>"
            break
        time.sleep(0.2)
case = "<testsuite><testcase name='[It] {SPEC}' time='1'>" + why + "</testcase></testsuite>"
open(flags["report-dir"] + "/junit_01.xml", "w").write(case)
"""


@pytest.mark.timeout(300)
def test_placewright_places_a_controller_s_pod_under_its_shipped_rights_and_everything_ends(tmp_path: Path) -> None:
    assets = from_environment(os.environ)
    if assets is None or assets.kube_controller_manager is None or assets.kubectl is None:
        not_on_this_server(f"{VARIABLE} has no kube-controller-manager and kubectl")
    program = tmp_path / "e2e.test"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    command = ["make", "--silent", "conformance", f"ARGS=--e2e-test {program} --output {tmp_path / 'out'}"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    first, last = run.stdout.splitlines()
    assert first == f"passed       1.0 s  {SPEC}"
    assert last == "1 passed"
    log = (tmp_path / "out" / "placewright.log").read_text()
    assert "pod placed pod=default/web-" in log
