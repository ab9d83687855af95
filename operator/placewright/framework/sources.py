"""Objects of a plugin's own: what it declares so that the scheduler reads them from the API server for it.

A plugin does no network I/O. It names a collection, such as a custom resource or a resource of metrics.k8s.io, and a struct. It finds the
objects in `cluster.objects.of(kind)`, in the live scheduler as in `explain`, `simulate` and `compare`. The scheduler lists and watches the
collection. If the server has no watch for it, the scheduler lists it again and again.

Example:
    class NodeMetrics(KubeObject, frozen=True):
        metadata: ObjectMeta = ObjectMeta()
        usage: dict[str, str] | None = None

    class LoadAware(ScorePlugin):
        sources = (ObjectSource(NodeMetrics, "metrics.k8s.io", "nodes", ("v1beta1",), poll_seconds=30.0, stale_after_seconds=120.0),)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from placewright.api.objects import LabelSelector, ObjectMeta
from placewright.api.selectors import EVERYTHING, Selector, SelectorError, compile_label_selector
from placewright.cluster.cluster import Cluster
from placewright.cluster.podfollowers import PodFollower
from placewright.framework.events import EventResource

K = TypeVar("K", bound=msgspec.Struct)

#: An API server is not listed more often than this.
SHORTEST_POLL_SECONDS: Final = 1.0
#: Bytes that the decoded objects of one source may take, unless it says otherwise.
DEFAULT_MOST_BYTES: Final = 64 * 2**20
#: Attribute of `Cluster` that a plugin reads instead, by resource of the core group. The scheduler watches these already.
_WATCHED_ALREADY: Final[Mapping[str, str]] = {
    "nodes": "the columns of cluster",
    "pods": "cluster.pods_on, or placewright.cluster.podselections",
    "namespaces": "cluster.objects.namespaces",
    "services": "cluster.objects.services",
    "replicationcontrollers": "cluster.objects.replication_controllers",
    "persistentvolumes": "cluster.objects.storage",
    "persistentvolumeclaims": "cluster.objects.storage",
}
_FIELD_TERM: Final = re.compile(r"([A-Za-z][A-Za-z0-9._-]*)(==|=|!=)([^,=!\\\s]*)")


class ObjectFollower(PodFollower, Generic[K]):
    """Told of objects that come into a source's selection, and of pods on nodes.

    It is told while a profile or a shadow runs the plugin.
    """

    def object_arrives(self, item: K, now: float) -> None:
        """Take in an object that appeared in the selection. Objects that change there or leave it are not told.

        Args:
            item: only to be read.
            now: seconds since 1970.
        """


@dataclass(frozen=True)  # without slots, so that `ObjectSource[NodeMetrics](…)` can be called: see `ClusterEventWithHint`
class ObjectSource(Generic[K]):
    """A collection of the API server that a plugin reads; declared in `Plugin.sources`.

    Attributes:
        kind: the struct that each object is decoded into, with a field `metadata: ObjectMeta`. Its name is the Kubernetes kind, and the
            name under which a hint registers (`event_with_hint("NodeMetrics", Action.ALL, …)`). What it does not declare is not kept.
        group: the API group, such as `metrics.k8s.io`; empty for the core group (ConfigMap, ResourceQuota, LimitRange).
        resource: the plural that stands in the path, such as `nodes`.
        versions: API versions that the struct can read, best first.
        namespaced: whether objects live in namespaces; their keys are then `namespace/name`.
        poll_seconds: seconds from one list to the next; None: list once and watch.
        stale_after_seconds: seconds that the API server may refuse to be read. Then all objects are taken away, and the plugin sees none.
            None: they stay as they were last read.
        most_bytes: memory that the decoded objects may take together. Objects beyond that are left out, with one line in the log.
        label_selector: selector of the objects that are read; None: all. It is validated here, and the API server applies it.
        field_selector: such as `metadata.name=limits`, with `=`, `==` or `!=`, separated by commas. The API server decides which fields of
            a kind it selects by, and answers with an error to others; files and snapshots are selected by any field.
        follower: None: the objects are kept in `cluster.objects`. Otherwise none is kept: while a profile runs the plugin, what this
            returns for the live cluster is told of each object that appears. Objects that were there before are not told. The scheduler
            watches for them in the first of `versions`; files and snapshots have no such news.
        plain_fields: fields that name no person and no thing, such as amounts and times: an anonymised snapshot keeps their content.

    Raises:
        ValueError: the struct has no metadata, or the collection has no name or is the scheduler's own. Or a selector cannot be read, or a
            number is out of range.
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
    label_selector: LabelSelector | None = None
    field_selector: str = ""
    follower: Callable[[Cluster], ObjectFollower[K]] | None = None

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
        if not (self.resource and self.versions):
            return "resource and versions are needed"
        if not self.group and self.resource in _WATCHED_ALREADY and self.follower is None:
            return f"the scheduler watches {self.resource} already; read {_WATCHED_ALREADY[self.resource]}"
        return self._selector_problem() or self._number_problem()

    def _selector_problem(self) -> str:
        try:
            self.selector  # noqa: B018 - compiled to be checked
        except SelectorError as problem:
            return f"label_selector: {problem}"
        for term in self.field_selector.split(",") if self.field_selector else ():
            if not _FIELD_TERM.fullmatch(term):
                return f"field_selector: found {term!r}; allowed terms field=value or field!=value, separated by commas"
        return ""

    def _number_problem(self) -> str:
        if self.poll_seconds is not None and self.follower is not None:
            return "poll_seconds: a follower is told by a watch; leave one of both out"
        if self.poll_seconds is not None and self.poll_seconds < SHORTEST_POLL_SECONDS:
            return f"poll_seconds: found {self.poll_seconds:g}; allowed {SHORTEST_POLL_SECONDS:g} or more"
        if self.stale_after_seconds is not None and self.stale_after_seconds <= (self.poll_seconds or 0.0):
            return f"stale_after_seconds: found {self.stale_after_seconds:g}; allowed more than poll_seconds"
        return ""

    @property
    def name(self) -> str:
        """The kind's name: in manifests, in events, in logs."""
        return self.kind.__name__

    @property
    def path(self) -> str:
        """The path of the collection, in the first of `versions`."""
        return f"/{f'apis/{self.group}' if self.group else 'api'}/{self.versions[0]}/{self.resource}"

    @property
    def selector(self) -> Selector:
        """The compiled label selector; `EVERYTHING` without one."""
        return EVERYTHING if self.label_selector is None else compile_label_selector(self.label_selector)

    def selects(self, manifest: Mapping[str, Any]) -> bool:
        """Return whether the selectors match an object from a file, as the API server would decide.

        Args:
            manifest: an object that the source `reads`.
        """
        found = _value_at(manifest, "metadata.labels")
        # Only texts: the object is not decoded yet, and a malformed one is refused when it is.
        labels = {key: value for key, value in found.items() if isinstance(value, str)} if isinstance(found, Mapping) else {}
        terms = (match.groups() for match in _FIELD_TERM.finditer(self.field_selector))
        return self.selector.matches(labels) and all((_text_at(manifest, path) == value) != (sign == "!=") for path, sign, value in terms)

    def reads(self, api_version: object, kind: object) -> bool:
        """Return whether an object is one of the source's, in any version of its group.

        Args:
            api_version: the object's `apiVersion`, as a manifest has it.
            kind: likewise.
        """
        return kind == self.name and str(api_version).rpartition("/")[0] == self.group


def _value_at(manifest: Mapping[str, Any], path: str) -> Any:
    """Return the field's value; None for a field that is absent, or whose parent is no object."""
    found: Any = manifest
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _text_at(manifest: Mapping[str, Any], path: str) -> str:
    """Return the field's text, as field selectors compare it; empty for a field that is absent."""
    found = _value_at(manifest, path)
    return str(found).lower() if isinstance(found, bool) else str("" if found is None else found)


#: A source of any kind.
AnySource = ObjectSource[Any]
