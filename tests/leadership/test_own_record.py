"""Our record in the peering object, when somebody drops it: back at once, without giving up the lead, and without a fight."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import pytest

from kubesandbox.server import Sandbox, SandboxOptions
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.leadership.peering import PEERINGS_PATH, Leadership, RecordPace, ensure_peering
from placewright.leadership.peers import Replica, priority_of

from .nofence import no_fence

CRDS = Path(__file__).parents[2] / "crds"
PEERING = f"{PEERINGS_PATH}/placewright"
US = Replica("us", priority_of(1_900_000_000_000, 1))
YOUNGER = Replica("younger", priority_of(1_900_000_000_001, 0))


# --- how often ---------------------------------------------------------------------------------------------------------------------


def test_the_first_time_is_at_once_and_each_that_follows_soon_waits_longer() -> None:
    pace, now, waits = RecordPace(), 1000.0, []
    for _ in range(9):
        waits.append(pace.due(now) - now)
        now = pace.due(now)
        pace.sent(now)
        now += 0.01  # dropped again, at the speed of the network
    assert waits[0] == 0
    assert 0.9 < waits[1] < 3
    assert all(later > earlier for earlier, later in itertools.pairwise(waits[:6]))
    assert max(waits) <= 60


def test_where_it_stood_for_long_the_next_time_is_a_first_one() -> None:
    pace = RecordPace()
    for now in (0.0, 10.0, 20.0):
        pace.sent(pace.due(now))
    assert pace.due(200.0) == 200.0
    pace.sent(200.0)
    assert pace.due(200.0) <= 201.0


# --- on an API server --------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def client() -> AsyncIterator[ApiClient]:
    async with Sandbox(SandboxOptions(crds=[CRDS])) as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as made:
        await ensure_peering(made)
        yield made


class Watched:
    """A leadership whose turns are noted, and the object as it is told of it."""

    def __init__(self, client: ApiClient, replica: Replica) -> None:
        self.client = client
        self.leadership = Leadership(client, replica, no_fence(), keeps_record=True)
        self.told: list[bool] = []
        self.leadership.on_change(self.told.append)
        self._news = asyncio.Event()
        observe = self.leadership.changed

        def changed(old: Any, new: Any) -> None:
            observe(old, new)
            self._status = dict(new.status or {})
            self._news.set()

        self.leadership.changed = changed  # type: ignore[method-assign]
        self._status: dict[str, Any] = {}

    async def __aenter__(self) -> Self:
        content = {"priority": self.leadership.replica.priority, "lifetime": 60, "lastseen": "1"}
        self.leadership.start()
        await self.client.patch(PEERING, {"status": {self.leadership.replica.identity: content}})
        await self.until_there()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leadership.stop()

    async def until_there(self, there: bool = True, who: str = "") -> None:
        async with asyncio.timeout(10):
            while ((who or self.leadership.replica.identity) in self._status) is not there:
                self._news.clear()
                await self._news.wait()


@pytest.mark.parametrize(
    "dropped", [{"status": None}, {"status": {"us": None}}, {"status": {"us": None, "other": {"priority": -(2**62), "lifetime": 9}}}]
)
async def test_it_is_back_at_once_whoever_dropped_it_and_the_lead_is_never_given_up(
    client: ApiClient, dropped: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    async with Watched(client, US) as ours:
        with caplog.at_level(logging.INFO):
            await client.patch(PEERING, dropped)
            await ours.until_there(False)
            await ours.until_there()
        assert ours.told == [True]
    assert "another writer dropped our record; it is written again" in caplog.text


async def test_whose_record_is_dropped_with_all_others_puts_back_its_own_and_the_older_stays_ahead(client: ApiClient) -> None:
    async with Watched(client, US) as ours, Watched(client, YOUNGER) as younger:
        await client.patch(PEERING, {"status": None})
        await asyncio.gather(ours.until_there(False), younger.until_there(False))
        await asyncio.gather(ours.until_there(), younger.until_there())
        await younger.until_there(who="us")
        assert ours.told == [True]
        assert ours.leadership.active and not younger.leadership.active


async def test_who_resigned_puts_nothing_back(client: ApiClient) -> None:
    async with Watched(client, US) as ours:
        await ours.leadership.resign()
        await client.patch(PEERING, {"status": {"us": None}})
        await ours.until_there(False)
        await client.patch(PEERING, {"status": {"other": {"priority": 1, "lifetime": 9}}})
        await ours.until_there(who="other")
        assert "us" not in ours._status


async def test_what_was_put_back_is_taken_out_at_the_end(client: ApiClient) -> None:
    async with Watched(client, US) as ours:
        await client.patch(PEERING, {"status": None})
        await ours.until_there(False)
        await ours.until_there()
    assert b'"us"' not in await client.get(PEERING)
