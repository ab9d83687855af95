"""Finds the collections of a live cluster that can be read, and describes the effect of missing ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from placewright.api.bad_input import InputError
from placewright.api.compatibility import BASELINE
from placewright.api.objects import Node, Pod
from placewright.api.profile import GROUP, PLURAL, VERSION, SchedulingProfile
from placewright.engine.discovery import reflected_rows
from placewright.framework.registry import Registry, installed_plugins
from placewright.kube.client import ApiClient
from placewright.kube.discovery import Reflected, ServedResources, Wanted, discover, groups_of
from placewright.kube.errors import BAD_REQUEST, FORBIDDEN, ApiError
from placewright.kube.reflector import Source
from placewright.kube.serverversion import server_version

PODS: Final = "/api/v1/pods"
NODES: Final = "/api/v1/nodes"
UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"
_PROFILES: Final = Reflected(Wanted(GROUP, PLURAL, (VERSION,), "SchedulingProfile"), SchedulingProfile)


@dataclass(slots=True)
class Readable:
    """The collections that can be read.

    Attributes:
        server: the API server, for people.
        kubernetes: its minor version, by which profiles are judged that follow it.
        sources: the collections; pods are the first.
        left_out: collections that exist and may not be read.
        notes: the effect of that, and the collections that the server does not serve.
    """

    server: str
    kubernetes: int = BASELINE
    sources: list[Source[Any]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def now_in_words() -> str:
    """Write the current time.

    Returns:
        RFC 3339, to the second.
    """
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def readable(client: ApiClient, pod_selector: str = "") -> Readable:
    """Ask the server for its collections, and for each whether we may list it.

    Args:
        client: client of the API server.
        pod_selector: field selector of the pods to read.

    Returns:
        The collections that can be read.

    Raises:
        InputError: nodes or pods may not be listed.
        RequestError: the server refused or did not answer.
    """
    version = await server_version(client)
    rows = (*reflected_rows(Registry(()).with_installed(installed_plugins()).sources.values()), _PROFILES)
    served = await discover(client, groups_of(rows))
    found = Readable("API server of unknown version") if version is None else Readable(str(version), version.minor)
    for source in (Source(PODS, Pod, field_selector=pod_selector), Source(NODES, Node)):
        if not await _may_list(client, source.path):
            what = source.path.rpartition("/")[2]
            raise InputError(f"{client.access.server}: {what} may not be listed (403); without them there is nothing to keep")
        found.sources.append(source)
    for row, source in _other_sources(rows, served, found):
        if refused := await _selectors_refused(client, source):
            found.left_out.append(str(row.wanted))
            found.notes.append(f"{refused}: left out, {_means(row)}")
        elif await _may_list(client, source.path):
            found.sources.append(source)
        else:
            found.left_out.append(str(row.wanted))
            found.notes.append(f"{row.wanted} may not be listed (403): left out, {_means(row)}")
    return found


def _other_sources(rows: Iterable[Reflected], served: ServedResources, found: Readable) -> Iterator[tuple[Reflected, Source[Any]]]:
    for row in rows:
        place = served.find(row.wanted)
        if place is not None:
            yield row, row.source(place)
        elif not row.one_of_several:
            found.notes.append(f"{row.wanted} is not served in {' or '.join(row.wanted.versions)}: left out, {_means(row)}")


def _means(row: Reflected) -> str:
    return "no profile comes with the file" if row is _PROFILES else f"{row.wanted.reader} will see none"


async def _selectors_refused(client: ApiClient, source: Source[Any]) -> str:
    """Ask for the API server's refusal of a plugin's selectors; empty without one. It knows which fields of a kind it selects by."""
    try:
        if source.selectors:
            await client.get(source.path, {"limit": "1", **source.selectors})
    except ApiError as error:
        if error.status == BAD_REQUEST:
            return str(error)
        if error.status != FORBIDDEN:
            raise
    return ""


async def _may_list(client: ApiClient, path: str) -> bool:
    try:
        # One object shows the right, and costs less than all.
        await client.get(path, {"limit": "1"})
    except ApiError as error:
        if error.status == FORBIDDEN:
            return False
        raise
    return True
