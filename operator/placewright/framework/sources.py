"""Objects of a plugin's own: what it declares so that the scheduler reads them from the API server for it.

A plugin does no network I/O. It names a collection (a custom resource, or one of an aggregated API such as metrics.k8s.io) and a struct,
and finds the objects in `cluster.objects.of(kind)`, live as in `explain`, `simulate` and `compare`. The scheduler lists and watches the
collection, or lists it again and again where the server has no watch for it.

Example:
    class NodeMetrics(KubeObject, frozen=True):
        metadata: ObjectMeta = ObjectMeta()
        usage: dict[str, str] | None = None

    class LoadAware(ScorePlugin):
        sources = (ObjectSource(NodeMetrics, "metrics.k8s.io", "nodes", ("v1beta1",), poll_seconds=30.0, stale_after_seconds=120.0),)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from placewright.api.objects import ObjectMeta
from placewright.framework.events import EventResource

K = TypeVar("K", bound=msgspec.Struct)

#: An API server is not listed more often than this.
SHORTEST_POLL_SECONDS: Final = 1.0
#: What the objects of one source may take in memory, decoded, unless it says otherwise.
DEFAULT_MOST_BYTES: Final = 64 * 2**20


@dataclass(frozen=True)  # without slots, so that `ObjectSource[NodeMetrics](…)` can be called: see `ClusterEventWithHint`
class ObjectSource(Generic[K]):
    """A collection of the API server that a plugin reads; declared in `Plugin.sources`.

    Attributes:
        kind: the struct that each object is decoded into, with a field `metadata: ObjectMeta`. Its name is the Kubernetes kind, and the
            name under which a hint registers (`interest("NodeMetrics", Action.ALL, …)`). What it does not declare is not kept.
        group: the API group, such as `metrics.k8s.io`.
        resource: the plural that stands in the path, such as `nodes`.
        versions: API versions that the struct can read, best first.
        namespaced: whether objects live in namespaces; their keys are then `namespace/name`.
        poll_seconds: how long after one list the next begins; None: list once and watch.
        stale_after_seconds: once the API server has refused to be read for so long, all objects are taken away, and the plugin sees none;
            None: they stay as they were last read.
        most_bytes: what the decoded objects may take together. Objects beyond that are left out, with one line in the log.
        plain_fields: fields that name no person and no thing, such as amounts and times: an anonymised snapshot keeps their content.

    Raises:
        ValueError: the struct has no metadata, the collection has no name, or a number is out of range.
    """

    kind: type[K]
    group: str
    resource: str
    versions: tuple[str, ...]
    namespaced: bool = False
    poll_seconds: float | None = None
    stale_after_seconds: float | None = None
    most_bytes: int = DEFAULT_MOST_BYTES
    plain_fields: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse what could not be read."""
        told = self._problem()
        if told:
            raise ValueError(f"source of {self.kind.__name__}: {told}")

    def _problem(self) -> str:
        fields = {field.name: field.type for field in msgspec.structs.fields(self.kind)}
        metadata = fields.get("metadata")
        if getattr(metadata, "__origin__", metadata) is not ObjectMeta:  # its writer may be declared beside it
            return "the struct needs a field metadata: ObjectMeta"
        if self.kind.__name__ in [each.value for each in EventResource]:
            return "a kind of this name is the scheduler's own, and is in cluster.objects already"
        if not (self.group and self.resource and self.versions):
            return "group, resource and versions are needed"
        if self.poll_seconds is not None and self.poll_seconds < SHORTEST_POLL_SECONDS:
            return f"poll_seconds: found {self.poll_seconds:g}; allowed {SHORTEST_POLL_SECONDS:g} or more"
        if self.stale_after_seconds is not None and self.stale_after_seconds <= (self.poll_seconds or 0.0):
            return f"stale_after_seconds: found {self.stale_after_seconds:g}; allowed more than poll_seconds"
        return ""

    @property
    def name(self) -> str:
        """The kind's name: in manifests, in events, in logs."""
        return self.kind.__name__

    def reads(self, api_version: object, kind: object) -> bool:
        """Return whether an object is one of the source's, in any version of its group.

        Args:
            api_version: of the object, as a manifest has it.
            kind: likewise.
        """
        return kind == self.name and str(api_version).rpartition("/")[0] == self.group


#: Of any kind.
AnySource = ObjectSource[Any]
