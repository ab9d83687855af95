"""Asks the API server which kinds it serves, at the start and at a slow beat. It may be upgraded under a running scheduler.

A kind that is served newly is reflected from then on. A kind that has moved to another version is read there, and its known objects stay.
Objects of a kind that is served no more stay as they were last seen. The table of kinds is `placewright.kube.discovery`.

`reflected_core` makes the reflectors of nodes and pods. Sinks pass all objects on to the scheduler's event handlers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from placewright.api.decode import DecodeError
from placewright.api.objects import Node, NodeName, Pod
from placewright.api.pods import PodInfo
from placewright.api.quantity import QuantityError
from placewright.cluster.objects import ClusterObject
from placewright.framework.sources import AnySource
from placewright.kube.client import ApiClient
from placewright.kube.discovery import REFLECTED, Reflected, ServedResources, Wanted, discover, groups_of
from placewright.kube.errors import NOT_FOUND, ApiError, RequestError
from placewright.kube.optionalterms import OptionalTerms
from placewright.kube.reflector import Reflector, Reflectors, Source
from placewright.kube.serverversion import ServerVersion, server_version
from placewright.kube.sink import Sink
from placewright.kube.writers.writer import pod_path
from placewright.scheduler.eventhandlers import ClusterEventHandlers

C = TypeVar("C", bound=ClusterObject)
T = TypeVar("T")

PODS_PATH: Final = "/api/v1/pods"
NODES_PATH: Final = "/api/v1/nodes"
ASSIGNED_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
#: The field selector of the pods that Kopf watches.
UNSCHEDULED_PODS: Final = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"


def _ignore(*_told: object) -> None:
    pass


@dataclass(frozen=True)
class CallingSink(Generic[T]):
    """Calls a function for each change that a reflector tells. Implements `Sink`.

    Attributes:
        changed: takes the object as it was known (None for a new one), and the object now.
        deleted: takes an object that was deleted.
        synced: called after each list.
    """

    changed: Callable[[T | None, T], None] = _ignore
    deleted: Callable[[T], None] = _ignore
    synced: Callable[[], None] = _ignore


def reflected_core(client: ApiClient, event_handlers: ClusterEventHandlers, pods_listed: Callable[[], None]) -> Reflectors:
    """Make the reflectors of nodes and of pods on nodes, which every API server serves. `Discovery` adds those of other kinds.

    Args:
        client: lists and watches.
        event_handlers: takes the objects.
        pods_listed: called after each list of pods. The failure that broke this watch may have broken Kopf's, and Kopf does not say so.

    Returns:
        Reflectors that have not been started.
    """

    def pod_changed(_old: Pod | None, new: Pod) -> None:
        if (pod := readable_pod(new, event_handlers.known_on_node(new.metadata.uid))) is not None:
            event_handlers.assigned_pod(pod)

    nodes = CallingSink[Node](
        lambda _old, new: event_handlers.node(new), lambda old: event_handlers.node_gone(NodeName(old.metadata.name))
    )  # fmt: skip
    pods = CallingSink[Pod](pod_changed, lambda old: event_handlers.assigned_pod_gone(old.metadata.uid), pods_listed)
    on_nodes = Source(PODS_PATH, Pod, field_selector=ASSIGNED_PODS)
    return Reflectors([Reflector(client, Source(NODES_PATH, Node), nodes), Reflector(client, on_nodes, pods)])


def reflected_rows(sources: Iterable[tuple[AnySource, str]]) -> tuple[Reflected, ...]:
    """Return what is reflected where the API server serves it: the scheduler's own table, and what plugins declare.

    Args:
        sources: each with the name of the plugin that declares it, as `Registry.sources` has them.
    """
    return (*REFLECTED, *(_row(source, plugin) for source, plugin in sources if source.follower is None))


def _row(source: AnySource, plugin: str) -> Reflected:
    labels = source.selector.query
    terms = OptionalTerms(plugin, source.poll_seconds, source.stale_after_seconds, source.most_bytes, labels, source.field_selector)
    return Reflected(Wanted(source.group, source.resource, source.versions, plugin), source.kind, optional=terms)


def sink_of(row: Reflected, event_handlers: ClusterEventHandlers) -> Sink[Any]:
    """Make the sink for a kind: a polled collection causes one event a list, any other one event an object.

    Args:
        row: the kind.
        event_handlers: takes the objects.

    Returns:
        A sink for its reflector.
    """
    if row.optional is not None and row.optional.poll_seconds is not None:
        return PolledObjectSink(event_handlers, row.kind)
    return CallingSink[Any](lambda _old, new: event_handlers.cluster_object(new), event_handlers.cluster_object_gone)


def readable_pod(pod: Pod, like: PodInfo | None = None) -> PodInfo | None:
    """Make a `PodInfo` of a pod.

    Args:
        pod: the pod, as the API server shows it.
        like: the same pod as it was known, whose computed parts are reused where its spec is unchanged.

    Returns:
        None, after a warning, when a quantity in the pod cannot be read.
    """
    try:
        return PodInfo(pod, like)
    except QuantityError as problem:
        _logger.warning("pod %s/%s is ignored: resources: %s", pod.metadata.namespace, pod.metadata.name, problem)
        return None


async def read_if_there(client: ApiClient, path: str, kind: type[T]) -> T | None:
    """Read an object.

    Args:
        client: reads it.
        path: path of the object.
        kind: struct that it is decoded into.

    Returns:
        None if the API server has no such object.

    Raises:
        RequestError: the API server did not answer.
    """
    try:
        return await client.get_as(path, kind)
    except ApiError as problem:
        if problem.status == NOT_FOUND:
            return None
        raise


async def read_pod(client: ApiClient, pod: PodInfo) -> PodInfo | None:
    """Read a pod as the API server has it now. An unreadable pod keeps its last good state, on the node that the API server shows.

    Args:
        client: reads it.
        pod: the pod as it is known.

    Returns:
        None if the pod is gone, even if another pod has its name.

    Raises:
        RequestError: the API server did not answer.
    """
    found = await read_if_there(client, pod_path(pod), Pod)
    if found is None or found.metadata.uid != pod.uid:
        return None
    return readable_pod(found) or pod.on(NodeName(found.spec.node_name))


class PolledObjectSink(Generic[C]):
    """Passes on a collection that is polled: each list may change every object, and is one event for waiting pods."""

    def __init__(self, event_handlers: ClusterEventHandlers, kind: type[C]) -> None:
        self._event_handlers = event_handlers
        self._kind = kind
        self._changed = False

    def changed(self, old: C | None, new: C) -> None:
        """Put an object into its table.

        Args:
            old: the object as it was known; None for a new one.
            new: the object now.
        """
        self._event_handlers.put_object(new)
        self._changed = True

    def deleted(self, old: C) -> None:
        """Take the object out of its table: it is gone, or too old."""
        self._event_handlers.remove_object(old)
        self._changed = True

    def synced(self) -> None:
        """Tell waiting pods of the list, if it changed an object."""
        if self._changed:
            self._changed = False
            self._event_handlers.source_listed(self._kind)


_logger = logging.getLogger(__name__)

#: Seconds until an API group that did not answer is asked again: until then its PodDisruptionBudgets, for one, protect no pod.
SILENT_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The kinds that the scheduler can use and an API server does not serve; `str` writes them in one line.

    Attributes:
        version: version of the API server; None if it did not tell.
        served: the kinds with the versions in which it serves them.
        rows: the kinds that the scheduler and its plugins can use.
    """

    version: ServerVersion | None
    served: ServedResources
    rows: tuple[Reflected, ...] = REFLECTED

    @property
    def lacking(self) -> tuple[Wanted, ...]:
        """The kinds that are served in no readable version, without kinds that another kind can stand for."""
        return tuple(row.wanted for row in self.rows if not row.one_of_several and self.served.find(row.wanted) is None)

    def __str__(self) -> str:
        parts = [*self._collections(), *self._pods()] or ["lacks nothing"]
        return "; ".join([f"API server: {self.version or 'of unknown version'}", *parts])

    def _collections(self) -> Iterator[str]:
        for wanted in self.lacking:
            yield f"no {wanted} in {' or '.join(wanted.versions)}: {wanted.reader} sees none"
        yield from self._none_of_several()
        if self.served.silent:
            yield f"no answer about {', '.join(self.served.silent)}, asked again later"
        for row in self.rows:
            found = self.served.find(row.wanted)
            if found is not None and found.version != row.wanted.versions[0] and not row.one_of_several:
                yield f"{row.wanted} in {found.version}"

    def _none_of_several(self) -> Iterator[str]:
        """Write a part for each plugin that needs one of several kinds and has none of them."""
        by_reader: dict[str, list[Wanted]] = {}
        for row in self.rows:
            if row.one_of_several:
                by_reader.setdefault(row.wanted.reader, []).append(row.wanted)
        for reader, several in by_reader.items():
            if all(self.served.find(wanted) is None for wanted in several):
                yield f"none of {', '.join(map(str, several))}: {reader} sees none"

    def _pods(self) -> Iterator[str]:
        if self.version is None:
            return
        if self.version.unknown_fields:
            yield f"drops from pods {', '.join(self.version.unknown_fields)}"
        if self.version.ignores_uids:
            yield "may bind a pod created anew in its predecessor's place (1.23), which is then put right"


async def survey(client: ApiClient, rows: tuple[Reflected, ...] = REFLECTED) -> Shortfall:
    """Ask the API server for its version and for those of some kinds that it serves.

    Args:
        client: asks the API server.
        rows: the kinds.

    Returns:
        The missing kinds and the served ones.

    Raises:
        RequestError: it does not answer.
        DecodeError: its answer cannot be read.
    """
    return Shortfall(await server_version(client), await discover(client, groups_of(rows)), rows)


@dataclass(eq=False)
class Discovery:
    """Keeps a reflector for each kind that the API server serves.

    Attributes:
        client: asks the API server.
        event_handlers: takes the objects.
        reflectors: reflectors of served kinds are added to these.
        beat_seconds: seconds between two questions.
        silent_seconds: the same while an API group does not answer.
        rows: the kinds that the scheduler and its plugins read.
        answered: called with the version of the API server at each answer that tells one.
        served: the API server's last answer; empty before the first.
    """

    client: ApiClient
    event_handlers: ClusterEventHandlers
    reflectors: Reflectors
    beat_seconds: float
    silent_seconds: float = SILENT_SECONDS
    rows: tuple[Reflected, ...] = REFLECTED
    answered: Callable[[ServerVersion], object] = lambda _version: None

    def __post_init__(self) -> None:
        self._said = ""
        self.served = ServedResources({})
        self._by_collection: dict[Wanted, Reflector[Any]] = {}

    async def run(self) -> None:
        """Ask at every beat until cancelled."""
        while True:
            await asyncio.sleep(min(self.beat_seconds, self.silent_seconds) if self.served.silent else self.beat_seconds)
            try:
                found = await self.survey()
            except (RequestError, DecodeError) as problem:
                _logger.debug("the API server did not say which kinds it serves, and is asked again later: %s", problem)
            else:
                self.adopt(found)

    async def survey(self) -> Shortfall:
        """Ask the API server now; raises as the function `survey` does."""
        return await survey(self.client, self.rows)

    def adopt(self, found: Shortfall) -> None:
        """Reflect the kinds that are served, and log in one line which are missing, where that has changed.

        Args:
            found: the answer of the API server, before the reflectors start or at a later beat.
        """
        self._note(found)
        if found.version is not None:
            self.answered(found.version)
        self.served = found.served
        for row in self.rows:
            collection = found.served.find(row.wanted)
            if collection is None:
                continue
            source, known = row.source(collection), self._by_collection.get(row.wanted)
            if known is None:
                added: Reflector[Any] = Reflector(self.client, source, sink_of(row, self.event_handlers))
                self._by_collection[row.wanted] = added
                self.reflectors.include(added)
            elif known.source != source:
                known.redirect(source)

    def version_of(self, kind: type[Any]) -> str:
        """Return the API version, such as `v1`, in which objects of a struct are read now; empty if the kind is not served."""
        for row in self.rows:
            if row.kind is kind and row.wanted in self._by_collection:
                return self._by_collection[row.wanted].source.path.split("/")[3]
        return ""

    def _note(self, found: Shortfall) -> None:
        if str(found) != self._said:
            self._said = str(found)
            _logger.log(logging.WARNING if found.lacking else logging.INFO, "%s", found)
