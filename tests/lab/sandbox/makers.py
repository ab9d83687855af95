"""Small makers for the sandbox's tests: objects, and a server core without HTTP."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from inputs import workloads
from kubesandbox.definitions.definitions import Definitions
from kubesandbox.kinds.admission import Admission
from kubesandbox.resources import ResourceRegistry, ResourceType
from kubesandbox.storage.metadata import Identity
from kubesandbox.storage.reads import Reads
from kubesandbox.storage.store import Store, Watches
from kubesandbox.storage.writes import Writes
from placewright.testing import VirtualTime

Object = dict[str, Any]
START = 1_700_000_000.0


@dataclass
class Core:
    """Store, rules and reading of one server, with the namespace `default`."""

    history: int = 1000
    clock: VirtualTime = field(default_factory=lambda: VirtualTime(START))

    def __post_init__(self) -> None:
        self.store = Store(self.history)
        self.registry = ResourceRegistry()
        self.definitions = Definitions(self.store, self.registry)
        identity = Identity(Random(1), self.clock)
        self.writes = Writes(self.store, self.registry, identity, Admission(self.store, self.definitions))
        self.watches = Watches(self.store)
        self.reads = Reads(self.store, self.watches)
        self.create("namespaces", {"metadata": {"name": "default"}})

    def type(self, plural: str) -> ResourceType:
        """Return a built-in or custom type by its plural."""
        return next(each for each in self.registry if each.plural == plural)

    def create(self, plural: str, content: Object, namespace: str = "default") -> Object:
        """Create an object. Return its stored form."""
        resource = self.type(plural)
        return self.writes.create(resource, namespace if resource.namespaced else "", content).object

    def get(self, plural: str, name: str, namespace: str = "default") -> Object | None:
        """Return the stored object, or None."""
        resource = self.type(plural)
        found = self.store.get(resource.key, namespace if resource.namespaced else "", name)
        return found.object if found else None


def config_map(name: str, **data: str) -> Object:
    """A ConfigMap."""
    return workloads.thing("v1", "ConfigMap", name, data=data)


def a_pod(name: str, *, node: str = "", labels: dict[str, str] | None = None, gates: tuple[str, ...] = ()) -> Object:
    """A pod with one container."""
    spec: Object = {"containers": [{"name": "main", "image": "example.test/main"}]}
    if node:
        spec["nodeName"] = node
    if gates:
        spec["schedulingGates"] = [{"name": gate} for gate in gates]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def binding(name: str, node: str = "node-a", **metadata: Any) -> Object:
    """A Binding of the pod `name`."""
    return {"metadata": {"name": name, **metadata}, "target": {"kind": "Node", "name": node}}


def definition() -> Object:
    """Make the definition of widgets: `spec.size` (1 or more, 3 by default) and `spec.colour`, which is selectable."""
    size = {"type": "integer", "minimum": 1, "default": 3}
    spec = {"type": "object", "properties": {"size": size, "colour": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": {"type": "object", "properties": {"ok": {"type": "boolean"}}}}}
    made = workloads.definition("example.test", "Widget", "widgets", schema, selectableFields=[{"jsonPath": ".spec.colour"}])
    made["spec"]["names"]["shortNames"] = ["wd"]
    return made


def widget(name: str, **spec: object) -> Object:
    """A widget."""
    return workloads.thing("example.test/v1", "Widget", name, spec=spec)
