"""The example repository: every cluster's profiles build, are valid and can run, and the tools' files lead to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from placewright.api.profile import GROUP, KIND
from placewright.cli.main import main
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve
from placewright.profiles.schema import json_schema

from .building import manifests_of
from .schemas import problems

ROOT = Path(__file__).parents[2]
REPOSITORY = ROOT / "manifests" / "examples" / "profiles-repository"
CLUSTERS = sorted(folder.name for folder in (REPOSITORY / "clusters").iterdir())
Manifest = dict[str, Any]


def documents(name: str) -> list[Manifest]:
    return list(yaml.safe_load_all((REPOSITORY / name).read_text()))


def test_the_tools_bring_the_definitions_first_and_never_take_them_away() -> None:
    folder = ROOT / "manifests" / "examples" / "installation"
    applications = list(yaml.safe_load_all((folder / "argocd.yaml").read_text()))
    waves = [int(each["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"]) for each in applications]
    assert waves == sorted(set(waves))
    _, *flux = yaml.safe_load_all((folder / "flux.yaml").read_text())
    assert flux[0]["spec"]["prune"] is False
    assert flux[1]["spec"]["dependsOn"] == [{"name": flux[0]["metadata"]["name"]}]
    for paths in ([each["spec"]["source"]["path"] for each in applications], [each["spec"]["path"].removeprefix("./") for each in flux]):
        definitions, operator = (manifests_of(ROOT / path) for path in paths)
        assert {each["kind"] for each in definitions} == {"CustomResourceDefinition"}
        assert "Deployment" in {each["kind"] for each in operator}
    assert not applications[0]["spec"]["syncPolicy"]["automated"].get("prune")


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_cluster_s_profiles_can_run(cluster: str) -> None:
    built = manifests_of(REPOSITORY / "clusters" / cluster)
    assert {each["kind"] for each in built} == {KIND}
    for profile in built:
        jsonschema.validate(profile, json_schema())
        assert list(problems(profile)) == []
        resolve(read_profiles(profile, cluster)[0], in_tree())
    assert len({each["spec"]["schedulerName"] for each in built}) == len(built)


def test_what_the_repository_s_pre_commit_hook_runs_finds_nothing_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    wanted = documents(".pre-commit-config.yaml")[0]["repos"][0]["hooks"]
    (entry,) = (hook["entry"] for hook in hooks if hook["id"] == wanted[0]["id"])
    assert main([*entry.split()[1:], str(REPOSITORY)]) == 0, capsys.readouterr().out


def test_a_cluster_changes_one_number_and_keeps_the_rest() -> None:
    def batch(folder: str) -> Manifest:
        return next(each for each in manifests_of(REPOSITORY / folder) if each["metadata"]["name"] == "batch")

    shared, staging = batch("profiles"), batch("clusters/staging")
    assert staging["spec"].pop("weights") == {**shared["spec"].pop("weights"), "NodeResourcesFit": 5}
    assert staging == shared


def test_argo_cd_has_one_application_for_each_cluster_and_may_change_nothing_but_profiles() -> None:
    (applications,), (project,) = documents("argocd/applicationset.yaml"), documents("argocd/project.yaml")
    assert applications["spec"]["generators"][0]["git"]["directories"] == [{"path": "clusters/*"}]
    assert applications["spec"]["template"]["spec"]["project"] == project["metadata"]["name"]
    assert project["spec"]["clusterResourceWhitelist"] == [{"group": GROUP, "kind": KIND}]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_flux_waits_for_the_profiles_of_its_cluster(cluster: str) -> None:
    source, sync = documents(f"flux/clusters/{cluster}/profiles.yaml")
    assert sync["spec"]["sourceRef"] == {"kind": source["kind"], "name": source["metadata"]["name"]}
    assert (REPOSITORY / sync["spec"]["path"]).is_dir()
    assert sync["spec"]["path"].endswith(f"/{cluster}")
    assert sync["spec"]["wait"] is True
