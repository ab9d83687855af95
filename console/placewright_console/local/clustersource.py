"""The kubeconfig's cluster as the console shows it: by the operator's own console, or without one by the API server's objects.

The operator alone knows its queue and past attempts. So it is asked first, and again as long as the console runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from placewright.api.bad_input import InputError
from placewright.cli.explain.fromoperator import current_namespace
from placewright.cli.operatorport import OperatorPlace
from placewright.engine.children import first_of
from placewright.framework.registry import Registry
from placewright.kube.client import ApiClient
from placewright_console.local.handthrough import HandThrough
from placewright_console.local.operatorlink import LinkState, OperatorLink
from placewright_console.local.seenworld import SeenWorld
from placewright_console.local.watchedcluster import WatchedCluster
from placewright_console.local.worldsource import WorldSource
from placewright_console.local.worldtimeline import WorldTimeline

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
