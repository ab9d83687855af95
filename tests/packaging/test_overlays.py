"""Overlays and components: each builds, is valid by Kubernetes' own schemas, and keeps what the base promises."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from kubectl.tool import Kubectl
from kubesandbox.process import SandboxProcess
from placewright.api.profile import KIND
from placewright.cli.runflags import add_admission_options, add_serving_options, admission_options, serving_options
from placewright.kube.profiles import apply_webhook
from placewright.plugins.catalog import in_tree
from placewright.profiles.config import read_profiles
from placewright.profiles.resolve import resolve
from placewright.serving.readerrights import ENTER
from programs import program

from .building import (
    COMPONENTS,
    MANIFESTS,
    OVERLAYS,
    manifests_of,
    one,
    pod_of,
    restrictions_broken,
    text_of,
    with_components,
)
from .policies import PEERS, lets_in
from .schemas import problems

Manifest = dict[str, Any]
FOLDERS = [MANIFESTS / "base", *(MANIFESTS / "overlays" / name for name in OVERLAYS)]
FOR_PRODUCTION = [folder for folder in FOLDERS if folder.name != "development"]


def test_there_is_an_overlay_for_each_way_to_run() -> None:
    assert {"single", "highly-available", "as-default-scheduler"} <= set(OVERLAYS)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_is_built_is_valid(folder: Path) -> None:
    built = manifests_of(folder)
    assert {"Deployment", "ClusterRole", KIND} <= {each["kind"] for each in built}
    assert [problem for manifest in built for problem in problems(manifest)] == []


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_component_goes_with_an_overlay_and_is_valid(component: str, tmp_path: Path) -> None:
    built = manifests_of(with_components("highly-available", [component], tmp_path))
    assert built != manifests_of(MANIFESTS / "overlays" / "highly-available")
    assert [problem for manifest in built for problem in problems(manifest)] == []


def test_all_components_go_together(tmp_path: Path) -> None:
    built = manifests_of(with_components("single", COMPONENTS, tmp_path))
    assert len({(each["kind"], each["metadata"]["name"]) for each in built}) == len(built)
    (container,) = pod_of(built)["containers"]
    assert container["args"][0] == "run"
    assert {"--console", "--admission=:9443", "--admission-configuration="} <= set(container["args"]), "none takes another's away"


def test_a_wrong_manifest_is_found() -> None:
    deployment = one(manifests_of(MANIFESTS / "base"), "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
    deployment["spec"]["replicas"] = "two"
    found = list(problems(deployment))
    assert any("imagePullPolice" in each for each in found)
    assert any("replicas" in each for each in found)


def test_a_wrong_profile_is_found() -> None:
    profile = one(manifests_of(MANIFESTS / "base"), KIND)
    profile["spec"]["wieghts"] = {}
    assert any("wieghts" in each for each in problems(profile))


@pytest.mark.parametrize("folder", FOR_PRODUCTION, ids=lambda folder: folder.name)
def test_pods_are_restricted(folder: Path) -> None:
    assert restrictions_broken(pod_of(manifests_of(folder))) == []


def test_only_for_development_is_the_root_writable() -> None:
    assert restrictions_broken(pod_of(manifests_of(MANIFESTS / "overlays" / "development"))) == ["readOnlyRootFilesystem"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_scheduler_never_waits_for_itself(folder: Path) -> None:
    built = manifests_of(folder)
    ours = {each["spec"]["schedulerName"] for each in built if each["kind"] == KIND}
    assert pod_of(built)["schedulerName"] not in ours


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_profile_among_them_can_run(folder: Path) -> None:
    for manifest in manifests_of(folder):
        if manifest["kind"] == KIND:
            assert resolve(read_profiles(manifest, folder.name)[0], in_tree()).scheduler_name == manifest["spec"]["schedulerName"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_only_what_has_a_namespace_is_given_one(folder: Path) -> None:
    namespaced = {"ServiceAccount", "Role", "RoleBinding", "Deployment", "PodDisruptionBudget", "Service"}
    for each in manifests_of(folder):
        assert each["metadata"].get("namespace") == ("placewright-system" if each["kind"] in namespaced else None), each["kind"]


def test_a_single_replica_is_gone_before_the_next_comes() -> None:
    spec = one(manifests_of(MANIFESTS / "overlays" / "single"), "Deployment")["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})


def test_replicas_stand_on_different_nodes_and_a_drain_takes_one_of_them() -> None:
    built = manifests_of(MANIFESTS / "overlays" / "highly-available")
    spec = one(built, "Deployment")["spec"]
    assert spec["replicas"] >= 2
    spread = {each["topologyKey"]: each["whenUnsatisfiable"] for each in spec["template"]["spec"]["topologySpreadConstraints"]}
    assert spread == {"kubernetes.io/hostname": "DoNotSchedule", "topology.kubernetes.io/zone": "ScheduleAnyway"}
    budget = one(built, "PodDisruptionBudget")["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"] == spec["selector"]
    assert budget["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_in_kube_scheduler_s_place_our_pods_are_left_to_the_name_that_kube_scheduler_keeps() -> None:
    folder = MANIFESTS / "overlays" / "as-default-scheduler"
    built = manifests_of(folder)
    assert "default-scheduler" in {each["spec"]["schedulerName"] for each in built if each["kind"] == KIND}
    kept = yaml.safe_load((folder / "kube-scheduler.yaml").read_text())
    assert [profile["schedulerName"] for profile in kept["profiles"]] == [pod_of(built)["schedulerName"]]
    (read,) = read_profiles(kept, "kube-scheduler.yaml")
    resolve(read, in_tree())


def test_the_priority_class_is_the_one_that_pods_name(tmp_path: Path) -> None:
    built = manifests_of(with_components("single", ["priority-class"], tmp_path))
    made = one(built, "PriorityClass")
    assert pod_of(built)["priorityClassName"] == made["metadata"]["name"]
    assert made["value"] <= 1_000_000_000, "the highest that is not kept for the system"


def test_the_network_policy_selects_our_pods(tmp_path: Path) -> None:
    built = manifests_of(with_components("single", ["network-policy"], tmp_path))
    policy = one(built, "NetworkPolicy")
    assert policy["metadata"]["namespace"] == one(built, "Deployment")["metadata"]["namespace"]
    labels = one(built, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()


def test_the_network_policy_lets_in_the_namespace_of_prometheus_at_its_port_and_nobody_else(tmp_path: Path) -> None:
    policy = one(manifests_of(with_components("highly-available", ["network-policy", "webhook"], tmp_path)), "NetworkPolicy")
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert {port: lets_in(policy, port) for port in (10259, 9443, 22)} == {10259: PEERS[:1], 9443: [], 22: []}


def test_the_patch_of_the_docs_lets_the_api_server_ask_the_webhook(tmp_path: Path) -> None:
    text = (MANIFESTS.parent / "docs" / "gitops.md").read_text().partition("## Whom the network policy lets in")[2]
    (patch,) = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])["patches"]
    root = with_components("highly-available", ["network-policy", "webhook"], tmp_path)
    kustomization = root / "kustomization.yaml"
    kustomization.write_text(yaml.safe_dump({**yaml.safe_load(kustomization.read_text()), "patches": [patch]}))
    policy = one(manifests_of(root), "NetworkPolicy")
    assert {port: lets_in(policy, port) for port in (10259, 9443, 22)} == {10259: PEERS[:1], 9443: PEERS[2:3], 22: []}


def test_the_console_comes_with_a_role_for_its_path_and_is_what_the_command_calls_it(tmp_path: Path) -> None:
    built = manifests_of(with_components("single", ["console"], tmp_path))
    (role,) = (each for each in built if each["metadata"]["name"] == "placewright-console")
    assert role["rules"] == [{"nonResourceURLs": [ENTER.path], "verbs": [ENTER.verb]}]
    parser = argparse.ArgumentParser()
    add_serving_options(parser)
    assert serving_options(parser.parse_args(pod_of(built)["containers"][0]["args"][1:])).console
    assert not serving_options(parser.parse_args([])).console


@pytest.fixture(scope="module")
def webhook(tmp_path_factory: pytest.TempPathFactory) -> list[Manifest]:
    """An overlay with the webhook on."""
    return manifests_of(with_components("highly-available", ["webhook"], tmp_path_factory.mktemp("webhook")))


class Told:
    """Takes the place of a client of the API server, and keeps what it would have sent."""

    def __init__(self) -> None:
        self.body: Manifest = {}

    async def patch(self, _path: str, body: Manifest, *_: object) -> bytes:
        self.body = body
        return b""


async def test_the_api_server_is_told_of_the_webhook_as_the_operator_itself_would_tell_it(webhook: list[Manifest]) -> None:
    ours = one(webhook, "ValidatingWebhookConfiguration")
    told = Told()
    await apply_webhook(cast(Any, told), ours["metadata"]["name"], ours["webhooks"][0]["clientConfig"], "Ignore")
    assert told.body["webhooks"] == ours["webhooks"]
    assert ours["webhooks"][0]["clientConfig"]["service"]["path"] == "/profiles"


def test_the_webhook_is_behind_its_service_with_a_certificate_for_that_name(webhook: list[Manifest]) -> None:
    (service,) = (each for each in webhook if each["kind"] == "Service" and each["metadata"]["name"] == "placewright-webhook")
    certificate, pod = one(webhook, "Certificate"), pod_of(webhook)
    configured = one(webhook, "ValidatingWebhookConfiguration")
    reached = configured["webhooks"][0]["clientConfig"]["service"]
    assert (reached["namespace"], reached["name"]) == (service["metadata"]["namespace"], service["metadata"]["name"])
    assert reached["port"] == service["spec"]["ports"][0]["port"]
    assert f"{reached['name']}.{reached['namespace']}.svc" in certificate["spec"]["dnsNames"]
    inject = configured["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
    assert inject == f"{certificate['metadata']['namespace']}/{certificate['metadata']['name']}"
    labels = one(webhook, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    (container,) = pod["containers"]
    assert service["spec"]["ports"][0]["targetPort"] in {port["name"] for port in container["ports"]}
    (volume,) = (volume for volume in pod["volumes"] if "secret" in volume)
    assert volume["secret"]["secretName"] == certificate["spec"]["secretName"]


def test_the_webhook_s_arguments_are_those_of_the_command(webhook: list[Manifest], tmp_path: Path) -> None:
    (container,) = pod_of(webhook)["containers"]
    (mount,) = (mount for mount in container["volumeMounts"] if mount["name"] == "webhook")
    for name in ("tls.crt", "tls.key"):
        (tmp_path / name).touch()
    parser = argparse.ArgumentParser()
    add_admission_options(parser)
    options = admission_options(parser.parse_args([each.replace(mount["mountPath"], str(tmp_path)) for each in container["args"][1:]]))
    assert options is not None
    assert {"name": "webhook", "containerPort": options.port} in container["ports"]
    assert (options.certificates, options.configuration) == (tmp_path, "")
    assert restrictions_broken(pod_of(webhook)) == []


@pytest.mark.parametrize("overlay", [name for name in OVERLAYS if name != "development"])
async def test_kubectl_applies_an_overlay_twice_and_the_second_time_nothing_changes(overlay: str, tmp_path: Path) -> None:
    rendered = tmp_path / "all.yaml"
    rendered.write_text(text_of(MANIFESTS / "overlays" / overlay))
    binary = program("kubectl")
    async with SandboxProcess() as sandbox:
        tool = Kubectl(binary, sandbox.kubeconfig, tmp_path, "placewright-system")
        await tool("apply", "--server-side", "-k", str(MANIFESTS.parent / "crds"))
        await tool("wait", "--for=condition=Established", "crd", "--all", "--timeout=20s")
        apply = ("apply", "--server-side", "-f", str(rendered))
        assert "deployment.apps/placewright serverside-applied" in await tool(*apply)
        versions = ("get", "-f", str(rendered), "-o", "jsonpath={.items[*].metadata.resourceVersion}")
        before = await tool(*versions)
        await tool(*apply)
        assert await tool(*versions) == before
        assert "placewright" in await tool("get", "schedulingprofiles")


async def test_kubectl_tells_what_the_installed_account_may_do(tmp_path: Path) -> None:
    binary = program("kubectl")
    base = MANIFESTS / "base"
    async with SandboxProcess() as sandbox:
        tool = Kubectl(binary, sandbox.kubeconfig, tmp_path, "placewright-system")
        for name in ("namespace", "serviceaccount", "clusterrole", "clusterrolebinding"):
            await tool("apply", "--server-side", "-f", str(base / f"{name}.yaml"))
        account = "--as=system:serviceaccount:placewright-system:placewright"
        assert await tool("auth", "can-i", "list", "nodes", account) == "yes\n"
        assert (await tool.run("auth", "can-i", "list", "secrets", account)).out == "no\n"
        assert await tool("get", "nodes", account) is not None
        assert 'cannot list resource "secrets" in API group ""' in await tool.fails("get", "secrets", account)
        token = (await tool("create", "token", "placewright", "--duration=10m")).strip()
        assert 'cannot delete resource "nodes"' in await tool.fails("delete", "node", "any", f"--token={token}")
