"""Whether a plugin wrote into what it was shown: objects are compared before and after a call.

This looks at every object at every call, so it is for tests, for `placewright evaluate` and for `run --check-plugins`, never for work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from placewright.api.objects import NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster

_ABSENT = object()


class Snapshot:
    """The pod of a call and all objects of the cluster, as they are now."""

    def __init__(self, cluster: Cluster, asked: Sequence[Any]) -> None:
        self._objects = dict(_objects(cluster, asked))
        self._before = {name: msgspec.json.encode(item) for name, item in self._objects.items()}

    def written(self) -> str:
        """The first thing that is not as it was, in words; empty where nothing was written."""
        for name, item in self._objects.items():
            after = msgspec.json.encode(item)
            if after != self._before[name]:
                path, was, now = _first_difference(msgspec.json.decode(self._before[name]), msgspec.json.decode(after), "")
                return f"it wrote into {name}: {path} was {_shown(was)} and is {_shown(now)}; allowed is only to read objects"
        return ""


def _objects(cluster: Cluster, asked: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for each in asked:
        if isinstance(each, PodInfo):
            yield f"pod {each.key}", each.pod
    for row in cluster.rows():
        node = cluster.node(row)
        yield f"node {node.metadata.name}", node
        for pod in cluster.pods_on(NodeName(node.metadata.name)):
            yield f"pod {pod.key}", pod.pod
    for item in cluster.objects.shown():
        yield f"{type(item).__name__} {item.metadata.namespace}/{item.metadata.name}".replace(" /", " "), item


def _first_difference(before: Any, after: Any, path: str) -> tuple[str, Any, Any]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            was, now = before.get(key, _ABSENT), after.get(key, _ABSENT)
            if was != now:
                return _first_difference(was, now, f"{path}.{key}" if path else key)
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for at, (was, now) in enumerate(zip(before, after, strict=True)):
            if was != now:
                return _first_difference(was, now, f"{path}[{at}]")
    return path, before, after


def _shown(value: Any) -> str:
    return "absent" if value is _ABSENT else msgspec.json.encode(value).decode()[:80]
