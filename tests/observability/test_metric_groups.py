"""What is counted of groups and of claims."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from handlers.stage import KEEPING, WITH_GROUPS, Stage, new_stage
from observability.metricsdesk import read, watched
from placewright.observability.metrics.groups import ClaimSeries

ATTEMPTS = "scheduler_podgroup_schedule_attempts_total"
DURATION = "scheduler_podgroup_scheduling_attempt_duration_seconds"
ALGORITHM = "scheduler_podgroup_scheduling_algorithm_duration_seconds"


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    """Two nodes of four CPUs, and a server that knows PodGroups."""
    async with new_stage(WITH_GROUPS) as made:
        yield made.profile().nodes(2)


async def test_groups_are_counted_as_the_store_shows_them(stage: Stage) -> None:
    stage.pod_group("train", 3)
    stage.pod_group("huge", 2)
    stage.members("train", "t-0", "t-1", "t-2")
    stage.members("huge", "h-0", "h-1", cpu="64")
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed("t-0", "t-1", "t-2") and stage.condition("h-1").get("reason") == "Unschedulable")
        scrape = running.seen()
        assert scrape.value(ATTEMPTS, result="scheduled", profile="placewright") == 1
        assert scrape.value(f"{DURATION}_count", result="scheduled", profile="placewright") == 1
        refused = scrape.value(ATTEMPTS, result="unschedulable", profile="placewright")
        assert refused >= 1
        assert scrape.value(f"{ALGORITHM}_count") == refused + 1
        assert scrape.value("placewright_pod_groups", state="waiting") == 1
        assert scrape.value("placewright_pod_groups", state="placed") == 1
        first = scrape.value("placewright_pod_groups_oldest_waiting_seconds")
        stage.members("undeclared", "u-0")
        await stage.until(lambda: running.seen().value("placewright_pod_groups", state="waiting") == 2)
        assert 0 < first < running.seen().value("placewright_pod_groups_oldest_waiting_seconds")


async def test_a_group_for_which_nodes_are_kept_is_counted_as_reserving_until_it_is_gone(stage: Stage) -> None:
    stage.pod_group("late", 2)
    stage.edit_profile(pluginConfig=KEEPING)
    full = stage.pods(2, cpu="3500m", restart="Never")
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed(*full))
        assert running.seen().value("placewright_pod_groups_oldest_waiting_seconds") == 0
        stage.members("late", "l-0", "l-1", cpu="3")
        await stage.until(lambda: running.seen().value("placewright_pod_groups", state="reserving") == 1)
        stage.delete_pod("l-0")
        stage.delete_pod("l-1")
        await stage.until(lambda: running.seen().value("placewright_pod_groups", state="waiting") == 0)
        await stage.until(lambda: stage.pods(1) and running.seen().value("placewright_pod_groups", state="reserving") == 0)


def test_waits_for_devices_are_counted_by_driver_and_made_claims_by_what_became_of_them() -> None:
    series = ClaimSeries()
    series.waited("placewright", {"nic.example.com", "gpu.example.com"}, "timeout", 0.3)
    series.waited("placewright", {"gpu.example.com"}, "success", 0.15)
    series.created(failed=False)
    series.created(failed=True)
    scrape = read(series.series())
    name = "scheduler_dra_bindingconditions"
    labels = {"profile": "placewright", "driver": "gpu.example.com"}
    assert scrape.value(f"{name}_allocations_total", status="success", **labels) == 1
    assert scrape.total(f"{name}_allocations_total", status="timeout") == 2
    assert scrape.value(f"{name}_wait_duration_seconds_bucket", le="0.2", status="success", **labels) == 1
    assert scrape.value(f"{name}_wait_duration_seconds_bucket", le="0.2", status="timeout", **labels) == 0
    assert scrape.value("scheduler_resourceclaim_creates_total", status="success") == 1
    assert scrape.value("scheduler_resourceclaim_creates_total", status="failure") == 1
