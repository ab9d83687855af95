"""Asks the API server which kinds it serves, at the start and at a slow beat. It may be upgraded under a running scheduler.

A kind that is served newly is reflected from then on. A kind that has moved to another version is read there, and its known objects stay.
Objects of a kind that is served no more stay as they were last seen. The table of kinds is `placewright.kube.reflectedkinds`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.decode import DecodeError
from placewright.engine.reflectors import sink_of
from placewright.kube.client import ApiClient
from placewright.kube.discovery import ServedResources, Wanted, discover
from placewright.kube.errors import RequestError
from placewright.kube.reflectedkinds import REFLECTED, Reflected, groups_of
from placewright.kube.reflector import Reflector, Reflectors
from placewright.kube.serverversion import ServerVersion, server_version
from placewright.scheduler.eventhandlers import ClusterEventHandlers

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
        return "; ".join([f"API server: {self.version or 'of unknown version'}", *(self._parts() or ["lacks nothing"])])

    def _parts(self) -> list[str]:
        return [*self._collections(), *self._pods()]

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


class Discovery:
    """Keeps a reflector for each kind that the API server serves.

    Attributes:
        served: the API server's last answer; empty before the first.
    """

    def __init__(
        self,
        client: ApiClient,
        event_handlers: ClusterEventHandlers,
        reflectors: Reflectors,
        beat_seconds: float,
        silent_seconds: float = SILENT_SECONDS,
        rows: tuple[Reflected, ...] = REFLECTED,
    ) -> None:
        """Reflect nothing yet; `adopt` does.

        Args:
            client: asks the API server.
            event_handlers: takes the objects.
            reflectors: reflectors of served kinds are added to these.
            beat_seconds: seconds between two questions.
            silent_seconds: the same while an API group does not answer.
            rows: the kinds that the scheduler and its plugins read.
        """
        self._client = client
        self._rows = rows
        self._event_handlers = event_handlers
        self._reflectors = reflectors
        self._beat = self._wait_seconds = beat_seconds
        self._silent_beat = min(beat_seconds, silent_seconds)
        self._said = ""
        self.served = ServedResources({})
        self._by_collection: dict[Wanted, Reflector[Any]] = {}
        self._added: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Ask at every beat until cancelled.

        Raises:
            Exception: the error that ended a reflector which was added here.
        """
        while True:
            await self._wait()
            try:
                found = await self.survey()
            except (RequestError, DecodeError) as problem:
                _logger.debug("the API server did not say which kinds it serves, and is asked again later: %s", problem)
            else:
                self.adopt(found)

    async def survey(self) -> Shortfall:
        """Ask the API server now; raises as the function `survey` does."""
        return await survey(self._client, self._rows)

    def adopt(self, found: Shortfall) -> None:
        """Reflect the kinds that are served, and log in one line which are missing, where that has changed.

        Args:
            found: the answer of the API server, before the reflectors start or at a later beat.
        """
        self._note(found)
        self.served = found.served
        for row in self._rows:
            collection = found.served.find(row.wanted)
            if collection is None:
                continue
            source, known = row.source(collection), self._by_collection.get(row.wanted)
            if known is None:
                added: Reflector[Any] = Reflector(self._client, source, sink_of(row, self._event_handlers))
                self._by_collection[row.wanted] = added
                if (running := self._reflectors.add(added)) is not None:
                    self._added.append(running)
            elif known.source != source:
                known.redirect(source)

    def version_of(self, kind: type[Any]) -> str:
        """Return the API version, such as `v1`, in which objects of a struct are read now; empty if the kind is not served."""
        for row in self._rows:
            if row.kind is kind and row.wanted in self._by_collection:
                return self._by_collection[row.wanted].source.path.split("/")[3]
        return ""

    def _note(self, found: Shortfall) -> None:
        if str(found) != self._said:
            self._said = str(found)
            _logger.log(logging.WARNING if found.lacking else logging.INFO, "%s", found)
        self._wait_seconds = self._silent_beat if found.served.silent else self._beat

    async def _wait(self) -> None:
        if not self._added:
            await asyncio.sleep(self._wait_seconds)
            return
        ended, _ = await asyncio.wait(self._added, timeout=self._wait_seconds)
        for task in ended:
            task.result()
