"""`placewright convert`: YAML on stdout, what has no counterpart beside it, and exit codes."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest
import yaml

from placewright.cli.main import main
from placewright.profiles.config import read_profiles

POLICY = {"kind": "Policy", "apiVersion": "v1", "priorities": [{"name": "MostRequestedPriority", "weight": 2}]}
CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf, qps: 75}
leaderElection: {leaderElect: false}
profiles:
- schedulerName: web
  plugins: {score: {enabled: [{name: ImageLocality, weight: 4}]}}
"""


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps(POLICY))
    return str(path)


@pytest.fixture
def configuration(tmp_path: Path) -> str:
    path = tmp_path / "scheduler.yaml"
    path.write_text(CONFIGURATION)
    return str(path)


def test_a_policy_becomes_a_profile_that_can_be_applied(policy: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", policy]) == 0
    out, err = capsys.readouterr()
    (profile,) = read_profiles(out, "out")
    assert profile.spec.weights is not None
    assert profile.spec.weights["NodeResourcesFit"] == 2
    assert err == ""


def test_what_has_no_counterpart_is_said_on_stderr_and_in_comments(configuration: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", configuration]) == 0
    out, err = capsys.readouterr()
    qps = "no counterpart: clientConnection.qps: a setting of the process, not of a profile: placewright run --kube-api-qps 75"
    assert f"placewright: {qps}" in err.splitlines()
    assert f"# {qps}" in out.splitlines()
    assert {line.partition(": ")[2] for line in err.splitlines()} == {line[2:] for line in out.splitlines() if line.startswith("# ")}


def test_strict_makes_that_exit_code_2_and_writes_all_the_same(configuration: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--strict", configuration]) == 2
    assert read_profiles(capsys.readouterr().out, "out")


def test_strict_is_content_where_nothing_is_lost(policy: str) -> None:
    assert main(["convert", "--strict", policy]) == 0


def test_a_configuration_is_written_with_the_settings_of_the_process(configuration: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--strict", "--to", "kubeschedulerconfiguration", configuration]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == yaml.safe_load(CONFIGURATION)


def test_what_was_written_can_be_converted_again_from_standard_input(
    policy: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["convert", policy])
    monkeypatch.setattr("sys.stdin", io.StringIO(capsys.readouterr().out))
    assert main(["convert", "--to", "kubeschedulerconfiguration", "-"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["kind"] == "KubeSchedulerConfiguration"


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(tmp_path / "none.yaml")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"placewright: error: {tmp_path / 'none.yaml'}: cannot be read: No such file or directory\n"


def test_a_file_of_something_else_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("kind: Pod")
    assert main(["convert", str(path)]) == 2
    assert capsys.readouterr().err.startswith(f'placewright: error: {path}: kind: found "Pod"; allowed SchedulingProfile, ')


def test_a_file_that_is_no_text_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "image.png"
    path.write_bytes(b"\x89PNG\xff\xfe")
    assert main(["convert", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_example_in_the_docs_is_what_happens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "conversion.md").read_text()
    example = re.search(r'title="policy\.json"\n(.*?)```.*?\$ placewright convert policy\.json > \S+\n(.*?)\$ kubectl', text, re.DOTALL)
    assert example is not None
    monkeypatch.chdir(tmp_path)
    Path("policy.json").write_text(example[1])
    assert main(["convert", "policy.json"]) == 0
    assert capsys.readouterr().err == example[2]
