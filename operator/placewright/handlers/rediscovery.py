"""What the API server serves: asked at start, and again at a slow beat, because it may be upgraded under a running scheduler.

What it serves now and did not before is reflected from then on; what has moved to another version is read there, and nothing known is lost
by that. What it does not serve any more stays as it was last seen.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

from placewright.api.decode import DecodeError
from placewright.cluster.objects import ClusterObject
from placewright.handlers.sinks import ClusterObjectSink
from placewright.handlers.sources import Shortfall
from placewright.kube.client import ApiClient
from placewright.kube.discovery import Wanted, discover
from placewright.kube.errors import RequestError
from placewright.kube.reflectedkinds import GROUPS, REFLECTED
from placewright.kube.reflector import Reflector, Reflectors
from placewright.kube.serverversion import server_version
from placewright.scheduler.intake import Intake

_logger = logging.getLogger(__name__)

#: While a group is silent it is asked again this soon, seconds: budgets that nobody sees protect nobody.
SILENT_SECONDS: Final = 15.0


async def survey(client: ApiClient) -> Shortfall:
    """Ask the API server what it is and serves; raises `RequestError` when it does not answer."""
    return Shortfall(await server_version(client), await discover(client, GROUPS))


class Rediscovery:
    """Keeps what is reflected in step with what is served."""

    def __init__(
        self,
        client: ApiClient,
        intake: Intake,
        reflectors: Reflectors,
        found: Shortfall,
        beat_seconds: float,
        silent_seconds: float = SILENT_SECONDS,
    ) -> None:
        """`found`: what `reflectors` were made for; said here, and again whenever it changes."""
        self._client = client
        self._intake = intake
        self._reflectors = reflectors
        self._beat = self._wait_seconds = beat_seconds
        self._silent_beat = min(beat_seconds, silent_seconds)
        self._said = ""
        self._by_collection = dict(_by_collection(reflectors.members, found))
        self._added: list[asyncio.Task[None]] = []
        self._note(found)

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
        """Reflect what is served now; needs a running event loop."""
        self._note(found)
        for row in REFLECTED:
            collection = found.served.find(row.wanted)
            if collection is None:
                continue
            source, known = row.source(collection), self._by_collection.get(row.wanted)
            if known is None:
                added: Reflector[Any] = Reflector(self._client, source, ClusterObjectSink(self._intake))
                self._by_collection[row.wanted] = added
                self._added.append(self._reflectors.add(added))
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


def _by_collection(members: Sequence[Reflector[Any]], found: Shortfall) -> list[tuple[Wanted, Reflector[Any]]]:
    by_path = {each.source.path: each for each in members}
    places = ((row.wanted, found.served.find(row.wanted)) for row in REFLECTED)
    return [(wanted, by_path[place.path]) for wanted, place in places if place is not None]
