"""The server's documents about itself: groups, versions, types, its own version and its OpenAPI documents.

The `Accept` header of a client selects the older or the aggregated documents. There is an older document for each group and version. The
aggregated ones tell everything in two requests, but kubectl up to 1.26 does not know them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kubesandbox.resources import Object, ResourceRegistry, ResourceType
from kubesandbox.web.endpoint import Reply
from kubesandbox.web.openapi import SchemaSource, document_v2, document_v3, index_v3
from kubesandbox.web.openapi_proto import ANSWERED_AS, ASKED_AS, encode_document
from kubesandbox.web.queries import JSON

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_AGGREGATED_KIND: Final = "APIGroupDiscoveryList"


_GIT_VERSION: Final = "v1.36.0-sandbox"
#: The Kubernetes version that the server claims to be.
_VERSION: Final[Object] = {
    "major": "1",
    "minor": "36",
    "gitVersion": _GIT_VERSION,
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "none",
    "compiler": "none",
    "platform": "sandbox",
}


#: Verbs of each subresource, and its group, version and kind if they are not those of the type.
_SUBRESOURCES: Final[Mapping[str, tuple[tuple[str, ...], Object]]] = MappingProxyType(
    {
        "status": (("get", "patch", "update"), {}),
        "binding": (("create",), {"kind": "Binding"}),
        "eviction": (("create",), {"group": "policy", "version": "v1", "kind": "Eviction"}),
        "log": (("get",), {}),
        "token": (("create",), {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}),
    }
)


class Discovery:
    """The documents about one registry. It keeps encoded documents until the registry changes."""

    def __init__(self, registry: ResourceRegistry, schemas: SchemaSource) -> None:
        self._registry = registry
        self._schemas = schemas
        self._answers: dict[tuple[str, str], Reply | None] = {}
        self._answers_of = -1

    def answer(self, path: str, accept: str) -> Reply | None:
        """Return the encoded document at `path` for a client that sends this `Accept` header, or None."""
        if self._answers_of != self._registry.generation:
            self._answers, self._answers_of = {}, self._registry.generation
        key = (path.rstrip("/"), accept)
        if key not in self._answers:
            if len(self._answers) > 500:  # every client may send another header
                self._answers.clear()
            self._answers[key] = self._encode(*key)
        return self._answers[key]

    def forget(self) -> None:
        """Drop the cached documents after the change of a schema, without a new or removed type."""
        self._answers_of = -1

    def _encode(self, path: str, accept: str) -> Reply | None:
        document = self.document(path, accept)
        if document is None:
            return None
        if path == "/openapi/v2" and any(form in accept for form in ASKED_AS):
            return Reply(encode_document(document), content_type=ANSWERED_AS)
        aggregated = document.get("kind") == _AGGREGATED_KIND
        return Reply(json.dumps(document).encode(), content_type=AGGREGATED if aggregated else JSON)

    def document(self, path: str, accept: str = "") -> Object | None:
        """Return the document at `path` (`/api`, `/apis/apps/v1`, `/openapi/v3/api/v1`, `/version`), or None."""
        found: Object | None = None
        match path.strip("/").split("/"):
            case ["version"]:
                found = _VERSION
            case ["api" | "apis" as root] if _wants_aggregated(accept):
                found = self._aggregated(core=root == "api")
            case ["api"]:
                found = {"kind": "APIVersions", "versions": self._registry.groups().get("", []), "serverAddressByClientCIDRs": []}
            case ["apis"]:
                groups = [self._group(group) for group in self._registry.groups() if group]
                found = {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
            case ["apis", group] if group and group in self._registry.groups():
                found = {"kind": "APIGroup", "apiVersion": "v1", **self._group(group)}
            case ["api", version]:
                found = self._types("", version)
            case ["apis", group, version]:
                found = self._types(group, version)
            case ["openapi", *rest]:
                found = self._openapi(rest)
        return found

    def _group(self, group: str) -> Object:
        versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in self._registry.groups()[group]]
        return {"name": group, "versions": versions, "preferredVersion": versions[0]}

    def _types(self, group: str, version: str) -> Object | None:
        types = self._registry.in_group_version(group, version)
        if not types:
            return None
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": types[0].api_version,
            "resources": [entry for resource in types for entry in _listed(resource)],
        }

    def _aggregated(self, *, core: bool) -> Object:
        items = [
            {
                "metadata": {"name": group, "creationTimestamp": None},
                "versions": [
                    {
                        "version": version,
                        "freshness": "Current",
                        "resources": [_discovered(each) for each in self._registry.in_group_version(group, version)],
                    }
                    for version in versions
                ],
            }
            for group, versions in self._registry.groups().items()
            if (group == "") == core
        ]
        return {"kind": _AGGREGATED_KIND, "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}

    def _openapi(self, rest: list[str]) -> Object | None:
        match rest:
            case ["v2"]:
                return document_v2(self._registry, self._schemas, _GIT_VERSION)
            case ["v3"]:
                return index_v3(self._registry)
            case ["v3", "api", version]:
                types = self._registry.in_group_version("", version)
            case ["v3", "apis", group, version]:
                types = self._registry.in_group_version(group, version)
            case _:
                return None
        return document_v3(types, self._schemas, _GIT_VERSION) if types else None


def _wants_aggregated(accept: str) -> bool:
    """Return whether the header offers the aggregated form in the version that is served here."""
    ranges = (set(offer.replace(" ", "").split(";")) for offer in accept.split(","))
    return any({"g=apidiscovery.k8s.io", "v=v2", f"as={_AGGREGATED_KIND}"} <= offer for offer in ranges)


def _listed(resource: ResourceType) -> list[Object]:
    """Return a type and its subresources as entries of an APIResourceList."""
    names = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    entry = {"name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced, "kind": resource.kind}
    found: list[Object] = [{**entry, "verbs": list(resource.verbs), **{key: value for key, value in names.items() if value}}]
    for name in resource.subresources:
        verbs, kind = _SUBRESOURCES[name]
        found.append({**entry, "name": f"{resource.plural}/{name}", "singularName": "", "verbs": list(verbs), **kind})
    return found


def _discovered(resource: ResourceType) -> Object:
    """Return a type and its subresources as an entry of an aggregated document."""
    home: Object = {"group": resource.group, "version": resource.version}
    found: Object = {"scope": "Namespaced" if resource.namespaced else "Cluster", "singularResource": resource.singular}
    for entry in _listed(resource):
        name, _, subresource = entry["name"].partition("/")
        kind = {key: entry.get(key, home.get(key)) for key in ("group", "version", "kind")}
        shown: Object = {"responseKind": kind, **{key: entry[key] for key in ("verbs", "shortNames", "categories") if key in entry}}
        if subresource:
            found.setdefault("subresources", []).append({"subresource": subresource, **shown})
        else:
            found |= {"resource": name, **shown}
    return found
