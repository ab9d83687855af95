"""The shipped Placewright on a cluster: the manifests of a checkout, and a token of its ServiceAccount."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Awaitable, Callable, Collection, Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError

Object = dict[str, Any]

MANIFESTS: Final = Path(__file__).resolve().parents[3] / "manifests"
BASE: Final = MANIFESTS / "base"
#: The order in which a person would apply them, definitions first.
FOLDERS: Final = (MANIFESTS.parent / "crds", BASE)
#: Another profile, for pods that name no scheduler.
FOR_ALL_PODS: Final = MANIFESTS / "overlays" / "as-default-scheduler" / "profile.yaml"
NAMESPACE: Final = "placewright-system"
USER: Final = f"system:serviceaccount:{NAMESPACE}:placewright"
PEERING: Final = "/apis/kopf.dev/v1/clusterkopfpeerings"
PROFILES: Final = "/apis/placewright.dev/v1alpha1/schedulingprofiles"
#: Longer than any run.
_TOKEN_SECONDS: Final = 6 * 3600
_SERVED_SECONDS: Final = 60.0
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


def shipped() -> Iterator[Object]:
    """Yield every manifest, in the order in which it is applied."""
    for folder in FOLDERS:
        yield from _named(folder)


def _named(folder: Path) -> Iterator[Object]:
    for name in yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]:
        path = (folder / name).resolve()
        if path.is_dir():
            yield from _named(path)
        else:
            yield from (each for each in yaml.safe_load_all(path.read_text()) if each)


async def apply_shipped(client: ApiClient, *, run_pods: bool = False) -> None:
    """Apply everything. If the operator is a process of the caller's, the Deployment gets no replicas."""
    for manifest in shipped():
        if manifest["kind"] == "Deployment" and not run_pods:
            manifest["spec"]["replicas"] = 0
        await apply(client, manifest)


async def apply(client: ApiClient, manifest: Object) -> None:
    """Apply a manifest on the server, and wait for the definition of a custom resource to take effect.

    Definitions are created or replaced. The apply of servers before 1.23 refuses rules in CEL, but a creation only drops them.
    """
    if manifest["kind"] == _DEFINITION:
        await _put(client, manifest)
        return
    path = f"{_COLLECTIONS[manifest['kind']]}/{manifest['metadata']['name']}"
    body = copy.deepcopy(manifest)
    await until_served(lambda: client.patch(path, body, {"fieldManager": "e2e", "force": "true"}, _APPLY))


async def until_served(
    ask: Callable[[], Awaitable[bytes]], unserved: Collection[int] = (NOT_FOUND,), seconds: float = _SERVED_SECONDS
) -> None:
    """Repeat a request: a server serves a definition, and its own documents, a moment after their creation.

    Args:
        ask: makes the request.
        unserved: statuses for which it is repeated.
        seconds: time after which `TimeoutError` is raised.
    """
    async with asyncio.timeout(seconds):
        while True:
            try:
                await ask()
            except ApiError as error:
                if error.status not in unserved:
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


async def ask_for_token(client: ApiClient) -> str:
    """Return a token of the shipped ServiceAccount."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": _TOKEN_SECONDS}}
    answer = await client.post(f"{_COLLECTIONS['ServiceAccount']}/placewright/token", body)
    return str(json.loads(answer)["status"]["token"])
