"""`Snapshot` finds out whether a plugin wrote into objects that it was shown.

It looks at every object. So only tests, `placewright evaluate` and `run --check-plugins` make one for each call. A simulation has one for
all its calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from placewright.api.objects import KubeObject, Node, NodeName
from placewright.api.pods import PodInfo
from placewright.cluster.cluster import Cluster

_ABSENT: Final = object()


class Snapshot:
    """The pod of a call and all objects of the cluster, as they are now; its columns, too, if that is asked for.

    Args:
        cluster: the cluster with the objects and columns that the plugin is shown.
        asked: arguments of the call; pods and objects among them are compared, too.
        columns: compare columns, too. Not for a call that is awaited: others change columns before it ends.
    """

    def __init__(self, cluster: Cluster, asked: Sequence[Any], *, columns: bool = False) -> None:
        self._cluster = cluster
        self._objects = dict(_objects(cluster, asked))
        # As text, because a copy of an object could share with it the part that is written.
        self._before = {name: msgspec.json.encode(item) for name, item in self._objects.items()}
        self._columns = {name: column.copy() for name, column in _columns(cluster)} if columns else {}

    def written(self) -> str:
        """Compare objects and columns with the snapshot.

        Returns:
            The first difference, in words; empty if nothing was written.
        """
        return self._written_into_object() or self._written_into_column()

    def _written_into_column(self) -> str:
        for name, column in _columns(self._cluster) if self._columns else ():
            changed = np.flatnonzero(column != self._columns[name])
            if len(changed):
                row = int(changed[0])
                was, now = self._columns[name][row].item(), column[row].item()
                where = f"row {row} (node {self._cluster.names[row]})"
                return f"it wrote into the column {name}: {where} was {was} and is {now}; allowed is only to read columns"
        return ""

    def _written_into_object(self) -> str:
        for name, item in self._objects.items():
            after = msgspec.json.encode(item)
            if after != self._before[name]:
                path, was, now = _first_difference(msgspec.json.decode(self._before[name]), msgspec.json.decode(after), "")
                return f"it wrote into {name}: {path} was {_shown(was)} and is {_shown(now)}; allowed is only to read objects"
        return ""


def _objects(cluster: Cluster, asked: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    shown = [each for each in asked if isinstance(each, PodInfo | KubeObject)]
    for row in cluster.rows():
        node = cluster.node(row)
        shown += (node, *cluster.pods_on(NodeName(node.metadata.name)))
    for item in (*shown, *cluster.objects.shown()):
        yield named(item), item.pod if isinstance(item, PodInfo) else item


def named(item: Any) -> str:
    """Return the kind and the name of an object, with its namespace."""
    if isinstance(item, PodInfo):
        return f"pod {item.key}"
    kind = "node" if isinstance(item, Node) else type(item).__name__
    return f"{kind} {item.metadata.namespace}/{item.metadata.name}".replace(" /", " ")


def _columns(cluster: Cluster) -> Iterator[tuple[str, NDArray[Any]]]:
    """Return the columns that plugins read in place, by their name in the contract; shape (size,) or longer."""
    size = cluster.size
    for name in ("present", "pod_count", "pod_limit", "scoring_cpu", "scoring_memory"):
        yield f"cluster.{name}", getattr(cluster, name)
    yield "cluster.unschedulable", cluster.unschedulable[:size]
    for resource in cluster.resources.names():
        column = cluster.resources.column(resource)
        for part in ("allocatable", "requested", "free"):
            yield f"cluster.resources.column({resource!r}).{part}", getattr(column, part)[:size]


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
