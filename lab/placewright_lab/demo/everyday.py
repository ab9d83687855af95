"""Everyday life in the demo after its story, until Ctrl-C. Pods end, other pods come, and the profile changes now and then."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from typing import Final

from placewright.kube.client import ApiClient
from placewright.kube.errors import NOT_FOUND, ApiError, RequestError
from placewright.offline.kinds import Manifest, kind_of
from placewright_lab.demo.feed import Feed
from placewright_lab.demo.livestate import PROFILES_PATH

#: Number of pods that end in a second, and of pods that come.
RATE: Final = 4.0
#: Seconds between two changes of the profile.
CHANGE_SECONDS: Final = 45.0
_LATER: Final = "-later-"


class EverydayLife:
    """Replaces pods of a demo by others of the same kinds."""

    def __init__(
        self,
        client: ApiClient,
        pods: Iterable[Manifest],
        profile: str,
        changes: Sequence[Manifest],
        say: Callable[[str], None],
        seed: int = 0,
        rate: float = RATE,
    ) -> None:
        """Begin with the pods that were created.

        Args:
            client: client of the API server.
            pods: manifests, after which more of the same kinds follow.
            profile: name of the profile that changes.
            changes: merge patches, one after the other and again.
            say: function that takes a line for each change.
            seed: seed of the random choice.
            rate: pods a second.
        """
        self._client = client
        self._feed = Feed(client)
        self._pods = list(pods)
        self._profile = profile
        self._changes = changes
        self._say = say
        self._random = random.Random(seed)
        self._rate = rate
        self._made = 0

    async def go_on(self) -> None:
        """Continue until cancelled. Ask an API server again that does not answer for a while."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._replace_pods())
            group.create_task(self._change_profile())

    async def _replace_pods(self) -> None:
        while True:
            await asyncio.sleep(1.0 / self._rate)
            at = self._random.randrange(len(self._pods))
            ends, comes = self._pods[at], self._like(self._random.choice(self._pods))
            self._pods[at] = comes
            await self._delete(ends)
            await self._feed.create_pods([comes], lambda _: None, lambda _, why: self._say(why))

    async def _change_profile(self) -> None:
        turn = 0
        while True:
            await asyncio.sleep(CHANGE_SECONDS)
            change = self._changes[turn % len(self._changes)]
            turn += 1
            try:
                await self._client.patch(f"{PROFILES_PATH}/{self._profile}", change)
            except RequestError as problem:
                self._say(f"the profile could not be changed: {problem}")
            else:
                self._say(f"profile {self._profile} is changed: {_in_words(change)}")

    async def _delete(self, pod: Manifest) -> None:
        metadata = pod["metadata"]
        path = f"{kind_of(pod).path(metadata.get('namespace', 'default'))}/{metadata['name']}"
        try:
            await self._client.delete(path, {"gracePeriodSeconds": 0})
        except ApiError as problem:
            if problem.status != NOT_FOUND:
                self._say(f"{path} could not be deleted: {problem.message}")
        except RequestError:
            pass  # the pod stays, and the next one follows

    def _like(self, pod: Manifest) -> Manifest:
        """Return another pod of the same kind, with a new name."""
        self._made += 1
        other = deepcopy(pod)
        first = str(pod["metadata"]["name"]).partition(_LATER)[0]
        other["metadata"]["name"] = f"{first}{_LATER}{self._made}"
        return other


def _in_words(change: Manifest) -> str:
    spec = change["spec"]
    strategy = spec["pluginConfig"][0]["args"]["scoringStrategy"]["type"]
    return f"NodeResourcesFit prefers {strategy}, weight {spec['weights']['NodeResourcesFit']}"
