"""What `placewright convert` writes goes through kubectl, and what kubectl shows is converted back."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import yaml

from kubectl.tool import Kubectl
from placewright.cli.main import main

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONFIGURATION: dict[str, Any] = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "converted",
            "percentageOfNodesToScore": 30,
            "plugins": {
                "multiPoint": {"enabled": [{"name": "TaintToleration", "weight": 9}]},
                "score": {"disabled": [{"name": "ImageLocality"}]},
            },
            "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
        }
    ],
}
LEGACY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [{"name": "GeneralPredicates"}, {"name": "R", "argument": {"labelsPresence": {"labels": ["rack"], "presence": True}}}],
    "extenders": [{"urlPrefix": "http://127.0.0.1:9", "filterVerb": "filter", "httpTimeout": 1500000000}],
}


def converted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str, *flags: str) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["convert", *flags, "-"]) == 0
    return capsys.readouterr().out


async def test_a_configuration_goes_into_a_cluster_and_comes_back_as_it_was(
    profiles: Kubectl, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await profiles("apply", "-f", "-", given=converted(monkeypatch, capsys, yaml.safe_dump(CONFIGURATION)))
    try:
        shown = await profiles("get", "schedulingprofiles", "converted", "-o", "yaml")
    finally:
        await profiles("delete", "schedulingprofile", "converted")
    back = converted(monkeypatch, capsys, shown, "--to", "kubeschedulerconfiguration", "--strict")
    assert yaml.safe_load(back) == CONFIGURATION


async def test_the_profile_of_a_policy_is_taken_by_the_definition(
    profiles: Kubectl, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = converted(monkeypatch, capsys, json.dumps(LEGACY))
    spec = yaml.safe_load(written)["spec"]
    shown = await profiles("apply", "-f", "-", "--dry-run=server", "-o", "json", given=written)
    taken = json.loads(shown)["spec"]
    assert {field: taken[field] for field in spec} == spec


async def test_presets_are_checked_where_they_are_applied(profiles: Kubectl) -> None:
    profile = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", "metadata": {"name": "preset-of-mine"}}
    await profiles("apply", "-f", "-", "--dry-run=server", given={**profile, "spec": {"schedulerName": "p", "preset": "gpu-packing"}})
    said = await profiles.fails("apply", "-f", "-", "--dry-run=server", given={**profile, "spec": {"preset": "gpu"}})
    assert "spec.preset" in said
    assert "bin-packing" in said
