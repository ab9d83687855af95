"""The kubeconfig's cluster as the console shows it: by the operator's own console, or without one by the API server's objects.

The operator alone knows its queue and past attempts. So it is asked first, and again as long as the console runs.

A world that follows an API server, read with the rights of the person who started the console.

Objects are cut down to the fields that placement and the pages read. Tens of thousands of pods must fit into memory. The reflectors list
again if the server has forgotten their version, and go on after any failure.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace as with_fields
from typing import Any, Final

from msgspec.structs import replace

from placewright.api.annotations import DECISION
from placewright.api.bad_input import InputError
from placewright.api.profile import ProfileStatus, SchedulingProfile
from placewright.api.quantity import QuantityError
from placewright.cli.explain.fromoperator import current_namespace
from placewright.cli.livecluster import UNFINISHED, Readable, readable
from placewright.cli.operatorport import OperatorPlace
from placewright.cli.profiles.connection import in_words
from placewright.engine.children import first_of
from placewright.framework.registry import Registry
from placewright.kube.client import ApiClient
from placewright.kube.errors import RequestError, RetryBackoff
from placewright.kube.reflector import Reflector, Reflectors, Source
from placewright_console.local.handthrough import HandThrough
from placewright_console.local.operatorlink import LinkState, OperatorLink
from placewright_console.local.prunedobjects import kind_of, pruned
from placewright_console.local.seenworld import SeenWorld
from placewright_console.local.worldsource import WorldSource, WorldTimeline

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
            self.world.kubernetes = self._found.kubernetes
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


#: Seconds that an operator may be away before the API server's objects are shown in its place.
AWAY_SECONDS: Final = 10.0
#: Verdicts may take a fifth of the time; see `WaitingVerdicts`.
_REST: Final = 4.0
#: Seconds for which objects are followed after a feature of the console asked for them.
_KEPT_SECONDS: Final = 120.0
#: Seconds until all objects must have been read for a feature that asks for them.
_READ_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.1


class ClusterSource(WorldSource):
    """The kubeconfig's cluster.

    Attributes:
        through: hands the operator's console through.
    """

    def __init__(
        self,
        place: OperatorPlace,
        registry: Registry,
        *,
        server: str | None = None,
        token: str | None = None,
        allow_changes: bool = False,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Ask nothing yet; `running` does.

        Args:
            place: place of the operator, with the person's client.
            registry: registry of plugins.
            server: URL of the operator's HTTPS port; None: kubectl forwards it.
            token: bearer token for the operator; None for the kubeconfig's.
            allow_changes: whether features of the console may change things, with the person's own rights.
            say: takes a line for the terminal when another source is shown.
        """
        self._watched = WatchedCluster(place.client, registry)
        #: Told to the page, which shows pods of the context's namespace first.
        self._own = current_namespace(place.kubeconfig, place.context)
        source = place.client.access.context or place.client.access.server
        about = {"kind": "cluster", "source": source, "own": self._own, "began": self._watched.world.began}
        super().__init__(self._watched.world, about, time.monotonic, _REST)
        self._client = place.client
        self._link = OperatorLink(place, server, token, self._link_changed)
        self.through = HandThrough(self._link, lambda: not self._shows_objects(), self._local)
        self._allow_changes = allow_changes
        self._say = say
        self._said = ""
        self._wanted_until = -1.0
        #: When the operator was lost; None while it answers.
        self._lost_at: float | None = time.monotonic()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Keep in touch with operator and API server for as long as the context is open."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._link.keep()), group.create_task(self._follow_when_wanted())]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    @property
    def writer(self) -> ApiClient | None:
        """The person's own client, where changes were allowed. Implements `ClusterAtHand`."""
        return self._client if self._allow_changes else None

    async def current_world(self) -> SeenWorld:
        """Return the cluster's objects, which are followed from now on for a while. Implements `ClusterAtHand`.

        Returns:
            The world; it is live.

        Raises:
            InputError: the objects cannot be read.
        """
        self._wanted_until = time.monotonic() + _KEPT_SECONDS
        ends = time.monotonic() + _READ_SECONDS
        while not self._watched.synced.is_set():
            if self._watched.trouble or time.monotonic() > ends:
                raise InputError(self._watched.trouble or "; ".join(self._watched.remarks) or "the cluster's objects are not read yet")
            await asyncio.sleep(_LOOK_SECONDS)
        self.world.now = time.time()  # a quiet cluster is of this moment, too, and not of its last change
        return self.world

    def advance(self) -> bool:
        """Evaluate waiting pods for a moment, once all objects are there, and unless the operator has evaluated them.

        Returns:
            Whether there is more to do at once: pods without any verdict.
        """
        if not (self._shows_objects() and self._watched.synced.is_set()):
            return False
        if self.timeline is None:
            self.world.began = time.time()
            self.timeline = WorldTimeline(self.world)
        at = time.time() - self.world.began
        self.timeline.until(at)
        self.timeline.changed(at)
        return super().advance() and self.verdicts.unknown > 0

    def moment(self) -> dict[str, Any]:
        """Return the rows of the section `about` that change."""
        return {**super().moment(), "notes": list(self._notes()), "now": float(int(time.time())), "server": self._watched.server}

    def _local(self) -> dict[str, Any]:
        return {"can": list(self.can), "source": self._about["source"], "own": self._own, "notes": list(self._notes())}

    def _notes(self) -> Sequence[str]:
        if not self._shows_objects():
            return ()
        why = self._link.state.why
        return [f"Shown from the API server's objects, with waiting pods evaluated here: {why}", *self._watched.remarks]

    def _shows_objects(self) -> bool:
        state = self._link.state
        if state.url is not None or self._lost_at is None:
            return False
        return state.lasting or time.monotonic() - self._lost_at >= AWAY_SECONDS

    def _link_changed(self, state: LinkState) -> None:
        if state.url is not None:
            self._lost_at = None
        elif self._lost_at is None:
            self._lost_at = time.monotonic()
        said = "the operator's console is shown" if state.url is not None else state.why
        if said != self._said:
            self._said = said
            self._say(said)

    async def _follow_when_wanted(self) -> None:
        while True:
            await self._until(wanted=True)
            await first_of(self._watched.follow(), self._until(wanted=False))

    async def _until(self, *, wanted: bool) -> None:
        while (self._shows_objects() or time.monotonic() < self._wanted_until) != wanted:  # noqa: ASYNC110 - time alone may make it so
            await asyncio.sleep(_LOOK_SECONDS)
