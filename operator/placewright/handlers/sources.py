"""What is reflected on this API server, where its news goes, and what a server lacks of it; the table is `kube.reflectedkinds`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.objects import Node, Pod
from placewright.handlers.sinks import AssignedPodSink, ClusterObjectSink, NodeSink
from placewright.kube.discovery import ServedResources, Wanted
from placewright.kube.reflectedkinds import REFLECTED
from placewright.kube.reflector import Sink, Source
from placewright.kube.serverversion import ServerVersion
from placewright.scheduler.intake import Intake

ASSIGNED_PODS: Final = "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"


def sources_and_sinks(
    served: ServedResources, intake: Intake, pods_listed: Callable[[], None]
) -> Iterator[tuple[Source[Any], Sink[Any]]]:
    """What to reflect on this API server; what it does not serve is left out."""
    yield Source("/api/v1/nodes", Node), NodeSink(intake)
    yield Source("/api/v1/pods", Pod, field_selector=ASSIGNED_PODS), AssignedPodSink(intake, pods_listed)
    for row in REFLECTED:
        found = served.find(row.wanted)
        if found is not None:
            yield row.source(found), ClusterObjectSink(intake)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """How an API server falls short of what the scheduler could use; `str` is one line. `version` None: it did not tell."""

    version: ServerVersion | None
    served: ServedResources

    @property
    def lacking(self) -> tuple[Wanted, ...]:
        """What is served in no version that can be read, but for what most servers do without."""
        return tuple(row.wanted for row in REFLECTED if not row.one_of_several and self.served.find(row.wanted) is None)

    def __str__(self) -> str:
        return "; ".join([f"API server: {self.version or 'of unknown version'}", *(self._parts() or ["lacks nothing"])])

    def _parts(self) -> list[str]:
        return [*self._collections(), *self._pods()]

    def _collections(self) -> Iterator[str]:
        for wanted in self.lacking:
            yield f"no {wanted} in {' or '.join(wanted.versions)}: {wanted.reader} sees none"
        yield from self._none_of_several()
        if self.served.silent:
            yield f"no answer about {', '.join(self.served.silent)}, asked again later"
        for row in REFLECTED:
            found = self.served.find(row.wanted)
            if found is not None and found.version != row.wanted.versions[0] and not row.one_of_several:
                yield f"{row.wanted} in {found.version}"

    def _none_of_several(self) -> Iterator[str]:
        """Once for each reader that has none of what it could do with any one of."""
        by_reader: dict[str, list[Wanted]] = {}
        for row in REFLECTED:
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
