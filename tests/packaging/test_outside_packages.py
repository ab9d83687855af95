"""Packages below examples/ use what is public and nothing else, are found by their entry points, and are named where they lack."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import yaml

from outsiders import installed
from placewright.cli.main import main
from placewright.engine import permissions
from placewright.engine.permissions import declared_needs
from placewright.framework.registry import ENTRY_POINT_GROUP, Registry, installed_plugins
from placewright.plugins.catalog import in_tree
from placewright.profiles.defaults import PACKAGES
from placewright.profiles.kubescheduler.findings import Loss
from placewright.profiles.kubescheduler.reader import convert
from placewright.profiles.problem import ProfileError
from placewright.profiles.resolve import resolve
from placewright_load_aware import LoadAware
from profiles.makers import a_profile, yaml_of

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(folder.parent for folder in (ROOT / "examples").glob("*/pyproject.toml"))
OURS = ("placewright", "placewright_console", "placewright_lab", "kubesandbox")
PAGE = (ROOT / "docs" / "plugin-reference.md").read_text()


def public_modules() -> set[str]:
    """Those that docs/plugin-reference.md names."""
    section = PAGE.partition("\n## What is public\n")[2].partition("\n## ")[0]
    found: set[str] = set()
    for row in re.findall(r"^\| (`placewright[^|]*) \|", section, re.MULTILINE):
        first, *others = re.findall(r"`([^`]+)`", row)
        found |= {first, *(first.rpartition(".")[0] + other for other in others)}
    return found


def imported(file: Path) -> Iterator[str]:
    """Modules of ours that a file imports."""
    for each in ast.walk(ast.parse(file.read_text())):
        names = [one.name for one in each.names] if isinstance(each, ast.Import) else []
        if isinstance(each, ast.ImportFrom):
            names = [each.module or ""]
        yield from (name for name in names if name.partition(".")[0] in OURS)


def is_public(module: str, public: set[str]) -> bool:
    return any(module == each or (each in ("placewright.api", "placewright.testing") and module.startswith(f"{each}.")) for each in public)


def test_every_module_that_the_page_calls_public_is_there() -> None:
    assert len(public_modules()) >= 15
    for module in public_modules():
        import_module(module)


@pytest.mark.parametrize("package", EXAMPLES, ids=lambda folder: folder.name)
def test_a_package_of_plugins_imports_what_is_public_and_nothing_else(package: Path) -> None:
    files = sorted(package.rglob("*.py"))
    assert files
    private = {(file.name, module) for file in files for module in imported(file) if not is_public(module, public_modules())}
    assert private == set()


def test_our_environment_has_the_legacy_plugins_by_the_entry_points_of_their_package() -> None:
    declared = tomllib.loads((ROOT / "examples" / "legacy-plugins" / "pyproject.toml").read_text())["project"]
    found = {each.name: each for each in entry_points(group=ENTRY_POINT_GROUP)}
    for name, value in declared["entry-points"][ENTRY_POINT_GROUP].items():
        assert found[name].value == value
        assert PACKAGES[name] == declared["name"] == found[name].dist.name  # type: ignore[union-attr]
        assert found[name].load().name == name
    assert set(PACKAGES) == set(declared["entry-points"][ENTRY_POINT_GROUP]) <= {plugin.name for plugin in installed_plugins()}


PROFILE = """
apiVersion: placewright.dev/v1alpha1
kind: SchedulingProfile
metadata: {name: labelled}
spec:
  schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: NodeLabel}, {name: ServiceAffinity}]}}
  pluginConfig:
  - {name: NodeLabel, args: {presentLabels: [disk]}}
"""
CLUSTER = """
{kind: List, apiVersion: v1, items: [
  {kind: Node, apiVersion: v1, metadata: {name: a, labels: {disk: ssd}}, status: {allocatable: {cpu: "4", pods: "10"}}},
  {kind: Node, apiVersion: v1, metadata: {name: b}, status: {allocatable: {cpu: "4", pods: "10"}}},
  {kind: Pod, apiVersion: v1, metadata: {name: web}, spec: {containers: [{name: c}]}},
]}
"""


def test_commands_know_the_legacy_plugins_as_they_know_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "profile.yaml").write_text(PROFILE)
    files = ["-f", str(tmp_path / "cluster.yaml"), "--profile", str(tmp_path / "profile.yaml"), "-o", "json"]

    def said(*arguments: str) -> str:
        assert main([*arguments]) == 0
        return capsys.readouterr().out

    assert "presentLabelsPreference" in said("schema", "NodeLabel")
    assert '"NodeLabel"' in said("schema", "SchedulingProfile")
    assert said("validate", str(tmp_path / "profile.yaml")).startswith("1 profile in 1 file: nothing is wrong\n")
    assert "node(s) didn't have the requested labels" in said("evaluate", *files, "--pod", "default/web")
    assert '"node": "a"' in said("simulate", *files)


def test_the_role_of_the_load_aware_example_is_what_its_source_needs_and_goes_to_the_operators_account() -> None:
    role, binding = yaml.safe_load_all((ROOT / "examples" / "load-aware" / "manifests" / "role.yaml").read_text())
    needed = [rule.manifest() for need in declared_needs(Registry([LoadAware]).sources.values()) for rule in need.rules]
    assert role["rules"] == needed == [{"apiGroups": ["metrics.k8s.io"], "resources": ["nodes"], "verbs": ["list"]}]
    operator = next(yaml.safe_load_all((ROOT / "manifests" / "base" / "clusterrolebinding.yaml").read_text()))
    (subject,) = binding["subjects"]
    assert subject["name"] == operator["subjects"][0]["name"]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]


def test_a_role_made_for_profiles_has_what_their_plugins_declare_and_the_shipped_one_has_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with installed(tmp_path / "site", "load-aware"):
        assert permissions.main([str(ROOT / "examples" / "load-aware" / "manifests" / "profile.yaml")]) == 0
        assert "# Read for LoadAware, a plugin of another package.\n- apiGroups: [metrics.k8s.io]" in capsys.readouterr().out
        assert permissions.main([]) == 0
        assert "metrics.k8s.io" not in capsys.readouterr().out


# --- where the package is not installed --------------------------------------------------------------------------------------------

PLUGINS = in_tree()


def enabling(name: str, **spec: Any) -> Any:
    return a_profile({"schedulerName": "x", "plugins": {"multiPoint": {"enabled": [{"name": name}]}}, **spec})


@pytest.mark.parametrize("name", PACKAGES)
def test_a_profile_that_enables_its_plugin_is_refused_with_the_package_and_what_to_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placewright.framework.registry.InstalledPlugins.__contains__", lambda _self, _name: False)
    with pytest.raises(ProfileError) as refused:
        resolve(enabling(name, pluginConfig=[{"name": name, "args": {}}]), PLUGINS)
    said = f'found "{name}"; allowed a known plugin; {name} is in the package placewright-legacy-plugins: install it where placewright runs'
    assert [problem.path for problem in refused.value.problems] == ["spec.plugins.multiPoint.enabled[0].name"]
    assert said in str(refused.value)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_profile_that_does_not_run_its_plugin_means_what_it_meant(name: str) -> None:
    spec = {
        "schedulerName": "x",
        "plugins": {"multiPoint": {"disabled": [{"name": name}]}},
        "pluginConfig": [{"name": name, "args": {}}],
        "weights": {name: 0},
    }
    assert name not in resolve(a_profile(spec), PLUGINS).plugin_names


NAMED = {"NodeLabel", "ServiceAffinity"}
POLICY = {
    "kind": "Policy",
    "apiVersion": "v1",
    "predicates": [{"name": "Rack", "argument": {"labelsPresence": {"labels": ["rack"], "presence": True}}}],
    "priorities": [{"name": "halls", "weight": 2, "argument": {"serviceAntiAffinity": {"label": "hall"}}}],
}
CONFIGURATION = {
    "kind": "KubeSchedulerConfiguration",
    "apiVersion": "kubescheduler.config.k8s.io/v1beta1",
    "profiles": [{
        "plugins": {"filter": {"enabled": [{"name": "NodeLabel"}]}, "score": {"enabled": [{"name": "ServiceAffinity"}]}},
        "pluginConfig": [{"name": "NodeLabel", "args": {"presentLabels": ["rack"]}}],
    }],
}  # fmt: skip


@pytest.mark.parametrize("document", [POLICY, CONFIGURATION], ids=lambda document: document["kind"])
def test_a_conversion_lists_what_is_left_out_by_package_and_what_is_left_can_run(document: dict[str, Any]) -> None:
    converted = convert(yaml_of(document), "old.yaml", PLUGINS)
    lost = [finding for finding in converted.findings if finding.loss is Loss.PLACEMENT]
    by_default = {"NodePreferAvoidPods"} if document is CONFIGURATION else set()
    assert {finding.text.partition(":")[0] for finding in lost} == NAMED | by_default
    assert all("is in the package placewright-legacy-plugins, which is not installed here" in finding.text for finding in lost)
    assert set(PACKAGES).isdisjoint(resolve(converted.profiles[0], PLUGINS).plugin_names)


@pytest.mark.parametrize(("document", "where"), [(POLICY, 'kind: found "Policy"'), (CONFIGURATION, 'apiVersion: found "v1beta1"')])
def test_without_the_package_a_file_of_its_time_is_refused_with_its_name(
    document: dict[str, Any], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placewright.profiles.kubescheduler.rewrites.entry_points", lambda **_: ())
    with pytest.raises(ProfileError) as refused:
        convert(yaml_of(document), "old.yaml", PLUGINS)
    assert str(refused.value).startswith(f"old.yaml: {where}; allowed a file of kube-scheduler 1.23 or newer")
    assert "the package placewright-legacy-plugins: install it" in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("document", [POLICY, CONFIGURATION], ids=lambda document: document["kind"])
def test_with_the_package_nothing_is_lost(document: dict[str, Any]) -> None:
    registry = in_tree().with_installed(installed_plugins())
    converted = convert(yaml_of(document), "old.yaml", registry)
    assert [finding for finding in converted.findings if finding.loss is Loss.PLACEMENT] == []
    assert set(resolve(converted.profiles[0], registry).plugin_names) >= NAMED
