"""Our record stays in the peering object whatever any clock says, and those of who is gone do not. Held to Kopf's own rule."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import pytest
from kopf._core.engines.peering import Peer

from kubesandbox.server import Sandbox, SandboxOptions
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.leadership import peering
from placewright.leadership.peering import PEERINGS_PATH, Leadership, ensure_peering
from placewright.leadership.peers import ENROLLED_SECONDS, Replica, priority_of, renewal

from .hastyloop import HastyLoop
from .nofence import no_fence

#: Lifetimes are of seconds, which nobody here waits for.
LOOP = HastyLoop
CRDS = Path(__file__).parents[2] / "crds"
PEERING = f"{PEERINGS_PATH}/placewright"
LIFETIME = 8
DEADLINE = 60.0
US = Replica("us", priority_of(1_900_000_000_000, 1))
THEM = Replica("them", priority_of(1_900_000_000_001, 0))


# --- Kopf's rule -------------------------------------------------------------------------------------------------------------------


def test_no_clock_makes_kopf_take_what_we_write_for_dead() -> None:
    """Fails when Kopf's records moved or mean something else: then see `peerrecord.py`."""
    content = renewal("us", -5, 15, 1, datetime.now(UTC))["status"]["us"]
    peer = Peer(identity="us", **content)  # type: ignore[arg-type]
    assert not peer.is_dead
    assert peer.deadline > datetime(2900, 1, 1, tzinfo=UTC)
    assert json.loads(json.dumps(content)) == content, "as it goes over the wire"


@pytest.mark.parametrize("year", [1970, 2026, 2060])
def test_no_clock_makes_kopf_take_what_it_enrolled_for_dead(year: int) -> None:
    """What Kopf writes by a clock of that year, read by clocks until 2069."""
    peer = Peer(identity="us", lifetime=ENROLLED_SECONDS, lastseen=datetime(year, 1, 1, tzinfo=UTC).isoformat())  # type: ignore[arg-type]
    assert peer.deadline > datetime(2069, 1, 1, tzinfo=UTC)
    assert peer.lifetime == timedelta(seconds=ENROLLED_SECONDS)
    assert Peer(identity="us", lifetime=0).is_dead, "this is its goodbye"  # type: ignore[arg-type]


# --- on an API server --------------------------------------------------------------------------------------------------------------


def now() -> float:
    """Seconds on the clock that all of this goes by."""
    return asyncio.get_running_loop().time()


class Scene:
    """A peering object, and every state that it was in."""

    def __init__(self, sandbox: Sandbox, client: ApiClient) -> None:
        self.client = client
        self.states: list[dict[str, Any]] = []
        self._news = asyncio.Event()
        self._resource = sandbox.resource("kopf.dev", "v1", "clusterkopfpeerings")
        sandbox.store.listeners.append(self._heard)

    def _heard(self, key: object, change: Any) -> None:
        if key == self._resource.key:
            self.states.append({} if change.current is None else dict(change.current.object.get("status") or {}))
            self._news.set()

    @property
    def status(self) -> dict[str, Any]:
        return self.states[-1] if self.states else {}

    async def until(self, condition: Any) -> None:
        async with asyncio.timeout(DEADLINE):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def enrol(self, replica: Replica, lifetime: int = ENROLLED_SECONDS, year: int = 2026) -> None:
        """As Kopf does, by a clock of that year."""
        content = {"priority": replica.priority, "lifetime": lifetime, "lastseen": f"{year}-01-01T00:00:00+00:00"}
        await self.client.patch(PEERING, {"status": {replica.identity: content}})

    @asynccontextmanager
    async def at_work(self, replica: Replica) -> AsyncIterator[Leadership]:
        leadership = Leadership(self.client, replica, no_fence(), keeps_record=True, lifetime=LIFETIME, clock=now)
        leadership.start()
        try:
            yield leadership
        finally:
            await leadership.stop()


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with Sandbox(SandboxOptions(crds=[CRDS])) as sandbox, ApiClient(load_config(str(sandbox.kubeconfig))) as client:
        await ensure_peering(client)
        yield Scene(sandbox, client)


async def test_a_record_that_kopf_enrolled_is_renewed_four_times_in_a_lifetime_and_says_how_long_it_holds(scene: Scene) -> None:
    async with scene.at_work(US) as leadership:
        await scene.enrol(US)
        await scene.until(lambda: scene.status["us"]["lifetime"] == LIFETIME)
        began, stamps = now(), set[int]()
        await scene.until(lambda: stamps.add(scene.status["us"]["renewals"]) or len(stamps) == 9)
        assert LIFETIME <= now() - began <= 4 * LIFETIME
        assert leadership.active
    assert "us" not in scene.status, "and it is taken out at the end"


async def test_a_clock_that_stands_still_keeps_no_record_from_changing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime(2026, 1, 1, tzinfo=tz)

    monkeypatch.setattr(peering, "datetime", Stopped)
    async with scene.at_work(US), scene.at_work(THEM):
        await scene.enrol(US)
        await scene.enrol(THEM)
        await scene.until(lambda: {"us", "them"} <= scene.status.keys())
        seen, began = len(scene.states), now()
        await scene.until(lambda: now() - began > 3 * LIFETIME)
        assert all({"us", "them"} <= state.keys() for state in scene.states[seen:])


async def test_before_kopf_enrolled_us_nothing_is_written(scene: Scene) -> None:
    async with scene.at_work(US):
        await scene.enrol(THEM, lifetime=3)
        await scene.until(lambda: "them" not in scene.status)
        assert not any("us" in state for state in scene.states)


async def test_a_record_that_nobody_keeps_goes_after_its_lifetime_and_the_next_is_active_then(scene: Scene) -> None:
    async with scene.at_work(THEM) as heir:
        await scene.enrol(THEM)
        await scene.enrol(US)  # killed right after
        began = now()
        await scene.until(lambda: "us" not in scene.status)
        assert LIFETIME - 1 <= now() - began < 2 * LIFETIME
        assert heir.active


@pytest.mark.parametrize("year", [1970, 2026, 2068])
async def test_two_that_keep_their_records_keep_them_whatever_year_their_clocks_are_in(scene: Scene, year: int) -> None:
    async with scene.at_work(US) as older, scene.at_work(THEM) as younger:
        await scene.enrol(US, year=year)
        await scene.enrol(THEM)
        await scene.until(lambda: {"us", "them"} <= scene.status.keys())
        seen = len(scene.states)
        began = now()
        await scene.until(lambda: now() - began > 5 * LIFETIME)
        assert all({"us", "them"} <= state.keys() for state in scene.states[seen:])
        assert older.active and not younger.active


async def test_what_was_renewed_meanwhile_is_not_taken_out_by_who_has_not_seen_it(scene: Scene) -> None:
    """A replica that stood still, or whose watch is behind, believes that the others are gone."""
    async with scene.at_work(US) as ours:
        await scene.enrol(US)
        await scene.enrol(THEM, lifetime=3)
        await scene.until(lambda: scene.status.get("us", {}).get("lifetime") == LIFETIME)
        ours.changed = lambda old, new: None  # type: ignore[method-assign]
        beats, began = 0, now()
        while now() - began < 3 * LIFETIME:
            beats += 1
            await scene.client.patch(PEERING, {"status": {"them": {"lastseen": f"{beats}"}}})
            await asyncio.sleep(1)
        assert all("them" in state for state in scene.states[4:])


async def test_a_peering_object_that_was_deleted_and_made_again_has_our_record_again(scene: Scene) -> None:
    async with scene.at_work(US) as leadership:
        await scene.enrol(US)
        await scene.until(lambda: scene.status["us"]["lifetime"] == LIFETIME)
        await scene.client.delete(PEERING)
        await ensure_peering(scene.client)
        await scene.until(lambda: "us" in scene.status)
        await asyncio.wait_for(leadership.wait_active(), DEADLINE)


async def test_a_newcomer_whose_clock_is_behind_stands_behind_who_is_there(scene: Scene) -> None:
    early = Replica("early", priority_of(1_000_000_000_000, 3))
    await scene.enrol(US)
    newcomer = Leadership(scene.client, early, no_fence())
    assert (await newcomer.stand_behind_others()).priority < US.priority
    assert newcomer.replica.identity == "early"
    assert (await Leadership(scene.client, THEM, no_fence()).stand_behind_others()) == THEM
