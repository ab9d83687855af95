"""Metrics of a real operator on an embedded cluster, compared with what the cluster's store shows of it."""

from __future__ import annotations

from dataclasses import fields

import pytest

from handlers.stage import Stage
from observability.metricsdesk import OPENMETRICS, PLAIN, Seen, watched
from placewright.api.givenup import GIVEN_UP
from placewright.observability.metrics import families
from serving.desk import desk
from serving.test_access import account


async def test_attempts_are_counted_as_the_store_shows_bindings(stage: Stage) -> None:
    names = stage.pods(30)
    stage.pod("big", cpu="99")
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed(*names) and stage.condition("big").get("reason") == "Unschedulable")
        await stage.until(lambda: running.seen().value("placewright_bindings_total", outcome="bound") == 30)
        scrape = running.seen()
    bound = len(stage.bindings)
    assert bound == 30
    assert scrape.value("scheduler_schedule_attempts_total", result="scheduled", profile="placewright") == bound
    assert scrape.total("scheduler_schedule_attempts_total", result="unschedulable") >= 1
    assert scrape.total("scheduler_schedule_attempts_total", result="error") == 0
    assert scrape.value("scheduler_scheduling_algorithm_duration_seconds_count") == bound
    assert scrape.value("scheduler_pod_scheduling_attempts_bucket", le="+Inf") == bound
    assert scrape.value("scheduler_pod_scheduling_attempts_bucket", le="1.0") == bound
    assert scrape.value("scheduler_pod_scheduling_sli_duration_seconds_count", attempts="1") == bound
    point = "scheduler_framework_extension_point_duration_seconds_count"
    assert scrape.value(point, extension_point="Bind", status="Success", profile="placewright") == bound
    assert scrape.total("scheduler_queue_incoming_pods_total", event="UnscheduledPodAdd") == bound + 1


async def test_gauges_show_what_there_is(stage: Stage) -> None:
    names = stage.pods(5)
    stage.pod("big", cpu="99")
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed(*names) and stage.condition("big").get("reason") == "Unschedulable")
        await stage.until(lambda: running.seen().value("scheduler_cache_size", type="assumed_pods") == 0)
        scrape = running.seen()
    assert scrape.value("scheduler_cache_size", type="nodes") == 2
    assert scrape.value("scheduler_cache_size", type="pods") == 5
    assert scrape.total("scheduler_pending_pods") == 1
    assert scrape.value("scheduler_unschedulable_pods", plugin="NodeResourcesFit", profile="placewright") == 1
    assert scrape.value("leader_election_master_status", name="placewright") == 1
    assert scrape.value("placewright_leader", identity=running.engine.leading.replica.identity) == 1
    assert scrape.value("placewright_api_server_away") == 0
    # At the start, and once more when it took the lead: that no news of nodes came does not say that what it had was new enough.
    assert scrape.value("placewright_watch_lists_total", resource="nodes") == 2


async def test_every_kind_of_repair_and_what_was_dropped_is_told(stage: Stage) -> None:
    names = stage.pods(1)
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed(*names))
        engine = running.engine
        repairs, statuses, groups = engine.reading.event_handlers.repairs, engine.writing.status.counts, engine.writing.group_status.counts
        before = running.seen()
        for number, one in enumerate(fields(repairs), 1):
            setattr(repairs, one.name, getattr(repairs, one.name) + number)
        statuses.dropped += 5
        groups.dropped += 6
        after = running.seen()
    kind = "placewright_reconciler_repairs_total"
    for number, one in enumerate(fields(repairs), 1):
        assert after.value(kind, kind=one.name) == before.value(kind, kind=one.name) + number
    assert {"nodes_missed", "nodes_stale", "pods_vanished", "pods_stale", "outdated"} <= after.values(kind, "kind")
    assert after.value("placewright_status_writes_total", outcome="dropped") == 5
    assert after.value("placewright_group_status_writes_total", outcome="dropped") == 6
    assert after.values("placewright_writer_restarts_total", "writer") == {"events", "status", "group status"}


async def test_waits_are_told_by_tenant_where_a_profile_has_fairness(stage: Stage) -> None:
    names = stage.pods(3)
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed(*names))
        assert running.seen().values("placewright_tenant_pods_total", "tenant") == set()
        generation = stage.edit_profile(fairness={"by": "Namespace"})
        await stage.until(lambda: stage.show_profile()["status"]["activeGeneration"] == generation)
        names = stage.pods(4)
        await stage.until(lambda: stage.placed(*names))
        scrape = running.seen()
    labels = {"scheduler_name": "placewright", "tenant": "default"}
    assert scrape.value("placewright_tenant_pods_total", **labels) == 4
    assert scrape.value("placewright_tenant_wait_seconds_total", **labels) > 0
    assert scrape.value("placewright_tenants_waiting", scheduler_name="placewright") == 0


async def test_watches_are_told_by_group_and_resource(stage: Stage) -> None:
    async with watched(stage) as running:
        await stage.until(lambda: running.engine.started)
        scrape = running.seen()
        reflected = len(running.engine.reading.running)
    resources = scrape.values("placewright_watch_starts_total", "resource")
    assert len(resources) == reflected
    assert {"nodes", "pods", "storageclasses.storage.k8s.io", "podgroups.scheduling.k8s.io"} <= resources


async def test_both_formats_say_the_same(stage: Stage) -> None:
    names = stage.pods(10)
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed(*names))
        plain, modern = running.seen(PLAIN), running.seen(OPENMETRICS)
    assert plain.content_type.startswith("text/plain; version=0.0.4")
    assert modern.content_type.startswith("application/openmetrics-text; version=1.0.0")
    declared = {family.name.removesuffix("_total").removesuffix("_info"): family for family in families()}
    assert declared.keys() - modern.families.keys() == set()
    for name, family in declared.items():
        assert modern.families[name].type == family.kind.value
        assert modern.families[name].documentation == family.help
    assert {name for name in plain.families if name.startswith("scheduler_")} == {
        name for name in modern.families if name.startswith("scheduler_")
    }


async def test_what_is_asked_for_before_the_api_server_has_answered_is_answered(stage: Stage) -> None:
    async with watched(stage) as running:
        scrape = running.seen()
        assert not running.engine.started
    assert scrape.value("scheduler_pending_pods", queue="active") == 0
    assert scrape.value("scheduler_preemption_attempts_total") == 0
    assert scrape.total("scheduler_schedule_attempts_total") == 0
    with pytest.raises(KeyError, match="0 samples"):
        scrape.value("placewright_profile_active_generation", profile="default", scheduler_name="placewright")


async def test_a_decision_after_a_swap_used_the_generation_that_the_metric_shows(stage: Stage) -> None:
    (before,) = stage.pods(1)
    active = "placewright_profile_active_generation"
    of_it = {"profile": "default", "scheduler_name": "placewright"}
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed(before))
        assert running.seen().value(active, **of_it) == 1
        generation = stage.edit_profile(weights={"NodeResourcesFit": 7})
        await stage.until(lambda: running.seen().value(active, **of_it) == generation)
        (after,) = stage.pods(1)
        await stage.until(lambda: stage.placed(after))
        scrape = running.seen()
    decisions = [stage.decision(name) for name in (before, after)]
    assert [decision.generation if decision else None for decision in decisions] == [1, generation]
    assert scrape.value("placewright_profile_reloads_total", profile="default", result="success") == 2
    assert scrape.value("placewright_profile_wanted_generation", **of_it) == generation


async def test_a_refused_generation_is_counted_and_the_last_good_one_stays_active(stage: Stage) -> None:
    (web,) = stage.pods(1)
    of_it = {"profile": "default", "scheduler_name": "placewright"}
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed(web))
        stage.write_profile_unchecked(weights={"NoSuchPlugin": 1})
        await stage.until(lambda: running.seen().total("placewright_profile_reloads_total", result="refused") == 1)
        scrape = running.seen()
    assert scrape.value("placewright_profile_active_generation", **of_it) == 1
    assert scrape.value("placewright_profile_wanted_generation", **of_it) == 2
    assert scrape.value("placewright_profile_ready", **of_it, reason="InvalidProfile") == 0


async def test_what_has_not_even_the_shape_of_a_profile_is_shown_beside_the_generation_that_stays(stage: Stage) -> None:
    of_it = {"profile": "default", "scheduler_name": "placewright"}
    async with watched(stage) as running:
        await stage.until(lambda: running.seen().total("placewright_profile_active_generation") == 1)
        stage.write_profile_unchecked(weights=["NodeResourcesFit"])
        await stage.until(lambda: running.seen().total("placewright_profile_reloads_total", result="refused") == 1)
        scrape = running.seen()
    assert scrape.value("placewright_profile_active_generation", **of_it) == 1
    assert scrape.value("placewright_profile_wanted_generation", **of_it) == 2
    assert scrape.value("placewright_profile_ready", **of_it, reason="InvalidProfile") == 0


async def test_a_profile_that_is_gone_leaves_no_series(stage: Stage) -> None:
    (web,) = stage.pods(1)
    async with watched(stage) as running:
        await stage.until(lambda: stage.placed(web))
        await stage.until(lambda: running.seen().total("scheduler_schedule_attempts_total", result="scheduled") == 1)
        stage.delete_profile()
        await stage.until(lambda: not running.engine.deciding.live.active)
        await stage.until(lambda: 'profile="' not in running.seen().text)
        gone = running.seen()
    assert gone.value("scheduler_pod_scheduling_attempts_count") == 1
    assert gone.values("scheduler_schedule_attempts_total", "profile") == set()


async def test_two_engines_in_one_process_share_no_figure(stage: Stage) -> None:
    async with watched(stage) as one, watched(stage) as other:

        def scheduled() -> list[float]:
            return sorted(each.seen().total("scheduler_schedule_attempts_total", result="scheduled") for each in (one, other))

        names = stage.pods(4)
        await stage.until(lambda: stage.placed(*names) and sum(scheduled()) == 4)
        assert scheduled() == [0, 4]


async def test_a_scraper_gets_them_over_https_packed_and_in_its_format(stage: Stage) -> None:
    token = account(stage.sandbox, "prometheus", "/metrics")
    names = stage.pods(3)
    async with desk(stage) as asked:
        await stage.until(lambda: stage.placed(*names))
        reply = await asked.get("/metrics", token, Accept=OPENMETRICS, **{"Accept-Encoding": "gzip"})
        plain = await asked.get("/metrics", token, **{"Accept-Encoding": "identity"})
        nobody = await asked.get("/metrics")
    assert (reply.status, reply.headers["Content-Encoding"]) == (200, "gzip")
    seen = Seen(reply.text.encode(), reply.headers["Content-Type"])
    assert seen.value("scheduler_cache_size", type="nodes") == 2
    assert "Content-Encoding" not in plain.headers
    assert Seen(plain.text.encode(), plain.headers["Content-Type"]).value("scheduler_cache_size", type="nodes") == 2
    assert nobody.status in (401, 403)


async def test_a_scrape_while_profiles_change_is_whole(stage: Stage) -> None:
    """Labels of one profile are not mixed with another's, and what is removed while others stay is gone."""
    stage.profile("team", schedulerName="team")
    async with watched(stage) as running:
        (ours,), (theirs,) = stage.pods(1), stage.pods(1, scheduler="team")
        await stage.until(lambda: stage.placed(ours, theirs))
        await stage.until(lambda: running.seen().total("scheduler_schedule_attempts_total", result="scheduled") == 2)
        both = running.seen()
        stage.delete_profile("team")
        await stage.until(lambda: '"team"' not in running.seen().text)
        one = running.seen()
    attempts = "scheduler_schedule_attempts_total"
    assert [both.value(attempts, result="scheduled", profile=name) for name in ("placewright", "team")] == [1, 1]
    assert both.values("placewright_profile_active_generation", "profile") == {"default", "team"}
    assert one.values("placewright_profile_active_generation", "profile") == {"default"}
    assert one.values("placewright_profile_reloads_total", "profile") == {"default"}
    assert one.value(attempts, result="scheduled", profile="placewright") == 1


async def test_pods_of_a_deleted_profile_are_counted_until_there_is_one_again(stage: Stage) -> None:
    of_it = {"scheduler_name": "placewright", "reason": "deleted"}
    without = "placewright_pods_without_profile"
    async with watched(stage) as running:
        await stage.until(lambda: running.engine.deciding.live.active)
        stage.delete_profile()
        await stage.until(lambda: not running.engine.deciding.live.active)
        names = stage.pods(3)
        await stage.until(lambda: running.seen().total(without, **of_it) == 3)
        stage.profile()
        await stage.until(lambda: stage.placed(*names))
        assert running.seen().total(without) == 0


async def test_pods_that_are_given_up_are_counted_by_profile(stage: Stage) -> None:
    stage.edit_profile(giveUpAfterSeconds=1)
    stage.pod("big", cpu="99")
    async with watched(stage) as running:
        await stage.until(lambda: stage.condition("big", GIVEN_UP))
        scrape = running.seen()
        stage.delete_pod("big")
        await stage.until(lambda: running.seen().value("placewright_given_up_pods", profile="default") == 0)
        after = running.seen()
    assert scrape.value("placewright_given_up_pods", profile="default") == 1
    assert scrape.value("placewright_pods_given_up_total", profile="default") == 1
    assert after.value("placewright_pods_given_up_total", profile="default") == 1
