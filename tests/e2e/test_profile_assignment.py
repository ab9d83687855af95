"""The shipped MutatingAdmissionPolicy on a real API server that has the kind: each pod gets the profile that our function gives it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from placewright.kube.auth.login import load_config
from placewright.kube.client import MERGE_PATCH, ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError
from policy.admissionpolicy import COMPONENTS
from policy.test_assignment_policy import ANNOTATION, Drawn, by_the_function
from programs import not_on_this_server

from .installation import PROFILES, Installation

Object = dict[str, Any]
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{ADMISSION}/mutatingadmissionpolicies", f"{ADMISSION}/mutatingadmissionpolicybindings"
NAME = "profile-assignment.placewright.dev"
NAMESPACES = ("red", "blue", "green")
PODS = 25
LOOKS = 200
LOOK_SECONDS = 0.05


def manifest(name: str) -> Object:
    content: Object = yaml.safe_load(Path(COMPONENTS, "profile-assignment", f"{name}.yaml").read_text())
    return content


@pytest.fixture
async def client(installation: Installation) -> AsyncIterator[ApiClient]:
    """With the policy and its binding; all of it is gone at the end."""
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
        await made.post(POLICIES, manifest("policy"))
        await made.post(BINDINGS, manifest("binding"))
        try:
            yield made
        finally:
            for path in (f"{BINDINGS}/{NAME}", f"{POLICIES}/{NAME}"):
                await made.delete(path)


async def as_stored(client: ApiClient, profile: Object) -> Object:
    """The profile after its creation, with its status."""
    body = {"apiVersion": "placewright.dev/v1alpha1", "kind": "SchedulingProfile", **profile}
    body["metadata"] = {"name": f"drawn-{profile['metadata']['name']}"}
    if body["spec"].get("mode") == "Shadow":
        body["spec"] = {**body["spec"], "shadows": "live", "pods": None}
    path = f"{PROFILES}/{body['metadata']['name']}"
    await client.post(PROFILES, body)
    if profile.get("status"):
        await client.patch(f"{path}/status", {"status": profile["status"]}, content_type=MERGE_PATCH)
    found: Object = await client.get_as(path, dict[str, Any])
    return found


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
            await client.patch(f"/api/v1/namespaces/{name}", {"metadata": {"labels": None}}, content_type=MERGE_PATCH)
            await client.patch(f"/api/v1/namespaces/{name}", namespace, content_type=MERGE_PATCH)
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
