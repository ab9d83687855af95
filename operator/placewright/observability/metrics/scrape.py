"""Metrics that are read from the engine at each scrape: gauges, and counters that other modules keep."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Final

from prometheus_client.core import Metric

from placewright.api.boundedcache import kept_bytes
from placewright.cluster.cluster import Cluster
from placewright.engine.decidingpart import DecidingPart
from placewright.engine.engine import Engine
from placewright.engine.readingpart import ReadingPart
from placewright.framework.runtime.columnbudget import ColumnBudget
from placewright.framework.runtime.profileruntime import ProfileRuntime
from placewright.kube.client import ApiClient
from placewright.kube.writers.binder import BindCounts
from placewright.leadership.leaseobject import LEASE_NAME
from placewright.observability.metrics import own, upstream
from placewright.observability.metrics.family import MetricFamily, counter, gauge
from placewright.observability.metrics.series import Labels, counted, single
from placewright.queue.queue import SchedulingQueue

_POD_POPPED: Final = "PodPopped"
#: Fields of `ReflectorCounts` that count problems.
_PROBLEMS: Final = ("failed", "expired", "malformed", "bad_object", "sink_error")


def gauges(engine: Engine) -> Iterator[Metric]:
    """Read all gauges. Those of parts that have not started yet are empty."""
    leading, writing, deciding = engine.leading, engine.writing, engine.deciding
    leads = float(leading.leadership.active)
    yield counted(upstream.LEADER_ELECTION, {LEASE_NAME: leads} if engine.options.leader_elect else {})
    yield counted(own.LEADER, {leading.replica.identity: leads})
    yield single(own.LEADER_TERMS, float(leading.leadership.term))
    yield single(own.TAKEOVER_SECONDS, leading.takeover.seconds_without_decisions)
    yield from _api_server(writing.client)
    yield from _queue(deciding)
    yield from _tenants(deciding.queue)
    yield from _cache(deciding.cluster, deciding.column_budget)
    yield from _bindings(writing.binder.counts, deciding)
    yield from _writing(engine)
    yield from _watches(engine.reading)


def of_plugins(runtimes: Iterable[tuple[str, ProfileRuntime]]) -> Iterator[Metric]:
    """Read the metrics of plugins' own. Two profiles that run one plugin share a metric, and differ in the label `profile`."""
    families: dict[str, MetricFamily] = {}
    values: dict[str, dict[Labels, float]] = {}
    for profile, runtime in runtimes:
        for metric in runtime.metrics():
            make = counter if metric.name.endswith("_total") else gauge
            made = make(f"placewright_plugin_{metric.name}", metric.help, "profile", *metric.labels)
            family = families.setdefault(made.name, made)
            if family.labels == made.labels:  # of two packages with one name, the first one has it
                values.setdefault(made.name, {}).update({(profile, *labels): value for labels, value in metric.values.items()})
    yield from (counted(families[name], found) for name, found in values.items())


def _api_server(client: ApiClient) -> Iterator[Metric]:
    since = client.away.away_since
    yield single(own.AWAY, float(since is not None))
    yield single(own.AWAY_SECONDS, 0.0 if since is None else max(time.monotonic() - since, 0.0))


def _queue(deciding: DecidingPart) -> Iterator[Metric]:
    queue = deciding.queue
    sizes = queue.sizes()
    waiting = {"active": sizes.active, "backoff": sizes.backoff, "unschedulable": sizes.unschedulable, "gated": sizes.gated}
    yield counted(upstream.PENDING_PODS, waiting)
    in_flight: Counter[Labels] = Counter({(_POD_POPPED,): len(queue.in_flight)})
    in_flight.update({(event,): number for event, number in queue.in_flight.events_by_label().items()})
    yield counted(upstream.INFLIGHT_EVENTS, in_flight)
    kept = {(plugin, name): pods for name in deciding.live.active for plugin, pods in queue.rejections(name).items()}
    yield counted(upstream.UNSCHEDULABLE_PODS, kept)
    yield single(own.SUSPECTS, float(len(queue.suspects)))
    yield from _given_up(deciding)
    yield counted(own.DECISION_MARKS, asdict(deciding.marks.counts))


def _given_up(deciding: DecidingPart) -> Iterator[Metric]:
    """Read given up pods. A profile that states giveUpAfterSeconds has a 0, so that the first pod shows as an increase."""
    limits = ((deciding.live.by_scheduler_name(queue.name), queue.wait_limit) for queue in deciding.queue.profile_queues())
    given_up = {active.profile.name: len(limit.given_up) for active, limit in limits if active is not None and limit is not None}
    yield counted(own.GIVEN_UP, given_up)
    yield counted(own.PODS_GIVEN_UP, dict.fromkeys(given_up, 0) | deciding.scheduler.given_up.counts)


def _tenants(queues: SchedulingQueue) -> Iterator[Metric]:
    fair = {queue.name: queue.fair for queue in queues.profile_queues() if queue.served and queue.fair is not None}
    waits = {(name, tenant): wait for name, heap in fair.items() for tenant, wait in heap.waits}
    yield counted(own.TENANT_WAIT, {labels: wait.seconds for labels, wait in waits.items()})
    yield counted(own.TENANT_PODS, {labels: float(wait.pods) for labels, wait in waits.items()})
    yield counted(own.TENANTS_WAITING, {name: float(sum(len(turns.tenants) for turns in heap.turns())) for name, heap in fair.items()})


def _cache(cluster: Cluster, budget: ColumnBudget) -> Iterator[Metric]:
    sizes = {"nodes": cluster.node_count, "pods": cluster.pod_count_total, "assumed_pods": cluster.assumed_count}
    yield counted(upstream.CACHE_SIZE, sizes)
    yield single(own.COLUMN_BYTES, float(budget.held))
    yield single(own.COLUMN_BYTES_LIMIT, float(budget.limit))
    yield single(own.KEPT_BYTES, float(kept_bytes()))


def _bindings(counts: BindCounts, deciding: DecidingPart) -> Iterator[Metric]:
    yield counted(own.BINDINGS, asdict(counts))
    binding = deciding.scheduler.binding
    yield counted(upstream.GOROUTINES, {"binding": len(binding.under_way)})
    yield single(own.BINDINGS_UNRESOLVED, len(binding.unresolved))
    rooms = {queue.name: queue.room for queue in deciding.queue.profile_queues() if queue.served}
    standing = {(name, "on_their_way"): room.on_their_way for name, room in rooms.items()}
    yield counted(own.UNDER_WAY, standing | {(name, "aside"): room.aside for name, room in rooms.items()})


def _writing(engine: Engine) -> Iterator[Metric]:
    writing = engine.writing
    counts = {
        own.EVENTS: asdict(writing.events.counts),
        own.STATUS_WRITES: asdict(writing.status.counts),
        own.GROUP_STATUS_WRITES: asdict(writing.group_status.counts),
        own.WRITER_RESTARTS: {name: writer.restarts for name, writer in writing.outbox.items()},
        own.REPAIRS: asdict(engine.reading.event_handlers.repairs),
    }
    yield from (counted(family, found if engine.started else {}) for family, found in counts.items())
    # Each plugin that may reject has its 0, so that the first forgotten pod shows as an increase.
    plugins = {name for active in engine.deciding.live.active.values() for name in active.evaluator.runtime.interests}
    forgotten = engine.reading.forgotten.counts
    yield counted(own.FORGOTTEN, dict.fromkeys(sorted(plugins), 0) | forgotten.forgotten)
    yield single(own.REDECIDED, forgotten.looked)


def _watches(reading: ReadingPart) -> Iterator[Metric]:
    counts = [(one.source.resource, one.counts) for one in reading.running]
    yield counted(own.WATCHES, {source: count.watches for source, count in counts})
    yield counted(own.LISTS, {source: count.lists for source, count in counts})
    yield counted(own.WATCH_EVENTS, {source: count.events for source, count in counts})
    yield counted(own.WATCH_PROBLEMS, {(source, name): getattr(count, name) for source, count in counts for name in _PROBLEMS})


def profiles(deciding: DecidingPart) -> Iterator[Metric]:
    """Read the standing of each SchedulingProfile, by the object's name."""
    standings = list(deciding.profiles.standings().values())
    yield counted(own.PLUGIN_FAILURES, deciding.plugin_watch.totals)
    yield counted(own.PROFILE_RELOADS, {(name, result): number for (name, result), number in deciding.profiles.reloads.items()})
    # What is refused may not even have the shape of a profile, and so no schedulerName.
    claimed = {active.profile.name: name for name, active in deciding.live.active.items()}
    names = [(one.name, claimed.get(one.name, one.scheduler_name)) for one in standings]
    active = [standing.active_generation or 0 for standing in standings]
    yield counted(own.PROFILE_ACTIVE, dict(zip(names, active, strict=True)))
    yield counted(own.PROFILE_WANTED, dict(zip(names, (standing.observed_generation for standing in standings), strict=True)))
    ready = {(*name, one.reason.value): float(not one.reason.stalls) for name, one in zip(names, standings, strict=True)}
    yield counted(own.PROFILE_READY, ready)
    unclaimed: Counter[Labels] = Counter()
    for found, pods in deciding.unclaimed.waiting():
        unclaimed[found.ours, found.why.value] += pods
    yield counted(own.PODS_WITHOUT_PROFILE, unclaimed)
