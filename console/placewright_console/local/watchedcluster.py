"""A world that follows an API server, read with the rights of the person who started the console.

Objects are cut down to the fields that placement and the pages read. Tens of thousands of pods must fit into memory. The reflectors list
again if the server has forgotten their version, and go on after any failure.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace as with_fields
from typing import Any, Final

from msgspec.structs import replace

from placewright.api.annotations import DECISION
from placewright.api.bad_input import InputError
from placewright.api.profile import ProfileStatus, SchedulingProfile
from placewright.api.quantity import QuantityError
from placewright.cli.livecluster import UNFINISHED, Readable, readable
from placewright.cli.profiles.connection import in_words
from placewright.framework.registry import Registry
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError, RetryBackoff
from placewright.kube.reflector import Reflector, Reflectors, Source
from placewright_console.local.prunedobjects import kind_of, pruned
from placewright_console.local.seenworld import SeenWorld

#: Remarks about objects that cannot be used.
_MOST_NOTES: Final = 20
#: Seconds after which a right that was missing is asked for again.
_RIGHTS_SECONDS: Final = 60.0
_BACKOFF: Final = RetryBackoff(initial=0.5, maximum=10.0)
NO_PROFILES: Final = "There is no SchedulingProfile: waiting pods are judged by kube-scheduler's default profile"


class WatchedCluster:
    """Follows the objects of an API server for as long as it is asked to.

    Attributes:
        world: the objects.
        synced: every object that may be read has been read.
        trouble: the reason why the cluster cannot be read at all; empty if it can, or was not tried.
    """

    def __init__(self, client: ApiClient, registry: Registry, clock: Callable[[], float] = time.time) -> None:
        """Read nothing yet.

        Args:
            client: client of the API server.
            registry: registry of plugins.
            clock: seconds since 1970.
        """
        self.world = SeenWorld(registry, clock(), clock)
        self.synced = asyncio.Event()
        self._client = client
        self._clock = clock
        self._found: Readable | None = None
        self._reflectors: Reflectors | None = None
        self.trouble = ""

    @property
    def server(self) -> str:
        """The API server and its version."""
        return self._client.access.server if self._found is None else self._found.server

    @property
    def remarks(self) -> Sequence[str]:
        """The parts that the world lacks, for the person who looks at it."""
        told = [self.trouble] if self.trouble else []
        since = self._client.away.away_since
        if since is not None:
            moment = time.localtime(self._clock() - (self._client.away.clock() - since))
            told.append(f"The API server has not answered since {time.strftime('%H:%M:%S %Z', moment)}: this is how things stood then")
        members = [] if self._reflectors is None else self._reflectors.members
        reading = [_plural(each) for each in members if not each.has_synced.is_set()]
        if reading and since is None:
            told.append(f"Still reading {', '.join(reading)}")
        told += [f"{_plural(each)} cannot be read now: {each.complaint}" for each in members if each.complaint and since is None]
        if self.synced.is_set() and not self.world.has_profiles:
            told.append(NO_PROFILES)
        return [*told, *([] if self._found is None else self._found.notes), *self.world.remarks]

    async def follow(self) -> None:
        """Follow the objects until cancelled. A later call goes on with the same world, brought up to date."""
        if self._reflectors is None:
            self._found = await self._readable()
            self._reflectors = Reflectors([self._reflector(each) for each in self._found.sources])
            anew: list[Reflector[Any]] = []
        else:
            anew = self._reflectors.members
        self._reflectors.start()
        try:
            await asyncio.gather(*(each.list_anew() for each in anew))
            await self._reflectors.wait_synced()
            if not self.world.has_profiles:
                self.world.set_profiles(())
            self.synced.set()
            await asyncio.Event().wait()
        finally:
            self.synced.clear()
            await self._reflectors.stop()

    async def _readable(self) -> Readable:
        """Ask which collections may be read, until there is an answer that lets nodes and pods be read."""
        attempt = 0
        while True:
            try:
                found = await readable(self._client, UNFINISHED)
            except InputError as problem:
                self.trouble = str(problem)
                await asyncio.sleep(_RIGHTS_SECONDS)
            except RequestError as problem:
                self.trouble = f"{self._client.access.server}: {in_words(problem)}"
                await asyncio.sleep(_BACKOFF.delay(attempt, problem))
                attempt += 1
            else:
                self.trouble = ""
                return found

    def _reflector(self, source: Source[Any]) -> Reflector[Any]:
        upgrade = source.upgrade
        cut = kept if upgrade is None else lambda item: kept(upgrade(item))
        return Reflector(self._client, with_fields(source, upgrade=cut), _WorldSink(self.world, self._clock))


class _WorldSink:
    """Applies the news of one collection to a world."""

    def __init__(self, world: SeenWorld, clock: Callable[[], float]) -> None:
        self._world = world
        self._clock = clock

    def changed(self, old: Any | None, new: Any) -> None:
        """Apply an object that appeared, or that changed in what is kept of it."""
        if old is not None and _alike(old, new):
            return
        self._world.now = self._clock()
        try:
            self._world.put(new)
        except (InputError, QuantityError) as problem:
            if len(self._world.notes) < _MOST_NOTES:
                self._world.notes.append(f"left out: {kind_of(new)} {new.metadata.name}: {problem}")

    def deleted(self, old: Any) -> None:
        """Remove an object that is gone."""
        self._world.now = self._clock()
        self._world.remove(old)

    def synced(self) -> None:
        """Do nothing."""


def kept(item: Any) -> Any:
    """Cut an object down to what placement and the pages read.

    Returns:
        The object with what `pruned` keeps, the decision of its scheduler, and its version. A profile keeps its whole spec.
    """
    meta = item.metadata
    decision = (meta.annotations or {}).get(DECISION)
    if isinstance(item, SchedulingProfile):
        return replace(item, metadata=replace(meta, annotations=None), status=ProfileStatus())
    cut = pruned(item)
    annotations = cut.metadata.annotations if decision is None else {**(cut.metadata.annotations or {}), DECISION: decision}
    return replace(cut, metadata=replace(cut.metadata, annotations=annotations, resource_version=meta.resource_version))


def _alike(old: Any, new: Any) -> bool:
    """Return whether two states of an object differ in their version alone, as after a report of a kubelet."""
    return bool(replace(old, metadata=replace(old.metadata, resource_version=new.metadata.resource_version)) == new)


def _plural(reflector: Reflector[Any]) -> str:
    return reflector.source.path.rpartition("/")[2]
