"""A cluster with Placewright installed as it is shipped; what the operator gets is its ServiceAccount's token and nothing else."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from placewright.controlplane.server import ControlPlane
from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError
from placewright.kube.login import load_config

Object = dict[str, Any]

BASE: Final = Path(__file__).parents[2] / "manifests" / "base"
#: As a person would apply them: the definitions first.
FOLDERS: Final = (Path(__file__).parents[2] / "crds", BASE)
NAMESPACE: Final = "placewright-system"
USER: Final = f"system:serviceaccount:{NAMESPACE}:placewright"
PEERING: Final = "/apis/kopf.dev/v1/clusterkopfpeerings"
PROFILES: Final = "/apis/placewright.dev/v1alpha1/schedulingprofiles"
_TOKEN_SECONDS: Final = 3600
_ESTABLISHED_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.05
_APPLY: Final = "application/apply-patch+yaml"
_DEFINITION: Final = "CustomResourceDefinition"
_COLLECTIONS: Final = {
    "Namespace": "/api/v1/namespaces",
    _DEFINITION: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/roles",
    "RoleBinding": f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings",
    "ClusterKopfPeering": PEERING,
    "SchedulingProfile": PROFILES,
    "Service": f"/api/v1/namespaces/{NAMESPACE}/services",
    "Deployment": f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments",
}


@dataclass(frozen=True)
class Installation:
    """Where Placewright is installed.

    Attributes:
        kubeconfig: of somebody who may do everything.
        control_plane: ours, or None on a cluster that KUBECONFIG_E2E names: nothing can be killed there, and no audit log is read.
        operator_kubeconfig: of the operator's ServiceAccount.
        folder: for logs.
    """

    kubeconfig: Path
    control_plane: ControlPlane | None
    operator_kubeconfig: Path
    folder: Path


def install(kubeconfig: Path, control_plane: ControlPlane | None, folder: Path) -> Installation:
    """Apply what is shipped, and ask for the token. Not to be called from inside an event loop."""
    asyncio.run(_apply_all(kubeconfig, has_controllers=control_plane is None))
    token = asyncio.run(_token(kubeconfig))
    path = folder / "operator.kubeconfig"
    if control_plane is not None:
        control_plane.kubeconfig_of(token, path)
    else:
        path.write_text(_with_token(kubeconfig, token))
        path.chmod(0o600)
    return Installation(kubeconfig, control_plane, path, folder)


def shipped() -> Iterator[Object]:
    """Every manifest that is applied, in that order."""
    for folder in FOLDERS:
        yield from _named(folder)


def _named(folder: Path) -> Iterator[Object]:
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        path = (folder / name).resolve()
        if path.is_dir():
            yield from _named(path)
        else:
            yield from (each for each in yaml.safe_load_all(path.read_text()) if each)


def the_shipped(kind: str) -> Object:
    """The one manifest of this kind."""
    (found,) = (each for each in shipped() if each["kind"] == kind)
    return found


async def _apply_all(kubeconfig: Path, *, has_controllers: bool) -> None:
    async with ApiClient(load_config(str(kubeconfig))) as client:
        for manifest in shipped():
            if has_controllers and manifest["kind"] == "Deployment":
                manifest["spec"]["replicas"] = 0  # the operator under test is a process of ours
            await apply(client, manifest)


async def apply(client: ApiClient, manifest: Object) -> None:
    """Server-side apply; waits for the definition of a custom resource to be in effect.

    Definitions are created or replaced: the apply of servers before 1.23 refuses rules in CEL, which they drop from what is created.
    """
    if manifest["kind"] == _DEFINITION:
        await _put(client, manifest)
        return
    path = f"{_COLLECTIONS[manifest['kind']]}/{manifest['metadata']['name']}"
    body = copy.deepcopy(manifest)
    async with asyncio.timeout(_ESTABLISHED_SECONDS):
        while True:
            try:
                await client.patch(path, body, {"fieldManager": "e2e", "force": "true"}, _APPLY)
            except ApiError as error:
                if error.status != NOT_FOUND:
                    raise
                await asyncio.sleep(_LOOK_SECONDS)
            else:
                return


async def _put(client: ApiClient, manifest: Object) -> None:
    collection = _COLLECTIONS[manifest["kind"]]
    try:
        await client.post(collection, manifest)
    except ApiError as error:
        if error.status != CONFLICT:
            raise
        path = f"{collection}/{manifest['metadata']['name']}"
        found = json.loads(await client.get(path))
        metadata = {**manifest["metadata"], "resourceVersion": found["metadata"]["resourceVersion"]}
        await client.put(path, {**manifest, "metadata": metadata})


async def _token(kubeconfig: Path) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": _TOKEN_SECONDS}}
    async with ApiClient(load_config(str(kubeconfig))) as client:
        answer = await client.post(f"{_COLLECTIONS['ServiceAccount']}/placewright/token", body)
    return str(json.loads(answer)["status"]["token"])


def _with_token(kubeconfig: Path, token: str) -> str:
    """The current context of a kubeconfig, with this token in place of its user."""
    content = yaml.safe_load(kubeconfig.read_text())
    context = next(each["context"] for each in content["contexts"] if each["name"] == content["current-context"])
    cluster = next(each["cluster"] for each in content["clusters"] if each["name"] == context["cluster"])
    if authority := cluster.get("certificate-authority"):
        cluster["certificate-authority"] = str(kubeconfig.parent / authority)
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "operator",
            "contexts": [{"name": "operator", "context": {"cluster": "cluster", "user": "operator"}}],
            "clusters": [{"name": "cluster", "cluster": cluster}],
            "users": [{"name": "operator", "user": {"token": token}}],
        }
    )
