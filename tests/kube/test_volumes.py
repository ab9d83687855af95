from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from fake_api import FakeApi, answer, hang_up, refuse

from placewright.api.decode import convert
from placewright.api.errors import VolumeError
from placewright.api.storage import PersistentVolume, PersistentVolumeClaim
from placewright.kube.errors import RetryBackoff
from placewright.kube.writers.volumes import HttpVolumeWriter
from placewright.kube.writers.writer import LONGEST_LOOK_SECONDS, LOOK_SECONDS

PV = "PATCH /api/v1/persistentvolumes/disk"
PVC = "PATCH /api/v1/namespaces/shop/persistentvolumeclaims/data"
REFERENCE = {"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": "shop", "name": "data", "uid": "c-1"}
VOLUME = convert(
    {"metadata": {"name": "disk", "uid": "v-1", "resourceVersion": "7", "annotations": {"by": "us"}}, "spec": {"claimRef": REFERENCE}},
    PersistentVolume,
)
CLAIM = convert(
    {"metadata": {"name": "data", "namespace": "shop", "uid": "c-1", "resourceVersion": "8", "annotations": {"node": "n1"}}},
    PersistentVolumeClaim,
)


class Bench:
    """A fake server, and a writer whose waits take no time but move its clock."""

    def __init__(self, api: FakeApi, client: Any) -> None:
        self.api = api
        self.leads = True
        self.now = 0.0
        self.writer = HttpVolumeWriter(
            client, lambda: self.leads, backoff=RetryBackoff(0.1, uniform=lambda: 1.0), clock=lambda: self.now, sleep=self._sleep
        )

    async def _sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with FakeApi() as api, api.client() as client:
        yield Bench(api, client)


async def test_a_volume_is_told_its_claim_if_nobody_changed_it_meanwhile(bench: Bench) -> None:
    bench.api.on(PV, answer({"metadata": {"name": "disk", "resourceVersion": "9"}}))
    assert (await bench.writer.bind(VOLUME)).metadata.resource_version == "9"
    (sent,) = bench.api.asked("PATCH")
    assert sent.headers["Content-Type"] == "application/merge-patch+json"
    assert sent.body == {
        "metadata": {"uid": "v-1", "resourceVersion": "7", "annotations": {"by": "us"}},
        "spec": {"claimRef": REFERENCE},
    }


async def test_a_claim_is_told_its_node_and_nothing_else_of_it_is_written(bench: Bench) -> None:
    bench.api.on(PVC, answer({"metadata": {"name": "data", "resourceVersion": "9"}}))
    assert (await bench.writer.select_node(CLAIM)).metadata.resource_version == "9"
    (sent,) = bench.api.asked("PATCH")
    assert sent.body == {"metadata": {"uid": "c-1", "resourceVersion": "8", "annotations": {"node": "n1"}}}


async def test_a_conflict_is_said_and_not_repeated(bench: Bench) -> None:
    bench.api.on(PV, refuse(409, "Conflict"))
    with pytest.raises(VolumeError, match=r"persistentvolumes/disk.*409"):
        await bench.writer.bind(VOLUME)
    assert len(bench.api.asked("PATCH")) == 1


async def test_a_busy_server_and_a_lost_answer_are_tried_again(bench: Bench) -> None:
    bench.api.on(PV, refuse(503, "ServiceUnavailable"), hang_up, answer({"metadata": {"name": "disk"}}))
    await bench.writer.bind(VOLUME)
    assert len(bench.api.asked("PATCH")) == 3


async def test_only_the_active_replica_writes_and_waits(bench: Bench) -> None:
    bench.leads = False
    with pytest.raises(VolumeError, match="not the active one"):
        await bench.writer.bind(VOLUME)
    with pytest.raises(VolumeError, match="not the active one"):
        await bench.writer.until(lambda: False, 600)
    assert bench.api.requests == []


async def test_waiting_ends_when_it_is_done_or_when_the_time_is_over(bench: Bench) -> None:
    assert await bench.writer.until(lambda: bench.now > 5, 600)
    assert 5 < bench.now < 6
    assert not await bench.writer.until(lambda: False, 10)
    assert 15 < bench.now < 17
    assert await bench.writer.until(lambda: True, 0)


async def test_who_waits_for_long_looks_ever_more_rarely_and_asks_the_api_server_nothing(bench: Bench) -> None:
    """Thousands may wait for volumes that never come."""
    looks = 0

    def never() -> bool:
        nonlocal looks
        looks += 1
        return False

    assert not await bench.writer.until(never, 600)
    assert looks < 200
    assert bench.api.requests == []


@pytest.mark.parametrize("moment", [0.1, 1.0, 3.0, 10.0, 40.0, 100.0, 599.0])
async def test_what_is_waited_for_is_seen_within_a_tenth_of_the_time_that_it_took(bench: Bench, moment: float) -> None:
    assert await bench.writer.until(lambda: bench.now >= moment, 600)
    assert bench.now <= moment + max(LOOK_SECONDS, min(0.1 * moment, LONGEST_LOOK_SECONDS)) + 1e-6
