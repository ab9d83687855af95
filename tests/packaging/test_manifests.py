"""The manifests: every one parses, they fit together, and the profiles among them are good."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import jsonschema
import pytest
import yaml

from placewright import __version__
from placewright.api.profile import GROUP, KIND, PLURAL
from placewright.engine.discovery import Discovery, Shortfall, reflected_core
from placewright.kube.discovery import ServedResources
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve
from placewright.profiles.schema import json_schema
from placewright.serving.endpoints import SECURE_PORT
from programs import program

from .building import documents, manifests_of, pod_of

ROOT = Path(__file__).parents[2]
BASE = ROOT / "manifests" / "base"
DEFINITIONS = ROOT / "crds"
KUSTOMIZATIONS = sorted(
    file.parent for file in (ROOT / "manifests").rglob("kustomization.yaml") if "kind: Component\n" not in file.read_text()
)
SAMPLES = sorted((ROOT / "manifests" / "samples").glob("*.yaml"))
Manifest = dict[str, Any]


def resources(folder: Path) -> list[Manifest]:
    """All manifests that a kustomization names, those of other folders included."""
    found: list[Manifest] = []
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        path = (folder / name).resolve()
        found += resources(path) if path.is_dir() else documents(path.read_text())
    return found


@pytest.fixture(scope="module")
def manifests() -> dict[tuple[str, str], Manifest]:
    return {(each["kind"], each["metadata"]["name"]): each for each in resources(BASE)}


def one(manifests: dict[tuple[str, str], Manifest], kind: str) -> Manifest:
    (found,) = (each for (its_kind, _), each in manifests.items() if its_kind == kind)
    return found


def test_every_file_of_the_base_is_part_of_it() -> None:
    named = set(yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"])
    assert {file.name for file in BASE.glob("*.yaml")} - {"kustomization.yaml"} == {name for name in named if name.endswith(".yaml")}


def test_every_manifest_has_what_any_object_needs(manifests: dict[tuple[str, str], Manifest]) -> None:
    for each in manifests.values():
        assert {"apiVersion", "kind", "metadata"} <= set(each)
    assert len(manifests) == len(resources(BASE)), "two manifests have one name"


def test_namespaced_objects_live_in_our_namespace_and_others_in_none(manifests: dict[tuple[str, str], Manifest]) -> None:
    namespace = one(manifests, "Namespace")["metadata"]["name"]
    namespaced = {"ServiceAccount", "Deployment", "Role", "RoleBinding", "Service"}
    for (kind, name), each in manifests.items():
        assert each["metadata"].get("namespace") == (namespace if kind in namespaced else None), (kind, name)


def test_the_binding_gives_the_role_to_the_account_that_the_pods_run_as(manifests: dict[tuple[str, str], Manifest]) -> None:
    account = one(manifests, "ServiceAccount")["metadata"]
    assert one(manifests, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"] == account["name"]
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        binding = one(manifests, kind)
        assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in manifests
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}]


def test_no_rule_has_a_wildcard_or_a_right_that_a_scheduler_does_not_need(manifests: dict[tuple[str, str], Manifest]) -> None:
    rules = one(manifests, "ClusterRole")["rules"]
    rights = {(group, resource, verb) for r in rules for group in r["apiGroups"] for resource in r["resources"] for verb in r["verbs"]}
    assert not [right for right in rights if "*" in right]
    assert not [right for right in rights if right[1] in ("secrets", "configmaps", "roles", "clusterroles")]
    written = {(resource, verb) for _, resource, verb in rights if verb not in ("get", "list", "watch")}
    assert written == {
        ("pods/binding", "create"),
        ("pods/status", "patch"),
        ("pods", "delete"),
        ("persistentvolumes", "patch"),
        ("persistentvolumeclaims", "patch"),
        *(("resourceclaims", verb) for verb in ("create", "update", "patch", "delete")),
        *((f"resourceclaims/{part}", verb) for part in ("status", "binding") for verb in ("update", "patch")),
        ("podgroups/status", "patch"),
        ("compositepodgroups/status", "patch"),
        ("events", "create"),
        ("events", "patch"),
        (f"{PLURAL}/status", "patch"),
        ("clusterkopfpeerings", "patch"),
        ("tokenreviews", "create"),
        ("subjectaccessreviews", "create"),
    }


def test_in_its_own_namespace_the_scheduler_may_hold_one_lease_and_keep_the_history_of_profiles_and_nothing_else(
    manifests: dict[tuple[str, str], Manifest],
) -> None:
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert one(manifests, "Role")["rules"] == [
        {**leases, "verbs": ["create"]},
        {**leases, "resourceNames": ["placewright"], "verbs": ["get", "list", "watch", "update"]},
        {"apiGroups": ["apps"], "resources": ["controllerrevisions"], "verbs": ["create", "delete", "list", "patch"]},
    ]


class Everything(dict[tuple[str, str], list[str]]):
    """A server that has every collection in every version."""

    def get(self, _key: Any, _default: Any = None) -> Any:
        """Whatever is asked for."""
        return ["v1", *(f"v1{stage}{number}" for stage in ("beta", "alpha") for number in (1, 2, 3))]


def test_the_role_lets_the_scheduler_read_what_it_reflects_and_nothing_else(manifests: dict[tuple[str, str], Manifest]) -> None:
    nobody: Any = Mock()
    reflectors = reflected_core(nobody, nobody, lambda: None)
    Discovery(nobody, nobody, reflectors, 3600.0).adopt(Shortfall(None, ServedResources(Everything())))
    reflected = {(path[2] if path[1] == "apis" else "", path[-1]) for each in reflectors.members for path in [each.source.path.split("/")]}
    readable = {
        (group, resource)
        for rule in one(manifests, "ClusterRole")["rules"]
        if {"list", "watch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    watched_by_kopf = {(GROUP, PLURAL), ("kopf.dev", "clusterkopfpeerings"), ("apiextensions.k8s.io", "customresourcedefinitions")}
    assert readable == reflected | watched_by_kopf


def test_only_our_own_peering_may_be_written(manifests: dict[tuple[str, str], Manifest]) -> None:
    rules = one(manifests, "ClusterRole")["rules"]
    (rule,) = (rule for rule in rules if "clusterkopfpeerings" in rule["resources"] and "patch" in rule["verbs"])
    assert rule["resourceNames"] == [one(manifests, "ClusterKopfPeering")["metadata"]["name"]] == ["placewright"]


def test_custom_objects_come_with_their_definitions(manifests: dict[tuple[str, str], Manifest]) -> None:
    definitions = [each["spec"] for each in resources(DEFINITIONS)]
    defined = {(f"{spec['group']}/{version['name']}", spec["names"]["kind"]) for spec in definitions for version in spec["versions"]}
    for each in manifests.values():
        if "placewright.dev" in each["apiVersion"] or "kopf.dev" in each["apiVersion"]:
            assert (each["apiVersion"], each["kind"]) in defined
    assert any(spec["group"] == GROUP and spec["names"]["kind"] == KIND for spec in definitions)


@pytest.mark.parametrize("folder", KUSTOMIZATIONS, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_no_folder_that_somebody_may_delete_has_the_definitions_in_it(folder: Path) -> None:
    assert "CustomResourceDefinition" not in {each["kind"] for each in manifests_of(folder)}


def test_no_component_has_a_definition_in_it() -> None:
    for file in (ROOT / "manifests" / "components").rglob("*.yaml"):
        kinds = {each["kind"] for each in documents(file.read_text()) if "kind" in each}
        assert "CustomResourceDefinition" not in kinds, file


def test_the_tools_of_gitops_never_remove_a_definition() -> None:
    built = manifests_of(DEFINITIONS)
    assert {each["kind"] for each in built} == {"CustomResourceDefinition"}
    for each in built:
        noted = each["metadata"]["annotations"]
        assert set(noted["argocd.argoproj.io/sync-options"].split(",")) >= {"Prune=false", "Delete=false"}
        assert noted["kustomize.toolkit.fluxcd.io/prune"] == "disabled"


def test_the_scheduler_s_pods_are_hardened(manifests: dict[tuple[str, str], Manifest]) -> None:
    pod = one(manifests, "Deployment")["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["readOnlyRootFilesystem"] is True
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert container["resources"]["limits"]["memory"]
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted <= {volume["name"] for volume in pod["volumes"]}


def test_probes_and_the_service_ask_at_the_port_that_is_served(manifests: dict[tuple[str, str], Manifest]) -> None:
    (container,) = one(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
    (port,) = container["ports"]
    assert (port["name"], port["containerPort"]) == ("https-metrics", SECURE_PORT)
    asked = {name: container[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {name: probe["path"] for name, probe in asked.items()} == {
        "startupProbe": "/livez", "livenessProbe": "/livez", "readinessProbe": "/readyz",
    }  # fmt: skip
    assert all(probe["scheme"] == "HTTPS" and probe["port"] == port["name"] for probe in asked.values())
    service = one(manifests, "Service")["spec"]
    assert [(each["name"], each["port"], each["targetPort"]) for each in service["ports"]] == [(port["name"], SECURE_PORT, port["name"])]
    assert service["selector"] == one(manifests, "Deployment")["spec"]["template"]["metadata"]["labels"]


def test_the_scheduler_does_not_wait_for_itself(manifests: dict[tuple[str, str], Manifest]) -> None:
    deployment = one(manifests, "Deployment")
    profile = one(manifests, KIND)
    scheduler = deployment["spec"]["template"]["spec"]["schedulerName"]
    assert scheduler == "default-scheduler" != profile["spec"]["schedulerName"]
    assert deployment["spec"]["selector"]["matchLabels"] == deployment["spec"]["template"]["metadata"]["labels"]


def test_the_image_is_of_this_version(manifests: dict[tuple[str, str], Manifest]) -> None:
    (container,) = one(manifests, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"placewright:{__version__}"
    (built,) = pod_of(manifests_of(BASE))["containers"]
    assert built["image"] == container["image"]


def test_an_overlay_of_one_s_own_names_the_image_in_one_place() -> None:
    (container,) = pod_of(manifests_of(ROOT / "manifests" / "examples" / "installation"))["containers"]
    assert container["image"] == f"registry.example.com/placewright:{__version__}"


@pytest.mark.parametrize("page", ["README.md", "docs/gitops.md"])
def test_a_page_says_what_to_do_about_the_image_above_the_commands_that_need_it(page: str) -> None:
    text = (ROOT / page).read_text()
    told, built, applied = (text.index(each) for each in ("image is published", "docker build", "kubectl wait --for condition=established"))
    assert told < built < applied
    first = text.index("kubectl apply --server-side -k manifests/")
    assert text.index("docker build") < text.index(" -k crds") < applied < first


def test_readme_s_line_changes_the_image_that_base_names(tmp_path: Path) -> None:
    (line,) = (line.strip() for line in (ROOT / "README.md").read_text().splitlines() if line.strip().startswith("sed -i"))
    shutil.copytree(ROOT / "manifests" / "base", tmp_path / "manifests" / "base")
    subprocess.run(["sh", "-ec", line], cwd=tmp_path, check=True, timeout=10)
    (container,) = pod_of(manifests_of(tmp_path / "manifests" / "base"))["containers"]
    assert container["image"] == f"registry.example.com/placewright:{__version__}"


def test_the_default_profile_holds_to_the_schema_and_can_run(manifests: dict[tuple[str, str], Manifest]) -> None:
    profile = one(manifests, KIND)
    jsonschema.validate(profile, json_schema())
    (read,) = read_profiles(profile, "profile.yaml")
    assert resolve(read, in_tree()).scheduler_name == "placewright"


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.stem)
def test_a_sample_is_a_profile_that_can_run(file: Path) -> None:
    text = file.read_text()
    for document in yaml.safe_load_all(text):
        if document["kind"] == KIND:
            jsonschema.validate(document, json_schema())
    profiles = read_profiles(text, file.name)
    assert profiles
    for profile in profiles:
        resolve(profile, in_tree())


def test_kustomize_builds_the_base(manifests: dict[tuple[str, str], Manifest]) -> None:
    built = subprocess.run([program("kubectl"), "kustomize", str(BASE)], capture_output=True, text=True, check=False, timeout=60)
    assert built.returncode == 0, built.stderr
    names = {(each["kind"], each["metadata"]["name"]) for each in documents(built.stdout)}
    assert names == set(manifests)
