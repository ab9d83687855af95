"""The shipped admission policies on a real API server that has their kinds.

Each pod gets the profile that our function gives it. A pod whose namespace may not use its profile is created with a warning.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from subprocess import PIPE, STDOUT
from typing import Any

import pytest
import yaml

from placewright.api.decode import convert
from placewright.api.profile import SchedulingProfile
from placewright.api.profileaccess import ALLOWED_PROFILES, facts_of
from placewright.api.workloads import Namespace
from placewright.kube.auth.login import load_config
from placewright.kube.client import MERGE_PATCH, ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError
from placewright.profiles.assignment import refusal
from placewright_lab.controlplane.assets import VARIABLE, from_environment
from policy.admissionpolicy import COMPONENTS
from policy.test_assignment_policy import ANNOTATION, Drawn, by_the_function
from programs import not_on_this_server

from .installation import PROFILES, Installation

Object = dict[str, Any]
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{ADMISSION}/mutatingadmissionpolicies", f"{ADMISSION}/mutatingadmissionpolicybindings"
USE_POLICIES, USE_BINDINGS = f"{ADMISSION}/validatingadmissionpolicies", f"{ADMISSION}/validatingadmissionpolicybindings"
NAME = "profile-assignment.placewright.dev"
USE = "profile-use.placewright.dev"
SHIPPED = {"policy": POLICIES, "binding": BINDINGS, "use-policy": USE_POLICIES, "use-binding": USE_BINDINGS}
NAMESPACES = ("red", "blue", "green")
PODS = 25
LOOKS = 200
LOOK_SECONDS = 0.05


def manifest(name: str) -> Object:
    content: Object = yaml.safe_load(Path(COMPONENTS, "profile-assignment", f"{name}.yaml").read_text())
    return content


@pytest.fixture
async def client(installation: Installation) -> AsyncIterator[ApiClient]:
    """With the policies and their bindings; all of it is gone at the end."""
    async with ApiClient(load_config(str(installation.kubeconfig))) as made:
        try:
            await made.get(POLICIES)
        except ApiError as problem:
            if problem.status == NOT_FOUND:
                not_on_this_server("it has no MutatingAdmissionPolicy in v1, which Kubernetes 1.36 brought")
            raise
        for name in NAMESPACES:
            with contextlib.suppress(ApiError):  # of the test before
                await made.post("/api/v1/namespaces", {"metadata": {"name": name}})
        for name in (*NAMESPACES, "kube-system", "placewright-system"):
            with contextlib.suppress(ApiError):
                await made.post(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        for name, path in SHIPPED.items():
            await made.post(path, manifest(name))
        try:
            yield made
        finally:
            for name, path in reversed(SHIPPED.items()):
                await made.delete(f"{path}/{manifest(name)['metadata']['name']}")


async def as_stored(client: ApiClient, profile: Object) -> Object:
    """The profile after its creation, with its status."""
    body = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", **profile}
    body["metadata"] = {"name": profile["metadata"]["name"]}
    if body["spec"].get("mode") == "Shadow":
        body["spec"] = {**body["spec"], "shadows": "live", "pods": None}
    path = f"{PROFILES}/{body['metadata']['name']}"
    await client.post(PROFILES, body)
    if profile.get("status"):
        await client.patch(f"{path}/status", {"status": profile["status"]}, content_type=MERGE_PATCH)
    found: Object = await client.get_as(path, dict[str, Any])
    return found


async def furnish(client: ApiClient, namespace: Object) -> None:
    """Give a namespace these labels and annotations, and no others."""
    path = f"/api/v1/namespaces/{namespace['metadata']['name']}"
    for content in ({"metadata": {"labels": None, "annotations": None}}, namespace):
        await client.patch(path, content, content_type=MERGE_PATCH)


async def admitted(client: ApiClient, namespace: str, pod: Object) -> tuple[str, str | None]:
    """The schedulerName and the annotation of a pod that is created, and not stored."""
    made = json.loads(await client.post(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod))
    return made["spec"]["schedulerName"], (made["metadata"].get("annotations") or {}).get(ANNOTATION)


@pytest.mark.parametrize("seed", range(4))
async def test_each_pod_gets_the_profile_that_the_function_gives_it(client: ApiClient, seed: int) -> None:
    drawn = Drawn(seed)
    profiles = [await as_stored(client, drawn.profile(name)) for name in ("a", "b", "c", "d")]
    try:
        for _ in range(PODS):
            namespace = drawn.namespace()
            name = namespace["metadata"]["name"]
            await furnish(client, namespace)
            pod = drawn.pod(profiles)
            expected = by_the_function(pod, namespace, profiles)
            wanted = expected["spec"]["schedulerName"], (expected["metadata"].get("annotations") or {}).get(ANNOTATION)
            # The API server sees profiles, namespaces and the policy itself through watches of its own, and so a moment later.
            for _ in range(LOOKS):
                found = await admitted(client, name, pod)
                if found == wanted:
                    break
                await asyncio.sleep(LOOK_SECONDS)
            assert found == wanted
    finally:
        for profile in profiles:
            await client.delete(f"{PROFILES}/{profile['metadata']['name']}")


class Kubectl:
    """Creates pods with the kubectl of the server's own version."""

    def __init__(self, kubeconfig: Path) -> None:
        assets = from_environment(os.environ)
        if assets is None or assets.kubectl is None:
            not_on_this_server(f"{VARIABLE} has no kubectl")
        self._command = [str(assets.kubectl), "--kubeconfig", str(kubeconfig), "create", "-f", "-"]

    async def create(self, pod: Object, *options: str) -> tuple[int, str]:
        """The exit status, and all that was printed."""
        made = await asyncio.create_subprocess_exec(*self._command, *options, stdin=PIPE, stdout=PIPE, stderr=STDOUT)
        told, _ = await made.communicate(json.dumps({"apiVersion": "v1", "kind": "Pod", **pod}).encode())
        assert made.returncode is not None
        return made.returncode, told.decode()

    async def told(self, pod: Object, wanted: str) -> str:
        """What a dry run prints once it is what is wanted: the API server sees policies through watches of its own."""
        for _ in range(LOOKS):
            _, told = await self.create(pod, "--dry-run=server")
            if told == wanted:
                break
            await asyncio.sleep(LOOK_SECONDS)
        return told


def binding_that_refuses() -> Object:
    """The one of docs/policy.md."""
    text = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()
    found = next(block for block in text.split("```")[1::2] if "ValidatingAdmissionPolicyBinding" in block)
    binding: Object = yaml.safe_load(found.removeprefix("yaml"))
    return binding


def pod_of(namespace: str, scheduler: str) -> Object:
    containers = [{"name": "main", "image": "example.test/main"}]
    return {"metadata": {"name": "kept-out", "namespace": namespace}, "spec": {"schedulerName": scheduler, "containers": containers}}


async def test_a_pod_whose_namespace_may_not_use_its_profile_is_created_and_kubectl_prints_the_sentence(
    client: ApiClient, installation: Installation
) -> None:
    kubectl = Kubectl(installation.kubeconfig)
    profile = {"metadata": {"name": "closed"}, "spec": {"schedulerName": "closed", "pods": {"allowedNamespaces": ["blue", "green"]}}}
    stored = await as_stored(client, {**profile, "status": {"activeGeneration": 1}})
    name, dry = stored["metadata"]["name"], "pod/kept-out created (server dry run)\n"
    prefix = f"Warning: Validation failed for ValidatingAdmissionPolicy '{USE}' with binding '{USE}': "
    try:
        for namespace in ("red", "green", "blue"):
            annotations = {ALLOWED_PROFILES: "another"} if namespace == "green" else {}
            await furnish(client, {"metadata": {"name": namespace, "annotations": annotations}})
            pod = pod_of(namespace, "closed")
            facts = facts_of(namespace, {namespace: await client.get_as(f"/api/v1/namespaces/{namespace}", Namespace)})
            sentence = refusal(facts, convert(stored, SchedulingProfile))
            assert bool(sentence) is (namespace != "blue")
            warning = f"{prefix}{sentence}\n" if sentence else ""
            assert await kubectl.told(pod, warning + dry) == warning + dry
            assert await kubectl.create(pod) == (0, f"{warning}pod/kept-out created\n")
            await client.delete(f"/api/v1/namespaces/{namespace}/pods/kept-out?gracePeriodSeconds=0")
    finally:
        await client.delete(f"{PROFILES}/{name}")


async def test_a_binding_of_ones_own_refuses_such_pods(client: ApiClient, installation: Installation) -> None:
    kubectl = Kubectl(installation.kubeconfig)
    binding = binding_that_refuses()
    profile = {"metadata": {"name": "closed"}, "spec": {"schedulerName": "closed", "pods": {"allowedNamespaces": ["blue"]}}}
    stored = await as_stored(client, {**profile, "status": {"activeGeneration": 1}})
    name = binding["metadata"]["name"]
    sentence = f'namespace "red" may not use profile "{stored["metadata"]["name"]}": spec.pods.allowedNamespaces does not name it'
    for namespace in ("red", "blue"):
        await furnish(client, {"metadata": {"name": namespace}})
    await client.post(USE_BINDINGS, binding)
    try:
        for _ in range(LOOKS):
            status, told = await kubectl.create(pod_of("red", "closed"), "--dry-run=server")
            if status:
                break
            await asyncio.sleep(LOOK_SECONDS)
        assert f"is forbidden: ValidatingAdmissionPolicy '{USE}' with binding '{name}' denied request: {sentence}\n" in told
        assert status == 1
        assert (await kubectl.create(pod_of("blue", "closed"), "--dry-run=server"))[0] == 0
    finally:
        await client.delete(f"{USE_BINDINGS}/{name}")
        await client.delete(f"{PROFILES}/{stored['metadata']['name']}")
