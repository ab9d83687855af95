"""The Helm chart: up to date, rendered by Go's own templates, and the same in effect as what kustomize builds."""

from __future__ import annotations

import copy
import functools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from placewright import __version__
from programs import program

from .building import documents, manifests_of, pod_of, with_components
from .policies import PEERS, lets_in
from .rights import DEVICE_RIGHTS, GROUP_RIGHTS, Right, rights_of
from .schemas import problems

ROOT = Path(__file__).parents[2]
CHART = ROOT / "manifests" / "helm" / "placewright"
RENDER = Path(__file__).parent / "render" / "main.go"
Manifest = dict[str, Any]
Key = tuple[str, str]
Render = Callable[..., dict[tuple[str, str], Manifest]]
VALUES: Manifest = yaml.safe_load((CHART / "values.yaml").read_text())
SCHEMA: Manifest = json.loads((CHART / "values.schema.json").read_text())


@pytest.fixture(scope="module")
def render(tmp_path_factory: pytest.TempPathFactory) -> Render:
    """Everything that the chart makes of its values, with others laid over them."""
    renderer = tmp_path_factory.mktemp("chart") / "render"
    command = [program("go"), "build", "-o", str(renderer), str(RENDER)]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert built.returncode == 0, built.stderr
    return functools.partial(rendered, [str(renderer), str(CHART / "templates")])


def merged(values: Manifest, more: Manifest) -> Manifest:
    """As Helm lays one values file over another: maps merge, null takes away, all else replaces."""
    found = copy.deepcopy(values)
    for key, value in more.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = merged(found[key], value)
        else:
            found[key] = value
    return found


def rendered(command: list[str], more: Manifest, namespace: str = "placewright-system") -> dict[Key, Manifest]:
    values = merged(VALUES, more)
    jsonschema.validate(values, SCHEMA)
    data = {
        "Values": values,
        "Release": {"Name": "ours", "Namespace": namespace, "Service": "Helm"},
        "Chart": {"Name": "placewright", "Version": __version__, "AppVersion": __version__},
    }
    ran = subprocess.run(command, input=json.dumps(data), capture_output=True, text=True, check=False, timeout=30)
    assert ran.returncode == 0, ran.stderr
    return by_key(documents(ran.stdout))


def by_key(manifests: Any) -> dict[Key, Manifest]:
    return {(each["kind"], each["metadata"]["name"]): each for each in manifests if each}


def without_labels(manifest: Manifest) -> Manifest:
    """Labels differ by tool; what selects pods does not, and is compared."""
    bare = copy.deepcopy(manifest)
    bare["metadata"].pop("labels", None)
    template = bare.get("spec", {}).get("template")
    if template:
        selected = set(bare["spec"]["selector"]["matchLabels"])
        labels = template["metadata"]["labels"]
        template["metadata"]["labels"] = {key: value for key, value in labels.items() if key in selected}
    return bare


def test_the_chart_is_what_the_generator_writes() -> None:
    command = [sys.executable, str(CHART.parent / "generate.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert checked.returncode == 0, checked.stderr


def test_the_definitions_are_those_that_kustomize_applies() -> None:
    ours = {each.name: each.read_text() for each in (CHART / "crds").iterdir()}
    assert ours == {name: (ROOT / "crds" / name).read_text() for name in ours}
    listed = yaml.safe_load((ROOT / "crds" / "kustomization.yaml").read_text())["resources"]
    assert sorted(ours) == sorted(listed)


def test_the_default_values_hold_to_their_schema() -> None:
    validator = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
    assert [error.message for error in validator.iter_errors(VALUES)] == []


@pytest.mark.parametrize(
    "wrong", [{"replica": 3}, {"replicas": "two"}, {"image": {"name": "x"}}, {"profiles": {"default": "text"}}, {"schedulerName": ""}]
)
def test_a_wrong_value_is_refused(wrong: Manifest) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(merged(VALUES, wrong), SCHEMA)


def test_the_chart_installs_what_kustomize_does(render: Render) -> None:
    of_kustomize = by_key(manifests_of(ROOT / "manifests" / "base"))
    ours = render({"podDisruptionBudget": {"enabled": False}})
    apart = {"CustomResourceDefinition", "Namespace"}  # Helm installs the ones from crds/, and the other when it is told to
    assert set(ours) == {key for key in of_kustomize if key[0] not in apart}
    for key, manifest in ours.items():
        expected = without_labels(of_kustomize[key])
        if key[0] == "Deployment":
            expected["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "IfNotPresent"  # what it is without being said
        assert without_labels(manifest) == expected, key


def test_everything_that_can_be_switched_on_is_a_valid_object(render: Render) -> None:
    every = render(
        {
            "networkPolicy": {"enabled": True, "egress": [{"ports": [{"port": 8443, "protocol": "TCP"}]}]},
            "profileRoles": True,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "imagePullSecrets": [{"name": "registry"}],
            "podAnnotations": {"example.com/note": "x"},
            "extraArgs": ["-v", "2"],
            "extraEnv": [{"name": "HTTPS_PROXY", "value": "https://proxy.test:3128"}],
            "affinity": {"podAntiAffinity": {}},
            "serviceAccount": {"annotations": {"example.com/role": "x"}},
            "profiles": {"batch": {"schedulerName": "batch", "weights": {"NodeResourcesFit": 5}}},
        }
    )
    assert {"NetworkPolicy", "PodDisruptionBudget", "ClusterRole", "SchedulingProfile", "Deployment"} <= {kind for kind, _ in every}
    assert [problem for manifest in every.values() for problem in problems(manifest)] == []
    container = every["Deployment", "placewright"]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == ["run", "-v", "2"]
    assert container["env"][-1]["name"] == "HTTPS_PROXY"
    assert every["NetworkPolicy", "placewright"]["spec"]["egress"][-1]["ports"][0]["port"] == 8443
    assert every["SchedulingProfile", "batch"]["spec"]["weights"] == {"NodeResourcesFit": 5}


def test_the_chart_with_the_webhook_is_the_component(render: Render, tmp_path: Path) -> None:
    ours = render({"webhook": {"enabled": True}})
    theirs = by_key(manifests_of(with_components("highly-available", ["webhook"], tmp_path)))
    for kind, name in (
        ("Service", "placewright-webhook"),
        ("Issuer", "placewright-webhook"),
        ("Certificate", "placewright-webhook"),
        ("ValidatingWebhookConfiguration", "placewright"),
    ):
        assert without_labels(ours[kind, name]) == without_labels(theirs[kind, name])
    pod, expected = (pod_of(list(each.values())) for each in (ours, theirs))
    container, its = pod["containers"][0], expected["containers"][0]
    assert (container["args"], by_name(container["ports"])) == (its["args"], by_name(its["ports"]))
    assert by_name(container["volumeMounts"]) == by_name(its["volumeMounts"])
    assert by_name(pod["volumes"]) == by_name(expected["volumes"])


def test_profiles_are_assigned_as_by_the_components(render: Render, tmp_path: Path) -> None:
    theirs = by_key(manifests_of(with_components("single", ["webhook", "profile-assignment", "profile-assignment-webhook"], tmp_path)))
    by_policy = render({"profileAssignment": {"by": "Policy"}})
    by_webhook = render({"profileAssignment": {"by": "Webhook"}, "webhook": {"enabled": True}})
    policies = (
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    )
    kinds = {**dict.fromkeys(policies, by_policy), "MutatingWebhookConfiguration": by_webhook}
    for kind, ours in kinds.items():
        ((key, expected),) = ((key, each) for key, each in theirs.items() if key[0] == kind)
        assert without_labels(ours[key]) == without_labels(expected)
    assert not {kind for kind, _ in by_policy} & {"MutatingWebhookConfiguration"}
    assert not {kind for kind, _ in by_webhook} & set(policies)
    assert not {kind for kind, _ in render({})} & set(kinds)


def test_an_older_api_server_serves_the_policy_as_beta(render: Render) -> None:
    ours = render({"profileAssignment": {"by": "Policy", "apiVersion": "admissionregistration.k8s.io/v1beta1"}}, namespace="elsewhere")
    made = {kind: manifest for (kind, _), manifest in ours.items() if "AdmissionPolicy" in kind}
    assert {kind: manifest["apiVersion"] for kind, manifest in made.items()} == {
        "MutatingAdmissionPolicy": "admissionregistration.k8s.io/v1beta1",
        "MutatingAdmissionPolicyBinding": "admissionregistration.k8s.io/v1beta1",
        "ValidatingAdmissionPolicy": "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicyBinding": "admissionregistration.k8s.io/v1",
    }
    for kind in ("MutatingAdmissionPolicy", "ValidatingAdmissionPolicy"):
        spared = made[kind]["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"][0]
        assert spared["values"] == ["kube-system", "elsewhere"]


def test_a_webhook_that_is_not_served_assigns_no_profiles(render: Render) -> None:
    with pytest.raises(AssertionError, match="needs webhook"):
        render({"profileAssignment": {"by": "Webhook"}})


def test_the_chart_with_the_console_is_the_component(render: Render, tmp_path: Path) -> None:
    ours = render({"console": {"enabled": True}, "webhook": {"enabled": True}})
    theirs = by_key(manifests_of(with_components("highly-available", ["console", "webhook"], tmp_path)))
    role = ("ClusterRole", "placewright-console")
    assert without_labels(ours[role]) == without_labels(theirs[role])
    assert role not in render({})
    ran, expected = (pod_of(list(each.values()))["containers"][0]["args"] for each in (ours, theirs))
    assert ran == expected


def by_name(items: list[Manifest]) -> dict[str, Manifest]:
    return {each["name"]: each for each in items}


API_SERVER = [{"ipBlock": {"cidr": "10.0.0.0/28"}}]


@pytest.mark.parametrize("webhook", [True, False])
def test_the_network_policy_lets_in_prometheus_and_the_api_server_and_nobody_else(webhook: bool, render: Render) -> None:
    values = {"enabled": True, "webhookFrom": API_SERVER}
    policy = render({"webhook": {"enabled": webhook}, "networkPolicy": values})["NetworkPolicy", "placewright"]
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert lets_in(policy, 10259) == PEERS[:1]
    assert lets_in(policy, 9443) == (PEERS[2:3] if webhook else [])
    assert lets_in(policy, 22) == []


def test_without_a_name_the_network_policy_lets_in_nobody(render: Render) -> None:
    policy = render({"networkPolicy": {"enabled": True, "metricsFrom": []}})["NetworkPolicy", "placewright"]
    assert [lets_in(policy, port) for port in (10259, 9443)] == [[], []]


def test_a_webhook_that_the_network_policy_would_cut_off_is_refused(render: Render) -> None:
    with pytest.raises(AssertionError, match=r"networkPolicy\.webhookFrom: found nothing"):
        render({"webhook": {"enabled": True}, "networkPolicy": {"enabled": True}})


def test_the_component_s_network_policy_is_the_chart_s(render: Render, tmp_path: Path) -> None:
    theirs = by_key(manifests_of(with_components("highly-available", ["network-policy"], tmp_path)))["NetworkPolicy", "placewright"]
    assert render({"networkPolicy": {"enabled": True}})["NetworkPolicy", "placewright"]["spec"] == theirs["spec"]


def test_a_chart_in_another_namespace_names_the_usual_one_nowhere(render: Render) -> None:
    every = render({"webhook": {"enabled": True}, "networkPolicy": {"enabled": True, "webhookFrom": API_SERVER}}, namespace="elsewhere")
    assert "placewright-system" not in json.dumps(list(every.values()))
    assert every["Deployment", "placewright"]["metadata"]["namespace"] == "elsewhere"


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "default"])
def test_a_namespace_of_others_is_refused_unless_there_is_no_history(render: Render, namespace: str) -> None:
    """The right to revisions cannot be narrowed to ours: those of kube-proxy's DaemonSet would be in reach."""
    with pytest.raises(AssertionError, match=f"namespace {namespace} has workloads of others"):
        render({}, namespace=namespace)
    found = set(rights_of(render({"rbac": {"history": False}}, namespace=namespace)["Role", "placewright"]))
    assert found
    assert not any(right.resource == "controllerrevisions" for right in found)


def test_a_profile_that_is_null_is_not_made(render: Render) -> None:
    assert "SchedulingProfile" not in {kind for kind, _ in render({"profiles": {"default": None}})}


def test_a_digest_goes_before_the_tag(render: Render) -> None:
    digest = f"sha256:{'0' * 64}"

    def image(**given: str) -> str:
        found = render({"image": given})["Deployment", "placewright"]
        return str(found["spec"]["template"]["spec"]["containers"][0]["image"])

    assert image() == f"placewright:{__version__}"
    assert image(repository="registry.test/placewright", tag="edge") == "registry.test/placewright:edge"
    assert image(tag="edge", digest=digest) == f"placewright@{digest}"


@pytest.mark.parametrize(
    ("flag", "spared"),
    [
        ("preemption", {Right("", "pods", "delete")}),
        ("volumes", {Right("", "persistentvolumes", "patch"), Right("", "persistentvolumeclaims", "patch")}),
        ("devices", DEVICE_RIGHTS),
        ("groups", GROUP_RIGHTS),
    ],
)
def test_rights_that_nobody_uses_can_be_left_out(render: Render, flag: str, spared: set[Right]) -> None:
    everything = set(rights_of(render({})["ClusterRole", "placewright"]))
    assert set(rights_of(render({"rbac": {flag: False}})["ClusterRole", "placewright"])) == everything - spared
