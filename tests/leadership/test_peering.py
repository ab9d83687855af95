from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import kopf
import msgspec
import pytest

from kubesandbox.faults import Rule
from kubesandbox.server import Sandbox, SandboxOptions
from placewright.api.objects import ObjectMeta
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.leadership.leaseobject import CannotElect
from placewright.leadership.peering import PEERINGS_PATH, Leadership, Peering, ensure_peering
from placewright.leadership.peers import Replica, priority_of

from .nofence import NoFence, no_fence

CRDS = Path(__file__).parents[2] / "crds"
OLDER = Replica("older", priority_of(1_900_000_000_000, 1))
YOUNGER = Replica("younger", priority_of(1_900_000_000_001, 0))
PEERING = f"{PEERINGS_PATH}/placewright"


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(SandboxOptions(crds=[CRDS])) as made:
        yield made


@pytest.fixture
async def client(sandbox: Sandbox) -> AsyncIterator[ApiClient]:
    async with ApiClient(load_config(str(sandbox.kubeconfig))) as made:
        yield made


@asynccontextmanager
async def watching(client: ApiClient, replica: Replica, **options: Any) -> AsyncIterator[Leadership]:
    leadership = Leadership(client, replica, no_fence(), **options)
    leadership.start()
    try:
        yield leadership
    finally:
        await leadership.stop()


class Turns:
    """Remembers what a leadership told, and lets a test wait for it."""

    def __init__(self, leadership: Leadership) -> None:
        self.told: list[bool] = []
        self._news = asyncio.Event()
        leadership.on_change(self._hear)

    def _hear(self, active: bool) -> None:
        self.told.append(active)
        self._news.set()

    async def until(self, *told: bool) -> None:
        async with asyncio.timeout(10):
            while self.told != list(told):
                self._news.clear()
                await self._news.wait()


async def beat(client: ApiClient, replica: Replica, stamp: str, lifetime: int = 60) -> None:
    """Write a record as Kopf does."""
    content = {"priority": replica.priority, "lifetime": lifetime, "lastseen": stamp}
    await client.patch(PEERING, {"status": {replica.identity: content}})


async def leave(client: ApiClient, replica: Replica) -> None:
    await client.patch(PEERING, {"status": {replica.identity: None}})


async def test_the_older_is_active_and_the_younger_takes_over_when_it_leaves(client: ApiClient) -> None:
    await ensure_peering(client)
    async with watching(client, OLDER) as older, watching(client, YOUNGER) as younger:
        turns = Turns(younger)
        await beat(client, YOUNGER, "1")
        await asyncio.wait_for(younger.wait_active(), 5)
        await beat(client, OLDER, "1")
        await asyncio.wait_for(older.wait_active(), 5)
        await turns.until(True, False)
        assert not younger.active and "older has precedence" in younger.verdict.why
        await leave(client, OLDER)
        await asyncio.wait_for(younger.wait_active(), 5)
        assert turns.told == [True, False, True]


async def test_a_watch_that_breaks_changes_nothing_and_later_news_still_arrive(client: ApiClient, sandbox: Sandbox) -> None:
    await ensure_peering(client)
    await beat(client, YOUNGER, "1")
    async with watching(client, YOUNGER) as younger:
        turns = Turns(younger)
        await asyncio.wait_for(younger.wait_active(), 5)
        sandbox.faults.drop_watches()
        sandbox.faults.compact()
        assert younger.active
        await beat(client, OLDER, "1")
        await turns.until(True, False)
        assert turns.told == [True, False]


async def test_cut_off_from_the_server_we_cease_to_be_active_by_our_own_clock(client: ApiClient, sandbox: Sandbox) -> None:
    await ensure_peering(client)
    await beat(client, OLDER, "1", lifetime=1)
    async with watching(client, OLDER) as older:
        turns = Turns(older)
        await turns.until(True)
        sandbox.faults.add(Rule(code=503))
        sandbox.faults.drop_watches()
        await turns.until(True, False)
        assert "not seen to be renewed" in older.verdict.why


async def test_a_peering_object_that_is_deleted_leaves_nobody_active(client: ApiClient) -> None:
    await ensure_peering(client)
    await beat(client, OLDER, "1")
    async with watching(client, OLDER) as older:
        turns = Turns(older)
        await turns.until(True)
        await client.delete(PEERING)
        await turns.until(True, False)
        assert not older.active


async def test_after_stopping_we_are_not_active(client: ApiClient) -> None:
    await ensure_peering(client)
    await beat(client, OLDER, "1")
    async with watching(client, OLDER) as older:
        await asyncio.wait_for(older.wait_active(), 5)
    assert not older.active


async def test_the_object_is_created_once(client: ApiClient) -> None:
    await ensure_peering(client)
    first = await client.get(PEERING)
    await ensure_peering(client)
    assert json.loads(first)["metadata"]["uid"] == json.loads(await client.get(PEERING))["metadata"]["uid"]


async def test_without_the_crd_it_is_said_what_to_apply() -> None:
    async with Sandbox() as bare, ApiClient(load_config(str(bare.kubeconfig))) as client:
        with pytest.raises(CannotElect, match="apply crds/ first"):
            await ensure_peering(client)


async def test_without_permission_to_create_it_is_said_what_to_apply(client: ApiClient, sandbox: Sandbox) -> None:
    sandbox.faults.add(Rule(method="POST", path="clusterkopfpeerings", code=403))
    with pytest.raises(CannotElect, match="'placewright' does not exist and could not be created"):
        await ensure_peering(client)


# --- without a server: the same object, fed by hand, on a clock that the test moves -----------------------------------------------


class Hand:
    """A leadership without network; `show` is what its watch would have brought."""

    def __init__(self, replica: Replica) -> None:
        self.now = 1000.0
        self.fence: Any = NoFence()
        # Never started, so the client is never used.
        self.leadership = Leadership(None, replica, self.fence, clock=lambda: self.now)  # type: ignore[arg-type]

    def show(self, name: str = "placewright", **status: tuple[int, str]) -> None:
        records = {
            identity: msgspec.Raw(json.dumps({"priority": priority, "lifetime": 60, "lastseen": stamp}).encode())
            for identity, (priority, stamp) in status.items()
        }
        self.leadership.changed(None, Peering(metadata=ObjectMeta(name=name), status=records))


def test_time_alone_ends_our_turn_even_if_nobody_reviews() -> None:
    hand = Hand(OLDER)
    hand.show(older=(OLDER.priority, "1"))
    assert hand.leadership.active
    hand.now += 60
    assert not hand.leadership.active


def test_the_fence_has_the_last_word() -> None:
    hand = Hand(OLDER)
    hand.show(older=(OLDER.priority, "1"))
    told: list[bool] = []
    hand.leadership.on_change(told.append)
    hand.fence.held = False
    assert not hand.leadership.active
    hand.leadership.review()
    hand.fence.held = True
    hand.leadership.review()
    assert told == [False, True]


def test_another_peering_object_is_none_of_our_business() -> None:
    hand = Hand(OLDER)
    hand.show("somebody-elses", older=(OLDER.priority, "1"))
    assert not hand.leadership.active


def test_a_listener_that_fails_does_not_keep_it_from_the_others() -> None:
    hand = Hand(OLDER)
    told: list[bool] = []

    def fail(_: bool) -> None:
        raise RuntimeError("no")

    hand.leadership.on_change(fail)
    hand.leadership.on_change(told.append)
    hand.show(older=(OLDER.priority, "1"))
    assert told == [True]


# --- with Kopf itself ------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def kopf_operator(replica: Replica) -> AsyncIterator[None]:
    """A real Kopf operator that does nothing but keep its record, and leaves cleanly.

    Started as ours is: `kopf.operator` would wait five seconds for tasks of the sandbox, which it takes for its own.
    """
    registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
    settings.peering.lifetime = 10
    settings.peering.mandatory = True
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)
    tasks = await kopf.spawn_tasks(
        registry=registry,
        settings=settings,
        identity=cast(Any, replica.identity),  # a NewType of str that Kopf keeps private
        priority=replica.priority,
        peering_name="placewright",
        clusterwide=True,
    )
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        _, late = await asyncio.wait(tasks, timeout=10)
        assert not late


async def test_kopfs_own_records_elect_the_older_and_its_leaving_hands_over(
    client: ApiClient, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(sandbox.kubeconfig))
    await ensure_peering(client)
    async with watching(client, OLDER) as older, watching(client, YOUNGER) as younger, kopf_operator(YOUNGER):
        turns = Turns(younger)
        await asyncio.wait_for(younger.wait_active(), 10)
        async with kopf_operator(OLDER):
            await asyncio.wait_for(older.wait_active(), 10)
            await turns.until(True, False)
        await asyncio.wait_for(younger.wait_active(), 10)
        assert not older.active
