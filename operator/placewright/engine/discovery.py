"""What the API server serves: asked at start, and again at a slow beat, because it may be upgraded under a running scheduler.

What it serves now and did not before is reflected from then on; what has moved to another version is read there, and nothing known is lost
by that. What it does not serve any more stays as it was last seen. The table of kinds is `placewright.kube.reflectedkinds`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from placewright.api.decode import DecodeError
from placewright.cluster.objects import ClusterObject
from placewright.engine.reflectors import ClusterObjectSink
from placewright.kube.client import ApiClient
from placewright.kube.discovery import ServedResources, Wanted, discover
from placewright.kube.errors import RequestError
from placewright.kube.reflectedkinds import GROUPS, REFLECTED
from placewright.kube.reflector import Reflector, Reflectors
from placewright.kube.serverversion import ServerVersion, server_version
from placewright.scheduler.eventhandlers import ClusterEventHandlers

_logger = logging.getLogger(__name__)

#: While a group is silent it is asked again this soon, seconds: budgets that nobody sees protect nobody.
SILENT_SECONDS: Final = 15.0


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


async def survey(client: ApiClient) -> Shortfall:
    """Ask the API server what it is and serves; raises `RequestError` when it does not answer."""
    return Shortfall(await server_version(client), await discover(client, GROUPS))


class Discovery:
    """Keeps what is reflected in step with what is served.

    Attributes:
        served: the API server's last answer; nothing before the first.
    """

    def __init__(
        self,
        client: ApiClient,
        intake: ClusterEventHandlers,
        reflectors: Reflectors,
        beat_seconds: float,
        silent_seconds: float = SILENT_SECONDS,
    ) -> None:
        """`reflectors`: to which is added what is served. `beat_seconds`, `silent_seconds`: how often the API server is asked."""
        self._client = client
        self._intake = intake
        self._reflectors = reflectors
        self._beat = self._wait_seconds = beat_seconds
        self._silent_beat = min(beat_seconds, silent_seconds)
        self._said = ""
        self.served = ServedResources({})
        self._by_collection: dict[Wanted, Reflector[Any]] = {}
        self._added: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Look at every beat, until cancelled. Raises what ended a reflector that was added here."""
        while True:
            await self._wait()
            try:
                found = await survey(self._client)
            except (RequestError, DecodeError) as problem:
                _logger.debug("what the API server serves is asked again later: %s", problem)
            else:
                self.adopt(found)

    def adopt(self, found: Shortfall) -> None:
        """Reflect what is served: before the reflectors start, and whenever it was asked again. Says in one line what lacks."""
        self._note(found)
        self.served = found.served
        for row in REFLECTED:
            collection = found.served.find(row.wanted)
            if collection is None:
                continue
            source, known = row.source(collection), self._by_collection.get(row.wanted)
            if known is None:
                added: Reflector[Any] = Reflector(self._client, source, ClusterObjectSink(self._intake))
                self._by_collection[row.wanted] = added
                if (running := self._reflectors.add(added)) is not None:
                    self._added.append(running)
            elif known.source != source:
                known.redirect(source)

    def version_of(self, kind: type[ClusterObject]) -> str:
        """The version in which objects of that struct are read now; empty where none are."""
        for row in REFLECTED:
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
