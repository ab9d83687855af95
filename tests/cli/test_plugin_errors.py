"""A plugin that breaks is one line at the terminal, with its name and the extension point; never a traceback."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from types import ModuleType

import pytest

from placewright.api.objects import Node
from placewright.api.pods import PodInfo
from placewright.cli.main import main
from placewright.framework.interface import Plugin
from placewright.framework.scalar import ScalarFilter, ScalarScore
from placewright.framework.status import SUCCESS, Status
from placewright_lab.commands import compare, diff, evaluate, simulate, tune

CLUSTER = """\
{apiVersion: v1, kind: Node, metadata: {name: a, labels: {}}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b, labels: {}}, status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {app: web}}, spec: {schedulerName: s, containers: [{name: main, image: main}]}}
"""
PROFILE = """\
apiVersion: placewright.dev/v1alpha1
kind: SchedulingProfile
metadata: {name: p}
spec: {schedulerName: s, plugins: {multiPoint: {enabled: [{name: Boom}]}}}
"""


class Raises(ScalarFilter):
    name = "Boom"

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        raise ValueError("kaboom")


class Scribbles(ScalarScore):
    name = "Boom"

    def score_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> int:
        node.metadata.labels["seen"] = "yes"  # type: ignore[index]
        return 1


class NotBuilt(ScalarFilter):
    name = "Boom"

    def __init__(self, args: object, handle: object) -> None:
        raise KeyError("no licence")

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        return SUCCESS


def files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "profile.yaml").write_text(PROFILE)
    return str(tmp_path / "cluster.yaml"), str(tmp_path / "profile.yaml")


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (Raises, 'running Filter plugin "Boom": ValueError: kaboom'),
        (NotBuilt, "initializing plugin \"Boom\": KeyError: 'no licence'"),
        (Scribbles, 'running Score plugin "Boom": it wrote into node a: metadata.labels.seen was absent and is "yes"; '
                    "allowed is only to read objects"),
    ],
)  # fmt: skip
def test_evaluate_ends_with_one_line_and_exit_code_2(
    plugin: type[Plugin], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, profile = files(tmp_path)
    monkeypatch.setattr(evaluate, "installed_plugins", lambda: [plugin])
    assert main(["evaluate", "-f", cluster, "--profile", profile]) == 2
    assert capsys.readouterr().err.splitlines() == [f"placewright: error: {said}"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_simulate_says_why_pods_are_pending_and_ends_with_2(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, profile = files(tmp_path)
    monkeypatch.setattr(simulate, "installed_plugins", lambda: [Raises])
    assert main(["simulate", "-f", cluster, "--profile", profile, "--profile", profile, "--jobs", str(jobs), "-o", "json"]) == 2
    said = capsys.readouterr()
    outcome, _ = json.loads(said.out)["profiles"]
    assert (outcome["placed"], outcome["pending"]) == (0, 1)
    assert 'running Filter plugin "Boom": ValueError: kaboom' in outcome["fates"][0]["message"]
    (line,) = said.err.splitlines()
    assert re.fullmatch(r'placewright: error: p .*: Filter plugin "Boom" failed \d+ times?, last: ValueError: kaboom', line)


class ScribblesOnPods(ScalarFilter):
    name = "Boom"

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        pod.pod.metadata.labels["app"] = "other"  # type: ignore[index]
        return SUCCESS


class Reads(ScalarFilter):
    name = "Aloof"

    def filter_node(self, pod: PodInfo, node: Node, pods: Collection[PodInfo]) -> Status:
        return SUCCESS


@pytest.mark.parametrize(
    ("plugins", "said"),
    [
        ([Scribbles], 'plugin Boom: it wrote into node a: metadata.labels.seen was absent and is "yes"; allowed is only to read objects'),
        (
            [Reads, ScribblesOnPods],
            "one of the plugins Aloof, Boom: it wrote into pod default/web: "
            'metadata.labels.app was "web" and is "other"; allowed is only to read objects',
        ),
        ([Reads], ""),
    ],
)
def test_a_simulation_whose_plugin_writes_into_objects_is_not_a_success(
    plugins: list[type[Plugin]], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, profile = files(tmp_path)
    names = ", ".join(f"{{name: {plugin.name}}}" for plugin in plugins)
    Path(profile).write_text(PROFILE.replace("{name: Boom}", names))
    monkeypatch.setattr(simulate, "installed_plugins", lambda: plugins)
    assert main(["simulate", "-f", cluster, "--profile", profile, "-o", "json"]) == (2 if said else 0)
    found = capsys.readouterr()
    assert json.loads(found.out)["profiles"][0]["pluginFailures"] == ([said] if said else [])
    assert found.err == (f"placewright: error: p: {said}\n" if said else "")


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (compare, ["compare", "-f", "CLUSTER", "--profile", "PROFILE", "--profile", "OTHER", "--seeds", "2"]),
        (diff, ["diff", "OTHER", "PROFILE", "-f", "CLUSTER"]),
        (diff, ["diff", "OTHER", "PROFILE", "-f", "CLUSTER", "--fail-if-pending-grows"]),
        (tune, ["tune", "-f", "CLUSTER", "--profile", "PROFILE", "--objective", "pending", "--vary", "ImageLocality=0..1"]),
    ],
    ids=["compare", "diff", "diff that fails where more wait", "tune"],
)
def test_figures_that_rest_on_a_failing_plugin_are_not_a_success(
    module: ModuleType, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, profile = files(tmp_path)
    other = tmp_path / "other.yaml"
    other.write_text(PROFILE.replace("{name: Boom}", "{name: ImageLocality}"))
    monkeypatch.setattr(module, "installed_plugins", lambda: [Raises])
    named = {"CLUSTER": cluster, "PROFILE": profile, "OTHER": str(other)}
    assert main([named.get(word, word) for word in words]) == 2
    assert 'Filter plugin "Boom" failed' in capsys.readouterr().err
    fine = [str(other) if word == "PROFILE" else named.get(word, word) for word in words]
    assert main(fine) == 0
    assert capsys.readouterr().err == ""


def test_simulate_with_a_plugin_that_cannot_be_built_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, profile = files(tmp_path)
    monkeypatch.setattr(simulate, "installed_plugins", lambda: [NotBuilt])
    assert main(["simulate", "-f", cluster, "--profile", profile]) == 2
    assert capsys.readouterr().err.splitlines() == ["placewright: error: initializing plugin \"Boom\": KeyError: 'no licence'"]
