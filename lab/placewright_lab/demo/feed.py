"""Creation of objects on an API server, several at a time, with an optional rate, and owners before their dependents.

Owners' uids in manifests are stand-ins. The feed puts the uids of the server in their place.

Everyday life in the demo after its story, until Ctrl-C. Pods end, other pods come, and the profile changes now and then.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from itertools import groupby
from typing import Any, Final

import msgspec

from placewright.api.objects import ObjectMeta, PodKey
from placewright.kube.client import ApiClient
from placewright.kube.errors import CONFLICT, NOT_FOUND, ApiError, RequestError, RetryBackoff, until_answered
from placewright.offline.kinds import Manifest, create_rank, kind_of
from placewright_lab.demo.livestate import PROFILES_PATH
from placewright_lab.readers.expansion import owner_uid

#: Function that returns monotonic seconds.
Clock = Callable[[], float]

IN_FLIGHT: Final = 32
_BACKOFF: Final = RetryBackoff(initial=0.1, maximum=2.0)


class _Created(msgspec.Struct):
    metadata: ObjectMeta


def pod_key(pod: Manifest) -> PodKey:
    """Return `namespace/name` of a manifest."""
    return PodKey(f"{pod['metadata'].get('namespace', 'default')}/{pod['metadata']['name']}")


class Feed:
    """Creates objects on one API server, and remembers the uids of owners."""

    def __init__(self, client: ApiClient, in_flight: int = IN_FLIGHT) -> None:
        self._client = client
        self._in_flight = in_flight
        self._uids: dict[str, str] = {}

    async def create_objects(self, manifests: Sequence[Manifest]) -> list[str]:
        """Create every object except pods, kind after kind. Return a line for each object that the server refused.

        An object that exists already counts as created.
        """
        refused: list[str] = []

        async def one(manifest: Manifest) -> None:
            try:
                uid = await self._create(manifest)
            except ApiError as error:
                refused.append(f"{manifest['kind']}/{manifest['metadata']['name']}: {error.message}")
            else:
                self._uids[owner_uid(manifest)] = uid

        for _, alike in groupby(sorted(manifests, key=create_rank), key=create_rank):
            await self._bounded(one, alike)
        return refused

    async def create_pods(
        self,
        pods: Iterable[Manifest],
        created: Callable[[PodKey], None],
        refused: Callable[[PodKey, str], None],
        rate: float | None = None,
    ) -> None:
        """Create pods in order, at most `rate` a second. Tell the outcome of each."""

        async def one(pod: Manifest) -> None:
            try:
                await self._create(pod)
            except ApiError as error:
                refused(pod_key(pod), f"refused by the API server: {error.message}")
            else:
                created(pod_key(pod))

        await self._bounded(one, pods, rate)

    async def _bounded(
        self, one: Callable[[Manifest], Coroutine[Any, Any, None]], manifests: Iterable[Manifest], rate: float | None = None
    ) -> None:
        slots = asyncio.Semaphore(self._in_flight)
        loop = asyncio.get_running_loop()
        start = loop.time()
        async with asyncio.TaskGroup() as group:
            for number, manifest in enumerate(manifests):
                if rate and (early := start + number / rate - loop.time()) > 0:
                    await asyncio.sleep(early)
                await slots.acquire()
                group.create_task(one(manifest)).add_done_callback(lambda _: slots.release())

    async def _create(self, manifest: Manifest) -> str:
        """Create one object and return its uid, also if it exists. A pod that exists counts as refused."""
        path = kind_of(manifest).path(manifest["metadata"].get("namespace", ""))
        body = msgspec.json.encode(stand_in_uids(manifest, self._uids))
        attempts = 0

        async def post() -> bytes:
            nonlocal attempts
            attempts += 1
            try:
                return await self._client.post(path, body)
            except ApiError as error:
                # After a lost answer, a conflict means that our own earlier attempt has arrived.
                if error.status != CONFLICT or (manifest["kind"] == "Pod" and attempts == 1):
                    raise
                return await self._client.get(f"{path}/{manifest['metadata']['name']}")

        answer = await until_answered(post, _BACKOFF)
        return msgspec.json.decode(answer, type=_Created).metadata.uid


def stand_in_uids(manifest: Manifest, real: Mapping[str, str]) -> Manifest:
    """Return the manifest with `real` uids in place of stand-ins, in owner references and in the labels that repeat them."""
    metadata = manifest["metadata"]
    owners, labels = metadata.get("ownerReferences"), metadata.get("labels")
    if not isinstance(owners, list):
        return manifest
    known = [{**o, "uid": real.get(str(o.get("uid")), o.get("uid"))} if isinstance(o, dict) else o for o in owners]
    changed = {**metadata, "ownerReferences": known}
    if isinstance(labels, dict):
        changed["labels"] = {key: real.get(str(value), value) for key, value in labels.items()}
    return {**manifest, "metadata": changed}


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None], name: str) -> AsyncIterator[asyncio.Task[None]]:
    """Run a coroutine beside the body. Cancel it when the body ends, and wait for its end."""
    task: asyncio.Task[None] = asyncio.create_task(work, name=name)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


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
