"""Marks of decisions as an API server keeps them: of two who change one, one is refused, and nothing but marks is taken for one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from placewright.api.decisionmarks import DecisionMark, MarkedPod
from placewright.kube.auth.login import load_config
from placewright.kube.client import ApiClient
from placewright.kube.decisionmarks import DIED_AT, MARK_LABEL, MarkStore
from placewright.kube.errors import CONFLICT, ApiError, Unreachable

from .stage import Stage

POISON = MarkedPod("tenant", "pod tenant/poison", "0123abcd", controller="4567", heavy=True)
OTHER = MarkedPod("tenant", "pod tenant/other", "89ef")
REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[ApiClient]:
    async with ApiClient(load_config(str(stage.sandbox.kubeconfig))) as made:
        yield made


@pytest.fixture
def store(client: ApiClient) -> MarkStore:
    return MarkStore(client, "default")


def told(mark: DecisionMark) -> tuple[MarkedPod, int, str]:
    return mark.pod, mark.deaths, mark.opened_by


async def test_a_mark_is_read_as_it_was_written(store: MarkStore) -> None:
    opened = await store.open(POISON, "r-1")
    assert told(opened) == (POISON, 0, "r-1")
    await store.open(OTHER, "r-2")
    assert {mark.opened_by: mark.pod for mark in await store.marks()} == {"r-1": POISON, "r-2": OTHER}


async def test_a_death_is_counted_once_and_stays_when_the_mark_is_opened_again(store: MarkStore) -> None:
    opened = await store.open(POISON, "r-1")
    died = await store.count_death(opened, 1_000_000.0)
    assert (told(died), died.died_at) == ((POISON, 1, ""), 1_000_000.0)
    with pytest.raises(ApiError) as refused:
        await store.count_death(opened, 1_000_001.0)
    assert refused.value.status == CONFLICT
    again = await store.open(POISON, "r-3")
    assert (told(again), again.died_at) == ((POISON, 1, "r-3"), 1_000_000.0)
    assert [told(mark) for mark in await store.marks()] == [(POISON, 1, "r-3")]


async def test_a_mark_that_somebody_else_changed_is_not_taken_away(store: MarkStore) -> None:
    opened = await store.open(POISON, "r-1")
    died = await store.count_death(opened, 1_000_000.0)
    await store.close(opened)
    assert [told(mark) for mark in await store.marks()] == [(POISON, 1, "")]
    await store.close(died)
    await store.close(died)
    assert await store.marks() == []


async def test_a_mark_of_which_no_version_is_known_is_taken_away_as_it_is(store: MarkStore) -> None:
    await store.open(POISON, "r-1")
    await store.close(DecisionMark(POISON))
    assert await store.marks() == []


async def test_without_the_lead_no_mark_is_written(client: ApiClient) -> None:
    with pytest.raises(Unreachable):
        await MarkStore(client, "default", lambda: False).open(POISON, "r-1")
    assert await MarkStore(client, "default").marks() == []


async def test_what_is_no_mark_is_passed_over_and_a_strange_time_is_none(client: ApiClient, store: MarkStore) -> None:
    for name, data in (("strange", {"spec": 3}), ("empty", None)):
        metadata = {"name": name, "labels": {MARK_LABEL: "decision"}}
        body = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata, "revision": 1, "data": data or {}}
        await client.post(REVISIONS, body)
    opened = await store.open(POISON, "r-1")
    await client.patch(f"{REVISIONS}/decision-{opened.pod.name}", {"metadata": {"annotations": {DIED_AT: "yesterday"}}})
    (mark,) = await store.marks()
    assert (told(mark), mark.died_at) == ((POISON, 0, "r-1"), 0.0)
