"""Custom types of a test's own: boxes, in a group that goes with its definition."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from contract.client import Answer, Object
from contract.cluster import Cluster
from manifest import manifest

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
ANYTHING: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Ready", "type": "boolean", "jsonPath": ".status.ready"},
    {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1},
]


@dataclass
class Boxes:
    """A custom type of the test's own: namespaced, with a status subresource."""

    cluster: Cluster
    group: str
    definition: Object

    @property
    def path(self) -> str:
        return self.cluster.path("boxes", group=self.group)

    def box(self, name: str = "it", **spec: object) -> Object:
        return manifest(f"{self.group}/v1", "Box", name, spec={"size": 3, **spec})

    async def create(self, **spec: object) -> Answer:
        return await self.cluster.client.post(self.path, self.box(**spec))


@asynccontextmanager
async def defined(cluster: Cluster, schema: Object, *, has_status: bool = True) -> AsyncIterator[Boxes]:
    """A definition with this schema, ready for use, for as long as the context is open."""
    group = f"{cluster.namespace}.example.com"
    names = {"plural": "boxes", "singular": "box", "kind": "Box", "shortNames": ["bx"]}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}} if has_status else {},
        "additionalPrinterColumns": COLUMNS,
    }
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    definition = manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"boxes.{group}", spec=spec)
    (await cluster.client.post(DEFINITIONS, definition)).expect(201)
    own = f"{DEFINITIONS}/boxes.{group}"
    established = await cluster.eventually(_established, own)
    await cluster.eventually(lambda found: "items" in found, cluster.path("boxes", group=group))
    try:
        yield Boxes(cluster, group, established)
    finally:
        await cluster.client.delete(own)


def _established(definition: Object) -> bool:
    # Before its first condition 1.20 shows null.
    conditions = {each["type"]: each["status"] for each in definition.get("status", {}).get("conditions") or []}
    return conditions.get("Established") == "True" and conditions.get("NamesAccepted") == "True"


def causes(answer: Answer) -> dict[str, str]:
    """Field to message of an Invalid answer."""
    return {cause["field"]: cause["message"] for cause in answer.expect(422)["details"]["causes"]}
