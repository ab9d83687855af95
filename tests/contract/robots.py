"""A ServiceAccount with the rights that a test gives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from contract.client import DEADLINE, Client, Object
from contract.cluster import Cluster
from manifest import manifest

GROUP = "rbac.authorization.k8s.io"
ROLES = f"/apis/{GROUP}/v1"
ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
MARK = {"apiGroups": ["example.test"], "resources": ["marks"], "verbs": ["get"]}
"""A right to nothing that exists: once it is there, so are those that came with it."""


async def token_of(cluster: Cluster, account: str) -> str:
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}}
    answer = await cluster.client.post(cluster.path("serviceaccounts", account, "token"), body)
    return str(answer.expect(201)["status"]["token"])


class Robot:
    """A ServiceAccount of the test's namespace, as a client."""

    def __init__(self, cluster: Cluster, client: Client) -> None:
        self.cluster = cluster
        self.client = client
        self.name = f"system:serviceaccount:{cluster.namespace}:robot"

    async def may_here(self, *rules: Object) -> None:
        """Give it a Role."""
        place = f"{ROLES}/namespaces/{self.cluster.namespace}"
        await self._give(f"{place}/roles", f"{place}/rolebindings", "Role", "robot", rules, self.cluster.namespace)

    async def may_everywhere(self, *rules: Object, subject: Object | None = None) -> None:
        """Give it a ClusterRole, by another name than its own if one is given."""
        name = self.cluster.unique("robot")
        await self._give(f"{ROLES}/clusterroles", f"{ROLES}/clusterrolebindings", "ClusterRole", name, rules, "", subject)

    async def _give(
        self, roles: str, bindings: str, kind: str, name: str, rules: Sequence[Object], namespace: str, subject: Object | None = None
    ) -> None:
        role = manifest(f"{GROUP}/v1", kind, name, rules=[*rules, MARK])
        subject = subject or {"kind": "ServiceAccount", "name": "robot", "namespace": self.cluster.namespace}
        reference = {"apiGroup": GROUP, "kind": kind, "name": name}
        binding = manifest(f"{GROUP}/v1", f"{kind}Binding", name, roleRef=reference, subjects=[subject])
        (await self.cluster.client.post(roles, role)).expect(201)
        (await self.cluster.client.post(bindings, binding)).expect(201)
        async with asyncio.timeout(DEADLINE):  # real servers hear of roles a moment later
            while not await self.may("get", "marks", group="example.test", namespace=namespace):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def may(self, verb: str, resource: str, **attributes: str) -> bool:
        """What it is told when it asks."""
        spec = {"resourceAttributes": {"verb": verb, "resource": resource, **attributes}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}
        answer = await self.client.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
        return bool(answer.expect(201)["status"]["allowed"])

    def cannot(self, verb: str, resource: str, group: str = "", *, everywhere: bool = False) -> str:
        """Return the end of a refusal."""
        where = "at the cluster scope" if everywhere else f'in the namespace "{self.cluster.namespace}"'
        return f'is forbidden: User "{self.name}" cannot {verb} resource "{resource}" in API group "{group}" {where}'


def rule(resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = (), group: str = "") -> Object:
    found: Object = {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}
    return {**found, "resourceNames": list(names)} if names else found


@asynccontextmanager
async def made_robot(cluster: Cluster) -> AsyncIterator[Robot]:
    """Yield a robot. Its rights are deleted with it."""
    await cluster.create("serviceaccounts", ACCOUNT)
    async with Client(cluster.client.server, cluster.client._context, await token_of(cluster, "robot")) as client:
        yield Robot(cluster, client)
    for kind in ("clusterroles", "clusterrolebindings"):
        await cluster.client.delete(f"{ROLES}/{kind}/{cluster.unique('robot')}")
