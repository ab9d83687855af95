"""Makers for the tests of this room: containers, pods and API objects in a few words, and JSON as the official client would write it."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Self

import kubernetes.client
import msgspec

from placewright.api.decode import convert
from placewright.api.objects import KubeObject, Pod, PodSpec
from placewright.api.pods import PodInfo

Body = dict[str, Any]
MIB = 1024 * 1024


# --- pods ------------------------------------------------------------------------------------------------------------------------


class PodMaker:
    """Builds a pod step by step; ask for its `spec`, its whole `body`, the decoded pod, or its `info`."""

    def __init__(self, name: str = "p", namespace: str = "n") -> None:
        self.body: Body = {"metadata": {"name": name, "namespace": namespace, "uid": "u"}, "spec": {}, "status": {}}

    def meta(self, **fields: Any) -> Self:
        self.body["metadata"] |= fields
        return self

    def says(self, **fields: Any) -> Self:
        self.body["spec"] |= fields
        return self

    def status(self, **fields: Any) -> Self:
        self.body["status"] |= fields
        return self

    def container(self, name: str = "", /, **requests: Any) -> Self:
        return self._one("containers", name, requests, None)

    def init(self, name: str = "", /, **requests: Any) -> Self:
        return self._one("initContainers", name, requests, None)

    def sidecar(self, name: str = "", /, **requests: Any) -> Self:
        return self._one("initContainers", name, requests, "Always")

    def as_a_whole(self, **requests: Any) -> Self:
        return self.says(resources={"requests": requests})

    def volume(self, **source: Any) -> Self:
        volumes = self.body["spec"].setdefault("volumes", [])
        volumes.append({"name": f"v{len(volumes)}", **source})
        return self

    def _one(self, field: str, name: str, requests: Body, restart: str | None) -> Self:
        containers = self.body["spec"].setdefault(field, [])
        restarts = {"restartPolicy": restart} if restart else {}
        containers.append({"name": name or f"{field}-{len(containers)}", "resources": {"requests": requests}, **restarts})
        return self

    @property
    def pod(self) -> Pod:
        return convert(self.body, Pod)

    @property
    def spec(self) -> PodSpec:
        return self.pod.spec

    @property
    def info(self) -> PodInfo:
        return PodInfo(self.pod)


def pod(name: str = "p", namespace: str = "n") -> PodMaker:
    return PodMaker(name, namespace)


# --- what the official client knows ------------------------------------------------------------------------------------------------

_SCALARS: dict[str, Any] = {"str": "x", "int": 7, "float": 1.5, "bool": True, "datetime": "2026-01-01T00:00:00Z", "object": {"k": "v"}}


@functools.cache
def fullest(model: str) -> Any:
    """An object of a model of the official client in which every field is set, as its JSON."""
    if model in _SCALARS:
        return _SCALARS[model]
    if model.startswith("List["):
        return [fullest(model.removeprefix("List[").removesuffix("]"))]
    if model.startswith("Dict["):
        return {"k": fullest(model.removeprefix("Dict[str, ").removesuffix("]"))}
    kind = getattr(kubernetes.client, model)
    return {written: fullest(kind.openapi_types[name]) for name, written in kind.attribute_map.items()}


def left_at_default(value: Any, path: str = "") -> Iterator[str]:
    """Paths of the declared fields that have their default value, in a struct and in all structs that it contains."""
    if isinstance(value, KubeObject):
        for field in msgspec.structs.fields(value):
            found, where = getattr(value, field.name), f"{path}.{field.encode_name}"
            default = field.default if field.default is not msgspec.NODEFAULT else None
            if found == default:
                yield where
            else:
                yield from left_at_default(found, where)
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from left_at_default(each, f"{path}[]")
    elif isinstance(value, dict):
        for each in value.values():
            yield from left_at_default(each, f"{path}{{}}")
