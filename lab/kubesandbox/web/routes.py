"""URL paths: type, namespace, name, subresource."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from kubesandbox.resources import ResourceRegistry, ResourceType


@dataclass(frozen=True, slots=True)
class Route:
    """A parsed path. `namespace` is None for a collection over all namespaces and for cluster-scoped types."""

    resource: ResourceType
    namespace: str | None
    name: str = ""
    subresource: str = ""

    @property
    def scope(self) -> str:
        """Namespace of the object in the store; empty for cluster-scoped types."""
        return self.namespace or ""


def route(registry: ResourceRegistry, path: str) -> Route | None:
    """Return the meaning of `path` (without query), or None for an unknown path."""
    parts = path.strip("/").split("/")
    if "%" in path:
        parts = [unquote(part) for part in parts]
    if parts[0] == "api" and len(parts) > 2:
        return _in_version(registry, "", parts[1], parts[2:])
    if parts[0] == "apis" and len(parts) > 3:
        return _in_version(registry, parts[1], parts[2], parts[3:])
    return None


def _in_version(registry: ResourceRegistry, group: str, version: str, rest: list[str]) -> Route | None:
    namespace: str | None = None
    if len(rest) > 2 and rest[0] == "namespaces" and registry.find(group, version, rest[2]) is not None:
        namespace, rest = rest[1], rest[2:]
    resource = registry.find(group, version, rest[0])
    if resource is None or len(rest) > 3 or "" in rest:
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and subresource not in (*resource.subresources, "finalize"):
        return None
    if resource.namespaced and name and namespace is None:
        return None
    if not resource.namespaced and namespace is not None:
        return None
    return Route(resource, namespace, name, subresource)
